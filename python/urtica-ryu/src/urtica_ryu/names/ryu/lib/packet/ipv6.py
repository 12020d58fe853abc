"""IPv6."""

from __future__ import annotations

from typing import Any

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import IPV6, U8, U16, U32, Field


class ipv6(PacketBase):
    """The IPv6 header. A payload length of 0 is computed. Extension headers stay in the payload's bytes."""

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
        return cls(first >> 28, first >> 20 & 0xFF, first & 0xFFFFF, **values), after

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        made, after = cls.decode(buf, offset, len(buf))
        end = after + made.payload_length if made.payload_length else len(buf)
        return made, made.next_type(), bytes(buf[after:end])

    def next_type(self) -> Any:
        return ipv4.get_packet_type(self.nxt) if self.nxt != 1 else None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        if not self.payload_length:
            self.payload_length = len(payload)
        return super().serialize(payload, prev)


ethernet.register_packet_type(ipv6, 0x86DD)
ipv4.register_packet_type(ipv6, 41)
