"""ARP."""

from __future__ import annotations

from typing import Any

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import IPV4, MAC, U8, U16, Field, speed_up

ARP_HW_TYPE_ETHERNET = 1
ARP_REQUEST = 1
ARP_REPLY = 2
ARP_REV_REQUEST = 3
ARP_REV_REPLY = 4


class arp(PacketBase):
    """The ARP message."""

    FIELDS = (
        Field("hwtype", U16, ARP_HW_TYPE_ETHERNET),
        Field("proto", U16, 0x0800),
        Field("hlen", U8, 6),
        Field("plen", U8, 4),
        Field("opcode", U16, ARP_REQUEST),
        Field("src_mac", MAC, "ff:ff:ff:ff:ff:ff"),
        Field("src_ip", IPV4, "0.0.0.0"),
        Field("dst_mac", MAC, "ff:ff:ff:ff:ff:ff"),
        Field("dst_ip", IPV4, "0.0.0.0"),
    )


speed_up(arp)


def arp_ip(opcode: int, src_mac: str, src_ip: str, dst_mac: str, dst_ip: str) -> Any:
    """Returns the ARP message for IPv4 over Ethernet."""
    made: type[Any] = arp
    return made(ARP_HW_TYPE_ETHERNET, 0x0800, 6, 4, opcode, src_mac, src_ip, dst_mac, dst_ip)


ethernet.register_packet_type(arp, 0x0806)
