"""A learning switch for OpenFlow 1.0."""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types, ethernet, packet
from ryu.ofproto import ofproto_v1_0


class SimpleSwitch(app_manager.RyuApp):
    """Learns addresses, and adds an entry for each pair of known ones."""

    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        #: Ports by address, by datapath id.
        self.mac_to_port: dict[int, dict[str, int]] = {}

    def add_flow(self, datapath: Any, in_port: int, dst: str, src: str, actions: list[Any]) -> None:
        """Adds an entry for packets from one address to another."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        match = parser.OFPMatch(in_port=in_port, dl_dst=dst, dl_src=src)
        entry = parser.OFPFlowMod(datapath, match=match, flags=ofproto.OFPFF_SEND_FLOW_REM, actions=actions)
        datapath.send_msg(entry)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev: Any) -> None:
        msg = ev.msg
        datapath = msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        if eth is None or eth.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        self.logger.info("packet in %s %s %s %s", datapath.id, eth.src, eth.dst, msg.in_port)
        table = self.mac_to_port.setdefault(datapath.id, {})
        table[eth.src] = msg.in_port
        out_port = table.get(eth.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofproto.OFPP_FLOOD:
            self.add_flow(datapath, msg.in_port, eth.dst, eth.src, actions)
        data = msg.data if msg.buffer_id == ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(parser.OFPPacketOut(datapath, msg.buffer_id, msg.in_port, actions, data))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port_status_handler(self, ev: Any) -> None:
        ofproto = ev.msg.datapath.ofproto
        changes = {ofproto.OFPPR_ADD: "added", ofproto.OFPPR_DELETE: "deleted", ofproto.OFPPR_MODIFY: "modified"}
        change = changes.get(ev.msg.reason)
        if change is None:
            self.logger.info("port %s has changed for the unknown reason %s", ev.msg.desc.port_no, ev.msg.reason)
        else:
            self.logger.info("port %s %s", change, ev.msg.desc.port_no)
