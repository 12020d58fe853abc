"""`ofctl_v1_0` and `ofctl_v1_3`: dictionaries become the messages, and replies the dictionaries, that they were under Ryu.

What they were is recorded from os-ken by tools/vectors/osken_ofctl.py, for the REST interface, which has the same forms.
"""

import itertools
import json
from pathlib import Path

import pytest
from ryu.lib import ofctl_utils, ofctl_v1_0, ofctl_v1_3
from ryu.ofproto import ofproto_parser, ofproto_protocol

from urtica_ryu import hub

RECORDED = Path(__file__).resolve().parents[3] / "crates/northbound/tests/recorded"
MODULES = {"1.0": ofctl_v1_0, "1.3": ofctl_v1_3}
NUMBERS = {"1.0": 1, "1.3": 4}

FLOW_COMMANDS = {"add": 0, "modify": 1, "modify_strict": 2, "delete": 3, "delete_strict": 4}
COMMANDS = {"add": 0, "modify": 1, "delete": 2}
FUNCTIONS = {
    "desc": "get_desc_stats",
    "flow": "get_flow_stats",
    "aggregateflow": "get_aggregate_flow_stats",
    "table": "get_table_stats",
    "tablefeatures": "get_table_features",
    "port": "get_port_stats",
    "queue": "get_queue_stats",
    "queueconfig": "get_queue_config",
    "meter": "get_meter_stats",
    "meterconfig": "get_meter_config",
    "meterfeatures": "get_meter_features",
    "group": "get_group_stats",
    "groupdesc": "get_group_desc",
    "groupfeatures": "get_group_features",
    "portdesc": "get_port_desc",
    "role": "get_role",
}


class Switch:
    """Stands for a datapath: keeps what is sent, and answers with these frames."""

    id = 1

    def __init__(self, version, waiters=None, answers=()):
        described = ofproto_protocol.ProtocolDesc(NUMBERS[version])
        self.ofproto, self.ofproto_parser = described.ofproto, described.ofproto_parser
        self.waiters, self.answers, self.sent = waiters, answers, []
        self.xids = itertools.repeat(0)

    def set_xid(self, msg):
        msg.set_xid(next(self.xids))
        return msg.xid

    def send_msg(self, msg):
        msg.serialize()
        self.sent.append(bytes(msg.buf))
        for frame in self.answers:
            version, kind, length, xid = ofproto_parser.header(frame)
            parsed = ofproto_parser.msg(self, version, kind, length, xid, frame)
            done, msgs = self.waiters[self.id][xid]
            msgs.append(parsed)
            if not getattr(parsed, "flags", 0) & 1:
                del self.waiters[self.id][xid]
                done.set()


def records(name):
    lines = (RECORDED / name).read_text().splitlines()
    return [json.loads(line) for line in lines]


def send(switch, module, path, body):
    kind, _, command = path.partition("/")
    if kind == "flowentry":
        module.mod_flow_entry(switch, body, FLOW_COMMANDS[command])
    elif kind == "groupentry":
        module.mod_group_entry(switch, body, COMMANDS[command])
    elif kind == "meterentry":
        module.mod_meter_entry(switch, body, COMMANDS[command])
    elif kind == "portdesc":
        module.mod_port_behavior(switch, body)
    elif kind == "role":
        module.set_role(switch, body)
    else:
        module.send_experimenter(switch, body)


def test_dictionaries_become_the_messages_that_ryu_sends():
    requests = records("requests.jsonl")
    assert len(requests) > 150
    for record in requests:
        switch = Switch(record["version"])
        send(switch, MODULES[record["version"]], record["path"], record["body"])
        assert [frame.hex() for frame in switch.sent] == [record["hex"]], record


def test_replies_become_the_dictionaries_that_ryu_makes():
    replies = records("replies.jsonl")
    assert len(replies) > 25
    for record in replies:
        waiters = {}
        # The recorded part of a longer reply is taken for all of it.
        frame = bytearray.fromhex(record["hex"])
        if "more" in record["name"]:
            frame[11] &= ~1
        switch = Switch(record["version"], waiters, [bytes(frame)])
        answer = getattr(MODULES[record["version"]], FUNCTIONS[record["path"]])(switch, waiters)
        assert json.loads(json.dumps(answer)) == record["answer"], record["name"]
        assert waiters == {1: {}}


def test_objects_and_numbers_are_left_to_programs_that_want_them():
    [record] = [each for each in records("replies.jsonl") if each["name"] == "multipart_reply_flow_two_entries_more"]
    waiters = {}
    frame = bytearray.fromhex(record["hex"])
    frame[11] &= ~1
    switch = Switch("1.3", waiters, [bytes(frame)])
    [first, _second] = ofctl_v1_3.get_flow_stats(switch, waiters, to_user=False)[1]
    assert first["match"]["eth_dst"] == "02:00:00:00:00:02"
    assert [type(each).__name__ for each in first["actions"]] == ["OFPInstructionActions", "OFPInstructionGotoTable"]
    assert ofctl_v1_3.get_flow_stats(switch, waiters, {"priority": 5})["1"] == []
    assert len(ofctl_v1_3.get_flow_stats(switch, waiters, {"priority": "32769"})["1"]) == 2


def test_a_switch_that_does_not_answer_is_given_up_after_a_second(baton):
    answers = []

    def program():
        waiters = {}
        began = baton.now()
        answers.append(ofctl_v1_3.get_port_stats(Switch("1.3"), waiters))
        answers.append((baton.now() - began, waiters))

    hub.spawn(program)
    baton.advance(5)
    assert answers == [{"1": []}, (1.0, {1: {}})]


@pytest.mark.parametrize(
    ("version", "path", "body", "sentence"),
    [
        ("1.3", "flowentry/add", {"match": {"tp_dst": 80}}, "tp_dst is given without nw_proto: expected that to be one of 6, 17"),
        ("1.3", "flowentry/add", {"match": {"in_prt": 1}}, "unknown OXM field: in_prt"),
        ("1.3", "flowentry/add", {"match": {"in_port": "LOCALS"}}, "'LOCALS' is unknown: expected a number or one of MAX"),
        ("1.3", "flowentry/add", {"actions": [{"type": "SET_FIELD", "field": "eth_dst"}]}, "'value' is missing or unknown"),
        ("1.3", "flowentry/add", {"actions": [{"type": "GOTO_TABLE"}]}, "GOTO_TABLE has no table_id: expected one"),
        ("1.3", "flowentry/add", {"actions": [{"type": "GROUP"}]}, "GROUP has no group_id: expected one"),
        ("1.3", "flowentry/add", {"priority": "high"}, "'high' is not a number"),
        ("1.3", "flowentry/add", {"match": {"ipv4_src": "10.0.0"}}, "ipv4_src is '10.0.0': expected an IPv4 address"),
        ("1.3", "groupentry/add", {"type": "SOME"}, "the type of a group is 'SOME': expected one of ALL, SELECT, INDIRECT, FF"),
        ("1.3", "meterentry/add", {"flags": "FAST"}, "a flag is 'FAST': expected one of KBPS"),
        ("1.3", "meterentry/add", {"bands": [{"type": "MARK"}]}, "the type of a band is 'MARK': expected one of DROP"),
        ("1.3", "experimenter", {"data_type": "hex"}, "data_type is 'hex': expected 'ascii' or 'base64'"),
        ("1.0", "flowentry/add", {"match": {"eth_type": 5}}, "the match has 'eth_type': expected some of in_port, dl_src"),
        ("1.0", "flowentry/add", {"match": {"dl_src": "xx"}}, "dl_src of OFPMatch is 'xx': expected an Ethernet address"),
    ],
)
def test_a_wrong_value_is_named(version, path, body, sentence):
    switch = Switch(version)
    with pytest.raises(ValueError) as raised:
        send(switch, MODULES[version], path, body)
    assert sentence in str(raised.value)
    assert switch.sent == []


def test_an_unknown_action_is_logged_and_left_out(caplog):
    for version, module in MODULES.items():
        switch = Switch(version)
        module.mod_flow_entry(switch, {"actions": [{"type": "JUMP"}, {"type": "OUTPUT", "port": 2}]}, 0)
        plain = Switch(version)
        module.mod_flow_entry(plain, {"actions": [{"type": "OUTPUT", "port": 2}]}, 0)
        assert switch.sent == plain.sent
    assert caplog.messages.count("Unknown action type: JUMP") == 2


def test_numbers_are_texts_too():
    assert [ofctl_utils.str_to_int(text) for text in ("5", "0x1F", 7)] == [5, 31, 7]
