"""MPLS."""

from __future__ import annotations

from typing import Any

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import U32, Field


class mpls(PacketBase):
    """A label of the stack; `bsb` is 1 in the last."""

    FIELDS = (Field("_entry", U32),)

    def __init__(self, label: int = 0, exp: int = 0, bsb: int = 1, ttl: int = 255):
        self.label = label
        self.exp = exp
        self.bsb = bsb
        self.ttl = ttl

    @property
    def _entry(self) -> int:
        return self.label << 12 | self.exp << 9 | self.bsb << 8 | self.ttl

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        entry = values["_entry"]
        return cls(entry >> 12, entry >> 9 & 7, entry >> 8 & 1, entry & 0xFF), after

    def next_type(self) -> Any:
        # Labels do not say what they carry.
        return ipv4 if self.bsb else mpls


ethernet.register_packet_type(mpls, 0x8847)
