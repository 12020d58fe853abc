"""A learning switch for OpenFlow 1.3 that logs the counters of entries and ports every ten seconds."""

from __future__ import annotations

from typing import Any

from ryu.app import simple_switch_13
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub

#: The seconds between requests.
INTERVAL_S = 10


class SimpleMonitor13(simple_switch_13.SimpleSwitch13):
    """Asks all switches for their counters."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        #: The connected switches, by datapath id.
        self.datapaths: dict[int, Any] = {}
        self.monitor_thread = hub.spawn(self._monitor)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state_change_handler(self, ev: Any) -> None:
        dpid = ev.datapath.id
        if ev.state == MAIN_DISPATCHER:
            self.datapaths[dpid] = ev.datapath
        elif self.datapaths.get(dpid) is ev.datapath:
            del self.datapaths[dpid]

    def _monitor(self) -> None:
        while True:
            for datapath in list(self.datapaths.values()):
                self._request_stats(datapath)
            hub.sleep(INTERVAL_S)

    def _request_stats(self, datapath: Any) -> None:
        parser = datapath.ofproto_parser
        datapath.send_msg(parser.OFPFlowStatsRequest(datapath))
        datapath.send_msg(parser.OFPPortStatsRequest(datapath, 0, datapath.ofproto.OFPP_ANY))

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def _flow_stats_reply_handler(self, ev: Any) -> None:
        learned = [stat for stat in ev.msg.body if stat.priority == 1]
        self.logger.info("datapath         in-port  eth-dst           out-port packets  bytes")
        self.logger.info("---------------- -------- ----------------- -------- -------- --------")
        for stat in sorted(learned, key=lambda stat: (stat.match["in_port"], stat.match["eth_dst"])):
            self.logger.info(
                "%016x %8x %17s %8x %8d %8d",
                ev.msg.datapath.id,
                stat.match["in_port"],
                stat.match["eth_dst"],
                stat.instructions[0].actions[0].port,
                stat.packet_count,
                stat.byte_count,
            )

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def _port_stats_reply_handler(self, ev: Any) -> None:
        self.logger.info("datapath         port     rx-pkts  rx-bytes rx-error tx-pkts  tx-bytes tx-error")
        self.logger.info("---------------- -------- -------- -------- -------- -------- -------- --------")
        for stat in sorted(ev.msg.body, key=lambda stat: stat.port_no):
            self.logger.info(
                "%016x %8x %8d %8d %8d %8d %8d %8d",
                ev.msg.datapath.id,
                stat.port_no,
                stat.rx_packets,
                stat.rx_bytes,
                stat.rx_errors,
                stat.tx_packets,
                stat.tx_bytes,
                stat.tx_errors,
            )
