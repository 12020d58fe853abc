"""Nicira's actions, fields and messages: what os-ken cannot build, and what is not valid."""

import pytest
from ryu.controller import ofp_event
from ryu.ofproto import nicira_ext, ofproto_parser, ofproto_protocol, ofproto_v1_0_parser, ofproto_v1_3_parser

V13 = ofproto_protocol.ProtocolDesc(4)
V10 = ofproto_protocol.ProtocolDesc(1)
p, q = ofproto_v1_3_parser, ofproto_v1_0_parser


#: The action, before the parts of its entry, which are 8 bytes.
LEARN = "ffff 0028 00002320 0010 0000 0000 8000 0000000000000000 0000 01 00 0000 0000"


def bytes_of(action):
    return bytes(action.serialize())


def read(action, parser=p):
    """Returns the action that an action's bytes are."""
    return parser.OFPAction.parser(bytes_of(action))


@pytest.mark.parametrize("parser", [p, q])
@pytest.mark.parametrize(
    "make",
    [
        lambda parser: parser.NXActionRegLoad2("xxreg1", 1 << 100, 1 << 101),
        lambda parser: parser.NXActionRegLoad2("reg1", 5),
        lambda parser: parser.NXActionRegLoad2("tun_ipv6_dst", "2001:db8::1"),
        lambda parser: parser.NXActionStackPush("reg2", 0, 5),
        lambda parser: parser.NXActionNAT(3, range_ipv4_min="10.0.0.1", range_proto_max=5),
        lambda parser: parser.NXActionLearn(
            1,
            [
                parser.NXFlowSpecMatch(0x800, ("eth_type_nxm", 0), 16),
                parser.NXFlowSpecLoad(("reg5", 0), ("reg6", 3), 5),
                parser.NXFlowSpecOutput(("in_port_nxm", 0), 16),
            ],
        ),
    ],
)
def test_actions_are_padded_and_read_again(parser, make):
    action = make(parser)
    data = bytes_of(action)
    assert len(data) % 8 == 0 and int.from_bytes(data[2:4], "big") == len(data)
    assert repr(read(action, parser)) == repr(action)
    again = type(action).from_jsondict(action.to_jsondict()[type(action).__name__])
    assert bytes_of(again) == data


def test_a_controller_does_not_pause_unless_it_is_asked_to():
    assert read(p.NXActionController2(controller_id=3, pause=True)).pause is True
    assert not hasattr(read(p.NXActionController2(controller_id=3, pause=False)), "pause")


def test_a_service_header_is_added():
    action = p.NXActionEncapNsh()
    assert bytes_of(action)[8:] == bytes.fromhex("002e 0000 0001 894f")


def test_unknown_actions_are_bytes():
    unknown = p.OFPAction.parser(bytes.fromhex("ffff 0010 00002320 01f4 010203040506"))
    assert (type(unknown), unknown.subtype, unknown.data) == (p.NXActionUnknown, 500, bytes(range(1, 7)))
    other = p.OFPAction.parser(bytes.fromhex("ffff 0010 00001111 01f4 010203040506"))
    assert type(other) is p.OFPActionExperimenterUnknown and other.experimenter == 0x1111


def test_all_names_are_those_of_their_parser():
    for parser in (p, q):
        assert issubclass(parser.NXActionExit, parser.NXAction) and issubclass(parser.NXAction, parser.OFPAction)
        assert parser.NXActionExit.__module__ == parser.__name__


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (lambda: p.NXActionRegLoad(0x1F, "reg99", 1), "dst of NXActionRegLoad is 'reg99': expected the name of a field"),
        (lambda: p.NXActionRegLoad(0x1F, 5, 1), "dst of NXActionRegLoad is 5: expected the name of a field"),
        (lambda: p.NXActionRegLoad(0x1F, "reg0", -1), "value of NXActionRegLoad is -1: expected a number from 0"),
        (lambda: p.NXActionRegLoad2("reg99", 1), "dst of NXActionRegLoad2 is 'reg99': expected the name of a field"),
        (lambda: p.NXActionRegLoad2("reg0", 1 << 32), "reg0 is 4294967296: expected a number of 4 bytes"),
        (lambda: p.NXActionNote([256]), "note of NXActionNote is [256]: expected a list of numbers from 0 to 0xff"),
        (lambda: p.NXActionNote(None), "note of NXActionNote is None: expected a list"),
        (lambda: p.NXActionDecTtlCntIds([70000]), "cnt_ids of NXActionDecTtlCntIds is [70000]: expected a list of numbers"),
        (lambda: p.NXActionDecTtlCntIds(5), "cnt_ids of NXActionDecTtlCntIds is 5: expected a list of numbers"),
        (lambda: p.NXActionNAT(1, range_ipv4_min="::1"), "range_ipv4_min of NXActionNAT is '::1': expected an IPv4 address"),
        (lambda: p.NXActionNAT(1, range_proto_min=70000), "range_proto_min of NXActionNAT is 70000: expected a number"),
        (lambda: p.NXActionController2(max_len=-1), "max_len of NXActionController2 is -1: expected a number"),
        (lambda: p.NXActionController2(userdata="text"), "userdata of NXActionController2 is 'text': expected bytes"),
        (lambda: p.NXActionUnknown(70000), "subtype of NXActionUnknown is 70000: expected a number from 0 to 0xffff"),
        (lambda: p.NXActionCT(1, "", 0, 1, 0, [5]), "actions of NXActionCT is [5]: expected a list of actions"),
        (lambda: p.NXActionLearn(1, [5]), "specs of NXActionLearn is [5]: expected a list of NXFlowSpecMatch"),
        (
            lambda: p.NXActionLearn(1, [p.NXFlowSpecMatch(1 << 20, ("reg0", 0), 16)]),
            "NXFlowSpecMatch has src=1048576, dst=('reg0', 0), n_bits=16: expected a number or a field",
        ),
        (lambda: p.NXActionLearn(1, [p.NXFlowSpecLoad(1, "reg0", 16)]), "NXFlowSpecLoad has src=1, dst='reg0', n_bits=16"),
        (lambda: p.NXActionLearn(1, [p.NXFlowSpecLoad(1, ("reg0", 0), 0)]), "n_bits=0: expected a number or a field"),
    ],
)
def test_a_wrong_value_is_named_when_it_is_sent(action, sentence):
    instructions = [p.OFPInstructionActions(4, [action()])]
    with pytest.raises(ValueError) as raised:
        p.OFPFlowMod(V13, instructions=instructions).serialize()
    assert sentence in str(raised.value)


def test_unknown_settings_of_a_controller_are_named_at_once():
    with pytest.raises(TypeError, match="NXActionController2 has no colour: expected max_len"):
        p.NXActionController2(colour=5)


@pytest.mark.parametrize(
    "data",
    [
        "ffff 0010 00002320 0007 001f 00010004",  # a register without a value
        "ffff 0010 00002320 0015 0009 00000000",  # nine controllers without ids
        "ffff 0010 00002320 0024 0000 0001 0001",  # an address that is missing
        "ffff 0018 00002320 0025 000000000000 0009 0006 00000000",  # a property that does not exist
        "ffff 0018 00002320 0025 000000000000 0000 0004 00000000",  # a property without its value
        LEARN + "2010 0800 0000 0602",  # a part that ends early
        LEARN + "1810 0800 0000 0602",  # a part of no kind
    ],
)
def test_malformed_actions_are_errors(data, caplog):
    body = bytes.fromhex(data)
    out = bytes.fromhex("ffffffff 00000001") + len(body).to_bytes(2, "big") + bytes(6) + body
    frame = bytes([4, 13]) + (8 + len(out)).to_bytes(2, "big") + bytes(4) + out
    assert ofproto_parser.msg(V13, *ofproto_parser.header(frame), frame) is None
    assert "skipping a malformed message" in caplog.text


def test_fields_are_matched_and_read_again():
    match = p.OFPMatch(reg0=5, ct_state=(0x21, 0x21), eth_type=0x800, nsh_spi=3, tcp_flags=(2, 2), pbb_uca=1)
    read_again = p.OFPMatch.parser(bytes(bytes_of_match(match)), 0)
    assert str(read_again) == str(match)
    assert (match["reg0"], match["ct_state"]) == (5, (0x21, 0x21))
    match.set_reg0_masked(7, 3)
    assert match["reg0"] == (3, 3)


def bytes_of_match(match):
    data = bytearray()
    match.serialize(data)
    return data


def test_a_role_of_1_0_is_asked_for_and_answered():
    request = q.NXTRoleRequest(V10, nicira_ext.NX_ROLE_MASTER)
    assert bytes(request.serialize())[8:] == bytes.fromhex("00002320 0000000a 00000001")
    frame = bytes.fromhex("01040014 00000005 00002320 0000000b 00000002")
    reply = ofproto_parser.msg(V10, *ofproto_parser.header(frame), frame)
    assert isinstance(ofp_event.ofp_msg_to_ev(reply), ofp_event.EventOFPVendor)
    assert isinstance(reply.data, q.NXTRoleReply) and reply.data.role == nicira_ext.NX_ROLE_SLAVE
    assert reply.data.datapath is V10


@pytest.mark.parametrize("body", ["", "000000", "0000000b", "00000013 00000001"])
def test_a_message_of_1_0_that_ends_early_is_skipped(body, caplog):
    data = bytes.fromhex("00002320" + body)
    frame = bytes([1, 4]) + (8 + len(data)).to_bytes(2, "big") + bytes(4) + data
    assert ofproto_parser.msg(V10, *ofproto_parser.header(frame), frame) is None
    assert "skipping a malformed message" in caplog.text


def test_a_message_of_1_0_without_a_class_is_bytes():
    frame = bytes.fromhex("01040014 00000005 00002320 000000ff 00000002")
    message = ofproto_parser.msg(V10, *ofproto_parser.header(frame), frame)
    assert message.data == bytes.fromhex("000000ff 00000002")


def test_a_wrong_role_is_named():
    with pytest.raises(ValueError, match="role of NXTRoleRequest is 'master': expected a number"):
        q.NXTRoleRequest(V10, "master").serialize()
    with pytest.raises(ValueError, match=r"packet_in_mask of NXTSetAsyncConfig is \[1\]: expected 2 numbers"):
        q.NXTSetAsyncConfig(V10, [1], [1, 2], [1, 2]).serialize()
