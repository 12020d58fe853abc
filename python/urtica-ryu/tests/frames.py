"""Frames of hosts, as bytes."""

import struct
from ipaddress import ip_address

BROADCAST = "ff:ff:ff:ff:ff:ff"
ICMP, TCP, UDP = 1, 6, 17


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def host(number):
    """The hardware address of a host."""
    return f"00:00:00:00:00:{number:02x}"


def ethernet(source, destination, kind, payload):
    return (mac(destination) + mac(source) + struct.pack("!H", kind) + payload).ljust(60, b"\0")


def arp(source, source_ip, destination_ip, destination=None):
    """A request; an answer if it has a destination."""
    opcode = 1 if destination is None else 2
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, opcode) + mac(source) + ip_address(source_ip).packed
    body += mac(destination or "00:00:00:00:00:00") + ip_address(destination_ip).packed
    return ethernet(source, destination or BROADCAST, 0x0806, body)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(source, destination, addresses, protocol, payload):
    """An IPv4 packet between two hosts with these addresses."""
    parts = (0x45, 0, 20 + len(payload), 7, 0, 64, protocol)
    ends = b"".join(ip_address(address).packed for address in addresses)
    sum_ = checksum(struct.pack("!BBHHHBBH", *parts, 0) + ends)
    return ethernet(source, destination, 0x0800, struct.pack("!BBHHHBBH", *parts, sum_) + ends + payload)


def tcp(source_port, destination_port):
    return struct.pack("!HHIIBBHHH", source_port, destination_port, 1, 0, 0x50, 2, 1024, 0, 0)


def udp(source_port, destination_port):
    return struct.pack("!HHHH", source_port, destination_port, 8, 0)


def ping(number=1):
    body = struct.pack("!BBHHH", 8, 0, 0, 5, number) + b"abcdefgh"
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]
