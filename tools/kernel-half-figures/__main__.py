"""Measures the gains and losses of the kernel half, and writes docs/kernel-half-figures.md, .json and a plot.

Modes of `urtica run --offload` are measured alternately, together with plain epoll (`--offload none`), over loopback and over a veth pair
whose ends handle received packets on their own cores; then the evaluation of Shalimov and Ivashchenko's paper, with its
figures and other controllers beside ours. If the program refuses a mode, its error is shown. Namespaces, hogs and
switches are created for this run, and removed afterwards. Needs root, two cores, and what tools/setup installs. Run it on a quiet machine.

    python3 tools/kernel-half-figures                   all rows, under twenty minutes
    python3 tools/kernel-half-figures --rows 1,6        some of them; printed, and written only with --out
    python3 tools/kernel-half-figures --quick           tiny runs that show that the tool works, and nothing else
"""

import sys
from pathlib import Path

# Shares controllers, targets, lines of a table and drawing with the controller's figures, and Mininet's start with the
# networks' figures.
TOOLS = Path(__file__).resolve().parent.parent
sys.path += [str(TOOLS / "figures"), str(TOOLS / "network-figures")]

import issue_rows
import paper_rows
from command import Figures, run
from drawing import SECTIONS, drawn_from
from modes import WARM_UP_MS

EXPLANATION = """\
Measured by `make kernel-half-figures` on {date}, at {commit}; do not edit. Each figure is the median of {rounds} round(s), with the
interval that has it with 95 % confidence (bootstrap); what is compared is interleaved in an order that is drawn, and a ratio
is taken within each round. `none` is plain epoll in the program. Controllers have core {server_core}, the load core {load_core},
unless a row says otherwise; each run takes {ms} ms after a warm-up of {warm_up_ms} ms, is repeated up to {repeats} times ({all_repeats} in
all) where the machine disturbed it for a tenth of the time, and every reply is checked: a line whose answers were wrong or lost
is not reached. A mode that the program refuses has its sentence there.

Over loopback, the kernel's work for a segment is done on the core of the *load*, which sends it. On the veth pair, receive packet
steering has the controller's core do it, as on a real network. A switch gets its kernel half after a second and 16 packet-ins,
which the warm-up includes. Each switch has 1,000 hosts, unless a row says otherwise, which are known after it: the first packet
of a host is for the program in every mode.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- load average {load_average}
- in the runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}

Not measured: epoll with busy polling, which `urtica run` has no option for; io_uring.

Which mode to use is told in [offload.md](offload.md).
"""

if __name__ == "__main__":
    groups = (*issue_rows.GROUPS, *paper_rows.GROUPS)
    title = "The kernel half: figures"
    figures = Figures(
        "kernel-half-figures",
        title,
        EXPLANATION,
        groups,
        ms=1000,
        warm_up_ms=WARM_UP_MS,
        features=("kernel-half",),
        drawn_from=drawn_from,
        sections=SECTIONS,
    )
    run(figures, __doc__)
