"""Applications: how events reach handlers. Switches are frames, time is simulated, so that each order is exact."""

import logging
import struct
import types

import pytest
from ryu.base import app_manager
from ryu.base.app_manager import RyuApp
from ryu.controller import dpset, event, ofp_event
from ryu.controller.handler import (
    CONFIG_DISPATCHER,
    DEAD_DISPATCHER,
    HANDSHAKE_DISPATCHER,
    MAIN_DISPATCHER,
    set_ev_cls,
    set_ev_handler,
)
from ryu.ofproto import ofproto_protocol, ofproto_v1_0, ofproto_v1_3
from simulated import FEATURES_REPLY, HELLO, PACKET_IN, PORT_STATUS, port

from urtica_ryu import hub
from urtica_ryu.link import MAX_FRAMES
from urtica_ryu.loading import LoadError

STATES = [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER, DEAD_DISPATCHER]


@pytest.fixture
def log():
    return []


def logging_app(log, ev_cls, states, show=lambda ev: ev):
    """Returns a class with one handler."""

    class App(RyuApp):
        @set_ev_cls(ev_cls, states)
        def handle(self, ev):
            log.append(show(ev))

    return App


def test_handlers_run_in_the_alphabetical_order_of_their_names(manager, log):
    class App(RyuApp):
        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def second(self, ev):
            log.append("second")

        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def first(self, ev):
            log.append("first")

        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def _third(self, ev):
            log.append("_third")

    manager.start(App)
    switch = manager.switch()
    switch.join()
    switch.packet_in()
    manager.settle()
    assert log == ["_third", "first", "second"]


def test_events_are_filtered_by_the_state_before_the_change(manager, log):
    class App(RyuApp):
        @set_ev_cls(ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER)
        def hello(self, ev):
            log.append("hello in handshake")

        @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
        def features(self, ev):
            log.append("features in config")

        @set_ev_cls(ofp_event.EventOFPSwitchFeatures, MAIN_DISPATCHER)
        def late_features(self, ev):
            log.append("features in main")

        @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
        def ports(self, ev):
            log.append("ports in main")

        @set_ev_cls(ofp_event.EventOFPPacketIn, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
        def packet_in(self, ev):
            log.append(f"packet-in in {ev.msg.datapath.state}")

    manager.start(App)
    switch = manager.switch()
    switch.join()
    switch.packet_in()
    manager.settle()
    assert log == ["hello in handshake", "features in config", "packet-in in main"]


def test_the_datapath_id_is_set_before_the_features_event(manager, log):
    manager.start(logging_app(log, ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER, lambda ev: ev.msg.datapath.id))
    manager.switch(dpid=7).join()
    manager.settle()
    assert log == [7]


def test_ports_are_filled_before_main(manager, log):
    def show(ev):
        return ev.state, sorted(ev.datapath.ports or ())

    manager.start(logging_app(log, ofp_event.EventOFPStateChange, MAIN_DISPATCHER, show))
    manager.switch().join(1, 2)
    manager.settle()
    assert log == [(MAIN_DISPATCHER, [1, 2])]


def test_ports_of_1_0_are_those_of_the_features(manager, log):
    manager.start(logging_app(log, ofp_event.EventOFPStateChange, MAIN_DISPATCHER, lambda ev: sorted(ev.datapath.ports)))
    switch = manager.switch(version=1)
    switch.send(HELLO)
    ports = b"".join(struct.pack("!H6s16s24x", number, bytes(6), b"eth") for number in (1, 3))
    switch.send(FEATURES_REPLY, struct.pack("!QIB3xII", 5, 0, 1, 0, 0) + ports)
    manager.settle()
    assert log == [[1, 3]]


def test_state_changes_come_before_anything_of_the_new_state(manager, log):
    class App(RyuApp):
        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def packet_in(self, ev):
            log.append("packet-in")

        @set_ev_cls(ofp_event.EventOFPStateChange, STATES)
        def state_change(self, ev):
            log.append(ev.state)

    manager.start(App)
    switch = manager.switch()
    switch.join()
    switch.packet_in()
    switch.connection.switch_down()
    manager.settle()
    assert log == [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER, "packet-in", DEAD_DISPATCHER]


def test_a_switch_is_dead_once_and_nothing_is_sent_to_it(manager, log):
    [app] = manager.start(logging_app(log, ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER]))
    switch = manager.switch()
    switch.join()
    manager.settle()
    datapath = log[0].datapath
    assert datapath.send_barrier()
    switch.connection.switch_down()
    manager.settle()
    datapath.close()
    manager.settle()
    assert [ev.state for ev in log] == [MAIN_DISPATCHER, DEAD_DISPATCHER]
    sent = len(manager.wire.sent)
    assert datapath.send_barrier() is False
    assert len(manager.wire.sent) == sent


def test_a_datapath_that_the_program_closes_is_disconnected(manager, log):
    manager.start(logging_app(log, ofp_event.EventOFPStateChange, MAIN_DISPATCHER, lambda ev: ev.datapath.close()))
    switch = manager.switch()
    switch.join()
    manager.settle()
    switch.packet_in()
    manager.settle()
    assert not switch.packet_in()


def test_port_status_updates_ports_before_the_port_state_change(manager, log):
    def show(ev):
        return ev.reason, ev.port_no, sorted(ev.datapath.ports)

    manager.start(logging_app(log, ofp_event.EventOFPPortStateChange, MAIN_DISPATCHER, show))
    switch = manager.switch()
    switch.join(1)
    switch.send(PORT_STATUS, struct.pack("!B7x", ofproto_v1_3.OFPPR_ADD) + port(2))
    manager.settle()
    switch.send(PORT_STATUS, struct.pack("!B7x", ofproto_v1_3.OFPPR_DELETE) + port(1))
    manager.settle()
    assert log == [(ofproto_v1_3.OFPPR_ADD, 2, [1, 2]), (ofproto_v1_3.OFPPR_DELETE, 1, [2])]


def test_an_exception_is_logged_and_the_next_handler_runs(manager, log, caplog):
    class App(RyuApp):
        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def a_faulty(self, ev):
            raise ValueError("on purpose")

        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def b_other(self, ev):
            log.append(ev.msg.cookie)

    manager.start(App)
    switch = manager.switch()
    switch.join()
    switch.packet_in(1)
    switch.packet_in(2)
    manager.settle()
    assert log == [1, 2]
    assert "handler a_faulty raised an exception on EventOFPPacketIn" in caplog.text
    assert "Traceback" in caplog.text and "on purpose" in caplog.text


def test_a_constructor_that_raises_ends_the_manager(manager):
    class App(RyuApp):
        def __init__(self, *args, **kwargs):
            raise ValueError("on purpose")

    manager.manager.applications_cls["app"] = App
    with pytest.raises(ValueError, match="on purpose"):
        manager.manager.instantiate_apps()


def test_versions_are_intersected(manager):
    class Both(RyuApp):
        OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    class New(RyuApp):
        OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION, 5]

    class Old(RyuApp):
        OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    manager.start(Both, New)
    assert ofproto_protocol.ProtocolDesc().supported_ofp_version == {4}
    with pytest.raises(LoadError, match="no version in common: 1 after 4"):
        manager.manager.instantiate(Old)


def test_sending_sets_the_xid_and_serializes_at_once(manager, log):
    manager.start(logging_app(log, ofp_event.EventOFPStateChange, MAIN_DISPATCHER))
    manager.switch().join()
    manager.settle()
    datapath = log[0].datapath
    first = datapath.ofproto_parser.OFPEchoRequest(datapath, b"first")
    assert datapath.send_msg(first) is True
    first.data = b"later"
    second = datapath.ofproto_parser.OFPEchoRequest(datapath, b"second")
    second.xid = 77
    datapath.send_msg(second)
    frames = [data for _, data in manager.wire.sent[-2:]]
    assert frames[0] == struct.pack("!BBHI", 4, 2, 13, datapath.xid) + b"first"
    assert frames[1] == struct.pack("!BBHI", 4, 2, 14, 77) + b"second"


def test_a_full_queue_to_a_switch_lets_the_sender_wait(manager, baton, log):
    manager.start(logging_app(log, ofp_event.EventOFPStateChange, MAIN_DISPATCHER))
    manager.switch().join()
    manager.settle()
    manager.wire.is_full = True
    sender = hub.spawn(log[0].datapath.send_barrier)
    baton.advance(1)
    assert not sender.dead
    manager.wire.is_full = False
    baton.advance(1)
    assert sender.dead


def test_many_events_let_the_switch_wait_and_packet_ins_are_dropped(manager, log, caplog):
    class Slow(RyuApp):
        @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
        def packet_in(self, ev):
            log.append(self.events.qsize())
            hub.sleep(1)

    manager.start(Slow)
    switch = manager.switch()
    switch.join()
    for _ in range(MAX_FRAMES + 1000):
        switch.packet_in()
    manager.settle()
    assert len(switch.connection._frames) <= MAX_FRAMES
    # The other switch is served.
    other = manager.switch(dpid=6)
    other.join()
    manager.baton.advance(300)
    assert max(log) <= app_manager.MAX_EVENTS
    assert any(dpid == 6 for dpid, _ in manager.wire.sent)
    assert "packet-ins dropped" in caplog.text


class EventPing(event.EventBase):
    pass


class RequestPing(event.EventRequestBase):
    pass


def test_applications_that_flood_each_other_do_not_wait_in_a_circle(manager, log):
    class Ponger(RyuApp):
        _EVENTS = [EventPing]
        target = "Pinger"

        @set_ev_cls(EventPing)
        def ping(self, ev):
            if len(log) < 1000:
                log.append(self.name)
                for _ in range(300):
                    self.send_event(self.target, ev)

    class Pinger(Ponger):
        target = "Ponger"

    pinger, ponger = manager.start(Pinger, Ponger)
    hub.spawn(pinger.send_event, "Ponger", EventPing())
    manager.settle()
    assert len(log) == 1000


def test_own_events_reach_observers_by_their_module_or_the_list(manager, log):
    class Sender(RyuApp):
        _EVENTS = [EventPing]

    sender, _ = manager.start(Sender, logging_app(log, EventPing, None, lambda ev: "ping"))
    hub.spawn(sender.send_event_to_observers, EventPing())
    manager.settle()
    assert log == ["ping"]


def test_own_events_reach_the_application_named_like_their_module(manager, log):
    module = types.ModuleType("my_apps.counter")
    named = type("EventCount", (event.EventBase,), {"__module__": module.__name__})

    class Counter(RyuApp):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.name = "counter"

    counter, _ = manager.start(Counter, logging_app(log, named, None, lambda ev: "count"))
    hub.spawn(counter.send_event_to_observers, named())
    manager.settle()
    assert log == ["count"]


def test_a_request_is_answered(manager, log):
    class Answering(RyuApp):
        @set_ev_handler(RequestPing)
        def answer(self, req):
            self.reply_to_request(req, event.EventReplyBase(req.src))

    class Asking(RyuApp):
        def ask(self):
            request = RequestPing()
            request.dst = "Answering"
            log.append(self.send_request(request).dst)

    _, asking = manager.start(Answering, Asking)
    hub.spawn(asking.ask)
    manager.settle()
    assert log == ["Asking"]


def test_applications_share_contexts_by_key(manager, log):
    class Shared:
        pass

    class First(RyuApp):
        _CONTEXTS = {"shared": Shared}

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            log.append(kwargs["shared"])

    class Second(First):
        pass

    for cls in (First, Second):
        manager.manager.applications_cls[cls.__name__] = cls
        manager.manager._needs(cls)
    contexts = manager.manager.create_contexts()
    manager.manager.instantiate_apps(**contexts)
    assert log[0] is log[1] is contexts["shared"]


def test_two_applications_of_one_name_are_an_error(manager):
    [app] = manager.start(type("App", (RyuApp,), {}))
    with pytest.raises(LoadError, match="two applications have the name App"):
        manager.manager.instantiate(type("App", (RyuApp,), {}))
    assert app_manager.lookup_service_brick("App") is app
    assert app_manager.lookup_service_brick("Other") is None


def test_stopping_handles_the_events_that_wait(manager, log):
    [app] = manager.start(logging_app(log, EventPing, None))

    def main():
        for _ in range(3):
            app.send_event("App", EventPing())
        manager.manager.uninstantiate("App")

    hub.spawn(main)
    manager.settle()
    assert len(log) == 3
    assert app_manager.lookup_service_brick("App") is None


def test_malformed_frames_are_skipped(manager, log, caplog):
    caplog.set_level(logging.WARNING)
    manager.start(logging_app(log, ofp_event.EventOFPPacketIn, MAIN_DISPATCHER, lambda ev: ev.msg.cookie))
    switch = manager.switch()
    switch.join()
    switch.send(PACKET_IN, b"short")
    switch.send(99)
    switch.packet_in(3)
    manager.settle()
    assert log == [3]
    assert "malformed" in caplog.text and "unknown type 99" in caplog.text


def test_a_hello_of_a_later_version_is_the_first_event(manager, log):
    manager.start(logging_app(log, ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER, lambda ev: ev.msg.elements[0].versions))
    switch = manager.switch()
    hello = struct.pack("!BBHIHHI", 6, HELLO, 16, 1, 1, 8, 1 << 1 | 1 << 4 | 1 << 6)
    switch.connection.frames([hello])
    manager.settle()
    assert log == [[1, 4, 6]]


def test_dpset_has_the_connected_switches_and_their_ports(manager, log):
    class App(RyuApp):
        @set_ev_cls([dpset.EventDP, dpset.EventDPReconnected], dpset.DPSET_EV_DISPATCHER)
        def switch(self, ev):
            log.append((type(ev).__name__, getattr(ev, "enter", None), [port.port_no for port in ev.ports]))

        @set_ev_cls([dpset.EventPortAdd, dpset.EventPortDelete, dpset.EventPortModify], dpset.DPSET_EV_DISPATCHER)
        def port(self, ev):
            log.append((type(ev).__name__, ev.port.port_no))

    switches, _ = manager.start(dpset.DPSet, App)
    first = manager.switch(dpid=7)
    first.join(1)
    manager.settle()
    for reason, number in [(ofproto_v1_3.OFPPR_ADD, 2), (ofproto_v1_3.OFPPR_MODIFY, 1), (ofproto_v1_3.OFPPR_DELETE, 1)]:
        first.send(PORT_STATUS, struct.pack("!B7x", reason) + port(number))
    manager.settle()
    assert [port.port_no for port in switches.get_ports(7)] == [2]
    assert switches.get_port(7, 2).hw_addr == "02:00:00:00:00:02"
    # Its new connection is there before the old one has closed.
    second = manager.switch(dpid=7)
    second.join(3)
    manager.settle()
    first.connection.switch_down()
    manager.settle()
    assert switches.get(7) is dict(switches.get_all())[7] is not None
    second.connection.switch_down()
    manager.settle()
    assert switches.get(7) is None
    assert log == [
        ("EventDP", True, [1]),
        ("EventPortAdd", 2),
        ("EventPortModify", 1),
        ("EventPortDelete", 1),
        ("EventDPReconnected", None, [3]),
        ("EventDP", False, [3]),
    ]
