"""Ethernet."""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import MAC, U16, Field, speed_up


class ethernet(PacketBase):
    """The Ethernet header."""

    FIELDS = (
        Field("dst", MAC, "ff:ff:ff:ff:ff:ff"),
        Field("src", MAC, "00:00:00:00:00:00"),
        Field("ethertype", U16, 0x0800),
    )
    _TYPES: ClassVar[dict[int, Any]] = {}

    def next_type(self) -> Any:
        # Up to this it is a length (IEEE 802.3).
        return self.get_packet_type(max(self.ethertype, 0x05DC))

    ethertype: int
    dst: str
    src: str

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        # A frame has 60 bytes at least.
        if isinstance(payload, bytearray) and len(payload) < 46:
            payload += bytes(46 - len(payload))
        return super().serialize(payload, prev)


speed_up(ethernet, next=("ethertype", 0x05DC, None, None))
