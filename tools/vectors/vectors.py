"""Common parts of the makers of the 1.0 and 1.3 vectors: a named list of messages that os-ken made or read."""

import json
import struct
import zlib

from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

HEADER = struct.Struct("!BBHI")


class Vectors:
    """The golden messages of one OpenFlow version, in the order of their addition."""

    def __init__(self, version):
        self.datapath = ProtocolDesc(version=version)
        self.ofproto = self.datapath.ofproto
        self.records = []
        self.messages = []

    def built(self, name, message):
        """Adds a message that os-ken serialises itself."""
        message.set_xid(xid_of(name))
        message.serialize()
        self._add(name, type(message).__name__, bytes(message.buf), message, "os-ken")

    def crafted(self, name, type_name, body, message_type=None):
        """Adds a message packed by hand from the specification, which os-ken must read as `type_name`."""
        frame = self._frame(name, type_name, body, message_type)
        message = parse(self.datapath, frame)
        if type(message).__name__ != type_name:
            raise ValueError(f"{name}: os-ken reads {type(message).__name__}, expected {type_name}")
        self._add(name, type_name, frame, message, "hand", json=message.to_jsondict())

    def unread(self, name, type_name, body, message_type):
        """Adds a message packed by hand for which os-ken has no parser: only tshark can check it."""
        frame = self._frame(name, type_name, body, message_type)
        self._add(name, type_name, frame, None, "hand, unknown to os-ken")

    def _frame(self, name, type_name, body, message_type):
        if message_type is None:
            message_type = getattr(self.datapath.ofproto_parser, type_name).cls_msg_type
        length = HEADER.size + len(body)
        return HEADER.pack(self.ofproto.OFP_VERSION, message_type, length, xid_of(name)) + body

    def _add(self, name, type_name, frame, message, made_by, **more):
        if any(record["name"] == name for record in self.records):
            raise ValueError(f"{name}: name used twice")
        length = HEADER.unpack_from(frame)[2]
        if length != len(frame):
            raise ValueError(f"{name}: header says {length} bytes, message has {len(frame)}")
        self.records.append({"name": name, "type": type_name, "made_by": made_by, "hex": frame.hex(), **more})
        self.messages.append((frame, message))

    def write(self, path):
        """Writes one JSON object per line."""
        with open(path, "w", encoding="ascii") as file:
            for record in self.records:
                file.write(json.dumps(record) + "\n")


def parse(datapath, frame):
    """Returns os-ken's object for a whole message, or None if it cannot read it."""
    version, message_type, length, xid = HEADER.unpack_from(frame)
    return ofproto_parser.msg(datapath, version, message_type, length, xid, frame)


def xid_of(name):
    """Returns a transaction id that does not change when vectors are added before this one."""
    return zlib.crc32(name.encode()) or 1


def pack(layout, *values):
    """Packs in network byte order; MAC and IPv4 addresses are converted from text to an `s` field by `mac` and `ipv4`."""
    return struct.pack("!" + layout, *values)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ipv4(text):
    return bytes(int(part) for part in text.split("."))


def serialized(part):
    """Returns the bytes of one of os-ken's structures: a match, an action, an instruction, a bucket…"""
    buffer = bytearray()
    part.serialize(buffer, 0)
    return bytes(buffer)


def parts_of(node):
    """Returns all os-ken structures inside a message, starting with itself."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, (list, tuple)) and not hasattr(node, "_fields"):
        for part in node:
            yield from parts_of(part)
    elif isinstance(node, ofproto_parser.StringifyMixin):
        yield node
        attributes = node._asdict() if hasattr(node, "_asdict") else vars(node)
        for name, value in attributes.items():
            if name not in ("datapath", "buf"):
                yield from parts_of(value)
