"""Shortest paths on the topology that ryu.topology finds; needs --observe-links."""

from collections import deque

from ryu.controller.handler import set_ev_cls
from ryu.lib.packet import arp
from ryu.topology import event
from ryu.topology.api import get_link, get_switch
from switching import Switching


class Paths(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # The port towards a neighbour, by switch.
        self.graph = {}
        self.datapaths = {}
        self.hosts = {}

    @set_ev_cls([event.EventSwitchEnter, event.EventSwitchLeave, event.EventLinkAdd, event.EventLinkDelete])
    def topology_changed(self, ev):
        switches, links = get_switch(self, None), get_link(self, None)
        self.datapaths = {switch.dp.id: switch.dp for switch in switches}
        self.graph = {dpid: {} for dpid in self.datapaths}
        for link in links:
            if link.src.dpid in self.graph and link.dst.dpid in self.graph:
                self.graph[link.src.dpid][link.dst.dpid] = link.src.port_no

    def handle(self, dp, in_port, pkt, eth):
        if dp.id not in self.datapaths:
            return
        if in_port in self.graph[dp.id].values():
            # From another switch, whose entry was there before this one's.
            if eth.dst in self.hosts:
                self.deliver(*self.hosts[eth.dst], pkt.data)
            return
        self.hosts[eth.src] = (dp.id, in_port)
        if eth.dst in self.hosts:
            self.connect(eth.src, eth.dst)
            self.deliver(*self.hosts[eth.dst], pkt.data)
        elif pkt.get_protocol(arp.arp) is not None:
            for dpid, port in self.edges():
                if (dpid, port) != (dp.id, in_port):
                    self.deliver(dpid, port, pkt.data)

    def deliver(self, dpid, port, data):
        dp = self.datapaths[dpid]
        self.send_packet(dp, dp.ofproto.OFPP_CONTROLLER, [dp.ofproto_parser.OFPActionOutput(port)], data)

    def edges(self):
        """The ports that lead to no other switch."""
        for switch in sorted(get_switch(self, None), key=lambda switch: switch.dp.id):
            inner = self.graph[switch.dp.id].values()
            for port in sorted(switch.ports, key=lambda port: port.port_no):
                if port.port_no not in inner:
                    yield switch.dp.id, port.port_no

    def path(self, start, end):
        """The switches from one to another."""
        before, queue = {start: None}, deque([start])
        while queue:
            dpid = queue.popleft()
            for neighbour in sorted(self.graph[dpid]):
                if neighbour not in before:
                    before[neighbour] = dpid
                    queue.append(neighbour)
        found = []
        while end is not None:
            found.append(end)
            end = before.get(end)
        return found[::-1]

    def connect(self, source, destination):
        """Adds entries for both directions, from the end of the path on."""
        for eth_src, eth_dst in ((destination, source), (source, destination)):
            path = self.path(self.hosts[eth_src][0], self.hosts[eth_dst][0])
            if path[0] != self.hosts[eth_src][0]:
                return
            ports = [self.graph[dpid][following] for dpid, following in zip(path, path[1:], strict=False)]
            ports.append(self.hosts[eth_dst][1])
            for dpid, port in reversed(list(zip(path, ports, strict=True))):
                dp = self.datapaths[dpid]
                match = dp.ofproto_parser.OFPMatch(eth_src=eth_src, eth_dst=eth_dst)
                self.add_flow(dp, 10, match, [dp.ofproto_parser.OFPActionOutput(port)], idle_timeout=30)
