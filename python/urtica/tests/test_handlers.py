"""What handlers get, do and raise."""

import logging

import pytest
import urtica
from learning import Learning


class Recording(Learning):
    """Notes what happens, in a list for all switches."""

    tick_interval = 1.0

    def __init__(self, info):
        super().__init__(info)
        self.info = info
        events.append(("joined", info.dpid, info.version))

    def switch_up(self, switch):
        events.append(("up", switch.dpid, [port.port_no for port in switch.ports]))

    def switch_down(self, info):
        events.append(("down", info.dpid))

    def packet_in(self, switch, packet):
        events.append(("packet", switch.dpid, packet))
        super().packet_in(switch, packet)

    def port_status(self, switch, status):
        events.append(("port", switch.dpid, status.reason, status.port.port_no, status.port.is_up))

    def flow_removed(self, switch, removed):
        events.append(("removed", switch.dpid, removed))

    def error(self, switch, error):
        events.append(("error", switch.dpid, error.xid, error.code))

    def tick(self, switch):
        events.append(("tick", switch.dpid, switch.now))


events = []


@pytest.fixture(autouse=True)
def no_events():
    events.clear()


def of(kind):
    return [event for event in events if event[0] == kind]


@pytest.mark.parametrize("openflow", ["1.0", "1.3"])
def test_handlers_are_told_of_switches_ports_and_time(net, openflow):
    line = net("linear,2", app=Recording, openflow=openflow)
    assert sorted(of("joined")) == [("joined", 1, openflow), ("joined", 2, openflow)]
    assert sorted(of("up")) == [("up", 1, [1, 2]), ("up", 2, [1, 2])]
    line.run_for(3)
    assert len(of("tick")) >= 4
    line.cut("s1", "s2")
    line.run_for(3)
    assert ("port", 1, "modify", 2, False) in events
    line.stop_switch("s2")
    line.run_for(60)
    assert of("down") == [("down", 2)]


def test_a_packet_in_has_the_fields_of_its_headers(net):
    pair = net("single,2", app=Recording)
    assert pair.ping("h1", "h2")
    packets = [packet for _, _, packet in of("packet")]
    arp = next(packet for packet in packets if packet.eth_type == 0x0806)
    assert (arp.ip_src, arp.ip_dst) == ("10.0.0.1", "10.0.0.2")
    assert (arp.eth_src, arp.eth_dst) == ("00:00:00:00:00:01", "ff:ff:ff:ff:ff:ff")
    assert arp.in_port == 1 and arp.reason == "no_match"
    echo = next(packet for packet in packets if packet.ip_proto == 1)
    assert echo.eth_type == 0x0800 and echo.vlan_vid is None and echo.src_port is None
    assert len(echo.data) <= echo.total_len and echo.data[12:14] == b"\x08\x00"
    assert "port" in repr(echo)


def test_entries_are_installed_deleted_and_reported(net):
    class App(Recording):
        def switch_up(self, switch):
            switch.install("arp", "flood")
            switch.install("ip", urtica.FLOOD, priority=9, hard_timeout=5, cookie=77, notify=True)
            switch.install("tcp,tp_dst=80")
            switch.install("udp", "output:1")
            switch.delete("udp")

    pair = net("single,2", app=App)
    flows = "\n".join(pair.dump_flows("s1"))
    assert "tcp,tp_dst=80 actions=drop" in flows and "udp" not in flows
    assert pair.ping("h1", "h2") and not of("packet")
    pair.run_for(10)
    [(_, dpid, removed)] = of("removed")
    assert (dpid, removed.match, removed.reason) == (1, "ip", "hard_timeout")
    assert (removed.priority, removed.cookie, removed.table_id) == (9, 77, 0)
    assert removed.packet_count >= 2 and removed.byte_count > 0 and removed.duration >= 5


def test_packets_of_the_programs_own_are_sent(net):
    class Sender(urtica.App):
        def switch_up(self, switch):
            self.xids = [switch.send_packet(bytes(60), "output:1,output:2")]

    pair = net("single,2", app=Sender)
    pair.run_for(1)


def test_a_refusal_is_reported_with_the_specifications_name(net):
    class App(Recording):
        def switch_up(self, switch):
            self.xid = switch.install("", "group:99")

        def error(self, switch, error):
            super().error(switch, error)
            assert error.xid == self.xid

    net("single,1", app=App, openflow="1.3")
    [(_, dpid, _, code)] = of("error")
    assert dpid == 1 and "OFPBAC_BAD_OUT_GROUP" in code


def test_an_exception_is_logged_with_its_traceback_and_costs_the_switch(net, caplog):
    class Faulty(Recording):
        def packet_in(self, switch, packet):
            if switch.dpid == 1 and not of("raised"):
                events.append(("raised",))
                raise ZeroDivisionError("on purpose")
            super().packet_in(switch, packet)

    with caplog.at_level(logging.ERROR, "urtica"):
        line = net("linear,2", app=Faulty)
        line.ping("h1", "h2")
        line.run_for(30)
    [record] = caplog.records
    assert record.getMessage() == (
        "switch 0000000000000001: packet_in raised an exception; disconnecting the switch"
    )
    assert "in packet_in\n    raise ZeroDivisionError" in caplog.text
    assert of("down") == [("down", 1)]
    assert len([event for event in of("joined") if event[1] == 1]) == 2, "it connects again"
    assert line.ping("h1", "h2")
    [error] = line.take_exceptions()
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("method", ["__init__", "switch_up", "port_status", "tick"])
def test_an_exception_in_any_method_costs_its_switch_alone(net, method):
    def fail(self, argument, *_):
        raise LookupError(method)

    faulty = type("Faulty", (Recording,), {method: fail})

    def app(info):
        return faulty(info) if info.dpid == 1 else Recording(info)

    line = net("linear,2", app=app)
    line.cut("s1", "s2")
    line.run_for(5)
    errors = line.take_exceptions()
    assert errors and all(isinstance(error, LookupError) for error in errors)
    assert ("down", 2) not in events


def test_what_ends_the_program_is_raised_by_the_network(net):
    class Interrupted(urtica.App):
        def packet_in(self, switch, packet):
            raise KeyboardInterrupt

    pair = net("single,2", app=Interrupted)
    with pytest.raises(KeyboardInterrupt):
        pair.ping_all()
    assert pair.take_exceptions() == []


def test_a_switch_cannot_be_used_after_the_call(net):
    kept = []

    class Keeping(urtica.App):
        def packet_in(self, switch, packet):
            kept.append((switch, packet))

    pair = net("single,2", app=Keeping)
    pair.ping("h1", "h2")
    switch, packet = kept[0]
    with pytest.raises(RuntimeError, match="only during the handler's call"):
        switch.forward(packet, urtica.FLOOD)
    assert switch.dpid == 1


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda switch: switch.install("in_prt=1"), ValueError, "did you mean 'in_port'"),
        (lambda switch: switch.install("ip", "outptu:2"), ValueError, "outptu:2"),
        (lambda switch: switch.install("ip", 1.5), TypeError, "a port's number"),
        (lambda switch: switch.install("ip", "output:1", priority=70000), OverflowError, "out of range"),
        (lambda switch: switch.install("ipv6,ipv6_src=::1", "output:1"), ValueError, "1.0"),
    ],
)
def test_wrong_values_are_errors_where_they_are_given(net, call, kind, sentence):
    caught = []

    class Wrong(urtica.App):
        def switch_up(self, switch):
            with pytest.raises(kind, match=sentence) as error:
                call(switch)
            caught.append(error)

    net("single,1", app=Wrong, openflow="1.0")
    assert caught


def test_any_callable_is_a_program(net):
    class Hub:
        """Not derived from App, and has only this."""

        def packet_in(self, switch, packet):
            switch.forward(packet, "flood")

    assert net("linear,3", app=lambda info: Hub()).ping_all()
