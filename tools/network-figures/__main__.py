"""Measures programs on a network, and writes docs/network-figures.md, .json and two plots.

Controllers are measured as by `make figures`, alternately and each reply checked; work within one process by
`urtica bench network`; topology discovery on a tree of Open vSwitches that Mininet creates. Needs Linux, two cores, and
what tools/setup installs; the rows with Mininet need root. Run it on a quiet machine.

    python3 tools/network-figures                   all rows, twenty-five minutes
    python3 tools/network-figures --rows 3,7        some of them; printed, and written only with --out
    python3 tools/network-figures --rows figure-16  McNettle's Figure 16 (fairness) redrawn; figure-20 likewise
    python3 tools/network-figures --quick --rows 3  a tiny run that shows that the tool works, and nothing else
"""

import sys
from pathlib import Path

# Shares controllers, targets, lines of a table and drawing with the controller's figures.
sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

from command import Figures, run
from plots import SECTIONS, drawn_from
from rows import GROUPS

EXPLANATION = """\
Measured by `make network-figures` on {date}, at {commit}; do not edit. Each figure is the median of {rounds} round(s), with
the interval that has it with 95 % confidence (bootstrap); a ratio is taken within each round. What is compared is interleaved in an
order that is drawn. Controllers have core {server_core}, the load core {load_core}, unless a row says otherwise; each
of their runs takes {ms} ms after a warm-up of a third, is repeated up to {repeats} times ({all_repeats} in all) where the
machine disturbed it for a tenth of the time, and a line whose answers were wrong or lost is not reached.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- load average {load_average}
- in the controllers' runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}
"""

if __name__ == "__main__":
    title = "Programs on a network: figures"
    run(Figures("network-figures", title, EXPLANATION, GROUPS, drawn_from=drawn_from, sections=SECTIONS), __doc__)
