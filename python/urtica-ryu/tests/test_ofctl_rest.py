"""`ryu.app.ofctl_rest` over HTTP, and `ryu.app.ofctl.api` in applications."""

import json
import struct
import threading

import pytest
from ryu.app.ofctl import api, exception, service
from ryu.base.app_manager import RyuApp
from simulated import ERROR
from simulated import MULTIPART_REPLY as MULTIPART
from test_manager import FLOW_MOD, MULTIPART_REPLY, MULTIPART_REQUEST, Program, Switch
from test_wsgi import OPTIONS, Web

from urtica_ryu import hub

PORT_MOD, GROUP_MOD, METER_MOD, ROLE_REQUEST, EXPERIMENTER = 16, 15, 29, 24, 4
BARRIER_REQUEST, BARRIER_REPLY = 20, 21
AGGREGATE, PORT_STATS = 2, 4


@pytest.fixture
def program():
    with Program(*OPTIONS, "--wsapi-port=0", "ryu.app.ofctl_rest") as program:
        program.address = program.port()
        yield program


def answering(switch, *parts):
    """Answers the switch's next multipart request with these parts, all but the last with more to come."""

    def answer():
        xid, body = switch.receive(MULTIPART_REQUEST)
        for place, part in enumerate(parts, 1):
            head = struct.pack("!HH4x", struct.unpack_from("!H", body)[0], place < len(parts))
            switch.send(MULTIPART_REPLY, head + part, xid)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def port_counters(number):
    return struct.pack("!I4x12QII", number, *range(12), 90, 5)


def test_switches_are_read_over_http(program):
    web = Web(program)
    assert web.request("GET", "/stats/switches") == (200, "[]")
    switch = Switch(program.address)
    while web.request("GET", "/stats/switches") != (200, "[5]"):
        pass
    answer = answering(switch, struct.pack("!QQI4x", 7, 80, 2))
    status, text = web.request("POST", "/stats/aggregateflow/5", json.dumps({"table_id": 3}))
    assert (status, json.loads(text)) == (200, {"5": [{"packet_count": 7, "byte_count": 80, "flow_count": 2}]})
    answer.join()
    answer = answering(switch, port_counters(1), port_counters(0xFFFFFFFE))
    status, text = web.request("GET", "/stats/port/5")
    assert [port["port_no"] for port in json.loads(text)["5"]] == [1, "LOCAL"]
    answer.join()
    # Nobody answers: after a second there is nothing.
    assert web.request("GET", "/stats/table/0x5") == (200, '{"5": []}')
    switch.assert_served()


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("flowentry/add", {"match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]}, FLOW_MOD),
        ("flowentry/delete_strict", {"priority": 7}, FLOW_MOD),
        ("groupentry/add", {"group_id": 1}, GROUP_MOD),
        ("meterentry/modify", {"meter_id": 1, "flags": "KBPS", "bands": [{"type": "DROP", "rate": 1}]}, METER_MOD),
        ("role", {"role": "MASTER"}, ROLE_REQUEST),
        ("experimenter/5", {"experimenter": 1, "data": "abcd"}, EXPERIMENTER),
    ],
)
def test_a_change_is_sent(program, path, body, kind):
    web = Web(program)
    switch = Switch(program.address)
    while web.request("POST", f"/stats/{path}", json.dumps({"dpid": 5, **body}))[0] == 404:
        pass
    switch.receive(kind)
    assert web.request("DELETE", "/stats/flowentry/clear/5")[0] == 200
    _, flow_mod = switch.receive(FLOW_MOD)
    assert flow_mod[16:18] == bytes([0xFF, 3])


def test_wrong_requests_are_refused_with_a_sentence(program):
    web = Web(program)
    switch = Switch(program.address)
    while web.request("GET", "/stats/switches") != (200, "[5]"):
        pass
    for method, path, body, status, sentence in [
        ("GET", "/stats/port/6", None, 404, "switch 6 is not connected"),
        ("GET", "/stats/port/five", None, 400, "'five' is not a number"),
        ("GET", "/stats/ports/5", None, 404, "there is no /stats/ports/…"),
        ("GET", "/stats/desc/5/1", None, 404, "there is no /stats/desc/…"),
        ("GET", "/stats/port/5/one", None, 400, "'one' is unknown: expected a number or one of MAX"),
        ("POST", "/stats/flowentry/insert", "{}", 404, "there is no command 'insert': expected one of add, modify"),
        ("POST", "/stats/flowentry/add", "{", 400, "the body is no JSON"),
        ("POST", "/stats/flowentry/add", "[]", 400, "the body is no object"),
        ("POST", "/stats/flowentry/add", '{"dpid": 5, "priority": "high"}', 400, "'high' is not a number"),
        ("POST", "/stats/portdesc/modify", '{"dpid": 5, "port_no": 9}', 404, "switch 5 has no port 9"),
    ]:
        found, text = web.request(method, path, body)
        assert (found, sentence in text) == (status, True), (path, found, text)
    old = Switch(program.address, version=1, dpid=6)
    while web.request("GET", "/stats/switches") != (200, "[5, 6]"):
        pass
    status, text = web.request("GET", "/stats/group/6")
    assert (status, text) == (501, "ofctl_v1_0 has no get_group_stats: the switch speaks another version of OpenFlow\n")
    for each in (switch, old):
        each.assert_served()


class Caller(RyuApp):
    """Calls the service."""


class Calls:
    """An application's calls, and the frames that they send."""

    def __init__(self, manager):
        self.manager = manager
        _, self.app = manager.start(service.OfctlService, Caller)
        self.switch = manager.switch(dpid=5)
        self.switch.join(1)
        manager.settle()
        manager.wire.sent.clear()
        self.results = []

    @property
    def datapath(self):
        return self.call(api.get_datapath, 5)

    def call(self, function, *arguments, **options):
        """Calls a function that needs no switch to answer."""
        self.begin(function, *arguments, **options)
        return self.results.pop()

    def begin(self, function, *arguments, **options):
        def run():
            try:
                self.results.append(function(self.app, *arguments, **options))
            except Exception as error:
                self.results.append(error)

        hub.spawn(run)
        self.manager.settle()

    def sent(self):
        """The kinds and xids of what was sent."""
        frames = [data for _, data in self.manager.wire.sent]
        self.manager.wire.sent.clear()
        return [(frame[1], int.from_bytes(frame[4:8], "big")) for frame in frames]

    def answer(self, kind, body, xid):
        self.switch.connection.frames([self.switch.frame(kind, body, xid)])
        self.manager.settle()


@pytest.fixture
def calls(manager):
    return Calls(manager)


def counters_request(dp):
    return dp.ofproto_parser.OFPPortStatsRequest(dp)


def test_a_call_returns_the_replies_before_its_barrier(calls):
    assert [dp.id for dp in calls.call(api.get_datapath)] == [5]
    assert calls.call(api.get_datapath, 6) is None
    dp = calls.datapath
    reply_cls = dp.ofproto_parser.OFPPortStatsReply
    head = struct.pack("!HH4x", PORT_STATS, 0)
    for options, parts, expected in [
        ({}, 0, None),
        ({"reply_cls": reply_cls}, 0, None),
        ({"reply_cls": reply_cls}, 1, "OFPPortStatsReply"),
        ({"reply_cls": reply_cls}, 2, "UnexpectedMultiReply"),
        ({"reply_cls": reply_cls, "reply_multi": True}, 2, ["OFPPortStatsReply"] * 2),
    ]:
        calls.begin(api.send_msg, counters_request(dp), **options)
        [(kind, xid), (barrier, barrier_xid)] = calls.sent()
        assert (kind, barrier) == (18, BARRIER_REQUEST)
        for _ in range(parts):
            calls.answer(MULTIPART, head + port_counters(1), xid)
        assert calls.results == []
        # Another's barrier ends nothing.
        calls.answer(BARRIER_REPLY, b"", barrier_xid + 100)
        assert calls.results == []
        calls.answer(BARRIER_REPLY, b"", barrier_xid)
        [result] = calls.results
        calls.results.clear()
        name = [type(each).__name__ for each in result] if isinstance(result, list) else type(result).__name__
        assert name == (expected if expected is not None else "NoneType")


def test_what_the_switch_refuses_is_raised(calls):
    dp = calls.datapath
    calls.begin(api.send_msg, counters_request(dp))
    [(_, xid), (_, barrier_xid)] = calls.sent()
    calls.answer(ERROR, struct.pack("!HH", 1, 3), xid)
    calls.answer(BARRIER_REPLY, b"", barrier_xid)
    [error] = calls.results
    assert isinstance(error, exception.OFError)
    assert (error.result.type, error.result.code) == (1, 3)


def test_a_wrong_value_and_a_switch_that_leaves_are_raised(calls):
    dp = calls.datapath
    wrong = dp.ofproto_parser.OFPFlowMod(dp, priority=70_000)
    assert "priority of OFPFlowMod is 70000" in str(calls.call(api.send_msg, wrong))
    assert calls.sent() == []
    calls.begin(api.send_msg, counters_request(dp))
    calls.switch.connection.switch_down()
    calls.manager.settle()
    [error] = calls.results
    assert isinstance(error, exception.InvalidDatapath) and error.result == 5
    assert isinstance(calls.call(api.send_msg, counters_request(dp)), exception.InvalidDatapath)
