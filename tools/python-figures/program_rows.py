"""The rows about programs that end: one that decodes flow entries, compared with os-ken, and pytest."""

import subprocess
import time

from bench import ROOT, MeasureError, last_line, progress, shown
from command import Group
from document import Line, at_least, at_most
from environment import PYTHON

FLOW_STATS = "tools/python-figures/flow_stats.py"
ALL_PAIRS = "tools/python-figures/all_pairs.py"
TIMEOUT_S = 120


def flow_stats(bench):
    count = 1_000 if bench.settings.quick else 10_000
    sides = {"ryu": PYTHON} | ({"os_ken": "python"} if bench.settings.rivals else {})
    commands = {names: (python, FLOW_STATS, names, str(count)) for names, python in sides.items()}
    found, commands = in_turns(bench, "6", commands, decoding)
    what = f"a flow_stats reply of {count:,} entries, decoded and all fields read"
    return [compared(Line("6", what, "ms", [took for took, _ in found["ryu"]], commands=commands), found)]


def decoding(bench, command):
    """Returns the milliseconds that a program took, and the sum of the fields that it read."""
    took, total = output_of(bench, command).split()
    return float(took), int(total)


def compared(line, found):
    """Returns the line, with os-ken's time over ours if os-ken was measured."""
    if "os_ken" in found:
        line.what, line.target = f"{line.what}, os-ken's time over ours", at_least(10)
        line.against = [took for took, _ in found["os_ken"]]
        line.ratios = [its / mine for mine, its in zip(line.ours, line.against)]
    if len({total for runs in found.values() for _, total in runs}) > 1:
        line.faulty = True
        line.remarks.append("the sums of the fields differ")
    return line


# The tests of ALL_PAIRS, each with its program and the target.
TESTS = {
    "test_learning": ("the learning switch of the package `urtica` on a tree of 7 switches, all pairs pinged", at_most(0.3)),
    "test_simple_switch_13": ("`simple_switch_13` on a tree of 7 switches, all pairs pinged", at_most(0.3)),
    "test_nothing": ("an empty test", None),
}


def pings_in_pytest(bench):
    commands = {test: (PYTHON, "-m", "pytest", "-q", f"{ALL_PAIRS}::{test}") for test in TESTS}
    found, commands = in_turns(bench, "7", commands, duration_s)
    return [
        Line("7", f"pytest from start to end: {what}", "s", found[test], target, commands=[command])
        for (test, (what, target)), command in zip(TESTS.items(), commands)
    ]


def duration_s(bench, command):
    begin = time.monotonic()
    output_of(bench, command)
    return time.monotonic() - begin


def in_turns(bench, row, commands, measure):
    """Returns the results of `measure` for each command on the server's core, by the commands' names and in the order of the
    rounds; and the commands as a user would type them. The order within a round is random."""
    commands = {name: bench.pinned(bench.settings.server_core, command) for name, command in commands.items()}
    found = {name: [] for name in commands}
    for number in range(1, bench.settings.rounds + 1):
        for name in bench.random.sample(list(commands), len(commands)):
            found[name].append(measure(bench, commands[name]))
            progress(f"row {row}, round {number} of {bench.settings.rounds}, {name}: {found[name][-1]}")
    return found, [shown(command) for command in commands.values()]


def output_of(bench, command):
    done = subprocess.run(bench.real(command), cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise MeasureError(f"'{shown(command)}' failed: {last_line(done.stderr or done.stdout)}")
    return done.stdout


GROUPS = (
    Group(("6",), flow_stats, rivals_need=("os-ken",)),
    Group(("7",), pings_in_pytest),
)
