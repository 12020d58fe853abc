"""SCTP and slow protocols: checksums, padding, and what is not valid."""

import struct

import pytest
from ryu.lib.packet import ethernet, ipv4, packet, sctp, slow


def built(*protocols):
    made = packet.Packet(protocols=list(protocols))
    made.serialize()
    return bytes(made.data)


def in_ipv4(upper):
    return built(ethernet.ethernet(), ipv4.ipv4(proto=132), upper)


HEAD = struct.pack("!HHII", 1, 2, 3, 4)
INIT = struct.pack("!BBHIIHHI", 1, 0, 32, 1, 2, 3, 4, 5)


def test_the_checksum_of_sctp_is_crc32c():
    # RFC 3720, appendix B.4.
    assert sctp.crc32c(bytes(32)) == 0x8A9136AA
    assert sctp.crc32c(bytes(range(32))) == 0x46DD794E
    assert sctp.crc32c(b"123456789") == 0xE3069283
    data = in_ipv4(sctp.sctp(5000, 80, 9, 0, [sctp.chunk_cookie_ack()]))[34:50]
    checksum = sctp.crc32c(data[:8] + bytes(4) + data[12:])
    assert data[8:12] == struct.pack("<I", checksum)
    assert packet.Packet(in_ipv4(data)).get_protocol(sctp.sctp).csum == int.from_bytes(data[8:12], "big")


def test_chunks_and_parameters_are_padded():
    chunks = [
        sctp.chunk_data(begin=1, tsn=1, payload_data=b"12345"),
        sctp.chunk_init(params=[sctp.param_host_addr(b"host1"), sctp.param_ecn()]),
        sctp.chunk_error(causes=[sctp.cause_user_initiated_abort(b"123"), sctp.cause_missing_param([7])]),
        sctp.chunk_cookie_echo(cookie=b"1"),
    ]
    read = packet.Packet(in_ipv4(sctp.sctp(chunks=chunks))).get_protocol(sctp.sctp)
    assert str(read.chunks) == str(chunks)
    # The length of a chunk has the padding of its parameters, as that of Ryu has.
    assert [chunk.length for chunk in read.chunks] == [21, 20 + 12 + 4, 4 + 8 + 12, 5]


def test_unknown_parameters_are_left_out_and_unknown_chunks_stay_bytes():
    unknown = struct.pack("!HH4x", 0xC000, 8)
    read = packet.Packet(in_ipv4(HEAD + INIT + unknown + struct.pack("!HH", 0x8000, 4)))
    assert str(read[2].chunks[0].params) == "[param_ecn(length=4,value=None)]"
    forward = struct.pack("!BBHI", 0xC0, 0, 8, 5)
    read = packet.Packet(in_ipv4(HEAD + struct.pack("!BBH", 11, 0, 4) + forward))
    assert str(read[2].chunks) == "[chunk_cookie_ack(flags=0,length=4)]"
    assert read[3] == forward


@pytest.mark.parametrize(
    "data",
    [
        HEAD[:11],
        HEAD + b"\1",
        HEAD + b"\1\0\0\3",
        HEAD + INIT[:-1],
        HEAD + struct.pack("!BBHIIHH", 3, 0, 16, 1, 2, 9, 9),
        HEAD + struct.pack("!BBH", 4, 0, 4),
        HEAD + struct.pack("!BBHHH", 4, 0, 8, 1, 3),
        HEAD + struct.pack("!BBHHH", 9, 0, 8, 1, 4),
    ],
)
def test_sctp_that_ends_early_stays_bytes(data):
    assert packet.Packet(in_ipv4(data))[2] == data


@pytest.mark.parametrize(
    ("chunk", "sentence"),
    [
        (sctp.chunk_init(init_tag=-1), "init_tag of chunk_init is -1: expected a number from 0 to 0xffffffff"),
        (sctp.chunk_init(params=5), "params of chunk_init is 5: expected a list of parameters"),
        (sctp.chunk_init(params=[sctp.param_ipv4("::1")]), "value of param_ipv4 is '::1': expected an IPv4 address"),
        (sctp.chunk_sack(gapacks=[[1, 70000]]), "gapacks of chunk_sack is [[1, 70000]]: expected a list of pairs"),
        (sctp.chunk_sack(duptsns=["x"]), "duptsns of chunk_sack is ['x']: expected a list of numbers"),
        (sctp.chunk_data(payload_data=bytes(70000)), "chunk_data has 70016 bytes: expected at most 65535"),
        (sctp.chunk_heartbeat(), "info of chunk_heartbeat is None: expected an object of param"),
    ],
)
def test_a_wrong_value_of_a_chunk_is_named(chunk, sentence):
    with pytest.raises(ValueError) as raised:
        sctp.sctp(chunks=[chunk]).serialize()
    assert sentence in str(raised.value)


def test_a_data_unit_of_lacp_has_its_form():
    data = built(ethernet.ethernet(ethertype=0x8809), slow.lacp(actor_port=5))
    assert packet.Packet(data).get_protocol(slow.lacp).actor_port == 5
    # The subtype, the lengths of the parts, and the length of all.
    for changed in (data[:16] + b"\7" + data[17:], data[:17] + b"\x13" + data[18:], data[:123]):
        assert packet.Packet(changed).get_protocol(slow.lacp) is None
    with pytest.raises(ValueError, match="actor_state_expired of lacp is 2: expected 0 or 1"):
        slow.lacp(actor_state_expired=2).serialize()
