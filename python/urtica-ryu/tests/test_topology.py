"""The network as ryu.topology finds it, on simulated time."""

import logging
import struct

import pytest
from ryu import cfg
from ryu.base.app_manager import RyuApp
from ryu.controller.handler import set_ev_cls
from ryu.lib.packet import arp, ethernet, ipv4, ipv6, packet
from ryu.topology import api, event
from ryu.topology.switches import LINK_TIMEOUT_S, Host, Link, LLDPPacket, Switches
from simulated import PACKET_IN, PORT_STATUS, port

from urtica_ryu import hub

PACKET_OUT, FLOW_MOD = 13, 14
DELETED, MODIFIED = 1, 2
LINK_DOWN = 1

EVENTS = [
    event.EventSwitchEnter,
    event.EventSwitchLeave,
    event.EventSwitchReconnected,
    event.EventPortAdd,
    event.EventPortDelete,
    event.EventPortModify,
    event.EventLinkAdd,
    event.EventLinkDelete,
    event.EventHostAdd,
    event.EventHostMove,
    event.EventHostDelete,
]


class Watcher(RyuApp):
    """Keeps the events, by name."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    @set_ev_cls(EVENTS)
    def watch(self, ev):
        self.seen.append(ev)

    def names(self):
        names = [type(ev).__name__.removeprefix("Event") for ev in self.seen]
        self.seen.clear()
        return names


class Network:
    """Switches, and cables between their ports."""

    def __init__(self, manager):
        self.manager = manager
        self.found, self.watcher = manager.start(Switches, Watcher)
        self.switches = {}
        self.cables = {}

    def add(self, dpid, ports=2, version=4):
        switch = self.manager.switch(dpid=dpid, version=version)
        self.switches[dpid] = switch
        switch.join(*range(1, ports + 1))
        self.manager.settle()
        return switch

    def connect(self, first, second):
        self.cables[first] = second
        self.cables[second] = first

    def packet_in(self, dpid, in_port, data):
        version = self.switches[dpid].version
        if version == 4:
            head = struct.pack("!IHBBQHHII4x2x", 0xFFFFFFFF, len(data), 0, 0, 0, 1, 12, 0x80000004, in_port)
        else:
            head = struct.pack("!IHHBx", 0xFFFFFFFF, len(data), in_port, 0)
        self.switches[dpid].send(PACKET_IN, head + data)
        self.manager.settle()

    def sent(self, kind):
        """Takes the messages of a kind out of what was sent: datapath id and body."""
        found = [(dpid, data[8:]) for dpid, data in self.manager.wire.sent if data[1] == kind]
        self.manager.wire.sent = [message for message in self.manager.wire.sent if message[1][1] != kind]
        return found

    def probes(self):
        """Takes the probes that were sent: datapath id, port, data."""
        found = []
        for dpid, body in self.sent(PACKET_OUT):
            if self.switches[dpid].version == 4:
                (out_port,) = struct.unpack_from("!I", body, 16 + 4)
                found.append((dpid, out_port, body[32:]))
            else:
                (out_port,) = struct.unpack_from("!H", body, 8 + 4)
                found.append((dpid, out_port, body[16:]))
        return found

    def carry(self):
        """Carries the probes along the cables."""
        for dpid, out_port, data in self.probes():
            if (dpid, out_port) in self.cables:
                self.packet_in(*self.cables[dpid, out_port], data)

    def advance(self, seconds):
        """Lets time pass, and carries probes."""
        for _ in range(int(seconds * 2)):
            self.manager.baton.advance(0.5)
            self.carry()

    def ask(self, request, *arguments):
        answers = []
        hub.spawn(lambda: answers.append(request(self.watcher, *arguments)))
        self.manager.settle()
        return answers[0]

    def port_status(self, dpid, number, reason=MODIFIED, state=0):
        description = bytearray(port(number))
        struct.pack_into("!I", description, 36, state)
        self.switches[dpid].send(PORT_STATUS, struct.pack("!B7x", reason) + bytes(description))
        self.manager.settle()


@pytest.fixture
def observes(monkeypatch):
    monkeypatch.setitem(cfg.CONF._values, "observe_links", True)


@pytest.fixture
def network(observes, manager):
    return Network(manager)


@pytest.fixture
def pair(network):
    """Two switches whose ports 2 are connected."""
    network.connect((1, 2), (2, 2))
    network.add(1)
    network.add(2)
    network.advance(1)
    network.watcher.seen.clear()
    return network


def ends(links):
    return sorted(((link.src.dpid, link.src.port_no), (link.dst.dpid, link.dst.port_no)) for link in links)


BOTH = [((1, 2), (2, 2)), ((2, 2), (1, 2))]


@pytest.mark.parametrize("versions", [(4, 4), (1, 4), (1, 1)])
def test_links_are_found_in_both_directions(network, versions):
    network.connect((1, 2), (2, 2))
    for dpid, version in zip((1, 2), versions, strict=True):
        network.add(dpid, version=version)
    assert [dpid for dpid, _ in network.sent(FLOW_MOD)] == [1, 2]
    assert network.watcher.names() == ["SwitchEnter", "SwitchEnter"]
    network.advance(1)
    assert network.watcher.names() == ["LinkAdd", "LinkAdd"]
    assert ends(network.ask(api.get_link)) == ends(network.ask(api.get_all_link)) == BOTH
    assert ends(network.ask(api.get_link, 2)) == BOTH[1:]
    assert network.ask(api.get_link, 3) == []
    network.advance(30)
    assert network.watcher.names() == []


def test_each_port_is_probed_once_a_second(network):
    network.add(1, ports=3)
    for _ in range(3):
        probes = network.probes()
        assert sorted((dpid, port) for dpid, port, _ in probes) == [(1, 1), (1, 2), (1, 3)]
        assert all(LLDPPacket.lldp_parse(data) == (dpid, port) for dpid, port, data in probes)
        network.manager.baton.advance(1)


def test_probes_of_many_ports_leave_in_bursts(network):
    network.add(1, ports=90)
    assert len(network.probes()) == 20
    for _ in range(4):
        network.manager.baton.advance(0.05)
    assert len(network.probes()) == 70


def test_a_link_without_probes_is_gone_after_a_while(pair):
    pair.cables.clear()
    pair.advance(LINK_TIMEOUT_S - 2)
    assert pair.watcher.names() == []
    pair.advance(8)
    assert pair.watcher.names() == ["LinkDelete", "LinkDelete"]
    assert pair.ask(api.get_all_link) == []


def test_a_link_goes_with_its_port_and_comes_back(pair):
    pair.port_status(1, 2, state=LINK_DOWN)
    assert pair.watcher.names() == ["PortModify", "LinkDelete", "LinkDelete"]
    pair.carry()
    pair.port_status(1, 2)
    pair.advance(1)
    assert pair.watcher.names() == ["PortModify", "LinkAdd", "LinkAdd"]
    assert ends(pair.ask(api.get_all_link)) == BOTH
    pair.watcher.seen.clear()
    pair.port_status(2, 2, DELETED)
    assert pair.watcher.names() == ["PortDelete", "LinkDelete", "LinkDelete"]
    assert [port.port_no for port in pair.ask(api.get_switch, 2)[0].ports] == [1]
    pair.port_status(2, 7, reason=0)
    assert pair.watcher.names() == ["PortAdd"]


def test_a_switch_takes_its_links_along(pair):
    pair.switches[2].connection.switch_down()
    pair.manager.settle()
    assert pair.watcher.names() == ["LinkDelete", "LinkDelete", "SwitchLeave"]
    assert [switch.dp.id for switch in pair.ask(api.get_all_switch)] == [1]
    assert pair.ask(api.get_switch, 2) == []
    assert all(dpid == 1 for dpid, _, _ in pair.probes())


def test_a_switch_that_connects_again_is_told_of_once(pair):
    pair.add(2)
    assert pair.watcher.names()[0] == "SwitchReconnected"


def frame(src, *protocols, ethertype=0x0800):
    made = packet.Packet()
    made.add_protocol(ethernet.ethernet(src=src, dst="ff:ff:ff:ff:ff:ff", ethertype=ethertype))
    for protocol in protocols:
        made.add_protocol(protocol)
    made.serialize()
    return bytes(made.data)


MAC = "02:00:00:00:00:09"
ARP = frame(MAC, arp.arp(src_mac=MAC, src_ip="10.0.0.9", dst_ip="10.0.0.1"), ethertype=0x0806)


def test_hosts_are_found_with_their_addresses(pair):
    pair.packet_in(1, 1, ARP)
    assert pair.watcher.names() == ["HostAdd"]
    pair.packet_in(1, 1, ARP)
    pair.packet_in(1, 1, frame(MAC, ipv4.ipv4(src="10.0.0.8", dst="10.0.0.1")))
    pair.packet_in(1, 1, frame(MAC, ipv4.ipv4(src="0.0.0.0", dst="255.255.255.255")))
    pair.packet_in(1, 1, frame(MAC, ipv6.ipv6(src="fe80::9", dst="ff02::1"), ethertype=0x86DD))
    assert pair.watcher.names() == []
    (host,) = pair.ask(api.get_host, 1)
    assert (host.mac, host.ipv4, host.ipv6) == (MAC, ["10.0.0.9", "10.0.0.8"], ["fe80::9"])
    port = host.to_dict()["port"]
    assert port.pop("hw_addr") == host.port.hw_addr
    assert port == {"dpid": "0000000000000001", "port_no": "00000001", "name": "eth1"}
    assert pair.ask(api.get_host, 2) == []


def test_hosts_move_and_leave(pair):
    pair.packet_in(1, 1, ARP)
    pair.watcher.seen.clear()
    pair.packet_in(2, 1, ARP)
    (moved,) = pair.watcher.seen
    assert (moved.src.port.dpid, moved.dst.port.dpid) == (1, 2)
    assert pair.watcher.names() == ["HostMove"]
    assert len(pair.ask(api.get_all_host)) == 1
    pair.port_status(2, 1, state=LINK_DOWN)
    assert pair.watcher.names() == ["PortModify", "HostDelete"]


def test_a_port_between_switches_has_no_hosts(network):
    network.add(1)
    network.packet_in(1, 2, ARP)
    assert network.watcher.names() == ["SwitchEnter", "HostAdd"]
    network.connect((1, 2), (2, 2))
    network.add(2)
    network.advance(1)
    assert "HostDelete" in network.watcher.names()
    network.packet_in(1, 2, ARP)
    assert network.ask(api.get_all_host) == []


def test_packets_that_are_no_probes_find_no_links(pair, caplog):
    good = LLDPPacket.lldp_packet(2, 1, "02:00:00:00:00:01")
    # Behind the end are zeros.
    wrong = [good[:length] for length in range(14, len(good.rstrip(b"\0")) + 2)]
    wrong += [good.replace(b"dpid:", text) for text in (b"dpie:", b"dpid;", b"\xff\xff\xff\xff\xff")]
    wrong += [LLDPPacket.lldp_packet(9, 1, "02:00:00:00:00:01"), LLDPPacket.lldp_packet(2, 99, "02:00:00:00:00:01")]
    # A switch's own probe, which came back.
    wrong.append(LLDPPacket.lldp_packet(1, 1, "02:00:00:00:00:01"))
    with caplog.at_level(logging.ERROR):
        for data in wrong:
            pair.packet_in(1, 1, data)
        pair.packet_in(1, 99, good)
    assert pair.watcher.names() == []
    assert not caplog.records
    pair.packet_in(1, 1, good)
    assert pair.watcher.names() == ["LinkAdd"]


def test_without_the_option_switches_alone_are_known(manager, monkeypatch):
    monkeypatch.setitem(cfg.CONF._values, "observe_links", False)
    network = Network(manager)
    network.add(1)
    network.advance(5)
    network.packet_in(1, 1, LLDPPacket.lldp_packet(1, 2, "02:00:00:00:00:01"))
    assert network.watcher.names() == ["SwitchEnter"]
    assert network.sent(PACKET_OUT) == network.sent(FLOW_MOD) == []
    (switch,) = network.ask(api.get_all_switch)
    assert switch.to_dict()["dpid"] == "0000000000000001"
    assert [port["name"] for port in switch.to_dict()["ports"]] == ["eth1", "eth2"]


def test_links_and_hosts_are_equal_by_their_ends(pair):
    (first, second) = sorted(pair.ask(api.get_all_link), key=lambda link: link.src.dpid)
    assert Link(first.src, first.dst) == first != second
    assert len({first, second, Link(first.src, first.dst)}) == 2
    assert Link(second.dst, second.src) == first
    assert Host(MAC, first.src) == Host(MAC, first.src) != Host(MAC, first.dst)
    assert first.to_dict()["dst"]["dpid"] == "0000000000000002"
