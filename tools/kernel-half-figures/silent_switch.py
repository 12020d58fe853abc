"""A switch that sends packet-ins as fast as possible and never reads: the memory that the kernel holds for it."""

import contextlib
import re
import socket
import struct
import subprocess
import time
from pathlib import Path

from bench import MeasureError, Refused, progress
from document import Line

MIB = 2**20
PAGE_BYTES = 4096

# The duration of sending, and the time without progress after which it gives up.
SENDING_S = 3
SILENT_S = 0.5

HELLO, FEATURES_REQUEST, FEATURES_REPLY, PACKET_IN = 0, 5, 6, 10
VERSION = 1
PACKETS = 256


def lines(bench, row, mode, server, target):
    """Returns lines of the maximum memory held: by the sockets' own account, and by the machine's available memory."""
    sockets, machine, remarks = [], [], []
    command = ()
    for number in range(1, bench.settings.rounds + 1):
        try:
            with bench.server(server) as started:
                command = started.shown
                by_sockets, by_machine = most_held(started, 1 if bench.settings.quick else SENDING_S)
        except Refused as refusal:
            remarks = [str(refusal)]
            break
        sockets.append(by_sockets / MIB)
        machine.append(by_machine / MIB)
        progress(f"row {row}, round {number}, {mode}: {sockets[-1]:.1f} MiB by sockets, {machine[-1]:.1f} MiB of the machine's")
    what = f"a switch that never reads, at full send, `{mode}`: "
    counted = "memory of TCP (/proc/net/sockstat, ss -m), that of the switch's own end included"
    left = "what the machine has less available meanwhile, beyond the program's own growth"
    commands = [command] if command else []
    return [
        Line(row, what + counted, "MiB", sockets, target, remarks=remarks, commands=commands),
        Line(row, what + left, "MiB", machine, target, remarks=remarks, commands=commands),
    ]


def most_held(started, seconds):
    with socket.create_connection((started.host, started.port), timeout=30) as switch:
        join(switch)
        before, most = held(started), (0, 0)
        switch.setblocking(False)
        start = last_taken = time.monotonic()
        packets, at = packet_ins(PACKETS), 0
        while time.monotonic() < min(start + seconds, last_taken + SILENT_S):
            taken = send_some(switch, packets, at)
            if taken:
                last_taken, at = time.monotonic(), (at + taken) % len(packets)
            if not taken or at < len(packets) // 16:
                now = held(started)
                most = tuple(max(now - then, so_far) for now, then, so_far in zip(now, before, most))
        return most


def send_some(switch, packets, at):
    """Sends until the socket is full, a bounded number of times. Returns the number of bytes accepted."""
    taken = 0
    with contextlib.suppress(BlockingIOError):
        for _ in range(1000):
            taken += switch.send(packets[(at + taken) % len(packets) :])
    return taken


def join(switch):
    """Joins as a 1.0 switch, and sends the required replies."""
    switch.sendall(message(HELLO, 1))
    received = b""
    while True:
        received += receive(switch)
        while len(received) >= 8:
            _, kind, length, xid = struct.unpack("!BBHI", received[:8])
            if len(received) < length:
                break
            received = received[length:]
            if kind == FEATURES_REQUEST:
                switch.sendall(message(FEATURES_REPLY, xid, struct.pack("!QIB3xII", 1, 256, 1, 0, 0)))
                return begin(switch)


def begin(switch):
    """Waits until packet-ins are answered, long enough for the kernel to take over."""
    for _ in range(100):
        switch.sendall(packet_ins(1))
        receive(switch)


def receive(switch):
    received = switch.recv(65536)
    if not received:
        raise MeasureError("the controller closed the connection")
    return received


def message(kind, xid, body=b""):
    return struct.pack("!BBHI", VERSION, kind, 8 + len(body), xid) + body


def packet_ins(count):
    """Returns UDP packets between two hosts, which the kernel answers, as whole messages."""
    ethernet = bytes.fromhex("000000000002" "000000000001" "0800")
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 50, 0, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
    frame = (ethernet + ip + struct.pack("!HHHH", 1, 2, 30, 0)).ljust(64, b"\0")
    body = struct.pack("!IHHBx", 7, len(frame), 1, 0) + frame
    return b"".join(message(PACKET_IN, xid, body) for xid in range(count))


def held(started):
    """Returns two numbers of bytes: TCP's memory, or the memory of the controller's socket alone if that is more; and, up to
    a constant, the memory that is neither available nor used by the program."""
    stat = Path("/proc/net/sockstat").read_text()
    of_tcp = int(re.search(r"^TCP: .* mem (\d+)", stat, re.MULTILINE)[1]) * PAGE_BYTES
    available = int(re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)[1]) * 1024
    return max(of_tcp, of_socket(started.port)), -available - started.rss_bytes()


def of_socket(port):
    """Returns the bytes of the controller's sockets, from the output of `ss -m`."""
    said = subprocess.run(["ss", "-tmnH", f"( sport = :{port} )"], capture_output=True, text=True).stdout
    return bytes_in(said)


def bytes_in(said):
    """Returns the sum of the bytes received, queued to be sent, reserved, of options and in the backlog. Reserved bytes may
    be negative for a while, but are printed as an unsigned number."""
    fields = re.findall(r"\b(?:r|w|f|o|bl)(\d+)\b", "".join(re.findall(r"skmem:\((.*?)\)", said)))
    return sum(value - 2**32 if value >= 2**31 else value for value in map(int, fields))
