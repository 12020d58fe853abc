"""Quality of service: meters for guests, queues and markings for voice and video, in a second table."""

from ryu.lib.packet import ether_types, in_proto
from switching import Switching

# Rate and burst in kbit/s, by meter.
METERS = {1: (1000, 100), 2: (64, 10)}
GUESTS = "10.0.0.4"
VOICE_PORTS = (5060, 5061)
VOICE_QUEUE, VIDEO_QUEUE = 1, 2
EXPEDITED, ASSURED = 46, 34


class Qos(Switching):
    def configure(self, dp):
        ofp, parser = dp.ofproto, dp.ofproto_parser
        for meter, (rate, burst) in METERS.items():
            bands = [parser.OFPMeterBandDrop(rate=rate, burst_size=burst)]
            flags = ofp.OFPMF_KBPS | ofp.OFPMF_BURST
            dp.send_msg(parser.OFPMeterMod(dp, command=ofp.OFPMC_ADD, flags=flags, meter_id=meter, bands=bands))
        onward = [parser.OFPInstructionGotoTable(1)]
        ip = {"eth_type": ether_types.ETH_TYPE_IP}
        # The first table marks and limits, the second one switches.
        self.add_flow(dp, 0, parser.OFPMatch(), [], before=onward)
        self.add_flow(
            dp, 30, parser.OFPMatch(ipv4_src=GUESTS, **ip), [], before=[parser.OFPInstructionMeter(1, ofp.OFPIT_METER), *onward]
        )
        self.add_flow(
            dp,
            40,
            parser.OFPMatch(ip_proto=in_proto.IPPROTO_ICMP, **ip),
            [],
            before=[parser.OFPInstructionMeter(2, ofp.OFPIT_METER), *onward],
        )
        for port in VOICE_PORTS:
            self.mark(dp, VOICE_QUEUE, EXPEDITED, udp_dst=port, ip_proto=in_proto.IPPROTO_UDP, **ip)
        self.mark(dp, VIDEO_QUEUE, ASSURED, tcp_src=554, ip_proto=in_proto.IPPROTO_TCP, **ip)
        up = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        self.add_flow(dp, 0, parser.OFPMatch(), up, table_id=1)

    def mark(self, dp, queue, dscp, **fields):
        parser = dp.ofproto_parser
        actions = [parser.OFPActionSetField(ip_dscp=dscp), parser.OFPActionSetQueue(queue)]
        onward = [parser.OFPInstructionGotoTable(1)]
        self.add_flow(dp, 50, parser.OFPMatch(**fields), actions, before=onward)

    def options(self, dp, pkt):
        return {"table_id": 1, "idle_timeout": 120}
