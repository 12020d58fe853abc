"""OXM fields: names, numbers and values, and the match of OpenFlow 1.3."""

from __future__ import annotations

import base64
import ipaddress
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from urtica_ryu.fast import CODEC
from urtica_ryu.structs import Stringify, Truncated, framed, ip_bytes, mac_bytes, set_length

_BASIC_CLASS = 0x8000
_REGISTERS_CLASS = 0x8001
#: Behind the header of these fields is the number of an experimenter.
_EXPERIMENTER_CLASS = 0xFFFF
_ONF = b"ONF\0"


class OxmField(NamedTuple):
    """A field, in the order of whose numbers a match is written."""

    number: int
    name: str
    size: int
    #: `int`, `mac`, `ip`, or `raw` for fields without a name here.
    kind: str = "int"
    oxm_class: int = _BASIC_CLASS
    #: The bytes behind the header, of experimenters' fields: the experimenter's number, and the field's if it is not above.
    prefix: bytes = b""

    @property
    def experimenter(self) -> int | None:
        """The experimenter's number."""
        return int.from_bytes(self.prefix[:4], "big") if self.prefix else None

    @property
    def rank(self) -> int:
        """The field's place in a match."""
        return self.oxm_class << 7 | self.number if self.experimenter is None else self.experimenter

    def header(self, size: int, has_mask: bool = False) -> bytes:
        """Returns the header before `size` bytes of value and mask."""
        head = struct.pack("!HBB", self.oxm_class, self.number << 1 | has_mask, len(self.prefix) + size)
        return head + self.prefix

    def to_bytes(self, value: Any) -> bytes:
        """Returns the bytes of a value, or of a mask; raises ValueError, TypeError or OverflowError."""
        if isinstance(value, (bytes, bytearray)) and len(value) == self.size:
            return bytes(value)
        if self.kind == "mac":
            return mac_bytes(value)
        if self.kind == "ip":
            return ip_bytes(value, self.size)
        if self.kind == "raw":
            return base64.b64decode(value)
        if not isinstance(value, int):
            raise TypeError
        return value.to_bytes(self.size, "big")

    def from_bytes(self, data: bytes) -> Any:
        """Returns the value of bytes."""
        if self.kind == "mac":
            return data.hex(":")
        if self.kind == "ip":
            return str(ipaddress.ip_address(data))
        if self.kind == "raw":
            return base64.b64encode(data).decode("ascii")
        return int.from_bytes(data, "big")

    def expected(self) -> str:
        """What a value may be, for messages."""
        return {
            "mac": "an Ethernet address, such as '00:00:00:00:00:01'",
            "ip": "an IPv4 address, such as '10.0.0.1'" if self.size == 4 else "an IPv6 address, such as '::1'",
            "raw": "bytes in base64",
        }.get(self.kind, f"a number of {self.size} bytes")


#: Fields by class, and by experimenter: the names, in the order of the numbers from the first one on, and the sizes.
_TABLES: tuple[tuple[int, bytes, int, str], ...] = (
    (
        _BASIC_CLASS,
        b"",
        0,
        "in_port:4 in_phy_port:4 metadata:8 eth_dst:mac eth_src:mac eth_type:2 vlan_vid:2 vlan_pcp:1 ip_dscp:1 ip_ecn:1"
        " ip_proto:1 ipv4_src:ip ipv4_dst:ip tcp_src:2 tcp_dst:2 udp_src:2 udp_dst:2 sctp_src:2 sctp_dst:2 icmpv4_type:1"
        " icmpv4_code:1 arp_op:2 arp_spa:ip arp_tpa:ip arp_sha:mac arp_tha:mac ipv6_src:ip6 ipv6_dst:ip6 ipv6_flabel:4"
        " icmpv6_type:1 icmpv6_code:1 ipv6_nd_target:ip6 ipv6_nd_sll:mac ipv6_nd_tll:mac mpls_label:4 mpls_tc:1 mpls_bos:1"
        " pbb_isid:3 tunnel_id:8 ipv6_exthdr:2",
    ),
    (_REGISTERS_CLASS, b"", 0, " ".join(f"xreg{number}:8" for number in range(8))),
    # Nicira's.
    (
        0,
        b"",
        0,
        "in_port_nxm:2 eth_dst_nxm:mac eth_src_nxm:mac eth_type_nxm:2 vlan_tci:2 nw_tos:1 ip_proto_nxm:1 ipv4_src_nxm:ip"
        " ipv4_dst_nxm:ip tcp_src_nxm:2 tcp_dst_nxm:2 udp_src_nxm:2 udp_dst_nxm:2 icmpv4_type_nxm:1 icmpv4_code_nxm:1"
        " arp_op_nxm:2 arp_spa_nxm:ip arp_tpa_nxm:ip",
    ),
    (1, b"", 0, " ".join(f"reg{number}:4" for number in range(16))),
    (
        1,
        b"",
        16,
        "tunnel_id_nxm:8 arp_sha_nxm:mac arp_tha_nxm:mac ipv6_src_nxm:ip6 ipv6_dst_nxm:ip6 icmpv6_type_nxm:1 icmpv6_code_nxm:1"
        " nd_target:ip6 nd_sll:mac nd_tll:mac ip_frag:1 ipv6_label:4 ip_ecn_nxm:1 nw_ttl:1 mpls_ttl:1 tun_ipv4_src:ip"
        " tun_ipv4_dst:ip pkt_mark:4 tcp_flags_nxm:2",
    ),
    (1, b"", 36, "_recirc_id:4 conj_id:4 tun_gbp_id:2 tun_gbp_flags:1"),
    (
        1,
        b"",
        104,
        "tun_flags:2 ct_state:4 ct_zone:2 ct_mark:4 ct_label:16 tun_ipv6_src:ip6 tun_ipv6_dst:ip6 xxreg0:16 xxreg1:16"
        " xxreg2:16 xxreg3:16",
    ),
    # Experimenters': of the Open Networking Foundation, of Nicira, and of network service headers.
    (_EXPERIMENTER_CLASS, _ONF, 42, "tcp_flags:2 actset_output:4"),
    (_EXPERIMENTER_CLASS, _ONF + bytes([0x0A, 0x00]), 0, "pbb_uca:1"),
    (_EXPERIMENTER_CLASS, (0x2320).to_bytes(4, "big"), 0, "_dp_hash:4"),
    (
        _EXPERIMENTER_CLASS,
        (0x5AD650).to_bytes(4, "big"),
        1,
        "nsh_flags:1 nsh_mdtype:1 nsh_np:1 nsh_spi:4 nsh_si:1 nsh_c1:4 nsh_c2:4 nsh_c3:4 nsh_c4:4 nsh_ttl:1",
    ),
)


def _fields() -> Iterator[OxmField]:
    sizes = {"mac": (6, "mac"), "ip": (4, "ip"), "ip6": (16, "ip")}
    for oxm_class, prefix, first, table in _TABLES:
        for number, entry in enumerate(table.split(), first):
            name, kind = entry.split(":")
            size, meaning = sizes.get(kind) or (int(kind), "int")
            yield OxmField(number, name, size, meaning, oxm_class, prefix)


FIELDS = tuple(_fields())
_BY_NAME = {field.name: field for field in FIELDS}
_BY_NUMBER = {(field.oxm_class, field.number, field.experimenter): field for field in FIELDS}


def field_named(name: str) -> OxmField:
    """Returns the field of a name; raises KeyError."""
    field = _BY_NAME.get(name)
    if field is None and name.startswith("field_"):
        field = _unnamed(int(name[6:]))
    if field is None:
        raise KeyError(f"unknown OXM field: {name}")
    return field


def name_of(oxm_class: int, number: int) -> str:
    """Returns the name of a field by its class and number."""
    return (_BY_NUMBER.get((oxm_class, number, None)) or _unnamed(oxm_class << 7 | number)).name


def _unnamed(number: int) -> OxmField:
    return OxmField(number & 0x7F, f"field_{number}", 0, "raw", number >> 7)


def _bytes(field: OxmField, value: Any) -> bytes:
    try:
        return field.to_bytes(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise ValueError(f"{field.name} is {value!r}: expected {field.expected()}") from None


def normalized(name: str, value: Any) -> Any:
    """Returns a value as programs see it: texts for addresses, and the masked bits alone. Invalid ones stay as they are, for
    the error when they are sent."""
    field = field_named(name)
    try:
        if field.kind == "ip" and isinstance(value, str) and "/" in value:
            network = ipaddress.ip_interface(value)
            value = (str(network.ip), str(network.netmask))
        if not isinstance(value, tuple):
            return field.from_bytes(field.to_bytes(value))
        data, mask = field.to_bytes(value[0]), field.to_bytes(value[1])
        masked = bytes(byte & bits for byte, bits in zip(data, mask, strict=True))
        return field.from_bytes(masked), field.from_bytes(mask)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return value


def encode(name: str, value: Any, out: bytearray) -> None:
    """Appends a field."""
    field = field_named(name)
    value, mask_value = value if isinstance(value, tuple) else (value, None)
    data = _bytes(field, value)
    mask = b"" if mask_value is None else _bytes(field, mask_value)
    out += field.header(len(data) + len(mask), bool(mask)) + data + mask


def decode_header(data: bytes, offset: int, end: int) -> tuple[OxmField, bool, int, int]:
    """Returns a field, whether it has a mask, the size of both, and the offset after the header."""
    if offset + 4 > end:
        raise Truncated("an OXM field has no header")
    oxm_class, number, length = struct.unpack_from("!HBB", data, offset)
    has_mask, number, offset = bool(number & 1), number >> 1, offset + 4
    experimenter = None
    if oxm_class == _EXPERIMENTER_CLASS and offset + 4 <= end:
        (experimenter,) = struct.unpack_from("!I", data, offset)
    field = _BY_NUMBER.get((oxm_class, number, experimenter))
    if field is None or data[offset : offset + len(field.prefix)] != field.prefix:
        field = _unnamed(oxm_class << 7 | number)
    return field, has_mask, length - len(field.prefix), offset + len(field.prefix)


def decode(data: bytes, offset: int, end: int) -> tuple[str, Any, int]:
    """Returns a field's name and value, and the offset after it."""
    field, has_mask, length, offset = decode_header(data, offset, end)
    after = offset + length
    if after > end:
        raise Truncated("an OXM field is longer than the match")
    payload = bytes(data[offset:after])
    if field.kind != "raw" and length != field.size * (1 + has_mask):
        raise Truncated(f"{field.name} has {length} bytes: expected {field.size * (1 + has_mask)}")
    if not has_mask:
        return field.name, field.from_bytes(payload), after
    half = length // 2
    return field.name, (field.from_bytes(payload[:half]), field.from_bytes(payload[half:])), after


def tlv(name: str, value: Any) -> dict[str, Any]:
    """Returns a field as JSON."""
    value, mask = value if isinstance(value, tuple) else (value, None)
    return {"OXMTlv": {"field": name, "value": value, "mask": mask}}


def untlv(json: dict[str, Any]) -> tuple[str, Any]:
    """Returns the name and value of a field in JSON; raises ValueError."""
    try:
        parts = json["OXMTlv"]
        value = parts["value"] if parts["mask"] is None else (parts["value"], parts["mask"])
        return parts["field"], value
    except (LookupError, TypeError):
        raise ValueError(f"a field is {json!r}: expected {tlv('in_port', 1)}") from None


class OFPMatch(Stringify):
    """The match of OpenFlow 1.3: `OFPMatch(eth_type=0x800, ipv4_src=("10.0.0.0", "255.0.0.0"))`."""

    def __init__(self, type_: int | None = None, length: int | None = None, _ordered_fields: Any = None, **fields: Any):
        self.type = 1
        self.length = length
        self._fields2: list[tuple[str, Any]]
        if _ordered_fields is not None:
            self._fields2 = [(name, normalized(name, value)) for name, value in _ordered_fields]
        elif (usual := CODEC.match_fields(fields)) is not None:
            self._fields2 = usual
        else:
            self._fields2 = [(name, normalized(name, value)) for name, value in fields.items()]
            self._sort()

    def _sort(self) -> None:
        # Conditions stand before the fields that need them, if they are in the order of their numbers.
        self._fields2.sort(key=lambda pair: field_named(pair[0]).rank)

    def __getitem__(self, name: str) -> Any:
        return dict(self._fields2)[name]

    def __contains__(self, name: object) -> bool:
        return any(name == each for each, _ in self._fields2)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a field's value."""
        return dict(self._fields2).get(name, default)

    def items(self) -> list[tuple[str, Any]]:
        """Returns all fields."""
        return self._fields2

    def iteritems(self) -> Iterator[tuple[str, Any]]:
        """Returns all fields."""
        return iter(dict(self._fields2).items())

    def _text(self) -> str:
        return f"OFPMatch(oxm_fields={dict(self._fields2)!r})"

    def to_jsondict(self, encode_string: Any = None) -> dict[str, Any]:
        """Returns the match as JSON."""
        fields = [tlv(name, value) for name, value in self._fields2]
        return {"OFPMatch": {"oxm_fields": fields, "length": self.length, "type": self.type}}

    @classmethod
    def from_jsondict(cls, dict_: dict[str, Any], decode_string: Any = None, **additional_args: Any) -> OFPMatch:
        """Returns the match of JSON; raises ValueError."""
        try:
            fields = list(dict_["oxm_fields"])
        except (LookupError, TypeError):
            raise ValueError(f"OFPMatch is {dict_!r}: expected a list in oxm_fields") from None
        return cls(_ordered_fields=[untlv(field) for field in fields])

    def encode(self, out: bytearray) -> None:
        """Appends the match, padded to 8 bytes."""
        start = len(out)
        out += struct.pack("!HH", self.type, 0)
        for name, value in self._fields2:
            encode(name, value, out)
        self.length = set_length(out, start)
        out += bytes(-self.length % 8)

    def serialize(self, buf: bytearray, offset: int | None = None) -> int:
        """Appends the match to a buffer; returns its length."""
        start = len(buf)
        self.encode(buf)
        return len(buf) - start

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[OFPMatch, int]:
        """Returns a match, and the offset after its padding."""
        fields_end = framed(data, offset, end)
        made = cls(length=fields_end - offset)
        after = fields_end + (-made.length % 8 if made.length else 0)
        offset += 4
        while offset < fields_end:
            name, value, offset = decode(data, offset, fields_end)
            made._fields2.append((name, value))
        return made, min(after, end)

    @classmethod
    def parser(cls, buf: bytes, offset: int) -> OFPMatch:
        """Returns the match at an offset."""
        return cls.decode(buf, offset, len(buf))[0]


#: Names that the old form's setters have for fields.
_OLD_NAMES = {"dl_dst": "eth_dst", "dl_src": "eth_src", "dl_type": "eth_type", "arp_opcode": "arp_op"}


def _setter(name: str, is_masked: bool) -> Callable[..., None]:
    def set_field(self: OFPMatch, value: Any, mask: Any = None) -> None:
        self._fields2 = [pair for pair in self._fields2 if pair[0] != name]
        self._fields2.append((name, normalized(name, (value, mask) if is_masked else value)))
        self._sort()

    return set_field


# The old form: `match.set_ipv4_src_masked(address, mask)`.
for _name in [*(field.name for field in FIELDS), *_OLD_NAMES]:
    setattr(OFPMatch, f"set_{_name}", _setter(_OLD_NAMES.get(_name, _name), False))
    setattr(OFPMatch, f"set_{_name}_masked", _setter(_OLD_NAMES.get(_name, _name), True))

CODEC.set_match(
    OFPMatch, [(field.name, field.oxm_class, field.number, field.size, field.kind) for field in FIELDS if not field.prefix]
)
