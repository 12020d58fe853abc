"""What most of these programs are derived from: a learning switch for OpenFlow 1.3."""

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types, ethernet, packet
from ryu.ofproto import ofproto_v1_3


class Switching(app_manager.RyuApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.tables = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, ev):
        dp = ev.msg.datapath
        ofp, parser = dp.ofproto, dp.ofproto_parser
        self.add_flow(dp, 0, parser.OFPMatch(), [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)])
        self.configure(dp)

    def configure(self, dp):
        """For derived programs."""

    def add_flow(self, dp, priority, match, actions, before=(), **options):
        parser = dp.ofproto_parser
        instructions = list(before)
        if actions:
            instructions.append(parser.OFPInstructionActions(dp.ofproto.OFPIT_APPLY_ACTIONS, actions))
        dp.send_msg(parser.OFPFlowMod(datapath=dp, priority=priority, match=match, instructions=instructions, **options))

    def send_packet(self, dp, in_port, actions, data):
        dp.send_msg(
            dp.ofproto_parser.OFPPacketOut(
                datapath=dp, buffer_id=dp.ofproto.OFP_NO_BUFFER, in_port=in_port, actions=actions, data=data
            )
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        msg = ev.msg
        pkt = packet.Packet(msg.data)
        eth = pkt.get_protocol(ethernet.ethernet)
        if eth.ethertype != ether_types.ETH_TYPE_LLDP:
            self.handle(msg.datapath, msg.match["in_port"], pkt, eth)

    def handle(self, dp, in_port, pkt, eth):
        self.switch(dp, in_port, pkt, eth)

    def switch(self, dp, in_port, pkt, eth):
        """Learns, and forwards."""
        parser, ofp = dp.ofproto_parser, dp.ofproto
        table = self.tables.setdefault(dp.id, {})
        table[eth.src] = in_port
        out_port = table.get(eth.dst, ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofp.OFPP_FLOOD:
            self.add_flow(dp, 1, self.match(dp, in_port, pkt, eth), actions, **self.options(dp, pkt))
        self.send_packet(dp, in_port, actions, pkt.data)

    def match(self, dp, in_port, pkt, eth):
        return dp.ofproto_parser.OFPMatch(in_port=in_port, eth_src=eth.src, eth_dst=eth.dst)

    def options(self, dp, pkt):
        """The options of entries for packets like this one."""
        return {}
