"""Checksums."""

from __future__ import annotations

import struct
from typing import Any

from urtica_ryu.structs import ip_bytes


def checksum(data: Any) -> int:
    """Returns the Internet checksum (RFC 1071)."""
    data = bytes(data) + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def checksum_ip(ip: Any, length: int, payload: Any) -> int:
    """Returns the checksum of what IP carries, with its pseudo header. `ip` is the header."""
    if ip.version == 4:
        pseudo = struct.pack("!4s4sBBH", ip_bytes(ip.src, 4), ip_bytes(ip.dst, 4), 0, ip.proto, length)
    else:
        last = ip.ext_hdrs[-1].nxt if ip.ext_hdrs else ip.nxt
        pseudo = struct.pack("!16s16sI3xB", ip_bytes(ip.src, 16), ip_bytes(ip.dst, 16), length, last)
    return checksum(pseudo + bytes(payload))
