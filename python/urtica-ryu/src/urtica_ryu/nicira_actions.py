"""Nicira's actions, for the parsers of OpenFlow 1.0 and 1.3: each is described by its fields on the wire."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from urtica_ryu.nicira import (
    ACTION_LIST,
    HEADER,
    NICIRA,
    NOTE,
    NUMBERS,
    BundleBody,
    CntIdsBody,
    Controller2Body,
    EncapBody,
    EncapNshBody,
    FlowSpec,
    Header,
    LearnBody,
    NatBody,
    NoteBody,
    NXAction,
    NXFlowSpecLoad,
    NXFlowSpecMatch,
    NXFlowSpecOutput,
    RegLoad2Body,
    UnknownBody,
)
from urtica_ryu.structs import REST, U8, U16, U32, U64, Field, Kind, Many, pad

_IN_PORT = 0xFFF8
_ALL_TABLES = 0xFF
_PRIORITY = 0x8000


class Description(NamedTuple):
    """An action: its number, its fields on the wire, and the class that it has beyond `NXAction`."""

    subtype: int | None
    fields: tuple[Field, ...] = ()
    base: type[NXAction] = NXAction
    #: The constructor's arguments, if their order differs.
    arguments: tuple[str, ...] | None = None


_RESUBMIT = (Field("in_port", U16, _IN_PORT), Field("table_id", U8, _ALL_TABLES), pad(3))
_STACK = (Field("start", U16), Field("field", HEADER), Field("end", U16))
_SAMPLE = (
    Field("probability", U16, 0),
    Field("collector_set_id", U32, 0),
    Field("obs_domain_id", U32, 0),
    Field("obs_point_id", U32, 0),
)
_BUNDLE = (
    Field("algorithm", U16),
    Field("fields", U16),
    Field("basis", U16),
    Field("slave_type", U32),
    Field("n_slaves", U16),
    Field("ofs_nbits", U16),
    Field("dst", Header(0)),
    pad(4),
    Field("slaves", NUMBERS),
)

#: The actions, by the names of their classes.
ACTIONS: dict[str, Description] = {
    "NXActionResubmit": Description(1, (Field("in_port", U16, _IN_PORT), pad(4))),
    "NXActionSetTunnel": Description(2, (pad(2), Field("tun_id", U32))),
    "NXActionPopQueue": Description(5, (pad(6),)),
    "NXActionRegMove": Description(
        6,
        (
            Field("n_bits", U16),
            Field("src_ofs", U16, 0),
            Field("dst_ofs", U16, 0),
            Field("src_field", HEADER),
            Field("dst_field", HEADER),
        ),
        arguments=("src_field", "dst_field", "n_bits", "src_ofs", "dst_ofs"),
    ),
    "NXActionRegLoad": Description(7, (Field("ofs_nbits", U16), Field("dst", HEADER), Field("value", U64))),
    "NXActionNote": Description(8, (Field("note", NOTE),), NoteBody),
    "NXActionSetTunnel64": Description(9, (pad(6), Field("tun_id", U64))),
    "NXActionMultipath": Description(
        10,
        (
            Field("fields", U16),
            Field("basis", U16),
            pad(2),
            Field("algorithm", U16),
            Field("max_link", U16),
            Field("arg", U32),
            pad(2),
            Field("ofs_nbits", U16),
            Field("dst", HEADER),
        ),
    ),
    "NXActionBundle": Description(12, _BUNDLE, BundleBody),
    "NXActionBundleLoad": Description(13, _BUNDLE, BundleBody),
    "NXActionResubmitTable": Description(14, _RESUBMIT),
    "NXActionOutputReg": Description(
        15, (Field("ofs_nbits", U16), Field("src", HEADER), Field("max_len", U16), pad(6))
    ),
    "NXActionLearn": Description(
        16,
        (
            Field("idle_timeout", U16, 0),
            Field("hard_timeout", U16, 0),
            Field("priority", U16, _PRIORITY),
            Field("cookie", U64, 0),
            Field("flags", U16, 0),
            Field("table_id", U8),
            pad(1),
            Field("fin_idle_timeout", U16, 0),
            Field("fin_hard_timeout", U16, 0),
            Field("specs", Many(FlowSpec.decode, "NXFlowSpecMatch, NXFlowSpecLoad and NXFlowSpecOutput")),
        ),
        LearnBody,
        arguments=(
            "table_id",
            "specs",
            "idle_timeout",
            "hard_timeout",
            "priority",
            "cookie",
            "flags",
            "fin_idle_timeout",
            "fin_hard_timeout",
        ),
    ),
    "NXActionExit": Description(17, (pad(6),)),
    "NXActionFinTimeout": Description(19, (Field("fin_idle_timeout", U16), Field("fin_hard_timeout", U16), pad(2))),
    "NXActionController": Description(
        20, (Field("max_len", U16), Field("controller_id", U16), Field("reason", U8), pad(1))
    ),
    "NXActionDecTtlCntIds": Description(
        21, (Field("_count", U16, 0), pad(4), Field("cnt_ids", NUMBERS)), CntIdsBody, ("cnt_ids",)
    ),
    "NXActionStackPush": Description(27, _STACK, arguments=("field", "start", "end")),
    "NXActionStackPop": Description(28, _STACK, arguments=("field", "start", "end")),
    "NXActionSample": Description(29, _SAMPLE),
    "NXActionOutputReg2": Description(
        32,
        (Field("ofs_nbits", U16), Field("max_len", U16), Field("src", HEADER)),
        arguments=("ofs_nbits", "src", "max_len"),
    ),
    "NXActionRegLoad2": Description(
        33, (Field("dst", REST), Field("value", REST), Field("mask", REST, None)), RegLoad2Body
    ),
    "NXActionConjunction": Description(34, (Field("clause", U8), Field("n_clauses", U8), Field("id", U32))),
    "NXActionSample2": Description(38, (*_SAMPLE, Field("sampling_port", U16, 0), pad(6))),
    "NXActionOutputTrunc": Description(39, (Field("port", U16), Field("max_len", U32))),
    "NXActionCT": Description(
        35,
        (
            Field("flags", U16),
            Field("zone_src", Header("")),
            Field("zone_ofs_nbits", U16),
            Field("recirc_table", U8),
            pad(3),
            Field("alg", U16),
            Field("actions", ACTION_LIST),
        ),
    ),
    "NXActionNAT": Description(
        36,
        (pad(2), Field("flags", U16)),
        NatBody,
    ),
    "NXActionController2": Description(37, (), Controller2Body),
    "NXActionCTClear": Description(43, (pad(6),)),
    "NXActionEncapEther": Description(46, (), EncapBody),
    "NXActionEncapNsh": Description(46, (), EncapNshBody),
    "NXActionDecNshTtl": Description(48, (pad(6),)),
    "NXActionSetQueue": Description(4, (pad(2), Field("queue_id", U32))),
    "NXActionDecTtl": Description(18, (pad(6),)),
    "NXActionPushMpls": Description(23, (Field("ethertype", U16), pad(4))),
    "NXActionPopMpls": Description(24, (Field("ethertype", U16), pad(4))),
    "NXActionSetMplsTtl": Description(25, (Field("ttl", U8), pad(5))),
    "NXActionDecMplsTtl": Description(26, (pad(6),)),
    "NXActionSetMplsLabel": Description(30, (pad(2), Field("label", U32))),
    "NXActionSetMplsTc": Description(31, (Field("tc", U8), pad(5))),
    "NXActionUnknown": Description(None, (), UnknownBody),
}


def actions_of(base: Any, vendor: str, action_list: Kind) -> dict[str, Any]:
    """Returns the classes of actions over the class that a version has for experimenters' actions, by name.

    `vendor` is the attribute that has the experimenter's number.
    """
    made: dict[str, Any] = {cls.__name__: cls for cls in (NXFlowSpecMatch, NXFlowSpecLoad, NXFlowSpecOutput)}
    made["NXAction"] = type("NXAction", (NXAction, base), {"VENDOR": vendor, "__module__": base.__module__})
    base.SUBTYPES = {}
    for name, (subtype, fields, body, arguments) in ACTIONS.items():
        fields = tuple(field._replace(kind=action_list) if field.kind is ACTION_LIST else field for field in fields)
        attributes: dict[str, Any] = {"SUBTYPE": subtype, "ARGUMENTS": arguments, "__module__": base.__module__}
        if "__init__" in vars(body):
            attributes["__init__"] = vars(body)["__init__"]
        bases = (made["NXAction"],) if body is NXAction else (body, made["NXAction"])
        made[name] = type(name, bases, {**attributes, "FIELDS": fields})
        base.SUBTYPES.setdefault(subtype, made[name])
    return made


def decode(base: Any, data: bytes, offset: int, end: int) -> Any:
    """Returns the action of an experimenter's number and the bytes behind it; None if it is of another one."""
    if offset + 6 > end:
        return None
    experimenter, subtype = struct.unpack_from("!IH", data, offset)
    if experimenter != NICIRA:
        return None
    found = base.SUBTYPES.get(subtype)
    if found is None:
        return base.SUBTYPES[None](subtype, bytes(data[offset + 6 : end]))
    return found.decode_fields(data, offset + 6, end)
