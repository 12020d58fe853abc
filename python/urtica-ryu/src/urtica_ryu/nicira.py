"""The parts of Nicira's actions: kinds of fields, and the actions whose fields are not all they have."""

from __future__ import annotations

import ipaddress
import struct
from typing import Any, ClassVar

from urtica_ryu import oxm
from urtica_ryu.structs import (
    REST,
    Kind,
    Stringify,
    Struct,
    Truncated,
    framed,
    ip_bytes,
    set_length,
)

#: Nicira's number as an experimenter.
NICIRA = 0x00002320


class Header(Kind):
    """A field's name, on the wire the header of the field."""

    expected = "the name of a field, such as 'reg0'"

    def __init__(self, none: Any = None):
        #: Stands for no field, if there may be none.
        self.none = none

    def encode(self, value: Any, out: bytearray) -> None:
        if not value and self.none is not None:
            out += bytes(4)
            return
        try:
            field = oxm.field_named(value)
        except (KeyError, ValueError):
            raise TypeError from None
        out += field.header(field.size)

    def decode(self, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        if self.none is not None and data[offset : min(offset + 4, end)] == bytes(4):
            return self.none, offset + 4
        field, _, _, after = oxm.decode_header(data, offset, end)
        return field.name, after


class Numbers(Kind):
    """Numbers of 2 bytes up to the end, of which another field has the count."""

    expected = "a list of numbers from 0 to 0xffff"

    def encode(self, value: Any, out: bytearray) -> None:
        try:
            out += struct.pack(f"!{len(value)}H", *value)
        except struct.error:
            raise TypeError from None

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[int], int]:
        count = (end - offset) // 2
        return list(struct.unpack_from(f"!{count}H", data, offset)), end


class NoteKind(Kind):
    """Bytes, as a list of numbers."""

    expected = "a list of numbers from 0 to 0xff"

    def encode(self, value: Any, out: bytearray) -> None:
        try:
            out += bytes(value)
        except ValueError:
            raise TypeError from None

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[int], int]:
        return list(data[offset:end]), end


HEADER, NUMBERS, NOTE = Header(), Numbers(), NoteKind()
#: Stands for the actions of a version.
ACTION_LIST = Kind()

# The entries that NXActionLearn adds

_LEARN_IMMEDIATE = 1 << 13
_LEARN_BITS = 0x7FF


class FlowSpec(Stringify):
    """A part of the entry: `src` is a number, or a field and the number of its first bit, as `dst` is."""

    #: The number on the wire, in bits 11 and 12.
    KIND: ClassVar[int] = 0
    HAS_DST: ClassVar[bool] = True
    KINDS: ClassVar[dict[int, type[FlowSpec]]] = {}

    TEXTS = frozenset({"src", "dst"})

    def __init__(self, src: Any, dst: Any, n_bits: int):
        # JSON has lists.
        self.src: Any = tuple(src) if isinstance(src, list) else src
        self.dst: Any = tuple(dst) if isinstance(dst, list) else dst
        self.n_bits = n_bits

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.KINDS[cls.KIND] = cls

    def encode(self, out: bytearray) -> None:
        """Appends the part."""
        try:
            is_number = isinstance(self.src, int)
            head = self.KIND << 11 | self.n_bits | (_LEARN_IMMEDIATE if is_number else 0)
            if not 0 < self.n_bits <= _LEARN_BITS:
                raise ValueError
            out += struct.pack("!H", head)
            if is_number:
                out += self.src.to_bytes(-(-self.n_bits // 16) * 2, "big")
            else:
                self._encode_field(self.src, out)
            if self.HAS_DST:
                self._encode_field(self.dst, out)
        except (TypeError, ValueError, OverflowError, struct.error):
            expected = "a number or a field such as ('reg0', 0), a field, and the number of bits"
            shown = f"src={self.src!r}, dst={self.dst!r}, n_bits={self.n_bits!r}"
            raise ValueError(f"{type(self).__name__} has {shown}: expected {expected}") from None

    @staticmethod
    def _encode_field(field: Any, out: bytearray) -> None:
        name, first_bit = field
        HEADER.encode(name, out)
        out += struct.pack("!H", first_bit)

    @staticmethod
    def _decode_field(data: bytes, offset: int, end: int) -> tuple[tuple[str, int], int]:
        name, offset = HEADER.decode(data, offset, end)
        (first_bit,) = struct.unpack_from("!H", data, offset)
        return (name, first_bit), offset + 2

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        """Returns a part, and the offset after it; None for padding."""
        (head,) = struct.unpack_from("!H", data, offset)
        if not head:
            return None, end
        offset += 2
        n_bits = head & _LEARN_BITS
        found = cls.KINDS.get(head >> 11 & 3)
        if found is None:
            raise ValueError(f"a part of an entry has the unknown head {head:#x}")
        src: Any
        if head & _LEARN_IMMEDIATE:
            after = offset + -(-n_bits // 16) * 2
            src, offset = int.from_bytes(data[offset:after], "big"), after
        else:
            src, offset = cls._decode_field(data, offset, end)
        dst: Any = ""
        if found.HAS_DST:
            dst, offset = cls._decode_field(data, offset, end)
        if offset > end:
            raise Truncated("a part of an entry ends early")
        return found(src=src, dst=dst, n_bits=n_bits), offset


class NXFlowSpecMatch(FlowSpec):
    """The entry matches these bits."""

    KIND = 0


class NXFlowSpecLoad(FlowSpec):
    """The entry sets these bits."""

    KIND = 1


class NXFlowSpecOutput(FlowSpec):
    """The entry sends packets to the port that the field has."""

    KIND = 2
    HAS_DST = False

    def __init__(self, src: Any, n_bits: int, dst: Any = ""):
        super().__init__(src, dst, n_bits)


# Actions

#: The ends of ranges of NXActionNAT, in the order of their bits and of the wire, and their sizes.
_NAT_RANGES = (
    ("range_ipv4_min", 4),
    ("range_ipv4_max", 4),
    ("range_ipv6_min", 16),
    ("range_ipv6_max", 16),
    ("range_proto_min", 2),
    ("range_proto_max", 2),
)


class NXAction(Struct):
    """An action of Nicira's, over the class that a version's parser has for experimenters' actions."""

    SUBTYPE: ClassVar[Any] = None
    #: The attribute that has Nicira's number.
    VENDOR: ClassVar[str] = ""
    IGNORED: ClassVar[tuple[str, ...]] = ("type_", "len_", "experimenter", "vendor", "subtype")
    TEXTS = frozenset({"dst", "src", "src_field", "dst_field", "field", "zone_src", *(name for name, _ in _NAT_RANGES)})

    def _begin(self) -> None:
        self.type = 0xFFFF
        self.len: int | None = None
        self.subtype = self.SUBTYPE
        setattr(self, self.VENDOR, NICIRA)

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!HHI", 0xFFFF, 0, NICIRA)
        try:
            out += struct.pack("!H", self.subtype)
        except struct.error:
            expected = "a number from 0 to 0xffff"
            raise ValueError(f"subtype of {type(self).__name__} is {self.subtype!r}: expected {expected}") from None
        self._encode_fields(out)
        self.len = set_length(out, start, align=8)

    def _encode_fields(self, out: bytearray) -> None:
        self.LAYOUT.encode(self, out)

    @classmethod
    def decode_fields(cls, data: bytes, offset: int, end: int) -> Any:
        """Returns the action of its fields."""
        return cls.made(cls.LAYOUT.decode(data, offset, end)[0])


class RegLoad2Body(NXAction):
    """Loads a field: the field, its value and mask are one structure."""

    TEXTS = NXAction.TEXTS | {"value", "mask"}

    dst: str
    value: Any
    mask: Any

    def _encode_fields(self, out: bytearray) -> None:
        try:
            oxm.encode(self.dst, self.value if self.mask is None else (self.value, self.mask), out)
        except KeyError:
            raise ValueError(f"dst of {type(self).__name__} is {self.dst!r}: expected {Header.expected}") from None

    @classmethod
    def decode_fields(cls, data: bytes, offset: int, end: int) -> Any:
        name, value, _ = oxm.decode(data, offset, end)
        value, mask = value if isinstance(value, tuple) else (value, None)
        return cls.made({"dst": name, "value": value, "mask": mask})


class LearnBody(NXAction):
    """Adds an entry made of the packet."""

    specs: list[Any]

    @classmethod
    def decode_fields(cls, data: bytes, offset: int, end: int) -> Any:
        made = super().decode_fields(data, offset, end)
        made.specs = [spec for spec in made.specs if spec is not None]
        return made


class CountedBody(NXAction):
    """Has a list of numbers, and their count before it."""

    COUNT: ClassVar[str]
    LIST: ClassVar[str]

    def _encode_fields(self, out: bytearray) -> None:
        numbers = getattr(self, self.LIST)
        setattr(self, self.COUNT, len(numbers) if hasattr(numbers, "__len__") else 0)
        super()._encode_fields(out)

    @classmethod
    def decode_fields(cls, data: bytes, offset: int, end: int) -> Any:
        made = super().decode_fields(data, offset, end)
        numbers, count = getattr(made, cls.LIST), getattr(made, cls.COUNT)
        if count > len(numbers):
            raise Truncated(f"{cls.__name__} has {len(numbers)} numbers: expected {count}")
        setattr(made, cls.LIST, numbers[:count])
        return made


class BundleBody(CountedBody):
    """Chooses a port by the fields of the packet."""

    COUNT, LIST = "n_slaves", "slaves"


class NoteBody(NXAction):
    """Does nothing. The bytes have the padding once they are serialized, as under Ryu."""

    note: Any

    def _encode_fields(self, out: bytearray) -> None:
        super()._encode_fields(out)
        self.note = [*self.note, *bytes(-(2 + len(self.note)) % 8)]


class CntIdsBody(CountedBody):
    """Decrements the TTL; packets that reach 0 go to these controllers."""

    COUNT, LIST = "_count", "cnt_ids"


class NatBody(NXAction):
    """Translates addresses and ports: the ends of ranges are optional."""

    flags: int

    def __init__(
        self,
        flags: int,
        range_ipv4_min: str = "",
        range_ipv4_max: str = "",
        range_ipv6_min: str = "",
        range_ipv6_max: str = "",
        range_proto_min: int | None = None,
        range_proto_max: int | None = None,
        *_ignored: Any,
        **_more: Any,
    ):
        self._begin()
        self.flags = flags
        ends = (range_ipv4_min, range_ipv4_max, range_ipv6_min, range_ipv6_max, range_proto_min, range_proto_max)
        for (name, _), value in zip(_NAT_RANGES, ends, strict=True):
            setattr(self, name, value)

    def _encode_fields(self, out: bytearray) -> None:
        present, ranges = 0, bytearray()
        for bit, (name, size) in enumerate(_NAT_RANGES):
            value = getattr(self, name)
            if value in ("", None):
                continue
            present |= 1 << bit
            try:
                ranges += struct.pack("!H", value) if size == 2 else ip_bytes(value, size)
            except (struct.error, TypeError, ValueError, OverflowError):
                expected = {2: "a number from 0 to 0xffff", 4: "an IPv4 address", 16: "an IPv6 address"}[size]
                raise ValueError(f"{name} of {type(self).__name__} is {value!r}: expected {expected}") from None
        super()._encode_fields(out)
        out += struct.pack("!H", present) + ranges

    @classmethod
    def decode_fields(cls, data: bytes, offset: int, end: int) -> Any:
        made = super().decode_fields(data, offset, end)
        offset += 4
        (present,) = struct.unpack_from("!H", data, offset)
        offset += 2
        for bit, (name, size) in enumerate(_NAT_RANGES):
            value: Any = None if size == 2 else ""
            if present >> bit & 1:
                part = data[offset : min(offset + size, end)]
                if len(part) < size:
                    raise Truncated("the ranges end early")
                value = int.from_bytes(part, "big") if size == 2 else str(ipaddress.ip_address(bytes(part)))
                offset += size
            setattr(made, name, value)
        return made


class Controller2Body(NXAction):
    """Sends the packet to a controller: the settings that are not None are written, each with its number and length."""

    #: The format of each setting; without one it is bytes, or a flag without a value.
    SETTINGS: ClassVar[dict[str, tuple[int, str]]] = {
        "max_len": (0, "!H2x"),
        "controller_id": (1, "!H2x"),
        "reason": (2, "!B"),
        "userdata": (3, ""),
        "pause": (4, ""),
    }

    def __init__(self, *_ignored: Any, **settings: Any):
        self._begin()
        given = {name: value for name, value in settings.items() if name not in self.IGNORED}
        unknown = [name for name in given if name not in self.SETTINGS]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {unknown[0]}: expected {', '.join(self.SETTINGS)}")
        vars(self).update(given)

    def _encode_fields(self, out: bytearray) -> None:
        out += bytes(6)
        for name, (number, layout) in self.SETTINGS.items():
            value = getattr(self, name, None)
            # A flag that is false is as if it were not there.
            if value is None or value is False:
                continue
            start = len(out)
            out += struct.pack("!HH", number, 0)
            try:
                out += struct.pack(layout, value) if layout else b"" if value is True else bytes(value)
            except (struct.error, TypeError, ValueError):
                expected = "a number" if layout else "True" if name == "pause" else "bytes"
                raise ValueError(f"{name} of {type(self).__name__} is {value!r}: expected {expected}") from None
            set_length(out, start)
            out += bytes(start - len(out) & 7)

    @classmethod
    def decode_fields(cls, data: bytes, offset: int, end: int) -> Any:
        values: dict[str, Any] = {}
        names = {number: (name, layout) for name, (number, layout) in cls.SETTINGS.items()}
        offset += 6
        while offset < end:
            after = framed(data, offset, end)
            (number,) = struct.unpack_from("!H", data, offset)
            if number not in names:
                raise ValueError(f"{cls.__name__} has the unknown property {number}")
            name, layout = names[number]
            body = bytes(data[offset + 4 : after])
            values[name] = True if name == "pause" else struct.unpack_from(layout, body)[0] if layout else list(body)
            offset = after + (offset - after & 7)
        return cls(**values)


class UnknownBody(NXAction):
    """An action without a class here: its number, and bytes."""

    def __init__(self, subtype: int, data: Any = None, *_ignored: Any, **_more: Any):
        self._begin()
        self.subtype = subtype
        self.data = data

    def _encode_fields(self, out: bytearray) -> None:
        REST.encode(self.data, out)


class EncapBody(NXAction):
    """Adds a header."""

    IGNORED = (*NXAction.IGNORED, "hdr_size", "new_pkt_type")

    hdr_size: int
    new_pkt_type: int
    #: The type of the header.
    PACKET_TYPE: ClassVar[int] = 0

    def _begin(self) -> None:
        super()._begin()
        self.hdr_size = 0
        self.new_pkt_type = self.PACKET_TYPE

    def _encode_fields(self, out: bytearray) -> None:
        out += struct.pack("!HI", self.hdr_size, self.new_pkt_type)


class EncapNshBody(EncapBody):
    """Adds the header of a service function path."""

    PACKET_TYPE = 0x1894F
