"""IPv6, with its extension headers."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import IPV6, REST, U8, U16, U32, Field, Many, Struct, Truncated, pad


class header(Struct):
    """An extension header."""

    TEXTS = frozenset({"adrs"})
    #: The extension headers, by number.
    KINDS: ClassVar[dict[int, type[header]]] = {}
    TYPE: ClassVar[Any] = None

    nxt: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.TYPE is not None:
            cls.KINDS[cls.TYPE] = cls

    def __len__(self) -> int:
        out = bytearray()
        self.encode(out)
        return len(out)

    def __bool__(self) -> bool:
        return True


def _end(data: bytes, offset: int, end: int, unit: int, first: int) -> int:
    """Returns the end of a header with its length, without the `first` bytes, at offset 1, in units."""
    if offset + 2 > end:
        raise Truncated("an extension header ends early")
    after = offset + first + unit * data[offset + 1]
    if after > end:
        raise Truncated("an extension header ends early")
    return after


class option(Struct):
    """An option. A length of -1 stands for none: `Pad1` has no length."""

    FIELDS = (Field("type_", U8, 0), Field("len_", U8, -1), Field("data", REST, None))

    type_: int
    len_: int
    data: Any

    def encode(self, out: bytearray) -> None:
        if self.len_ == -1:
            out += struct.pack("!B", self.type_)
            return
        out += struct.pack("!BB", self.type_, self.len_)
        if self.data is not None:
            out += self.data

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        if data[offset] == 0:
            return cls(), offset + 1
        after = _end(data, offset, end, 1, 2)
        return cls(data[offset], data[offset + 1], bytes(data[offset + 2 : after]) or None), after

    def __len__(self) -> int:
        return 1 if self.len_ == -1 else 2 + self.len_


class opt_header(header):
    """A header with options. A size, in 8 bytes besides the first, of 0 is that of one option that pads it."""

    def __init__(self, nxt: int = 6, size: int = 0, data: list[option] | None = None):
        self.nxt = nxt
        self.size = size
        self.data = data if data else [option(1, size + 4, bytes(size + 4))]

    def encode(self, out: bytearray) -> None:
        out += struct.pack("!BB", self.nxt, self.size)
        for each in self.data:
            each.encode(out)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = _end(data, offset, end, 8, 8)
        options, _ = Many(option.decode, "options").decode(data, offset + 2, after)
        return cls(data[offset], data[offset + 1], options), after


class hop_opts(opt_header):
    """The options for each hop."""

    TYPE = 0
    FIELDS = (Field("nxt", U8), Field("size", U8), Field("data", REST, None))
    __init__ = opt_header.__init__


class dst_opts(opt_header):
    """The options for the destination."""

    TYPE = 60
    FIELDS = (Field("nxt", U8), Field("size", U8), Field("data", REST, None))
    __init__ = opt_header.__init__


class routing(header):
    """The routing header, of one of its types."""

    TYPE = 43
    ROUTES: ClassVar[dict[int, type[header]]] = {}

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        _end(data, offset, end, 8, 8)
        found = cls.ROUTES.get(data[offset + 2])
        if found is None:
            raise Truncated("a routing header of an unknown type")
        return found.decode(data, offset, end)


class routing_type3(header):
    """The source route of RPL (RFC 6554). Of each address, the first `cmpi` bytes are left out; of the last, `cmpe`."""

    FIELDS = (
        Field("nxt", U8, 6),
        Field("size", U8, 0),
        Field("type_", U8, 3),
        Field("seg", U8, 0),
        Field("_compressed", U8),
        Field("_pad", U8),
        pad(2),
    )

    def __init__(
        self,
        nxt: int = 6,
        size: int = 0,
        type_: int = 3,
        seg: int = 0,
        cmpi: int = 0,
        cmpe: int = 0,
        adrs: list[str] | None = None,
    ):
        self.nxt = nxt
        self.size = size
        self.type_ = type_
        self.seg = seg
        self.cmpi = cmpi
        self.cmpe = cmpe
        self.adrs = adrs or []
        self._pad = (8 - (len(self.adrs) - 1) * (16 - cmpi) - (16 - cmpe)) % 8 if self.adrs else 0

    @property
    def _compressed(self) -> int:
        return self.cmpi << 4 | self.cmpe

    def _left_out(self, number: int) -> int:
        return self.cmpe if number == len(self.adrs) - 1 else self.cmpi

    def encode(self, out: bytearray) -> None:
        start = len(out)
        pad_bytes, self._pad = self._pad, self._pad << 4
        self.LAYOUT.encode(self, out)
        self._pad = pad_bytes
        for number, address in enumerate(self.adrs):
            out += IPV6.to_wire(address)[self._left_out(number) :]
        out += bytes(pad_bytes)
        if not self.size:
            self.size = (len(out) - start - 8) // 8
            out[start + 1] = self.size

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = _end(data, offset, end, 8, 8)
        values, at = cls.LAYOUT.decode(data, offset, after)
        compressed, padding = values.pop("_compressed"), values.pop("_pad") >> 4
        made = cls(**values, cmpi=compressed >> 4, cmpe=compressed & 15)
        rest = bytes(data[at : after - padding])
        each, last = 16 - made.cmpi, 16 - made.cmpe
        if rest:
            cuts = [*range(0, len(rest) - last, each), len(rest) - last]
            made.adrs = [cls._address(rest[cut : cut + each]) for cut in cuts[:-1]] + [cls._address(rest[cuts[-1] :])]
        made._pad = padding
        return made, after

    @staticmethod
    def _address(tail: bytes) -> str:
        if len(tail) > 16:
            raise Truncated("an address of a source route is too long")
        return IPV6.from_wire(bytes(16 - len(tail)) + tail)


routing.ROUTES[3] = routing_type3


class fragment(header):
    """The fragment header. The offset is in 8 bytes."""

    TYPE = 44
    FIELDS = (Field("nxt", U8, 6), pad(1), Field("_place", U16), Field("id_", U32, 0))

    def __init__(self, nxt: int = 6, offset: int = 0, more: int = 0, id_: int = 0):
        self.nxt = nxt
        self.offset = offset
        self.more = more
        self.id_ = id_

    @property
    def _place(self) -> int:
        return self.offset << 3 | self.more

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        place = values.pop("_place")
        return cls(offset=place >> 3, more=place & 1, **values)


class auth(header):
    """The authentication header. Its size is in 4 bytes, without the first 8."""

    TYPE = 51
    FIELDS = (Field("nxt", U8, 6), Field("size", U8, 2), pad(2), Field("spi", U32, 0), Field("seq", U32, 0), Field("data", REST))

    def __init__(self, nxt: int = 6, size: int = 2, spi: int = 0, seq: int = 0, data: bytes = bytes(4)):
        self.nxt = nxt
        self.size = size
        self.spi = spi
        self.seq = seq
        self.data = data

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = _end(data, offset, end, 4, 8)
        return cls(**cls.LAYOUT.decode(data, offset, after)[0]), after


class ipv6(PacketBase):
    """The IPv6 header, and extension headers. A payload length of 0 is computed."""

    FIELDS = (
        Field("_first", U32),
        Field("payload_length", U16, 0),
        Field("nxt", U8, 6),
        Field("hop_limit", U8, 255),
        Field("src", IPV6, "10::10"),
        Field("dst", IPV6, "20::20"),
    )

    def __init__(
        self,
        version: int = 6,
        traffic_class: int = 0,
        flow_label: int = 0,
        payload_length: int = 0,
        nxt: int = 6,
        hop_limit: int = 255,
        src: str = "10::10",
        dst: str = "20::20",
        ext_hdrs: list[Any] | None = None,
    ):
        self.version = version
        self.traffic_class = traffic_class
        self.flow_label = flow_label
        self.payload_length = payload_length
        self.nxt = nxt
        self.hop_limit = hop_limit
        self.src = src
        self.dst = dst
        self.ext_hdrs = ext_hdrs or []

    @property
    def _first(self) -> int:
        return self.version << 28 | self.traffic_class << 20 | self.flow_label

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        first = values.pop("_first")
        made = cls(first >> 28, first >> 20 & 0xFF, first & 0xFFFFF, **values)
        nxt = made.nxt
        while nxt in header.KINDS:
            extension, after = header.KINDS[nxt].decode(data, after, end)
            made.ext_hdrs.append(extension)
            nxt = extension.nxt
        return made, after

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        made, after = cls.decode(buf, offset, len(buf))
        end = offset + cls._MIN_LEN + made.payload_length if made.payload_length else len(buf)
        return made, made.next_type(), bytes(buf[after:end])

    def next_type(self) -> Any:
        last = self.ext_hdrs[-1] if self.ext_hdrs else self
        is_later_fragment = isinstance(last, fragment) and last.offset
        return ipv4.get_packet_type(last.nxt) if last.nxt != 1 and not is_later_fragment else None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        extensions = bytearray()
        for extension in self.ext_hdrs:
            extension.encode(extensions)
        if not self.payload_length:
            self.payload_length = len(extensions) + len(payload)
        return super().serialize(payload, prev) + extensions

    def __len__(self) -> int:
        return self._MIN_LEN + sum(map(len, self.ext_hdrs))


ethernet.register_packet_type(ipv6, 0x86DD)
ipv4.register_packet_type(ipv6, 41)
