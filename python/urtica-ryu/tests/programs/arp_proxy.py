"""An ARP proxy: answers for hosts that it knows, and floods other requests once in a while."""

import time

from ryu.lib.packet import arp, ether_types, ethernet, packet
from switching import Switching

FLOOD_INTERVAL_S = 5


class ArpProxy(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.hosts = {}
        self.flooded = {}

    def configure(self, dp):
        ofp, parser = dp.ofproto, dp.ofproto_parser
        up = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        self.add_flow(dp, 10, parser.OFPMatch(eth_type=ether_types.ETH_TYPE_ARP), up)

    def handle(self, dp, in_port, pkt, eth):
        found = pkt.get_protocol(arp.arp)
        if found is None:
            self.switch(dp, in_port, pkt, eth)
            return
        self.tables.setdefault(dp.id, {})[eth.src] = in_port
        self.hosts[found.src_ip] = found.src_mac
        known = self.hosts.get(found.dst_ip)
        if found.opcode == arp.ARP_REQUEST and known:
            self.answer(dp, in_port, found, known)
        elif found.opcode == arp.ARP_REQUEST:
            self.flood(dp, in_port, found, pkt)
        else:
            port = self.tables[dp.id].get(found.dst_mac)
            if port is not None:
                self.send_packet(dp, in_port, [dp.ofproto_parser.OFPActionOutput(port)], pkt.data)

    def answer(self, dp, in_port, request, mac):
        reply = packet.Packet()
        reply.add_protocol(ethernet.ethernet(ethertype=ether_types.ETH_TYPE_ARP, dst=request.src_mac, src=mac))
        reply.add_protocol(arp.arp_ip(arp.ARP_REPLY, mac, request.dst_ip, request.src_mac, request.src_ip))
        reply.serialize()
        self.send_packet(dp, dp.ofproto.OFPP_CONTROLLER, [dp.ofproto_parser.OFPActionOutput(in_port)], reply.data)

    def flood(self, dp, in_port, request, pkt):
        key = (dp.id, request.src_ip, request.dst_ip)
        now = time.time()
        if now - self.flooded.get(key, 0) < FLOOD_INTERVAL_S:
            return
        self.flooded[key] = now
        self.send_packet(dp, in_port, [dp.ofproto_parser.OFPActionOutput(dp.ofproto.OFPP_FLOOD)], pkt.data)
