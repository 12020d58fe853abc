"""The evaluation of Shalimov and Ivashchenko's "In-kernel offloading of an SDN/OpenFlow controller" (section V): their
figures beside ours, and other controllers beside both."""

import os
import mininet
import twenty_switches
from bench import MAX_RATE, OS_KEN, OVS, PING_PONG, MeasureError, Refused, Server, Side, progress
from command import Group
from document import Line, figure_line
from in_process import figures
from modes import side

# The paper's names for our modes, with its packet-ins per second and its microseconds.
THREADS_OF_PAPER = {
    "none": "others in user space 6 M/s",
    "ring": "pass-through 15 M/s",
    "kernel": "in the kernel almost 30 M/s",
}
LATENCY_OF_PAPER = {
    "none": "50 (MuL) to 323 us (POX)",
    "ring": "pass-through 50 us",
    "kernel": "in the kernel 45 us",
    "os-ken": "Ryu, from which it comes, 105 us",
}
MODES = ("none", "ring", "kernel", "driven")

# A flooding controller must not have to handle millions of packet-ins after the tests.
FLOOD = (*MAX_RATE, "--outstanding", "65536")


def rivals(bench):
    return (OVS, OS_KEN) if bench.settings.rivals else ()


def with_papers(line, told):
    if told:
        line.remarks.append(f"the paper's: {told}")
    return line


def rate_by_threads(bench):
    """One thread has its own core, the load the other; more threads share both cores with the load."""
    lines = []
    for threads, runner in ((1, bench), (2, bench.on_both_cores())):
        sides = [side(mode, FLOOD, 32, threads, hosts=100_000) for mode in MODES]
        sides += [Side(server.name, server, mode=FLOOD, switches=32) for server in rivals(bench) if threads == 1]
        for each, runs in zip(sides, runner.take_turns("figure-4", *sides)):
            what = f"Figure 4: `{each.name}`, {threads} thread(s), 32 switches, 100,000 hosts each, max rate"
            line = figure_line("figure-4", what, None, "rate", "/s", runs)
            lines.append(with_papers(line, THREADS_OF_PAPER.get(each.name)))
    return lines


def least_latency(bench):
    sides = [side(mode, PING_PONG, 1) for mode in MODES]
    hosts = sides[0].macs
    sides += [Side(server.name, server, mode=PING_PONG, switches=1, macs=hosts) for server in rivals(bench)]
    lines = []
    for each, runs in zip(sides, bench.take_turns("table-1", *sides)):
        least = figure_line("table-1", f"Table I: `{each.name}`, 1 switch, least response time", None, "least_us", "us", runs)
        median = figure_line("table-1", f"the same, `{each.name}`: p50", None, "p50_us", "us", runs)
        lines += [with_papers(least, LATENCY_OF_PAPER.get(each.name)), median]
    return lines


# ---- Topology discovery ----

DISCOVERY_OF_PAPER = {"none": "24 ms", "driven": "5 ms", "os-ken": "Beacon 55 ms"}
TWENTY_OF_PAPER = {"none": "slightly less than on the tree", "driven": "4 to 5 times faster than in user space"}


def discovery_command(mode):
    """Returns the start command of a controller, as a function of its port and host."""
    fixed = ("urtica", "run", "discovery", "--offload", mode)
    return lambda port, host="127.0.0.1": (*fixed, "--listen", f"ptcp:{port}:{host}")


def refusals(bench, modes):
    """Returns the messages of the modes that refuse `discovery`."""
    told = {}
    for mode in modes:
        server = Server(f"discovery, {mode}", discovery_command(mode)("{port}", "{host}"), may_refuse=True)
        try:
            with bench.server(server):
                pass
        except Refused as refusal:
            told[mode] = str(refusal)
    return told


def discovery(bench):
    if os.geteuid() != 0:
        raise MeasureError("it needs root, to create network namespaces")
    modes = ("none", "driven")
    refused = refusals(bench, modes)
    accepted = {mode: discovery_command(mode) for mode in modes if mode not in refused}
    trees = {**accepted, **({"os-ken": mininet.os_ken} if bench.settings.rivals else {})}
    on_tree = rounds(bench, trees, "Mininet", lambda command: mininet.discovery(bench, command))
    with twenty_switches.network(bench) as switches:
        on_twenty = rounds(bench, accepted, switches.told, lambda command: switches.discovery(bench, command))
    tree = "discovery of Mininet's tree of depth 3 and fanout 3"
    return [
        *discovery_lines(tree, [*modes, *trees.keys() - set(modes)], on_tree, refused, DISCOVERY_OF_PAPER),
        *discovery_lines(f"discovery of {switches.told}", modes, on_twenty, refused, TWENTY_OF_PAPER),
    ]


# After this number of failures a controller is skipped, since each failure takes minutes.
FAILURES = 2


def rounds(bench, controllers, where, measure):
    """Returns the results of each controller's rounds: the discovery, or the reason why there is none."""
    found = {name: [] for name in controllers}
    for number in range(1, bench.settings.rounds + 1):
        for name in bench.random.sample(list(controllers), len(controllers)):
            if sum(isinstance(each, str) for each in found[name]) == FAILURES:
                continue
            try:
                latest = measure(controllers[name])
                outcome = f"{latest.since_last_switch_ms:.2f} ms"
            except MeasureError as error:
                if name == "none":
                    raise
                outcome = latest = str(error)
            found[name].append(latest)
            progress(f"row discovery, round {number} of {bench.settings.rounds}, {where}, {name}: {outcome}")
    return found


def discovery_lines(what, names, found, refused, of_paper):
    """Returns lines with the times from the last switch connected, which show the controller; and from the first one, to
    which the switches contribute, too."""
    lines = []
    for name in names:
        done = [each for each in found.get(name, []) if not isinstance(each, str)]
        failures = [each for each in found.get(name, []) if isinstance(each, str)]
        remarks = [refused[name]] if name in refused else []
        commands = [done[0].command] if done else []
        if failures:
            remarks.append(f"{len(failures)} of {len(found[name])} runs failed: {failures[0]}")
        since_last, since_first = (
            Line("discovery", f"{what}, `{name}`: {since}", "ms", values, remarks=list(remarks), commands=commands)
            for since, values in (
                ("from the last switch joined to the last link known", [each.since_last_switch_ms for each in done]),
                ("from the first switch joined", [each.since_first_switch_ms for each in done]),
            )
        )
        lines += [with_papers(since_last, of_paper.get(name)), since_first]
    return lines


def path(bench):
    found, command = figures(bench, "path", bench.settings.server_core)
    record = found["path-tree"]
    line = Line("path", f"{record['what']}, in the program", record["unit"], record["values"], commands=[command])
    line.remarks.append("paths are computed in the program in every mode")
    return [with_papers(line, "10 ms in the program, 2 ms through the kernel's service")]


GROUPS = (
    Group(("figure-4",), rate_by_threads, rivals_need=("ovs-testcontroller", "os-ken")),
    Group(("table-1",), least_latency, rivals_need=("ovs-testcontroller", "os-ken")),
    Group(("discovery",), discovery, mininet.NEEDED, ("os-ken",)),
    Group(("path",), path),
)
