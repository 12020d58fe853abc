"""Topology discovery on a network of Open vSwitches created by Mininet, timed by the controller's own log."""

import datetime
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import MeasureError, free_port, shown
from rooms import namespace, open_vswitch, process, wait_until

NEEDED = ("mn", "ip", "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "unshare", "timeout")

SWITCHES = 13
LINKS = 24
DEADLINE_S = 120

# Links are logged once the topology that contains them is visible to programs.
LOG = "info,urtica_services::discovery=debug"


def ours(port):
    return ("urtica", "run", "discovery", "--listen", f"ptcp:{port}:127.0.0.1")


def os_ken(port):
    return ("python", "tools/network-figures/os_ken_topology.py", str(port))


@dataclass(frozen=True)
class Discovery:
    """The time until the last link was known, and the controller's command."""

    since_last_switch_ms: float
    since_first_switch_ms: float
    command: str


def discovery(bench, controller):
    """Lets a controller discover the network. `controller` returns its command for a port."""
    if os.geteuid() != 0:
        raise MeasureError("it needs root, to create network namespaces")
    with (
        tempfile.TemporaryDirectory(prefix="urtica-mininet-") as folder,
        namespace(f"urtica-figures-{os.getpid()}") as room,
    ):
        return measured(Path(folder), room, bench, controller)


def measured(folder, room, bench, controller):
    def in_room(*command):
        return ("ip", "netns", "exec", room, *command)

    in_room_call = in_room("ip", "link", "set", "lo", "up")
    log, port = folder / "controller.log", free_port("127.0.0.1")
    command = controller(port)
    with process(folder / "lo.log", *in_room_call) as lo:
        lo.wait()
    with (
        process(log, *in_room(*bench.real(command)), environment={**os.environ, "RUST_LOG": LOG}) as started,
        open_vswitch(folder, in_room) as environment,
        process(folder / "mn.log", *in_room(*mininet(port)), environment=environment) as mn,
    ):
        wait_until(lambda: len(links(log)) >= LINKS, "Mininet", mn, folder / "mn.log", DEADLINE_S)
        if started.poll() is not None:
            raise MeasureError("the controller ended")
    joined, known = times(log, " switch joined "), list(links(log).values())
    if len(joined) != SWITCHES:
        raise MeasureError(f"{len(joined)} switches joined; expected {SWITCHES}")
    since = [(max(known) - begin).total_seconds() * 1e3 for begin in (max(joined), min(joined))]
    return Discovery(*since, shown(command))


def mininet(port):
    """Runs Mininet in a separate process namespace, since a failing Mininet kills other controllers by name. Without a test
    to run, it waits for the end of its standard input, which would be at once; so it sleeps."""
    topology = "--topo=tree,depth=3,fanout=3"
    switch = "--switch=ovs,datapath=user,protocols=OpenFlow13"
    remote = f"--controller=remote,ip=127.0.0.1,port={port}"
    mn = f"echo 'sh sleep {DEADLINE_S}' | mn {remote} {switch} {topology} --mac"
    return ("timeout", str(DEADLINE_S), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", mn)


def times(log, sentence):
    return [time_of(line) for line in log.read_text(errors="replace").splitlines() if sentence in line]


def links(log):
    """Returns the time at which each link was first known."""
    found = {}
    for line in log.read_text(errors="replace").splitlines():
        if match := re.search(r" link up link=(.*)", line):
            found.setdefault(match[1], time_of(line))
    return found


def time_of(line):
    return datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00"))
