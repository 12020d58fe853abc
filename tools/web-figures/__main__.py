"""Measures the page of the northbound interface, and writes docs/web-figures.md and .json.

The time until the first picture and a cut link are shown, pictures a second of a large network, the memory of a tab over an hour, the
controller's cost of an open page and of suspended tabs, and the findings of axe. Needs Linux, two cores, Chromium, Node, and what tools/setup
installs. Run it on a quiet machine.

    python3 tools/web-figures                    all rows, an hour and a half
    python3 tools/web-figures --rows 1,2         some of them; printed, and written only with --out
    python3 tools/web-figures --quick --rows 1   a tiny run that shows that the tool works, and nothing else
"""

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent
# Shares controllers, targets and lines of a table with the controller's figures, and processes with the interface's.
sys.path += [str(TOOLS / "figures"), str(TOOLS / "northbound-figures")]

import page_rows
from command import Figures, run

EXPLANATION = """\
Measured by `make web-figures` on {date}, at {commit}; do not edit. The page is [web.md](web.md)'s, in headless Chromium, which draws without
a graphics card. Each figure is the median of {rounds} round(s), with the interval that has it with 95 % confidence (bootstrap). In row 4
the controller has core {server_core}, and the load core {load_core}; what the page asks for is asked for by a small client on the load's core, as a browser would take
the load's time. In the other rows Chromium and the program share both cores.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- load average {load_average}
- in the controllers' runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}
"""

if __name__ == "__main__":
    run(Figures("web-figures", "The network in a browser: figures", EXPLANATION, page_rows.GROUPS, features=("web",)), __doc__)
