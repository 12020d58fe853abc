"""The usual learning switch of os-ken's users, for OpenFlow 1.0 and 1.3: a flow mod, then a packet-out, for each packet-in."""
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def packet_in(self, event):
        message = event.msg
        datapath, ofproto = message.datapath, message.datapath.ofproto
        parser = datapath.ofproto_parser
        v10 = ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION
        in_port = message.in_port if v10 else message.match["in_port"]
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        ports = self.ports.setdefault(datapath.id, {})
        ports[frame.src] = in_port
        out_port = ports.get(frame.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofproto.OFPP_FLOOD:
            datapath.send_msg(self.flow_mod(parser, ofproto, datapath, in_port, frame, actions, v10))
        data = message.data if message.buffer_id == ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=message.buffer_id, in_port=in_port, actions=actions, data=data))

    @staticmethod
    def flow_mod(parser, ofproto, datapath, in_port, frame, actions, v10):
        if v10:
            match = parser.OFPMatch(in_port=in_port, dl_src=frame.src, dl_dst=frame.dst)
            return parser.OFPFlowMod(
                datapath=datapath, match=match, cookie=0, command=ofproto.OFPFC_ADD, idle_timeout=0,
                hard_timeout=0, priority=ofproto.OFP_DEFAULT_PRIORITY, actions=actions)
        match = parser.OFPMatch(in_port=in_port, eth_src=frame.src, eth_dst=frame.dst)
        instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        return parser.OFPFlowMod(datapath=datapath, match=match, priority=1, instructions=instructions)


if __name__ == "__main__":
    cfg.CONF(project="os_ken", args=["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", "__main__"])
