"""Twenty Open vSwitches, each in its own namespace, joined in a ring with chords, and a controller that discovers them."""

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import shown
from mininet import DEADLINE_S, LOG, Discovery, links, times
from rooms import call, namespace, open_vswitch, process, wait_until

SWITCHES = 20
PORT = 6653
CONTROLLER = "10.78.0.254"


@dataclass(frozen=True)
class Network:
    """The controller's room, and connections to each switch's database."""

    room: str
    folder: Path
    databases: tuple
    cables: int

    @property
    def told(self):
        return f"{len(self.databases)} Open vSwitches in namespaces, joined by {self.cables} links"

    def discovery(self, bench, controller):
        """Starts a controller, connects all switches, and waits until each link is known in both directions."""
        log = self.folder / "controller.log"
        command = controller(PORT, CONTROLLER)
        in_room = ("ip", "netns", "exec", self.room, "env", f"RUST_LOG={LOG}", *bench.real(command))
        with process(log, *in_room) as started:
            wait_until(lambda: "listening" in log.read_text(errors="replace"), "the controller", started, log)
            try:
                for database in self.databases:
                    vsctl(database, "set-controller", "br0", f"tcp:{CONTROLLER}:{PORT}")
                wait_until(lambda: len(links(log)) >= 2 * self.cables, "the controller", started, log, DEADLINE_S)
            finally:
                for database in self.databases:
                    vsctl(database, "del-controller", "br0")
        joined, known = times(log, " switch joined "), list(links(log).values())
        since = [(max(known) - begin).total_seconds() * 1e3 for begin in (max(joined), min(joined))]
        return Discovery(*since, shown(command))


@contextlib.contextmanager
def network(bench):
    count = 4 if bench.settings.quick else SWITCHES
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="urtica-twenty-")))
        room, *rooms = [
            stack.enter_context(namespace(f"urtica-figures-{os.getpid()}-{number}")) for number in range(count + 1)
        ]
        join_controller(room, rooms)
        cables = join_switches(rooms)
        databases = tuple(
            stack.enter_context(switch(folder / str(number), each, number, cables))
            for number, each in enumerate(rooms, start=1)
        )
        yield Network(room, folder, databases, len(cables))


def join_controller(room, rooms):
    """Connects every switch to the controller, by a bridge of the kernel."""
    call("ip", "-n", room, "link", "add", "br0", "type", "bridge")
    call("ip", "-n", room, "address", "add", f"{CONTROLLER}/24", "dev", "br0")
    call("ip", "-n", room, "link", "set", "br0", "up")
    for number, each in enumerate(rooms, start=1):
        call("ip", "-n", room, "link", "add", f"m{number}", "type", "veth", "peer", "name", "eth0", "netns", each)
        call("ip", "-n", room, "link", "set", f"m{number}", "master", "br0", "up")
        call("ip", "-n", each, "address", "add", f"10.78.0.{number}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            call("ip", "-n", each, "link", "set", device, "up")


def join_switches(rooms):
    """Creates a ring, and a chord from every second switch to the opposite one. Returns the two switches of each cable."""
    count = len(rooms)
    cables = [(number, number % count + 1) for number in range(1, count + 1)]
    cables += [(number, number + count // 2) for number in range(1, count // 2 + 1, 2)]
    for one, other in cables:
        ours, theirs = rooms[one - 1], rooms[other - 1]
        call("ip", "-n", ours, "link", "add", f"p{other}", "type", "veth", "peer", "name", f"p{one}", "netns", theirs)
        call("ip", "-n", ours, "link", "set", f"p{other}", "up")
        call("ip", "-n", theirs, "link", "set", f"p{one}", "up")
    return cables


@contextlib.contextmanager
def switch(folder, room, number, cables):
    """Runs an Open vSwitch with a port for each of its cables. Yields its database."""
    folder.mkdir()
    with open_vswitch(folder, lambda *command: ("ip", "netns", "exec", room, *command)):
        database = f"unix:{folder}/db.sock"
        bridge = ("datapath_type=netdev", "fail-mode=secure", "protocols=OpenFlow13")
        vsctl(database, "add-br", "br0", "--", "set", "bridge", "br0", *bridge, f"other-config:datapath-id={number:016x}")
        for one, other in cables:
            if number in (one, other):
                vsctl(database, "add-port", "br0", f"p{other if number == one else one}")
        yield database


def vsctl(database, *command):
    call("ovs-vsctl", f"--db={database}", "--timeout=15", *command)
