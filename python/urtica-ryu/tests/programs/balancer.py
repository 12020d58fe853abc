"""A load balancer: clients of one address are given servers in turn, by rewritten addresses both ways."""

import itertools

from ryu.lib.packet import arp, ether_types, ethernet, ipv4, packet, tcp
from switching import Switching

VIRTUAL_IP, VIRTUAL_MAC = "10.0.0.100", "02:00:00:00:01:00"
# Address, hardware address, port of switch 1.
SERVERS = [("10.0.0.3", "00:00:00:00:00:03", 3), ("10.0.0.4", "00:00:00:00:00:04", 4)]


class Balancer(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.turns = itertools.cycle(SERVERS)
        self.chosen = {}

    def handle(self, dp, in_port, pkt, eth):
        request = pkt.get_protocol(arp.arp)
        ip = pkt.get_protocol(ipv4.ipv4)
        if request is not None and request.opcode == arp.ARP_REQUEST and request.dst_ip == VIRTUAL_IP:
            self.answer(dp, in_port, request)
        elif ip is not None and ip.dst == VIRTUAL_IP:
            self.balance(dp, in_port, pkt, eth, ip)
        else:
            self.switch(dp, in_port, pkt, eth)

    def answer(self, dp, in_port, request):
        reply = packet.Packet()
        reply.add_protocol(ethernet.ethernet(dst=request.src_mac, src=VIRTUAL_MAC, ethertype=ether_types.ETH_TYPE_ARP))
        reply.add_protocol(
            arp.arp(
                opcode=arp.ARP_REPLY, src_mac=VIRTUAL_MAC, src_ip=VIRTUAL_IP, dst_mac=request.src_mac, dst_ip=request.src_ip
            )
        )
        reply.serialize()
        self.send_packet(dp, dp.ofproto.OFPP_CONTROLLER, [dp.ofproto_parser.OFPActionOutput(in_port)], reply.data)

    def balance(self, dp, in_port, pkt, eth, ip):
        parser = dp.ofproto_parser
        segment = pkt.get_protocol(tcp.tcp)
        ports = (segment.src_port, segment.dst_port) if segment else (0, 0)
        client = (ip.src, *ports)
        address, mac, port = self.chosen.setdefault(client, None) or next(self.turns)
        self.chosen[client] = (address, mac, port)
        there = [
            parser.OFPActionSetField(eth_dst=mac),
            parser.OFPActionSetField(ipv4_dst=address),
            parser.OFPActionOutput(port),
        ]
        back = [
            parser.OFPActionSetField(eth_src=VIRTUAL_MAC),
            parser.OFPActionSetField(ipv4_src=VIRTUAL_IP),
            parser.OFPActionOutput(in_port),
        ]
        both = {"eth_type": ether_types.ETH_TYPE_IP, "ip_proto": ip.proto}
        tcp_there = {"tcp_src": ports[0], "tcp_dst": ports[1]} if segment else {}
        tcp_back = {"tcp_src": ports[1], "tcp_dst": ports[0]} if segment else {}
        # The way back first, so that no answer is early.
        self.add_flow(
            dp, 20, parser.OFPMatch(in_port=port, ipv4_src=address, ipv4_dst=ip.src, **both, **tcp_back), back, idle_timeout=10
        )
        self.add_flow(
            dp,
            20,
            parser.OFPMatch(in_port=in_port, eth_dst=VIRTUAL_MAC, ipv4_src=ip.src, ipv4_dst=VIRTUAL_IP, **both, **tcp_there),
            there,
            idle_timeout=10,
        )
        self.send_packet(dp, in_port, there, pkt.data)
