"""Messages: values are checked when they are sent; frames of switches never raise anything but a malformed message's error."""

import json
import random

import calls
import pytest
from os_ken.ofproto import ofproto_v1_3_parser as aliased
from ryu.lib.packet import ethernet, icmpv6, ipv4, ipv6, packet, udp
from ryu.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser

V13 = ofproto_protocol.ProtocolDesc(4)
V10 = ofproto_protocol.ProtocolDesc(1)
p = ofproto_v1_3_parser


def frames():
    """The frames of the table, and those of its calls."""
    for key, result in calls.results("ryu").items():
        if "class" in result:
            version, kind, *words = key.split()
            data = calls.body(words)
            yield bytes([int(version), int(kind)]) + (8 + len(data)).to_bytes(2, "big") + bytes(4) + data
        elif key[1] == ":":
            yield bytes.fromhex(result["bytes"])


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (lambda: p.OFPFlowMod(V13, priority=70000), "priority of OFPFlowMod is 70000: expected a number from 0 to 0xffff"),
        (lambda: p.OFPFlowMod(V13, match=p.OFPMatch(in_port="one")), "in_port is 'one': expected a number of 4 bytes"),
        (lambda: p.OFPFlowMod(V13, match=p.OFPMatch(eth_dst="xx")), "eth_dst is 'xx': expected an Ethernet address"),
        (lambda: p.OFPFlowMod(V13, match=p.OFPMatch(ipv4_src="10.0.0")), "ipv4_src is '10.0.0': expected an IPv4 address"),
        (lambda: p.OFPPacketOut(V13, None, 1, []), "buffer_id of OFPPacketOut is None"),
        (lambda: p.OFPPacketOut(V13, 1, 1, [], 5), "data of OFPPacketOut is 5: expected bytes"),
        (lambda: p.OFPPacketOut(V13, 1, 1, [p.OFPActionOutput(-1)]), "port of OFPActionOutput is -1"),
        (lambda: p.OFPPacketOut(V13, 1, 1, [5]), "actions of OFPPacketOut is [5]: expected a list of actions"),
        (lambda: p.OFPPortMod(V13, hw_addr="nonsense"), "hw_addr of OFPPortMod is 'nonsense': expected an Ethernet address"),
        (lambda: p.OFPFlowStatsRequest(V13, flags="x"), "flags of OFPFlowStatsRequest is 'x'"),
        (lambda: p.OFPErrorMsg(V13, 1 << 16, 0), "type_ of OFPErrorMsg is 65536"),
        (lambda: p.OFPFlowMod(V13, match=5), "match of OFPFlowMod is 5: expected an object of OFPMatch"),
        (lambda: p.OFPPacketOut(V13, 1, 1, [], bytes(70000)), "OFPPacketOut has 70024 bytes: expected at most 65535"),
    ],
)
def test_a_wrong_value_is_named_when_it_is_sent(message, sentence):
    made = message()
    with pytest.raises(ValueError) as raised:
        made.serialize()
    assert sentence in str(raised.value)


def test_an_unknown_field_is_an_error_at_once():
    with pytest.raises(KeyError, match="unknown OXM field: nw_src"):
        p.OFPMatch(nw_src="10.0.0.1")
    with pytest.raises(TypeError, match="expected one"):
        p.OFPActionSetField()


def test_truncated_and_changed_frames_never_raise(caplog):
    numbers = random.Random(1)
    for frame in frames():
        datapath = V13 if frame[0] == 4 else V10
        for _ in range(40):
            changed = bytearray(frame[: numbers.randrange(8, len(frame) + 1)])
            for _ in range(numbers.randrange(3)):
                changed[numbers.randrange(8, len(changed)) if len(changed) > 8 else 7] = numbers.randrange(256)
            changed[2:4] = len(changed).to_bytes(2, "big")
            ofproto_parser.msg(datapath, *ofproto_parser.header(changed), bytes(changed))
    assert "skipping a malformed message" in caplog.text


def test_a_router_says_several_things():
    options = [
        icmpv6.nd_option_sla(hw_src="02:00:00:00:00:01"),
        icmpv6.nd_option_mtu(1400),
        icmpv6.nd_option_pi(0, 64, 6, 1, 2, 0, "2001:db8::"),
        # A kind that has no class here.
        b"\x19\x01abcdef",
    ]
    advert = icmpv6.nd_router_advert(64, 1, 2, 3, 4, options)
    head = ipv6.ipv6(nxt=58, src="fe80::1", dst="ff02::1")
    data = packet.Packet(protocols=[ethernet.ethernet(ethertype=0x86DD), head, icmpv6.icmpv6(134, data=advert)])
    data.serialize()
    read = packet.Packet(bytes(data.data)).get_protocol(icmpv6.icmpv6)
    assert [str(option) for option in read.data.options] == [str(option) for option in options]
    assert (options[0].length, options[1].length, options[2].length) == (1, 1, 4)


def built(first, *headers, payload=b"x" * 40):
    head = ipv6.ipv6(nxt=first, src="fe80::1", dst="ff02::1", ext_hdrs=list(headers))
    made = packet.Packet(protocols=[ethernet.ethernet(ethertype=0x86DD), head, payload])
    made.serialize()
    return bytes(made.data)


def test_long_and_padded_extension_headers_are_read_as_they_were_built():
    for first, extension in (
        (60, ipv6.dst_opts(200, 1, [ipv6.option(1, 12, bytes(12))])),
        (0, ipv6.hop_opts(200, 0, [ipv6.option(0), ipv6.option(1, 3, b"abc")])),
        (43, ipv6.routing_type3(200, seg=1, cmpi=8, cmpe=15, adrs=["::1:2:3:4", "::5"])),
    ):
        data = built(first, extension)
        read = packet.Packet(data)
        assert str(read.get_protocol(ipv6.ipv6).ext_hdrs) == str([extension])
        assert read.protocols[-1] == b"x" * 40
        # The length is in units of 8 bytes, without the first.
        assert len(extension) == 8 + 8 * data[14 + 40 + 1]


def test_the_checksum_behind_extension_headers_is_that_of_the_upper_layer():
    def checksum(first, *headers):
        return built(first, *headers, payload=udp.udp(1, 2))[-2:]

    assert checksum(0, ipv6.hop_opts(60), ipv6.dst_opts(17)) == checksum(17)


def test_later_fragments_carry_bytes():
    read = packet.Packet(built(44, ipv6.fragment(17, 5, 0, 9), payload=bytes(range(40))))
    assert [type(each) for each in read.protocols] == [ethernet.ethernet, ipv6.ipv6, bytes]


def test_extension_headers_that_end_early_leave_bytes():
    for data in (b"\x11\xff", b"\x11", b"\x3c\x00\x01\x09"):
        read = packet.Packet(built(0, payload=data))
        assert [type(each) for each in read.protocols] == [ethernet.ethernet, bytes]


def test_packets_of_any_bytes_can_be_read():
    numbers = random.Random(2)
    sources = [bytes.fromhex(result["bytes"]) for result in calls.packets("ryu").values()]
    for data in sources:
        for _ in range(100):
            changed = bytearray(data[: numbers.randrange(1, len(data) + 1)])
            changed[numbers.randrange(len(changed))] = numbers.randrange(256)
            str(packet.Packet(bytes(changed)))


def test_a_match_is_read_by_name():
    match = p.OFPMatch(eth_type=0x800, ipv4_src=("10.1.2.3", "255.255.0.0"), in_port=3)
    assert match["in_port"] == 3
    assert match["ipv4_src"] == ("10.1.0.0", "255.255.0.0")
    assert "eth_type" in match and "eth_dst" not in match
    assert match.get("eth_dst") is None
    assert dict(match.items())["eth_type"] == 0x800
    with pytest.raises(KeyError):
        match["eth_dst"]


def test_the_old_forms_setters_make_the_same_match():
    match = p.OFPMatch()
    match.set_dl_type(0x800)
    match.set_ipv4_src_masked(0x0A010203, 0xFFFF0000)
    match.set_in_port(3)
    assert str(match) == str(p.OFPMatch(eth_type=0x800, ipv4_src=("10.1.2.3", "255.255.0.0"), in_port=3))


def test_a_match_of_1_0_is_read_by_name():
    match = ofproto_v1_0_parser.OFPMatch(dl_dst="00:00:00:00:00:02", nw_src="10.0.0.0", nw_src_mask=8)
    assert (match["dl_dst"], match["nw_src"], match["nw_src_mask"]) == ("00:00:00:00:00:02", "10.0.0.0", 8)
    assert "dl_dst" in match and "dl_src" not in match
    with pytest.raises(KeyError):
        match["dl_src"]


def test_objects_take_attributes_and_subclasses():
    class MyFlowMod(p.OFPFlowMod):
        pass

    made = MyFlowMod(V13)
    made.mine = 5
    made.priority = 7
    assert made.serialize()[30:32] == b"\0\7"


def test_json_makes_the_same_message():
    for key, result in calls.results("ryu").items():
        if "restored" in result:
            assert result["restored"][1] == result["bytes"], key


def without_lengths(value):
    """Returns JSON without the lengths that are known once a structure has been serialized."""
    if isinstance(value, list):
        return [without_lengths(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: without_lengths(one) for name, one in value.items() if name not in ("len", "length", "actions_len")}


def test_json_makes_the_same_message_of_a_switch():
    for frame in frames():
        datapath = V13 if frame[0] == 4 else V10
        message = ofproto_parser.msg(datapath, *ofproto_parser.header(frame), frame)
        if message is None or type(message).__name__.endswith("Request"):
            continue
        given = message.to_jsondict()
        made = ofproto_parser.ofp_msg_from_jsondict(datapath, json.loads(json.dumps(given)))
        assert type(made) is type(message) and made.datapath is datapath
        assert without_lengths(made.to_jsondict()) == without_lengths(given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "{} is no object: expected one key, the name of a class"),
        (["OFPFlowMod"], "is no object"),
        ({"Nothing": {}}, "OpenFlow 1.3 has no class Nothing"),
        ({"struct": {}}, "OpenFlow 1.3 has no class struct"),
        ({"OFPActionOutput": {"port": 1}}, "OFPActionOutput is no message: expected one, such as OFPFlowMod"),
        ({"OFPFlowMod": 5}, "OFPFlowMod is 5: expected its attributes by name"),
        ({"OFPFlowMod": {"match": {"Nothing": {}}}}, "match of OFPFlowMod is of the unknown class Nothing"),
        ({"OFPFlowMod": {"match": {}}}, "match of OFPFlowMod has 0 keys: expected one, the name of a class"),
        ({"OFPFlowMod": {"match": {"OFPMatch": {}}}}, "OFPMatch is {}: expected a list in oxm_fields"),
        ({"OFPFlowMod": {"match": {"OFPMatch": {"oxm_fields": [5]}}}}, "a field is 5: expected {'OXMTlv'"),
        ({"OFPFlowMod": {"instructions": [{"OFPActionSetField": {}}]}}, "OFPActionSetField is {}: expected field"),
        ({"OFPEchoRequest": {"data": "x"}}, "data of OFPEchoRequest is 'x': expected bytes in base64"),
    ],
)
def test_json_of_another_form_is_named(given, sentence):
    with pytest.raises(ValueError) as raised:
        ofproto_parser.ofp_msg_from_jsondict(V13, given)
    assert sentence in str(raised.value)


def test_json_makes_instructions():
    given = [{"OFPActionOutput": {"port": 1}}, {"OFPInstructionGotoTable": {"table_id": 1}}, {"OFPActionPopVlan": {}}]
    first, second = ofproto_parser.ofp_instruction_from_jsondict(V13, given)
    assert [type(action) for action in first.actions] == [p.OFPActionOutput, p.OFPActionPopVlan]
    assert second.table_id == 1
    assert len(ofproto_parser.ofp_instruction_from_jsondict(V13, given, encap=False)) == 3


def test_json_makes_packets():
    for protocol in (udp.udp(1, 2), ethernet.ethernet(), ipv4.ipv4(option=b"1234")):
        given = json.loads(json.dumps(protocol.to_jsondict()))
        assert repr(type(protocol).from_jsondict(given[type(protocol).__name__])) == repr(protocol)


def test_os_kens_names_are_the_same_modules():
    assert aliased is ofproto_v1_3_parser


def test_xids_are_set_once():
    made = p.OFPHello(V13)
    made.set_xid(5)
    with pytest.raises(ValueError, match="has xid 0x5 already"):
        made.set_xid(6)


def test_protocols_of_a_packet():
    data = packet.Packet()
    data.add_protocol(ethernet.ethernet())
    data.add_protocol(ipv4.ipv4(proto=17))
    data.add_protocol(udp.udp(1, 2))
    data.add_protocol(b"payload")
    data.serialize()
    read = packet.Packet(bytes(data.data))
    assert [type(each).__name__ for each in read] == ["ethernet", "ipv4", "udp", "bytes"]
    assert read.get_protocol(udp.udp).dst_port == 2
    assert read.get_protocol(ethernet.ethernet) is read.get_protocols(ethernet.ethernet)[0] is read[0]
    assert read.get_protocols(packet.tcp.tcp) == []
    assert read.get_protocol(packet.tcp.tcp) is None
    assert type(read) is type(packet.Packet())
    assert ipv4.ipv4 in read


def test_packets_are_sent_as_they_are():
    data = packet.Packet()
    data.add_protocol(ethernet.ethernet(ethertype=0x9000))
    data.serialize()
    out = p.OFPPacketOut(V13, ofproto_v1_3.OFP_NO_BUFFER, 1, [], data)
    assert bytes(out.serialize()).endswith(bytes(data.data))
