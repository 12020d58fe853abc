"""A learning switch for OpenFlow 1.3, from which monitors and the like are derived."""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types, ethernet, packet
from ryu.ofproto import ofproto_v1_3


class SimpleSwitch13(app_manager.RyuApp):
    """Learns addresses, and adds an entry for each pair of known ones."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        #: Ports by address, by datapath id.
        self.mac_to_port: dict[int, dict[str, int]] = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_features_handler(self, ev: Any) -> None:
        """Sends packets without an entry to the controller."""
        datapath = ev.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        to_controller = parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)
        self.add_flow(datapath, 0, parser.OFPMatch(), [to_controller])

    def add_flow(self, datapath: Any, priority: int, match: Any, actions: list[Any], buffer_id: int | None = None) -> None:
        """Adds an entry; a buffered packet is sent by it."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        entry = parser.OFPFlowMod(datapath, priority=priority, match=match, instructions=instructions)
        if buffer_id:
            entry.buffer_id = buffer_id
        datapath.send_msg(entry)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev: Any) -> None:
        msg = ev.msg
        datapath = msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = msg.match["in_port"]
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        if eth is None or eth.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        self.logger.info("packet in %016x %s %s %s", datapath.id, eth.src, eth.dst, in_port)
        table = self.mac_to_port.setdefault(datapath.id, {})
        table[eth.src] = in_port
        out_port = table.get(eth.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        is_buffered = msg.buffer_id != ofproto.OFP_NO_BUFFER
        if out_port != ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_dst=eth.dst, eth_src=eth.src)
            self.add_flow(datapath, 1, match, actions, msg.buffer_id if is_buffered else None)
            if is_buffered:
                return
        data = None if is_buffered else msg.data
        datapath.send_msg(parser.OFPPacketOut(datapath, msg.buffer_id, in_port, actions, data))
