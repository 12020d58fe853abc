"""The spanning tree: drawn networks of bridges, and switches whose applications use stplib."""

import random
import struct
from collections import deque

import pytest
from ryu.app.simple_switch_stp_13 import SimpleSwitch13
from ryu.base.app_manager import RyuApp
from ryu.controller.handler import set_ev_cls
from ryu.lib import stplib
from ryu.lib.packet import bpdu, ethernet, llc, packet
from simulated import PACKET_IN, PORT_STATUS, port

from urtica_ryu import spanning_tree
from urtica_ryu.spanning_tree import FORWARD, Bridge, Port, Times

PACKET_OUT, FLOW_MOD, PORT_MOD = 13, 14, 16


class Bridges:
    """Bridges, and cables between their ports. Messages arrive in order; time is simulated."""

    def __init__(self, count):
        self.now = 0.0
        self.queue = deque()
        self.cables = {}
        self.flushed = set()
        self.bridges = [self.bridge(index) for index in range(count)]

    def bridge(self, index):
        def send(port, config):
            self.queue.append((index, port.number, config))

        return Bridge(0x8000 << 48 | index, Times(), send, lambda port: None, lambda: self.flushed.add(index))

    def plug(self, first, second):
        self.cables[first] = second
        self.cables[second] = first
        for index, number in (first, second):
            self.bridges[index].add_port(Port(number, 0x8000 | number, 19), self.now)

    def cut(self, first):
        second = self.cables.pop(first)
        del self.cables[second]
        for index, number in (first, second):
            self.bridges[index].remove_port(number, self.now)

    def deliver(self):
        while self.queue:
            index, number, config = self.queue.popleft()
            if (index, number) not in self.cables:
                continue
            peer, peer_number = self.cables[index, number]
            if config is None:
                self.bridges[peer].receive_notification(peer_number, self.now)
            else:
                self.bridges[peer].receive(peer_number, config, self.now)

    def run(self, seconds):
        for _ in range(seconds):
            self.deliver()
            for bridge in self.bridges:
                bridge.tick(self.now)
            self.deliver()
            self.assert_without_loops()
            self.now += 1

    def forwarding(self):
        """The cables both of whose ends forward."""
        return [
            (first, second)
            for first, second in self.cables.items()
            if first < second and self.state(first) == self.state(second) == FORWARD
        ]

    def state(self, end):
        return self.bridges[end[0]].ports[end[1]].state

    def components(self, cables):
        """The bridges that cables join, and whether a cable closed a loop."""
        group = list(range(len(self.bridges)))

        def top(index):
            while group[index] != index:
                index = group[index]
            return index

        has_loop = False
        for (first, _), (second, _) in cables:
            has_loop |= top(first) == top(second)
            group[top(first)] = top(second)
        return [top(index) for index in range(len(group))], has_loop

    def assert_without_loops(self):
        _, has_loop = self.components(self.forwarding())
        assert not has_loop, self.forwarding()

    def assert_spanned(self):
        all_cables = [(first, second) for first, second in self.cables.items() if first < second]
        wanted, _ = self.components(all_cables)
        found, has_loop = self.components(self.forwarding())
        count = len(found)
        for one in range(count):
            for other in range(count):
                assert (wanted[one] == wanted[other]) == (found[one] == found[other])
        assert not has_loop
        # The lowest bridge of each part is its root.
        for index, bridge in enumerate(self.bridges):
            assert bridge.root & 0xFFFF == min(each for each in range(count) if wanted[each] == wanted[index])


@pytest.mark.parametrize("seed", range(40))
def test_drawn_networks_are_spanned_without_loops(seed):
    draw = random.Random(seed)
    bridges = Bridges(draw.randint(2, 9))
    count, next_port = len(bridges.bridges), 1
    for _ in range(draw.randint(1, 3 * count)):
        # Also to itself, and several times.
        bridges.plug((draw.randrange(count), next_port), (draw.randrange(count), next_port + 1))
        next_port += 2
        bridges.run(draw.choice([0, 0, 1, 20]))
    bridges.run(80)
    bridges.assert_spanned()
    for _ in range(3):
        if bridges.cables and draw.random() < 0.7:
            bridges.cut(draw.choice(sorted(bridges.cables)))
        else:
            bridges.plug((draw.randrange(count), next_port), (draw.randrange(count), next_port + 1))
            next_port += 2
        bridges.run(draw.choice([0, 5, 100]))
    bridges.run(100)
    bridges.assert_spanned()


def test_a_cut_is_told_to_all_that_have_learnt():
    bridges = Bridges(4)
    for first in range(4):
        bridges.plug((first, 1), ((first + 1) % 4, 2))
    bridges.run(80)
    bridges.assert_spanned()
    bridges.flushed.clear()
    bridges.cut((0, 1))
    bridges.run(80)
    bridges.assert_spanned()
    assert bridges.flushed == {0, 1, 2, 3}
    bridges.flushed.clear()
    bridges.run(100)
    assert not bridges.flushed


def test_a_port_forwards_after_twice_the_forward_delay():
    bridges = Bridges(2)
    bridges.plug((0, 1), (1, 1))
    states = []
    for _ in range(40):
        bridges.run(1)
        states.append(bridges.state((1, 1)))
    assert states == [spanning_tree.LISTEN] * 15 + [spanning_tree.LEARN] * 15 + [FORWARD] * 10


class Watcher(RyuApp):
    """Keeps the events."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.states = {}
        self.packets = []
        self.changes = 0

    @set_ev_cls(stplib.EventPortStateChange)
    def state(self, ev):
        self.states[ev.dp.id, ev.port_no] = ev.port_state

    @set_ev_cls(stplib.EventPacketIn)
    def packet(self, ev):
        self.packets.append((ev.msg.datapath.id, ev.msg.match["in_port"]))

    @set_ev_cls(stplib.EventTopologyChange)
    def change(self, ev):
        self.changes += 1


class Network:
    """Two switches, whose ports 1 and 2 are connected twice."""

    def __init__(self, manager, config=None, *others):
        self.manager = manager
        self.stp, self.watcher, *self.others = manager.start(stplib.Stp, Watcher, *others)
        if config:
            self.stp.set_config(config)
        self.switches = {}
        for dpid in (1, 2):
            self.switches[dpid] = manager.switch(dpid=dpid)
            self.switches[dpid].join(1, 2, 3)
        manager.settle()

    def packet_in(self, dpid, in_port, data):
        head = struct.pack("!IHBBQHHII4x2x", 0xFFFFFFFF, len(data), 0, 0, 0, 1, 12, 0x80000004, in_port)
        self.switches[dpid].send(PACKET_IN, head + data)
        self.manager.settle()

    def carry(self):
        sent, self.manager.wire.sent = self.manager.wire.sent, []
        for dpid, data in sent:
            if data[1] != PACKET_OUT:
                self.kept.append((dpid, data))
                continue
            (out_port,) = struct.unpack_from("!I", data, 28)
            if out_port in (1, 2):
                self.packet_in(3 - dpid, out_port, data[40:])

    def run(self, seconds):
        self.kept = []
        for _ in range(seconds):
            self.carry()
            self.manager.baton.advance(1)

    def ports(self, state):
        return sorted(where for where, found in self.watcher.states.items() if found == state)


PAYLOAD = bytes([2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8]) + b"\x90\0" + b"x" * 50


def test_switches_with_a_loop_block_one_port(manager):
    network = Network(manager)
    network.packet_in(1, 3, PAYLOAD)
    assert network.watcher.packets == []
    network.run(40)
    # Of the switch that is not the root, the way over the higher port of the root.
    assert network.ports(stplib.PORT_STATE_BLOCK) == [(2, 2)]
    assert len(network.ports(stplib.PORT_STATE_FORWARD)) == 5
    mods = [(dpid, struct.unpack("!I4x6x2xII", data[8:32])) for dpid, data in network.kept if data[1] == PORT_MOD]
    no_forward, mask = 32, 32 | 4 | 1
    last = {(dpid, number): (config, found) for dpid, (number, config, found) in mods}
    assert last.pop((2, 2)) == (no_forward, mask)
    assert list(last.values()) == [(0, mask)] * 5
    network.packet_in(2, 2, PAYLOAD)
    assert network.watcher.packets == []
    network.packet_in(2, 1, PAYLOAD)
    assert network.watcher.packets == [(2, 1)]


def test_another_port_takes_over_when_a_link_goes(manager):
    network = Network(manager)
    network.run(40)
    changes = network.watcher.changes
    description = bytearray(port(1))
    struct.pack_into("!I", description, 36, 1)
    for dpid in (1, 2):
        network.switches[dpid].send(PORT_STATUS, struct.pack("!B7x", 2) + bytes(description))
    network.run(60)
    assert network.ports(stplib.PORT_STATE_BLOCK) == []
    assert (2, 2) in network.ports(stplib.PORT_STATE_FORWARD)
    assert network.watcher.changes > changes


def test_settings_choose_the_root_and_the_port(manager):
    network = Network(manager, {2: {"bridge": {"priority": 0x1000}}, 1: {"ports": {1: {"path_cost": 200}, 3: {"enable": False}}}})
    network.run(40)
    assert network.ports(stplib.PORT_STATE_BLOCK) == [(1, 1)]
    assert (1, 3) not in network.watcher.states


def test_the_learning_switch_forgets_when_the_tree_changes(manager):
    manager_config = Network(manager, None)
    app = SimpleSwitch13(stplib=manager_config.stp)
    app.mac_to_port = {1: {"02:00:00:00:00:09": 3}}
    manager_config.run(40)
    event = stplib.EventTopologyChange(manager_config.stp.bridge_list[1].dp)
    app._topology_change_handler(event)
    assert app.mac_to_port == {}
    (deletion,) = [data for _, data in manager.wire.sent if data[1] == FLOW_MOD]
    assert deletion[8 + 17] == 3


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({1: {"bridges": {}}}, "the configuration of switch 1 has 'bridges': expected bridge, ports"),
        ({1: {"bridge": {"priority": 5}}}, "priority of bridge of switch 1 is 5: expected 0 to 61440 in steps of 4096"),
        ({1: {"bridge": {"max_age": 41}}}, "max_age of bridge of switch 1 is 41: expected 6 to 40"),
        (
            {1: {"bridge": {"max_age": 40}}},
            "max_age of bridge of switch 1 is 40: expected 6 to 28, from hello_time and fwd_delay",
        ),
        ({1: {"ports": {2: {"path_cost": 0}}}}, "path_cost of port 2 of switch 1 is 0: expected 1 to 4294967295"),
        ({1: {"ports": {2: {"speed": 5}}}}, "port 2 of switch 1 has 'speed': expected priority, path_cost"),
    ],
)
def test_wrong_settings_are_named(manager, config, expected):
    with pytest.raises(ValueError) as raised:
        Network(manager, config)
    assert str(raised.value) == expected


def test_other_messages_to_bridges_change_nothing(manager):
    network = Network(manager)
    network.run(40)
    before = dict(network.watcher.states)

    def frame(*protocols):
        made = packet.Packet()
        made.add_protocol(ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, "02:00:00:00:00:08", 38))
        for protocol in protocols:
            made.add_protocol(protocol)
        made.serialize()
        return bytes(made.data)

    control = llc.llc(llc.SAP_BPDU, llc.SAP_BPDU, llc.ControlFormatU())
    good = frame(control, bpdu.ConfigurationBPDUs())
    wrong = [good[:length] for length in range(14, 14 + 3 + 35)]
    wrong += [frame(control, bpdu.RstBPDUs()), frame(control, b"\0\0\7\7"), frame(control, b"\1\0\0\0" + bytes(31))]
    wrong += [frame(control, bpdu.ConfigurationBPDUs(message_age=20)), frame(b"no LLC")]
    for data in wrong:
        network.packet_in(1, 3, data)
        network.packet_in(1, 99, data)
    network.run(3)
    assert network.watcher.states == before
    assert network.watcher.packets == []
