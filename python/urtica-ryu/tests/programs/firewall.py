"""A firewall: rules by addresses and ports, first match wins; the rest is switched by address and protocol."""

from ryu.lib.packet import ether_types, in_proto, ipv4, tcp, udp
from switching import Switching

# Action, source, destination, protocol, port of the destination.
RULES = [
    ("allow", "10.0.0.1", "10.0.0.3", in_proto.IPPROTO_TCP, 80),
    ("deny", "10.0.0.0/30", "10.0.0.3", None, None),
    ("deny", None, "10.0.0.0/24", in_proto.IPPROTO_TCP, 23),
    ("deny", "10.0.0.4", None, in_proto.IPPROTO_UDP, None),
]


class Firewall(Switching):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.denied = 0

    def configure(self, dp):
        for number, rule in enumerate(RULES):
            if rule[0] == "deny":
                self.add_flow(dp, 1000 - number, self.rule_match(dp, *rule[1:]), [])
            else:
                # Its packets come to the controller, and are switched.
                ofp, parser = dp.ofproto, dp.ofproto_parser
                up = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
                self.add_flow(dp, 1000 - number, self.rule_match(dp, *rule[1:]), up, cookie=number)

    def rule_match(self, dp, source, destination, protocol, port):
        fields = {"eth_type": ether_types.ETH_TYPE_IP}
        for name, address in (("ipv4_src", source), ("ipv4_dst", destination)):
            if address is not None:
                fields[name] = (address.split("/")[0], self.mask(address))
        if protocol is not None:
            fields["ip_proto"] = protocol
        if port is not None:
            fields["tcp_dst" if protocol == in_proto.IPPROTO_TCP else "udp_dst"] = port
        return dp.ofproto_parser.OFPMatch(**fields)

    @staticmethod
    def mask(address):
        bits = int(address.split("/")[1]) if "/" in address else 32
        value = 0xFFFFFFFF << (32 - bits) & 0xFFFFFFFF
        return ".".join(str(value >> shift & 0xFF) for shift in (24, 16, 8, 0))

    def match(self, dp, in_port, pkt, eth):
        fields = {"in_port": in_port, "eth_src": eth.src, "eth_dst": eth.dst, "eth_type": eth.ethertype}
        ip = pkt.get_protocol(ipv4.ipv4)
        if ip is not None:
            fields.update(ipv4_src=ip.src, ipv4_dst=ip.dst, ip_proto=ip.proto)
            for name, protocol in (("tcp", tcp.tcp), ("udp", udp.udp)):
                found = pkt.get_protocol(protocol)
                if found is not None:
                    fields.update({f"{name}_src": found.src_port, f"{name}_dst": found.dst_port})
        return dp.ofproto_parser.OFPMatch(**fields)

    def options(self, dp, pkt):
        ip = pkt.get_protocol(ipv4.ipv4)
        return {"idle_timeout": 20} if ip is None else {"idle_timeout": 60, "hard_timeout": 600}
