"""The paper's Figure 4, drawn from the lines of the table."""

import re
import statistics

from svg import Chart, Curve, Dot, Scale

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")

SECTIONS = {
    "threads": """\
## The rate by the number of threads (Shalimov and Ivashchenko, Figure 4)

![Packet-ins answered by the number of threads, for each mode](kernel-half-figures-threads.svg)

In the paper, the learning switch in the kernel answers almost 30 million packet-ins per second, in pass-through mode 15 million,
and other controllers a fifth of the former, on two processors with six cores each, loaded from another machine over two links of
10 Gbit/s. Here, load and controller are on one machine, and from two threads on both have both cores together. Bars go from the
least to the most of the rounds.
""",
}


def drawn_from(lines):
    """Returns the pictures for which there are lines, by name."""
    dots = {}
    for line in lines:
        if line.row == "figure-4" and line.ours:
            name, threads = re.search(r"`(.*?)`, (\d+) thread", line.what).groups()
            dot = Dot(int(threads), statistics.median(line.ours), min(line.ours), max(line.ours))
            dots.setdefault(name, []).append(dot)
    if not dots:
        return {}
    curves = [Curve(name, colour, dots[name]) for name, colour in zip(dots, COLOURS)]
    x, y = Scale.from_zero_along(curves, "threads"), Scale.from_zero(curves, "packet-ins answered per second")
    return {"threads": Chart.side_by_side([Chart("Learning switch, 32 switches, 100,000 hosts each", x, y, curves)], columns=1)}
