"""TCP."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet import packet_utils
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import U8, U16, U32, Field, Stringify, Truncated

TCP_OPTION_KIND_END_OF_OPTION_LIST = 0
TCP_OPTION_KIND_NO_OPERATION = 1
TCP_OPTION_KIND_MAXIMUM_SEGMENT_SIZE = 2
TCP_OPTION_KIND_WINDOW_SCALE = 3
TCP_OPTION_KIND_SACK_PERMITTED = 4
TCP_OPTION_KIND_SACK = 5
TCP_OPTION_KIND_TIMESTAMPS = 8

TCP_FIN = 0x001
TCP_SYN = 0x002
TCP_RST = 0x004
TCP_PSH = 0x008
TCP_ACK = 0x010
TCP_URG = 0x020
TCP_ECE = 0x040
TCP_CWR = 0x080
TCP_NS = 0x100


class TCPOption(Stringify):
    """An option."""

    cls_kind: ClassVar[Any] = None
    cls_length: ClassVar[Any] = None
    NAMES: ClassVar[tuple[str, ...]] = ()
    FORMAT: ClassVar[str] = "!"
    KINDS: ClassVar[dict[int, type[TCPOption]]] = {}

    def __init__(self, *values: Any, kind: int | None = None, length: int | None = None, **named: Any):
        self.kind = self.cls_kind if kind is None else kind
        self.length = self.cls_length if length is None else length
        given = {**dict(zip(self.NAMES, values, strict=False)), **named}
        if set(given) != set(self.NAMES):
            raise TypeError(f"{type(self).__name__} has {', '.join(given) or 'nothing'}: expected {', '.join(self.NAMES)}")
        vars(self).update(given)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.cls_kind is not None:
            cls.KINDS[cls.cls_kind] = cls

    def serialize(self) -> bytes:
        """Returns the option's bytes."""
        if self.length == 1:
            return bytes([self.kind])
        return bytes([self.kind, self.length]) + struct.pack(self.FORMAT, *(getattr(self, name) for name in self.NAMES))

    @classmethod
    def parse_all(cls, data: bytes) -> list[TCPOption]:
        """Returns the options of a header."""
        options: list[TCPOption] = []
        while data:
            kind = data[0]
            length = 1 if kind in (0, 1) else data[1] if len(data) > 1 else 0
            if length == 0 or length > len(data) or (kind > 1 and length < 2):
                raise Truncated("a TCP option is longer than the header")
            body = data[2:length]
            found = cls.KINDS.get(kind)
            if found is not None and (kind in (0, 1) or struct.calcsize(found.FORMAT) == len(body)):
                values = struct.unpack(found.FORMAT, body) if found.NAMES else ()
                options.append(found(*values, length=length))
            elif kind == TCP_OPTION_KIND_SACK and len(body) % 8 == 0:
                options.append(TCPOptionSACK(list(struct.iter_unpack("!II", body)), length=length))
            else:
                options.append(TCPOptionUnknown(body, kind, length))
            if kind == 0:
                break
            data = data[length:]
        return options


class TCPOptionEndOfOptionList(TCPOption):
    """The end."""

    cls_kind, cls_length = TCP_OPTION_KIND_END_OF_OPTION_LIST, 1


class TCPOptionNoOperation(TCPOption):
    """Padding."""

    cls_kind, cls_length = TCP_OPTION_KIND_NO_OPERATION, 1


class TCPOptionMaximumSegmentSize(TCPOption):
    """The maximum segment size."""

    cls_kind, cls_length = TCP_OPTION_KIND_MAXIMUM_SEGMENT_SIZE, 4
    NAMES, FORMAT = ("max_seg_size",), "!H"


class TCPOptionWindowScale(TCPOption):
    """The window scale."""

    cls_kind, cls_length = TCP_OPTION_KIND_WINDOW_SCALE, 3
    NAMES, FORMAT = ("shift_cnt",), "!B"


class TCPOptionSACKPermitted(TCPOption):
    """Selective acknowledgements may be sent."""

    cls_kind, cls_length = TCP_OPTION_KIND_SACK_PERMITTED, 2


class TCPOptionTimestamps(TCPOption):
    """Timestamps."""

    cls_kind, cls_length = TCP_OPTION_KIND_TIMESTAMPS, 10
    NAMES, FORMAT = ("ts_val", "ts_ecr"), "!II"


class TCPOptionSACK(TCPOption):
    """Selective acknowledgements."""

    def __init__(self, blocks: list[tuple[int, int]], kind: int | None = None, length: int | None = None):
        super().__init__(kind=TCP_OPTION_KIND_SACK, length=length or 2 + 8 * len(blocks))
        self.blocks = blocks

    def serialize(self) -> bytes:
        return bytes([self.kind, self.length]) + b"".join(struct.pack("!II", *block) for block in self.blocks)


class TCPOptionUnknown(TCPOption):
    """An option as bytes."""

    def __init__(self, value: bytes, kind: int, length: int):
        super().__init__(kind=kind, length=length)
        self.value = value

    def serialize(self) -> bytes:
        return bytes([self.kind, self.length]) + self.value


class tcp(PacketBase):
    """The TCP header. An offset or a checksum of 0 is computed."""

    FIELDS = (
        Field("src_port", U16, 1),
        Field("dst_port", U16, 1),
        Field("seq", U32, 0),
        Field("ack", U32, 0),
        Field("_offset", U8),
        Field("bits", U8, 0),
        Field("window_size", U16, 0),
        Field("csum", U16, 0),
        Field("urgent", U16, 0),
    )

    def __init__(
        self,
        src_port: int = 1,
        dst_port: int = 1,
        seq: int = 0,
        ack: int = 0,
        offset: int = 0,
        bits: int = 0,
        window_size: int = 0,
        csum: int = 0,
        urgent: int = 0,
        option: Any = None,
    ):
        self.src_port = src_port
        self.dst_port = dst_port
        self.seq = seq
        self.ack = ack
        self.offset = offset
        self.bits = bits
        self.window_size = window_size
        self.csum = csum
        self.urgent = urgent
        self.option = option

    def __len__(self) -> int:
        return self.offset * 4

    @property
    def _offset(self) -> int:
        return self.offset << 4

    def has_flags(self, *flags: int) -> bool:
        """Returns whether all these flags are set."""
        mask = 0
        for flag in flags:
            mask |= flag
        return self.bits & mask == mask

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        words = values.pop("_offset") >> 4
        if words < 5 or offset + words * 4 > end:
            raise Truncated(f"a TCP header has {words * 4} bytes")
        values["bits"] &= 0x3F
        option: Any = bytes(data[after : offset + words * 4]) or None
        if option is not None:
            option = TCPOption.parse_all(option)
        return cls(offset=words, option=option, **values), offset + words * 4

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        option = self.option or b""
        if isinstance(option, (list, tuple)):
            option = b"".join(each.serialize() for each in option)
        option += bytes(-len(option) % 4)
        if not self.offset:
            self.offset = 5 + len(option) // 4
        out = super().serialize(payload, prev) + option
        if len(out) < self.offset * 4:
            out += bytes(self.offset * 4 - len(out))
        if not self.csum and prev is not None:
            self.csum = packet_utils.checksum_ip(prev, len(out) + len(payload), bytes(out) + bytes(payload))
            struct.pack_into("!H", out, 16, self.csum)
        return out


ipv4.register_packet_type(tcp, 6)
