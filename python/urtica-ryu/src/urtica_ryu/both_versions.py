"""What modules send to switches of OpenFlow 1.0 and 1.3 alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ryu.ofproto import ofproto_v1_0

#: The names that fields of 1.3 have in 1.0.
_NAMES_1_0 = {"eth_src": "dl_src", "eth_dst": "dl_dst", "eth_type": "dl_type", "ipv4_dst": "nw_dst"}


def is_1_0(dp: Any) -> bool:
    """Returns whether a switch speaks OpenFlow 1.0."""
    return bool(dp.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION)


def in_port(msg: Any) -> int:
    """Returns the port of a packet-in."""
    return int(msg.in_port if is_1_0(msg.datapath) else msg.match["in_port"])


def field(match: Any, dp: Any, name: str) -> Any:
    """Returns a field of a switch's match by its name in 1.3; None without it."""
    name = _NAMES_1_0.get(name, name) if is_1_0(dp) else name
    return match[name] if name in match else None


def outputs(dp: Any, ports: Iterable[int]) -> list[Any]:
    """Returns actions that send packets out of ports."""
    return [dp.ofproto_parser.OFPActionOutput(port) for port in ports]


def send_packet(dp: Any, data: bytes, ports: Iterable[int], source: int | None = None) -> None:
    """Sends a packet out of ports, as if it had come from `source`, by default the controller."""
    ofproto = dp.ofproto
    if source is None:
        source = ofproto.OFPP_NONE if is_1_0(dp) else ofproto.OFPP_CONTROLLER
    actions = outputs(dp, ports)
    dp.send_msg(dp.ofproto_parser.OFPPacketOut(dp, ofproto.OFP_NO_BUFFER, source, actions, data))


def match_of(dp: Any, fields: dict[str, Any]) -> Any:
    """Returns the match of fields, by their names in 1.3."""
    if is_1_0(dp):
        fields = {_NAMES_1_0.get(name, name): value for name, value in fields.items()}
    return dp.ofproto_parser.OFPMatch(**fields)


def set_entry(dp: Any, fields: dict[str, Any], actions: list[Any], **settings: Any) -> None:
    """Adds an entry that applies actions."""
    parser, ofproto = dp.ofproto_parser, dp.ofproto
    if is_1_0(dp):
        rest = {"actions": actions}
    else:
        rest = {"instructions": [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]}
    dp.send_msg(parser.OFPFlowMod(dp, match=match_of(dp, fields), command=ofproto.OFPFC_ADD, **settings, **rest))


def delete_entries(dp: Any, fields: dict[str, Any], **settings: Any) -> None:
    """Deletes the entries that a match covers."""
    parser, ofproto = dp.ofproto_parser, dp.ofproto
    any_port = {} if is_1_0(dp) else {"out_port": ofproto.OFPP_ANY, "out_group": ofproto.OFPG_ANY}
    dp.send_msg(parser.OFPFlowMod(dp, match=match_of(dp, fields), command=ofproto.OFPFC_DELETE, **any_port, **settings))


def to_controller(dp: Any) -> Any:
    """Returns the action that sends packets to the controller."""
    most = 0xFFFF if is_1_0(dp) else dp.ofproto.OFPCML_MAX
    return dp.ofproto_parser.OFPActionOutput(dp.ofproto.OFPP_CONTROLLER, most)
