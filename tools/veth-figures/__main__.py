"""Measures small frames, TCP and round trips between two network namespaces, through our switch and through Open vSwitch's.

Two hosts, each on a veth, are joined by a switch in user space: `urtica switch` with AF_PACKET and with AF_XDP, and Open
vSwitch's netdev datapath, which receives its packets with AF_PACKET. All have the same two flow entries, and are interleaved,
round after round. The switch has one core, the hosts another. The hosts' offloads are off, because Open vSwitch does not
complete partial checksums and accepts no segments above the MTU.

Small frames are sent at the maximum rate (sender.py), and are counted by the interface of the receiving host, which
drops them: no program receives them, so that none is the limit. The same counter gives the frames that a sender sent. A switch's CPU time is
that of its process, including the kernel's work for it.

Namespaces, processes, Open vSwitch's database, sockets and logs are created for this run, and removed afterwards.
Needs root, two cores, and what tools/setup installs. The table goes to standard output, for docs/switch.md.

    python3 tools/veth-figures              five minutes
    python3 tools/veth-figures --quick      one short round that shows that the tool works
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Shares facts about the machine and the format of numbers with the controller's figures.
sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

from bench import ROOT, MeasureError
from document import machine_facts, spread
from rooms import call, namespace, open_vswitch, process, wait_until

NEEDED = ("ip", "taskset", "ping", "iperf3", "ethtool", "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-ofctl")
ENTRIES = ("in_port=1,actions=output:2", "in_port=2,actions=output:1")
ADDRESSES = ("10.0.0.1", "10.0.0.2")
IPERF_PORT = 5201
SENDER = Path(__file__).resolve().parent / "sender.py"

MBIT = 1e6


@dataclass(frozen=True)
class Settings:
    program: Path
    seconds: int
    switch_core: int
    host_core: int


# ---- The network ----


@dataclass(frozen=True)
class Network:
    """A room with the ports p1 and p2, and two hosts at their other ends."""

    room: str
    hosts: tuple
    folder: Path
    settings: Settings

    def in_room(self, *command):
        return ("ip", "netns", "exec", self.room, "taskset", "-c", str(self.settings.switch_core), *command)

    def on_host(self, index, *command):
        return ("ip", "netns", "exec", self.hosts[index], "taskset", "-c", str(self.settings.host_core), *command)


@contextlib.contextmanager
def network(settings):
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="urtica-veth-")))
        room, *hosts = [stack.enter_context(namespace(f"urtica-veth-{os.getpid()}-{index}")) for index in range(3)]
        for number, (host, address) in enumerate(zip(hosts, ADDRESSES), start=1):
            cable = ("type", "veth", "peer", "name", "eth0", "netns", host)
            call("ip", "-n", room, "link", "add", f"p{number}", *cable)
            call("ip", "-n", room, "link", "set", f"p{number}", "up")
            call("ip", "-n", host, "address", "add", f"{address}/24", "dev", "eth0")
            call("ip", "-n", host, "link", "set", "eth0", "up")
            call("ip", "netns", "exec", host, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off")
        yield Network(room, tuple(hosts), folder, settings)


# ---- The switches ----


@contextlib.contextmanager
def urtica(network, back_end):
    """Runs urtica's switch; yields the process's id."""
    socket, log = network.folder / "switch.sock", network.folder / "switch.log"
    ports = (f"{back_end}:p1", f"{back_end}:p2")
    command = network.in_room(network.settings.program, "switch", *ports, "--controller", f"punix:{socket}")
    with process(log, *command) as started:
        wait_until(socket.exists, "urtica switch", started, log)
        for entry in ENTRIES:
            call("ovs-ofctl", "-O", "OpenFlow13", "add-flow", f"unix:{socket}", entry)
        yield started.pid


@contextlib.contextmanager
def netdev(network):
    """Runs Open vSwitch's netdev datapath; yields the process's id."""
    folder = network.folder

    def vsctl(*command):
        call("ovs-vsctl", f"--db=unix:{folder}/db.sock", "--timeout=15", *command)

    with open_vswitch(folder, network.in_room):
        vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure")
        for number in (1, 2):
            port = f"p{number}"
            vsctl("add-port", "br0", port, "--", "set", "interface", port, f"ofport_request={number}")
        for entry in ENTRIES:
            call("ovs-ofctl", "add-flow", f"unix:{folder}/br0.mgmt", entry)
        yield int((folder / "ovs-vswitchd.pid").read_text())


SIDES = {
    "`urtica switch`, AF_PACKET": lambda network: urtica(network, "afpacket"),
    "`urtica switch`, AF_XDP": lambda network: urtica(network, "afxdp"),
    "Open vSwitch, netdev": netdev,
}


# ---- The loads ----


def tcp_mbit(network, _switch):
    report = iperf(network)
    return (report["end"]["sum_received"]["bits_per_second"] / MBIT,)


def small_frames(network, switch):
    """Returns the number of 60-byte frames that the switch forwards per second, and its CPU time for each, in microseconds."""
    seconds = network.settings.seconds
    count_before, cpu_before = received(network), cpu_seconds(switch)
    sent = int(call(*network.on_host(0, sys.executable, SENDER, "eth0", seconds)))
    passed, cpu = received(network) - count_before, cpu_seconds(switch) - cpu_before
    if passed == 0:
        raise MeasureError(f"none of {sent} frames came through")
    return passed / seconds, cpu / passed * 1e6


def received(network):
    """Returns the number of frames that have arrived at the second host."""
    told = call("ip", "-n", network.hosts[1], "-json", "-statistics", "link", "show", "dev", "eth0")
    return json.loads(told)[0]["stats64"]["rx"]["packets"]


def cpu_seconds(pid):
    """Returns the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def iperf(network, *options):
    log = network.folder / "iperf3.log"
    with process(log, *network.on_host(1, "iperf3", "--server", "--one-off")) as server:
        wait_until(lambda: is_listening(server.pid), "iperf3", server, log)
        seconds = str(network.settings.seconds)
        command = ("iperf3", "--client", ADDRESSES[1], "--time", seconds, "--omit", "0", "--json", *options)
        report = json.loads(call(*network.on_host(0, *command)))
    if "error" in report:
        raise MeasureError(f"iperf3: {report['error']}")
    return report


def is_listening(pid):
    """Returns whether a socket listens on iperf3's port in the namespace of this process."""
    with contextlib.suppress(OSError):
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state = line.split()[:4]
                if local.endswith(f":{IPERF_PORT:04X}") and state == "0A":
                    return True
    return False


def round_trip_us(network, _switch):
    """Returns the median of pings every two milliseconds."""
    count = network.settings.seconds * 500
    told = call(*network.on_host(0, "ping", "-n", "-c", count, "-i", "0.002", ADDRESSES[1]))
    times = [float(value) * 1000 for value in re.findall(r" time=([\d.]+) ms", told)]
    if len(times) < 0.99 * count:
        raise MeasureError(f"only {len(times)} of {count} pings were answered")
    return (statistics.median(times),)


FIGURES = {
    "60-byte frames, forwarded": "frames/s",
    "CPU time of each": "us",
    "TCP": "Mbit/s",
    "round trip, median": "us",
}

# The sources of the figures, in their order.
LOADS = (small_frames, tcp_mbit, round_trip_us)


# ---- What is told ----


def main():
    args = arguments()
    cores = sorted(os.sched_getaffinity(0))
    refuse_what_is_missing(cores)
    settings = Settings(args.program or build(), args.seconds, switch_core=cores[1], host_core=cores[0])
    machine = machine_facts()
    found = {side: {figure: [] for figure in FIGURES} for side in SIDES}
    for number in range(1, args.rounds + 1):
        for side in SIDES if number % 2 else reversed(SIDES):
            measure(settings, side, found[side])
            latest = ", ".join(f"{figure} {values[-1]:,.4g}" for figure, values in found[side].items())
            progress(f"round {number} of {args.rounds}, {side}: {latest}")
    print(table(found))
    print(
        f"{args.rounds} round(s) of {args.seconds} s, medians (least to most); {machine['cpu']}, Linux "
        f"{machine['kernel']}, {machine['date']}, at {machine['commit']}. `python3 tools/veth-figures` repeats it."
    )


def measure(settings, side, found):
    with network(settings) as joined, SIDES[side](joined) as switch:
        # The hosts learn each other's addresses; also checks that they reach each other.
        call(*joined.on_host(0, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", ADDRESSES[1]))
        values = [value for load in LOADS for value in load(joined, switch)]
        for figure, value in zip(FIGURES, values, strict=True):
            found[figure].append(value)


def table(found):
    head = ["switch", *(f"{figure} ({unit})" for figure, unit in FIGURES.items())]
    rows = [head, ["---"] * len(head)]
    rows += [[side, *(spread(values, "") for values in figures.values())] for side, figures in found.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def arguments():
    parser = argparse.ArgumentParser(
        prog="python3 tools/veth-figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=positive, metavar="N", help="number of runs of each switch (5)")
    parser.add_argument("--seconds", type=positive, metavar="S", help="duration of each load (3)")
    parser.add_argument("--quick", action="store_true", help="one round of a second each; proves nothing")
    parser.add_argument("--program", type=Path, metavar="FILE", help="measure this urtica, instead of building one")
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.seconds = args.seconds or (1 if args.quick else 3)
    if args.program and not args.program.is_file():
        parser.error(f"--program: there is no file {args.program}")
    args.program = args.program and args.program.resolve()
    return args


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 1 on")
    return int(text)


def refuse_what_is_missing(cores):
    if os.geteuid() != 0:
        sys.exit("veth-figures: needs root, to create network namespaces")
    if len(cores) < 2:
        sys.exit("veth-figures: needs two cores, one for the switch, one for the hosts; this process may use one")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        sys.exit(f"veth-figures: needs {', '.join(missing)}; run tools/setup")


def build():
    """Builds the program from the current sources, optimised."""
    if subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT).returncode != 0:
        sys.exit("veth-figures: cargo could not build urtica")
    return (ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/urtica").resolve()


def progress(text):
    print(f"veth-figures: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    # Stop all started programs at the end, even after a signal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except (MeasureError, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"veth-figures: {error}")
    except KeyboardInterrupt:
        sys.exit("veth-figures: interrupted")
