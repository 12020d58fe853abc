"""Ethernet addresses."""

from __future__ import annotations

from typing import Any

from urtica_ryu.structs import mac_bytes

HADDR_PATTERN = r"([0-9a-f]{2}:){5}[0-9a-f]{2}"

DONTCARE = bytes(6)
BROADCAST = b"\xff" * 6
DONTCARE_STR = "00:00:00:00:00:00"
BROADCAST_STR = "ff:ff:ff:ff:ff:ff"
MULTICAST = "fe:ff:ff:ff:ff:ff"
UNICAST = "01:00:00:00:00:00"


def is_multicast(addr: Any) -> bool:
    """Returns whether it is an address of a group; of bytes."""
    return bool(mac_bytes(addr)[0] & 1)


def haddr_to_str(addr: bytes | None) -> str:
    """Returns the text of bytes."""
    return "None" if addr is None else mac_bytes(addr).hex(":")


def haddr_to_int(addr: str) -> int:
    """Returns the number of a text."""
    return int.from_bytes(haddr_to_bin(addr), "big")


def haddr_to_bin(string: str) -> bytes:
    """Returns the bytes of a text."""
    try:
        return mac_bytes(string)
    except (TypeError, ValueError):
        raise ValueError(f"{string!r} is no Ethernet address: expected one such as '00:00:00:00:00:01'") from None


def haddr_bitand(addr: bytes, mask: bytes) -> bytes:
    """Returns the masked bits."""
    return bytes(byte & bits for byte, bits in zip(addr, mask, strict=True))
