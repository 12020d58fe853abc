"""The messages of OpenFlow 1.0."""

from __future__ import annotations

import ipaddress
import struct
from typing import Any, ClassVar

from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_0 as ofproto
from urtica_ryu import nicira_actions, nicira_messages
from urtica_ryu.structs import (
    MAC,
    MAC_BYTES,
    REST,
    U8,
    U16,
    U32,
    U64,
    Field,
    Layout,
    Many,
    Stringify,
    Struct,
    Sub,
    TextKind,
    Truncated,
    framed,
    ip_bytes,
    mac_bytes,
    pad,
    set_length,
    tuple_struct,
)

__all__ = ["MsgBase", "OFPMatch"]


class MsgBase(ofproto_parser.MsgBase):
    """A message of OpenFlow 1.0."""

    VERSION = ofproto.OFP_VERSION


_MATCH_FIELDS = (
    Field("wildcards", U32),
    Field("in_port", U16),
    Field("dl_src", MAC_BYTES),
    Field("dl_dst", MAC_BYTES),
    Field("dl_vlan", U16),
    Field("dl_vlan_pcp", U8),
    pad(1),
    Field("dl_type", U16),
    Field("nw_tos", U8),
    Field("nw_proto", U8),
    pad(2),
    Field("nw_src", U32),
    Field("nw_dst", U32),
    Field("tp_src", U16),
    Field("tp_dst", U16),
)
_MATCH_NAMES = tuple(field.name for field in _MATCH_FIELDS if field.name and field.name != "wildcards")
#: The bits of `wildcards`, by field.
_WILDCARDS = {name: getattr(ofproto, f"OFPFW_{name.upper()}") for name in _MATCH_NAMES}
_SHIFTS = {"nw_src": ofproto.OFPFW_NW_SRC_SHIFT, "nw_dst": ofproto.OFPFW_NW_DST_SHIFT}


def _match_value(name: str, value: Any) -> Any:
    """Returns a value as an attribute. Invalid ones stay as they are, for the error when they are sent."""
    if value is None:
        return bytes(6) if name in ("dl_src", "dl_dst") else 0
    try:
        if name in ("dl_src", "dl_dst"):
            return mac_bytes(value)
        if name in _SHIFTS and isinstance(value, str):
            return int.from_bytes(ip_bytes(value, 4), "big")
    except (TypeError, ValueError, OverflowError):
        pass
    return value


class OFPMatch(Struct):
    """The match of OpenFlow 1.0: `OFPMatch(dl_type=0x800, nw_src="10.0.0.0", nw_src_mask=8)`."""

    FIELDS = _MATCH_FIELDS
    TEXTS = frozenset({"dl_src", "dl_dst", "nw_src", "nw_dst"})

    wildcards: int

    def __init__(
        self,
        wildcards: int | None = None,
        in_port: int | None = None,
        dl_src: Any = None,
        dl_dst: Any = None,
        dl_vlan: int | None = None,
        dl_vlan_pcp: int | None = None,
        dl_type: int | None = None,
        nw_tos: int | None = None,
        nw_proto: int | None = None,
        nw_src: Any = None,
        nw_dst: Any = None,
        tp_src: int | None = None,
        tp_dst: int | None = None,
        nw_src_mask: int = 32,
        nw_dst_mask: int = 32,
    ):
        values = (
            in_port,
            dl_src,
            dl_dst,
            dl_vlan,
            dl_vlan_pcp,
            dl_type,
            nw_tos,
            nw_proto,
            nw_src,
            nw_dst,
            tp_src,
            tp_dst,
        )
        any_bits = ofproto.OFPFW_ALL
        lengths = {"nw_src": nw_src_mask, "nw_dst": nw_dst_mask}
        for name, value in zip(_MATCH_NAMES, values, strict=True):
            setattr(self, name, _match_value(name, value))
            if value is not None:
                any_bits &= ~_WILDCARDS[name]
                if name in _SHIFTS:
                    any_bits |= (32 - lengths[name]) << _SHIFTS[name]
        self.wildcards = any_bits if wildcards is None else wildcards

    def _is_given(self, name: str) -> bool:
        return bool(~self.wildcards & _WILDCARDS.get(name, 0))

    def __contains__(self, name: str) -> bool:
        return self._is_given(name)

    def __getitem__(self, name: str) -> Any:
        if name == "wildcards":
            return self.wildcards
        if name in ("nw_src_mask", "nw_dst_mask"):
            address = name.removesuffix("_mask")
            return max(0, 32 - (self.wildcards >> _SHIFTS[address] & 0x3F))
        if not isinstance(name, str) or not self._is_given(name):
            raise KeyError(name)
        return self._seen(name)

    def _seen(self, name: str) -> Any:
        value = getattr(self, name)
        if name in ("dl_src", "dl_dst"):
            return bytes(value).hex(":")
        return str(ipaddress.IPv4Address(value)) if name in _SHIFTS else value

    def to_jsondict(self, encode_string: Any = None) -> dict[str, Any]:
        return {"OFPMatch": {name: self._seen(name) for name in vars(self)}}

    @classmethod
    def parse(cls, buf: bytes, offset: int) -> Any:
        """Returns the match at an offset."""
        return cls.parser(buf, offset)


MATCH = Sub(OFPMatch)


# Actions


class OFPAction(Struct):
    """An action: type, length, fields."""

    cls_action_type: ClassVar[Any] = None
    KINDS: ClassVar[dict[int, type[OFPAction]]] = {}
    HIDDEN = frozenset({"type", "len"})

    type: int
    len: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "cls_action_type" in vars(cls):
            cls.KINDS[cls.cls_action_type] = cls

    def _begin(self) -> None:
        self.type = self.cls_action_type
        self.len = 4 + sum(part.struct.size for part in self.LAYOUT.parts if hasattr(part, "struct"))

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!HH", self.type, 0)
        self.LAYOUT.encode(self, out)
        self.len = set_length(out, start, align=8)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end)
        (kind,) = struct.unpack_from("!H", data, offset)
        found = cls.KINDS.get(kind)
        if found is None:
            raise ValueError(f"actions of type {kind} are not supported")
        made = found._decode_rest(data, offset + 4, after)
        made.len = after - offset
        return made, after

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        return cls.made(cls.LAYOUT.decode(data, offset, end)[0])


ACTIONS = Many(OFPAction.decode, "actions")


class OFPActionOutput(OFPAction):
    """Sends the packet out of a port."""

    cls_action_type = ofproto.OFPAT_OUTPUT
    FIELDS = (Field("port", U16), Field("max_len", U16, 0xFFE5))


class OFPActionVlanVid(OFPAction):
    """Sets the VLAN."""

    cls_action_type = ofproto.OFPAT_SET_VLAN_VID
    FIELDS = (Field("vlan_vid", U16), pad(2))


class OFPActionVlanPcp(OFPAction):
    """Sets the VLAN's priority."""

    cls_action_type = ofproto.OFPAT_SET_VLAN_PCP
    FIELDS = (Field("vlan_pcp", U8), pad(3))


class OFPActionStripVlan(OFPAction):
    """Removes the VLAN tag."""

    cls_action_type = ofproto.OFPAT_STRIP_VLAN
    FIELDS = (pad(4),)


class OFPActionDlAddr(OFPAction):
    """Sets an Ethernet address."""

    FIELDS = (Field("dl_addr", MAC_BYTES), pad(6))
    TEXTS = frozenset({"dl_addr"})

    def __init__(self, dl_addr: Any):
        self._begin()
        self.dl_addr = _match_value("dl_src", dl_addr)

    def to_jsondict(self, encode_string: Any = None) -> dict[str, Any]:
        return {type(self).__name__: {"dl_addr": bytes(self.dl_addr).hex(":")}}


class OFPActionSetDlSrc(OFPActionDlAddr):
    """Sets the Ethernet source."""

    cls_action_type = ofproto.OFPAT_SET_DL_SRC


class OFPActionSetDlDst(OFPActionDlAddr):
    """Sets the Ethernet destination."""

    cls_action_type = ofproto.OFPAT_SET_DL_DST


class OFPActionNwAddr(OFPAction):
    """Sets an IPv4 address."""

    FIELDS = (Field("nw_addr", U32),)
    TEXTS = frozenset({"nw_addr"})

    def __init__(self, nw_addr: Any):
        self._begin()
        self.nw_addr = _match_value("nw_src", nw_addr)

    def to_jsondict(self, encode_string: Any = None) -> dict[str, Any]:
        return {type(self).__name__: {"nw_addr": str(ipaddress.IPv4Address(self.nw_addr))}}


class OFPActionSetNwSrc(OFPActionNwAddr):
    """Sets the IPv4 source."""

    cls_action_type = ofproto.OFPAT_SET_NW_SRC


class OFPActionSetNwDst(OFPActionNwAddr):
    """Sets the IPv4 destination."""

    cls_action_type = ofproto.OFPAT_SET_NW_DST


class OFPActionSetNwTos(OFPAction):
    """Sets the type of service."""

    cls_action_type = ofproto.OFPAT_SET_NW_TOS
    FIELDS = (Field("tos", U8), pad(3))


class OFPActionTpPort(OFPAction):
    """Sets a port of TCP or UDP."""

    FIELDS = (Field("tp", U16), pad(2))


class OFPActionSetTpSrc(OFPActionTpPort):
    """Sets the source port."""

    cls_action_type = ofproto.OFPAT_SET_TP_SRC


class OFPActionSetTpDst(OFPActionTpPort):
    """Sets the destination port."""

    cls_action_type = ofproto.OFPAT_SET_TP_DST


class OFPActionEnqueue(OFPAction):
    """Sends the packet through a queue."""

    cls_action_type = ofproto.OFPAT_ENQUEUE
    FIELDS = (Field("port", U16), pad(6), Field("queue_id", U32))


class OFPActionVendor(OFPAction):
    """An action of a vendor, as bytes."""

    cls_action_type = ofproto.OFPAT_VENDOR
    FIELDS = (Field("vendor", U32), Field("data", REST, None))
    #: Nicira's actions, by their numbers.
    SUBTYPES: ClassVar[dict[int, Any]] = {}

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        return nicira_actions.decode(OFPActionVendor, data, offset, end) or super()._decode_rest(data, offset, end)


globals().update(nicira_actions.actions_of(OFPActionVendor, "vendor", ACTIONS))


# Hello, echo, errors, configuration


class OFPHello(MsgBase):
    """The first message."""

    cls_msg_type = ofproto.OFPT_HELLO


class OFPErrorMsg(MsgBase):
    """Refuses a message, of which it has the first bytes."""

    cls_msg_type = ofproto.OFPT_ERROR
    FIELDS = (Field("type", U16, None), Field("code", U16, None), Field("data", REST, None))


class OFPEchoRequest(MsgBase):
    """Asks whether the other side is there."""

    cls_msg_type = ofproto.OFPT_ECHO_REQUEST
    FIELDS = (Field("data", REST, None),)


class OFPEchoReply(MsgBase):
    """Answers an echo request."""

    cls_msg_type = ofproto.OFPT_ECHO_REPLY
    FIELDS = (Field("data", REST, None),)


class OFPVendor(MsgBase):
    """A message of a vendor."""

    cls_msg_type = ofproto.OFPT_VENDOR
    FIELDS = (Field("vendor", U32, None), Field("data", REST, None))
    #: Nicira's messages, by their numbers. Those of switches are in `data`.
    SUBTYPES: ClassVar[dict[int, Any]] = {}

    @classmethod
    def parser(cls, datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:  # type: ignore[override]
        made = super().parser(datapath, version, msg_type, msg_len, xid, buf)
        if made.vendor == nicira_messages.NICIRA:
            made.data = nicira_messages.decode(cls, made.data, datapath)
        return made


globals().update(nicira_messages.messages_of(OFPVendor))


OFPPhyPort = tuple_struct(
    "OFPPhyPort",
    (
        Field("port_no", U16),
        Field("hw_addr", MAC),
        Field("name", TextKind(ofproto.OFP_MAX_PORT_NAME_LEN)),
        *(Field(name, U32) for name in ("config", "state", "curr", "advertised", "supported", "peer")),
    ),
)


class OFPFeaturesRequest(MsgBase):
    """Asks for the features."""

    cls_msg_type = ofproto.OFPT_FEATURES_REQUEST


class _PortsByNumber(Many):
    """Ports up to the end, by number."""

    def __init__(self) -> None:
        super().__init__(OFPPhyPort.decode, "ports")

    def encode(self, value: Any, out: bytearray) -> None:
        super().encode(list(value.values()) if value else [], out)

    def decode(self, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        # What is shorter than a port is padding.
        ports, after = super().decode(data, offset, end - (end - offset) % 48)
        return {port.port_no: port for port in ports}, after


class OFPSwitchFeatures(MsgBase):
    """The features and ports of a switch."""

    cls_msg_type = ofproto.OFPT_FEATURES_REPLY
    FIELDS = (
        Field("datapath_id", U64, None),
        Field("n_buffers", U32, None),
        Field("n_tables", U8, None),
        pad(3),
        Field("capabilities", U32, None),
        Field("actions", U32, None),
        Field("ports", _PortsByNumber(), None),
    )

    @classmethod
    def _from_object(cls, name: str, value: dict[str, Any], decode_string: Any) -> Any:
        # The ports: JSON's keys are text.
        one = super()._from_object
        return {int(number): one(name, port, decode_string) for number, port in value.items()}


class OFPGetConfigRequest(MsgBase):
    """Asks for the configuration."""

    cls_msg_type = ofproto.OFPT_GET_CONFIG_REQUEST


class OFPGetConfigReply(MsgBase):
    """The configuration."""

    cls_msg_type = ofproto.OFPT_GET_CONFIG_REPLY
    FIELDS = (Field("flags", U16, None), Field("miss_send_len", U16, None))


class OFPSetConfig(MsgBase):
    """Sets the configuration."""

    cls_msg_type = ofproto.OFPT_SET_CONFIG
    FIELDS = (Field("flags", U16, None), Field("miss_send_len", U16, None))


class OFPBarrierRequest(MsgBase):
    """Asks the switch to finish what it was sent."""

    cls_msg_type = ofproto.OFPT_BARRIER_REQUEST


class OFPBarrierReply(MsgBase):
    """All before the request is done."""

    cls_msg_type = ofproto.OFPT_BARRIER_REPLY


# Packets


class OFPPacketIn(MsgBase):
    """A packet that the switch sent to the controller."""

    cls_msg_type = ofproto.OFPT_PACKET_IN
    FIELDS = (
        Field("buffer_id", U32, None),
        Field("total_len", U16, None),
        Field("in_port", U16, None),
        Field("reason", U8, None),
        pad(1),
        Field("data", REST, None),
    )

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        # What is longer than the packet is padding.
        values["data"] = values["data"][: values["total_len"]]
        return super().made(values)


class _PacketOutHead(Struct):
    FIELDS = (Field("buffer_id", U32), Field("in_port", U16), Field("_actions_len", U16))


_PACKET_OUT = _PacketOutHead.LAYOUT
_PACKET_OUT_ACTIONS = Layout((Field("actions", ACTIONS),))


class OFPPacketOut(MsgBase):
    """A packet that the switch shall send."""

    cls_msg_type = ofproto.OFPT_PACKET_OUT

    def __init__(
        self,
        datapath: Any,
        buffer_id: int | None = None,
        in_port: int | None = None,
        actions: list[OFPAction] | None = None,
        data: Any = None,
    ):
        self._begin(datapath)
        self.buffer_id = buffer_id
        self.in_port = in_port
        self._actions_len = 0
        self.actions = actions
        self.data = data

    def encode(self, out: bytearray) -> None:
        actions = bytearray()
        _PACKET_OUT_ACTIONS.encode(self, actions)
        self._actions_len = len(actions)
        _PACKET_OUT.encode(self, out)
        out += actions
        if self.data is not None:
            out += ofproto_parser.data_bytes(self.data)

    @classmethod
    def parser(cls, datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:  # type: ignore[override]
        values, offset = _PACKET_OUT.decode(buf, 8, min(msg_len, len(buf)))
        end = offset + values["_actions_len"]
        if end > len(buf):
            raise Truncated("the actions are longer than the message")
        actions, _ = ACTIONS.decode(buf, offset, end)
        made = cls(datapath, values["buffer_id"], values["in_port"], actions, buf[end:])
        made.set_headers(version, msg_type, msg_len, xid)
        made.set_buf(buf)
        return made


# Entries


class OFPFlowMod(MsgBase):
    """Adds, changes or deletes flow entries."""

    cls_msg_type = ofproto.OFPT_FLOW_MOD
    FIELDS = (
        Field("match", MATCH, None),
        Field("cookie", U64, 0),
        Field("command", U16, ofproto.OFPFC_ADD),
        Field("idle_timeout", U16, 0),
        Field("hard_timeout", U16, 0),
        Field("priority", U16, ofproto.OFP_DEFAULT_PRIORITY),
        Field("buffer_id", U32, ofproto.OFP_NO_BUFFER),
        Field("out_port", U16, ofproto.OFPP_NONE),
        Field("flags", U16, 0),
        Field("actions", ACTIONS, None),
    )

    def __init__(
        self,
        datapath: Any,
        match: OFPMatch | None = None,
        cookie: int = 0,
        command: int = ofproto.OFPFC_ADD,
        idle_timeout: int = 0,
        hard_timeout: int = 0,
        priority: int = ofproto.OFP_DEFAULT_PRIORITY,
        buffer_id: int = ofproto.OFP_NO_BUFFER,
        out_port: int = ofproto.OFPP_NONE,
        flags: int = 0,
        actions: list[OFPAction] | None = None,
    ):
        self._begin(datapath)
        self.match = OFPMatch() if match is None else match
        self.cookie = cookie
        self.command = command
        self.idle_timeout = idle_timeout
        self.hard_timeout = hard_timeout
        self.priority = priority
        self.buffer_id = buffer_id
        self.out_port = out_port
        self.flags = flags
        self.actions = actions or []


class OFPFlowRemoved(MsgBase):
    """An entry was removed."""

    cls_msg_type = ofproto.OFPT_FLOW_REMOVED
    FIELDS = (
        Field("match", MATCH, None),
        Field("cookie", U64, None),
        Field("priority", U16, None),
        Field("reason", U8, None),
        pad(1),
        Field("duration_sec", U32, None),
        Field("duration_nsec", U32, None),
        Field("idle_timeout", U16, None),
        pad(2),
        Field("packet_count", U64, None),
        Field("byte_count", U64, None),
    )


# Ports and queues


class OFPPortStatus(MsgBase):
    """A port was added, deleted or changed."""

    cls_msg_type = ofproto.OFPT_PORT_STATUS
    FIELDS = (Field("reason", U8, None), pad(7), Field("desc", Sub(OFPPhyPort), None))


class OFPPortMod(MsgBase):
    """Configures a port."""

    cls_msg_type = ofproto.OFPT_PORT_MOD
    FIELDS = (
        Field("port_no", U16, 0),
        Field("hw_addr", MAC, "00:00:00:00:00:00"),
        Field("config", U32, 0),
        Field("mask", U32, 0),
        Field("advertise", U32, 0),
        pad(4),
    )


class OFPQueueGetConfigRequest(MsgBase):
    """Asks for a port's queues."""

    cls_msg_type = ofproto.OFPT_QUEUE_GET_CONFIG_REQUEST
    FIELDS = (Field("port", U16), pad(2))


# Statistics


class OFPStatsRequest(ofproto_parser.RequestBase):
    """A request for statistics."""

    VERSION = ofproto.OFP_VERSION
    cls_msg_type = ofproto.OFPT_STATS_REQUEST

    def __init__(self, datapath: Any, flags: int = 0):
        self._begin(datapath)
        self.type = self.cls_stats_type
        self.flags = flags

    @classmethod
    def from_jsondict(cls, dict_: dict[str, Any], *args: Any, **additional_args: Any) -> Any:
        """Returns the request of JSON. Its class has the type."""
        given = {name: value for name, value in dict_.items() if name != "type"} if isinstance(dict_, dict) else dict_
        return super().from_jsondict(given, *args, **additional_args)


class OFPStatsReply(ofproto_parser.ReplyBase):
    """A part of a reply."""

    VERSION = ofproto.OFP_VERSION
    cls_msg_type = ofproto.OFPT_STATS_REPLY


class OFPDescStatsRequest(OFPStatsRequest):
    """Asks for the description of the switch."""

    cls_stats_type = ofproto.OFPST_DESC


OFPDescStats = tuple_struct(
    "OFPDescStats",
    (
        *(Field(name, TextKind(ofproto.DESC_STR_LEN)) for name in ("mfr_desc", "hw_desc", "sw_desc")),
        Field("serial_num", TextKind(ofproto.SERIAL_NUM_LEN)),
        Field("dp_desc", TextKind(ofproto.DESC_STR_LEN)),
    ),
)


class OFPDescStatsReply(OFPStatsReply):
    """The description of the switch."""

    cls_stats_type = ofproto.OFPST_DESC
    BODY, IS_SINGLE = OFPDescStats, True


class OFPFlowStatsRequestBase(OFPStatsRequest):
    """Asks for flow entries."""

    FIELDS = (Field("match", MATCH), Field("table_id", U8), pad(1), Field("out_port", U16))

    def __init__(self, datapath: Any, flags: int, match: OFPMatch, table_id: int, out_port: int):
        super().__init__(datapath, flags)
        self.match = match
        self.table_id = table_id
        self.out_port = out_port


class OFPFlowStatsRequest(OFPFlowStatsRequestBase):
    """Asks for flow entries."""

    cls_stats_type = ofproto.OFPST_FLOW


class OFPAggregateStatsRequest(OFPFlowStatsRequestBase):
    """Asks for the counters of all flow entries together."""

    cls_stats_type = ofproto.OFPST_AGGREGATE


class OFPFlowStats(Struct):
    """A flow entry."""

    FIELDS = (
        Field("length", U16, None),
        Field("table_id", U8, None),
        pad(1),
        Field("match", MATCH, None),
        Field("duration_sec", U32, None),
        Field("duration_nsec", U32, None),
        Field("priority", U16, None),
        Field("idle_timeout", U16, None),
        Field("hard_timeout", U16, None),
        pad(6),
        Field("cookie", U64, None),
        Field("packet_count", U64, None),
        Field("byte_count", U64, None),
        Field("actions", ACTIONS, None),
    )

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        return super().decode(data, offset, after)[0], after


class OFPFlowStatsReply(OFPStatsReply):
    """Flow entries."""

    cls_stats_type = ofproto.OFPST_FLOW
    BODY = OFPFlowStats


OFPAggregateStats = tuple_struct(
    "OFPAggregateStats",
    (Field("packet_count", U64), Field("byte_count", U64), Field("flow_count", U32), pad(4)),
)


class OFPAggregateStatsReply(OFPStatsReply):
    """The counters of all flow entries together."""

    cls_stats_type = ofproto.OFPST_AGGREGATE
    BODY = OFPAggregateStats


class OFPTableStatsRequest(OFPStatsRequest):
    """Asks for the counters of tables."""

    cls_stats_type = ofproto.OFPST_TABLE


OFPTableStats = tuple_struct(
    "OFPTableStats",
    (
        Field("table_id", U8),
        pad(3),
        Field("name", TextKind(ofproto.OFP_MAX_TABLE_NAME_LEN)),
        Field("wildcards", U32),
        Field("max_entries", U32),
        Field("active_count", U32),
        Field("lookup_count", U64),
        Field("matched_count", U64),
    ),
)


class OFPTableStatsReply(OFPStatsReply):
    """The counters of tables."""

    cls_stats_type = ofproto.OFPST_TABLE
    BODY = OFPTableStats


class OFPPortStatsRequest(OFPStatsRequest):
    """Asks for the counters of ports."""

    cls_stats_type = ofproto.OFPST_PORT
    FIELDS = (Field("port_no", U16), pad(6))

    def __init__(self, datapath: Any, flags: int, port_no: int):
        super().__init__(datapath, flags)
        self.port_no = port_no


OFPPortStats = tuple_struct(
    "OFPPortStats",
    (
        Field("port_no", U16),
        pad(6),
        *(
            Field(name, U64)
            for name in (
                "rx_packets tx_packets rx_bytes tx_bytes rx_dropped tx_dropped rx_errors tx_errors rx_frame_err"
                " rx_over_err rx_crc_err collisions"
            ).split()
        ),
    ),
)


class OFPPortStatsReply(OFPStatsReply):
    """The counters of ports."""

    cls_stats_type = ofproto.OFPST_PORT
    BODY = OFPPortStats


class OFPQueueStatsRequest(OFPStatsRequest):
    """Asks for the counters of queues."""

    cls_stats_type = ofproto.OFPST_QUEUE
    FIELDS = (Field("port_no", U16), pad(2), Field("queue_id", U32))

    def __init__(self, datapath: Any, flags: int, port_no: int, queue_id: int):
        super().__init__(datapath, flags)
        self.port_no = port_no
        self.queue_id = queue_id


OFPQueueStats = tuple_struct(
    "OFPQueueStats",
    (
        Field("port_no", U16),
        pad(2),
        Field("queue_id", U32),
        Field("tx_bytes", U64),
        Field("tx_packets", U64),
        Field("tx_errors", U64),
    ),
)


class OFPQueueStatsReply(OFPStatsReply):
    """The counters of queues."""

    cls_stats_type = ofproto.OFPST_QUEUE
    BODY = OFPQueueStats


StringifyMixin = Stringify
