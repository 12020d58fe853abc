"""ICMP."""

from __future__ import annotations

import struct
from typing import Any

from ryu.lib.packet import packet_utils
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import REST, U8, U16, Field, Struct, pad

ICMP_ECHO_REPLY = 0
ICMP_DEST_UNREACH = 3
ICMP_SRC_QUENCH = 4
ICMP_REDIRECT = 5
ICMP_ECHO_REQUEST = 8
ICMP_TIME_EXCEEDED = 11

ICMP_ECHO_REPLY_CODE = 0
ICMP_HOST_UNREACH_CODE = 1
ICMP_PORT_UNREACH_CODE = 3
ICMP_TTL_EXPIRED_CODE = 0


class echo(Struct):
    """What an echo message carries."""

    FIELDS = (Field("id", U16, 0), Field("seq", U16, 0), Field("data", REST, None))


class dest_unreach(Struct):
    """What a message about an unreachable destination carries."""

    FIELDS = (pad(1), Field("data_len", U8, 0), Field("mtu", U16, 0), Field("data", REST, None))


class TimeExceeded(Struct):
    """What a message about a lifetime carries."""

    FIELDS = (pad(1), Field("data_len", U8, 0), pad(2), Field("data", REST, None))


_PAYLOADS: dict[int, Any] = {
    ICMP_ECHO_REPLY: echo,
    ICMP_ECHO_REQUEST: echo,
    ICMP_DEST_UNREACH: dest_unreach,
    ICMP_TIME_EXCEEDED: TimeExceeded,
}


class icmp(PacketBase):
    """The ICMP message. A checksum of 0 is computed."""

    FIELDS = (Field("type", U8, ICMP_ECHO_REQUEST), Field("code", U8, 0), Field("csum", U16, 0))

    def __init__(self, type_: int = ICMP_ECHO_REQUEST, code: int = 0, csum: int = 0, data: Any = b""):
        self.type = type_
        self.code = code
        self.csum = csum
        self.data = data

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        values, after = cls.LAYOUT.decode(buf, offset, len(buf))
        kind = _PAYLOADS.get(values["type"])
        data: Any = bytes(buf[after:])
        if kind is not None and data:
            data = kind.parser(data)
        return cls(values["type"], values["code"], values["csum"], data), None, None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        out = bytearray()
        self.encode(out)
        if hasattr(self.data, "encode") and not isinstance(self.data, str):
            self.data.encode(out)
        else:
            out += self.data or b""
        if not self.csum:
            self.csum = packet_utils.checksum(bytes(out) + bytes(payload))
            struct.pack_into("!H", out, 2, self.csum)
        return out


ipv4.register_packet_type(icmp, 1)
