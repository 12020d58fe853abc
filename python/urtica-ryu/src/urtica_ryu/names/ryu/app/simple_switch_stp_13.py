"""A learning switch for OpenFlow 1.3 in networks with loops."""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.app import simple_switch_13
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import dpid as dpid_lib
from ryu.lib import stplib

_STATES = {
    stplib.PORT_STATE_DISABLE: "DISABLE",
    stplib.PORT_STATE_BLOCK: "BLOCK",
    stplib.PORT_STATE_LISTEN: "LISTEN",
    stplib.PORT_STATE_LEARN: "LEARN",
    stplib.PORT_STATE_FORWARD: "FORWARD",
}


class SimpleSwitch13(simple_switch_13.SimpleSwitch13):
    """Learns on the ports of the spanning tree."""

    _CONTEXTS: ClassVar[dict[str, Any]] = {"stplib": stplib.Stp}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.stp = kwargs["stplib"]

    def delete_flow(self, datapath: Any) -> None:
        """Deletes the entries of what was learnt."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        for eth_dst in self.mac_to_port[datapath.id]:
            datapath.send_msg(
                parser.OFPFlowMod(
                    datapath,
                    command=ofproto.OFPFC_DELETE,
                    out_port=ofproto.OFPP_ANY,
                    out_group=ofproto.OFPG_ANY,
                    priority=1,
                    match=parser.OFPMatch(eth_dst=eth_dst),
                )
            )

    @set_ev_cls(stplib.EventPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev: Any) -> None:
        super()._packet_in_handler(ev)

    @set_ev_cls(stplib.EventTopologyChange, MAIN_DISPATCHER)
    def _topology_change_handler(self, ev: Any) -> None:
        self.logger.debug("[dpid=%s] Receive topology change event. Flush MAC table.", dpid_lib.dpid_to_str(ev.dp.id))
        if ev.dp.id in self.mac_to_port:
            self.delete_flow(ev.dp)
            del self.mac_to_port[ev.dp.id]

    @set_ev_cls(stplib.EventPortStateChange, MAIN_DISPATCHER)
    def _port_state_change_handler(self, ev: Any) -> None:
        dpid = dpid_lib.dpid_to_str(ev.dp.id)
        self.logger.debug("[dpid=%s][port=%d] state=%s", dpid, ev.port_no, _STATES[ev.port_state])
