"""The rows about packet-ins: Ryu's learning switch, compared with os-ken, and other programs on our controller."""

import statistics
from dataclasses import replace

from bench import PING_PONG, Server, Side
from command import Group
from document import at_least, figure_line, ratio_line, value_of
from environment import PYTHON

SIMPLE_SWITCH = "python/urtica-ryu/src/urtica_ryu/names/ryu/app/simple_switch_13.py"
COUNTER = "tools/python-figures/counter.py"
OS_KEN_MANAGER = "python/urtica-ryu/tests/os_ken_manager.py"
WARNINGS = ("--default-log-level", "30")
HUBS = ("native", "eventlet")

# Fewer outstanding packet-ins than a connection of urtica-ryu queues, so that it drops none.
WINDOW = ("--window", "256")


def ryu(name, *programs, options=WARNINGS):
    listen = ("--ofp-tcp-listen-port", "{port}", "--ofp-listen-host", "{host}")
    return Server(name, ("urtica", "ryu-manager", "--python", PYTHON, *listen, *options, *programs))


def os_ken(hub, options):
    """Returns the command of the program on os-ken, with os-ken's names."""
    program = ("python", OS_KEN_MANAGER, SIMPLE_SWITCH, "{port}", "--ofp-listen-host", "{host}", *options)
    return Server(f"os-ken, {hub} hub", ("env", f"OSKEN_HUB_TYPE={hub}", *program), is_rival=True)


OWN_INTERFACE = Server("urtica", (PYTHON, "tools/python-figures/learning_switch.py", "{port}", "{host}"))
ONE = ryu("simple_switch_13", SIMPLE_SWITCH)
TWO = ryu("simple_switch_13 and a counter", SIMPLE_SWITCH, COUNTER)


def side(server, mode=WINDOW):
    return Side(server.name, server, mode, openflow="1.3")


def quiet_rate(bench):
    return rate_and_ratio(bench, "1", "warnings logged", WARNINGS, 100_000, 30)


def logged_rate(bench):
    return rate_and_ratio(bench, "2", "the default log level, stderr to a file", (), 60_000, 20)


def rate_and_ratio(bench, row, log, options, least, times):
    server = ryu("simple_switch_13", SIMPLE_SWITCH, options=options)
    ours, *theirs = bench.take_turns(row, *sides(bench, server, options))
    what = f"packet-ins answered by `simple_switch_13`, {log}, 16 switches, 256 outstanding each"
    lines = [figure_line(row, what, at_least(least), "rate", "/s", ours)]
    if theirs:
        line = ratio_line(row, f"{what}, over os-ken's", at_least(times), "rate", "/s", ours, faster(theirs))
        lines.append(with_hubs(line, theirs))
    return lines


def ping_pong(bench):
    ours, *theirs = bench.take_turns("3", *sides(bench, ONE, WARNINGS, PING_PONG))
    what = "`simple_switch_13`, warnings logged, ping-pong with 16 switches: p50"
    if not theirs:
        return [figure_line("3", what, None, "p50_us", "us", ours)]
    line = ratio_line("3", f"{what}, os-ken's over ours", at_least(15), "p50_us", "us", ours, faster(theirs))
    return [with_hubs(inverted(line), theirs)]


def sides(bench, server, options, mode=WINDOW):
    """Returns our side, and os-ken's with each of its hubs."""
    rivals = [os_ken(hub, options) for hub in HUBS] if bench.settings.rivals else []
    return [side(each, mode) for each in (server, *rivals)]


def faster(theirs):
    return max(theirs, key=median_rate)


def median_rate(runs):
    return statistics.median(value_of(run, "rate") for run in runs)


def with_hubs(line, theirs):
    """Returns the line, with a remark on the hub of os-ken that it is compared with."""
    rates = ", ".join(f"{runs[0].side} {median_rate(runs):,.0f}/s" for runs in theirs)
    line.remarks.append(f"compared with the faster of {rates}")
    return line


def inverted(line):
    """Returns the line with the ratios of the other's figures over ours."""
    return replace(line, ratios=[1 / ratio for ratio in line.ratios])


def own_interface(bench):
    own, simple = bench.take_turns("4", side(OWN_INTERFACE), side(ONE))
    what = "packet-ins answered by the learning switch of the package `urtica`, over `simple_switch_13`"
    return [ratio_line("4", what, at_least(2), "rate", "/s", own, simple)]


def two_applications(bench):
    two, one = bench.take_turns("5", side(TWO), side(ONE))
    what = "packet-ins answered by `simple_switch_13` with a second application that counts them, over `simple_switch_13` alone"
    return [ratio_line("5", what, at_least(0.5), "rate", "/s", two, one)]


GROUPS = (
    Group(("1",), quiet_rate, rivals_need=("os-ken",)),
    Group(("2",), logged_rate, rivals_need=("os-ken",)),
    Group(("3",), ping_pong, rivals_need=("os-ken",)),
    Group(("4",), own_interface),
    Group(("5",), two_applications),
)
