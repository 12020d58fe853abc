"""VLAN tags."""

from __future__ import annotations

import struct
from typing import Any

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import Truncated


class _Tag(PacketBase):
    _MIN_LEN = 4

    def __init__(self, pcp: int = 0, cfi: int = 0, vid: int = 0, ethertype: int = 0x0800):
        self.pcp = pcp
        self.cfi = cfi
        self.vid = vid
        self.ethertype = ethertype

    def encode(self, out: bytearray) -> None:
        for name, value, most in [("pcp", self.pcp, 7), ("cfi", self.cfi, 1), ("vid", self.vid, 4095)]:
            if not 0 <= value <= most:
                raise ValueError(f"{name} of {type(self).__name__} is {value!r}: expected a number from 0 to {most}")
        out += struct.pack("!HH", self.pcp << 13 | self.cfi << 12 | self.vid, self.ethertype)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        if offset + 4 > end:
            raise Truncated("a VLAN tag has 4 bytes")
        tag, ethertype = struct.unpack_from("!HH", data, offset)
        return cls(tag >> 13, tag >> 12 & 1, tag & 0xFFF, ethertype), offset + 4

    def next_type(self) -> Any:
        return ethernet.get_packet_type(self.ethertype)


class vlan(_Tag):
    """The inner tag."""


class svlan(_Tag):
    """The outer tag of 802.1ad."""

    def __init__(self, pcp: int = 0, cfi: int = 0, vid: int = 0, ethertype: int = 0x8100):
        super().__init__(pcp, cfi, vid, ethertype)


ethernet.register_packet_type(vlan, 0x8100)
ethernet.register_packet_type(svlan, 0x88A8)
