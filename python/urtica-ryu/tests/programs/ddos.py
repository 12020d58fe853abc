"""Finds floods by the counters of ports, and drops what their ports send until they are quiet."""

from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from switching import Switching

INTERVAL_S = 1
# Packets in an interval.
THRESHOLD = 500
BLOCK_S = 30
COOKIE = 0xD0


class Detector(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.datapaths = {}
        self.counts = {}
        self.blocked = set()
        hub.spawn(self.poll)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change(self, ev):
        if ev.state == MAIN_DISPATCHER:
            self.datapaths[ev.datapath.id] = ev.datapath
        else:
            self.datapaths.pop(ev.datapath.id, None)

    def poll(self):
        while True:
            for _, dp in sorted(self.datapaths.items()):
                dp.send_msg(dp.ofproto_parser.OFPPortStatsRequest(dp, 0, dp.ofproto.OFPP_ANY))
            hub.sleep(INTERVAL_S)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def port_stats(self, ev):
        dp = ev.msg.datapath
        for stat in sorted(ev.msg.body, key=lambda stat: stat.port_no):
            key = (dp.id, stat.port_no)
            before = self.counts.get(key)
            self.counts[key] = stat.rx_packets
            if before is not None and stat.rx_packets - before > THRESHOLD and key not in self.blocked:
                self.logger.warning("switch %d: a flood from port %d", *key)
                self.blocked.add(key)
                self.add_flow(
                    dp,
                    100,
                    dp.ofproto_parser.OFPMatch(in_port=stat.port_no),
                    [],
                    hard_timeout=BLOCK_S,
                    cookie=COOKIE,
                    flags=dp.ofproto.OFPFF_SEND_FLOW_REM,
                )

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed(self, ev):
        if ev.msg.cookie == COOKIE:
            self.blocked.discard((ev.msg.datapath.id, ev.msg.match["in_port"]))
