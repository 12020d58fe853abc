"""Messages of OpenFlow 1.3 from dictionaries, as programs get them over HTTP, and replies as dictionaries.

`flow` is `{"match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}], "priority": 10}`. `waiters` is the program's: see
`ofctl_utils.send_stats_request`. With `to_user=False`, answers have numbers and objects instead of names and texts.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any

from ryu.lib.ofctl_utils import send_experimenter as send_experimenter
from ryu.ofproto import ofproto_v1_3 as ofproto
from ryu.ofproto import ofproto_v1_3_parser
from urtica_ryu.ofctl import (
    DESCRIPTION,
    ENTRY,
    PORT_COUNTERS,
    Names,
    attributes,
    by_switch,
    chosen,
    data_of,
    integer,
    replies,
    rows,
    send_msg,
    text,
    unknown,
)

LOG = logging.getLogger(__name__)

#: Its classes have the attributes and constructors of their fields, which types do not show.
parser: Any = ofproto_v1_3_parser

PORTS = Names(
    "OFPP_",
    **{
        name: getattr(ofproto, f"OFPP_{name}")
        for name in ("MAX", "IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "ANY")
    },
)
TABLES = Names("OFPTT_", MAX=ofproto.OFPTT_MAX, ALL=ofproto.OFPTT_ALL)
GROUPS = Names("OFPG_", MAX=ofproto.OFPG_MAX, ALL=ofproto.OFPG_ALL, ANY=ofproto.OFPG_ANY)
METERS = Names(
    "OFPM_",
    **{name: getattr(ofproto, f"OFPM_{name}") for name in ("MAX", "SLOWPATH", "CONTROLLER", "ALL")},
)
QUEUES = Names("OFPQ_", ALL=ofproto.OFPQ_ALL)
BUFFERS = Names("OFP_", NO_BUFFER=ofproto.OFP_NO_BUFFER)
LENGTHS = Names("OFPCML_", MAX=ofproto.OFPCML_MAX, NO_BUFFER=ofproto.OFPCML_NO_BUFFER)
ROLES = Names(
    "OFPCR_ROLE_",
    **{name: getattr(ofproto, f"OFPCR_ROLE_{name}") for name in ("NOCHANGE", "EQUAL", "MASTER", "SLAVE")},
)
GROUP_TYPES = Names(
    "OFPGT_",
    ALL=ofproto.OFPGT_ALL,
    SELECT=ofproto.OFPGT_SELECT,
    INDIRECT=ofproto.OFPGT_INDIRECT,
    FF=ofproto.OFPGT_FF,
)
METER_FLAGS = {name: getattr(ofproto, f"OFPMF_{name}") for name in ("KBPS", "PKTPS", "BURST", "STATS")}

# Actions and instructions, which these dictionaries keep in one list


def _output(options: dict[str, Any]) -> Any:
    port = PORTS.number(options.get("port", ofproto.OFPP_ANY))
    return parser.OFPActionOutput(port, chosen(options, "max_len", ofproto.OFPCML_MAX, LENGTHS.number))


def _set_field(options: dict[str, Any]) -> Any:
    return parser.OFPActionSetField(**{options["field"]: options["value"]})


#: The class of an action, and the options that it takes.
_SIMPLE: dict[str, tuple[Any, tuple[tuple[str, Callable[[Any], int]], ...]]] = {
    "COPY_TTL_OUT": (parser.OFPActionCopyTtlOut, ()),
    "COPY_TTL_IN": (parser.OFPActionCopyTtlIn, ()),
    "SET_MPLS_TTL": (parser.OFPActionSetMplsTtl, (("mpls_ttl", integer),)),
    "DEC_MPLS_TTL": (parser.OFPActionDecMplsTtl, ()),
    "PUSH_VLAN": (parser.OFPActionPushVlan, (("ethertype", integer),)),
    "POP_VLAN": (parser.OFPActionPopVlan, ()),
    "PUSH_MPLS": (parser.OFPActionPushMpls, (("ethertype", integer),)),
    "POP_MPLS": (parser.OFPActionPopMpls, (("ethertype", integer),)),
    "SET_QUEUE": (parser.OFPActionSetQueue, (("queue_id", QUEUES.number),)),
    "GROUP": (parser.OFPActionGroup, (("group_id", GROUPS.number),)),
    "SET_NW_TTL": (parser.OFPActionSetNwTtl, (("nw_ttl", integer),)),
    "DEC_NW_TTL": (parser.OFPActionDecNwTtl, ()),
    "PUSH_PBB": (parser.OFPActionPushPbb, (("ethertype", integer),)),
    "POP_PBB": (parser.OFPActionPopPbb, ()),
}
_OTHERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "OUTPUT": _output,
    "SET_FIELD": _set_field,
    "EXPERIMENTER": lambda options: parser.OFPActionExperimenterUnknown(integer(options["experimenter"]), data_of(options)),
}
_NAMES_OF_ACTIONS = {made: name for name, (made, _) in _SIMPLE.items()}


def _needed(options: dict[str, Any], what: str, key: str) -> Any:
    if key not in options:
        raise ValueError(f"{what} has no {key}: expected one, as in {{'type': {what!r}, {key!r}: …}}")
    return options[key]


def to_action(dp: Any, dic: dict[str, Any]) -> Any:
    """Returns an action; `None` for one that is unknown; raises ValueError."""
    name = dic.get("type")
    if name in _SIMPLE:
        made, options = _SIMPLE[name]
        return made(*(read(_needed(dic, name, key)) for key, read in options))
    if name in _OTHERS:
        try:
            return _OTHERS[name](dic)
        except KeyError as missing:
            raise ValueError(f"{name} is {dic!r}: {missing} is missing or unknown") from None
    return None


_INSTRUCTIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "WRITE_ACTIONS": lambda dp, options: parser.OFPInstructionActions(
        ofproto.OFPIT_WRITE_ACTIONS, _actions(dp, options.get("actions", []))
    ),
    "CLEAR_ACTIONS": lambda dp, options: parser.OFPInstructionActions(ofproto.OFPIT_CLEAR_ACTIONS, []),
    "GOTO_TABLE": lambda dp, options: parser.OFPInstructionGotoTable(TABLES.number(_needed(options, "GOTO_TABLE", "table_id"))),
    "WRITE_METADATA": lambda dp, options: parser.OFPInstructionWriteMetadata(
        integer(_needed(options, "WRITE_METADATA", "metadata")), chosen(options, "metadata_mask", (1 << 64) - 1)
    ),
    "METER": lambda dp, options: parser.OFPInstructionMeter(METERS.number(_needed(options, "METER", "meter_id"))),
}


def _actions(dp: Any, dics: list[dict[str, Any]]) -> list[Any]:
    made = []
    for dic in dics:
        action = to_action(dp, dic)
        if action is None:
            LOG.error("Unknown action type: %s", dic.get("type"))
        else:
            made.append(action)
    return made


def to_actions(dp: Any, acts: list[dict[str, Any]]) -> list[Any]:
    """Returns the instructions of a flow entry: those in the list, then one that applies the actions; raises ValueError."""
    made = [_INSTRUCTIONS[dic["type"]](dp, dic) for dic in acts if dic.get("type") in _INSTRUCTIONS]
    apply = _actions(dp, [dic for dic in acts if dic.get("type") not in _INSTRUCTIONS])
    if apply:
        made.append(parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, apply))
    return made


def action_to_str(act: Any) -> str:
    """Returns an action as text: `OUTPUT:2`, `SET_FIELD: {eth_dst:00:00:00:00:00:01}`."""
    if isinstance(act, parser.OFPActionOutput):
        return f"OUTPUT:{PORTS.shown(act.port)}"
    if isinstance(act, parser.OFPActionSetField):
        return f"SET_FIELD: {{{act.key}:{act.value}}}"
    if isinstance(act, parser.OFPActionExperimenter):
        data = base64.b64encode(act.data or b"").decode("ascii")
        return f"EXPERIMENTER: {{experimenter:{act.experimenter}, data:{data}}}"
    name = _NAMES_OF_ACTIONS.get(type(act), "UNKNOWN")
    options = _SIMPLE[name][1] if name in _SIMPLE else ()
    shown = {"queue_id": QUEUES.shown, "group_id": GROUPS.shown}
    values = [str(shown.get(key, str)(getattr(act, key))) for key, _ in options]
    return ":".join([name, *values])


def actions_to_str(instructions: list[Any]) -> list[Any]:
    """Returns instructions as texts: those that apply actions as the actions themselves."""
    texts: list[Any] = []
    for instruction in instructions:
        if isinstance(instruction, parser.OFPInstructionActions):
            actions = [action_to_str(act) for act in instruction.actions]
            if instruction.type == ofproto.OFPIT_APPLY_ACTIONS:
                texts += actions
            elif instruction.type == ofproto.OFPIT_CLEAR_ACTIONS:
                texts.append("CLEAR_ACTIONS")
            elif actions:
                texts.append({"WRITE_ACTIONS": actions})
        elif isinstance(instruction, parser.OFPInstructionGotoTable):
            texts.append(f"GOTO_TABLE:{TABLES.shown(instruction.table_id)}")
        elif isinstance(instruction, parser.OFPInstructionWriteMetadata):
            mask = f"/0x{instruction.metadata_mask:x}" if instruction.metadata_mask else ""
            texts.append(f"WRITE_METADATA:0x{instruction.metadata:x}{mask}")
        elif isinstance(instruction, parser.OFPInstructionMeter):
            texts.append(f"METER:{METERS.shown(instruction.meter_id)}")
    return texts


# Matches

#: The names of OpenFlow 1.0 for fields that it had.
_OLD_NAMES = {
    "dl_dst": "eth_dst",
    "dl_src": "eth_src",
    "dl_type": "eth_type",
    "dl_vlan": "vlan_vid",
    "nw_src": "ipv4_src",
    "nw_dst": "ipv4_dst",
    "nw_proto": "ip_proto",
}
_ARP_NAMES = {"nw_src": "arp_spa", "nw_dst": "arp_tpa"}
_PORT_FIELDS = {6: "tcp", 17: "udp", 132: "sctp"}
_SHOWN_NAMES = {new: old for old, new in _OLD_NAMES.items()} | {
    f"{protocol}_{end}": f"tp_{end}" for protocol in ("tcp", "udp") for end in ("src", "dst")
}


def _field_name(name: str, attrs: dict[str, Any]) -> str:
    """Returns OXM's name of a field; raises ValueError."""

    def number(old: str) -> int | None:
        value = attrs.get(old, attrs.get(_OLD_NAMES[old]))
        return None if value is None else integer(value)

    if name in _ARP_NAMES and number("dl_type") == 0x0806:
        return _ARP_NAMES[name]
    if name in ("tp_src", "tp_dst"):
        protocol = _PORT_FIELDS.get(number("nw_proto") or 0)
        if protocol is None:
            raise ValueError(f"{name} is given without nw_proto: expected that to be one of {', '.join(map(str, _PORT_FIELDS))}")
        return name.replace("tp", protocol)
    return _OLD_NAMES.get(name, name)


def to_match_vid(value: Any) -> Any:
    """Returns the value of vlan_vid: a number is of tagged packets, and so is a decimal text; `"0x1005"` and `"0x1000/0x1000"`
    have OFPVID_PRESENT themselves."""
    if isinstance(value, int):
        return value | ofproto.OFPVID_PRESENT
    vid, slash, mask = str(value).partition("/")
    if slash:
        return integer(vid), integer(mask)
    return integer(vid) | ofproto.OFPVID_PRESENT if vid.isdecimal() else integer(vid)


def _to_value(name: str, value: Any) -> Any:
    """Returns a field's value: a number, an address, or either with a mask."""
    if name == "vlan_vid":
        return to_match_vid(value)
    if name == "in_port":
        return PORTS.number(value)
    is_text = isinstance(value, str)
    is_address = name.startswith(("eth_d", "eth_s", "arp_s", "arp_t", "ipv4", "ipv6_src", "ipv6_dst", "ipv6_nd"))
    if not is_address:
        return tuple(map(integer, value.split("/"))) if is_text and "/" in value else integer(value)
    if is_text and "/" in value:
        address, _, mask = value.partition("/")
        return value if mask.isdecimal() else (address, mask)
    return value


def to_match(dp: Any, attrs: dict[str, Any]) -> Any:
    """Returns a match: fields have OXM's names, or those of OpenFlow 1.0; raises ValueError."""
    fields: dict[str, Any] = {}
    for name, value in attrs.items():
        field = _field_name(name, attrs)
        fields[field] = _to_value(field, value)
    try:
        return parser.OFPMatch(**fields)
    except KeyError as error:
        raise ValueError(f"the match is {attrs!r}: {error.args[0]}") from None


def match_vid_to_str(value: int, mask: int | None) -> str:
    """Returns vlan_vid as text: `"5"` of packets with that VLAN, `"0x0000"` of those without one."""
    if mask is not None:
        return f"0x{value:04x}/0x{mask:04x}"
    if value & ofproto.OFPVID_PRESENT:
        return str(value & ~ofproto.OFPVID_PRESENT)
    return f"0x{value:04x}"


def _shown_field(name: str, value: Any) -> Any:
    plain, mask = value if isinstance(value, tuple) else (value, None)
    if name == "vlan_vid":
        return match_vid_to_str(plain, mask)
    if mask is not None:
        return f"{plain}/{mask}"
    return PORTS.shown(plain) if name == "in_port" else plain


def match_to_str(ofmatch: Any) -> dict[str, Any]:
    """Returns a match as a dictionary, with OpenFlow 1.0's names for the fields that it had."""
    shown: dict[str, Any] = {}
    for name, value in ofmatch.items():
        shown.setdefault(_SHOWN_NAMES.get(name, name), _shown_field(name, value))
    return shown


def wrap_dpid_dict(dp: Any, value: Any, to_user: bool = True) -> dict[Any, Any]:
    """Returns an answer under its switch's number."""
    return by_switch(dp, value, to_user)


# Requests


def get_desc_stats(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks for the description of a switch."""
    found = [msg.body for msg in replies(dp, parser.OFPDescStatsRequest(dp, 0), waiters)]
    return by_switch(dp, {name: text(getattr(found[-1], name)) for name in DESCRIPTION} if found else {}, to_user)


def _listed(
    dp: Any, waiters: dict[Any, Any], to_user: bool, request: Any, row: Callable[[Any], dict[str, Any]]
) -> dict[Any, Any]:
    return by_switch(dp, [row(each) for each in rows(dp, request, waiters)], to_user)


def get_queue_stats(
    dp: Any, waiters: dict[Any, Any], port: Any = None, queue_id: Any = None, to_user: bool = True
) -> dict[Any, Any]:
    """Asks for the counters of queues."""
    port = ofproto.OFPP_ANY if port is None else PORTS.number(port)
    queue_id = ofproto.OFPQ_ALL if queue_id is None else QUEUES.number(queue_id)
    names = ("duration_nsec", "duration_sec", "port_no", "queue_id", "tx_bytes", "tx_errors", "tx_packets")
    request = parser.OFPQueueStatsRequest(dp, 0, port, queue_id)
    return _listed(dp, waiters, to_user, request, lambda stat: attributes(stat, *names))


_QUEUE_PROPERTIES = Names("OFPQT_", MIN_RATE=ofproto.OFPQT_MIN_RATE, MAX_RATE=ofproto.OFPQT_MAX_RATE, EXPERIMENTER=0xFFFF)


def get_queue_config(dp: Any, waiters: dict[Any, Any], port: Any = None, to_user: bool = True) -> dict[Any, Any]:
    """Asks for the queues of a port, or of all."""

    def prop(prop: Any) -> dict[str, Any]:
        options = {name: getattr(prop, name) for name in ("rate", "experimenter", "data") if hasattr(prop, name)}
        return {"property": _QUEUE_PROPERTIES.shown(prop.property, to_user), **options}

    def queue(queue: Any) -> dict[str, Any]:
        return {
            "port": PORTS.shown(queue.port, to_user),
            "queue_id": QUEUES.shown(queue.queue_id, to_user),
            "properties": [prop(each) for each in queue.properties],
        }

    port = ofproto.OFPP_ANY if port is None else PORTS.number(port)
    configs = [
        {"port": PORTS.shown(msg.port, to_user), "queues": [queue(each) for each in msg.queues]}
        for msg in replies(dp, parser.OFPQueueGetConfigRequest(dp, port), waiters)
    ]
    return by_switch(dp, configs, to_user)


def _flow_request(made: Any, dp: Any, flow: dict[str, Any]) -> Any:
    return made(
        dp,
        0,
        chosen(flow, "table_id", ofproto.OFPTT_ALL, TABLES.number),
        chosen(flow, "out_port", ofproto.OFPP_ANY, PORTS.number),
        chosen(flow, "out_group", ofproto.OFPG_ANY, GROUPS.number),
        chosen(flow, "cookie", 0),
        chosen(flow, "cookie_mask", 0),
        to_match(dp, flow.get("match", {})),
    )


def get_flow_stats(
    dp: Any, waiters: dict[Any, Any], flow: dict[str, Any] | None = None, to_user: bool = True
) -> dict[Any, Any]:
    """Asks for flow entries: all, or those that `flow` names, also by `priority`."""
    flow = flow or {}
    priority = chosen(flow, "priority", -1)
    def entry(stat: Any) -> dict[str, Any]:
        return {
            **attributes(stat, *ENTRY, "length", "flags"),
            "table_id": TABLES.shown(stat.table_id, to_user),
            "match": match_to_str(stat.match) if to_user else stat.match,
            "actions": actions_to_str(stat.instructions) if to_user else stat.instructions,
        }

    found = rows(dp, _flow_request(parser.OFPFlowStatsRequest, dp, flow), waiters)
    return by_switch(dp, [entry(stat) for stat in found if priority in (-1, stat.priority)], to_user)


def get_aggregate_flow_stats(
    dp: Any, waiters: dict[Any, Any], flow: dict[str, Any] | None = None, to_user: bool = True
) -> dict[Any, Any]:
    """Asks for the counters of flow entries together."""
    request = _flow_request(parser.OFPAggregateStatsRequest, dp, flow or {})
    names = ("packet_count", "byte_count", "flow_count")
    return _listed(dp, waiters, to_user, request, lambda stat: attributes(stat, *names))


def get_table_stats(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks for the counters of tables."""

    def table(stat: Any) -> dict[str, Any]:
        counters = attributes(stat, "active_count", "lookup_count", "matched_count")
        return {**counters, "table_id": TABLES.shown(stat.table_id, to_user)}

    return _listed(dp, waiters, to_user, parser.OFPTableStatsRequest(dp, 0), table)


_PROPERTIES = {
    getattr(ofproto, name): name.removeprefix("OFPTFPT_") for name in dir(ofproto) if name.startswith("OFPTFPT_")
}


def get_table_features(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks for the features of tables."""
    names = ("metadata_match", "metadata_write", "config", "max_entries")

    def prop(prop: Any) -> dict[str, Any]:
        shown: dict[str, Any] = {"type": _PROPERTIES.get(prop.type, "UNKNOWN") if to_user else prop.type}
        for key in ("instruction_ids", "action_ids"):
            if hasattr(prop, key):
                shown[key] = [attributes(each, "type", "len") for each in getattr(prop, key)]
        if hasattr(prop, "table_ids"):
            shown["table_ids"] = list(prop.table_ids)
        if hasattr(prop, "oxm_ids"):
            shown["oxm_ids"] = [attributes(each, "type", "hasmask", "length") for each in prop.oxm_ids]
        return shown

    def table(stat: Any) -> dict[str, Any]:
        return {
            **attributes(stat, *names),
            "table_id": TABLES.shown(stat.table_id, to_user),
            "name": text(stat.name),
            "properties": [prop(each) for each in stat.properties],
        }

    return _listed(dp, waiters, to_user, parser.OFPTableFeaturesStatsRequest(dp, 0, []), table)


def get_port_stats(dp: Any, waiters: dict[Any, Any], port: Any = None, to_user: bool = True) -> dict[Any, Any]:
    """Asks for the counters of a port, or of all."""
    port = ofproto.OFPP_ANY if port is None else PORTS.number(port)

    def row(stat: Any) -> dict[str, Any]:
        counters = attributes(stat, *PORT_COUNTERS, "duration_sec", "duration_nsec")
        return {**counters, "port_no": PORTS.shown(stat.port_no, to_user)}

    return _listed(dp, waiters, to_user, parser.OFPPortStatsRequest(dp, 0, port), row)


def get_meter_stats(dp: Any, waiters: dict[Any, Any], meter_id: Any = None, to_user: bool = True) -> dict[Any, Any]:
    """Asks for the counters of a meter, or of all."""
    names = ("len", "flow_count", "packet_in_count", "byte_in_count", "duration_sec", "duration_nsec")

    def meter(stat: Any) -> dict[str, Any]:
        bands = [attributes(band, "packet_band_count", "byte_band_count") for band in stat.band_stats]
        return {**attributes(stat, *names), "meter_id": METERS.shown(stat.meter_id, to_user), "band_stats": bands}

    return _listed(dp, waiters, to_user, parser.OFPMeterStatsRequest(dp, 0, _meter(meter_id)), meter)


def _meter(meter_id: Any) -> int:
    return ofproto.OFPM_ALL if meter_id is None else METERS.number(meter_id)


def get_meter_features(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks what meters can do."""
    bands = Names("OFPMBT_", DROP=ofproto.OFPMBT_DROP, DSCP_REMARK=ofproto.OFPMBT_DSCP_REMARK)

    def features(feature: Any) -> dict[str, Any]:
        return {
            "max_meter": feature.max_meter,
            "band_types": bands.set_in(feature.band_types) if to_user else feature.band_types,
            "capabilities": _flags(feature.capabilities) if to_user else feature.capabilities,
            "max_bands": feature.max_bands,
            "max_color": feature.max_color,
        }

    return _listed(dp, waiters, to_user, parser.OFPMeterFeaturesStatsRequest(dp, 0), features)


def _flags(bits: int) -> list[str]:
    return [name for name, bit in METER_FLAGS.items() if bits & bit]


_BANDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "DROP": (parser.OFPMeterBandDrop, ()),
    "DSCP_REMARK": (parser.OFPMeterBandDscpRemark, ("prec_level",)),
    "EXPERIMENTER": (parser.OFPMeterBandExperimenter, ("experimenter",)),
}


def get_meter_config(dp: Any, waiters: dict[Any, Any], meter_id: Any = None, to_user: bool = True) -> dict[Any, Any]:
    """Asks for a meter, or for all."""

    def band(band: Any) -> dict[str, Any]:
        names = {made: name for name, (made, _) in _BANDS.items()}
        name = names[type(band)]
        kind = name if to_user else band.cls_meter_band_type
        return {"type": kind, **attributes(band, "rate", "burst_size", *_BANDS[name][1])}

    def meter(config: Any) -> dict[str, Any]:
        return {
            "flags": _flags(config.flags) if to_user else config.flags,
            "meter_id": METERS.shown(config.meter_id, to_user),
            "bands": [band(each) for each in config.bands],
        }

    return _listed(dp, waiters, to_user, parser.OFPMeterConfigStatsRequest(dp, 0, _meter(meter_id)), meter)


def get_group_stats(dp: Any, waiters: dict[Any, Any], group_id: Any = None, to_user: bool = True) -> dict[Any, Any]:
    """Asks for the counters of a group, or of all."""
    group_id = ofproto.OFPG_ALL if group_id is None else GROUPS.number(group_id)
    names = ("length", "ref_count", "packet_count", "byte_count", "duration_sec", "duration_nsec")

    def group(stat: Any) -> dict[str, Any]:
        buckets = [attributes(bucket, "packet_count", "byte_count") for bucket in stat.bucket_stats]
        return {**attributes(stat, *names), "group_id": GROUPS.shown(stat.group_id, to_user), "bucket_stats": buckets}

    return _listed(dp, waiters, to_user, parser.OFPGroupStatsRequest(dp, 0, group_id), group)


_CAPABILITIES = Names("OFPGFC_", SELECT_WEIGHT=0, SELECT_LIVENESS=1, CHAINING=2, CHAINING_CHECKS=3)
_ACTION_TYPES = Names(
    "OFPAT_",
    **{
        name: getattr(ofproto, f"OFPAT_{name}")
        for name in (
            "OUTPUT",
            "COPY_TTL_OUT",
            "COPY_TTL_IN",
            "SET_MPLS_TTL",
            "DEC_MPLS_TTL",
            "PUSH_VLAN",
            "POP_VLAN",
            "PUSH_MPLS",
            "POP_MPLS",
            "SET_QUEUE",
            "GROUP",
            "SET_NW_TTL",
            "DEC_NW_TTL",
            "SET_FIELD",
            "PUSH_PBB",
            "POP_PBB",
        )
    },
)


def get_group_features(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks what groups can do."""

    def features(feature: Any) -> dict[str, Any]:
        if not to_user:
            return attributes(feature, "types", "capabilities", "max_groups", "actions")
        kinds = list(GROUP_TYPES.names)
        return {
            "types": GROUP_TYPES.set_in(feature.types),
            "capabilities": _CAPABILITIES.set_in(feature.capabilities),
            "max_groups": [{kind: most} for kind, most in zip(kinds, feature.max_groups, strict=True)],
            "actions": [{kind: _ACTION_TYPES.set_in(bits)} for kind, bits in zip(kinds, feature.actions, strict=True)],
        }

    return _listed(dp, waiters, to_user, parser.OFPGroupFeaturesStatsRequest(dp, 0), features)


def get_group_desc(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks for groups."""

    def bucket(bucket: Any) -> dict[str, Any]:
        actions = [action_to_str(act) for act in bucket.actions] if to_user else bucket.actions
        return {**attributes(bucket, "weight", "watch_port", "watch_group"), "actions": actions}

    def group(desc: Any) -> dict[str, Any]:
        return {
            "type": GROUP_TYPES.shown(desc.type, to_user),
            "group_id": GROUPS.shown(desc.group_id, to_user),
            "buckets": [bucket(each) for each in desc.buckets],
        }

    return _listed(dp, waiters, to_user, parser.OFPGroupDescStatsRequest(dp, 0), group)


def get_port_desc(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks for the ports."""
    names = ("hw_addr", "config", "state", "curr", "advertised", "supported", "peer", "curr_speed", "max_speed")

    def port(port: Any) -> dict[str, Any]:
        return {**attributes(port, *names), "name": text(port.name), "port_no": PORTS.shown(port.port_no, to_user)}

    return _listed(dp, waiters, to_user, parser.OFPPortDescStatsRequest(dp, 0), port)


def get_role(dp: Any, waiters: dict[Any, Any], to_user: bool = True) -> dict[Any, Any]:
    """Asks for this controller's role."""
    request = parser.OFPRoleRequest(dp, ofproto.OFPCR_ROLE_NOCHANGE, 0)
    found = replies(dp, request, waiters)
    roles = [{"role": ROLES.shown(msg.role, to_user), "generation_id": msg.generation_id} for msg in found]
    return by_switch(dp, roles, to_user)


# Changes


def mod_flow_entry(dp: Any, flow: dict[str, Any], cmd: int) -> None:
    """Sends a change of flow entries; raises ValueError."""
    mod = parser.OFPFlowMod(
        dp,
        chosen(flow, "cookie", 0),
        chosen(flow, "cookie_mask", 0),
        chosen(flow, "table_id", 0, TABLES.number),
        cmd,
        chosen(flow, "idle_timeout", 0),
        chosen(flow, "hard_timeout", 0),
        chosen(flow, "priority", 0),
        chosen(flow, "buffer_id", ofproto.OFP_NO_BUFFER, BUFFERS.number),
        chosen(flow, "out_port", ofproto.OFPP_ANY, PORTS.number),
        chosen(flow, "out_group", ofproto.OFPG_ANY, GROUPS.number),
        chosen(flow, "flags", 0),
        to_match(dp, flow.get("match", {})),
        to_actions(dp, flow.get("actions", [])),
    )
    send_msg(dp, mod, LOG)


def mod_meter_entry(dp: Any, meter: dict[str, Any], cmd: int) -> None:
    """Sends a change of a meter; raises ValueError."""
    flags = 0
    given = meter.get("flags", [])
    for flag in given if isinstance(given, list) else [given]:
        if flag not in METER_FLAGS:
            raise unknown("a flag", flag, METER_FLAGS)
        flags |= METER_FLAGS[flag]
    bands = []
    for band in meter.get("bands", []):
        if band.get("type") not in _BANDS:
            raise unknown("the type of a band", band.get("type"), _BANDS)
        made, more = _BANDS[band["type"]]
        bands.append(made(*(chosen(band, name, 0) for name in ("rate", "burst_size", *more))))
    send_msg(dp, parser.OFPMeterMod(dp, cmd, flags, chosen(meter, "meter_id", 0, METERS.number), bands), LOG)


def mod_group_entry(dp: Any, group: dict[str, Any], cmd: int) -> None:
    """Sends a change of a group; raises ValueError."""
    kind = group.get("type", "ALL")
    if kind not in GROUP_TYPES.names:
        raise unknown("the type of a group", kind, GROUP_TYPES.names)
    buckets = [
        parser.OFPBucket(
            chosen(bucket, "weight", 0),
            chosen(bucket, "watch_port", ofproto.OFPP_ANY, PORTS.number),
            chosen(bucket, "watch_group", ofproto.OFPG_ANY, GROUPS.number),
            _actions(dp, bucket.get("actions", [])),
        )
        for bucket in group.get("buckets", [])
    ]
    group_id = chosen(group, "group_id", 0, GROUPS.number)
    send_msg(dp, parser.OFPGroupMod(dp, cmd, GROUP_TYPES.names[kind], group_id, buckets), LOG)


def mod_port_behavior(dp: Any, port_config: dict[str, Any]) -> None:
    """Sends a change of a port; raises ValueError."""
    numbers = [chosen(port_config, name, 0) for name in ("config", "mask", "advertise")]
    port = chosen(port_config, "port_no", 0, PORTS.number)
    send_msg(dp, parser.OFPPortMod(dp, port, str(port_config.get("hw_addr", "00:00:00:00:00:00")), *numbers), LOG)


def set_role(dp: Any, role: dict[str, Any]) -> None:
    """Asks for another role of this controller; raises ValueError."""
    wanted = chosen(role, "role", ofproto.OFPCR_ROLE_EQUAL, ROLES.number)
    send_msg(dp, parser.OFPRoleRequest(dp, wanted, 0), LOG)
