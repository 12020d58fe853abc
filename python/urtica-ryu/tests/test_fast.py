"""The extension's encoding and decoding against the code in Python, which is the reference: equal results, and equal errors."""

import enum
import random

import pytest
from generated import Generator13
from ryu.lib.packet import arp, ethernet, ipv4, packet, udp
from ryu.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3_parser

from urtica_ryu import oxm, structs
from urtica_ryu.fast import CODEC

dp = ofproto_protocol.ProtocolDesc(4)
p = ofproto_v1_3_parser

_PACKET_IN, _FLOW_REMOVED, _MULTIPART_REPLY, _FLOW = 10, 11, 19, 1


class Number(enum.IntEnum):
    """A number that is not exactly an int."""

    ONE = 1


class Text(str):
    """A text that is not exactly a str."""


class Nothing:
    """A codec that leaves everything to Python."""

    headers = staticmethod(lambda cls, data: ([], cls, data))
    encode = encode_message = decode = match_fields = staticmethod(lambda *_: None)


@pytest.fixture
def reference(monkeypatch):
    """Returns what a function returns without the extension."""

    def run(function):
        with monkeypatch.context() as patch:
            for module in (structs, oxm, ofproto_parser, ipv4, packet):
                patch.setattr(module, "CODEC", Nothing)
            return function()

    return run


def outcome(function):
    """Returns a function's result, or its error, as something that can be compared."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


def sent(make):
    """Returns the bytes of a message, and the texts of it before and after they were made."""
    message = make()
    before = repr(message)
    return before, outcome(lambda: bytes(message.serialize())), repr(message), types(message)


def types(value):
    """Returns the types in an object: equal texts may be of different ones."""
    if isinstance(value, (list, tuple)):
        return [types(one) for one in value]
    attributes = vars(value) if isinstance(value, structs.Stringify) else {}
    return [type(value).__name__, {name: types(one) for name, one in attributes.items() if name != "datapath"}]


def received(frame):
    message = ofproto_parser.msg(dp, *ofproto_parser.header(frame), frame)
    return repr(message), types(message)


def framed(kind, body):
    return bytes([4, kind]) + (8 + len(body)).to_bytes(2, "big") + bytes(4) + body


class Frames(Generator13):
    """Frames of switches."""

    def some_bytes(self, size):
        return self.random.randbytes(size)

    def encoded(self, call):
        out = bytearray()
        eval(call, vars(p) | {"dp": dp}).encode(out)
        return bytes(out)

    def packet_in(self):
        body = self.some_bytes(4) + self.number(6).to_bytes(2, "big") + self.some_bytes(10)
        return framed(_PACKET_IN, body + self.encoded(self.match()) + bytes(2) + self.some_bytes(self.number(6)))

    def flow_removed(self):
        return framed(_FLOW_REMOVED, self.some_bytes(40) + self.encoded(self.match()))

    def flow_stats(self):
        def entry():
            body = self.some_bytes(46) + self.encoded(self.match())
            body += b"".join(self.encoded(self.instruction()) for _ in range(self.number(2)))
            return (2 + len(body)).to_bytes(2, "big") + body

        return framed(_MULTIPART_REPLY, bytes([0, _FLOW]) + bytes(6) + b"".join(entry() for _ in range(self.number(2))))

    def frame(self):
        return self.random.choice([self.packet_in, self.flow_removed, self.flow_stats])()

    def changed(self, frame):
        """Returns a frame with up to three other bytes, and another length."""
        changed = bytearray(frame[: self.random.randrange(8, len(frame) + 1)])
        for _ in range(self.random.randrange(4)):
            if len(changed) > 8:
                changed[self.random.randrange(8, len(changed))] = self.random.choice([0, 1, 4, 8, self.number(8)])
        changed[2:4] = len(changed).to_bytes(2, "big")
        return bytes(changed)


def test_messages_are_encoded_as_in_python(reference):
    generator = Generator13(1)
    for call in (generator.message() for _ in range(1000)):
        def make(call=call):
            return eval(call, vars(p) | {"dp": dp})

        assert sent(make) == reference(lambda make=make: sent(make)), call


def test_frames_are_decoded_as_in_python(reference):
    generator = Frames(2)
    for frame in (generator.frame() for _ in range(600)):
        assert received(frame) == reference(lambda frame=frame: received(frame)), frame.hex()


def test_changed_frames_are_decoded_as_in_python(reference):
    generator = Frames(3)
    for _ in range(2000):
        frame = generator.changed(generator.frame())
        assert received(frame) == reference(lambda frame=frame: received(frame)), frame.hex()


def test_usual_structures_are_handled_by_the_extension():
    generator = Frames(4)
    for _ in range(200):
        match = eval(generator.match(), vars(p))
        message = p.OFPFlowMod(dp, match=match, instructions=eval(generator.some(3, generator.instruction), vars(p)))
        # The order of IPv6's texts differs between Python's versions.
        if "ipv6" not in repr(message):
            assert CODEC.encode_message(message, 4, 14, 1) is not None, message
    for frame in (generator.packet_in() for _ in range(50)):
        message = p.OFPPacketIn.parser(dp, *ofproto_parser.header(frame), frame)
        assert "ipv6" in repr(message) or CODEC.decode(p.OFPPacketIn, frame, 8, len(frame)) is not None
    message = p.OFPPacketOut(dp, 1, 1, [p.OFPActionOutput(1)], b"data")
    assert CODEC.encode_message(message, 4, 13, 1) is not None
    message = packet.Packet(protocols=[ethernet.ethernet(), ipv4.ipv4(proto=17), udp.udp(), b"data"])
    message.serialize()
    headers, cls, _ = CODEC.headers(ethernet.ethernet, bytes(message.data))
    assert ([type(each) for each in headers], cls) == ([ethernet.ethernet, ipv4.ipv4], udp.udp)
    for protocol in (ethernet.ethernet(), arp.arp(), ipv4.ipv4(), udp.udp()):
        assert CODEC.encode(protocol) is not None


_ODD = [
    None,
    -1,
    0,
    1,
    255,
    256,
    1 << 32,
    1 << 64,
    1 << 200,
    True,
    1.0,
    Number.ONE,
    "",
    "one",
    "1",
    Text("00:00:00:00:00:01"),
    "00:00:00:00:00:01",
    "AA:bb:CC:dd:EE:ff",
    "00-00-00-00-00-01",
    "00:00:00:00:00-01",
    "0:0:0:0:0:1",
    "00:00:00:00:00:0g",
    "00:00:00:00:00:+1",
    "00:00:00:00:00: 1",
    "00:00:00:00:00:0\u00b2",
    "00:00:00:00:00:01 ",
    "10.0.0.1",
    "10.0.0.1/8",
    "10.0.0.1/255.0.255.0",
    "010.0.0.1",
    "10.0.0.256",
    "10.0.0",
    " 10.0.0.1",
    "::",
    "::1",
    "::ffff:1.2.3.4",
    "::1.2.3.4",
    "1::1.2.3.4",
    "1:0:0:2:0:0:0:3",
    "1:0:2:3:4:5:6:7",
    "1:2:3:4:5:6:7::",
    "::1:2:3:4:5:6:7:8",
    "2001:DB8::00001",
    "2001:DB8::1/32",
    "fe80::1%eth0",
    "AAECAw==",
    b"",
    b"1",
    bytes(2),
    bytes(6),
    bytearray(4),
    bytes(16),
    [],
    [1],
    (),
    (1,),
    (1, 1),
    (1, None),
    (None, 1),
    (1, -1),
    (1, 2, 3),
    (257, 256),
    ("00:00:00:00:00:03", "00:00:00:00:00:01"),
    ("00:00:00:00:00:03", "x"),
    ("10.1.2.3", "255.255.0.0"),
    ("2001:db8::1", "ffff::"),
    [1, 1],
]


@pytest.mark.parametrize("name", [*(field.name for field in oxm.FIELDS), "field_5", "field_4194304"])
def test_odd_values_of_a_match_have_the_same_result_as_in_python(reference, name):
    for value in _ODD:
        def match(value=value):
            made = p.OFPMatch(**{name: value})
            return sent(lambda: p.OFPFlowMod(dp, match=made))

        def action(value=value):
            made = p.OFPActionSetField(**{name: value})
            return sent(lambda: p.OFPPacketOut(dp, 1, 1, [made]))

        assert outcome(match) == reference(lambda: outcome(match)), value
        assert outcome(action) == reference(lambda: outcome(action)), value


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: p.OFPFlowMod(dp), ["xid", *(field.name for field in p.OFPFlowMod.FIELDS if field.name)]),
        (lambda: p.OFPPacketOut(dp, 1, 1, [p.OFPActionOutput(1)], b"1"), ["buffer_id", "in_port", "actions", "data"]),
    ],
)
def test_odd_values_of_a_message_have_the_same_result_as_in_python(reference, make, names):
    for name in names:
        for value in [*_ODD, [p.OFPActionOutput(1)], [p.OFPInstructionGotoTable(1)], p.OFPMatch(), packet.Packet(b"1")]:
            def changed(name=name, value=value):
                message = make()
                setattr(message, name, value)
                return message

            assert outcome(lambda c=changed: sent(c)) == reference(lambda c=changed: outcome(lambda: sent(c))), (name, value)


def test_odd_values_inside_a_message_have_the_same_result_as_in_python(reference):
    for value in _ODD:
        def in_match(value=value):
            match = p.OFPMatch(in_port=1)
            match.type = value
            return p.OFPFlowMod(dp, match=match)

        def in_fields(value=value):
            match = p.OFPMatch(in_port=1)
            match._fields2.append(value)
            return p.OFPFlowMod(dp, match=match)

        def in_type(value=value):
            action = p.OFPActionOutput(1)
            action.type = value
            return p.OFPPacketOut(dp, 1, 1, [action])

        def in_port(value=value):
            return p.OFPFlowMod(dp, instructions=[p.OFPInstructionActions(4, [p.OFPActionOutput(value)])])

        for make in (in_match, in_fields, in_type, in_port):
            assert outcome(lambda m=make: sent(m)) == reference(lambda m=make: outcome(lambda: sent(m))), value


class MyOutput(p.OFPActionOutput):
    """An action that is encoded differently."""

    def encode(self, out):
        self.port = 7
        super().encode(out)


class MyMatch(p.OFPMatch):
    """A match that is encoded differently."""

    def encode(self, out):
        self._fields2 = [("in_port", 9)]
        super().encode(out)


def test_programs_own_classes_encode_themselves():
    data = p.OFPPacketOut(dp, 1, 1, [MyOutput(1)]).serialize()
    assert data[28:32] == b"\0\0\0\7"
    data = p.OFPFlowMod(dp, match=MyMatch(in_port=1)).serialize()
    assert data[56:60] == b"\0\0\0\x09"


def test_decoded_objects_take_attributes():
    frame = Frames(5).packet_in()
    message = ofproto_parser.msg(dp, *ofproto_parser.header(frame), frame)
    message.mine = message.match.mine = 5
    assert (message.mine, message.match.mine) == (5, 5)
    del message.mine
    assert not hasattr(message, "mine")


def test_packets_are_decoded_as_in_python(reference):
    numbers = random.Random(6)
    heads = [b"", b"\x08\x06", b"\x08\x00\x45\0\0\x30\0\0\0\0\x40\x11\0\0"]
    for _ in range(500):
        data = numbers.randbytes(12) + numbers.choice(heads) + numbers.randbytes(numbers.randrange(60))

        def read(data=data):
            made = packet.Packet(data)
            return repr(made), types(made)

        assert read() == reference(read), data.hex()


def test_ipv6_texts_are_those_of_python(reference):
    numbers = random.Random(7)
    for _ in range(3000):
        groups = [numbers.choice(["0", "0", "1", f"{numbers.getrandbits(16):X}"]) for _ in range(8)]
        text = ":".join(groups)
        assert repr(p.OFPMatch(ipv6_src=text)) == reference(lambda text=text: repr(p.OFPMatch(ipv6_src=text)))
