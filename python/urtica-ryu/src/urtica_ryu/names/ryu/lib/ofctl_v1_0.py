"""Messages of OpenFlow 1.0 from dictionaries, as programs get them over HTTP, and replies as dictionaries.

`flow` is `{"match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}], "priority": 10}`. `waiters` is the program's: see
`ofctl_utils.send_stats_request`.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from typing import Any

from ryu.lib.ofctl_utils import send_experimenter as send_experimenter
from ryu.ofproto import ofproto_v1_0 as ofproto
from ryu.ofproto import ofproto_v1_0_parser
from urtica_ryu.ofctl import (
    DESCRIPTION,
    ENTRY,
    PORT_COUNTERS,
    Names,
    attributes,
    by_switch,
    chosen,
    integer,
    replies,
    rows,
    send_msg,
    text,
)

LOG = logging.getLogger(__name__)

#: Its classes have the attributes and constructors of their fields, which types do not show.
parser: Any = ofproto_v1_0_parser

PORTS = Names(
    "OFPP_",
    **{
        name: getattr(ofproto, f"OFPP_{name}")
        for name in ("MAX", "IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "NONE")
    },
)
TABLES = Names("OFPTT_", MAX=0xFE, ALL=0xFF)
QUEUES = Names("OFPQ_", ALL=0xFFFFFFFF)
BUFFERS = Names("OFP_", NO_BUFFER=ofproto.OFP_NO_BUFFER)
#: Numbers that OpenFlow 1.3 has, and scripts use for both.
LENGTHS = Names("OFPCML_", MAX=0xFFE5, NO_BUFFER=0xFFFF)

#: The class of an action, and the options that it takes, with what they are where they are not given.
_ACTIONS: dict[str, tuple[Any, tuple[tuple[str, Callable[[Any], Any], Any], ...]]] = {
    "OUTPUT": (
        parser.OFPActionOutput,
        (("port", PORTS.number, ofproto.OFPP_NONE), ("max_len", LENGTHS.number, 0xFFE5)),
    ),
    "SET_VLAN_VID": (parser.OFPActionVlanVid, (("vlan_vid", integer, 0xFFFF),)),
    "SET_VLAN_PCP": (parser.OFPActionVlanPcp, (("vlan_pcp", integer, 0),)),
    "STRIP_VLAN": (parser.OFPActionStripVlan, ()),
    "SET_DL_SRC": (parser.OFPActionSetDlSrc, (("dl_src", str, None),)),
    "SET_DL_DST": (parser.OFPActionSetDlDst, (("dl_dst", str, None),)),
    "SET_NW_SRC": (parser.OFPActionSetNwSrc, (("nw_src", str, "0.0.0.0"),)),
    "SET_NW_DST": (parser.OFPActionSetNwDst, (("nw_dst", str, "0.0.0.0"),)),
    "SET_NW_TOS": (parser.OFPActionSetNwTos, (("nw_tos", integer, 0),)),
    "SET_TP_SRC": (parser.OFPActionSetTpSrc, (("tp_src", integer, 0),)),
    "SET_TP_DST": (parser.OFPActionSetTpDst, (("tp_dst", integer, 0),)),
    "ENQUEUE": (parser.OFPActionEnqueue, (("port", PORTS.number, ofproto.OFPP_NONE), ("queue_id", QUEUES.number, 0))),
}


def to_actions(dp: Any, acts: list[dict[str, Any]]) -> list[Any]:
    """Returns actions; raises ValueError."""
    made = []
    for act in acts:
        if act.get("type") not in _ACTIONS:
            LOG.error("Unknown action type: %s", act.get("type"))
            continue
        action, options = _ACTIONS[act["type"]]
        made.append(action(*(chosen(act, key, default, read) for key, read, default in options)))
    return made


def _address(number: int) -> str:
    return str(ipaddress.IPv4Address(number))


#: The attributes of actions that are shown as they are.
_ATTRIBUTES = {
    "SET_VLAN_VID": "vlan_vid",
    "SET_VLAN_PCP": "vlan_pcp",
    "SET_NW_TOS": "tos",
    "SET_TP_SRC": "tp",
    "SET_TP_DST": "tp",
}


def _action_to_str(act: Any) -> str:
    if isinstance(act, parser.OFPActionVendor):
        return "VENDOR"
    names = {made: name for name, (made, _) in _ACTIONS.items()}
    name = names.get(type(act), "UNKNOWN")
    if name == "OUTPUT":
        return f"{name}:{PORTS.shown(act.port)}"
    if name == "ENQUEUE":
        return f"{name}:{PORTS.shown(act.port)}:{QUEUES.shown(act.queue_id)}"
    if name.startswith("SET_DL"):
        return f"{name}:{bytes(act.dl_addr).hex(':')}"
    if name in ("SET_NW_SRC", "SET_NW_DST"):
        return f"{name}:{_address(act.nw_addr)}"
    return f"{name}:{getattr(act, _ATTRIBUTES[name])}" if name in _ATTRIBUTES else name


def actions_to_str(acts: list[Any]) -> list[str]:
    """Returns actions as texts: `OUTPUT:2`, `SET_DL_DST:00:00:00:00:00:01`."""
    return [_action_to_str(act) for act in acts]


_NUMBERS = ("dl_vlan", "dl_vlan_pcp", "dl_type", "nw_tos", "nw_proto", "tp_src", "tp_dst")
_TEXTS = ("dl_src", "dl_dst")
_NETWORKS = ("nw_src", "nw_dst")


def to_match(dp: Any, attrs: dict[str, Any]) -> Any:
    """Returns a match; raises ValueError."""
    fields: dict[str, Any] = {}
    for name, value in attrs.items():
        if name == "in_port":
            fields[name] = PORTS.number(value)
        elif name in _NUMBERS:
            fields[name] = integer(value)
        elif name in _TEXTS:
            fields[name] = str(value)
        elif name in _NETWORKS:
            fields[name], _, length = str(value).partition("/")
            fields[f"{name}_mask"] = integer(length) if length else 32
        else:
            raise ValueError(f"the match has {name!r}: expected some of {', '.join(('in_port', *_TEXTS, *_NUMBERS, *_NETWORKS))}")
    return parser.OFPMatch(**fields)


def match_to_str(m: Any) -> dict[str, Any]:
    """Returns a match as a dictionary of the fields that it has."""
    shown: dict[str, Any] = {}
    for name in ("in_port", *_TEXTS, *_NUMBERS, *_NETWORKS):
        length = m[f"{name}_mask"] if name in _NETWORKS else None
        if length is not None and 0 < length < 32:
            shown[name] = f"{_address(getattr(m, name))}/{length}"
        elif length != 0 and name in m:
            shown[name] = PORTS.shown(m[name]) if name == "in_port" else m[name]
    return shown


# Requests


def get_desc_stats(dp: Any, waiters: dict[Any, Any]) -> dict[str, Any]:
    """Asks for the description of a switch."""
    found = [msg.body for msg in replies(dp, parser.OFPDescStatsRequest(dp, 0), waiters)]
    return by_switch(dp, {name: text(getattr(found[-1], name)) for name in DESCRIPTION} if found else {})


def _listed(dp: Any, waiters: dict[Any, Any], request: Any, row: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    return by_switch(dp, [row(each) for each in rows(dp, request, waiters)])


def get_queue_stats(dp: Any, waiters: dict[Any, Any], port: Any = None, queue_id: Any = None) -> dict[str, Any]:
    """Asks for the counters of queues."""
    port = ofproto.OFPP_ALL if port is None else PORTS.number(port)
    queue_id = QUEUES.names["ALL"] if queue_id is None else QUEUES.number(queue_id)
    names = ("port_no", "queue_id", "tx_bytes", "tx_errors", "tx_packets")
    request = parser.OFPQueueStatsRequest(dp, 0, port, queue_id)
    return _listed(dp, waiters, request, lambda stat: attributes(stat, *names))


def _flow_request(made: Any, dp: Any, flow: dict[str, Any]) -> Any:
    return made(
        dp,
        0,
        to_match(dp, flow.get("match", {})),
        chosen(flow, "table_id", TABLES.names["ALL"], TABLES.number),
        chosen(flow, "out_port", ofproto.OFPP_NONE, PORTS.number),
    )


def get_flow_stats(dp: Any, waiters: dict[Any, Any], flow: dict[str, Any] | None = None) -> dict[str, Any]:
    """Asks for flow entries: all, or those that `flow` names, also by `priority`."""
    flow = flow or {}
    priority = chosen(flow, "priority", -1)
    def entry(stat: Any) -> dict[str, Any]:
        return {
            **attributes(stat, *ENTRY),
            "table_id": TABLES.shown(stat.table_id),
            "match": match_to_str(stat.match),
            "actions": actions_to_str(stat.actions),
        }

    found = rows(dp, _flow_request(parser.OFPFlowStatsRequest, dp, flow), waiters)
    return by_switch(dp, [entry(stat) for stat in found if priority in (-1, stat.priority)])


def get_aggregate_flow_stats(dp: Any, waiters: dict[Any, Any], flow: dict[str, Any] | None = None) -> dict[str, Any]:
    """Asks for the counters of flow entries together."""
    request = _flow_request(parser.OFPAggregateStatsRequest, dp, flow or {})
    return _listed(dp, waiters, request, lambda stat: attributes(stat, "packet_count", "byte_count", "flow_count"))


#: The names of wildcards, in their order.
_WILDCARDS = (
    "IN_PORT",
    "DL_VLAN",
    "DL_SRC",
    "DL_DST",
    "DL_TYPE",
    "NW_PROTO",
    "TP_SRC",
    "TP_DST",
    "NW_SRC_ALL",
    "NW_DST_ALL",
    "DL_VLAN_PCP",
    "NW_TOS",
)


def get_table_stats(dp: Any, waiters: dict[Any, Any]) -> dict[str, Any]:
    """Asks for the counters of tables."""
    bits = {name: getattr(ofproto, f"OFPFW_{name.removesuffix('_ALL')}") for name in _WILDCARDS}

    def table(stat: Any) -> dict[str, Any]:
        return {
            **attributes(stat, "max_entries", "active_count", "lookup_count", "matched_count"),
            "table_id": TABLES.shown(stat.table_id),
            "name": text(stat.name),
            "wildcards": [name for name, bit in bits.items() if stat.wildcards & bit],
        }

    return _listed(dp, waiters, parser.OFPTableStatsRequest(dp, 0), table)


def get_port_stats(dp: Any, waiters: dict[Any, Any], port: Any = None) -> dict[str, Any]:
    """Asks for the counters of a port, or of all."""
    port = ofproto.OFPP_NONE if port is None else PORTS.number(port)

    def row(stat: Any) -> dict[str, Any]:
        return {**attributes(stat, *PORT_COUNTERS), "port_no": PORTS.shown(stat.port_no)}

    return _listed(dp, waiters, parser.OFPPortStatsRequest(dp, 0, port), row)


def get_port_desc(dp: Any, waiters: dict[Any, Any]) -> dict[str, Any]:
    """Asks for the ports."""
    names = ("hw_addr", "config", "state", "curr", "advertised", "supported", "peer")
    found = [
        {**attributes(port, *names), "name": text(port.name), "port_no": PORTS.shown(port.port_no)}
        for msg in replies(dp, parser.OFPFeaturesRequest(dp), waiters)
        for port in msg.ports.values()
    ]
    return by_switch(dp, found)


# Changes


def mod_flow_entry(dp: Any, flow: dict[str, Any], cmd: int) -> None:
    """Sends a change of flow entries; raises ValueError."""
    mod = parser.OFPFlowMod(
        dp,
        to_match(dp, flow.get("match", {})),
        chosen(flow, "cookie", 0),
        cmd,
        chosen(flow, "idle_timeout", 0),
        chosen(flow, "hard_timeout", 0),
        chosen(flow, "priority", ofproto.OFP_DEFAULT_PRIORITY),
        chosen(flow, "buffer_id", ofproto.OFP_NO_BUFFER, BUFFERS.number),
        chosen(flow, "out_port", ofproto.OFPP_NONE, PORTS.number),
        chosen(flow, "flags", 0),
        to_actions(dp, flow.get("actions", [])),
    )
    send_msg(dp, mod, LOG)


def delete_flow_entry(dp: Any) -> None:
    """Deletes all flow entries."""
    mod_flow_entry(dp, {}, ofproto.OFPFC_DELETE)


def mod_port_behavior(dp: Any, port_config: dict[str, Any]) -> None:
    """Sends a change of a port; raises ValueError."""
    numbers = [chosen(port_config, name, 0) for name in ("config", "mask", "advertise")]
    port = chosen(port_config, "port_no", 0, PORTS.number)
    send_msg(dp, parser.OFPPortMod(dp, port, str(port_config.get("hw_addr", "00:00:00:00:00:00")), *numbers), LOG)
