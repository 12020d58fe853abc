"""Ryu programs that record what they see in a simulated network, and some that are wrong."""

import queue
import random
import threading
import time

from ryu import cfg
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3

cfg.CONF.register_cli_opts([cfg.IntOpt("clock-interval", default=10, help="the seconds between two entries of the log")])


class Clocks(app_manager.RyuApp):
    """Sleeps in tasks and threads, and keeps the times by several clocks."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = []
        hub.spawn(self.loop)
        threading.Thread(target=self.wait).start()

    def loop(self):
        start = time.time()
        while True:
            hub.sleep(self.CONF.clock_interval)
            self.log.append(("slept", round(time.time() - start, 3)))

    def wait(self):
        start, items = time.monotonic(), queue.Queue()
        time.sleep(1)
        try:
            items.get(timeout=5)
        except queue.Empty:
            self.log.append(("empty", round(time.monotonic() - start, 3)))
        try:
            with hub.Timeout(7):
                hub.Event().wait()
        except hub.Timeout:
            self.log.append(("timeout", round(time.monotonic() - start, 3)))


class Drawing(app_manager.RyuApp):
    """Floods each packet after a time that it draws."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = []

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state(self, ev):
        self.log.append((round(time.time(), 9), ev.state, ev.datapath.id))
        if ev.state == MAIN_DISPATCHER:
            parser, ofproto = ev.datapath.ofproto_parser, ev.datapath.ofproto
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
            apply = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
            ev.datapath.send_msg(parser.OFPFlowMod(ev.datapath, priority=0, match=parser.OFPMatch(), instructions=apply))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        self.log.append((round(time.time(), 9), ev.msg.xid, ev.msg.datapath.id, ev.msg.match["in_port"], random.random()))
        hub.spawn(self.flood, ev.msg, random.uniform(0, 0.01))

    def flood(self, msg, delay):
        hub.sleep(delay)
        datapath, parser = msg.datapath, msg.datapath.ofproto_parser
        actions = [parser.OFPActionOutput(datapath.ofproto.OFPP_FLOOD)]
        datapath.send_msg(
            parser.OFPPacketOut(datapath, datapath.ofproto.OFP_NO_BUFFER, msg.match["in_port"], actions, bytes(msg.data))
        )


class Faulty(Drawing):
    """Raises in a handler and in a task."""

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def a_first_handler(self, ev):
        hub.spawn(self.divide)
        raise KeyError("on purpose")

    def divide(self):
        return 1 / 0


class Raising(app_manager.RyuApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        raise LookupError("no configuration")


class Slow(app_manager.RyuApp):
    """Takes simulated seconds to start."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.is_open = False
        hub.sleep(300)
        self.is_open = True


class Waiting(app_manager.RyuApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        hub.Event().wait()


class Blocking(Drawing):
    """Runs for ever when a packet comes."""

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        while not self.is_released:
            pass

    is_released = False


class Yielding(app_manager.RyuApp):
    """Never lets time pass."""

    is_released = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        hub.spawn(self.spin)

    def spin(self):
        while not self.is_released:
            hub.sleep(0)
