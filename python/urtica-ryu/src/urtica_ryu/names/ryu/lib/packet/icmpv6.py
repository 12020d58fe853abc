"""ICMPv6, with the messages of neighbour discovery and of multicast listeners."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet import icmp, packet_utils
from ryu.lib.packet.ipv4 import ipv4
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import IPV6, MAC, REST, U8, U16, U32, Field, Many, Struct, Truncated, pad

ICMPV6_DST_UNREACH = 1
ICMPV6_PACKET_TOO_BIG = 2
ICMPV6_TIME_EXCEEDED = 3
ICMPV6_PARAM_PROB = 4
ICMPV6_ECHO_REQUEST = 128
ICMPV6_ECHO_REPLY = 129
MLD_LISTENER_QUERY = ICMPV6_MEMBERSHIP_QUERY = 130
MLD_LISTENER_REPOR = ICMPV6_MEMBERSHIP_REPORT = 131
MLD_LISTENER_DONE = ICMPV6_MEMBERSHIP_REDUCTION = 132
ND_ROUTER_SOLICIT = 133
ND_ROUTER_ADVERT = 134
ND_NEIGHBOR_SOLICIT = 135
ND_NEIGHBOR_ADVERT = 136
ND_REDIREC = 137
MLDV2_LISTENER_REPORT = 143

ND_OPTION_SLA = 1
ND_OPTION_TLA = 2
ND_OPTION_PI = 3
ND_OPTION_MTU = 5


class _Addresses(Struct):
    TEXTS = frozenset({"dst", "address", "prefix", "hw_src"})


class nd_option(_Addresses):
    """An option: its type, and its length in 8 bytes. A length of 0 is computed."""

    KINDS: ClassVar[dict[int, type[nd_option]]] = {}
    option_type: ClassVar[Any] = None

    length: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.option_type is not None:
            cls.KINDS[cls.option_type] = cls

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!BB", self.option_type, 0)
        self.LAYOUT.encode(self, out)
        if not self.length:
            out += bytes(-(len(out) - start) % 8)
            self.length = (len(out) - start) // 8
        out[start + 1] = self.length

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        if offset + 2 > end or data[offset + 1] == 0 or offset + 8 * data[offset + 1] > end:
            raise Truncated("an option ends early")
        after = offset + 8 * data[offset + 1]
        found = cls.KINDS.get(data[offset])
        if found is None:
            return bytes(data[offset:after]), after
        made = found.made(found.LAYOUT.decode(data, offset + 2, after)[0])
        made.length = data[offset + 1]
        return made, after


class nd_option_la(nd_option):
    """An option with a link-layer address."""

    def __init__(self, length: int = 0, hw_src: str = "00:00:00:00:00:00", data: Any = None):
        self.length = length
        self.hw_src = hw_src
        self.data = data

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        return super().made({**values, "data": values["data"] or None})


class nd_option_sla(nd_option_la):
    """The source's link-layer address."""

    option_type = ND_OPTION_SLA
    FIELDS = (Field("hw_src", MAC), Field("data", REST, None))
    __init__ = nd_option_la.__init__


class nd_option_tla(nd_option_la):
    """The target's link-layer address."""

    option_type = ND_OPTION_TLA
    FIELDS = (Field("hw_src", MAC), Field("data", REST, None))
    __init__ = nd_option_la.__init__


class nd_option_pi(nd_option):
    """A prefix."""

    option_type = ND_OPTION_PI
    FIELDS = (
        Field("pl", U8),
        Field("_flags", U8),
        Field("val_l", U32),
        Field("pre_l", U32),
        Field("res2", U32),
        Field("prefix", IPV6),
    )

    def __init__(
        self,
        length: int = 0,
        pl: int = 0,
        res1: int = 0,
        val_l: int = 0,
        pre_l: int = 0,
        res2: int = 0,
        prefix: str = "::",
    ):
        self.length = length
        self.pl = pl
        self.res1 = res1
        self.val_l = val_l
        self.pre_l = pre_l
        self.res2 = res2
        self.prefix = prefix

    @property
    def _flags(self) -> int:
        return self.res1 << 5

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        return cls(res1=values.pop("_flags") >> 5, **values)


class nd_option_mtu(nd_option):
    """The largest packet of the link."""

    option_type = ND_OPTION_MTU
    FIELDS = (pad(2), Field("mtu", U32))

    def __init__(self, mtu: int = 1500, length: int = 0):
        self.mtu = mtu
        self.length = length


class _Payload(_Addresses):
    """What a message of neighbour discovery carries before its options."""


def _options(data: bytes, offset: int, end: int) -> list[Any]:
    found, _ = Many(nd_option.decode, "options").decode(data, offset, end)
    return found


def _first_option(data: bytes, offset: int, end: int) -> Any:
    options = _options(data, offset, end)
    return options[0] if options else None


def _encode_options(options: Any, out: bytearray) -> None:
    for option in options if isinstance(options, list) else [options]:
        if isinstance(option, nd_option):
            option.encode(out)
        else:
            out += option or b""


class echo(icmp.echo):
    """What an echo message carries."""


class mld(_Payload):
    """A message about listeners of a multicast address."""

    FIELDS = (Field("maxresp", U16, 0), pad(2), Field("address", IPV6, "::"))
    #: Longer queries are of version 2.
    LAYOUT_BYTES = 20


class _Sources(_Payload):
    """A structure that ends in addresses of sources, whose number is computed if it is 0."""

    TEXTS = frozenset({"address", "srcs"})

    num: int
    srcs: list[str]

    def _set_sources(self, num: int, srcs: list[str] | None) -> None:
        self.num = num
        self.srcs = srcs or []

    def encode(self, out: bytearray) -> None:
        self.num = self.num or len(self.srcs)
        super().encode(out)
        for address in self.srcs:
            out += IPV6.to_wire(address)

    @classmethod
    def _sources(cls, data: bytes, offset: int, end: int, count: int) -> tuple[list[str], int]:
        if offset + 16 * count > end:
            raise Truncated("a list of sources ends early")
        found = [IPV6.from_wire(bytes(data[at : at + 16])) for at in range(offset, offset + 16 * count, 16)]
        return found, offset + 16 * count


class mldv2_query(_Sources):
    """A query of multicast listeners, version 2."""

    FIELDS = (Field("maxresp", U16), pad(2), Field("address", IPV6), Field("_flags", U8), Field("qqic", U8), Field("num", U16))

    def __init__(
        self,
        maxresp: int = 0,
        address: str = "::",
        s_flg: int = 0,
        qrv: int = 2,
        qqic: int = 0,
        num: int = 0,
        srcs: list[str] | None = None,
    ):
        self.maxresp = maxresp
        self.address = address
        self.s_flg = s_flg
        self.qrv = qrv
        self.qqic = qqic
        self._set_sources(num, srcs)

    @property
    def _flags(self) -> int:
        return self.s_flg << 3 | self.qrv

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        flags = values.pop("_flags")
        srcs, after = cls._sources(data, after, end, values["num"])
        return cls(s_flg=flags >> 3 & 1, qrv=flags & 7, srcs=srcs, **values), after


class mldv2_report_group(_Sources):
    """A record of a report: of one multicast address."""

    FIELDS = (Field("type_", U8), Field("aux_len", U8), Field("num", U16), Field("address", IPV6))

    def __init__(
        self,
        type_: int = 0,
        aux_len: int = 0,
        num: int = 0,
        address: str = "::",
        srcs: list[str] | None = None,
        aux: bytes | None = None,
    ):
        self.type_ = type_
        self.aux_len = aux_len
        self.address = address
        self._set_sources(num, srcs)
        self.aux = aux

    def encode(self, out: bytearray) -> None:
        aux = self.aux or b""
        aux += bytes(-len(aux) % 4)
        self.aux_len = self.aux_len or len(aux) // 4
        super().encode(out)
        out += aux

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        srcs, after = cls._sources(data, after, end, values["num"])
        last = after + 4 * values["aux_len"]
        if last > end:
            raise Truncated("a record of a report ends early")
        return cls(srcs=srcs, aux=bytes(data[after:last]) or None, **values), last


class mldv2_report(_Payload):
    """A report of multicast listeners, version 2. A number of records of 0 is computed."""

    FIELDS = (pad(2), Field("record_num", U16))

    def __init__(self, record_num: int = 0, records: list[Any] | None = None):
        self.record_num = record_num
        self.records = records or []

    def encode(self, out: bytearray) -> None:
        self.record_num = self.record_num or len(self.records)
        super().encode(out)
        for record in self.records:
            record.encode(out)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        records = []
        for _ in range(values["record_num"]):
            record, after = mldv2_report_group.decode(data, after, end)
            records.append(record)
        return cls(values["record_num"], records), after


class nd_neighbor(_Payload):
    """A neighbour's address; `res` are the three flags of an advertisement."""

    FIELDS = (Field("_flags", U32), Field("dst", IPV6, "::"))

    def __init__(self, res: int = 0, dst: str = "::", option: Any = None):
        self.res = res
        self.dst = dst
        self.option = option

    @property
    def _flags(self) -> int:
        return self.res << 29

    def encode(self, out: bytearray) -> None:
        super().encode(out)
        _encode_options(self.option, out)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        return cls(values["_flags"] >> 29, values["dst"], _first_option(data, after, end)), end


class nd_router_solicit(_Payload):
    """Asks for routers."""

    FIELDS = (Field("res", U32, 0),)

    def __init__(self, res: int = 0, option: Any = None):
        self.res = res
        self.option = option

    def encode(self, out: bytearray) -> None:
        super().encode(out)
        _encode_options(self.option, out)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        return cls(values["res"], _first_option(data, after, end)), end


class nd_router_advert(_Payload):
    """What a router says of itself; `res` are its two flags."""

    FIELDS = (Field("ch_l", U8), Field("_flags", U8), Field("rou_l", U16), Field("rea_t", U32), Field("ret_t", U32))

    def __init__(
        self, ch_l: int = 0, res: int = 0, rou_l: int = 0, rea_t: int = 0, ret_t: int = 0, options: list[Any] | None = None
    ):
        self.ch_l = ch_l
        self.res = res
        self.rou_l = rou_l
        self.rea_t = rea_t
        self.ret_t = ret_t
        self.options = options or []

    @property
    def _flags(self) -> int:
        return self.res << 6

    def encode(self, out: bytearray) -> None:
        super().encode(out)
        _encode_options(self.options, out)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        return cls(res=values.pop("_flags") >> 6, **values, options=_options(data, after, end)), end


_PAYLOADS: dict[int, Any] = {
    ICMPV6_ECHO_REQUEST: echo,
    ICMPV6_ECHO_REPLY: echo,
    MLD_LISTENER_QUERY: mld,
    MLD_LISTENER_REPOR: mld,
    MLD_LISTENER_DONE: mld,
    ND_ROUTER_SOLICIT: nd_router_solicit,
    ND_ROUTER_ADVERT: nd_router_advert,
    ND_NEIGHBOR_SOLICIT: nd_neighbor,
    ND_NEIGHBOR_ADVERT: nd_neighbor,
    MLDV2_LISTENER_REPORT: mldv2_report,
}


class icmpv6(PacketBase):
    """The ICMPv6 message. A checksum of 0 is computed where the IPv6 header is known."""

    FIELDS = (Field("type_", U8, 0), Field("code", U8, 0), Field("csum", U16, 0))

    def __init__(self, type_: int = 0, code: int = 0, csum: int = 0, data: Any = b""):
        self.type_ = type_
        self.code = code
        self.csum = csum
        self.data = data

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        values, after = cls.LAYOUT.decode(buf, offset, len(buf))
        rest = bytes(buf[after:])
        kind = _PAYLOADS.get(values["type_"])
        if kind is mld and values["type_"] == MLD_LISTENER_QUERY and len(rest) > mld.LAYOUT_BYTES:
            kind = mldv2_query
        data = kind.decode(rest, 0, len(rest))[0] if kind is not None and rest else rest
        return cls(values["type_"], values["code"], values["csum"], data), None, None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        out = bytearray()
        self.encode(out)
        if isinstance(self.data, Struct):
            self.data.encode(out)
        else:
            out += self.data or b""
        if not self.csum and prev is not None:
            length = len(out) + len(payload)
            self.csum = packet_utils.checksum_ip(prev, length, bytes(out) + bytes(payload))
            struct.pack_into("!H", out, 2, self.csum)
        return out


ipv4.register_packet_type(icmpv6, 58)
