"""Messages of all versions: the base class, and decoding."""

from __future__ import annotations

import logging
import struct
from typing import Any, ClassVar

from urtica_ryu.fast import CODEC
from urtica_ryu.structs import Layout, Stringify, Struct, Truncated

LOG = logging.getLogger(__name__)

_HEADER = struct.Struct("!BBHI")

#: The classes of messages, by version and type.
_MESSAGES: dict[tuple[int, int], type[MsgBase]] = {}

StringifyMixin = Stringify

#: OpenFlow's versions, by number.
_VERSIONS = {1: "1.0", 4: "1.3"}


def header(buf: bytes) -> tuple[int, int, int, int]:
    """Returns version, type, length and xid."""
    return _HEADER.unpack_from(buf)


def msg(datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:
    """Returns the message of a frame; None, with a line in the log, if it is malformed or unknown."""
    cls = _MESSAGES.get((version, msg_type))
    if cls is None:
        LOG.warning("skipping a message of unknown type %d, OpenFlow version %#x", msg_type, version)
        return None
    try:
        return cls.parser(datapath, version, msg_type, msg_len, xid, buf)
    except (ValueError, struct.error, LookupError):
        LOG.exception("skipping a malformed message of type %d, %d bytes", msg_type, msg_len)
        return None


def _object_of_json(dp: Any, jsondict: Any) -> Any:
    """Returns the object of `{class: attributes}`, of the datapath's version; raises ValueError."""
    if not isinstance(jsondict, dict) or len(jsondict) != 1:
        raise ValueError(f"{jsondict!r} is no object: expected one key, the name of a class")
    [(name, attributes)] = jsondict.items()
    cls = getattr(dp.ofproto_parser, name, None)
    if not isinstance(cls, type) or not issubclass(cls, Stringify):
        raise ValueError(f"OpenFlow {_VERSIONS[dp.ofproto.OFP_VERSION]} has no class {name}")
    more = {"datapath": dp} if issubclass(cls, MsgBase) else {}
    return cls.from_jsondict(attributes, **more)


def ofp_msg_from_jsondict(dp: Any, jsondict: dict[str, Any]) -> Any:
    """Returns the message to_jsondict gave, for a datapath; raises ValueError."""
    made = _object_of_json(dp, jsondict)
    if not isinstance(made, MsgBase):
        raise ValueError(f"{type(made).__name__} is no message: expected one, such as OFPFlowMod")
    return made


def ofp_instruction_from_jsondict(dp: Any, jsonlist: list[Any], encap: bool = True) -> list[Any]:
    """Returns instructions and actions; with `encap`, the actions as one instruction that applies them. Raises ValueError."""
    parser = dp.ofproto_parser
    made: list[Any] = []
    actions: list[Any] = []
    for each in map(lambda json: _object_of_json(dp, json), jsonlist):
        if not encap or not isinstance(each, parser.OFPAction):
            made.append(each)
            continue
        if not actions:
            made.append(parser.OFPInstructionActions(dp.ofproto.OFPIT_APPLY_ACTIONS, actions))
            actions = made[-1].actions
        actions.append(each)
    return made


def data_bytes(data: Any) -> bytes:
    """Returns the bytes of a packet to send, which may be a Packet."""
    if hasattr(data, "serialize"):
        data.serialize()
        data = data.data
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise ValueError(f"data of OFPPacketOut is {data!r}: expected bytes") from None


class MsgBase(Struct):
    """A message. `datapath` is the switch that it is for or from."""

    #: The message's type; None for base classes.
    cls_msg_type: ClassVar[Any] = None
    VERSION: ClassVar[int] = 0
    BEFORE = "datapath"
    HIDDEN = frozenset({"datapath", "version", "msg_type", "msg_len", "xid", "buf"})
    LAYOUT = Layout(())

    datapath: Any
    version: int | None
    msg_type: int | None
    msg_len: int | None
    xid: int | None
    buf: Any

    def __init__(self, datapath: Any):
        self._begin(datapath)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "cls_msg_type" in vars(cls):
            _MESSAGES[cls.VERSION, cls.cls_msg_type] = cls

    def _begin(self, datapath: Any = None) -> None:
        self.datapath = datapath
        self.version = self.msg_type = self.msg_len = self.xid = self.buf = None

    def set_headers(self, version: int, msg_type: int, msg_len: int, xid: int) -> None:
        """Sets what the header has."""
        self.version, self.msg_type, self.msg_len, self.xid = version, msg_type, msg_len, xid

    def set_xid(self, xid: int) -> None:
        """Sets the xid, which must not be set yet."""
        if self.xid is not None:
            raise ValueError(f"the message has xid {self.xid:#x} already")
        self.xid = xid

    def set_buf(self, buf: bytes) -> None:
        """Sets the frame."""
        self.buf = bytes(buf)

    def serialize(self, buf: Any = None, offset: int | None = None) -> bytearray:
        """Makes the frame, in `buf`."""
        self.version = self.datapath.ofproto.OFP_VERSION if self.datapath is not None else self.VERSION
        self.msg_type = self.cls_msg_type
        if self.xid is None:
            self.xid = 0
        out = CODEC.encode_message(self, self.version, self.msg_type, self.xid)
        if out is None:
            out = self._frame(self.xid)
        self.msg_len = len(out)
        self.buf = out
        return out

    def encode(self, out: bytearray) -> None:
        """Appends what is behind the header."""
        # Without the extension: it has been tried for the whole frame.
        self.LAYOUT.encode(self, out)

    def _frame(self, xid: int) -> bytearray:
        """Returns the frame."""
        out = bytearray(_HEADER.size)
        self.encode(out)
        self.msg_len = len(out)
        if self.msg_len > 0xFFFF:
            raise ValueError(f"{type(self).__name__} has {self.msg_len} bytes: expected at most 65535")
        if not 0 <= xid <= 0xFFFFFFFF:
            raise ValueError(f"xid of {type(self).__name__} is {xid!r}: expected a number from 0 to 0xffffffff")
        _HEADER.pack_into(out, 0, self.version, self.msg_type, self.msg_len, xid)
        return out

    @classmethod
    def parser(cls, datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:  # type: ignore[override]
        """Returns the message of a frame."""
        end = min(msg_len, len(buf))
        found = CODEC.decode(cls, buf, _HEADER.size, end)
        made = cls.made(cls.LAYOUT.decode(buf, _HEADER.size, end)[0]) if found is None else found[0]
        made.datapath = datapath
        made.version = version
        made.msg_type = msg_type
        made.msg_len = msg_len
        made.xid = xid
        made.buf = bytes(buf)
        return made

    def __str__(self) -> str:
        numbers = (self.version, self.msg_type, self.msg_len, self.xid)
        parts = zip(("version", "msg_type", "msg_len", "xid"), numbers, strict=True)
        text = ",".join(f"{name}={value if value is None else hex(value)}" for name, value in parts)
        return f"{text},{self._text()}"

    __repr__ = Stringify._text


class MultipartBase(MsgBase):
    """What multipart (1.3) and statistics messages (1.0) share."""

    cls_stats_type: ClassVar[Any] = None
    #: The bytes between header and body, without type and flags.
    PAD: ClassVar[int] = 0

    type: Any
    flags: Any

    def _encode_head(self, out: bytearray) -> None:
        try:
            out += struct.pack("!HH", self.cls_stats_type if self.type is None else self.type, self.flags)
        except struct.error:
            raise ValueError(
                f"flags of {type(self).__name__} is {self.flags!r}: expected a number from 0 to 0xffff"
            ) from None
        out += bytes(self.PAD)


class RequestBase(MultipartBase):
    """A request: fields after the flags."""

    def encode(self, out: bytearray) -> None:
        self._encode_head(out)
        self.LAYOUT.encode(self, out)


class ReplyBase(MultipartBase):
    """A reply: its body is one structure, or a list."""

    BODY: ClassVar[Any] = None
    IS_SINGLE: ClassVar[bool] = False
    #: The classes of replies, by version and type.
    REPLIES: ClassVar[dict[tuple[int, int], type[ReplyBase]]] = {}

    body: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.cls_stats_type is not None:
            cls.REPLIES[cls.VERSION, cls.cls_stats_type] = cls

    def __init__(self, datapath: Any, type_: Any = None, body: Any = None, flags: Any = None):
        self._begin(datapath)
        self.type = self.cls_stats_type if type_ is None else type_
        self.body = body
        self.flags = flags

    @classmethod
    def parser(cls, datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:  # type: ignore[override]
        """Returns the reply of a frame, in the class of its type."""
        end = min(msg_len, len(buf))
        start = _HEADER.size + 4 + cls.PAD
        if end < start:
            raise Truncated(f"a reply has {end} bytes: expected {start} or more")
        kind, flags = struct.unpack_from("!HH", buf, _HEADER.size)
        found = cls.REPLIES.get((version, kind))
        if found is None:
            raise ValueError(f"replies of type {kind} are not supported")
        made = found(datapath, kind, found._body(buf, start, end), flags)
        made.set_headers(version, msg_type, msg_len, xid)
        made.set_buf(buf)
        return made

    @classmethod
    def _body(cls, buf: bytes, start: int, end: int) -> Any:
        if cls.IS_SINGLE:
            return cls.BODY.decode(buf, start, end)[0]
        body = []
        while start < end:
            one, start = cls.BODY.decode(buf, start, end)
            body.append(one)
        return body

    def encode(self, out: bytearray) -> None:
        self._encode_head(out)
        for one in [self.body] if self.IS_SINGLE else self.body:
            one.encode(out)


__all__ = [
    "MsgBase",
    "MultipartBase",
    "ReplyBase",
    "RequestBase",
    "StringifyMixin",
    "data_bytes",
    "header",
    "msg",
    "ofp_instruction_from_jsondict",
    "ofp_msg_from_jsondict",
]
