"""Compares the switch with Open vSwitch, and writes docs/switch-figures.md, .json and three plots.

Open vSwitch with DPDK is measured by ovs-bench, an outside tool that replays the same packets through the same flow
entries; OVS_BENCH is its folder. Both are interleaved, point by point and round after round, on one core. Needs Linux on
x86-64, root, two cores and 8 GiB of memory; run it on a quiet machine. Every run is stored at once, so that an
interrupted sitting can be resumed, single rows can be measured again, and the documents be written without measuring.

    OVS_BENCH=DIR python3 tools/switch-figures               a whole sitting, an hour and a half
    OVS_BENCH=DIR python3 tools/switch-figures --continue    the missing runs of the stored sitting
    OVS_BENCH=DIR python3 tools/switch-figures --rows 3,7    these rows of the stored sitting again
    python3 tools/switch-figures --document                  only the documents, from the stored runs
    OVS_BENCH=DIR python3 tools/switch-figures --large       a whole sitting with rule sets of 100,000 rules, two hours
    OVS_BENCH=DIR python3 tools/switch-figures --quick       a small sitting that shows that the tool works
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

# Shares targets, lines of a table and facts about the machine with the controller's figures.
sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

from bench import ROOT
from points import Settings, Tools
from report import write_documents
from rows import NUMBERS, lines_of, points_of
from sitting import Sitting, SittingError


def main():
    args = arguments()
    if not args.document:
        refuse_what_is_missing(args)
    sitting = kept_or_new(args)
    if not args.document:
        tools = Tools(args.program or build(), args.ovs_bench)
        sitting.measure(points_of(sitting.settings, args.rows or NUMBERS), tools)
    lines, failures = lines_of(sitting)
    write_documents(args.out, lines, failures, sitting)
    sys.exit(1 if failures else 0)


def arguments():
    parser = argparse.ArgumentParser(
        prog="python3 tools/switch-figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--continue", dest="go_on", action="store_true", help="measure the missing runs of the stored sitting")
    what.add_argument("--rows", type=rows_of, metavar="N,…", help=f"of {', '.join(NUMBERS)}: measure these again")
    what.add_argument("--document", action="store_true", help="measure nothing; write the documents")
    what.add_argument("--anew", action="store_true", help="start a sitting even if the stored one is unfinished")
    parser.add_argument("--quick", action="store_true", help="one round of two pipelines; proves nothing")
    parser.add_argument("--large", action="store_true", help="measure rule sets of 100,000 rules, too")
    parser.add_argument("--rounds", type=positive, metavar="N", help="number of runs of each side (5)")
    parser.add_argument("--core", type=int, default=1, help="the measured core (1)")
    parser.add_argument("--ovs-bench", type=Path, metavar="DIR", default=os.environ.get("OVS_BENCH") or None)
    parser.add_argument("--program", type=Path, metavar="FILE", help="measure this urtica, instead of building one")
    parser.add_argument("--sitting", type=Path, metavar="FILE", help="file for the runs (in target)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="output folder (docs; with --quick, target)")
    args = parser.parse_args()
    target = ROOT / "target"
    target.mkdir(exist_ok=True)
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.out = args.out or (target if args.quick else ROOT / "docs")
    args.sitting = args.sitting or target / f"switch-figures{'-quick' if args.quick else ''}.jsonl"
    if not args.out.is_dir():
        parser.error(f"--out: there is no folder {args.out}")
    if args.program and not args.program.is_file():
        parser.error(f"--program: there is no file {args.program}")
    args.program = args.program and args.program.resolve()
    args.ovs_bench = args.ovs_bench and args.ovs_bench.resolve()
    return args


def rows_of(text):
    numbers = text.split(",")
    for number in numbers:
        if number not in NUMBERS:
            raise argparse.ArgumentTypeError(f"there is no row '{number}'; expected some of {', '.join(NUMBERS)}")
    return numbers


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 1 on")
    return int(text)


def kept_or_new(args):
    """Returns the sitting to continue. An unfinished one is only discarded on request."""
    kept = Sitting.read(args.sitting) if args.sitting.exists() else None
    if kept is None and (args.go_on or args.document):
        sys.exit(f"switch-figures: there is no sitting in {args.sitting}; start one, without --continue and --document")
    if kept and (args.go_on or args.document):
        return kept
    if kept and args.rows:
        kept.forget(points_of(kept.settings, args.rows))
        return kept
    missing = kept.missing(points_of(kept.settings, NUMBERS)) if kept and not args.quick else []
    if missing and not args.anew:
        sys.exit(
            f"switch-figures: the sitting in {args.sitting} lacks {len(missing)} runs; go on with it with --continue, "
            "or begin another one with --anew"
        )
    return Sitting.begin(args.sitting, Settings(rounds=args.rounds, quick=args.quick, core=args.core, large=args.large))


def refuse_what_is_missing(args):
    available = sorted(os.sched_getaffinity(0))
    if args.core not in available or len(available) < 2:
        sys.exit(f"switch-figures: needs core {args.core} and one more; this process may use {available}")
    if os.geteuid() != 0:
        sys.exit("switch-figures: needs root, because Open vSwitch runs in its own network namespace")
    if complaint := complaint_about(args.ovs_bench):
        sys.exit(f"switch-figures: {complaint}")


def complaint_about(ovs_bench):
    """Returns the problem with ovs-bench's folder, if any."""
    if ovs_bench is None:
        return (
            "needs ovs-bench, which measures Open vSwitch and is no part of this project; say where it is, as in "
            "'make switch-figures OVS_BENCH=DIR'"
        )
    if not all((ovs_bench / program).is_file() for program in ("run", "limit")):
        return f"OVS_BENCH: {ovs_bench} has no programs 'run' and 'limit'; expected the folder of ovs-bench"
    cache = os.environ.get("OVS_BENCH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ovs-bench"
    if not (Path(cache).expanduser() / "librte_net_flowgen.so").exists():
        return f"ovs-bench is not set up; run {ovs_bench}/setup once, as root"
    return None


def build():
    """Builds the program from the current sources, optimised."""
    if subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT).returncode != 0:
        sys.exit("switch-figures: cargo could not build urtica")
    return (ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/urtica").resolve()


if __name__ == "__main__":
    # Stop all started programs at the end, even after a signal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except SittingError as error:
        sys.exit(f"switch-figures: {error}")
    except KeyboardInterrupt:
        sys.exit("switch-figures: interrupted; the runs so far are stored, and --continue resumes")
