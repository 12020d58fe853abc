"""Measures programs on a network, and writes docs/network-figures.md, .json and two plots.

Controllers are measured as by `make figures`, in turn and each reply checked; what happens within one process by
`urtica bench network`; topology discovery on a tree of Open vSwitches that Mininet makes. Needs Linux, two cores, and
what tools/setup installs; the rows with Mininet need root. Run it on a quiet machine.

    python3 tools/network-figures                   all rows, a quarter of an hour
    python3 tools/network-figures --rows 3,7        some of them; printed, and written only with --out
    python3 tools/network-figures --rows figure-16  McNettle's Figure 16 (fairness) redrawn; figure-20 likewise
    python3 tools/network-figures --quick --rows 3  a tiny run that shows that the tool works, and nothing else
"""

import signal
import sys
import tempfile
from pathlib import Path

# Controllers, targets, lines of a table and the way to draw are those of the controller's figures.
sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

import plots
from bench import ROOT, Bench, progress
from command import arguments, measure, refuse_what_is_missing, settings_of
from document import document, machine_facts, raw
from rows import GROUPS

NAME = "network-figures"

EXPLANATION = """\
Measured by `make network-figures` on {date}, at {commit}; do not edit. Each figure is the median of {rounds} round(s), and
what is compared takes turns. Controllers have core {server_core}, the load core {load_core}, unless a row says otherwise; each
of their runs takes {ms} ms after a warm-up of a third, is repeated up to {repeats} times ({all_repeats} in all) where the
machine disturbed it for a tenth of the time, and a line whose answers were wrong or lost is not reached.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- load average {load_average}
- in the controllers' runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}
"""


def main():
    args = arguments(NAME, __doc__, GROUPS)
    groups = [group for group in GROUPS if set(group.rows) & set(args.rows)]
    refuse_what_is_missing(groups)
    settings = settings_of(args)
    machine = machine_facts()
    with tempfile.TemporaryDirectory(prefix="urtica-figures-") as folder:
        bench = Bench(settings, Path(folder))
        lines, failures = measure(bench, groups, args.rows)
    drawn = plots.drawn_from(lines)
    rest = "\n".join(plots.SECTIONS[name] for name in drawn)
    text = document("Programs on a network: figures", EXPLANATION, lines, failures, machine, settings, bench.runs, rest)
    print(text if args.out is None else text[: text.index("## The commands")])
    # A plot that was asked for by name is drawn wherever the text goes; tiny runs are worth no picture.
    plot_folder = args.out or (None if settings.quick else ROOT / "docs")
    if plot_folder:
        for name, svg in drawn.items():
            (plot_folder / f"{NAME}-{name}.svg").write_text(svg)
            progress(f"drew {NAME}-{name}.svg in {plot_folder}")
    if args.out:
        (args.out / f"{NAME}.md").write_text(text)
        (args.out / f"{NAME}.json").write_text(raw(lines, failures, machine, settings, bench.runs))
        progress(f"wrote {NAME}.md and {NAME}.json to {args.out}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    # Servers are stopped on the way out, whoever ends this.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("network-figures: interrupted; nothing was written")
