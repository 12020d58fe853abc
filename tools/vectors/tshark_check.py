#!/usr/bin/env python3
"""Checks OpenFlow messages with Wireshark's dissector.

Reads JSON lines {"name", "hex"} on standard input, puts them in a capture file as one TCP stream on port 6653, and runs
tshark over it. Exit status 1 if a message is malformed, draws a warning or an error, or is not dissected as OpenFlow.

    tools/vectors/tshark_check.py [--keep FILE.pcap] < crates/wire/tests/vectors/of13.jsonl
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile

OPENFLOW_PORT = 6653
LINKTYPE_RAW_IP = 101
SEVERITY_WARNING = 0x00600000
FIELDS = ("frame.number", "frame.protocols", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message")

# Wireshark 4.0's complaints about good messages: (the start of the name, the complaint, its cause).
DISSECTOR_FAULTS = (
    ("", "Message data not dissected yet", "the 1.0 dissector skips whole message types"),
    ("", "Action not dissected yet", "the 1.0 dissector knows the output action alone"),
    ("packet_in_empty", "alformed", "the 1.0 dissector expects a frame"),
    ("packet_in_unbuffered_truncated", "", "the frame inside is cut short on purpose, and is dissected too"),
    ("packet_out_drop", "alformed", "the 1.0 dissector expects an action"),
    ("flow_mod_no_actions", "alformed", "the 1.0 dissector expects an action"),
    ("meter_mod_add", "alformed", "the 1.3 dissector takes an experimenter band for 8 bytes longer than it is"),
    ("meter_mod_modify", "alformed", "the same, for the same band"),
    ("meter_mod_band_experimenter", "alformed", "the same, for the same band"),
    ("multipart_reply_meter_config", "alformed", "the same, for the same band"),
    ("multipart_reply_experimenter", "alformed", "the 1.3 dissector reads its body 8 bytes too far"),
)


def main():
    options = argparse.ArgumentParser(description="Checks OpenFlow messages with Wireshark's dissector.")
    options.add_argument("--keep", metavar="FILE", help="also leave the capture file here")
    keep = options.parse_args().keep
    records = [json.loads(line) for line in sys.stdin]
    frames = [bytes.fromhex(record["hex"]) for record in records]
    if keep:
        with open(keep, "wb") as file:
            file.write(pcap(frames))
    dissected = dissect(pcap(frames))
    if len(dissected) != len(records):
        sys.exit(f"tshark shows {len(dissected)} packets, expected {len(records)}")
    failed = 0
    for record, packet in zip(records, dissected):
        verdict = check(record["name"], packet)
        failed += verdict["verdict"] == "refused"
        print(json.dumps({"name": record["name"], **verdict}))
    sys.exit(1 if failed else 0)


def check(name, packet):
    complaints = complaints_in(packet)
    unexplained = [text for text in complaints if not known_fault(name, text)]
    if unexplained:
        return {"verdict": "refused", "why": unexplained}
    return {"verdict": "tolerated", "why": complaints} if complaints else {"verdict": "dissected"}


def complaints_in(packet):
    complaints = []
    if not packet["frame.protocols"].startswith("raw:ip:tcp:openflow"):
        complaints.append(f"not dissected as OpenFlow but as {packet['frame.protocols']}")
    if packet["_ws.malformed"]:
        complaints.append("malformed packet")
    severities = [int(text, 0) for text in packet["_ws.expert.severity"].split("\x1f") if text]
    messages = packet["_ws.expert.message"].split("\x1f")
    complaints += [text for severity, text in zip(severities, messages) if severity >= SEVERITY_WARNING]
    return complaints


def known_fault(name, complaint):
    return any(name.startswith(start) and text in complaint for start, text, _ in DISSECTOR_FAULTS)


def dissect(capture):
    """Returns a dictionary of FIELDS for each packet."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(capture)
        file.flush()
        command = ["tshark", "-n", "-r", file.name, "-d", f"tcp.port=={OPENFLOW_PORT},openflow",
                   "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=\x1f"]
        for field in FIELDS:
            command += ["-e", field]
        output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return [dict(zip(FIELDS, line.split("\t"))) for line in output.stdout.splitlines()]


def pcap(payloads):
    """Returns a capture of one TCP stream, with a packet for each payload."""
    packets = [struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_RAW_IP)]
    sequence = 1
    for second, payload in enumerate(payloads):
        packet = ip_tcp(sequence, payload)
        packets.append(struct.pack("<IIII", second, 0, len(packet), len(packet)) + packet)
        sequence += len(payload)
    return b"".join(packets)


def ip_tcp(sequence, payload):
    """Adds IPv4 and TCP headers without checksums, which tshark does not verify, before the payload."""
    length = 40 + len(payload)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0x4000, 64, 6, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
    push_ack = 0x5018
    return ip + struct.pack("!HHIIHHHH", 40000, OPENFLOW_PORT, sequence, 1, push_ack, 65535, 0, 0) + payload


if __name__ == "__main__":
    main()
