"""Learning switches on lacplib and igmplib: what their switches are sent."""

import random
import struct

import pytest
from ryu.app.simple_switch_13 import SimpleSwitch13
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import igmplib, lacplib
from ryu.lib.packet import ethernet, igmp, ipv4, packet, slow
from ryu.ofproto import ofproto_parser, ofproto_protocol
from simulated import PACKET_IN

FLOW_REMOVED = 11
PACKET_OUT, FLOW_MOD = "OFPPacketOut", "OFPFlowMod"
HOST, PEER = "02:00:00:00:09:01", "02:00:00:00:01:01"


class LacpSwitch(SimpleSwitch13):
    """Learns, and forgets the switch's addresses when a port of the aggregate changes."""

    _CONTEXTS = {"lacplib": lacplib.LacpLib}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.changes = []

    @set_ev_cls(lacplib.EventPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev):
        super()._packet_in_handler(ev)

    @set_ev_cls(lacplib.EventSlaveStateChanged, MAIN_DISPATCHER)
    def changed(self, ev):
        self.changes.append((ev.datapath.id, ev.port, ev.enabled))
        self.mac_to_port.pop(ev.datapath.id, None)


class IgmpSwitch(SimpleSwitch13):
    """Learns, and notes the groups."""

    _CONTEXTS = {"igmplib": igmplib.IgmpLib}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.changes = []

    @set_ev_cls(igmplib.EventPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev):
        super()._packet_in_handler(ev)

    @set_ev_cls(igmplib.EventMulticastGroupStateChanged, MAIN_DISPATCHER)
    def changed(self, ev):
        self.changes.append((ev.reason, ev.address, ev.src, ev.dsts))


class Network:
    """A switch, a module and an application on it."""

    def __init__(self, manager, module, app, **options):
        self.manager = manager
        self.module, self.app = manager.start(module, app)
        self.description = ofproto_protocol.ProtocolDesc(4)
        self.options = options

    def join(self):
        self.switch = self.manager.switch(**self.options)
        self.switch.join(1, 2, 3, 4)
        self.manager.settle()
        return self.sent()

    def sent(self):
        """Returns the messages that were sent since the last call."""
        sent, self.manager.wire.sent = self.manager.wire.sent, []
        messages = [ofproto_parser.msg(self.description, *ofproto_parser.header(data), data) for _, data in sent]
        return [message for message in messages if type(message).__name__ in (PACKET_OUT, FLOW_MOD)]

    def entries(self):
        """Returns the changes of entries since the last call: command, fields, and ports."""
        found = []
        for message in self.sent():
            if type(message).__name__ == FLOW_MOD:
                ports = [action.port for each in message.instructions for action in each.actions]
                found.append((message.command, dict(message.match.items()), ports))
        return found

    def receive(self, port, *protocols):
        made = packet.Packet(protocols=list(protocols))
        made.serialize()
        self.receive_bytes(port, bytes(made.data))

    def receive_bytes(self, port, data):
        head = struct.pack("!IHBBQHHII4x2x", 0xFFFFFFFF, len(data), 0, 0, 0, 1, 12, 0x80000004, port)
        self.switch.send(PACKET_IN, head + data)
        self.manager.settle()

    def removed(self, port, reason=0):
        """An entry of LACP was removed."""
        match = self.description.ofproto_parser.OFPMatch(in_port=port, eth_src=PEER, eth_type=0x8809)
        body = bytearray(struct.pack("!QHBBIIHHQQ", 0, 0xFFFF, reason, 0, 0, 0, 0, 0, 0, 0))
        match.encode(body)
        self.switch.send(FLOW_REMOVED, bytes(body))
        self.manager.settle()

    def unit(self, port, **settings):
        head = ethernet.ethernet(slow.SLOW_PROTOCOL_MULTICAST, PEER, 0x8809)
        self.receive(port, head, slow.lacp(actor_system="02:00:00:00:01:ff", actor_state_activity=1, **settings))

    def igmp(self, port, message):
        self.receive(port, ethernet.ethernet("01:00:5e:00:00:01", HOST), ipv4.ipv4(proto=2, ttl=1, src="10.0.0.9"), message)

    def query(self, port, code=100):
        self.igmp(port, igmp.igmp(igmp.IGMP_TYPE_QUERY, code))

    def report(self, port, group="225.0.0.1"):
        self.igmp(port, igmp.igmp(igmp.IGMP_TYPE_REPORT_V2, 0, 0, group))

    def leave(self, port, group="225.0.0.1"):
        self.igmp(port, igmp.igmp(igmp.IGMP_TYPE_LEAVE, 0, 0, group))


CONTROLLER = 0xFFFFFFFD
ADD, DELETE = 0, 3


def at(port, group="225.0.0.1"):
    return {"in_port": port, "eth_type": 0x800, "ipv4_dst": group}


@pytest.fixture
def lacp(manager):
    network = Network(manager, lacplib.LacpLib, LacpSwitch, dpid=5)
    network.module.add(dpid=5, ports=[1, 2])
    network.join()
    return network


@pytest.fixture
def snooping(manager):
    network = Network(manager, igmplib.IgmpLib, IgmpSwitch)
    network.join()
    return network


def test_a_port_of_an_aggregate_comes_and_goes(lacp):
    lacp.app.mac_to_port = {5: {HOST: 3}}
    lacp.unit(1, actor_state_timeout=1)
    assert lacp.app.changes == [(5, 1, True)] and lacp.app.mac_to_port == {}
    entry, answer = lacp.sent()
    assert (entry.idle_timeout, entry.priority, entry.flags) == (3, 0xFFFF, 1)
    assert dict(entry.match.items()) == {"in_port": 1, "eth_src": PEER, "eth_type": 0x8809}
    assert entry.instructions[0].actions[0].port == CONTROLLER
    unit = packet.Packet(answer.data).get_protocol(slow.lacp)
    assert (answer.in_port, answer.actions[0].port) == (1, 0xFFFFFFF8)
    assert (unit.actor_port, unit.partner_system, unit.actor_state_activity) == (1, "02:00:00:00:01:ff", 0)
    # Another one is answered, and adds no entry.
    lacp.unit(1, actor_state_timeout=1)
    assert [type(message).__name__ for message in lacp.sent()] == [PACKET_OUT]
    lacp.removed(1)
    lacp.removed(1)
    assert lacp.app.changes == [(5, 1, True), (5, 1, False)]
    lacp.unit(1)
    assert [type(message).__name__ for message in lacp.sent()] == [FLOW_MOD, PACKET_OUT]
    assert lacp.app.changes[-1] == (5, 1, True)


def test_other_packets_are_learnt_from(lacp):
    lacp.receive(3, ethernet.ethernet("02:00:00:00:00:08", HOST, 0x9000), b"x" * 50)
    assert lacp.app.mac_to_port == {5: {HOST: 3}}


def test_a_port_without_an_aggregate_is_not_answered(lacp):
    lacp.unit(3)
    lacp.removed(3)
    assert lacp.sent() == [] and lacp.app.changes == []


def test_an_answer_without_the_local_port_has_the_ports_address(lacp):
    lacp.unit(2)
    answer = packet.Packet(lacp.sent()[-1].data).get_protocol(slow.lacp)
    assert answer.actor_system == "02:00:00:00:00:02"


def test_a_unit_from_a_port_that_does_not_exist_is_not_answered(lacp):
    lacp.module.add(dpid=5, ports=[8, 9])
    lacp.unit(9)
    assert lacp.sent() == [] and lacp.app.changes == []


@pytest.mark.parametrize(
    ("ports", "sentence"),
    [
        ([3], "ports of an aggregate of switch 5 are [3]: expected a list of 2 or more"),
        ((3, 4), "ports of an aggregate of switch 5 are (3, 4): expected a list of 2 or more"),
        ([2, 3], "port 2 of switch 5 belongs to an aggregate already"),
    ],
)
def test_wrong_aggregates_are_named(lacp, ports, sentence):
    with pytest.raises(ValueError) as raised:
        lacp.module.add(dpid=5, ports=ports)
    assert str(raised.value) == sentence


def test_joining_and_leaving_a_group_makes_entries(snooping):
    snooping.query(4)
    assert snooping.sent()[0].actions[0].port == 0xFFFFFFFB
    snooping.report(1)
    assert snooping.entries() == [(ADD, at(1), [CONTROLLER]), (ADD, at(4), [1])]
    snooping.report(2)
    assert snooping.entries() == [(ADD, at(2), [CONTROLLER]), (ADD, at(4), [1, 2])]
    snooping.leave(1)
    assert snooping.entries() == []
    snooping.manager.baton.advance(1)
    assert snooping.entries() == [(DELETE, at(1), []), (ADD, at(4), [2])]
    snooping.leave(2)
    snooping.manager.baton.advance(1)
    assert snooping.entries() == [(DELETE, at(2), []), (DELETE, at(4), [])]
    group = "225.0.0.1"
    assert snooping.app.changes == [
        (igmplib.MG_GROUP_ADDED, group, 4, []),
        (igmplib.MG_MEMBER_CHANGED, group, 4, [1]),
        (igmplib.MG_MEMBER_CHANGED, group, 4, [1, 2]),
        (igmplib.MG_MEMBER_CHANGED, group, 4, [2]),
        (igmplib.MG_GROUP_REMOVED, group, 4, []),
    ]


def test_members_follow_the_querier_to_another_port(snooping):
    snooping.query(4)
    snooping.report(1)
    snooping.entries()
    snooping.query(3)
    assert snooping.entries() == [(DELETE, at(4), []), (ADD, at(3), [1])]
    assert snooping.app.changes[-1] == (igmplib.MG_MEMBER_CHANGED, "225.0.0.1", 3, [1])


def test_a_switch_that_has_left_is_forgotten(snooping):
    snooping.query(4)
    snooping.report(1)
    snooping.leave(1)
    snooping.switch.connection.switch_down()
    snooping.manager.settle()
    snooping.sent()
    snooping.manager.baton.advance(60)
    assert snooping.sent() == []
    snooping.join()
    # It asks nobody before the next query.
    snooping.report(1)
    assert snooping.entries() == [(ADD, at(1), [CONTROLLER])]


@pytest.mark.parametrize(("code", "seconds"), [(100, 10), (0, 10), (10, 1), (0x80, 12.8), (0xFF, 3174.4)])
def test_a_group_is_removed_after_the_time_of_the_query(snooping, code, seconds):
    snooping.query(4)
    snooping.report(1)
    snooping.query(4, code)
    snooping.entries()
    snooping.manager.baton.advance(seconds - 0.1)
    assert snooping.entries() == []
    snooping.manager.baton.advance(0.2)
    assert snooping.entries() == [(DELETE, at(4), []), (DELETE, at(1), [])]


def test_a_querier_asks_each_minute(manager):
    network = Network(manager, igmplib.IgmpLib, IgmpSwitch)
    network.module.set_querier_mode(dpid=5, server_port=4)
    (query,) = [message for message in network.join() if type(message).__name__ == PACKET_OUT]
    message = packet.Packet(query.data).get_protocol(igmp.igmp)
    assert (message.msgtype, message.maxresp, message.address) == (igmp.IGMP_TYPE_QUERY, 100, "0.0.0.0")
    network.report(1)
    network.report(2)
    assert network.entries()[-2:] == [(ADD, at(4), [1, 2]), (ADD, at(2), [CONTROLLER])]
    manager.baton.advance(60)
    assert [type(message).__name__ for message in network.sent()] == [PACKET_OUT]
    network.report(2)
    manager.baton.advance(10)
    assert network.entries() == [(ADD, at(4), [2]), (DELETE, at(1), [])]
    network.leave(2)
    assert network.entries() == [(DELETE, at(2), []), (DELETE, at(4), [])]
    network.switch.connection.switch_down()
    manager.baton.advance(200)
    assert network.sent() == []


@pytest.mark.parametrize("module", ["lacp", "snooping"])
def test_changed_messages_never_raise(request, module, caplog):
    network = request.getfixturevalue(module)
    numbers = random.Random(3)
    frames = [
        packet.Packet(protocols=[ethernet.ethernet(ethertype=0x8809), slow.lacp()]),
        *(
            packet.Packet(protocols=[ethernet.ethernet(), ipv4.ipv4(proto=2), message])
            for message in (igmp.igmp(0x11), igmp.igmp(0x16, 0, 0, "225.0.0.1"), igmp.igmpv3_query(), igmp.igmpv3_report())
        ),
    ]
    for frame in frames:
        frame.serialize()
        for _ in range(60):
            changed = bytearray(frame.data[: numbers.randrange(1, len(frame.data) + 1)])
            changed[numbers.randrange(len(changed))] = numbers.randrange(256)
            network.receive_bytes(numbers.randrange(1, 6), bytes(changed))
    network.manager.baton.advance(4000)
    assert not [record for record in caplog.records if record.exc_info]
