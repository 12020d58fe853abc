"""A learning switch that survives loops, by the spanning tree protocol."""

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, set_ev_cls
from ryu.lib import dpid as dpid_lib
from ryu.lib import stplib
from ryu.lib.packet import ethernet, packet
from ryu.ofproto import ofproto_v1_3

TIMES = {"max_age": 6, "hello_time": 1, "fwd_delay": 4}


class SpanningTree(app_manager.RyuApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {"stplib": stplib.Stp}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.tables = {}
        self.states = {}
        config = {
            dpid_lib.str_to_dpid("0000000000000001"): {"bridge": {"priority": 0x8000, **TIMES}},
            dpid_lib.str_to_dpid("0000000000000002"): {"bridge": {"priority": 0x9000, **TIMES}},
            dpid_lib.str_to_dpid("0000000000000003"): {"bridge": {"priority": 0xA000, **TIMES}},
        }
        kwargs["stplib"].set_config(config)

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, ev):
        dp = ev.msg.datapath
        ofp, parser = dp.ofproto, dp.ofproto_parser
        self.add_flow(dp, 0, parser.OFPMatch(), [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)])

    def add_flow(self, dp, priority, match, actions):
        parser = dp.ofproto_parser
        apply = [parser.OFPInstructionActions(dp.ofproto.OFPIT_APPLY_ACTIONS, actions)]
        dp.send_msg(parser.OFPFlowMod(datapath=dp, priority=priority, match=match, instructions=apply))

    @set_ev_cls(stplib.EventPacketIn)
    def packet_in(self, ev):
        msg = ev.msg
        dp, in_port = msg.datapath, msg.match["in_port"]
        parser, ofp = dp.ofproto_parser, dp.ofproto
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        table = self.tables.setdefault(dp.id, {})
        table[eth.src] = in_port
        out_port = table.get(eth.dst, ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofp.OFPP_FLOOD:
            self.add_flow(dp, 1, parser.OFPMatch(in_port=in_port, eth_dst=eth.dst), actions)
        dp.send_msg(
            parser.OFPPacketOut(datapath=dp, buffer_id=ofp.OFP_NO_BUFFER, in_port=in_port, actions=actions, data=msg.data)
        )

    @set_ev_cls(stplib.EventTopologyChange)
    def topology_change(self, ev):
        dp = ev.dp
        parser, ofp = dp.ofproto_parser, dp.ofproto
        for address in self.tables.pop(dp.id, {}):
            dp.send_msg(
                parser.OFPFlowMod(
                    datapath=dp,
                    command=ofp.OFPFC_DELETE,
                    out_port=ofp.OFPP_ANY,
                    out_group=ofp.OFPG_ANY,
                    priority=1,
                    match=parser.OFPMatch(eth_dst=address),
                )
            )

    @set_ev_cls(stplib.EventPortStateChange)
    def port_state_change(self, ev):
        names = {
            stplib.PORT_STATE_DISABLE: "disabled",
            stplib.PORT_STATE_BLOCK: "blocked",
            stplib.PORT_STATE_LISTEN: "listening",
            stplib.PORT_STATE_LEARN: "learning",
            stplib.PORT_STATE_FORWARD: "forwarding",
        }
        self.states[ev.dp.id, ev.port_no] = names[ev.port_state]
