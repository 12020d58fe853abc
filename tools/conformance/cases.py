"""Prints os-ken's OpenFlow 1.3 switch tests as JSON, one case a line.

The installed package's own reader reads the cases; here they are only converted to bytes: the messages that set the
switch up, the packet received by port 1, and the expected result.

    {"name": "action/17_PUSH_VLAN:1", "about": "...", "setup": ["040e..."], "frame": "2222...", "expect": {"frame": "2222..."}}

`expect` is one of
    {"frame": HEX}        this packet leaves by port 2
    {"packet_in": HEX}    this packet goes to the controller
    {"miss": [TABLE, …]}  no entry of these tables matches
    {"rates": [{"match": HEX, "kbps": N} | {"match": HEX, "pktps": N}, …]}
                          `frames`, each with `tail` behind it, are sent in turn, `pktps` a second for `seconds`; what leaves
                          and has a flow mod's match, in_port being the port that it left by, comes at this rate, within a
                          tenth
"""

import importlib.util
import json
import os
import random
import sys

# Prevents the package from starting its event loop on import.
os.environ.setdefault("OSKEN_HUB_TYPE", "native")

import os_ken.flags  # noqa: E402,F401  (registers the tester's options)
from os_ken import cfg  # noqa: E402
from os_ken.lib.packet import sctp  # noqa: E402
from os_ken.ofproto import ofproto_v1_3  # noqa: E402
from os_ken.tests.switch import tester  # noqa: E402


def main():
    cfg.CONF(args=[], project="os_ken", default_config_files=[])
    tester.OfTester.target_ver = ofproto_v1_3.OFP_VERSION
    tester.OfTester.tester_ver = ofproto_v1_3.OFP_VERSION
    sctp.sctp._checksum = crc32c
    random.seed(1)
    for path in sorted(files(tests_folder())):
        name = os.path.splitext(os.path.relpath(path, tests_folder()))[0]
        file = tester.TestFile(path, Logger())
        for number, case in enumerate(file.tests, 1):
            for test in case.tests:
                print(json.dumps(as_json(f"{name}:{number}", case, test)))


def crc32c(_, data):
    """Returns RFC 9260's checksum as four bytes in network order: os-ken 4.2.2 computes it from the text form of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return int.from_bytes((crc ^ 0xFFFFFFFF).to_bytes(4, "little"), "big")


def tests_folder():
    package = importlib.util.find_spec("os_ken").submodule_search_locations[0]
    return os.path.join(package, "tests", "switch", "of13")


def files(folder):
    for parent, _, names in os.walk(folder):
        yield from (os.path.join(parent, name) for name in names if name.endswith(".json"))


def as_json(name, case, test):
    row = {"name": name, "about": case.description, "setup": [bytes(m.buf).hex() for m in case.prerequisite]}
    if tester.KEY_INGRESS in test:
        row["frame"] = test[tester.KEY_INGRESS].hex()
    else:
        stream = test[tester.KEY_PACKETS]
        row["frames"], row["tail"] = apart([frame.hex() for frame in frames(stream)])
        row["pktps"] = stream[tester.KEY_PKTPS]
        row["seconds"] = stream[tester.KEY_DURATION_TIME]
    row["expect"] = expectation(test)
    return row


def frames(stream):
    if not stream["randomize"]:
        return [stream["packet_binary"]]
    count = stream[tester.KEY_PKTPS] * stream[tester.KEY_DURATION_TIME]
    return [random_frame(stream["packet_text"]) for _ in range(count)]


def apart(frames):
    """Returns the differing starts of the frames, and their common end: random frames are mostly padding."""
    backwards = os.path.commonprefix([frame[::-1] for frame in frames])
    length = len(backwards) // 2 * 2 if len(frames) > 1 else 0
    return [frame[: len(frame) - length] for frame in frames], frames[0][len(frames[0]) - length :]


def random_frame(text):
    # The suite's notation: Python expressions of os-ken's packet classes, some with calls of randint.
    packet = eval("/".join(text), vars(tester))
    packet.serialize()
    return bytes(packet.data)


def expectation(test):
    if tester.KEY_EGRESS in test:
        return {"frame": test[tester.KEY_EGRESS].hex()}
    if tester.KEY_PKT_IN in test:
        return {"packet_in": test[tester.KEY_PKT_IN].hex()}
    if tester.KEY_TBL_MISS in test:
        return {"miss": test[tester.KEY_TBL_MISS]}
    return {"rates": [rate(one) for one in test[tester.KEY_THROUGHPUT]]}


def rate(throughput):
    flow = throughput[tester.KEY_FLOW]
    flow.serialize()
    unit = "kbps" if throughput[tester.KEY_KBPS] else "pktps"
    return {"match": bytes(flow.buf).hex(), unit: throughput[getattr(tester, f"KEY_{unit.upper()}")]}


class Logger:
    """The logger of the suite's reader, which reports unreadable files, an error of ours."""

    def warning(self, message, *arguments):
        sys.exit(f"cases: {message % arguments if arguments else message}")


if __name__ == "__main__":
    main()
