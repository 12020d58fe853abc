"""SCTP (RFC 4960): chunks, their parameters, and the causes of errors.

Lengths, numbers of entries and a checksum of 0 are computed when they are serialized.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar

from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import (
    IPV4,
    IPV6,
    NEW_LIST,
    REST,
    U8,
    U16,
    U32,
    BytesKind,
    Field,
    Kind,
    Layout,
    Many,
    Struct,
    Sub,
    Truncated,
    framed,
    pad,
)

TYPE_DATA = 0
TYPE_INIT = 1
TYPE_INIT_ACK = 2
TYPE_SACK = 3
TYPE_HEARTBEAT = 4
TYPE_HEARTBEAT_ACK = 5
TYPE_ABORT = 6
TYPE_SHUTDOWN = 7
TYPE_SHUTDOWN_ACK = 8
TYPE_ERROR = 9
TYPE_COOKIE_ECHO = 10
TYPE_COOKIE_ACK = 11
TYPE_ECN_ECHO = 12
TYPE_CWR = 13
TYPE_SHUTDOWN_COMPLETE = 14

CCODE_INVALID_STREAM_ID = 1
CCODE_MISSING_PARAM = 2
CCODE_STALE_COOKIE = 3
CCODE_OUT_OF_RESOURCE = 4
CCODE_UNRESOLVABLE_ADDR = 5
CCODE_UNRECOGNIZED_CHUNK = 6
CCODE_INVALID_PARAM = 7
CCODE_UNRECOGNIZED_PARAM = 8
CCODE_NO_USERDATA = 9
CCODE_COOKIE_WHILE_SHUTDOWN = 10
CCODE_RESTART_WITH_NEW_ADDR = 11
CCODE_USER_INITIATED_ABORT = 12
CCODE_PROTOCOL_VIOLATION = 13

PTYPE_HEARTBEAT = 1
PTYPE_IPV4 = 5
PTYPE_IPV6 = 6
PTYPE_STATE_COOKIE = 7
PTYPE_UNRECOGNIZED_PARAM = 8
PTYPE_COOKIE_PRESERVE = 9
PTYPE_HOST_ADDR = 11
PTYPE_SUPPORTED_ADDR = 12
PTYPE_ECN = 0x8000


def _crc32c_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC32C = _crc32c_table()


def crc32c(data: Any) -> int:
    """Returns the CRC32c of bytes (RFC 3720, appendix B.4)."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC32C[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


class _Numbers(Kind):
    """Numbers up to the end, or lists of numbers of the format `layout`."""

    def __init__(self, layout: str):
        self.struct = struct.Struct(layout)
        self.is_flat = len(layout) == 2
        self.expected = "a list of numbers" if self.is_flat else "a list of pairs of numbers"

    def encode(self, value: Any, out: bytearray) -> None:
        try:
            for one in value or ():
                out += self.struct.pack(one) if self.is_flat else self.struct.pack(*one)
        except struct.error:
            raise TypeError from None

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[Any], int]:
        after = end - (end - offset) % self.struct.size
        found = self.struct.iter_unpack(data[offset:after])
        return [one[0] if self.is_flat else list(one) for one in found], after


class _List(Many):
    """Structures up to the end. Those of unknown types are left out, or end the list."""

    def __init__(self, decode_one: Callable[[bytes, int, int], tuple[Any, int]], expected: str, is_open: bool = True):
        super().__init__(decode_one, expected)
        self.is_open = is_open

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[Any], int]:
        values = []
        while offset < end:
            value, after = self.decode_one(data, offset, end)
            if value is not None:
                values.append(value)
            elif not self.is_open:
                break
            offset = after
        return values, offset


class _Framed(Struct):
    """A structure that begins with its type and has its length in bytes 2 and 3; zeros up to a multiple of 4 follow it."""

    #: The type on the wire; None for base classes.
    TYPE: ClassVar[Any] = None
    #: The fields before the length: on the wire, and of the constructor.
    HEAD: ClassVar[tuple[Field, ...]] = (Field("_type", U16),)
    SETTINGS: ClassVar[tuple[str, ...]] = ()
    IS_LENGTH_LAST: ClassVar[bool] = True
    #: The fields that count the entries of others.
    COUNTS: ClassVar[dict[str, str]] = {}
    KINDS: ClassVar[dict[int, Any]] = {}

    length: int

    def __init_subclass__(cls, **options: Any) -> None:
        fields = vars(cls).get("FIELDS")
        if fields is not None:
            length = Field("length", U16, 0)
            first, last = ((), (length,)) if cls.IS_LENGTH_LAST else ((length,), ())
            settings = tuple(Field(name, U8, 0) for name in cls.SETTINGS)
            cls.FIELDS = (*settings, *first, *fields, *last)
            super().__init_subclass__(**options)
            cls.LAYOUT = Layout((*cls.HEAD, length, *fields))
        if cls.TYPE is not None:
            cls.KINDS[cls.TYPE] = cls

    @property
    def _type(self) -> int:
        return int(self.TYPE)

    def encode(self, out: bytearray) -> None:
        for count, name in self.COUNTS.items():
            if not getattr(self, count):
                setattr(self, count, len(getattr(self, name) or ()))
        start = len(out)
        self.LAYOUT.encode(self, out)
        if not self.length:
            self.length = len(out) - start
            if self.length > 0xFFFF:
                raise ValueError(f"{type(self).__name__} has {self.length} bytes: expected at most 65535")
            struct.pack_into("!H", out, start + 2, self.length)
        out += bytes(start - len(out) & 3)

    @classmethod
    def _kind(cls, data: bytes, offset: int) -> int:
        """Returns the type of the structure at an offset."""
        return int(struct.unpack_from("!H", data, offset)[0])

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        """Returns a structure, None if its type is unknown, and the offset after it."""
        after = framed(data, offset, end)
        found = cls.KINDS.get(cls._kind(data, offset))
        made = found.made(found._read(data, offset, after)) if found else None
        return made, min(after + (offset - after & 3), end)

    @classmethod
    def _read(cls, data: bytes, offset: int, end: int) -> dict[str, Any]:
        values, _ = cls.LAYOUT.decode(data, offset, end)
        del values["_type"]
        return values

    def __len__(self) -> int:
        return self.length or len(self.serialize())

    def __bool__(self) -> bool:
        return True


# Parameters of chunks


class param(_Framed):
    """A parameter of a chunk."""

    KINDS: ClassVar[dict[int, Any]] = {}
    TEXTS = frozenset({"value"})


class _ValueKind(BytesKind):
    """All bytes up to the end; None without any."""

    def decode(self, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        return bytes(data[offset:end]) or None, end


_VALUE = (Field("value", _ValueKind(), None),)


class param_heartbeat(param):
    """The receiver of a heartbeat returns this."""

    TYPE = PTYPE_HEARTBEAT
    FIELDS = _VALUE
    TEXTS = frozenset()


class param_state_cookie(param):
    """A cookie."""

    TYPE = PTYPE_STATE_COOKIE
    FIELDS = _VALUE
    TEXTS = frozenset()


class param_unrecognized_param(param):
    """A parameter that its receiver does not know, as bytes."""

    TYPE = PTYPE_UNRECOGNIZED_PARAM
    FIELDS = _VALUE
    TEXTS = frozenset()


class param_cookie_preserve(param):
    """Milliseconds for which the cookie shall live longer."""

    TYPE = PTYPE_COOKIE_PRESERVE
    FIELDS = (Field("value", U32, 0),)


class param_ecn(param):
    """The sender can handle explicit congestion notification."""

    TYPE = PTYPE_ECN
    FIELDS = _VALUE
    TEXTS = frozenset()


class param_host_addr(param):
    """The host's name."""

    TYPE = PTYPE_HOST_ADDR
    FIELDS = _VALUE
    TEXTS = frozenset()


class param_supported_addr(param):
    """Types of addresses, by the numbers of their parameters."""

    TYPE = PTYPE_SUPPORTED_ADDR
    FIELDS = (Field("value", _Numbers("!H"), None),)


class param_ipv4(param):
    """An IPv4 address."""

    TYPE = PTYPE_IPV4
    FIELDS = (Field("value", IPV4, "127.0.0.1"),)


class param_ipv6(param):
    """An IPv6 address."""

    TYPE = PTYPE_IPV6
    FIELDS = (Field("value", IPV6, "::1"),)


_PARAM = Sub(param)
_PARAMS = _List(param.decode, "parameters")


# Causes of errors


class cause(_Framed):
    """A cause of an error."""

    KINDS: ClassVar[dict[int, Any]] = {}


class cause_invalid_stream_id(cause):
    """Data of a stream that does not exist."""

    TYPE = CCODE_INVALID_STREAM_ID
    FIELDS = (Field("value", U16, 0), pad(2))


class cause_missing_param(cause):
    """Parameters that a chunk needs."""

    TYPE = CCODE_MISSING_PARAM
    FIELDS = (Field("num", U32, 0), Field("types", _Numbers("!H"), NEW_LIST))
    ARGUMENTS = ("types", "num", "length")
    COUNTS = {"num": "types"}


class cause_stale_cookie(cause):
    """The cookie has expired, so many microseconds ago."""

    TYPE = CCODE_STALE_COOKIE
    FIELDS = _VALUE


class cause_out_of_resource(cause):
    """The sender is out of resources."""

    TYPE = CCODE_OUT_OF_RESOURCE
    FIELDS = ()


class cause_unresolvable_addr(cause):
    """The parameter of an address that cannot be resolved."""

    TYPE = CCODE_UNRESOLVABLE_ADDR
    FIELDS = (Field("value", _PARAM, None),)


class cause_unrecognized_chunk(cause):
    """A chunk of an unknown type."""

    TYPE = CCODE_UNRECOGNIZED_CHUNK
    FIELDS = _VALUE


class cause_invalid_param(cause):
    """A parameter has an invalid value."""

    TYPE = CCODE_INVALID_PARAM
    FIELDS = ()


class cause_unrecognized_param(cause):
    """Parameters of unknown types."""

    TYPE = CCODE_UNRECOGNIZED_PARAM
    FIELDS = _VALUE


class cause_no_userdata(cause):
    """A data chunk without data: its sequence number."""

    TYPE = CCODE_NO_USERDATA
    FIELDS = _VALUE


class cause_cookie_while_shutdown(cause):
    """A cookie was received during a shutdown."""

    TYPE = CCODE_COOKIE_WHILE_SHUTDOWN
    FIELDS = ()


class cause_restart_with_new_addr(cause):
    """A restart with other addresses: their parameters."""

    TYPE = CCODE_RESTART_WITH_NEW_ADDR
    FIELDS = (Field("value", _PARAMS, None),)


class cause_user_initiated_abort(cause):
    """The user ends the association, for this reason."""

    TYPE = CCODE_USER_INITIATED_ABORT
    FIELDS = _VALUE


class cause_protocol_violation(cause):
    """The peer violates the protocol."""

    TYPE = CCODE_PROTOCOL_VIOLATION
    FIELDS = _VALUE


_CAUSES = _List(cause.decode, "causes")


# Chunks


class chunk(_Framed):
    """A chunk."""

    HEAD = (Field("_type", U8), Field("_flags", U8))
    SETTINGS: ClassVar[tuple[str, ...]] = ("flags",)
    IS_LENGTH_LAST = False
    KINDS: ClassVar[dict[int, Any]] = {}

    @classmethod
    def chunk_type(cls) -> Any:
        """Returns the type."""
        return cls.TYPE

    @property
    def _flags(self) -> int:
        """The flags on the wire: of the settings, the last one is the lowest bit."""
        if self.SETTINGS == ("flags",):
            return int(vars(self)["flags"])
        return sum(bool(getattr(self, name)) << at for at, name in enumerate(reversed(self.SETTINGS)))

    @classmethod
    def _kind(cls, data: bytes, offset: int) -> int:
        return data[offset]

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        flags = values.pop("_flags")
        if cls.SETTINGS == ("flags",):
            values["flags"] = flags
        else:
            values.update((name, flags >> at & 1) for at, name in enumerate(reversed(cls.SETTINGS)))
        return super().made(values)


class chunk_data(chunk):
    """Data of a stream."""

    TYPE = TYPE_DATA
    SETTINGS = ("unordered", "begin", "end")
    FIELDS = (
        Field("tsn", U32, 0),
        Field("sid", U16, 0),
        Field("seq", U16, 0),
        Field("payload_id", U32, 0),
        Field("payload_data", REST, None),
    )


class chunk_init_base(chunk):
    """Starts an association."""

    FIELDS = (
        Field("init_tag", U32, 0),
        Field("a_rwnd", U32, 0),
        Field("os", U16, 0),
        Field("mis", U16, 0),
        Field("i_tsn", U32, 0),
        Field("params", _PARAMS, NEW_LIST),
    )


class chunk_init(chunk_init_base):
    """Starts an association."""

    TYPE = TYPE_INIT


class chunk_init_ack(chunk_init_base):
    """Answers an INIT."""

    TYPE = TYPE_INIT_ACK


_GAPS, _TSNS = _Numbers("!HH"), _Numbers("!I")


class chunk_sack(chunk):
    """Acknowledges data."""

    TYPE = TYPE_SACK
    FIELDS = (
        Field("tsn_ack", U32, 0),
        Field("a_rwnd", U32, 0),
        Field("gapack_num", U16, 0),
        Field("duptsn_num", U16, 0),
        Field("gapacks", _GAPS, NEW_LIST),
        Field("duptsns", _TSNS, NEW_LIST),
    )
    COUNTS = {"gapack_num": "gapacks", "duptsn_num": "duptsns"}

    @classmethod
    def _read(cls, data: bytes, offset: int, end: int) -> dict[str, Any]:
        values = super()._read(data, offset, end)
        # Both lists, as pairs.
        pairs, count = values["gapacks"], values["gapack_num"]
        if len(pairs) < count + values["duptsn_num"]:
            raise Truncated("a SACK is shorter than its lists")
        values["gapacks"] = pairs[:count]
        values["duptsns"] = [high << 16 | low for high, low in pairs[count : count + values["duptsn_num"]]]
        return values


class chunk_heartbeat_base(chunk):
    """Asks whether an address can be reached."""

    FIELDS = (Field("info", _PARAM, None),)


class chunk_heartbeat(chunk_heartbeat_base):
    """Asks whether an address can be reached."""

    TYPE = TYPE_HEARTBEAT


class chunk_heartbeat_ack(chunk_heartbeat_base):
    """Answers a heartbeat."""

    TYPE = TYPE_HEARTBEAT_ACK


class chunk_abort(chunk):
    """Ends an association at once."""

    TYPE = TYPE_ABORT
    SETTINGS = ("tflag",)
    FIELDS = (Field("causes", _CAUSES, NEW_LIST),)


class chunk_shutdown(chunk):
    """Ends an association."""

    TYPE = TYPE_SHUTDOWN
    FIELDS = (Field("tsn_ack", U32, 0),)


class chunk_ack_base(chunk):
    """A chunk without fields."""

    FIELDS = ()


class chunk_shutdown_ack(chunk_ack_base):
    """Answers a SHUTDOWN."""

    TYPE = TYPE_SHUTDOWN_ACK


class chunk_error(chunk):
    """Reports errors."""

    TYPE = TYPE_ERROR
    FIELDS = (Field("causes", _CAUSES, NEW_LIST),)


class chunk_cookie_echo(chunk):
    """Returns the cookie."""

    TYPE = TYPE_COOKIE_ECHO
    FIELDS = (Field("cookie", REST, None),)


class chunk_cookie_ack(chunk_ack_base):
    """Answers a COOKIE ECHO."""

    TYPE = TYPE_COOKIE_ACK


class chunk_ecn_base(chunk):
    """Explicit congestion notification."""

    FIELDS = (Field("low_tsn", U32, 0),)


class chunk_ecn_echo(chunk_ecn_base):
    """Reports congestion."""

    TYPE = TYPE_ECN_ECHO


class chunk_cwr(chunk_ecn_base):
    """Answers an ECN ECHO: the congestion window was reduced."""

    TYPE = TYPE_CWR


class chunk_shutdown_complete(chunk):
    """Answers a SHUTDOWN ACK."""

    TYPE = TYPE_SHUTDOWN_COMPLETE
    SETTINGS = ("tflag",)
    FIELDS = ()


class sctp(PacketBase):
    """The SCTP header, and chunks."""

    FIELDS = (
        Field("src_port", U16, 1),
        Field("dst_port", U16, 1),
        Field("vtag", U32, 0),
        Field("csum", U32, 0),
        Field("chunks", _List(chunk.decode, "chunks", is_open=False), NEW_LIST),
    )

    csum: int

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        out = super().serialize(payload, prev)
        if not self.csum:
            # The bytes of the remainder are in the opposite order.
            (self.csum,) = struct.unpack("!I", struct.pack("<I", crc32c(out)))
            struct.pack_into("!I", out, 8, self.csum)
        return out


ipv4.register_packet_type(sctp, 132)
