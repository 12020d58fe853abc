"""Measures control programs in Python, and writes docs/python-figures.md and .json.

Ryu's learning switch runs here and on os-ken, alternately and each reply checked; then the learning switch of the package `urtica`,
two applications, the decoding of many flow entries, and a network in pytest. Builds the wheels, and installs them into an
environment in target/python. Needs Linux, two cores, and what tools/setup installs. Run it on a quiet machine.

    python3 tools/python-figures                    all rows, six minutes
    python3 tools/python-figures --rows 1,6         some of them; printed, and written only with --out
    python3 tools/python-figures --quick --rows 6   a tiny run that shows that the tool works, and nothing else
"""

import sys
from pathlib import Path

# Shares controllers, targets and lines of a table with the controller's figures.
sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

import environment
import packet_in_rows
import program_rows
from command import Figures, run

EXPLANATION = """\
Measured by `make python-figures` on {date}, at {commit}; do not edit. Each figure is the median of {rounds} round(s), with
the interval that has it with 95 % confidence (bootstrap); a ratio is taken within each round. What is compared is interleaved in
an order that is drawn. Programs have core {server_core}, the load core {load_core}; each of the load's runs (rows 1 to 5) takes
{ms} ms after a warm-up of a third, is repeated up to {repeats} times ({all_repeats} in all) where the machine disturbed it for a
tenth of the time, and a line whose answers were wrong or lost is not reached.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- Python {python} on both sides; os-ken {os_ken}
- load average {load_average}
- in the load's runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}

The load is [`urtica bench`](bench.md) with OpenFlow 1.3 and 100,000 hosts for each switch. `simple_switch_13` is one file on both
sides; os-ken runs it under Ryu's names, with each of its two hubs, and the faster one counts. The programs are described in
[ryu.md](ryu.md) and [python.md](python.md).
"""

if __name__ == "__main__":
    groups = (*packet_in_rows.GROUPS, *program_rows.GROUPS)
    title = "Control programs in Python: figures"
    run(Figures("python-figures", title, EXPLANATION, groups, prepare=environment.prepared), __doc__)
