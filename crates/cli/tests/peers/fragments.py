"""A host behind a firewall, and one that tries to reach it by fragments.

`fragments.py serve ADDRESS` answers datagrams to ports 53 and 54 there, and a datagram `seen` to port 54 with the
identifications of the IP fragments received by eth0.
`fragments.py try ADDRESS` sends datagrams and fragments there, and prints which have arrived or been answered.
"""

import selectors
import socket
import struct
import sys
import time

SO_NO_CHECK = 11
ETH_P_ALL = 3
TCP, UDP, ICMP, FRAGMENT, DESTINATION_OPTIONS = 6, 17, 1, 44, 60
DEADLINE_S = 30


def datagram_socket():
    # Otherwise the switch would receive unfinished checksums from its end of a cable between namespaces.
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    return sock


def identification(frame):
    """Returns the identification of an IP packet that is a fragment."""
    if frame[12:14] == b"\x08\x00" and struct.unpack_from("!H", frame, 20)[0] & 0x3FFF:
        return struct.unpack_from("!H", frame, 18)[0]
    if frame[12:14] == b"\x86\xdd" and frame[20] == FRAGMENT:
        return struct.unpack_from("!I", frame, 58)[0]
    return None


def serve(address):
    seen = set()
    selector = selectors.DefaultSelector()
    for port in (53, 54):
        sock = datagram_socket()
        sock.bind((address, port))
        selector.register(sock, selectors.EVENT_READ, port)
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sniffer.bind(("eth0", 0))
    selector.register(sniffer, selectors.EVENT_READ, None)
    print("serving", flush=True)
    while True:
        # Note all arrived packets before answering any query about them.
        ready = sorted((key for key, _ in selector.select()), key=lambda key: key.data is not None)
        for key in ready:
            data, peer = key.fileobj.recvfrom(65536)
            if key.data is None:
                if peer[2] != socket.PACKET_OUTGOING:
                    seen.add(identification(data))
            elif data.startswith(b"seen"):
                ids = sorted(seen - {None})
                key.fileobj.sendto(b" ".join([data] + [b"%d" % id for id in ids]), peer)
            else:
                key.fileobj.sendto(b"echo %d" % len(data), peer)


def ask(address, port, data, wait_s):
    """Returns the answer to a datagram, if it arrives in time."""
    with datagram_socket() as sock:
        sock.settimeout(wait_s)
        sock.sendto(data, (address, port))
        try:
            return sock.recv(65536)
        except socket.timeout:
            return None


def ask_until_answered(address, port, data):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        answer = ask(address, port, data, 0.5)
        if answer is not None:
            return answer
    sys.exit(f"nothing came from port {port}")


def to_port(port, length):
    head = struct.pack("!HHHHIBBHHH", 4000, port, length, 0, 0, 0x50, 2, 1000, 0, 0)
    return head.ljust(length, b"\0")[:length]


def ipv4(id, proto, offset, more, payload):
    flags = offset // 8 | (0x2000 if more else 0)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), id, flags, 64, proto, 0)
    head += socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return b"\x08\x00" + head[:10] + struct.pack("!H", checksum) + head[12:] + payload


def ipv6(id, proto, offset, more, payload):
    payload = struct.pack("!BBHI", proto, 0, offset | more, id) + payload
    head = struct.pack("!IHBB", 0x60000000, len(payload), FRAGMENT, 64)
    ends = socket.inet_pton(socket.AF_INET6, "fd00::1") + socket.inet_pton(socket.AF_INET6, "fd00::2")
    return b"\x86\xdd" + head + ends + payload


def fragments():
    """Returns the packets with their names, by identification."""
    packets = {}
    for version, packet, base in (("ipv4", ipv4, 0x5100), ("ipv6", ipv6, 0x5200)):
        for number, (name, proto, offset, more, payload) in enumerate([
            ("udp to 53", UDP, 0, True, to_port(53, 64)),
            ("udp to 54", UDP, 0, True, to_port(54, 64)),
            ("rest of udp", UDP, 64, False, bytes(64)),
            ("tcp to 22", TCP, 0, True, to_port(22, 64)),
            ("tcp to 23", TCP, 0, True, to_port(23, 64)),
            ("tiny tcp to 22", TCP, 0, True, to_port(22, 8)),
            ("ping", ICMP, 0, True, bytes([8, 0]) + bytes(62)),
        ]):
            packets[base + number] = (f"{version} {name}", packet(base + number, proto, offset, more, payload))
    # Extension headers that continue in the next fragment.
    options = bytes([TCP, 2, 1, 4, 0, 0, 0, 0])
    packets[0x5300] = ("ipv6 hidden protocol", ipv6(0x5300, DESTINATION_OPTIONS, 0, True, options))
    return packets


def ethernet(address):
    """Returns the header of frames to this address, which must have answered before."""
    with open("/proc/net/arp") as table:
        lines = [line.split() for line in table]
    there = next(line[3] for line in lines if line[0] == address)
    with open("/sys/class/net/eth0/address") as file:
        here = file.read().strip()
    return bytes.fromhex((there + here).replace(":", ""))


def seen(address, round):
    """Returns the fragments that have arrived. Each query has its own name, so that a late answer is not taken for a new one."""
    answer = ask_until_answered(address, 54, b"seen-%d" % round)
    return {int(id) for id in answer.split()[1:]}


def attempt(address, expected):
    ask_until_answered(address, 54, b"there?")
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind(("eth0", 0))
    packets = fragments()
    wanted = {id for id, (name, _) in packets.items() if name in expected}
    end, round, complete = time.monotonic() + DEADLINE_S, 0, 0
    # Until all expected packets have arrived, and once more for the others, which were sent as early.
    while complete < 2 and time.monotonic() < end:
        for _, packet in packets.values():
            raw.send((ethernet(address) + packet).ljust(60, b"\0"))
        round += 1
        arrived = seen(address, round)
        complete += wanted <= arrived
    print("arrived:", ", ".join(name for id, (name, _) in packets.items() if id in arrived))
    print("54:", ask_until_answered(address, 54, bytes(3000)).decode())
    answers = [ask(address, 53, bytes(3000), 0.5) for _ in range(3)]
    print("53:", next((answer.decode() for answer in answers if answer), "nothing"))


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    attempt(sys.argv[2], sys.argv[3].split(", "))
