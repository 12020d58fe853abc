"""Addresses as texts and bytes: `ipv4`, `ipv6` and `mac` have `text_to_bin` and `bin_to_text`."""

from __future__ import annotations

import ipaddress

from urtica_ryu.structs import ip_bytes, mac_bytes


class AddressConverter:
    """Converts the addresses of one kind, of `size` bytes."""

    def __init__(self, size: int):
        self.size = size

    def text_to_bin(self, text: str) -> bytes:
        """Returns the bytes of a text."""
        return mac_bytes(text) if self.size == 6 else ip_bytes(text, self.size)

    def bin_to_text(self, data: bytes) -> str:
        """Returns the text of bytes."""
        return mac_bytes(data).hex(":") if self.size == 6 else str(ipaddress.ip_address(ip_bytes(data, self.size)))


ipv4 = AddressConverter(4)
ipv6 = AddressConverter(16)
mac = AddressConverter(6)
