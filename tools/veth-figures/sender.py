"""Sends 60-byte frames by an interface as fast as possible, and prints their number.

By sendmmsg(2), 64 frames a call, past the queueing discipline: iperf3's call for each datagram would be the limit. The
frames are UDP of 64 flows, to an unused Ethernet address: the receiver's kernel counts and drops them.

    python3 sender.py INTERFACE SECONDS
"""

import ctypes
import os
import socket
import struct
import sys
import time

FLOWS = 64

SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20

# The interface accepts no more frames for the moment.
FULL = (11, 105)  # EAGAIN, ENOBUFS


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Header(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_len", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_len", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class Message(ctypes.Structure):
    _fields_ = [("header", Header), ("sent", ctypes.c_uint)]


def frame(flow):
    ethernet = bytes.fromhex("020000000002") + bytes.fromhex("020000000001") + b"\x08\x00"
    payload = bytes(18)
    udp = struct.pack("!HHHH", 1024 + flow, 9, 8 + len(payload), 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    words = struct.unpack("!10H", ip)
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~total & 0xFFFF) + ip[12:]
    return ethernet + ip + udp + payload


def messages():
    """Returns all frames as the arguments of one call, and the objects that must outlive it."""
    buffers = [ctypes.create_string_buffer(frame(flow), 60) for flow in range(FLOWS)]
    vectors = [Vector(ctypes.addressof(buffer), 60) for buffer in buffers]
    array = (Message * FLOWS)()
    for message, vector in zip(array, vectors):
        message.header.vectors = ctypes.pointer(vector)
        message.header.vector_count = 1
    return array, (buffers, vectors)


def main():
    interface, seconds = sys.argv[1], float(sys.argv[2])
    sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg
    array, _kept = messages()
    sent = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as port:
        port.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        port.bind((interface, 0))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            count = sendmmsg(port.fileno(), array, FLOWS, 0)
            if count < 0 and ctypes.get_errno() not in FULL:
                sys.exit(f"cannot send through {interface}: {os.strerror(ctypes.get_errno())}")
            sent += max(count, 0)
    print(sent)


if __name__ == "__main__":
    main()
