#!/usr/bin/env python3
"""Checks OpenFlow messages with os-ken: what it reads from them, and whether it writes equal bytes.

Reads JSON lines {"name", "hex"} (as in crates/wire/tests/vectors) on standard input and prints a JSON verdict for each:

    same        os-ken parsed the message and re-serialised it to the same bytes
    read        os-ken parsed it, but has no serialiser for it
    unparsed    os-ken has no parser for this message type (only controllers send it) or its contents
    different   os-ken re-serialised it to other bytes, given as "hex"
    refused     os-ken could not parse it

Exit status 1 if any message is `different` or `refused`.
"""

import json
import logging
import signal
import sys

from os_ken.ofproto import ofproto_v1_0_parser, ofproto_v1_3_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from vectors import HEADER, parse

PARSERS = {1: ofproto_v1_0_parser, 4: ofproto_v1_3_parser}
PARSE_LIMIT_SECONDS = 5


def main():
    logging.disable(logging.CRITICAL)
    failed = 0
    for line in sys.stdin:
        record = json.loads(line)
        verdict = {"verdict": "unparsed"} if unknown_to_osken(record) else check(bytes.fromhex(record["hex"]))
        failed += verdict["verdict"] in ("different", "refused")
        print(json.dumps({"name": record["name"], **verdict}))
    sys.exit(1 if failed else 0)


def unknown_to_osken(record):
    """Returns whether the vectors are marked as unreadable for os-ken."""
    return record.get("made_by") == "hand, unknown to os-ken"


def check(frame):
    version, message_type, length, _ = HEADER.unpack_from(frame)
    if length != len(frame):
        return {"verdict": "refused", "why": f"header says {length} bytes, message has {len(frame)}"}
    if version not in PARSERS:
        return {"verdict": "refused", "why": f"version {version} is neither 1.0 nor 1.3"}
    if message_type not in PARSERS[version]._MSG_PARSERS:
        return {"verdict": "unparsed"}
    message = parse_in_time(ProtocolDesc(version=version), frame)
    if message is None:
        return {"verdict": "refused", "why": "os-ken's parser failed"}
    read = {"type": type(message).__name__, "json": message.to_jsondict()}
    again = reserialized(message)
    if again is None:
        return {"verdict": "read", **read}
    if again != frame:
        return {"verdict": "different", "hex": again.hex(), **read}
    return {"verdict": "same", **read}


def parse_in_time(datapath, frame):
    """Parses with a time limit, since os-ken's parsers can loop for ever on a length of 0."""
    signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(PARSE_LIMIT_SECONDS)
    try:
        return parse(datapath, frame)
    except Exception:
        return None
    finally:
        signal.alarm(0)


def raise_timeout(_signal, _frame):
    raise TimeoutError


def reserialized(message):
    """Returns the message as os-ken writes it, or None if os-ken only has a parser for it."""
    header_only = type(message)._serialize_body is PARSERS[1].MsgBase._serialize_body
    if header_only and message.msg_len > HEADER.size:
        return None
    try:
        message.serialize()
    except Exception:
        return None
    return bytes(message.buf)


if __name__ == "__main__":
    main()
