"""The rows of the table: their comparisons and targets."""

from dataclasses import replace

import mininet
from bench import L2, PING_PONG, MeasureError, Server, Side, progress
from document import Line, at_least, at_most, figure_line, ratio_line
from command import Group
from in_process import figures as in_process_figures

# Few hosts, which are all seen repeatedly: shared state is read, and hardly ever written. The datapath id is part of the
# addresses, so a host is at one switch only.
READ_MOSTLY = ("-M", "1000")

# A new source in each packet-in: a new key, and a growing table.
NEW_SOURCES = ("--unique-macs",)

# A write for each packet-in, as in the paper's Figures 5 and 20, whose controllers insert each source, known or not.
WRITE_EACH = ("--global-write-each",)

FORMS = {"lock-free": "global", "mutex": "global-mutex", "STM": "global-stm"}
LOCAL = "local learning"


def learning(app, shards=1, options=()):
    name = " ".join((app, *options))
    fixed = ("--offload", "none", "--shards", str(shards), "--listen", "ptcp:{port}:{host}")
    return Server(name, ("urtica", "run", app, *fixed, *options))


BASE = Side(LOCAL, L2)


def global_learning(bench):
    """The maximum rate. On two cores load and controller share both, so only the ratio is meaningful."""
    ours, local = bench.take_turns("1", replace(BASE, name="lock-free", server=learning("global")), BASE)
    what = "global learning, lock-free, over local learning (`l2`), max rate, one core"
    lines = [ratio_line("1", what, at_least(0.9), "rate", "/s", ours, local)]
    both = bench.on_both_cores()
    sides = [replace(BASE, name=name, server=learning(app, 2)) for name, app in (("lock-free", "global"), (LOCAL, "l2"))]
    ours, local = both.take_turns("1", *sides)
    what = "the same with two shards, load and controller on both cores"
    return [*lines, ratio_line("1", what, at_least(0.9), "rate", "/s", ours, local)]


def shared_over_local(bench):
    """The cost of sharing hosts that are hardly ever written, and hosts that are written for each packet-in."""
    least_written = {"STM": 0.3, "mutex": 0.5, "lock-free": 0.8}
    read_mostly = over_local(bench, READ_MOSTLY, "read-mostly", {"STM": 0.6, "mutex": 0.6})
    overwritten = over_local(bench, READ_MOSTLY, "a known host overwritten for each packet-in", least_written, WRITE_EACH)
    new = over_local(bench, NEW_SOURCES, "a new source in each packet-in", {name: None for name in least_written})
    return [*read_mostly, *overwritten, *new]


def over_local(bench, macs, load, least, options=()):
    sides = [replace(BASE, name=name, server=learning(FORMS[name], options=options), macs=macs) for name in least]
    *shared, local = bench.take_turns("2", *sides, replace(BASE, macs=macs))
    what = f"global learning, {{}}, over local learning, {load}, max rate"
    return [
        ratio_line("2", what.format(name), at_least(times) if times else None, "rate", "/s", runs, local)
        for (name, times), runs in zip(least.items(), shared)
    ]


def latency_with_shared_work(bench):
    switches = bench.settings.few(2000)
    side = replace(BASE, mode=PING_PONG, switches=switches, macs=READ_MOSTLY)
    shared, local = bench.take_turns("10", replace(side, name="lock-free", server=learning("global")), side)
    stm, local_again = bench.take_turns("10", replace(side, name="STM", server=learning("global-stm")), side)
    what = f"ping-pong p99, {switches} switches, handlers that learn in shared state ({{}}) over ones that learn alone"
    return [
        ratio_line("10", what.format("lock-free"), at_most(1.5), "p99_us", "us", shared, local),
        ratio_line("10", what.format("STM"), at_most(1.5), "p99_us", "us", stm, local_again),
    ]


def fairness(bench):
    """McNettle's Figure 16: fairness at the maximum rate by the number of switches, for several numbers of cores."""
    lines = []
    for shards in (1, 2):
        runner = bench if shards == 1 else bench.on_both_cores()
        counts = sorted({bench.settings.few(count) for count in (100, 250, 500, 1000, 1500, 2000)})
        sides = [replace(BASE, name=f"l2, {count}, {shards}", server=learning("l2", shards), switches=count, length=4) for count in counts]
        what = "Jain's index at max rate, {} switches, {} shard(s)"
        lines += [
            figure_line("figure-16", what.format(count, shards), None, "jain", "", runs)
            for count, runs in zip(counts, runner.take_turns("figure-16", *sides))
        ]
    return lines


def shared_state(bench):
    """McNettle's Figure 20: throughput by the number of cores, for several ways to share state. The paper writes for each
    packet-in."""
    uses = ((WRITE_EACH, "a write for each packet-in"), ((), "read-mostly"))
    loads = [(options, how, count) for options, how in uses for count in (16, 1000)]
    lines = []
    for options, how, switches in loads[:1] if bench.settings.quick else loads:
        for shards in (1, 2):
            names = {LOCAL: "l2", **FORMS}
            servers = {name: learning(app, shards, () if name == LOCAL else options) for name, app in names.items()}
            sides = [
                replace(BASE, name=f"{name}, {shards}, {how}, {switches}", server=server, macs=READ_MOSTLY, switches=switches)
                for name, server in servers.items()
            ]
            what = "{}, {}, {} switches, max rate, {} shard(s), load and controller on both cores"
            lines += [
                figure_line("figure-20", what.format(name, how, f"{switches:,}", shards), None, "rate", "/s", runs)
                for name, runs in zip(names, bench.on_both_cores().take_turns("figure-20", *sides))
            ]
    return lines


def in_process(row, figures):
    """Rows measured by `urtica bench network`: the name of each of its figures, with the target."""

    def measured(bench):
        found, command = in_process_figures(bench, row_name, cores_of(bench, row))
        return [line_of(row, found[name], target, command) for name, target in figures.items()]

    row_name = IN_PROCESS[row]
    return measured


# The row's name for `urtica bench network --figure`.
IN_PROCESS = {
    "3": "reservations",
    "5": "discovery",
    "6": "path",
    "7": "next-hops",
    "8": "repair",
    "9": "hops",
}


def cores_of(bench, row):
    """Returns both cores for reservations and next hops, and one core for other rows."""
    both = f"{bench.settings.server_core},{bench.settings.load_core}"
    return both if row in ("3", "7") else bench.settings.server_core


def line_of(row, record, target, command):
    values = record["values"]
    return Line(row, record["what"], record["unit"], values, target, commands=[command])


def discovery_on_mininet(bench):
    """Ours, and os-ken's beside it. Runs in which os-ken does not find all links are reported, but are not failures."""
    controllers = {"ours": mininet.ours, "os-ken": mininet.os_ken}
    sides = list(controllers) if bench.settings.rivals else ["ours"]
    found, failures = {side: {} for side in sides}, []
    for number in range(1, bench.settings.rounds + 1):
        for side in bench.random.sample(sides, len(sides)):
            told = f"row 4, round {number} of {bench.settings.rounds}, {side}"
            try:
                found[side][number] = mininet.discovery(bench, controllers[side])
                progress(f"{told}: {found[side][number].since_last_switch_ms:.2f} ms since the last switch joined")
            except MeasureError as error:
                if side == "ours":
                    raise
                failures.append(str(error))
                progress(f"{told}: {error}")
    ours = list(found["ours"].values())
    lines = [our_discovery(ours)]
    if bench.settings.rivals:
        theirs = [found["os-ken"].get(number) for number in found["ours"]]
        lines.append(discovery_over_os_ken(ours, theirs, failures))
    return lines


def our_discovery(ours):
    what = (
        "topology discovery on Mininet's tree of depth 3 and fanout 3 with Open vSwitch: from the last switch connected "
        "to the last of 24 links known"
    )
    since_last = [found.since_last_switch_ms for found in ours]
    return Line("4", what, "ms", since_last, at_most(5), commands=[ours[0].command])


def discovery_over_os_ken(ours, theirs, failures):
    """The time starts at the first switch: most of the time after the last switch is Open vSwitch's, which handles the
    requests of a slow controller late. For rounds in which os-ken failed, `theirs` contains `None`."""
    rounds = [(mine, its) for mine, its in zip(ours, theirs) if its]
    since_first = [[found.since_first_switch_ms for found in both] for both in rounds]
    return Line(
        "4",
        "the same from the first switch connected, over os-ken's",
        "ms",
        [mine for mine, _ in since_first],
        against=[its for _, its in since_first],
        ratios=[mine / its for mine, its in since_first],
        remarks=[f"{len(failures)} of {len(ours)} runs of os-ken failed: {failures[0]}"] if failures else [],
        commands=[ours[0].command, *(its.command for _, its in rounds[:1])],
    )


GROUPS = (
    Group(("1",), global_learning),
    Group(("2",), shared_over_local),
    Group(
        ("3",),
        in_process(
            "3",
            {
                "reservations-1": at_least(2e6),
                "reservations-2-over-1": at_least(1.6),
                "reservations-near-2-over-1": None,
                "reservations-near-limit": None,
            },
        ),
    ),
    Group(("4",), discovery_on_mininet, mininet.NEEDED, ("os-ken",)),
    Group(("5",), in_process("5", {"discovery-1000": at_most(1)})),
    Group(("6",), in_process("6", {"path-tree": at_most(50)})),
    Group(("7",), in_process("7", {"next-hops-full": at_most(50), "next-hops-change": at_most(5)})),
    Group(("8",), in_process("8", {"repair-100": at_most(10)})),
    Group(("9",), in_process("9", {"hops": at_least(2e6)})),
    Group(("10",), latency_with_shared_work),
    Group(("figure-16",), fairness),
    Group(("figure-20",), shared_state),
)
