"""Slow protocols (IEEE 802.3, annex 57A), of which LACP (IEEE 802.1AX) is one."""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import MAC, U8, U16, Field, Layout, Truncated, pad

SLOW_PROTOCOL_MULTICAST = "01:80:c2:00:00:02"

SLOW_SUBTYPE_LACP = 0x01
SLOW_SUBTYPE_MARKER = 0x02
SLOW_SUBTYPE_OAM = 0x03
SLOW_SUBTYPE_OSSP = 0x0A

#: The bits of a state, from the lowest on.
STATE_BITS = (
    "activity",
    "timeout",
    "aggregation",
    "synchronization",
    "collecting",
    "distributing",
    "defaulted",
    "expired",
)
_SIDES = ("actor", "partner")


class slow(PacketBase):
    """Finds the class of a slow protocol: `slow.parser` returns its object."""

    _TYPES: ClassVar[dict[int, Any]] = {}

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        found = cls.get_packet_type(buf[offset]) if offset < len(buf) else None
        return found.parser(buf, offset) if found else (None, None, bytes(buf[offset:]))


def _side(name: str) -> tuple[Field, ...]:
    return (
        Field(f"_{name}_tag", U8),
        Field(f"_{name}_length", U8),
        Field(f"{name}_system_priority", U16),
        Field(f"{name}_system", MAC),
        Field(f"{name}_key", U16),
        Field(f"{name}_port_priority", U16),
        Field(f"{name}_port", U16),
        Field(f"_{name}_state", U8),
        pad(3),
    )


def _state(side: str) -> property:
    def state(self: Any) -> int:
        bits = 0
        for at, name in enumerate(STATE_BITS):
            bit = getattr(self, f"{side}_state_{name}")
            if bit not in (0, 1):
                raise ValueError(f"{side}_state_{name} of lacp is {bit!r}: expected 0 or 1")
            bits |= bit << at
        return bits

    return property(state)


#: The fields before the states and behind them, in the order of the constructor.
_SETTINGS = tuple(
    Field(f"{side}_{name}", MAC if name == "system" else U16, "00:00:00:00:00:00" if name == "system" else 0)
    for side in _SIDES
    for name in ("system_priority", "system", "key", "port_priority", "port", *(f"state_{bit}" for bit in STATE_BITS))
)


class lacp(PacketBase):
    """A LACP data unit: what a port knows about itself (`actor`) and its peer (`partner`)."""

    LACP_VERSION_NUMBER = 1
    LACP_TLV_TYPE_ACTOR = 1
    LACP_TLV_TYPE_PARTNER = 2
    LACP_TLV_TYPE_COLLECTOR = 3
    LACP_TLV_TYPE_TERMINATOR = 0

    LACP_STATE_PASSIVE = 0
    LACP_STATE_ACTIVE = 1
    LACP_STATE_LONG_TIMEOUT = 0
    LACP_STATE_SHORT_TIMEOUT = 1
    LACP_STATE_INDIVIDUAL = 0
    LACP_STATE_AGGREGATEABLE = 1
    LACP_STATE_OUT_OF_SYNC = 0
    LACP_STATE_IN_SYNC = 1
    LACP_STATE_COLLECTING_DISABLED = 0
    # Ryu's spelling, too.
    LACP_STATE_COLELCTING_DISABLED = 0
    LACP_STATE_COLLECTING_ENABLED = 1
    LACP_STATE_DISTRIBUTING_DISABLED = 0
    LACP_STATE_DISTRIBUTING_ENABLED = 1
    LACP_STATE_OPERATIONAL_PARTNER = 0
    LACP_STATE_DEFAULTED_PARTNER = 1
    LACP_STATE_DEFAULED_PARTNER = 1
    LACP_STATE_NOT_EXPIRED = 0
    LACP_STATE_EXPIRED = 1

    FAST_PERIODIC_TIME = 1
    SLOW_PERIODIC_TIME = 30
    SHORT_TIMEOUT_TIME = 3 * FAST_PERIODIC_TIME
    LONG_TIMEOUT_TIME = 3 * SLOW_PERIODIC_TIME

    TEXTS = frozenset({"actor_system", "partner_system"})
    FIELDS = (Field("version", U8, LACP_VERSION_NUMBER), *_SETTINGS, Field("collector_max_delay", U16, 0))

    # The lengths of parts, which do not change.
    _subtype = SLOW_SUBTYPE_LACP
    _actor_tag, _actor_length = LACP_TLV_TYPE_ACTOR, 20
    _partner_tag, _partner_length = LACP_TLV_TYPE_PARTNER, 20
    _collector_tag, _collector_length = LACP_TLV_TYPE_COLLECTOR, 16
    _terminator_tag = _terminator_length = 0
    _actor_state, _partner_state = _state("actor"), _state("partner")

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        made, after = cls.decode(buf, offset, len(buf))
        return made, None, bytes(buf[after:])

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        values, after = cls.LAYOUT.decode(data, offset, end)
        for side in _SIDES:
            state = values[f"_{side}_state"]
            values.update((f"{side}_state_{bit}", state >> at & 1) for at, bit in enumerate(STATE_BITS))
        for name in [name for name in values if name.startswith("_")]:
            if not name.endswith("_state") and values[name] != getattr(cls, name):
                raise Truncated(f"{name[1:]} of a LACP data unit is {values[name]}: expected {getattr(cls, name)}")
            del values[name]
        return cls.made(values), after


lacp.LAYOUT = Layout(
    (
        Field("_subtype", U8),
        Field("version", U8),
        *_side("actor"),
        *_side("partner"),
        Field("_collector_tag", U8),
        Field("_collector_length", U8),
        Field("collector_max_delay", U16),
        pad(12),
        Field("_terminator_tag", U8),
        Field("_terminator_length", U8),
        pad(50),
    )
)
lacp._MIN_LEN = 110

slow.register_packet_type(lacp, SLOW_SUBTYPE_LACP)
ethernet.register_packet_type(slow, 0x8809)
