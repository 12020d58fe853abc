"""The messages of OpenFlow 1.3."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_3 as ofproto
from urtica_ryu import nicira_actions, oxm
from urtica_ryu.oxm import OFPMatch
from urtica_ryu.structs import (
    MAC,
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
    native_fields,
    pad,
    set_length,
    speed_up,
    tuple_struct,
)
from urtica_ryu.table_features import (
    OFPActionId,
    OFPInstructionId,
    OFPOxmId,
    OFPTableFeatureProp,
    OFPTableFeaturePropActions,
    OFPTableFeaturePropExperimenter,
    OFPTableFeaturePropInstructions,
    OFPTableFeaturePropNextTables,
    OFPTableFeaturePropOxm,
)

__all__ = [
    "MsgBase",
    "OFPActionId",
    "OFPInstructionId",
    "OFPMatch",
    "OFPOxmId",
    "OFPTableFeatureProp",
    "OFPTableFeaturePropActions",
    "OFPTableFeaturePropExperimenter",
    "OFPTableFeaturePropInstructions",
    "OFPTableFeaturePropNextTables",
    "OFPTableFeaturePropOxm",
]


class MsgBase(ofproto_parser.MsgBase):
    """A message of OpenFlow 1.3."""

    VERSION = ofproto.OFP_VERSION


MATCH = Sub(OFPMatch)
MATCH.native = ("match", None)


# Actions


class OFPAction(Struct):
    """An action: type, length, fields, padding to 8 bytes."""

    cls_action_type: ClassVar[Any] = None
    IGNORED = ("type_", "len_")
    KINDS: ClassVar[dict[int, type[OFPAction]]] = {}

    #: The length of actions whose fields have fixed sizes.
    _LENGTH: ClassVar[int] = 4

    type: int
    len: int | None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "FIELDS" in vars(cls):
            cls._LENGTH = cls._fixed_length()
        if "cls_action_type" in vars(cls):
            cls.KINDS[cls.cls_action_type] = cls

    def _begin(self) -> None:
        self.type = self.cls_action_type
        self.len = self._LENGTH

    @classmethod
    def _fixed_length(cls) -> int:
        sizes = [part.struct.size for part in cls.LAYOUT.parts if hasattr(part, "struct")]
        return -(-(4 + sum(sizes)) // 8) * 8

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
        made.type, made.len = kind, after - offset
        return made, after

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        return cls.made(cls.LAYOUT.decode(data, offset, end)[0])


ACTIONS = Many(OFPAction.decode, "actions", OFPAction.KINDS)


class OFPActionOutput(OFPAction):
    """Sends the packet out of a port."""

    cls_action_type = ofproto.OFPAT_OUTPUT
    FIELDS = (Field("port", U32), Field("max_len", U16, ofproto.OFPCML_MAX), pad(6))


class OFPActionGroup(OFPAction):
    """Sends the packet to a group."""

    cls_action_type = ofproto.OFPAT_GROUP
    FIELDS = (Field("group_id", U32, 0),)


class OFPActionSetQueue(OFPAction):
    """Sets the queue."""

    cls_action_type = ofproto.OFPAT_SET_QUEUE
    FIELDS = (Field("queue_id", U32),)


class OFPActionSetMplsTtl(OFPAction):
    """Sets the MPLS TTL."""

    cls_action_type = ofproto.OFPAT_SET_MPLS_TTL
    FIELDS = (Field("mpls_ttl", U8), pad(3))


class OFPActionDecMplsTtl(OFPAction):
    """Decrements the MPLS TTL."""

    cls_action_type = ofproto.OFPAT_DEC_MPLS_TTL
    FIELDS = (pad(4),)


class OFPActionSetNwTtl(OFPAction):
    """Sets the IP TTL."""

    cls_action_type = ofproto.OFPAT_SET_NW_TTL
    FIELDS = (Field("nw_ttl", U8), pad(3))


class OFPActionDecNwTtl(OFPAction):
    """Decrements the IP TTL."""

    cls_action_type = ofproto.OFPAT_DEC_NW_TTL
    FIELDS = (pad(4),)


class OFPActionCopyTtlOut(OFPAction):
    """Copies the TTL outwards."""

    cls_action_type = ofproto.OFPAT_COPY_TTL_OUT
    FIELDS = (pad(4),)


class OFPActionCopyTtlIn(OFPAction):
    """Copies the TTL inwards."""

    cls_action_type = ofproto.OFPAT_COPY_TTL_IN
    FIELDS = (pad(4),)


class OFPActionPushVlan(OFPAction):
    """Adds a VLAN tag."""

    cls_action_type = ofproto.OFPAT_PUSH_VLAN
    FIELDS = (Field("ethertype", U16, 0x8100), pad(2))


class OFPActionPushMpls(OFPAction):
    """Adds an MPLS label."""

    cls_action_type = ofproto.OFPAT_PUSH_MPLS
    FIELDS = (Field("ethertype", U16, 0x8847), pad(2))


class OFPActionPushPbb(OFPAction):
    """Adds a PBB header."""

    cls_action_type = ofproto.OFPAT_PUSH_PBB
    FIELDS = (Field("ethertype", U16), pad(2))


class OFPActionPopVlan(OFPAction):
    """Removes the VLAN tag."""

    cls_action_type = ofproto.OFPAT_POP_VLAN
    FIELDS = (pad(4),)


class OFPActionPopPbb(OFPAction):
    """Removes the PBB header."""

    cls_action_type = ofproto.OFPAT_POP_PBB
    FIELDS = (pad(4),)


class OFPActionPopMpls(OFPAction):
    """Removes the MPLS label."""

    cls_action_type = ofproto.OFPAT_POP_MPLS
    FIELDS = (Field("ethertype", U16, 0x0800), pad(2))


class OFPActionExperimenter(OFPAction):
    """An action of an experimenter, as bytes."""

    cls_action_type = ofproto.OFPAT_EXPERIMENTER
    FIELDS = (Field("experimenter", U32), Field("data", REST, None))
    #: Nicira's actions, by their numbers.
    SUBTYPES: ClassVar[dict[int, Any]] = {}

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        return nicira_actions.decode(OFPActionExperimenter, data, offset, end) or super()._decode_rest(data, offset, end)


OFPActionExperimenterUnknown = OFPActionExperimenter
globals().update(nicira_actions.actions_of(OFPActionExperimenter, "experimenter", ACTIONS))


class OFPActionSetField(OFPAction):
    """Sets a field: `OFPActionSetField(eth_dst="00:00:00:00:00:01")`."""

    cls_action_type = ofproto.OFPAT_SET_FIELD

    def __init__(self, field: Any = None, **fields: Any):
        if len(fields) != 1:
            raise TypeError(f"OFPActionSetField has {len(fields)} fields: expected one, such as eth_dst='00:00:00:00:00:01'")
        self.type = self.cls_action_type
        [(self.key, value)] = fields.items()
        self.value = oxm.normalized(self.key, value)
        known = oxm.field_named(self.key)
        self.len = -(-(4 + len(known.header(0)) + known.size) // 8) * 8

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!HH", self.type, 0)
        oxm.encode(self.key, self.value, out)
        self.len = set_length(out, start, align=8)

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        name, value, _ = oxm.decode(data, offset, end)
        return cls(**{name: value})

    def _text(self) -> str:
        return f"OFPActionSetField({self.key}={self.value!r})"

    def to_jsondict(self, encode_string: Any = None) -> dict[str, Any]:
        field = oxm.tlv(self.key, self.value)
        return {"OFPActionSetField": {"field": field, "len": self.len, "type": self.type}}

    @classmethod
    def from_jsondict(cls, dict_: dict[str, Any], decode_string: Any = None, **additional_args: Any) -> OFPActionSetField:
        """Returns the action of JSON; raises ValueError."""
        if not isinstance(dict_, dict) or "field" not in dict_:
            raise ValueError(f"OFPActionSetField is {dict_!r}: expected field")
        name, value = oxm.untlv(dict_["field"])
        return cls(**{name: value})


# Instructions


class OFPInstruction(Struct):
    """An instruction: type, length, fields."""

    KINDS: ClassVar[dict[int, type[OFPInstruction]]] = {}
    TYPES: ClassVar[tuple[int, ...]] = ()
    IGNORED = ("type_", "len_")

    type: int
    len: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for kind in cls.TYPES:
            cls.KINDS[kind] = cls

    def _begin(self) -> None:
        self.type = self.TYPES[0]
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
            raise ValueError(f"instructions of type {kind} are not supported")
        made = found.made(found.LAYOUT.decode(data, offset + 4, after)[0])
        made.type, made.len = kind, after - offset
        return made, after


class OFPInstructionGotoTable(OFPInstruction):
    """Continues in another table."""

    TYPES = (ofproto.OFPIT_GOTO_TABLE,)
    FIELDS = (Field("table_id", U8), pad(3))


class OFPInstructionWriteMetadata(OFPInstruction):
    """Sets metadata."""

    TYPES = (ofproto.OFPIT_WRITE_METADATA,)
    FIELDS = (pad(4), Field("metadata", U64), Field("metadata_mask", U64))


class OFPInstructionMeter(OFPInstruction):
    """Sends the packet through a meter."""

    TYPES = (ofproto.OFPIT_METER,)
    FIELDS = (Field("meter_id", U32, 1),)


class OFPInstructionActions(OFPInstruction):
    """Writes, applies or clears actions."""

    TYPES = (ofproto.OFPIT_WRITE_ACTIONS, ofproto.OFPIT_APPLY_ACTIONS, ofproto.OFPIT_CLEAR_ACTIONS)
    FIELDS = (pad(4), Field("actions", ACTIONS, None))

    def __init__(self, type_: int, actions: list[OFPAction] | None = None, len_: int | None = None):
        self.type = type_
        self.actions = actions or []

    def _begin(self) -> None:
        # Shown once it is known.
        pass


INSTRUCTIONS = Many(OFPInstruction.decode, "instructions", OFPInstruction.KINDS)


# Hello, echo, errors, configuration


class OFPHelloElemVersionBitmap(Struct):
    """The versions that the sender speaks."""

    def __init__(self, versions: list[int], type_: int | None = None, length: int | None = None):
        self.type = ofproto.OFPHET_VERSIONBITMAP
        self.length = length
        self.versions = versions

    def encode(self, out: bytearray) -> None:
        words = [0] * (max(self.versions, default=0) // 32 + 1)
        for version in self.versions:
            words[version // 32] |= 1 << version % 32
        start = len(out)
        out += struct.pack(f"!HH{len(words)}I", self.type, 0, *words)
        self.length = set_length(out, start)
        out += bytes(-self.length % 8)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        (kind,) = struct.unpack_from("!H", data, offset) if offset + 4 <= end else (None,)
        after = framed(data, offset, end)
        padded = min(end, after + -(after - offset) % 8)
        if kind != ofproto.OFPHET_VERSIONBITMAP:
            return None, padded
        words = struct.unpack_from(f"!{(after - offset - 4) // 4}I", data, offset + 4)
        versions = [32 * at + bit for at, word in enumerate(words) for bit in range(32) if word >> bit & 1]
        return cls(versions, length=after - offset), padded


class OFPHello(MsgBase):
    """Says which versions the sender speaks."""

    cls_msg_type = ofproto.OFPT_HELLO
    FIELDS = (Field("elements", Many(OFPHelloElemVersionBitmap.decode, "elements"), None),)

    def __init__(self, datapath: Any, elements: Any = None):
        self._begin(datapath)
        self.elements = elements or []

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        values["elements"] = [element for element in values["elements"] if element is not None]
        return super().made(values)


_EXPERIMENTER_ERROR = Layout((Field("type", U16), Field("exp_type", U16), Field("experimenter", U32), Field("data", REST)))


class OFPErrorMsg(MsgBase):
    """Refuses a message, of which it has the first bytes."""

    cls_msg_type = ofproto.OFPT_ERROR
    FIELDS = (Field("type", U16, None), Field("code", U16, None), Field("data", REST, None))

    def __init__(
        self,
        datapath: Any,
        type_: int | None = None,
        code: int | None = None,
        data: Any = None,
        experimenter: int | None = None,
        exp_type: int | None = None,
    ):
        self._begin(datapath)
        self.type = type_
        self.code = code
        self.data = data
        if experimenter is not None:
            self.experimenter = experimenter
            self.exp_type = exp_type

    def encode(self, out: bytearray) -> None:
        layout = _EXPERIMENTER_ERROR if hasattr(self, "experimenter") else self.LAYOUT
        layout.encode(self, out)

    @classmethod
    def parser(cls, datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:  # type: ignore[override]
        made = super().parser(datapath, version, msg_type, msg_len, xid, buf)
        if made.type == ofproto.OFPET_EXPERIMENTER and len(made.data) >= 4:
            made.exp_type, made.code = made.code, None
            (made.experimenter,), made.data = struct.unpack_from("!I", made.data), made.data[4:]
        return made


class OFPEchoRequest(MsgBase):
    """Asks whether the other side is there."""

    cls_msg_type = ofproto.OFPT_ECHO_REQUEST
    FIELDS = (Field("data", REST, None),)


class OFPEchoReply(MsgBase):
    """Answers an echo request."""

    cls_msg_type = ofproto.OFPT_ECHO_REPLY
    FIELDS = (Field("data", REST, None),)


class OFPExperimenter(MsgBase):
    """A message of an experimenter."""

    cls_msg_type = ofproto.OFPT_EXPERIMENTER
    FIELDS = (Field("experimenter", U32, None), Field("exp_type", U32, None), Field("data", REST, None))


class OFPFeaturesRequest(MsgBase):
    """Asks for the features."""

    cls_msg_type = ofproto.OFPT_FEATURES_REQUEST


class OFPSwitchFeatures(MsgBase):
    """The features of a switch."""

    cls_msg_type = ofproto.OFPT_FEATURES_REPLY
    FIELDS = (
        Field("datapath_id", U64, None),
        Field("n_buffers", U32, None),
        Field("n_tables", U8, None),
        Field("auxiliary_id", U8, None),
        pad(2),
        Field("capabilities", U32, None),
        pad(4),
    )


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
    FIELDS = (Field("flags", U16, 0), Field("miss_send_len", U16, 0))


class OFPBarrierRequest(MsgBase):
    """Asks the switch to finish what it was sent."""

    cls_msg_type = ofproto.OFPT_BARRIER_REQUEST


class OFPBarrierReply(MsgBase):
    """All before the request is done."""

    cls_msg_type = ofproto.OFPT_BARRIER_REPLY


_ROLE = (Field("role", U32, None), pad(4), Field("generation_id", U64, None))


class OFPRoleRequest(MsgBase):
    """Changes the controller's role."""

    cls_msg_type = ofproto.OFPT_ROLE_REQUEST
    FIELDS = _ROLE


class OFPRoleReply(MsgBase):
    """The controller's role."""

    cls_msg_type = ofproto.OFPT_ROLE_REPLY
    FIELDS = _ROLE


class _PairKind(Many):
    """Two numbers, for primary and secondary controllers."""

    def __init__(self) -> None:
        super().__init__(self._one, "2 numbers")

    @staticmethod
    def _one(data: bytes, offset: int, end: int) -> tuple[Any, int]:
        raise NotImplementedError

    def encode(self, value: Any, out: bytearray) -> None:
        out += struct.pack("!II", *value)

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[Any], int]:
        if offset + 8 > end:
            raise Truncated("the masks end early")
        return list(struct.unpack_from("!II", data, offset)), offset + 8


_MASKS = ("packet_in_mask", "port_status_mask", "flow_removed_mask")


class OFPGetAsyncRequest(MsgBase):
    """Asks which messages the switch sends without a request."""

    cls_msg_type = ofproto.OFPT_GET_ASYNC_REQUEST


class OFPGetAsyncReply(MsgBase):
    """Which messages the switch sends without a request."""

    cls_msg_type = ofproto.OFPT_GET_ASYNC_REPLY
    FIELDS = tuple(Field(name, _PairKind(), None) for name in _MASKS)


class OFPSetAsync(MsgBase):
    """Sets which messages the switch sends without a request."""

    cls_msg_type = ofproto.OFPT_SET_ASYNC
    FIELDS = tuple(Field(name, _PairKind()) for name in _MASKS)


# Packets


class OFPPacketIn(MsgBase):
    """A packet that the switch sent to the controller."""

    cls_msg_type = ofproto.OFPT_PACKET_IN
    FIELDS = (
        Field("buffer_id", U32, None),
        Field("total_len", U16, None),
        Field("reason", U8, None),
        Field("table_id", U8, None),
        Field("cookie", U64, None),
        Field("match", MATCH, None),
        pad(2),
        Field("data", REST, None),
    )

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        # What is longer than the packet is padding.
        values["data"] = values["data"][: values["total_len"]]
        return super().made(values)


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
        actions_len: int | None = None,
    ):
        self._begin(datapath)
        self.buffer_id = buffer_id
        self.in_port = in_port
        self.actions_len = 0
        self.actions = actions
        self.data = data

    def encode(self, out: bytearray) -> None:
        actions = bytearray()
        _PACKET_OUT_ACTIONS.encode(self, actions)
        self.actions_len = len(actions)
        _PACKET_OUT.encode(self, out)
        out += actions
        if self.data is not None:
            out += ofproto_parser.data_bytes(self.data)

    @classmethod
    def parser(cls, datapath: Any, version: int, msg_type: int, msg_len: int, xid: int, buf: bytes) -> Any:  # type: ignore[override]
        values, offset = _PACKET_OUT.decode(buf, 8, min(msg_len, len(buf)))
        end = offset + values["actions_len"]
        if end > len(buf):
            raise Truncated("the actions are longer than the message")
        actions, _ = ACTIONS.decode(buf, offset, end)
        made = cls(datapath, values["buffer_id"], values["in_port"], actions, buf[end:])
        made.actions_len = values["actions_len"]
        made.set_headers(version, msg_type, msg_len, xid)
        made.set_buf(buf)
        return made


class _PacketOutHead(Struct):
    FIELDS = (Field("buffer_id", U32), Field("in_port", U32), Field("actions_len", U16), pad(6))


_PACKET_OUT = _PacketOutHead.LAYOUT
_PACKET_OUT_ACTIONS = Layout((Field("actions", ACTIONS),))


# Entries


class OFPFlowMod(MsgBase):
    """Adds, changes or deletes flow entries."""

    cls_msg_type = ofproto.OFPT_FLOW_MOD
    FIELDS = (
        Field("cookie", U64, 0),
        Field("cookie_mask", U64, 0),
        Field("table_id", U8, 0),
        Field("command", U8, ofproto.OFPFC_ADD),
        Field("idle_timeout", U16, 0),
        Field("hard_timeout", U16, 0),
        Field("priority", U16, ofproto.OFP_DEFAULT_PRIORITY),
        Field("buffer_id", U32, ofproto.OFP_NO_BUFFER),
        Field("out_port", U32, 0),
        Field("out_group", U32, 0),
        Field("flags", U16, 0),
        pad(2),
        Field("match", MATCH, None),
        Field("instructions", INSTRUCTIONS, None),
    )

    def __init__(
        self,
        datapath: Any,
        cookie: int = 0,
        cookie_mask: int = 0,
        table_id: int = 0,
        command: int = ofproto.OFPFC_ADD,
        idle_timeout: int = 0,
        hard_timeout: int = 0,
        priority: int = ofproto.OFP_DEFAULT_PRIORITY,
        buffer_id: int = ofproto.OFP_NO_BUFFER,
        out_port: int = 0,
        out_group: int = 0,
        flags: int = 0,
        match: OFPMatch | None = None,
        instructions: list[OFPInstruction] | None = None,
    ):
        self._begin(datapath)
        self.cookie = cookie
        self.cookie_mask = cookie_mask
        self.table_id = table_id
        self.command = command
        self.idle_timeout = idle_timeout
        self.hard_timeout = hard_timeout
        self.priority = priority
        self.buffer_id = buffer_id
        self.out_port = out_port
        self.out_group = out_group
        self.flags = flags
        self.match = OFPMatch() if match is None else match
        self.instructions = instructions or []


class OFPFlowRemoved(MsgBase):
    """An entry was removed."""

    cls_msg_type = ofproto.OFPT_FLOW_REMOVED
    FIELDS = (
        Field("cookie", U64, None),
        Field("priority", U16, None),
        Field("reason", U8, None),
        Field("table_id", U8, None),
        Field("duration_sec", U32, None),
        Field("duration_nsec", U32, None),
        Field("idle_timeout", U16, None),
        Field("hard_timeout", U16, None),
        Field("packet_count", U64, None),
        Field("byte_count", U64, None),
        Field("match", MATCH, None),
    )


class OFPBucket(Struct):
    """A bucket of a group."""

    FIELDS = (
        Field("weight", U16, 0),
        Field("watch_port", U32, ofproto.OFPP_ANY),
        Field("watch_group", U32, ofproto.OFPG_ANY),
        pad(4),
        Field("actions", ACTIONS, None),
    )
    IGNORED = ("len_",)

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += bytes(2)
        self.LAYOUT.encode(self, out)
        self.len = set_length(out, start, at=0, align=8)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        made = cls.made(cls.LAYOUT.decode(data, offset + 2, after)[0])
        made.len = after - offset
        return made, after


BUCKETS = Many(OFPBucket.decode, "buckets")


class OFPGroupMod(MsgBase):
    """Adds, changes or deletes a group."""

    cls_msg_type = ofproto.OFPT_GROUP_MOD
    FIELDS = (
        Field("command", U16, ofproto.OFPGC_ADD),
        Field("type", U8, ofproto.OFPGT_ALL),
        pad(1),
        Field("group_id", U32, 0),
        Field("buckets", BUCKETS, None),
    )

    def __init__(self, datapath: Any, command: int = 0, type_: int = 0, group_id: int = 0, buckets: Any = None):
        self._begin(datapath)
        self.command = command
        self.type = type_
        self.group_id = group_id
        self.buckets = buckets or []


class OFPMeterBand(Struct):
    """A band of a meter."""

    KINDS: ClassVar[dict[int, type[OFPMeterBand]]] = {}
    cls_meter_band_type: ClassVar[Any] = None
    IGNORED = ("type_", "len_")

    type: int
    len: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.cls_meter_band_type is not None:
            cls.KINDS[cls.cls_meter_band_type] = cls

    def _begin(self) -> None:
        self.type, self.len = self.cls_meter_band_type, 16

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!HH", self.type, 0)
        self.LAYOUT.encode(self, out)
        self.len = set_length(out, start)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end)
        (kind,) = struct.unpack_from("!H", data, offset)
        found = cls.KINDS.get(kind)
        if found is None:
            raise ValueError(f"meter bands of type {kind} are not supported")
        return found.made(found.LAYOUT.decode(data, offset + 4, after)[0]), after


OFPMeterBandHeader = OFPMeterBand
BANDS = Many(OFPMeterBand.decode, "meter bands")


class OFPMeterBandDrop(OFPMeterBand):
    """Drops what is above the rate."""

    cls_meter_band_type = ofproto.OFPMBT_DROP
    FIELDS = (Field("rate", U32, 0), Field("burst_size", U32, 0), pad(4))


class OFPMeterBandDscpRemark(OFPMeterBand):
    """Marks what is above the rate."""

    cls_meter_band_type = ofproto.OFPMBT_DSCP_REMARK
    FIELDS = (Field("rate", U32, 0), Field("burst_size", U32, 0), Field("prec_level", U8, 0), pad(3))


class OFPMeterBandExperimenter(OFPMeterBand):
    """A band of an experimenter."""

    cls_meter_band_type = ofproto.OFPMBT_EXPERIMENTER
    FIELDS = (Field("rate", U32, 0), Field("burst_size", U32, 0), Field("experimenter", U32, None))


class OFPMeterMod(MsgBase):
    """Adds, changes or deletes a meter."""

    cls_msg_type = ofproto.OFPT_METER_MOD
    FIELDS = (
        Field("command", U16, ofproto.OFPMC_ADD),
        Field("flags", U16, ofproto.OFPMF_KBPS),
        Field("meter_id", U32, 1),
        Field("bands", BANDS, None),
    )

    def __init__(self, datapath: Any, command: int = 0, flags: int = 1, meter_id: int = 1, bands: Any = None):
        self._begin(datapath)
        self.command = command
        self.flags = flags
        self.meter_id = meter_id
        self.bands = bands or []


class OFPTableMod(MsgBase):
    """Configures a table."""

    cls_msg_type = ofproto.OFPT_TABLE_MOD
    FIELDS = (Field("table_id", U8), pad(3), Field("config", U32))


# Ports

OFPPort = tuple_struct(
    "OFPPort",
    (
        Field("port_no", U32),
        pad(4),
        Field("hw_addr", MAC),
        pad(2),
        Field("name", TextKind(ofproto.OFP_MAX_PORT_NAME_LEN)),
        Field("config", U32),
        Field("state", U32),
        Field("curr", U32),
        Field("advertised", U32),
        Field("supported", U32),
        Field("peer", U32),
        Field("curr_speed", U32),
        Field("max_speed", U32),
    ),
)


class OFPPortStatus(MsgBase):
    """A port was added, deleted or changed."""

    cls_msg_type = ofproto.OFPT_PORT_STATUS
    FIELDS = (Field("reason", U8, None), pad(7), Field("desc", Sub(OFPPort), None))


class OFPPortMod(MsgBase):
    """Configures a port."""

    cls_msg_type = ofproto.OFPT_PORT_MOD
    FIELDS = (
        Field("port_no", U32, 0),
        pad(4),
        Field("hw_addr", MAC, "00:00:00:00:00:00"),
        pad(2),
        Field("config", U32, 0),
        Field("mask", U32, 0),
        Field("advertise", U32, 0),
        pad(4),
    )


# Queues


class OFPQueueProp(Struct):
    """A property of a queue."""

    KINDS: ClassVar[dict[int, type[OFPQueueProp]]] = {}
    cls_prop_type: ClassVar[Any] = None

    property: int
    len: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.KINDS[cls.cls_prop_type] = cls

    def __init__(self, rate: int, property_: int | None = None, len_: int | None = None):
        self.property = self.cls_prop_type
        self.len = 16
        self.rate = rate

    def encode(self, out: bytearray) -> None:
        out += struct.pack("!HH4xH6x", self.property, 16, self.rate)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, least=16)
        (kind,) = struct.unpack_from("!H", data, offset)
        found = cls.KINDS.get(kind)
        if found is None:
            raise ValueError(f"queue properties of type {kind} are not supported")
        return found._decode_rest(data, offset + 8, after), after

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        return cls(*struct.unpack_from("!H", data, offset))


class OFPQueuePropMinRate(OFPQueueProp):
    """The rate that a queue has at least, in 0.1 %."""

    cls_prop_type = ofproto.OFPQT_MIN_RATE


class OFPQueuePropMaxRate(OFPQueueProp):
    """The rate that a queue has at most, in 0.1 %."""

    cls_prop_type = ofproto.OFPQT_MAX_RATE


class OFPQueuePropExperimenter(OFPQueueProp):
    """A property of an experimenter, whose data is a list of numbers."""

    cls_prop_type = 0xFFFF

    def __init__(
        self, experimenter: int, data: list[int] | None = None, property_: int | None = None, len_: int | None = None
    ):
        self.property = self.cls_prop_type
        self.experimenter = experimenter
        self.data = list(data or [])
        self.len = 16 + len(self.data)

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!HH4xI4x", self.property, 0, self.experimenter) + bytes(self.data)
        self.len = set_length(out, start)

    @classmethod
    def _decode_rest(cls, data: bytes, offset: int, end: int) -> Any:
        (experimenter,) = struct.unpack_from("!I", data, offset)
        return cls(experimenter, list(data[offset + 8 : end]))


class OFPPacketQueue(Struct):
    """A queue."""

    def __init__(self, queue_id: int, port: int, properties: list[OFPQueueProp], len_: int | None = None):
        self.queue_id = queue_id
        self.port = port
        self.properties = properties
        self.len = len_

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=8, least=16)
        queue_id, port, length = struct.unpack_from("!IIH", data, offset)
        properties, _ = Many(OFPQueueProp.decode, "properties").decode(data, offset + 16, after)
        return cls(queue_id, port, properties, length), after


class OFPQueueGetConfigRequest(MsgBase):
    """Asks for a port's queues."""

    cls_msg_type = ofproto.OFPT_QUEUE_GET_CONFIG_REQUEST
    FIELDS = (Field("port", U32), pad(4))


class OFPQueueGetConfigReply(MsgBase):
    """A port's queues."""

    cls_msg_type = ofproto.OFPT_QUEUE_GET_CONFIG_REPLY
    FIELDS = (Field("port", U32, None), pad(4), Field("queues", Many(OFPPacketQueue.decode, "queues"), None))
    ARGUMENTS = ("queues", "port")


# Multipart


class OFPMultipartRequest(ofproto_parser.RequestBase):
    """A request for a reply in parts."""

    VERSION = ofproto.OFP_VERSION
    PAD = 4
    cls_msg_type = ofproto.OFPT_MULTIPART_REQUEST

    def __init__(self, datapath: Any, flags: int = 0, type_: int | None = None):
        self._begin(datapath)
        self.type = self.cls_stats_type
        self.flags = flags


class OFPMultipartReply(ofproto_parser.ReplyBase):
    """A part of a reply."""

    VERSION = ofproto.OFP_VERSION
    PAD = 4
    cls_msg_type = ofproto.OFPT_MULTIPART_REPLY


# The classes below have a message's type by inheritance, and are found by their own.


class OFPDescStatsRequest(OFPMultipartRequest):
    """Asks for the description of the switch."""

    cls_stats_type = ofproto.OFPMP_DESC


OFPDescStats = tuple_struct(
    "OFPDescStats",
    (
        *(Field(name, TextKind(ofproto.DESC_STR_LEN)) for name in ("mfr_desc", "hw_desc", "sw_desc")),
        Field("serial_num", TextKind(ofproto.SERIAL_NUM_LEN)),
        Field("dp_desc", TextKind(ofproto.DESC_STR_LEN)),
    ),
)


class OFPDescStatsReply(OFPMultipartReply):
    """The description of the switch."""

    cls_stats_type = ofproto.OFPMP_DESC
    BODY, IS_SINGLE = OFPDescStats, True


class OFPFlowStatsRequestBase(OFPMultipartRequest):
    """Asks for flow entries."""

    FIELDS = (
        Field("table_id", U8, ofproto.OFPTT_ALL),
        pad(3),
        Field("out_port", U32, ofproto.OFPP_ANY),
        Field("out_group", U32, ofproto.OFPG_ANY),
        pad(4),
        Field("cookie", U64, 0),
        Field("cookie_mask", U64, 0),
        Field("match", MATCH, None),
    )

    def __init__(
        self,
        datapath: Any,
        flags: int = 0,
        table_id: int = ofproto.OFPTT_ALL,
        out_port: int = ofproto.OFPP_ANY,
        out_group: int = ofproto.OFPG_ANY,
        cookie: int = 0,
        cookie_mask: int = 0,
        match: OFPMatch | None = None,
        type_: int | None = None,
    ):
        super().__init__(datapath, flags)
        self.table_id = table_id
        self.out_port = out_port
        self.out_group = out_group
        self.cookie = cookie
        self.cookie_mask = cookie_mask
        self.match = OFPMatch() if match is None else match


class OFPFlowStatsRequest(OFPFlowStatsRequestBase):
    """Asks for flow entries."""

    cls_stats_type = ofproto.OFPMP_FLOW


class OFPAggregateStatsRequest(OFPFlowStatsRequestBase):
    """Asks for the counters of all flow entries together."""

    cls_stats_type = ofproto.OFPMP_AGGREGATE


class OFPFlowStats(Struct):
    """A flow entry."""

    FIELDS = (
        Field("length", U16, None),
        Field("table_id", U8, None),
        pad(1),
        Field("duration_sec", U32, None),
        Field("duration_nsec", U32, None),
        Field("priority", U16, None),
        Field("idle_timeout", U16, None),
        Field("hard_timeout", U16, None),
        Field("flags", U16, None),
        pad(4),
        Field("cookie", U64, None),
        Field("packet_count", U64, None),
        Field("byte_count", U64, None),
        Field("match", MATCH, None),
        Field("instructions", INSTRUCTIONS, None),
    )
    ARGUMENTS = (
        "table_id",
        "duration_sec",
        "duration_nsec",
        "priority",
        "idle_timeout",
        "hard_timeout",
        "flags",
        "cookie",
        "packet_count",
        "byte_count",
        "match",
        "instructions",
        "length",
    )

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        return super().decode(data, offset, after)[0], after


class OFPFlowStatsReply(OFPMultipartReply):
    """Flow entries."""

    cls_stats_type = ofproto.OFPMP_FLOW
    BODY = OFPFlowStats


OFPAggregateStats = tuple_struct(
    "OFPAggregateStats",
    (Field("packet_count", U64), Field("byte_count", U64), Field("flow_count", U32), pad(4)),
)


class OFPAggregateStatsReply(OFPMultipartReply):
    """The counters of all flow entries together."""

    cls_stats_type = ofproto.OFPMP_AGGREGATE
    BODY, IS_SINGLE = OFPAggregateStats, True


class OFPTableStatsRequest(OFPMultipartRequest):
    """Asks for the counters of tables."""

    cls_stats_type = ofproto.OFPMP_TABLE


OFPTableStats = tuple_struct(
    "OFPTableStats",
    (
        Field("table_id", U8),
        pad(3),
        Field("active_count", U32),
        Field("lookup_count", U64),
        Field("matched_count", U64),
    ),
)


class OFPTableStatsReply(OFPMultipartReply):
    """The counters of tables."""

    cls_stats_type = ofproto.OFPMP_TABLE
    BODY = OFPTableStats


class OFPTableFeaturesStats(Struct):
    """The features of a table."""

    FIELDS = (
        Field("length", U16, None),
        Field("table_id", U8, None),
        pad(5),
        Field("name", TextKind(ofproto.OFP_MAX_TABLE_NAME_LEN), None),
        Field("metadata_match", U64, None),
        Field("metadata_write", U64, None),
        Field("config", U32, None),
        Field("max_entries", U32, None),
        Field("properties", Many(OFPTableFeatureProp.decode, "properties"), None),
    )
    ARGUMENTS = (
        "table_id",
        "name",
        "metadata_match",
        "metadata_write",
        "config",
        "max_entries",
        "properties",
        "length",
    )

    def encode(self, out: bytearray) -> None:
        start = len(out)
        self.length = 0
        super().encode(out)
        self.length = set_length(out, start, at=0)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        return super().decode(data, offset, after)[0], after


class OFPTableFeaturesStatsRequest(OFPMultipartRequest):
    """Asks for the features of tables, or with a body for others."""

    cls_stats_type = ofproto.OFPMP_TABLE_FEATURES
    FIELDS = (Field("body", Many(OFPTableFeaturesStats.decode, "features of tables")),)

    def __init__(self, datapath: Any, flags: int = 0, body: Any = None, type_: int | None = None):
        super().__init__(datapath, flags)
        self.body = body or []


class OFPTableFeaturesStatsReply(OFPMultipartReply):
    """The features of tables."""

    cls_stats_type = ofproto.OFPMP_TABLE_FEATURES
    BODY = OFPTableFeaturesStats


class OFPPortStatsRequest(OFPMultipartRequest):
    """Asks for the counters of ports."""

    cls_stats_type = ofproto.OFPMP_PORT_STATS
    FIELDS = (Field("port_no", U32), pad(4))

    def __init__(self, datapath: Any, flags: int = 0, port_no: int = ofproto.OFPP_ANY, type_: int | None = None):
        super().__init__(datapath, flags)
        self.port_no = port_no


OFPPortStats = tuple_struct(
    "OFPPortStats",
    (
        Field("port_no", U32),
        pad(4),
        *(
            Field(name, U64)
            for name in (
                "rx_packets tx_packets rx_bytes tx_bytes rx_dropped tx_dropped rx_errors tx_errors rx_frame_err"
                " rx_over_err rx_crc_err collisions"
            ).split()
        ),
        Field("duration_sec", U32),
        Field("duration_nsec", U32),
    ),
)


class OFPPortStatsReply(OFPMultipartReply):
    """The counters of ports."""

    cls_stats_type = ofproto.OFPMP_PORT_STATS
    BODY = OFPPortStats


class OFPQueueStatsRequest(OFPMultipartRequest):
    """Asks for the counters of queues."""

    cls_stats_type = ofproto.OFPMP_QUEUE
    FIELDS = (Field("port_no", U32), Field("queue_id", U32))

    def __init__(
        self,
        datapath: Any,
        flags: int = 0,
        port_no: int = ofproto.OFPP_ANY,
        queue_id: int = ofproto.OFPQ_ALL,
        type_: int | None = None,
    ):
        super().__init__(datapath, flags)
        self.port_no = port_no
        self.queue_id = queue_id


OFPQueueStats = tuple_struct(
    "OFPQueueStats",
    (
        Field("port_no", U32),
        Field("queue_id", U32),
        Field("tx_bytes", U64),
        Field("tx_packets", U64),
        Field("tx_errors", U64),
        Field("duration_sec", U32),
        Field("duration_nsec", U32),
    ),
)


class OFPQueueStatsReply(OFPMultipartReply):
    """The counters of queues."""

    cls_stats_type = ofproto.OFPMP_QUEUE
    BODY = OFPQueueStats


class OFPGroupStatsRequest(OFPMultipartRequest):
    """Asks for the counters of groups."""

    cls_stats_type = ofproto.OFPMP_GROUP
    FIELDS = (Field("group_id", U32), pad(4))

    def __init__(self, datapath: Any, flags: int = 0, group_id: int = ofproto.OFPG_ALL, type_: int | None = None):
        super().__init__(datapath, flags)
        self.group_id = group_id


class OFPBucketCounter(Struct):
    """The counters of a bucket."""

    FIELDS = (Field("packet_count", U64), Field("byte_count", U64))


class OFPGroupStats(Struct):
    """The counters of a group."""

    FIELDS = (
        Field("length", U16, None),
        pad(2),
        Field("group_id", U32, None),
        Field("ref_count", U32, None),
        pad(4),
        Field("packet_count", U64, None),
        Field("byte_count", U64, None),
        Field("duration_sec", U32, None),
        Field("duration_nsec", U32, None),
        Field("bucket_stats", Many(OFPBucketCounter.decode, "bucket counters"), None),
    )

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        return super().decode(data, offset, after)[0], after


class OFPGroupStatsReply(OFPMultipartReply):
    """The counters of groups."""

    cls_stats_type = ofproto.OFPMP_GROUP
    BODY = OFPGroupStats


class OFPGroupDescStatsRequest(OFPMultipartRequest):
    """Asks for groups."""

    cls_stats_type = ofproto.OFPMP_GROUP_DESC


class OFPGroupDescStats(Struct):
    """A group."""

    FIELDS = (
        Field("length", U16, None),
        Field("type", U8, None),
        pad(1),
        Field("group_id", U32, None),
        Field("buckets", BUCKETS, None),
    )
    ARGUMENTS = ("type", "group_id", "buckets", "length")

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        return super().decode(data, offset, after)[0], after


class OFPGroupDescStatsReply(OFPMultipartReply):
    """Groups."""

    cls_stats_type = ofproto.OFPMP_GROUP_DESC
    BODY = OFPGroupDescStats


class OFPGroupFeaturesStatsRequest(OFPMultipartRequest):
    """Asks what groups can do."""

    cls_stats_type = ofproto.OFPMP_GROUP_FEATURES


class _FourKind(_PairKind):
    """Four numbers, one for each type of group."""

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[Any], int]:
        if offset + 16 > end:
            raise Truncated("the numbers end early")
        return list(struct.unpack_from("!4I", data, offset)), offset + 16


OFPGroupFeaturesStats = tuple_struct(
    "OFPGroupFeaturesStats",
    (
        Field("types", U32),
        Field("capabilities", U32),
        Field("max_groups", _FourKind()),
        Field("actions", _FourKind()),
    ),
)


class OFPGroupFeaturesStatsReply(OFPMultipartReply):
    """What groups can do."""

    cls_stats_type = ofproto.OFPMP_GROUP_FEATURES
    BODY, IS_SINGLE = OFPGroupFeaturesStats, True


class _MeterRequest(OFPMultipartRequest):
    FIELDS = (Field("meter_id", U32), pad(4))

    def __init__(self, datapath: Any, flags: int = 0, meter_id: int = ofproto.OFPM_ALL, type_: int | None = None):
        super().__init__(datapath, flags)
        self.meter_id = meter_id


class OFPMeterStatsRequest(_MeterRequest):
    """Asks for the counters of meters."""

    cls_stats_type = ofproto.OFPMP_METER


class OFPMeterBandStats(Struct):
    """The counters of a band."""

    FIELDS = (Field("packet_band_count", U64), Field("byte_band_count", U64))


class OFPMeterStats(Struct):
    """The counters of a meter."""

    FIELDS = (
        Field("meter_id", U32, None),
        Field("len", U16, None),
        pad(6),
        Field("flow_count", U32, None),
        Field("packet_in_count", U64, None),
        Field("byte_in_count", U64, None),
        Field("duration_sec", U32, None),
        Field("duration_nsec", U32, None),
        Field("band_stats", Many(OFPMeterBandStats.decode, "band counters"), None),
    )
    ARGUMENTS = (
        "meter_id",
        "flow_count",
        "packet_in_count",
        "byte_in_count",
        "duration_sec",
        "duration_nsec",
        "band_stats",
        "len",
    )

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=4)
        return super().decode(data, offset, after)[0], after


class OFPMeterStatsReply(OFPMultipartReply):
    """The counters of meters."""

    cls_stats_type = ofproto.OFPMP_METER
    BODY = OFPMeterStats


class OFPMeterConfigStatsRequest(_MeterRequest):
    """Asks for meters."""

    cls_stats_type = ofproto.OFPMP_METER_CONFIG


class OFPMeterConfigStats(Struct):
    """A meter."""

    FIELDS = (
        Field("length", U16, None),
        Field("flags", U16, None),
        Field("meter_id", U32, None),
        Field("bands", BANDS, None),
    )
    ARGUMENTS = ("flags", "meter_id", "bands", "length")

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end, at=0)
        return super().decode(data, offset, after)[0], after


class OFPMeterConfigStatsReply(OFPMultipartReply):
    """Meters."""

    cls_stats_type = ofproto.OFPMP_METER_CONFIG
    BODY = OFPMeterConfigStats


class OFPMeterFeaturesStatsRequest(OFPMultipartRequest):
    """Asks what meters can do."""

    cls_stats_type = ofproto.OFPMP_METER_FEATURES


OFPMeterFeaturesStats = tuple_struct(
    "OFPMeterFeaturesStats",
    (
        Field("max_meter", U32),
        Field("band_types", U32),
        Field("capabilities", U32),
        Field("max_bands", U8),
        Field("max_color", U8),
        pad(2),
    ),
)


class OFPMeterFeaturesStatsReply(OFPMultipartReply):
    """What meters can do."""

    cls_stats_type = ofproto.OFPMP_METER_FEATURES
    BODY = OFPMeterFeaturesStats


class OFPPortDescStatsRequest(OFPMultipartRequest):
    """Asks for ports."""

    cls_stats_type = ofproto.OFPMP_PORT_DESC


class OFPPortDescStatsReply(OFPMultipartReply):
    """Ports."""

    cls_stats_type = ofproto.OFPMP_PORT_DESC
    BODY = OFPPort


# The structures that programs send and receive most.

_OXM_FIELD = ("", "oxm", None)
for _action in OFPAction.KINDS.values():
    if _action is OFPActionSetField:
        speed_up(_action, "type_and_length", [_OXM_FIELD])
    elif _action is not OFPActionExperimenter:
        speed_up(_action, "type_and_length")
for _instruction in set(OFPInstruction.KINDS.values()):
    speed_up(_instruction, "type_and_length")
for _message in (OFPFlowMod, OFPFlowRemoved):
    speed_up(_message)
speed_up(OFPFlowStats, "length")
# Without padding behind the packet.
speed_up(OFPPacketIn, fields=[*native_fields(OFPPacketIn.FIELDS)[:-1], ("data", "packet", "total_len")])
speed_up(
    OFPPacketOut,
    fields=[
        *native_fields((Field("buffer_id", U32), Field("in_port", U32))),
        ("actions_len", "size", None),
        *native_fields((pad(6), Field("actions", ACTIONS))),
        ("data", "packet", None),
    ],
)

StringifyMixin = Stringify
