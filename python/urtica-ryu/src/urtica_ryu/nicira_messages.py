"""Nicira's messages of OpenFlow 1.0: roles, and how a connection behaves."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from urtica_ryu.structs import U8, U16, U32, Field, Kind, Layout, Truncated, pad

NICIRA = 0x00002320


class _Masks(Kind):
    """Two masks, for primary and secondary controllers."""

    expected = "2 numbers"

    def encode(self, value: Any, out: bytearray) -> None:
        try:
            out += struct.pack("!II", *value)
        except struct.error:
            raise TypeError from None

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[int], int]:
        if offset + 8 > end:
            raise Truncated("the masks end early")
        return list(struct.unpack_from("!II", data, offset)), offset + 8


#: The number and the fields of each message.
_MESSAGES: dict[str, tuple[int, tuple[Field, ...]]] = {
    "NXTRoleRequest": (10, (Field("role", U32),)),
    "NXTRoleReply": (11, (Field("role", U32),)),
    "NXTSetFlowFormat": (12, (Field("format", U32),)),
    "NXTFlowModTableId": (15, (Field("set", U8), pad(7))),
    "NXTSetPacketInFormat": (16, (Field("format", U32),)),
    "NXTFlowAge": (18, ()),
    "NXTSetAsyncConfig": (
        19,
        tuple(Field(name, _Masks()) for name in ("packet_in_mask", "port_status_mask", "flow_removed_mask")),
    ),
    "NXTSetControllerId": (20, (pad(6), Field("controller_id", U16))),
}


def _begin_flow_format(self: Any, datapath: Any, flow_format: Any = None, **of_json: Any) -> None:
    self._begin(datapath)
    self.format = of_json.get("format_", flow_format)


def _begin_packet_in_format(self: Any, datapath: Any, packet_in_format: Any = None, **of_json: Any) -> None:
    self._begin(datapath)
    self.format = of_json.get("format_", packet_in_format)


#: The constructors whose arguments have other names than the attributes.
_CONSTRUCTORS = {"NXTSetFlowFormat": _begin_flow_format, "NXTSetPacketInFormat": _begin_packet_in_format}


class NiciraHeader:
    """A message of Nicira's, over the class of vendors' messages."""

    SUBTYPE: ClassVar[int]
    IGNORED = ("data", "vendor", "subtype")

    @classmethod
    def from_jsondict(cls, dict_: dict[str, Any], *decode_string: Any, datapath: Any = None) -> Any:
        """Returns the message of JSON; that in another message has no datapath."""
        return super().from_jsondict(dict_, *decode_string, datapath=datapath)  # type: ignore[misc]

    def _begin(self, datapath: Any = None) -> None:
        super()._begin(datapath)  # type: ignore[misc]
        self.vendor = NICIRA
        self.subtype = self.SUBTYPE
        self.data = None


def messages_of(base: Any) -> dict[str, Any]:
    """Returns the classes of messages over the class that 1.0 has for vendors' messages, by name."""
    header = type("NiciraHeader", (NiciraHeader, base), {"__module__": base.__module__})
    made: dict[str, Any] = {"NiciraHeader": header}
    base.SUBTYPES = {}
    for name, (subtype, fields) in _MESSAGES.items():
        attributes: dict[str, Any] = {"SUBTYPE": subtype, "FIELDS": fields, "__module__": base.__module__}
        if name in _CONSTRUCTORS:
            attributes["__init__"] = _CONSTRUCTORS[name]
        cls: Any = type(name, (header,), attributes)
        cls.LAYOUT = Layout((Field("vendor", U32), Field("subtype", U32), *fields))
        made[name] = base.SUBTYPES[subtype] = cls
    return made


def decode(base: Any, data: bytes, datapath: Any) -> Any:
    """Returns the message of the bytes behind Nicira's number; the bytes if its number has no class here."""
    if len(data) < 4:
        raise Truncated("a message of Nicira's has no number")
    (subtype,) = struct.unpack_from("!I", data)
    found = base.SUBTYPES.get(subtype)
    if found is None:
        return data
    values, _ = Layout(found.FIELDS).decode(data, 4, len(data))
    made = found.made(values)
    made.datapath = datapath
    return made
