"""A monitor: asks for counters of ports and entries, and deletes entries that nothing uses."""

from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from switching import Switching

INTERVAL_S = 1


class Monitor(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.datapaths = {}
        self.port_bytes = {}
        self.rates = {}
        self.packets = {}
        self.thread = hub.spawn(self.loop)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change(self, ev):
        if ev.state == MAIN_DISPATCHER:
            self.datapaths[ev.datapath.id] = ev.datapath
        else:
            self.datapaths.pop(ev.datapath.id, None)

    def loop(self):
        while True:
            for dp in list(self.datapaths.values()):
                parser = dp.ofproto_parser
                dp.send_msg(parser.OFPPortStatsRequest(dp, 0, dp.ofproto.OFPP_ANY))
                dp.send_msg(parser.OFPFlowStatsRequest(dp))
            hub.sleep(INTERVAL_S)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def port_stats(self, ev):
        for stat in ev.msg.body:
            key = (ev.msg.datapath.id, stat.port_no)
            self.rates[key] = (stat.rx_bytes - self.port_bytes.get(key, 0)) / INTERVAL_S
            self.port_bytes[key] = stat.rx_bytes
            self.logger.info("switch %d port %d: %d bytes/s", *key, self.rates[key])

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def flow_stats(self, ev):
        dp = ev.msg.datapath
        parser, ofp = dp.ofproto_parser, dp.ofproto
        for stat in ev.msg.body:
            key = (dp.id, str(stat.match))
            # None at first.
            is_unused = self.packets.get(key) == stat.packet_count
            self.packets[key] = stat.packet_count
            if stat.priority and is_unused:
                del self.packets[key]
                dp.send_msg(
                    parser.OFPFlowMod(
                        datapath=dp,
                        command=ofp.OFPFC_DELETE_STRICT,
                        priority=stat.priority,
                        out_port=ofp.OFPP_ANY,
                        out_group=ofp.OFPG_ANY,
                        match=stat.match,
                    )
                )
