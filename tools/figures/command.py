"""The common parts of the measuring commands: options, requirements, rows that may fail, and the output."""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import ROOT, Bench, MeasureError, Settings, os_ken_python, progress
from document import document, machine_facts, raw


@dataclass(frozen=True)
class Group:
    """Rows that are measured together, and their requirements."""

    rows: tuple
    measure: callable
    needs: tuple = ()
    # Additional requirements for the comparison with other programs.
    rivals_need: tuple = ()


@dataclass(frozen=True)
class Figures:
    """A set of figures: its name, its make target and files, its explanation, and its plots."""

    name: str
    title: str
    explanation: str
    groups: tuple
    # The default duration of each run.
    ms: int = 1500
    # The minimum warm-up of each run.
    warm_up_ms: int = 0
    # Features of the build beyond the default ones.
    features: tuple = ()
    # Prepares the further requirements of the rows. Returns facts for the explanation.
    prepare: callable = dict
    # Returns pictures by name from the lines of the table, with the section of the document for each.
    drawn_from: callable = lambda lines: {}
    sections: dict = field(default_factory=dict)


def run(figures, description):
    """Measures as the options request, and reports the results. Servers are stopped at the end, even after a signal."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(1 if measured_and_told(figures, description) else 0)
    except KeyboardInterrupt:
        sys.exit(f"{figures.name}: interrupted; nothing was written")


def measured_and_told(figures, description):
    """Measures, reports, and returns the rows that could not be measured."""
    args = arguments(figures, description)
    groups = [group for group in figures.groups if set(group.rows) & set(args.rows)]
    refuse_what_is_missing(groups, args.rivals)
    settings = settings_of(args, figures)
    machine = machine_facts() | figures.prepare()
    with tempfile.TemporaryDirectory(prefix="urtica-figures-") as folder:
        bench = Bench(settings, Path(folder))
        lines, failures = measure(bench, groups, args.rows)
    pictures = figures.drawn_from(lines)
    rest = "\n".join(figures.sections[name] for name in pictures)
    text = document(figures.title, figures.explanation, lines, failures, machine, settings, bench.runs, rest)
    print(text if args.out is None else text[: text.index("## The commands")])
    # A picture requested by name is drawn wherever the text goes; tiny runs are not worth one.
    if picture_folder := args.out or (None if settings.quick else ROOT / "docs"):
        for name, svg in pictures.items():
            write(picture_folder / f"{figures.name}-{name}.svg", svg)
    if args.out:
        write(args.out / f"{figures.name}.md", text)
        write(args.out / f"{figures.name}.json", raw(lines, failures, machine, settings, bench.runs))
    return failures


def write(file, text):
    file.write_text(text)
    progress(f"wrote {file}")


def settings_of(args, figures):
    """Returns the settings from the options. Exits with a message if the machine lacks a requirement."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("figures: needs two cores, one for the program under test, one for the load; this process may use one")
    allow_open_files()
    return Settings(
        program=args.program or build(figures.features),
        rounds=args.rounds,
        ms=args.ms,
        quick=args.quick,
        rivals=args.rivals,
        server_core=cores[0],
        load_core=cores[1],
        seed=time.time_ns(),
        warm_up_ms=figures.warm_up_ms,
    )


def measure(bench, groups, rows):
    """Returns the lines, and the reasons for rows without lines. A failing row does not affect the others."""
    lines, failures = [], {}
    for group in groups:
        try:
            lines += [line for line in group.measure(bench) if line.row in rows]
        except (MeasureError, subprocess.TimeoutExpired, OSError) as error:
            progress(f"row {' and '.join(group.rows)} failed: {error}")
            failures |= {row: str(error) for row in group.rows if row in rows}
    return lines, failures


def arguments(figures, description):
    """Parses the options. All rows go into the documents; a selection is only printed, unless --out is given."""
    rows = rows_in(figures.groups)
    parser = argparse.ArgumentParser(
        prog=f"python3 tools/{figures.name}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=rows_of(rows), default=rows, metavar="N,…", help=f"of {', '.join(rows)} (all)")
    parser.add_argument("--rounds", type=positive, metavar="N", help="number of runs of each side (5)")
    parser.add_argument("--ms", type=positive, metavar="MS", help=f"measured time of each run, in ms ({figures.ms})")
    parser.add_argument("--quick", action="store_true", help="one tiny round of few switches; proves nothing")
    without = "leave out what is measured of other programs: os-ken, ovs-testcontroller"
    parser.add_argument("--without-rivals", dest="rivals", action="store_false", help=without)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="output folder (docs, if all rows are measured)")
    parser.add_argument("--program", type=Path, metavar="FILE", help="measure this urtica, instead of building one")
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.ms = args.ms or (900 if args.quick else figures.ms)
    if args.out is None and not args.quick and args.rivals and set(args.rows) == set(rows):
        args.out = ROOT / "docs"
    if args.out and not args.out.is_dir():
        parser.error(f"--out: there is no folder {args.out}")
    if args.program and not args.program.is_file():
        parser.error(f"--program: there is no file {args.program}")
    args.program = args.program and args.program.resolve()
    return args


def rows_in(groups):
    return tuple(row for group in groups for row in group.rows)


def rows_of(known):
    def parse(text):
        rows = text.split(",")
        for row in rows:
            if row not in known:
                raise argparse.ArgumentTypeError(f"there is no row '{row}'; expected some of {', '.join(known)}")
        return rows

    return parse


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 1 on")
    return int(text)


def refuse_what_is_missing(groups, rivals):
    needed = ["taskset"]
    for group in groups:
        needed += [*group.needs, *(group.rivals_need if rivals else ())]
    missing = [need for need in needed if not is_installed(need)]
    if missing:
        sys.exit(f"figures: needs {', '.join(missing)}; run tools/setup, or choose other rows with --rows")


def is_installed(need):
    if need == "os-ken":
        try:
            return subprocess.run([os_ken_python(), "-c", "import os_ken"], capture_output=True).returncode == 0
        except OSError:
            return False
    return shutil.which(need) is not None


def allow_open_files():
    """Allows thousands of connections in each process started here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def build(features):
    """Builds the program from the current sources, optimised."""
    options = [word for feature in features for word in ("--features", feature)]
    if subprocess.run(["cargo", "build", "--release", "--locked", *options], cwd=ROOT).returncode != 0:
        sys.exit("figures: cargo could not build urtica")
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return (ROOT / target / "release/urtica").resolve()
