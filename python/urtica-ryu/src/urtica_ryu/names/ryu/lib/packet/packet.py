"""Packets: a list of protocols, and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ryu.lib.packet import (
    arp,
    bpdu,
    dhcp,
    ethernet,
    icmp,
    icmpv6,
    igmp,
    ipv4,
    ipv6,
    llc,
    lldp,
    mpls,
    sctp,
    slow,
    tcp,
    udp,
    vlan,
)
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.fast import CODEC
from urtica_ryu.structs import Stringify, Truncated

__all__ = [
    "Packet",
    "arp",
    "bpdu",
    "dhcp",
    "ethernet",
    "icmp",
    "icmpv6",
    "igmp",
    "ipv4",
    "ipv6",
    "llc",
    "lldp",
    "mpls",
    "sctp",
    "slow",
    "tcp",
    "udp",
    "vlan",
]


class Packet(Stringify):
    """A packet: of bytes, `Packet(data)`, or built by `add_protocol` and `serialize`."""

    def __init__(self, data: Any = None, protocols: Any = None, parse_cls: Any = ethernet.ethernet):
        self.data = data
        self.protocols: list[Any] = [] if protocols is None else protocols
        if self.data:
            self._parse(parse_cls)

    def _parse(self, cls: Any) -> None:
        rest = bytes(self.data)
        if isinstance(cls, type):
            headers, cls, rest = CODEC.headers(cls, rest)
            self.protocols += headers
        while cls and rest.strip(b"\0"):
            try:
                protocol, cls, rest = cls.parser(rest)
            except Truncated:
                break
            if protocol:
                self.protocols.append(protocol)
            rest = rest or b""
        # Zeros alone are padding.
        if rest.strip(b"\0"):
            self.protocols.append(rest)

    def serialize(self) -> None:
        """Makes `data` of the protocols, last to first; lengths and checksums that are 0 are computed."""
        data = bytearray()
        for at, protocol in reversed(list(enumerate(self.protocols))):
            before = self.protocols[at - 1] if at else None
            head = protocol.serialize(data, before) if isinstance(protocol, PacketBase) else bytes(protocol)
            data = bytearray(head) + data
        self.data = data

    def add_protocol(self, protocol: Any) -> None:
        """Appends a protocol, or bytes."""
        self.protocols.append(protocol)

    def get_protocols(self, protocol: Any) -> list[Any]:
        """Returns the protocols of a class."""
        cls = protocol if isinstance(protocol, type) else type(protocol)
        return [each for each in self.protocols if isinstance(each, cls)]

    def get_protocol(self, protocol: Any) -> Any:
        """Returns the first protocol of a class; None without one."""
        cls = protocol if isinstance(protocol, type) else type(protocol)
        for each in self.protocols:
            if isinstance(each, cls):
                return each
        return None

    def to_jsondict(self, encode_string: Any = None) -> dict[str, Any]:
        """Returns the packet as JSON."""
        return {"Packet": {"protocols": [self._to_json("", each, _base64) for each in self.protocols]}}

    def __truediv__(self, other: Any) -> Packet:
        self.add_protocol(other)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self.protocols)

    def __getitem__(self, at: Any) -> Any:
        return self.protocols[at]

    def __setitem__(self, at: Any, protocol: Any) -> None:
        self.protocols[at] = protocol

    def __delitem__(self, at: Any) -> None:
        del self.protocols[at]

    def __len__(self) -> int:
        return len(self.protocols)

    def __bool__(self) -> bool:
        return bool(self.protocols)

    def __contains__(self, protocol: Any) -> bool:
        if isinstance(protocol, type):
            return bool(self.get_protocols(protocol))
        return protocol in self.protocols

    def _text(self) -> str:
        return ", ".join(repr(protocol) for protocol in self.protocols)


def _base64(data: bytes) -> bytes:
    import base64

    return base64.b64encode(data)
