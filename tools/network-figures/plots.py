"""McNettle's Figures 16 and 20, drawn from the lines of the table."""

import re
import statistics

from svg import Chart, Curve, Dot, Scale

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")

SECTIONS = {
    "fairness": """\
## Fairness by the number of switches (McNettle, Figure 16)

![Jain's index by the number of switches, for one shard and two](network-figures-fairness.svg)

In the paper the index is well below 1 at the maximum rate, and sometimes close to 0.5, for a thread of its run-time
system could keep a core from others. Bars go from the least to the most of the rounds.
""",
    "shared-state": """\
## What sharing costs (McNettle, Figure 20)

![Packet-ins answered by the number of cores, for four ways to share](network-figures-shared-state.svg)

The paper's controllers write for each packet-in, which a new source in each does here; where hosts are met again, what is shared
is only read. Load and controller have both cores together, so the rates are lower than where each has one. Bars go from the least to
the most of the rounds.
""",
}


def drawn_from(lines):
    """Returns the pictures for which there are lines, by name."""
    fairness = [line for line in lines if line.row == "figure-16" and line.ours]
    shared = [line for line in lines if line.row == "figure-20"]
    pictures = {}
    if fairness:
        pictures["fairness"] = fairness_chart(fairness)
    if shared:
        pictures["shared-state"] = shared_chart(shared)
    return pictures


def fairness_chart(lines):
    dots = {}
    for line in lines:
        switches, shards = map(int, re.search(r"(\d+) switches, (\d+) shard", line.what).groups())
        dots.setdefault(shards, []).append(dot(switches, line))
    curves = [Curve(f"{shards} shard(s)", colour, dots[shards]) for shards, colour in zip(sorted(dots), COLOURS)]
    x, y = Scale.from_zero_along(curves, "switches"), Scale.from_zero(curves, "Jain's index")
    return Chart.side_by_side([Chart("Fairness at the maximum rate", x, y, curves)], columns=1)


def shared_chart(lines):
    """Returns a panel for each load, with a curve for each way to share."""
    panels = {}
    for line in lines:
        name, load, shards = re.match(r"(.*?), (.*), max rate, (\d+) shard", line.what).groups()
        if line.ours:
            panels.setdefault(load, {}).setdefault(name, []).append(dot(int(shards), line))
    return Chart.side_by_side([shared_panel(load, dots) for load, dots in panels.items()], columns=min(2, len(panels)))


def shared_panel(load, dots):
    curves = [Curve(name, colour, dots[name]) for name, colour in zip(dots, COLOURS)]
    x, y = Scale.from_zero_along(curves, "shards"), Scale.from_zero(curves, "packet-ins answered per second")
    return Chart(f"Learning: {load}", x, y, curves)


def dot(x, line):
    return Dot(x, statistics.median(line.ours), min(line.ours), max(line.ours))
