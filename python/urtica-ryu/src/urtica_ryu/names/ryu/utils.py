"""Texts of bytes, for logs."""

from __future__ import annotations


def hex_array(data: bytes) -> str:
    """Returns bytes as `0x01 0x02`."""
    return " ".join(f"0x{byte:02x}" for byte in data)


def binary_str(data: bytes) -> str:
    """Returns bytes as `\\x01\\x02`."""
    return "".join(f"\\x{byte:02x}" for byte in data)
