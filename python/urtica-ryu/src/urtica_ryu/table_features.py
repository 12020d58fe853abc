"""Features of OpenFlow 1.3's tables: properties, each of which is a list of ids."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.ofproto import ofproto_v1_3 as ofproto

from urtica_ryu import oxm
from urtica_ryu.structs import REST, U16, U32, Field, Many, Struct, Truncated, framed, set_length

#: The class of experimenters' fields, behind whose header the experimenter is.
_EXPERIMENTER_CLASS = 0xFFFF


class _TypeId(Struct):
    """The type of an instruction or an action, and its length; more bytes are an experimenter's."""

    FIELDS = (Field("type", U16), Field("len", U16, None), Field("data", REST, b""))
    # As under Ryu, which does not keep them.
    HIDDEN = frozenset({"data"})

    len: int | None

    def encode(self, out: bytearray) -> None:
        start = len(out)
        self.len = self.len or 4
        self.LAYOUT.encode(self, out)
        self.len = set_length(out, start)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end)
        return super().decode(data, offset, after)[0], after


class OFPInstructionId(_TypeId):
    """The type of an instruction."""


class OFPActionId(_TypeId):
    """The type of an action."""


class OFPOxmId(Struct):
    """A field: its name, whether it may have a mask, and its length."""

    HIDDEN = frozenset({"experimenter"})
    TEXTS = frozenset({"type"})

    def __init__(self, type_: str, hasmask: int = 0, length: int | None = None, experimenter: int | None = None):
        self.type = type_
        self.hasmask = hasmask
        self.length = length
        self.experimenter = experimenter

    def encode(self, out: bytearray) -> None:
        field = oxm.field_named(self.type)
        size = field.size * (1 + bool(self.hasmask)) if self.length is None else self.length
        out += struct.pack("!HBB", field.oxm_class, field.number << 1 | bool(self.hasmask), size)
        if self.experimenter is not None:
            out += struct.pack("!I", self.experimenter)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        if offset + 4 > end:
            raise Truncated("a field's id ends early")
        oxm_class, number, length = struct.unpack_from("!HBB", data, offset)
        made = cls(oxm.name_of(oxm_class, number >> 1), number & 1, length)
        offset += 4
        if oxm_class == _EXPERIMENTER_CLASS:
            if offset + 4 > end:
                raise Truncated("an experimenter's field ends early")
            (made.experimenter,) = struct.unpack_from("!I", data, offset)
            offset += 4
        return made, offset


class OFPTableFeatureProp(Struct):
    """A property: type, length, ids, padding to 8 bytes that the length does not count."""

    KINDS: ClassVar[dict[int, type[OFPTableFeatureProp]]] = {}
    TYPES: ClassVar[tuple[int, ...]] = ()
    BEFORE = "type_"
    IGNORED = ("length",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for kind in cls.TYPES:
            cls.KINDS[kind] = cls

    def _begin(self, type_: int | None = None) -> None:
        self.type = type_
        self.length: int | None = None

    def encode(self, out: bytearray) -> None:
        start = len(out)
        out += struct.pack("!HH", self.type, 0)
        self.LAYOUT.encode(self, out)
        self.length = set_length(out, start)
        out += bytes(-self.length % 8)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        after = framed(data, offset, end)
        kind, length = struct.unpack_from("!HH", data, offset)
        found = cls.KINDS.get(kind, OFPTableFeaturePropUnknown)
        made = found.made(found.LAYOUT.decode(data, offset + 4, after)[0])
        made.type, made.length = kind, length
        return made, min(after + -length % 8, end)


class OFPTableFeaturePropInstructions(OFPTableFeatureProp):
    """Instructions."""

    TYPES = (ofproto.OFPTFPT_INSTRUCTIONS, ofproto.OFPTFPT_INSTRUCTIONS_MISS)
    FIELDS = (Field("instruction_ids", Many(OFPInstructionId.decode, "instruction ids"), None),)


class _Bytes(Many):
    """Numbers of one byte each."""

    def __init__(self) -> None:
        super().__init__(lambda data, offset, end: (data[offset], offset + 1), "table ids")

    def encode(self, value: Any, out: bytearray) -> None:
        out += bytes(value or ())


class OFPTableFeaturePropNextTables(OFPTableFeatureProp):
    """Tables that may come next."""

    TYPES = (ofproto.OFPTFPT_NEXT_TABLES, ofproto.OFPTFPT_NEXT_TABLES_MISS)
    FIELDS = (Field("table_ids", _Bytes(), None),)


class OFPTableFeaturePropActions(OFPTableFeatureProp):
    """Actions."""

    TYPES = (
        ofproto.OFPTFPT_WRITE_ACTIONS,
        ofproto.OFPTFPT_WRITE_ACTIONS_MISS,
        ofproto.OFPTFPT_APPLY_ACTIONS,
        ofproto.OFPTFPT_APPLY_ACTIONS_MISS,
    )
    FIELDS = (Field("action_ids", Many(OFPActionId.decode, "action ids"), None),)


class OFPTableFeaturePropOxm(OFPTableFeatureProp):
    """Fields."""

    TYPES = (
        ofproto.OFPTFPT_MATCH,
        ofproto.OFPTFPT_WILDCARDS,
        ofproto.OFPTFPT_WRITE_SETFIELD,
        ofproto.OFPTFPT_WRITE_SETFIELD_MISS,
        ofproto.OFPTFPT_APPLY_SETFIELD,
        ofproto.OFPTFPT_APPLY_SETFIELD_MISS,
    )
    FIELDS = (Field("oxm_ids", Many(OFPOxmId.decode, "fields"), None),)


class OFPTableFeaturePropExperimenter(OFPTableFeatureProp):
    """An experimenter's property, as bytes."""

    TYPES = (ofproto.OFPTFPT_EXPERIMENTER, ofproto.OFPTFPT_EXPERIMENTER_MISS)
    FIELDS = (Field("experimenter", U32, None), Field("exp_type", U32, None), Field("data", REST, None))


class OFPTableFeaturePropUnknown(OFPTableFeatureProp):
    """A property of a type that 1.3 does not have, as bytes."""

    FIELDS = (Field("data", REST, None),)
