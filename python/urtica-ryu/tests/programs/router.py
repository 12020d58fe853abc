"""A router between subnets: answers ARP and pings at its addresses, asks for hosts, and rewrites addresses by entries."""

from ryu.lib.packet import arp, ether_types, ethernet, icmp, in_proto, ipv4, packet
from switching import Switching

# The router's address in each subnet, its hardware address, and the port of switch 1.
INTERFACES = {
    1: ("10.0.1.254", "02:00:00:00:00:01"),
    2: ("10.0.2.254", "02:00:00:00:00:02"),
    3: ("10.0.3.254", "02:00:00:00:00:03"),
}
BITS = 24
MAX_WAITING = 8


def subnet(address):
    return address.rsplit(".", 1)[0]


class Router(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.hosts = {}
        self.waiting = {}

    def configure(self, dp):
        ofp, parser = dp.ofproto, dp.ofproto_parser
        up = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        for address, _ in INTERFACES.values():
            self.add_flow(dp, 100, parser.OFPMatch(eth_type=ether_types.ETH_TYPE_IP, ipv4_dst=address), up)
            net = (f"{subnet(address)}.0", "255.255.255.0")
            self.add_flow(dp, 5, parser.OFPMatch(eth_type=ether_types.ETH_TYPE_IP, ipv4_dst=net), up)

    def handle(self, dp, in_port, pkt, eth):
        found, ip = pkt.get_protocol(arp.arp), pkt.get_protocol(ipv4.ipv4)
        if found is not None:
            self.handle_arp(dp, in_port, found)
        elif ip is not None and ip.dst in [address for address, _ in INTERFACES.values()]:
            self.handle_ping(dp, in_port, pkt, eth, ip)
        elif ip is not None:
            self.route(dp, in_port, pkt, ip)

    def send(self, dp, port, *protocols):
        made = packet.Packet()
        for protocol in protocols:
            made.add_protocol(protocol)
        made.serialize()
        self.send_packet(dp, dp.ofproto.OFPP_CONTROLLER, [dp.ofproto_parser.OFPActionOutput(port)], made.data)

    def handle_arp(self, dp, in_port, found):
        address, mac = INTERFACES[in_port]
        if subnet(found.src_ip) == subnet(address):
            self.learn(dp, in_port, found.src_ip, found.src_mac)
        if found.opcode == arp.ARP_REQUEST and found.dst_ip == address:
            self.send(
                dp,
                in_port,
                ethernet.ethernet(found.src_mac, mac, ether_types.ETH_TYPE_ARP),
                arp.arp(opcode=arp.ARP_REPLY, src_mac=mac, src_ip=address, dst_mac=found.src_mac, dst_ip=found.src_ip),
            )

    def learn(self, dp, port, address, mac):
        if self.hosts.get(address) == (port, mac):
            return
        self.hosts[address] = (port, mac)
        parser = dp.ofproto_parser
        actions = self.actions(dp, address)
        self.add_flow(dp, 50, parser.OFPMatch(eth_type=ether_types.ETH_TYPE_IP, ipv4_dst=address), actions, idle_timeout=300)
        for in_port, data in self.waiting.pop(address, []):
            self.send_packet(dp, in_port, actions, data)

    def actions(self, dp, address):
        parser = dp.ofproto_parser
        port, mac = self.hosts[address]
        return [
            parser.OFPActionDecNwTtl(),
            parser.OFPActionSetField(eth_src=INTERFACES[port][1]),
            parser.OFPActionSetField(eth_dst=mac),
            parser.OFPActionOutput(port),
        ]

    def handle_ping(self, dp, in_port, pkt, eth, ip):
        echo = pkt.get_protocol(icmp.icmp)
        if echo is None or echo.type != icmp.ICMP_ECHO_REQUEST:
            return
        self.send(
            dp,
            in_port,
            ethernet.ethernet(eth.src, eth.dst, ether_types.ETH_TYPE_IP),
            ipv4.ipv4(src=ip.dst, dst=ip.src, proto=in_proto.IPPROTO_ICMP, identification=ip.identification),
            icmp.icmp(icmp.ICMP_ECHO_REPLY, icmp.ICMP_ECHO_REPLY_CODE, 0, echo.data),
        )

    def route(self, dp, in_port, pkt, ip):
        if ip.dst in self.hosts:
            self.send_packet(dp, in_port, self.actions(dp, ip.dst), pkt.data)
            return
        port = next((port for port, (address, _) in INTERFACES.items() if subnet(address) == subnet(ip.dst)), None)
        if port is None:
            self.unreachable(dp, in_port, pkt, ip)
            return
        queue = self.waiting.setdefault(ip.dst, [])
        if len(queue) < MAX_WAITING:
            queue.append((in_port, pkt.data))
        address, mac = INTERFACES[port]
        self.send(
            dp,
            port,
            ethernet.ethernet("ff:ff:ff:ff:ff:ff", mac, ether_types.ETH_TYPE_ARP),
            arp.arp(opcode=arp.ARP_REQUEST, src_mac=mac, src_ip=address, dst_mac="00:00:00:00:00:00", dst_ip=ip.dst),
        )

    def unreachable(self, dp, in_port, pkt, ip):
        address, mac = INTERFACES[in_port]
        eth = pkt.get_protocol(ethernet.ethernet)
        quoted = bytes(pkt.data[14 : 14 + 28])
        self.send(
            dp,
            in_port,
            ethernet.ethernet(eth.src, mac, ether_types.ETH_TYPE_IP),
            ipv4.ipv4(src=address, dst=ip.src, proto=in_proto.IPPROTO_ICMP),
            icmp.icmp(icmp.ICMP_DEST_UNREACH, icmp.ICMP_HOST_UNREACH_CODE, 0, icmp.dest_unreach(data=quoted)),
        )
