"""What `lacplib` and `igmplib` send and report, as JSON: `python traces.py PACKAGE`, which is ryu or os_ken.

The differential test compares both. Time is simulated.
"""

import heapq
import importlib
import itertools
import json
import os
import sys

#: Longer than any timer.
LONG = 200.0


class Clock:
    """Simulated time for os-ken's hub, with eventlet."""

    def __init__(self, hub):
        self.hub = hub
        self.now = 0.0
        self.numbers = itertools.count()
        self.waiting = []
        self.real_sleep = hub.sleep

    def sleep(self, seconds=0):
        event = self.hub.Event()
        heapq.heappush(self.waiting, (self.now + seconds, next(self.numbers), event))
        event.wait()

    def advance(self, seconds):
        end = self.now + seconds
        self.settle()
        while self.waiting and self.waiting[0][0] <= end:
            self.now, _, event = heapq.heappop(self.waiting)
            event.set()
            self.settle()
        self.now = end

    def settle(self):
        for _ in range(5):
            self.real_sleep(0)


class Port:
    """A port of a switch."""

    def __init__(self, number):
        self.port_no = number
        self.hw_addr = f"02:00:00:00:00:{number & 0xFF:02x}"


class Switch:
    """Stands for a datapath: keeps what is sent."""

    def __init__(self, world, version):
        self.world = world
        self.id = 1
        self.ofproto = world.module(f"ofproto.ofproto_v1_{version}")
        self.ofproto_parser = world.module(f"ofproto.ofproto_v1_{version}_parser")
        self.is_1_0 = version == 0
        self.ports = {number: Port(number) for number in (1, 2, 3, 4, self.ofproto.OFPP_LOCAL)}

    def send_msg(self, msg):
        msg.xid = 0
        for holder in (msg, *getattr(msg, "instructions", ())):
            for action in getattr(holder, "actions", ()):
                if action.port != self.ofproto.OFPP_CONTROLLER:
                    # It means nothing for other ports.
                    action.max_len = 0
        msg.serialize()
        self.world.lines.append(bytes(msg.buf).hex())


class World:
    """An application of a package, and a switch."""

    def __init__(self, package, library, version, clock):
        self.package = package
        self.clock = clock
        self.lines = []
        self.library = self.module(f"lib.{library}")
        self.ofp_event = self.module("controller.ofp_event")
        self.packet, self.ethernet, self.ipv4, self.igmp, self.slow = (
            self.module(f"lib.packet.{name}") for name in ("packet", "ethernet", "ipv4", "igmp", "slow")
        )
        self.app = getattr(self.library, {"lacplib": "LacpLib", "igmplib": "IgmpLib"}[library])()
        self.app.send_event_to_observers = self.note
        if hasattr(self.app, "_snooper"):
            # os-ken's has the method.
            self.app._snooper._send_event = self.note
        self.module("controller.handler").register_instance(self.app)
        self.switch = Switch(self, version)

    def module(self, name):
        return importlib.import_module(f"{self.package}.{name}")

    def note(self, event, state=None):
        shown = {name: value for name, value in vars(event).items() if name not in ("msg", "datapath")}
        self.lines.append(f"{type(event).__name__} {shown}")

    def handle(self, event, state="main"):
        self.lines.append("")
        for handler in self.app.get_handlers(event, state):
            handler(event)
        self.clock.advance(0.25)

    def wait(self, seconds):
        self.lines.append("")
        self.clock.advance(seconds)

    def build(self, *protocols):
        made = self.packet.Packet(protocols=list(protocols))
        made.serialize()
        return bytes(made.data)

    def receive(self, port, data):
        """A packet arrives at a port."""
        msg = self.switch.ofproto_parser.OFPPacketIn(self.switch)
        if self.switch.is_1_0:
            msg.in_port = port
        else:
            msg.match = self.switch.ofproto_parser.OFPMatch(in_port=port)
        msg.data, msg.buffer_id, msg.total_len = data, 0xFFFFFFFF, len(data)
        self.handle(self.ofp_event.EventOFPPacketIn(msg))

    def state(self, state):
        event = self.ofp_event.EventOFPStateChange(self.switch)
        event.state = state
        self.handle(event, state)

    def removed(self, reason, port, kind=0x8809):
        msg = self.switch.ofproto_parser.OFPFlowRemoved(self.switch)
        names = ("dl_src", "dl_type") if self.switch.is_1_0 else ("eth_src", "eth_type")
        fields = dict(zip(names, ("02:00:00:00:01:01", kind), strict=True))
        msg.match, msg.reason = self.switch.ofproto_parser.OFPMatch(in_port=port, **fields), reason
        self.handle(self.ofp_event.EventOFPFlowRemoved(msg))

    def other(self):
        self.receive(1, self.build(self.ethernet.ethernet(ethertype=0x9000), b"x" * 50))

    # LACP

    def unit(self, port, timeout=0, source="02:00:00:00:01:01"):
        bits = (1, timeout, 1, 1, 1, 1, 1, 1)
        unit = self.slow.lacp(1, 10, "02:00:00:00:01:ff", 3, 4, 5, *bits, 6, "02:00:00:00:00:02", 7, 8, 9, *bits, 10)
        self.receive(port, self.build(self.ethernet.ethernet(self.slow.SLOW_PROTOCOL_MULTICAST, source, 0x8809), unit))

    # IGMP

    def _igmp(self, port, source, to, message):
        head = self.ethernet.ethernet("01:00:5e:00:00:01", source, 0x800)
        ip = self.ipv4.ipv4(proto=2, ttl=1, src="10.0.0.9", dst=to)
        self.receive(port, self.build(head, ip, message))

    def report(self, port, group="225.0.0.1", kind=0x16):
        self._igmp(port, "02:00:00:00:09:01", group, self.igmp.igmp(kind, 0, 0, group))

    def report_v3(self, port):
        record = self.igmp.igmpv3_report_group(4, address="225.0.0.7")
        self._igmp(port, "02:00:00:00:09:01", "224.0.0.22", self.igmp.igmpv3_report(records=[record]))

    def leave(self, port, group="225.0.0.1"):
        self._igmp(port, "02:00:00:00:09:01", "224.0.0.2", self.igmp.igmp(0x17, 0, 0, group))

    def query(self, port, group="0.0.0.0", code=100):
        to = "224.0.0.1" if group == "0.0.0.0" else group
        self._igmp(port, "02:00:00:00:09:0a", to, self.igmp.igmp(0x11, code, 0, group))

    def query_v3(self, port):
        self._igmp(port, "02:00:00:00:09:0a", "224.0.0.1", self.igmp.igmpv3_query(maxresp=20))


#: Steps by name: the library, and calls of a world.
SCENARIOS = {
    "a port of an aggregate": (
        "lacplib",
        "add(1, [1, 2]); unit(1); unit(1); unit(1, 1); unit(2); other(); removed(0, 1, 0x800); removed(0, 1); unit(1, 1);"
        " removed(2, 1)",
    ),
    "a report before a query": (
        "igmplib",
        "report(1); leave(1); wait(2); query(4); report(1); report(1); report(2); other(); leave(1); wait(3); leave(2); wait(3)",
    ),
    "a group that nobody reports": (
        "igmplib",
        "query(4); report(1); report(2); query(4); report(1); wait(12); query(4); wait(12); query(4, code=0); wait(12)",
    ),
    "a member that stays": (
        "igmplib",
        "query(4); report(1); leave(1); report(1); wait(3); report(1, '225.0.0.2'); query(4, '225.0.0.2', 10); wait(3)",
    ),
    "a leave of a port without members": ("igmplib", "query(4); leave(1); wait(2); report(1); report(2); leave(3); wait(2)"),
    "versions 1 and 3": ("igmplib", "query_v3(4); report(1, kind=0x12); report_v3(1); query_v3(4); wait(3)"),
    "a querier": (
        "igmplib",
        "set_querier_mode(1, 2); state('main'); report(1); report(3); report(3, '225.0.0.2'); wait(11); wait(50); report(1);"
        " query(4); leave(4); wait(11); leave(1); report_v3(1); other(); state('dead'); wait(100)",
    ),
}


def trace(package, version, scenario, clock):
    """Returns what comes of a scenario."""
    library, steps = SCENARIOS[scenario]
    world = World(package, library, version, clock)
    for step in steps.split(";"):
        names = {name: getattr(world, name) for name in dir(world) if not name.startswith("_")}
        names |= {name: getattr(world.app, name, None) for name in ("add", "set_querier_mode")}
        eval(step.strip(), names)
    clock.advance(LONG)
    return world.lines


def traces(package, clock):
    """Returns what comes of all scenarios."""
    return {f"1.{version}: {name}": trace(package, version, name, clock) for name in SCENARIOS for version in (0, 3)}


if __name__ == "__main__":
    os.environ["OSKEN_HUB_TYPE"] = "eventlet"
    the_hub = importlib.import_module(f"{sys.argv[1]}.lib.hub")
    the_clock = Clock(the_hub)
    the_hub.sleep = the_clock.sleep
    json.dump(traces(sys.argv[1], the_clock), sys.stdout)
