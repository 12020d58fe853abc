"""A learning switch on os-ken in the manner of simple_switch and simple_switch_13, which os-ken no longer comes with.

In OpenFlow 1.0 a flow mod without buffer id and a packet-out answer each packet-in; in 1.3 one flow mod that names the buffer
does, where there is one, and a table-miss entry brings packets to the controller. Arguments: the port to listen on, and the
address (127.0.0.1)."""
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ether_types, ethernet, packet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_features(self, event):
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        if ofproto.OFP_VERSION == ofproto_v1_3.OFP_VERSION:
            to_controller = parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)
            datapath.send_msg(flow_mod_13(datapath, 0, parser.OFPMatch(), [to_controller], ofproto.OFP_NO_BUFFER))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        if frame.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        ports = self.ports.setdefault(datapath.id, {})
        if datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            answer_10(datapath, message, frame, ports)
        else:
            answer_13(datapath, message, frame, ports)


def answer_10(datapath, message, frame, ports):
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    ports[frame.src] = message.in_port
    out_port = ports.get(frame.dst, ofproto.OFPP_FLOOD)
    actions = [parser.OFPActionOutput(out_port)]
    if out_port != ofproto.OFPP_FLOOD:
        match = parser.OFPMatch(in_port=message.in_port, dl_dst=frame.dst, dl_src=frame.src)
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, match=match, cookie=0, command=ofproto.OFPFC_ADD, idle_timeout=0, hard_timeout=0,
            priority=ofproto.OFP_DEFAULT_PRIORITY, flags=ofproto.OFPFF_SEND_FLOW_REM, actions=actions))
    datapath.send_msg(packet_out(datapath, message, message.in_port, actions))


def answer_13(datapath, message, frame, ports):
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    in_port = message.match["in_port"]
    ports[frame.src] = in_port
    out_port = ports.get(frame.dst, ofproto.OFPP_FLOOD)
    actions = [parser.OFPActionOutput(out_port)]
    if out_port != ofproto.OFPP_FLOOD:
        match = parser.OFPMatch(in_port=in_port, eth_dst=frame.dst, eth_src=frame.src)
        datapath.send_msg(flow_mod_13(datapath, 1, match, actions, message.buffer_id))
        if message.buffer_id != ofproto.OFP_NO_BUFFER:
            return
    datapath.send_msg(packet_out(datapath, message, in_port, actions))


def flow_mod_13(datapath, priority, match, actions, buffer_id):
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
    return parser.OFPFlowMod(
        datapath=datapath, buffer_id=buffer_id, priority=priority, match=match, instructions=instructions)


def packet_out(datapath, message, in_port, actions):
    is_whole = message.buffer_id == datapath.ofproto.OFP_NO_BUFFER
    return datapath.ofproto_parser.OFPPacketOut(
        datapath=datapath, buffer_id=message.buffer_id, in_port=in_port, actions=actions,
        data=message.data if is_whole else None)


if __name__ == "__main__":
    port, host = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    cfg.CONF(project="os_ken", args=["--ofp-listen-host", host, "--ofp-tcp-listen-port", port])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", "__main__"])
