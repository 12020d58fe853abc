"""DHCP of IPv4."""

from __future__ import annotations

import ipaddress
import random
import struct
from typing import Any

from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import IPV4, U8, U16, U32, BytesKind, Field, Stringify, TextKind, Truncated, mac_bytes

DHCP_BOOT_REQUEST = 1
DHCP_BOOT_REPLY = 2

# The values of option 53.
DHCP_DISCOVER = 1
DHCP_OFFER = 2
DHCP_REQUEST = 3
DHCP_ACK = 5

DHCP_PAD_OPT = 0
DHCP_SUBNET_MASK_OPT = 1
DHCP_GATEWAY_ADDR_OPT = 3
DHCP_DNS_SERVER_ADDR_OPT = 6
DHCP_HOST_NAME_OPT = 12
DHCP_DOMAIN_NAME_OPT = 15
DHCP_INTERFACE_MTU_OPT = 26
DHCP_REQUESTED_IP_ADDR_OPT = 50
DHCP_IP_ADDR_LEASE_TIME_OPT = 51
DHCP_MESSAGE_TYPE_OPT = 53
DHCP_SERVER_IDENTIFIER_OPT = 54
DHCP_PARAMETER_REQUEST_LIST_OPT = 55
DHCP_RENEWAL_TIME_OPT = 58
DHCP_REBINDING_TIME_OPT = 59
DHCP_CLASSLESS_ROUTE_OPT = 121
DHCP_END_OPT = 255


class option(Stringify):
    """An option: its number, and the bytes that it has."""

    def __init__(self, tag: int, value: Any, length: int = 0):
        self.tag = tag
        self.value = value
        self.length = length

    def encode(self, out: bytearray) -> None:
        """Appends the option's bytes."""
        value = bytes(self.value)
        self.length = self.length or len(value)
        out += struct.pack("!BB", self.tag, self.length) + value

    def serialize(self) -> bytearray:
        """Returns the option's bytes."""
        out = bytearray()
        self.encode(out)
        return out


class options(Stringify):
    """All options, behind the cookie that says that there are some."""

    TEXTS = frozenset({"magic_cookie"})

    def __init__(self, option_list: list[option] | None = None, options_len: int = 0, magic_cookie: str = "99.130.83.99"):
        self.option_list = option_list or []
        self.options_len = options_len
        self.magic_cookie = magic_cookie

    def encode(self, out: bytearray) -> None:
        """Appends the options' bytes."""
        start = len(out)
        out += ipaddress.IPv4Address(self.magic_cookie).packed
        for each in self.option_list:
            each.encode(out)
        out.append(DHCP_END_OPT)
        self.options_len = self.options_len or len(out) - start

    @classmethod
    def decode(cls, data: bytes) -> Any:
        """Returns the options of bytes."""
        if len(data) < 4:
            raise Truncated(f"the options have {len(data)} bytes: expected 4 or more")
        found = []
        at = 4
        while at < len(data) and data[at] != DHCP_END_OPT:
            if data[at] == DHCP_PAD_OPT:
                at += 1
                continue
            if at + 2 > len(data) or at + 2 + data[at + 1] > len(data):
                raise Truncated("an option ends early")
            tag, length = data[at], data[at + 1]
            found.append(option(tag, bytes(data[at + 2 : at + 2 + length]), length))
            at += 2 + length
        return cls(found, len(data), str(ipaddress.IPv4Address(data[:4])))


class _ChaddrKind(BytesKind):
    """A client's address, in 16 bytes."""

    fmt = "16s"
    expected = "an Ethernet address, such as '00:00:00:00:00:01'"

    def to_wire(self, value: Any) -> bytes:
        return mac_bytes(value)

    def from_wire(self, value: bytes) -> str:
        return value[:6].hex(":")


class _Text(TextKind):
    """Text up to a fixed size, which programs see with its zeros, as under Ryu."""

    def from_wire(self, value: bytes) -> Any:
        return value.decode("utf-8", "replace")


class dhcp(PacketBase):
    """The DHCP message. Without an xid it gets one."""

    FIELDS = (
        Field("op", U8),
        Field("htype", U8, 1),
        Field("hlen", U8, 0),
        Field("hops", U8, 0),
        Field("xid", U32, None),
        Field("secs", U16, 0),
        Field("flags", U16, 0),
        Field("ciaddr", IPV4, "0.0.0.0"),
        Field("yiaddr", IPV4, "0.0.0.0"),
        Field("siaddr", IPV4, "0.0.0.0"),
        Field("giaddr", IPV4, "0.0.0.0"),
        Field("chaddr", _ChaddrKind()),
        Field("sname", _Text(64), ""),
        Field("boot_file", _Text(128), ""),
    )
    TEXTS = frozenset({"ciaddr", "yiaddr", "siaddr", "giaddr", "chaddr", "sname", "boot_file"})

    def __init__(
        self,
        op: int,
        chaddr: Any,
        options: Any = None,
        htype: int = 1,
        hlen: int = 0,
        hops: int = 0,
        xid: int | None = None,
        secs: int = 0,
        flags: int = 0,
        ciaddr: str = "0.0.0.0",
        yiaddr: str = "0.0.0.0",
        siaddr: str = "0.0.0.0",
        giaddr: str = "0.0.0.0",
        sname: str = "",
        boot_file: str = "",
    ):
        self.op = op
        self.htype = htype
        self.hlen = hlen
        self.hops = hops
        self.xid = random.randint(0, 0xFFFFFFFF) if xid is None else xid
        self.secs = secs
        self.flags = flags
        self.ciaddr = ciaddr
        self.yiaddr = yiaddr
        self.siaddr = siaddr
        self.giaddr = giaddr
        self.chaddr = chaddr
        self.sname = sname
        self.boot_file = boot_file
        self.options = options

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        values, after = cls.LAYOUT.decode(buf, offset, len(buf))
        rest = bytes(buf[after:])
        return cls(**values, options=_options(rest) if rest else None), None, None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        self.hlen = self.hlen or 6
        out = bytearray()
        self.encode(out)
        if self.options is not None:
            self.options.encode(out)
        return out


#: `dhcp` has an argument of this name.
_options = options.decode
