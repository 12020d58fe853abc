#!/usr/bin/env python3
"""Makes the packet vectors of crates/pipeline/tests/vectors from the switch tests that os-ken comes with.

    .venv/bin/python tools/vectors/osken_packets.py            writes actions.jsonl and matches.jsonl
    .venv/bin/python tools/vectors/osken_packets.py --check    writes nothing; fails if the files differ

Each line is {"name", "flow_mods": [hex], "in": hex, "out": hex or null}: with these flow mods of OpenFlow 1.3 in its
tables, a switch makes packet `out` of packet `in`, or finds no entry for it (null). All bytes are os-ken's, whose packet
library serialises the packets and their checksums, but for the checksum of SCTP: os-ken's is that of `str(bytes)`.
Tests that differ from others only by sending the packet to the controller are left out.
"""

import json
import sys
from pathlib import Path

import os_ken.tests
from os_ken.lib.packet import arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, packet, pbb, sctp, tcp, udp, vlan
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

OFP_VERSION_1_3 = 4
TESTS = Path(os_ken.tests.__path__[0]) / "switch/of13"
DIRECTORY = Path(__file__).resolve().parents[2] / "crates/pipeline/tests/vectors"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = 0
    for kind in ("action", "match"):
        path = DIRECTORY / {"action": "actions.jsonl", "match": "matches.jsonl"}[kind]
        lines = [json.dumps(vector) + "\n" for vector in vectors(TESTS / kind)]
        print(f"{path.name}: {len(lines)} packets")
        if check:
            stale += differs("".join(lines), path)
        else:
            DIRECTORY.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(lines), encoding="ascii")
    sys.exit(1 if stale else 0)


def differs(text, path):
    same = path.read_text(encoding="ascii") == text
    if not same:
        print(f"{path.name} is not what this script makes; run it without --check", file=sys.stderr)
    return not same


def vectors(directory):
    for file in sorted(directory.rglob("*.json")):
        # The first element names the file's subject.
        for test in json.loads(file.read_text())[1:]:
            yield from vectors_of(f"{file.stem}: {test['description']}", test)


def vectors_of(name, test):
    flow_mods = [serialized_flow_mod(flow_mod) for flow_mod in test["prerequisite"]]
    for sent in test["tests"]:
        if "PACKET_IN" in sent:
            continue
        out = serialized_packet(sent["egress"]) if "egress" in sent else None
        yield {"name": name, "flow_mods": flow_mods, "in": serialized_packet(sent["ingress"]), "out": out}


def serialized_flow_mod(json_dict):
    message = ofproto_parser.ofp_msg_from_jsondict(ProtocolDesc(version=OFP_VERSION_1_3), json_dict)
    message.set_xid(1)
    message.serialize()
    return bytes(message.buf).hex()


def serialized_packet(parts):
    """Packets are written as Python: constructors of os-ken's headers, outermost first."""
    built = eval("/".join(parts), CONSTRUCTORS)
    built.serialize()
    return bytes(built.data).hex()


def constructors():
    """The names that os-ken's tests use: classes by their own, but for two that would clash."""
    aliases = {icmpv6.echo: "icmpv6echo", ipv6.option: "ipv6option"}
    modules = (arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, packet, pbb, sctp, tcp, udp, vlan)
    found = (value for module in modules for value in vars(module).values())
    return {aliases.get(value, value.__name__): value for value in found if isinstance(value, type)}


def sctp_checksum(_, data):
    """CRC32c, its bytes in the order in which they are sent (RFC 9260, appendix A)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return int.from_bytes((crc ^ 0xFFFFFFFF).to_bytes(4, "little"), "big")


CONSTRUCTORS = constructors()
sctp.sctp._checksum = sctp_checksum

if __name__ == "__main__":
    main()
