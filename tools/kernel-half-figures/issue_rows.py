"""The comparisons of each mode with plain epoll, and the targets."""

import contextlib
import os

import silent_switch
import survival
from bench import MAX_RATE, PING_PONG, MeasureError
from command import Group
from document import Line, at_least, at_most, commands_of, ratio_line, remarks_on
from modes import WINDOW_32, l2, side
from rooms import process, steered_veth

# From one switch with one packet-in outstanding to a flood: the number of switches, and the mode of each.
LOADS = {
    "1 switch, ping-pong": (1, PING_PONG),
    "16 switches, ping-pong": (16, PING_PONG),
    "64 switches, ping-pong": (64, PING_PONG),
    "16 switches, 4 outstanding each": (16, ("--window", "4")),
    "16 switches, 8 outstanding each": (16, ("--window", "8")),
    "16 switches, 32 outstanding each": (16, WINDOW_32),
    "16 switches, 128 outstanding each": (16, ("--window", "128")),
    "16 switches, flood": (16, MAX_RATE),
}

LOOPBACK = "loopback"
VETH = "veth with receive steering"


@contextlib.contextmanager
def veth(bench):
    """Puts servers and loads at the two ends of a veth pair during the block."""
    if os.geteuid() != 0:
        raise MeasureError("it needs root, to create network namespaces")
    with steered_veth(bench.settings.server_core, bench.settings.load_core) as place, bench.at(place):
        yield


# ---- auto ----


def auto_over_loopback(bench):
    return auto_over_none(bench, "1", LOOPBACK)


def auto_over_veth(bench):
    with veth(bench):
        return auto_over_none(bench, "2", VETH)


def auto_over_none(bench, row, where):
    lines = []
    for told, (switches, load) in LOADS.items():
        auto, none = bench.take_turns(row, side("auto", load, switches), side("none", load, switches))
        what = f"`auto` over `none`, {where}, {told}: packet-ins answered"
        lines.append(ratio_line(row, what, at_least(0.95), "rate", "/s", auto, none))
    return lines


# ---- 32 outstanding ----


def window_32(bench):
    """The rate, the machine's work for each answer, and its shares, from the same runs."""
    modes = ("none", "kernel", "ring", "auto")
    with veth(bench), bench.counting_cycles() as has_cycles:
        none, kernel, ring, auto = runs = bench.take_turns("3", *(side(mode, WINDOW_32, 16) for mode in modes))
    with bench.counting_cycles():
        both = bench.take_turns("3", *(side(mode, WINDOW_32, 16) for mode in ("kernel", "none")))
    told = "16 switches, 32 outstanding each, {}: {} over `none`, packet-ins answered".format
    lines = [
        ratio_line("3", told(VETH, "`kernel`"), at_least(2.5), "rate", "/s", kernel, none),
        ratio_line("3", told(VETH, "`ring`"), at_least(1.4), "rate", "/s", ring, none),
        ratio_line("3", told(VETH, "`auto`"), at_least(0.95), "rate", "/s", auto, none),
        ratio_line("3", told(LOOPBACK, "`kernel`"), None, "rate", "/s", *both),
    ]
    costs = [cost_line(has_cycles, VETH, kernel, none), cost_line(has_cycles, LOOPBACK, *both)]
    return [*lines, *costs, *(line for mode, found in zip(modes, runs) for line in shares(mode, found))]


# The measures of both sides' work: the name in the table, the metric of a run, the unit.
CYCLES = ("cycles", "machine_cycles_per_answer", "cycles")
CPU_TIME = ("CPU time", "machine_cpu_ns_per_answer", "ns")


def cost_line(has_cycles, where, kernel, none):
    counted, metric, unit = CYCLES if has_cycles else CPU_TIME
    what = f"16 switches, 32 outstanding each, {where}: the machine's {counted}, both sides, per answer, `kernel` over `none`"
    line = ratio_line("8", what, at_most(0.8), metric, unit, kernel, none)
    if not has_cycles:
        line.remarks.append("this machine counts no cycles: CPU time, by the clock's ticks, in their place")
    return line


def shares(mode, runs):
    """Returns lines with the share of a core that the controller's process uses, and the kernel's share outside of both
    processes."""
    measured = [run for run in runs if not run.has_failed]
    values = {
        "of the controller's process": [run.report["controller"]["cores"] for run in measured],
        "of the kernel outside of both processes": [cores_of_kernel(run) for run in measured],
    }
    return [
        Line(
            "cpu",
            f"16 switches, 32 outstanding each, {VETH}, `{mode}`: CPU share {whose}",
            "cores",
            cores,
            remarks=remarks_on(runs),
            commands=commands_of(runs),
        )
        for whose, cores in values.items()
    ]


def cores_of_kernel(run):
    load = sum(thread["ran"] for thread in run.report["load"]["threads"])
    all_of_it = run.machine_cpu_ns_per_answer * run.rate / 1e9
    return max(0, all_of_it - load - run.report["controller"]["cores"])


# ---- Single rows ----


def ping_pong_latency(bench):
    kernel, auto, none = bench.take_turns("4", *(side(mode, PING_PONG, 1) for mode in ("kernel", "auto", "none")))
    what = "1 switch, ping-pong, loopback: p50, {} over `none`"
    return [
        ratio_line("4", what.format("`kernel`"), at_most(1 / 3), "p50_us", "us", kernel, none),
        ratio_line("4", what.format("`auto`"), None, "p50_us", "us", auto, none),
    ]


def starved(bench):
    """Two programs that only count share the controller's core."""
    lines = []
    for where, room in ((VETH, veth), (LOOPBACK, lambda bench: contextlib.nullcontext())):
        with room(bench), hogs(bench):
            modes = ("kernel", "auto", "none")
            runner = bench.without_repeats()
            kernel, auto, none = runner.take_turns("5", *(side(mode, PING_PONG, 16) for mode in modes))
        what = f"starved by two hogs on its core, 16 switches, ping-pong, {where}: {{}}, {{}} over `none`".format
        lines += [
            ratio_line("5", what("rate", "`kernel`"), at_least(2), "rate", "/s", kernel, none),
            ratio_line("5", what("p99", "`kernel`"), at_most(0.5), "p99_us", "us", kernel, none),
            ratio_line("5", what("rate", "`auto`"), None, "rate", "/s", auto, none),
            ratio_line("5", what("p99", "`auto`"), None, "p99_us", "us", auto, none),
        ]
    return lines


# They end after this time, however this tool ends.
HOG_S = 300


@contextlib.contextmanager
def hogs(bench):
    hog = ("taskset", "-c", bench.settings.server_core, "timeout", HOG_S, "sh", "-c", "while :; do :; done")
    with process(bench.folder / "hog-1.log", *hog), process(bench.folder / "hog-2.log", *hog):
        yield


def silent(bench):
    lines = []
    for mode in ("none", "kernel", "auto", "ring"):
        lines += silent_switch.lines(bench, "7", mode, l2(mode), at_most(16))
    return lines


GROUPS = (
    Group(("1",), auto_over_loopback),
    Group(("2",), auto_over_veth, ("ip",)),
    Group(("3", "8", "cpu"), window_32, ("ip",)),
    Group(("4",), ping_pong_latency),
    Group(("5",), starved, ("ip", "timeout")),
    Group(("6",), survival.lines),
    Group(("7",), silent, ("ss",)),
)
