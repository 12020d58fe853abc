"""Decodes the reply of a switch with many flow entries, and reads every field of each.

    python flow_stats.py ryu|os_ken ENTRIES

Prints the milliseconds that this took, and the sum of the values and of the texts' lengths.
"""

import importlib
import struct
import sys
import time
from types import SimpleNamespace

VERSION, MULTIPART_REPLY, FLOW = 4, 19, 1
HEADER = struct.Struct("!BBHI")
MULTIPART = struct.Struct("!HH4x")
REPLY_MORE = 1
STATS = struct.Struct("!HBxIIHHHH4xQQQ")
LARGEST = 0xFFFF

STATS_FIELDS = (
    "table_id",
    "duration_sec",
    "duration_nsec",
    "priority",
    "idle_timeout",
    "hard_timeout",
    "flags",
    "cookie",
    "packet_count",
    "byte_count",
)


def match(number):
    """Returns a match on in_port, eth_dst and eth_src, as a learning switch installs it."""
    fields = struct.pack("!II", 0x80000004, number % 48 + 1)
    fields += struct.pack("!I", 0x80000606) + (number + 1).to_bytes(6, "big")
    fields += struct.pack("!I", 0x80000806) + (number + 2).to_bytes(6, "big")
    length = 4 + len(fields)
    return struct.pack("!HH", 1, length) + fields + bytes(-length % 8)


def output(number):
    """Returns an instruction that applies an output action."""
    return struct.pack("!HH4x", 4, 24) + struct.pack("!HHIH6x", 0, 16, number % 48 + 1, 128)


def entry(number):
    body = match(number) + output(number)
    length = STATS.size + len(body)
    return STATS.pack(length, 0, number, 5, 1, 30, 0, 0, number, 3 * number, 200 * number) + body


def frames(count):
    """Returns the reply's messages, each as large as OpenFlow allows."""
    bodies = [b""]
    for number in range(count):
        made = entry(number)
        if HEADER.size + MULTIPART.size + len(bodies[-1]) + len(made) > LARGEST:
            bodies.append(b"")
        bodies[-1] += made
    return [frame(body, is_last=body is bodies[-1]) for body in bodies]


def frame(body, is_last):
    length = HEADER.size + MULTIPART.size + len(body)
    return HEADER.pack(VERSION, MULTIPART_REPLY, length, 1) + MULTIPART.pack(FLOW, 0 if is_last else REPLY_MORE) + body


def read(stats):
    """Returns the sum of an entry's fields, and of the lengths of its texts."""
    total = sum(getattr(stats, name) for name in STATS_FIELDS)
    for _, value in stats.match.items():
        total += value if isinstance(value, int) else len(value)
    for instruction in stats.instructions:
        total += instruction.type
        for action in instruction.actions:
            total += action.type + action.port + action.max_len
    return total


def main(names, count):
    if names == "ryu":
        import urtica_ryu

        urtica_ryu.use_names()
    decode = importlib.import_module(f"{names}.ofproto.ofproto_parser").msg
    datapath = SimpleNamespace(
        ofproto=importlib.import_module(f"{names}.ofproto.ofproto_v1_3"),
        ofproto_parser=importlib.import_module(f"{names}.ofproto.ofproto_v1_3_parser"),
    )
    received = frames(int(count))
    begin = time.perf_counter()
    total = 0
    for data in received:
        message = decode(datapath, *HEADER.unpack_from(data), data)
        total += sum(read(stats) for stats in message.body)
    print((time.perf_counter() - begin) * 1e3, total)


if __name__ == "__main__":
    main(*sys.argv[1:])
