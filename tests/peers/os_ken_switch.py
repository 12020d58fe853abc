"""The benchmark's learning switch of os-ken, and a table-miss entry, without which 1.3's switches drop what matches nothing.

Arguments: the port to listen on."""
import pathlib
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

LEARNING_SWITCH = pathlib.Path(__file__).parents[2] / "crates/bench/src/os_ken_learning_switch.py"


class TableMiss(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_features(self, event):
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            return
        actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
        instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(parser.OFPFlowMod(datapath=datapath, priority=0, instructions=instructions))


if __name__ == "__main__":
    sys.path.insert(0, str(LEARNING_SWITCH.parent))
    cfg.CONF(project="os_ken", args=["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", LEARNING_SWITCH.stem, "__main__"])
