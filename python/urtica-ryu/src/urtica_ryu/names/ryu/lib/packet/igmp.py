"""IGMP, versions 1 to 3."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet import packet_utils
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import IPV4, U8, U16, Field, Many, Struct, Truncated, pad

IGMP_TYPE_QUERY = 0x11
IGMP_TYPE_REPORT_V1 = 0x12
IGMP_TYPE_REPORT_V2 = 0x16
IGMP_TYPE_LEAVE = 0x17
IGMP_TYPE_REPORT_V3 = 0x22

QUERY_RESPONSE_INTERVAL = 10.0
LAST_MEMBER_QUERY_INTERVAL = 1.0

MULTICAST_IP_ALL_HOST = "224.0.0.1"
MULTICAST_MAC_ALL_HOST = "01:00:5e:00:00:01"

MODE_IS_INCLUDE = 1
MODE_IS_EXCLUDE = 2
CHANGE_TO_INCLUDE_MODE = 3
CHANGE_TO_EXCLUDE_MODE = 4
ALLOW_NEW_SOURCES = 5
BLOCK_OLD_SOURCES = 6


def _sources(data: bytes, offset: int, count: int, end: int) -> tuple[list[str], int]:
    """Returns IPv4 addresses, and the offset after them."""
    after = offset + 4 * count
    if after > end:
        raise Truncated("the addresses end early")
    return [str(IPV4.from_wire(bytes(data[at : at + 4]))) for at in range(offset, after, 4)], after


def _encode_sources(sources: list[str], out: bytearray) -> None:
    for source in sources:
        out += IPV4.to_wire(source)


class igmp(PacketBase):
    """A message of version 1 or 2; of version 3 it is another class. A checksum of 0 is computed."""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("msgtype", U8, IGMP_TYPE_QUERY),
        Field("maxresp", U8, 0),
        Field("csum", U16, 0),
        Field("address", IPV4, "0.0.0.0"),
    )
    TEXTS = frozenset({"address", "srcs"})

    msgtype: int
    csum: int

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        if cls is igmp and buf[offset : offset + 1] == bytes([IGMP_TYPE_REPORT_V3]):
            return igmpv3_report.parser(buf, offset)
        if cls is igmp and buf[offset : offset + 1] == bytes([IGMP_TYPE_QUERY]) and len(buf) - offset >= igmpv3_query._MIN_LEN:
            return igmpv3_query.parser(buf, offset)
        made, after = cls.decode(buf, offset, len(buf))
        return made, None, bytes(buf[after:])

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        out = bytearray()
        self.encode(out)
        if not self.csum:
            self.csum = packet_utils.checksum(out)
            struct.pack_into("!H", out, 2, self.csum)
        return out


class igmpv3_query(igmp):
    """A query of version 3. A number of 0 is that of the sources."""

    FIELDS = (*igmp.FIELDS, Field("_flags", U8), Field("qqic", U8, 0), Field("num", U16, 0))

    def __init__(
        self,
        msgtype: int = IGMP_TYPE_QUERY,
        maxresp: int = 100,
        csum: int = 0,
        address: str = "0.0.0.0",
        s_flg: int = 0,
        qrv: int = 2,
        qqic: int = 0,
        num: int = 0,
        srcs: list[str] | None = None,
    ):
        self.msgtype = msgtype
        self.maxresp = maxresp
        self.csum = csum
        self.address = address
        self.s_flg = s_flg
        self.qrv = qrv
        self.qqic = qqic
        self.num = num
        self.srcs = srcs or []

    @property
    def _flags(self) -> int:
        return self.s_flg << 3 | self.qrv

    def encode(self, out: bytearray) -> None:
        self.num = self.num or len(self.srcs)
        super().encode(out)
        _encode_sources(self.srcs, out)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        flags = values.pop("_flags")
        srcs, after = _sources(data, after, values["num"], end)
        return cls(s_flg=flags >> 3 & 1, qrv=flags & 7, srcs=srcs, **values), after


class igmpv3_report_group(Struct):
    """A record: what a host wants of a group. A number of 0 is that of the sources."""

    FIELDS = (Field("type_", U8), Field("aux_len", U8), Field("num", U16), Field("address", IPV4))
    TEXTS = frozenset({"address", "srcs"})

    def __init__(
        self,
        type_: int = 0,
        aux_len: int = 0,
        num: int = 0,
        address: str = "0.0.0.0",
        srcs: list[str] | None = None,
        aux: bytes | None = None,
    ):
        self.type_ = type_
        self.aux_len = aux_len
        self.num = num
        self.address = address
        self.srcs = srcs or []
        self.aux = aux

    def encode(self, out: bytearray) -> None:
        self.num = self.num or len(self.srcs)
        aux = self.aux or b""
        self.aux_len = self.aux_len or len(aux) // 4
        super().encode(out)
        _encode_sources(self.srcs, out)
        out += aux

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        srcs, after = _sources(data, after, values["num"], end)
        aux_end = after + 4 * values["aux_len"]
        if aux_end > end:
            raise Truncated("the record ends early")
        return cls(srcs=srcs, aux=bytes(data[after:aux_end]) or None, **values), aux_end


class igmpv3_report(igmp):
    """A report of version 3. A number of 0 is that of the records."""

    FIELDS = (
        Field("msgtype", U8, IGMP_TYPE_REPORT_V3),
        pad(1),
        Field("csum", U16, 0),
        pad(2),
        Field("record_num", U16, 0),
        Field("records", Many(igmpv3_report_group.decode, "records"), None),
    )

    def __init__(
        self,
        msgtype: int = IGMP_TYPE_REPORT_V3,
        csum: int = 0,
        record_num: int = 0,
        records: list[igmpv3_report_group] | None = None,
    ):
        self.msgtype = msgtype
        self.csum = csum
        self.record_num = record_num
        self.records = records or []

    def encode(self, out: bytearray) -> None:
        self.record_num = self.record_num or len(self.records)
        super().encode(out)


ipv4.register_packet_type(igmp, 2)
