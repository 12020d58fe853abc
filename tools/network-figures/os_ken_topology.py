"""os-ken's own link discovery, which logs when each switch joined and each link was known, in the format of our log."""

import datetime
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller.handler import set_ev_cls
from os_ken.ofproto import ofproto_v1_3
from os_ken.topology import event, switches  # noqa: F401: the import makes its options known


class Told(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(event.EventSwitchEnter)
    def switch_joined(self, told):
        tell(f"switch joined dp_id={told.switch.dp.id:016x}")

    @set_ev_cls(event.EventLinkAdd)
    def link_up(self, told):
        tell(f"link up link={end(told.link.src)} -> {end(told.link.dst)}")


def end(port):
    return f"{port.dpid:016x}:{port.port_no}"


def tell(sentence):
    print(datetime.datetime.now(datetime.timezone.utc).isoformat(), sentence, flush=True)


if __name__ == "__main__":
    listen = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]]
    cfg.CONF(project="os_ken", args=[*listen, "--observe-links"])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", "os_ken.topology.switches", "__main__"])
