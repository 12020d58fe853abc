"""The learning switch of the benchmark on os-ken, which requests the role of master from each 1.3 switch: it first queries
the current generation, then requests the role with the next one. Argument: the port to listen on."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../bench/src"))

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3
from os_ken_learning_switch import LearningSwitch


class Master(LearningSwitch):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def ask_for_generation(self, event):
        datapath = event.msg.datapath
        request = datapath.ofproto_parser.OFPRoleRequest
        datapath.send_msg(request(datapath, datapath.ofproto.OFPCR_ROLE_NOCHANGE, 0))

    @set_ev_cls(ofp_event.EventOFPRoleReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def ask_for_role(self, event):
        datapath, role = event.msg.datapath, event.msg.role
        if role != datapath.ofproto.OFPCR_ROLE_MASTER:
            generation = (event.msg.generation_id + 1) % 2**64
            request = datapath.ofproto_parser.OFPRoleRequest
            datapath.send_msg(request(datapath, datapath.ofproto.OFPCR_ROLE_MASTER, generation))


if __name__ == "__main__":
    cfg.CONF(project="os_ken", args=["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", "__main__"])
