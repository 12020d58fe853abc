"""UDP."""

from __future__ import annotations

import struct
from typing import Any

from ryu.lib.packet import packet_utils
from ryu.lib.packet.dhcp import dhcp
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import U16, Field, speed_up

#: The client's and the server's.
_DHCP_PORTS = {67, 68}


class udp(PacketBase):
    """The UDP header. A length or a checksum of 0 is computed."""

    FIELDS = (
        Field("src_port", U16, 1),
        Field("dst_port", U16, 1),
        Field("total_length", U16, 0),
        Field("csum", U16, 0),
    )

    src_port: int
    dst_port: int
    total_length: int
    csum: int

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        made, after = cls.decode(buf, offset, len(buf))
        end = offset + made.total_length if made.total_length > 8 else len(buf)
        return made, made.next_type(), bytes(buf[after:end])

    def next_type(self) -> Any:
        return dhcp if {self.src_port, self.dst_port} <= _DHCP_PORTS else None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        if not self.total_length:
            self.total_length = 8 + len(payload)
        out = super().serialize(payload, prev)
        if not self.csum and prev is not None:
            # 0 says that there is none.
            self.csum = packet_utils.checksum_ip(prev, self.total_length, bytes(out) + bytes(payload)) or 0xFFFF
            struct.pack_into("!H", out, 6, self.csum)
        return out


speed_up(udp)
ipv4.register_packet_type(udp, 17)
