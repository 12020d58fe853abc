"""The rows of the table: their comparisons and targets."""

import re
import shutil
import statistics
import subprocess
import time
from dataclasses import replace

from bench import (
    L2,
    LIMIT,
    MAX_RATE,
    OS_KEN,
    OVS,
    PING_PONG,
    START_TIMEOUT_S,
    MeasureError,
    Side,
    last_line,
    progress,
    shown,
)
from command import Group
from document import Line, at_least, at_most, figure_line, ratio_line


BASE = Side("l2", L2)


def rate_and_cpu_over_limit(bench):
    ours, limit = bench.take_turns("1+2", BASE, replace(BASE, name="limit", server=LIMIT))
    what = "packet-ins answered at max rate, 16 switches × 100,000 MACs, OpenFlow 1.0, over `limit`"
    return [
        ratio_line("1", what, at_least(0.75), "rate", "/s", ours, limit),
        ratio_line("2", "the same, CPU time per packet-in", at_most(2), "server_cpu_ns", "ns", ours, limit),
    ]


def rate_over_rivals(bench):
    if not bench.settings.rivals:
        return []
    rivals = [(OVS, 60), (OS_KEN, 1000)]
    # With a million outstanding packet-ins, os-ken would need a minute after the tests to handle the rest.
    base = replace(BASE, mode=(*MAX_RATE, "--outstanding", "65536"))
    sides = [replace(base, name=server.name, server=server) for server, _ in rivals]
    ours, *theirs = bench.take_turns("3", base, *sides)
    what = "the rate of row 1 with at most 65,536 outstanding in all, over {}'s"
    return [
        ratio_line("3", what.format(server.name), at_least(times), "rate", "/s", ours, its)
        for (server, times), its in zip(rivals, theirs)
    ]


def bytes_of_13_over_10(bench):
    ours, v10 = bench.take_turns("4", replace(BASE, name="l2, 1.3", openflow="1.3"), replace(BASE, name="l2, 1.0"))
    what = "OpenFlow 1.3 over 1.0, bytes received and sent by the controller"
    return [ratio_line("4", what, at_least(0.6), "bytes_per_s", "bytes/s", ours, v10)]


def instructions(bench):
    lines = [callgrind(bench)]
    try:
        lines.append(perf(bench))
    except MeasureError as error:
        lines[0].remarks.append(f"no second opinion: {error}")
    return lines


def callgrind(bench):
    output = bench.folder / "callgrind.out"
    wrapper = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}")
    # Few MACs, since the table must be full before the shorter run ends, at a fiftieth of the speed. A quick run also
    # works with an unoptimised program, so it must not start with a long queue.
    mode = ("--window", "64") if bench.settings.quick else MAX_RATE
    side = replace(BASE, mode=mode, macs=("-M", "1000"))
    what = "user-space instructions per packet-in answered, callgrind, 1,000 MACs"
    return slope(bench, side, what, at_most(200), wrapper, lambda: total_of_callgrind(output))


def perf(bench):
    if not shutil.which("perf"):
        raise MeasureError("perf is not installed")
    output = bench.folder / "perf.csv"
    wrapper = ("perf", "stat", "-x,", "-e", "instructions:u", "-o", str(output))
    what = "the same by the processor's counter (perf stat), 100,000 MACs"
    return slope(bench, BASE, what, None, wrapper, lambda: total_of_perf(output))


def slope(bench, side, what, target, wrapper, total):
    """Returns the instructions per message between a short run and one three times as long, so that start-up, handshakes and
    the growth of the table, which both have, cancel."""
    values, commands = [], []
    for number in range(1, bench.settings.rounds + 1):
        (short, few, commands), (long, many, _) = (
            counted_run(bench, side, wrapper, total, ms) for ms in (bench.settings.ms, 3 * bench.settings.ms)
        )
        if many <= few:
            raise MeasureError(f"the longer run under {wrapper[0]} got no further than the shorter; give more --ms")
        values.append((long - short) / (many - few))
        progress(f"row 5, round {number}, {wrapper[0]}: {values[-1]:.1f} from {few} and {many} packet-ins")
    return Line("5", what, "instructions", values, target, commands=commands)


def counted_run(bench, side, wrapper, total, ms):
    """Returns instructions, messages received, and the commands."""
    with bench.server(side.server, wrapper) as server:
        load = bench.load_command(server, (*side.load_flags(), "-l", "2", "-w", "1", "-m", str(max(1, ms // 2))))
        bench.load(load)
    received = server.counters().get("received")
    if received is None:
        said = last_line(server.log.read_text(errors="replace"))
        raise MeasureError(f"the controller under {wrapper[0]} did not stop in order: {said}")
    return total(), received, [server.shown, shown(load)]


def total_of_callgrind(file):
    found = re.search(r"^totals: (\d+)", file.read_text(), re.MULTILINE)
    if not found:
        raise MeasureError("callgrind wrote no total")
    return int(found[1])


def total_of_perf(file):
    found = re.search(r"^(\d+),,instructions", file.read_text(), re.MULTILINE)
    if not found:
        raise MeasureError("perf cannot count instructions here (a virtual machine, or perf_event_paranoid above 2)")
    return int(found[1])


def many_switches(bench):
    many = bench.settings.few(5000)
    # As many hosts in total as the 16 switches have, and, by cbench's flags, that many for each switch.
    equal_hosts = ("-M", str(max(1, 1_600_000 // many)))
    ours, each, sixteen = bench.take_turns(
        "6",
        replace(BASE, name="l2, many", switches=many, macs=equal_hosts),
        replace(BASE, name="l2, many, each with 100,000 MACs", switches=many),
        replace(BASE, name="l2, 16"),
    )
    equal_what = f"{many} switches over 16, 1,600,000 MACs in all on both sides"
    each_what = f"{many} switches over 16, 100,000 MACs for each switch, which is more than a run sends"
    return [
        ratio_line("6", equal_what, at_least(0.5), "rate", "/s", ours, sixteen),
        ratio_line("6", each_what, at_least(0.5), "rate", "/s", each, sixteen),
        memory_of_idle_switches(bench, many),
    ]


def memory_of_idle_switches(bench, many):
    values, commands = [], []
    for number in range(1, bench.settings.rounds + 1):
        value, commands = memory_per_switch(bench, many)
        values.append(value)
        progress(f"row 6, round {number}: {value:.2f} KiB resident for each of {many} idle switches")
    what = "resident memory per idle switch: after its handshake and its first packet-in, before the load"
    return Line("6", what, "KiB", values, at_most(32), commands=commands)


def memory_per_switch(bench, many):
    """Returns the memory and the commands. The load waits before its first test, so the switches are idle."""
    with bench.server(L2) as server:
        before = server.rss_bytes()
        flags = ("-s", str(many), "-D", "5000", "-l", "1", "-w", "0", "-m", "1")
        load = bench.load_command(server, flags)
        process = subprocess.Popen(bench.real(load), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for_switches(server, process, many)
            time.sleep(1)
            if process.poll() is not None:
                raise MeasureError(f"the load on {many} idle switches ended before their memory was read")
            return (server.rss_bytes() - before) / many / 1024, [server.shown, shown(load)]
        finally:
            process.terminate()
            process.wait()


def wait_for_switches(server, process, many):
    """Waits until all switches are connected, and the server has no more work for them."""
    deadline = time.monotonic() + START_TIMEOUT_S
    before = None
    while server.connections() < many or server.cpu_ticks() != before:
        if process.poll() is not None or time.monotonic() > deadline:
            raise MeasureError(f"only {server.connections()} of {many} switches connected, or they were served to the end")
        before = server.cpu_ticks()
        time.sleep(0.5)


def fairness(bench):
    counts = [16, *(bench.settings.few(count) for count in (64, 256, 1000, 2000))]
    counts = sorted(set(counts))
    # Long enough for a dozen turns of each switch: in a turn, up to 3,196 packet-ins are served, which is one read.
    sides = [replace(BASE, name=f"l2, {count}", switches=count, length=4) for count in counts]
    what = "Jain's index at max rate, {} switches, the worst run"
    return [
        figure_line("7", what.format(count), at_least(0.99), "jain", "", runs, min)
        for count, runs in zip(counts, bench.take_turns("7", *sides))
    ]


def latency_over_limit(bench):
    lines = []
    for switches in (1, 100):
        side = replace(BASE, mode=PING_PONG, switches=switches)
        ours, limit = bench.take_turns("8", side, replace(side, name="limit", server=LIMIT))
        what = f"ping-pong p50, {switches} switch{'es' if switches > 1 else ''}, over `limit`"
        lines.append(ratio_line("8", what, at_most(1.15), "p50_us", "us", ours, limit))
    return lines


def new_sources(bench):
    unique, million, base = bench.take_turns(
        "9",
        replace(BASE, name="l2, unique", macs=("--unique-macs",)),
        replace(BASE, name="l2, 1,000,000", macs=("-M", "1000000")),
        replace(BASE, name="l2, 100,000"),
    )
    target = at_least(0.6)
    return [
        ratio_line("9", "a new source in each packet-in, over 100,000 MACs", target, "rate", "/s", unique, base),
        ratio_line("9", "1,000,000 MACs of each switch in turn, over 100,000", target, "rate", "/s", million, base),
    ]


def load_generator(bench):
    checked, unchecked = bench.take_turns(
        "10",
        replace(BASE, name="checked", server=LIMIT),
        replace(BASE, name="unchecked", server=LIMIT, verify=False),
    )
    what = "the load generator: packet-ins that one core sends and whose answers it checks, against `limit`"
    cost = "the cost of checking: the load's CPU time per packet-in, over unchecked"
    return [
        figure_line("10", what, at_least(30e6), "rate", "/s", checked),
        figure_line("10", "the same, unchecked", None, "rate", "/s", unchecked),
        ratio_line("10", cost, None, "load_cpu_ns", "ns", checked, unchecked),
    ]


# Differences from cbench's load, whose addresses count up round-robin in one kind of frame.
ORDERS = {"addresses that look random, drawn evenly": "random", "addresses that look random, drawn by Zipf's law": "zipf"}
FRAMES = ("tcp", "udp", "arp", "ipv6", "vlan", "cbench,tcp,udp,arp,ipv6,vlan")


def workloads(bench):
    """`l2` under loads for which its tables and its writer of flow mods were not optimised."""
    lines = compared_workloads(bench, "1.0", {what: ("--addresses", how) for what, how in ORDERS.items()})
    frames = {f"frames: {kinds.replace(',', ', ')}": ("--frames", kinds) for kinds in FRAMES}
    return [*lines, *compared_workloads(bench, "1.0", frames), *compared_workloads(bench, "1.3", frames)]


def compared_workloads(bench, openflow, loads):
    cbench = replace(BASE, name=f"l2, {openflow}", openflow=openflow)
    sides = [replace(cbench, name=f"l2, {openflow}, {what}", macs=(*BASE.macs, *flags)) for what, flags in loads.items()]
    base, *others = bench.take_turns("11", cbench, *sides)
    lines = []
    for what, runs in zip(loads, others):
        told = f"`l2`, OpenFlow {openflow}, {what}; over cbench's load: {{}}"
        lines.append(ratio_line("11", told.format("CPU time per packet-in"), None, "server_cpu_ns", "ns", runs, base))
        lines.append(ratio_line("11", told.format("the rate"), None, "rate", "/s", runs, base))
    return lines


def windows_over_limit(bench):
    lines = []
    for what, mode, least in (("window 1,024", ("--window", "1024"), 0.75), ("max rate", MAX_RATE, 0.7)):
        side = replace(BASE, mode=mode)
        ours, limit = bench.take_turns("12", side, replace(side, name="limit", server=LIMIT))
        told = f"packet-ins answered, 16 switches, {what}, over `limit`"
        lines.append(ratio_line("12", told, at_least(least), "rate", "/s", ours, limit))
    return lines


# Outstanding packet-ins for each switch, from which the best window is chosen.
WINDOWS = {16: (256, 512, 1024, 2048, 4096), 256: (16, 32, 64, 128, 256)}


def overload(bench):
    """Switches that send as fast as possible, compared with the window at which the controller answers most."""
    lines = []
    for switches, windows in WINDOWS.items():
        count = bench.settings.few(switches) if switches > 16 else switches
        flood = replace(BASE, name=f"l2, {count}, max rate", switches=count)
        sides = [
            replace(flood, name=f"l2, {count}, window {window}", mode=("--window", str(window))) for window in windows
        ]
        flooded, *windowed = bench.take_turns("13", flood, *sides)
        window, best = best_of(windows, windowed)
        told = f"{count} switches at max rate over the best window ({window:,} outstanding per switch): {{}}"
        lines.append(ratio_line("13", told.format("the rate"), at_least(0.9), "rate", "/s", flooded, best))
        lines.append(ratio_line("13", told.format("p99"), at_most(2), "p99_us", "us", flooded, best))
    return lines


def best_of(windows, sides):
    """Returns the window with the highest median rate, and its runs."""
    return max(zip(windows, sides), key=lambda found: statistics.median(run.rate for run in found[1]))


def two_shards(bench):
    """Load and controller share both cores, so that only the number of shards differs."""
    both = bench.on_both_cores()
    sides = [
        replace(BASE, name=f"l2, {shards} shard(s)", server=replace(L2, name="l2", command=with_shards(shards)))
        for shards in (2, 1)
    ]
    two, one = both.take_turns("14", *sides)
    what = "two shards over one, load and controller on both cores: CPU time per packet-in"
    return [ratio_line("14", what, at_most(1), "server_cpu_ns", "ns", two, one)]


def with_shards(count):
    command = list(L2.command)
    command[command.index("--shards") + 1] = str(count)
    return tuple(command)


GROUPS = (
    Group(("1", "2"), rate_and_cpu_over_limit),
    Group(("3",), rate_over_rivals, rivals_need=("ovs-testcontroller", "os-ken")),
    Group(("4",), bytes_of_13_over_10),
    Group(("5",), instructions, ("valgrind",)),
    Group(("6",), many_switches),
    Group(("7",), fairness),
    Group(("8",), latency_over_limit),
    Group(("9",), new_sources),
    Group(("10",), load_generator),
    Group(("11",), workloads),
    Group(("12",), windows_over_limit),
    Group(("13",), overload),
    Group(("14",), two_shards),
)
