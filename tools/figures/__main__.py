"""Measures the figures that Urtica sets out to reach, and writes docs/figures.md and docs/figures.json.

The compared sides are interleaved, in random order in each round, so that other activity on the machine affects all
of them equally; a ratio is the median of the rounds' ratios. The program under test has one core, the load another. Needs Linux, two cores, and what
tools/setup installs; run it on a quiet machine, because a disturbed run is repeated only a few times.

    python3 tools/figures                      all rows
    python3 tools/figures --rows 1,2           some of them; printed, and written only with --out
    python3 tools/figures --quick --rows 1,5   tiny runs that show that the tool works, and nothing else
"""

from command import Figures, run
from rows import GROUPS

EXPLANATION = """\
Measured by `make figures` on {date}, at {commit}; do not edit. Each figure is from {rounds} round(s) in which the sides
are interleaved in random order, each for {ms} ms (row 7 for four times that) after a warm-up of a third. A ratio is ours
over the other's within a round; the figure is the median of the rounds, with an interval that has it with 95 % confidence
(bootstrap). Where the interval has the target in it, nothing is decided: *inconclusive*. Servers have core {server_core}, the load core {load_core}, and every
reply is checked unless a line says otherwise; a line whose answers were wrong or lost is not reached, whatever its
figure. A run is disturbed when load or server waited for a core, or the hypervisor took away, a tenth of the time; it
is repeated up to {repeats} times ({all_repeats} in all), and the least disturbed one counts; but one that failed, or whose answers
were wrong, counts and is not repeated.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- load average {load_average}
- in the runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}

Instructions are those between a run and a three times longer one, divided by the messages between them, so that
start-up and the growth of the tables cancel. Bytes moved are the controller's own count per message received, times the
rate that the load saw. The sockets' memory in the kernel is not resident memory of the process.

Not measured: two shards on two cores, for the load needs a core of its own.
"""

if __name__ == "__main__":
    run(Figures("figures", "Figures", EXPLANATION, GROUPS), __doc__)
