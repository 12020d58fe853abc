"""IPv4."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet import packet_utils
from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.fast import CODEC
from urtica_ryu.structs import IPV4, U8, U16, Field, Truncated, native_fields, speed_up


class ipv4(PacketBase):
    """The IPv4 header. A total length of 0 is computed; the checksum always is."""

    FIELDS = (
        Field("_version_length", U8),
        Field("tos", U8, 0),
        Field("total_length", U16, 0),
        Field("identification", U16, 0),
        Field("_flags_offset", U16),
        Field("ttl", U8, 255),
        Field("proto", U8, 0),
        Field("csum", U16, 0),
        Field("src", IPV4, "10.0.0.1"),
        Field("dst", IPV4, "10.0.0.2"),
    )
    _TYPES: ClassVar[dict[int, Any]] = {}

    def __init__(
        self,
        version: int = 4,
        header_length: int = 5,
        tos: int = 0,
        total_length: int = 0,
        identification: int = 0,
        flags: int = 0,
        offset: int = 0,
        ttl: int = 255,
        proto: int = 0,
        csum: int = 0,
        src: str = "10.0.0.1",
        dst: str = "10.0.0.2",
        option: bytes | None = None,
    ):
        self.version = version
        self.header_length = header_length
        self.tos = tos
        self.total_length = total_length
        self.identification = identification
        self.flags = flags
        self.offset = offset
        self.ttl = ttl
        self.proto = proto
        self.csum = csum
        self.src = src
        self.dst = dst
        self.option = option

    def __len__(self) -> int:
        return self.header_length * 4

    @property
    def _version_length(self) -> int:
        return self.version << 4 | self.header_length

    @property
    def _flags_offset(self) -> int:
        return self.flags << 13 | self.offset

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        usual = CODEC.decode(cls, data, offset, end)
        if usual is not None:
            return usual
        values, after = cls.LAYOUT.decode(data, offset, end)
        first, second = values.pop("_version_length"), values.pop("_flags_offset")
        length = (first & 0xF) * 4
        if length < 20 or offset + length > end:
            raise Truncated(f"an IPv4 header has {length} bytes")
        option = bytes(data[after : offset + length]) or None
        made = cls(first >> 4, first & 0xF, flags=second >> 13, offset=second & 0x1FFF, option=option, **values)
        return made, offset + length

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        made, after = cls.decode(buf, offset, len(buf))
        # What is behind the total length is padding.
        end = max(after, offset + made.total_length) if made.total_length else len(buf)
        return made, made.next_type(), bytes(buf[after:end])

    def next_type(self) -> Any:
        return None if self.offset else self.get_packet_type(self.proto)

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        option = self.option or b""
        self.header_length = max(self.header_length, 5 + -(-len(option) // 4))
        if not self.total_length:
            self.total_length = self.header_length * 4 + len(payload)
        self.csum = 0
        out = bytearray()
        self.encode(out)
        out += option + bytes(self.header_length * 4 - 20 - len(option))
        self.csum = packet_utils.checksum(out)
        struct.pack_into("!H", out, 10, self.csum)
        return out


speed_up(
    ipv4,
    fields=[
        ("", "bits", [("version", 4), ("header_length", 4)]),
        *native_fields(ipv4.FIELDS[1:4]),
        ("", "bits", [("flags", 3), ("offset", 13)]),
        *native_fields(ipv4.FIELDS[5:]),
        ("option", "ipv4_options", "header_length"),
    ],
    next=("proto", 0, "offset", "total_length"),
)
ethernet.register_packet_type(ipv4, 0x0800)
