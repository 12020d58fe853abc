"""IPv4 and IPv6 addresses."""

from __future__ import annotations

import ipaddress

from urtica_ryu.structs import ip_bytes


def valid_ipv4(addr: str, flags: int = 0) -> bool:
    """Returns whether a text is an IPv4 address, or one with a mask."""
    return _is_valid(ipaddress.IPv4Interface, addr)


def valid_ipv6(addr: str, flags: int = 0) -> bool:
    """Returns whether a text is an IPv6 address, or one with a mask."""
    return _is_valid(ipaddress.IPv6Interface, addr)


def _is_valid(kind: type, addr: str) -> bool:
    try:
        kind(addr)
    except ValueError:
        return False
    return isinstance(addr, str)


def ipv4_to_bin(ip: str) -> bytes:
    """Returns the bytes of an IPv4 address."""
    return ip_bytes(ip, 4)


def ipv4_to_int(ip: str) -> int:
    """Returns the number of an IPv4 address."""
    return int.from_bytes(ip_bytes(ip, 4), "big")


def ipv4_to_str(ip: int | bytes) -> str:
    """Returns the text of an IPv4 address."""
    return str(ipaddress.IPv4Address(ip))


def ipv6_to_bin(ip: str) -> bytes:
    """Returns the bytes of an IPv6 address."""
    return ip_bytes(ip, 16)


def ipv6_to_int(ip: str) -> int:
    """Returns the number of an IPv6 address."""
    return int.from_bytes(ip_bytes(ip, 16), "big")


def ipv6_to_str(ip: int | bytes) -> str:
    """Returns the text of an IPv6 address."""
    return str(ipaddress.IPv6Address(ip))


def text_to_bin(ip: str) -> bytes:
    """Returns the bytes of an IPv4 or IPv6 address."""
    return ipaddress.ip_address(ip).packed


def text_to_int(ip: str) -> int:
    """Returns the number of an IPv4 or IPv6 address."""
    return int(ipaddress.ip_address(ip))


def bin_to_text(ip: bytes) -> str:
    """Returns the text of an IPv4 or IPv6 address."""
    return str(ipaddress.ip_address(ip))
