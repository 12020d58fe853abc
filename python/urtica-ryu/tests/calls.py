"""Constructor calls of Ryu's interface, and what comes of them, as JSON: `python calls.py PACKAGE`, which is ryu or os_ken.

The differential test runs it with both.
"""

import contextlib
import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import calls_nicira  # noqa: E402
import generated  # noqa: E402

#: The number of generated messages of each version.
GENERATED = 100

CALLS_1_3 = """
OFPHello(dp)
OFPEchoRequest(dp, b"hello")
OFPEchoReply(dp, b"")
OFPErrorMsg(dp, 1, 2, b"12345678")
OFPErrorMsg(dp, type_=0xFFFF, exp_type=5, experimenter=0x2320, data=b"1234")
OFPExperimenter(dp, 0x2320, 5, b"data")
OFPFeaturesRequest(dp)
OFPGetConfigRequest(dp)
OFPSetConfig(dp, ofp.OFPC_FRAG_NORMAL, 128)
OFPBarrierRequest(dp)
OFPBarrierReply(dp)
OFPRoleRequest(dp, ofp.OFPCR_ROLE_MASTER, 7)
OFPGetAsyncRequest(dp)
OFPSetAsync(dp, [1, 2], [3, 4], [5, 6])
OFPPacketOut(dp, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, [OFPActionOutput(ofp.OFPP_FLOOD)], b"x" * 60)
OFPPacketOut(datapath=dp, buffer_id=7, in_port=1, actions=[])
OFPFlowMod(dp)
OFPFlowMod(dp, 1, 2, 3, ofp.OFPFC_DELETE, 4, 5, 6, 7, ofp.OFPP_ANY, ofp.OFPG_ANY, ofp.OFPFF_SEND_FLOW_REM)
OFPFlowMod(dp, match=OFPMatch(in_port=1, eth_dst="00:00:00:00:00:02"))
OFPFlowMod(dp, match=OFPMatch(ipv4_src=("10.1.2.3", "255.0.0.0"), eth_type=0x800))
OFPFlowMod(dp, match=OFPMatch(ipv4_dst="10.1.0.0/16", eth_type=0x800, ip_proto=6, tcp_dst=80))
OFPFlowMod(dp, match=OFPMatch(eth_type=0x86DD, ipv6_src="2001:db8::1", ipv6_dst=("2001:db8::", "ffff:ffff::"), ipv6_flabel=7))
OFPFlowMod(dp, match=OFPMatch(eth_type=0x806, arp_op=1, arp_spa="10.0.0.1", arp_tpa="10.0.0.2", arp_sha="02:00:00:00:00:01"))
OFPFlowMod(dp, match=OFPMatch(vlan_vid=(0x1000, 0x1000), vlan_pcp=3))
OFPFlowMod(dp, match=OFPMatch(vlan_vid=0x1005, metadata=(0x1234, 0xFFFF), tunnel_id=9, in_phy_port=3))
OFPFlowMod(dp, match=OFPMatch(eth_dst=("01:00:00:00:00:00", "01:00:00:00:00:00")))
OFPFlowMod(dp, match=OFPMatch(mpls_label=1000, mpls_tc=1, mpls_bos=1, pbb_isid=0x123456, eth_type=0x8847))
OFPFlowMod(dp, match=OFPMatch(icmpv6_type=135, ipv6_nd_target="fe80::1", ipv6_nd_sll="02:00:00:00:00:01", ipv6_exthdr=(1, 3)))
OFPFlowMod(dp, instructions=[OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [OFPActionOutput(1), OFPActionOutput(2, 0)])])
OFPFlowMod(dp, instructions=[OFPInstructionGotoTable(2), OFPInstructionWriteMetadata(1, 0xFF), OFPInstructionMeter(3)])
OFPFlowMod(dp, instructions=[OFPInstructionActions(ofp.OFPIT_CLEAR_ACTIONS, [])])
with_actions(OFPActionSetField(eth_src="02:00:00:00:00:01"), OFPActionSetField(ipv4_dst="10.0.0.1"), OFPActionSetField(vlan_vid=0x1005))
with_actions(OFPActionSetField(ipv6_src="::1"), OFPActionSetField(tcp_src=80), OFPActionSetField(ip_dscp=10))
with_actions(OFPActionPushVlan(), OFPActionPopVlan(), OFPActionPushVlan(0x88A8), OFPActionGroup(7), OFPActionSetQueue(3))
with_actions(OFPActionPushMpls(), OFPActionPopMpls(), OFPActionSetMplsTtl(3), OFPActionDecMplsTtl())
with_actions(OFPActionSetNwTtl(64), OFPActionDecNwTtl(), OFPActionCopyTtlOut(), OFPActionCopyTtlIn(), OFPActionPushPbb(0x88E7), OFPActionPopPbb())
OFPGroupMod(dp, ofp.OFPGC_ADD, ofp.OFPGT_SELECT, 5, [OFPBucket(10, 1, 2, [OFPActionOutput(1)]), OFPBucket(20, actions=[OFPActionOutput(2)])])
OFPGroupMod(dp, command=ofp.OFPGC_DELETE, group_id=ofp.OFPG_ALL)
OFPMeterMod(dp, ofp.OFPMC_ADD, ofp.OFPMF_KBPS, 3, [OFPMeterBandDrop(1000, 10), OFPMeterBandDscpRemark(500, 5, 1)])
OFPMeterMod(dp, command=ofp.OFPMC_DELETE, meter_id=3)
OFPTableMod(dp, 1, 3)
OFPPortMod(dp, 3, "02:00:00:00:00:01", 1, 1, 0x40)
OFPQueueGetConfigRequest(dp, 3)
OFPDescStatsRequest(dp, 0)
OFPFlowStatsRequest(dp)
OFPFlowStatsRequest(dp, 0, 1, 2, 3, 4, 5, OFPMatch(in_port=1))
OFPAggregateStatsRequest(dp, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, OFPMatch(eth_type=0x800))
OFPTableStatsRequest(dp, 0)
OFPPortStatsRequest(dp, 0, ofp.OFPP_ANY)
OFPPortStatsRequest(dp, port_no=3)
OFPQueueStatsRequest(dp, 0, 1, 2)
OFPGroupStatsRequest(dp, 0, 7)
OFPGroupDescStatsRequest(dp, 0)
OFPGroupFeaturesStatsRequest(dp, 0)
OFPMeterStatsRequest(dp, 0, 3)
OFPMeterConfigStatsRequest(dp)
OFPMeterFeaturesStatsRequest(dp, 0)
OFPPortDescStatsRequest(dp, 0)
OFPTableFeaturesStatsRequest(dp, 0, [])
"""

CALLS_1_0 = """
OFPHello(dp)
OFPEchoRequest(dp, b"hello")
OFPErrorMsg(dp, 1, 2, b"12345678")
OFPFeaturesRequest(dp)
OFPSetConfig(dp, 0, 128)
OFPBarrierRequest(dp)
OFPPacketOut(dp, 0xFFFFFFFF, ofp.OFPP_NONE, [OFPActionOutput(ofp.OFPP_FLOOD)], b"x" * 60)
OFPPacketOut(datapath=dp, buffer_id=7, in_port=1, actions=[])
OFPFlowMod(dp, OFPMatch(), 0, ofp.OFPFC_DELETE)
OFPFlowMod(dp, match=OFPMatch(in_port=1, dl_dst="00:00:00:00:00:02", dl_src=b"123456"), cookie=5, flags=ofp.OFPFF_SEND_FLOW_REM)
OFPFlowMod(dp, match=OFPMatch(dl_type=0x800, nw_src="10.1.0.0", nw_src_mask=16, nw_dst=0x0A000001, nw_proto=6, tp_dst=80))
OFPFlowMod(dp, match=OFPMatch(dl_vlan=5, dl_vlan_pcp=3, nw_tos=8, tp_src=53, wildcards=7))
with_actions(OFPActionOutput(1), OFPActionOutput(2, 0), OFPActionVlanVid(5), OFPActionVlanPcp(3), OFPActionStripVlan())
with_actions(OFPActionSetDlSrc("02:00:00:00:00:01"), OFPActionSetDlDst(b"123456"), OFPActionSetNwSrc("10.0.0.1"), OFPActionSetNwDst(5))
with_actions(OFPActionSetNwTos(8), OFPActionSetTpSrc(80), OFPActionSetTpDst(81), OFPActionEnqueue(1, 2))
OFPPortMod(dp, 3, "02:00:00:00:00:01", 1, 1, 0x40)
OFPDescStatsRequest(dp, 0)
OFPFlowStatsRequest(dp, 0, OFPMatch(in_port=1), 0xFF, ofp.OFPP_NONE)
OFPAggregateStatsRequest(dp, 0, OFPMatch(), 0xFF, ofp.OFPP_NONE)
OFPTableStatsRequest(dp, 0)
OFPPortStatsRequest(dp, 0, ofp.OFPP_NONE)
OFPQueueStatsRequest(dp, 0, 1, 2)
OFPQueueGetConfigRequest(dp, 3)
NXTRoleRequest(dp, 2)
NXTSetFlowFormat(dp, nx.NXFF_NXM)
NXTSetFlowFormat(datapath=dp, flow_format=0)
NXTSetPacketInFormat(dp, packet_in_format=nx.NXPIF_NXM)
NXTFlowModTableId(dp, set_=1)
NXTFlowAge(dp)
NXTSetAsyncConfig(dp, [1, 2], [3, 4], [5, 6])
NXTSetControllerId(dp, controller_id=7)
"""

#: Messages of switches: version, type, body in hexadecimal; `.8` is 8 bytes that count up, `0*8` 8 zeros.
FRAMES = """
4 0
4 0 0001000800000012
4 1 00010002 .8
4 1 ffff0001 00002320 .4
4 2 .3
4 6 .8 00000100 fe000000 0000004f 00000000
4 8 .4
4 10 00000007 003c 01 02 .8 0001000c80000004 00000003 00000000 0000 .60
4 10 ffffffff 0040 00 00 .8 00010016 80000004 00000003 80000606 010203040506 0000 0000 .30
4 11 .8 .2 01 02 .4 .4 .2 .2 .8 .8 0001000c80000004 00000003 00000000
4 12 02 00000000000000 00000001 00000000 020000000001 0000 73312d65746831000000000000000000 .32
4 19 0000 0000 00000000 4e69636972610000 0*248 4f5653 0*253 0*256 33000000 0*28 7331 0*254
4 19 0001 0001 00000000 0060 02 00 .4 .4 .2 .2 .2 .2 00000000 .8 .8 .8 0001000c80000004 00000003 00000000 0004001800000000 0000001000000005ffff000000000000 0001000802000000
4 19 0001 0000 00000000
4 19 0002 0000 00000000 .8 .8 .4 00000000
4 19 0003 0000 00000000 01000000 .20 02000000 .20
4 19 0004 0000 00000000 00000001 00000000 .104 00000002 00000000 .104
4 19 0005 0000 00000000 .40
4 19 0006 0000 00000000 0038 0000 .8 00000000 .8 .8 .8 .16
4 19 0007 0000 00000000 0020 0100 00000007 0018000a 00000001 ffffffff 00000000 0016000800000009
4 19 0008 0000 00000000 .40
4 19 0009 0000 00000000 00000003 0038 000000000000 .4 .8 .8 .8 .16
4 19 000a 0000 00000000 0018 0001 00000003 0001001000000064 0000000a00000000
4 19 000b 0000 00000000 .16
4 19 000c 0000 00000000 0068 07 0*5 616c6c 0*29 .8 .8 .4 .4 0000000800010004 0002000601020000 0004000800000004 0008000c8000070680001a0200000000
4 19 000d 0000 00000000 00000001 00000000 020000000001 0000 73312d65746831000000000000000000 .32
4 21
4 23 00000003 00000000 00000007 00000003 0020 000000000000 0001001000000000 0005000000000000
4 23 00000003 00000000 00000007 00000003 0028 000000000000 ffff0018 00000000 00002320 00000000 .8
4 25 00000002 00000000 .8
4 27 .24
1 0
1 1 00010002 .8
1 4 00002320 0000000b 00000002
1 4 00001111 .8
1 6 .8 00000100 fe000000 0000004f 00000fff 0001 020000000001 73312d65746831000000000000000000 .24
1 8 .4
1 10 00000007 003c 0003 01 00 .60
1 11 .40 .8 .2 01 00 .4 .4 .2 0000 .8 .8
1 12 02 00000000000000 0001 020000000001 73312d65746831000000000000000000 .24
1 17 0000 0000 4e69636972610000 0*248 4f5653 0*253 0*256 33000000 0*28 7331 0*254
1 17 0001 0001 0060 02 00 .40 .4 .4 .2 .2 .2 000000000000 .8 .8 .8 0000000800010002
1 17 0002 0000 .8 .8 .4 00000000
1 17 0003 0000 01000000 636c61737369666965720000 .20 .12 .16
1 17 0004 0000 0001 000000000000 .96
1 17 0005 0000 0001 0000 .28
1 19
"""


#: Packets: protocols, which are serialized together and parsed again.
PACKETS = """
ethernet.ethernet()
ethernet.ethernet("02:00:00:00:00:01", "02:00:00:00:00:02", 0x9000), b"payload"
ethernet.ethernet(ethertype=0x8100), vlan.vlan(3, 1, 100, 0x9000), b"payload"
ethernet.ethernet(ethertype=0x88A8), vlan.svlan(vid=5), vlan.vlan(vid=6, ethertype=0x806), arp.arp()
ethernet.ethernet(ethertype=0x806), arp.arp(opcode=2, src_mac="02:00:00:00:00:01", src_ip="10.0.0.1", dst_ip="10.0.0.2")
ethernet.ethernet(ethertype=0x806), arp.arp_ip(1, "02:00:00:00:00:01", "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2")
ethernet.ethernet(), ipv4.ipv4(proto=1, tos=4, identification=7, flags=2, ttl=64), icmp.icmp(8, 0, 0, icmp.echo(5, 6, b"ping"))
ethernet.ethernet(), ipv4.ipv4(proto=1), icmp.icmp(3, 1, 0, icmp.dest_unreach(0, 1400, b"x" * 28))
ethernet.ethernet(), ipv4.ipv4(proto=1), icmp.icmp(11, 0, 0, icmp.TimeExceeded(0, b"x" * 28))
ethernet.ethernet(), ipv4.ipv4(proto=17, src="10.1.2.3", dst="10.4.5.6"), udp.udp(53, 54), b"query" * 10
ethernet.ethernet(), ipv4.ipv4(proto=6), tcp.tcp(80, 81, 5, 6, 0, tcp.TCP_SYN | tcp.TCP_ACK, 1000), b"x" * 20
ethernet.ethernet(), ipv4.ipv4(proto=6, header_length=6, option=b"1234"), tcp.tcp(bits=tcp.TCP_SYN, option=[tcp.TCPOptionMaximumSegmentSize(1460)])
with_tcp(tcp.TCPOptionSACKPermitted(), tcp.TCPOptionTimestamps(1, 2), tcp.TCPOptionNoOperation(), tcp.TCPOptionWindowScale(7))
ethernet.ethernet(), ipv4.ipv4(proto=200, offset=5, flags=1), b"x" * 40
ethernet.ethernet(ethertype=0x86DD), ipv6.ipv6(nxt=17, src="fe80::1", dst="ff02::1", traffic_class=3, flow_label=5), udp.udp(1, 2), b"x" * 50
ethernet.ethernet(ethertype=0x86DD), ipv6.ipv6(), tcp.tcp(1, 2), b"x" * 50
ethernet.ethernet(), ipv4.ipv4(proto=17), udp.udp(68, 67), dhcp.dhcp(1, "02:00:00:00:00:01", dhcp.options([dhcp.option(53, b"\\1"), dhcp.option(55, b"\\1\\3\\6")]), xid=7)
ethernet.ethernet(), ipv4.ipv4(proto=17), udp.udp(67, 68), dhcp.dhcp(2, "02:00:00:00:00:01", xid=7, yiaddr="10.0.0.9", sname="server", flags=0x8000)
ethernet.ethernet(ethertype=0x8847), mpls.mpls(5, 1, 0, 3), mpls.mpls(6), ipv4.ipv4(proto=17), udp.udp(), b"x" * 10
ethernet.ethernet(), ipv4.ipv4(proto=2, ttl=1), igmp.igmp(0x16, 0, 0, "225.0.0.1")
ethernet.ethernet(), ipv4.ipv4(proto=2, ttl=1), igmp.igmp(igmp.IGMP_TYPE_QUERY, 100)
ethernet.ethernet(), ipv4.ipv4(proto=2, ttl=1), igmp.igmpv3_query(address="225.0.0.1", s_flg=1, qrv=3, qqic=7, srcs=["10.0.0.1", "10.0.0.2"])
ethernet.ethernet(), ipv4.ipv4(proto=2, ttl=1), igmp.igmpv3_report(records=[igmp.igmpv3_report_group(4, 0, 0, "225.0.0.1", ["10.0.0.1"]), igmp.igmpv3_report_group(3, address="225.0.0.2")])
with_icmpv6(128, icmpv6.echo(1, 2, b"ping"))
with_icmpv6(1, b"data" * 10)
with_icmpv6(131, icmpv6.mld(5, "ff02::1"))
with_icmpv6(133, icmpv6.nd_router_solicit(0, icmpv6.nd_option_sla(hw_src="02:00:00:00:00:01")))
with_icmpv6(134, icmpv6.nd_router_advert(64, 1, 2, 3, 4, [icmpv6.nd_option_pi(0, 64, 6, 1, 2, 0, "2001:db8::")]))
with_icmpv6(135, icmpv6.nd_neighbor(0, "fe80::1", icmpv6.nd_option_sla(hw_src="02:00:00:00:00:01")))
with_icmpv6(136, icmpv6.nd_neighbor(3, "fe80::1", icmpv6.nd_option_tla(hw_src="02:00:00:00:00:01")))
with_icmpv6(136, icmpv6.nd_neighbor(7, "fe80::1"))
with_icmpv6(130, icmpv6.mld(5, "ff02::1"))
with_icmpv6(130, icmpv6.mldv2_query(10, "ff02::1", 1, 2, 20, 0, ["fe80::1", "fe80::2"]))
with_icmpv6(130, icmpv6.mldv2_query())
with_icmpv6(143, icmpv6.mldv2_report(0, [icmpv6.mldv2_report_group(1, 0, 0, "ff08::1", []), icmpv6.mldv2_report_group(4, 1, 2, "ff08::2", ["fe80::1", "fe80::2"], b"abcd")]))
with_icmpv6(143, icmpv6.mldv2_report())
with_extensions(0, ipv6.hop_opts(200))
with_extensions(0, ipv6.hop_opts(200, 0, [ipv6.option(5, 2, b"\\0\\0"), ipv6.option(1, 0)]))
with_extensions(60, ipv6.dst_opts(200))
with_extensions(44, ipv6.fragment(200, 50, 1, 123))
with_extensions(44, ipv6.fragment(200, 0, 1, 123))
with_extensions(51, ipv6.auth(200, 4, 256, 1, b"\\xa0\\xe7\\xf8\\xab\\xf9\\x69\\x1a\\x8b\\xf3\\x9f\\x7c\\xae"))
with_extensions(51, ipv6.auth(200))
with_extensions(43, ipv6.routing_type3(200, 6, 3, 2, 0, 0, ["2001:db8:dead::1", "2001:db8:dead::2", "2001:db8:dead::3"]))
with_extensions(0, ipv6.hop_opts(44, 0, [ipv6.option(1, 4, bytes(4))]), ipv6.fragment(200, 0, 0, 1))
ethernet.ethernet(), ipv4.ipv4(proto=132), sctp.sctp(csum=1)
with_sctp()
with_sctp(sctp.chunk_data(1, 1, 1, 0, 5, 6, 7, 8, b"data"))
with_sctp(sctp.chunk_data(begin=1, tsn=1, payload_data=b"1234"), sctp.chunk_data(end=1, tsn=2, payload_data=b"5678"))
with_sctp(sctp.chunk_init(0, 0, 1, 2, 3, 4, 5))
with_sctp(sctp.chunk_init(init_tag=1, params=[sctp.param_ipv4("10.0.0.1"), sctp.param_ipv6("2001:db8::1"), sctp.param_cookie_preserve(5)]))
with_sctp(sctp.chunk_init(params=[sctp.param_ecn(), sctp.param_host_addr(b"host.example"), sctp.param_supported_addr([5, 6])]))
with_sctp(sctp.chunk_init_ack(0, 0, 1, 2, 3, 4, 5, [sctp.param_state_cookie(b"cookie"), sctp.param_unrecognized_param(b"\\xff\\xff\\x00\\x04")]))
with_sctp(sctp.chunk_sack(0, 0, 5, 6))
with_sctp(sctp.chunk_sack(0, 0, 5, 6, 2, 1, [[2, 3], [5, 6]], [9]))
with_sctp(sctp.chunk_sack(tsn_ack=1, gapack_num=1, gapacks=[[2, 3]]))
with_sctp(sctp.chunk_heartbeat(info=sctp.param_heartbeat(b"123")))
with_sctp(sctp.chunk_heartbeat_ack(info=sctp.param_heartbeat(b"12345678")))
with_sctp(sctp.chunk_abort())
with_sctp(sctp.chunk_abort(1, causes=[sctp.cause_user_initiated_abort(b"reason"), sctp.cause_protocol_violation(b"more")]))
with_sctp(sctp.chunk_shutdown(0, 0, 5))
with_sctp(sctp.chunk_shutdown_ack())
with_sctp(sctp.chunk_error(causes=[sctp.cause_invalid_stream_id(5), sctp.cause_out_of_resource(), sctp.cause_invalid_param()]))
with_sctp(sctp.chunk_error(causes=[sctp.cause_missing_param([5, 6], 2), sctp.cause_stale_cookie(b"\\0\\0\\1\\0")]))
with_sctp(sctp.chunk_error(causes=[sctp.cause_missing_param([1, 2, 3])]))
with_sctp(sctp.chunk_error(causes=[sctp.cause_unresolvable_addr(sctp.param_host_addr(b"host"))]))
with_sctp(sctp.chunk_error(causes=[sctp.cause_unrecognized_chunk(b"\\xff\\0\\0\\4"), sctp.cause_unrecognized_param(b"\\xff\\xff\\0\\4")]))
with_sctp(sctp.chunk_error(causes=[sctp.cause_no_userdata(b"\\0\\0\\0\\5"), sctp.cause_cookie_while_shutdown()]))
with_sctp(sctp.chunk_error(causes=[sctp.cause_restart_with_new_addr([sctp.param_ipv4("10.0.0.1"), sctp.param_ipv6("::2")])]))
with_sctp(sctp.chunk_cookie_echo(cookie=b"12345678"), sctp.chunk_data(0, 1, 1, payload_data=b"data"))
with_sctp(sctp.chunk_cookie_ack())
with_sctp(sctp.chunk_ecn_echo(0, 0, 5), sctp.chunk_cwr(0, 0, 6))
with_sctp(sctp.chunk_shutdown_complete(1))
ethernet.ethernet(ethertype=0x86DD), ipv6.ipv6(nxt=132), sctp.sctp(5, 6, 7, 8, [sctp.chunk_shutdown()])
ethernet.ethernet(), ipv4.ipv4(proto=132), sctp.sctp(5, 6, 7, 0x12345678, [sctp.chunk_cookie_ack(3)])
ethernet.ethernet(slow.SLOW_PROTOCOL_MULTICAST, ethertype=0x8809), slow.lacp()
ethernet.ethernet(slow.SLOW_PROTOCOL_MULTICAST, ethertype=0x8809), slow.lacp(1, 2, "02:00:00:00:00:01", 3, 4, 5, 1, 0, 1, 0, 1, 0, 1, 0, 6, "02:00:00:00:00:02", 7, 8, 9, 0, 1, 0, 1, 0, 1, 0, 1, 10)
ethernet.ethernet(slow.SLOW_PROTOCOL_MULTICAST, ethertype=0x8809), b"\\2\\1" + b"x" * 60
ethernet.ethernet(lldp.LLDP_MAC_NEAREST_BRIDGE, ethertype=0x88CC), lldp.lldp(tlvs())
ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, ethertype=38), llc.llc(66, 66, llc.ControlFormatU()), bpdu.ConfigurationBPDUs()
ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, ethertype=38), llc.llc(66, 66, llc.ControlFormatU()), bpdu.ConfigurationBPDUs(0x81, 4096, 7, "02:00:00:00:00:09", 19, 61440, 1, "02:00:00:00:00:08", 0x70, 5, 1, 20, 1, 4)
ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, ethertype=38), llc.llc(66, 66, llc.ControlFormatU(1, 1, 5)), bpdu.TopologyChangeNotificationBPDUs()
ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, ethertype=38), llc.llc(66, 66, llc.ControlFormatS(2, 1, 77)), bpdu.RstBPDUs(flags=0x3C, port_number=3)
ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, ethertype=38), llc.llc(0xAA, 0xAA, llc.ControlFormatI(3, 0, 99)), b"payload"
"""


def counting(size):
    """Returns bytes that count up."""
    return bytes(number % 251 for number in range(1, size + 1))


def part(word):
    """Returns the bytes of a word."""
    if word.startswith("."):
        return counting(int(word[1:]))
    return bytes(int(word[2:])) if word.startswith("0*") else bytes.fromhex(word)


def body(words):
    """Returns a frame's body."""
    return b"".join(map(part, words))


class Calls:
    """The modules of a package, for one version."""

    def __init__(self, package, version):
        self.of = importlib.import_module(f"{package}.ofproto.ofproto_parser")
        self.ofproto = importlib.import_module(f"{package}.ofproto.ofproto_v1_{version}")
        self.ofproto_parser = importlib.import_module(f"{package}.ofproto.ofproto_v1_{version}_parser")
        self.nicira_ext = importlib.import_module(f"{package}.ofproto.nicira_ext")

    def call(self, text):
        """Makes the message of a call; returns its bytes and texts."""

        given = []

        def with_actions(*actions):
            given.extend(actions)
            if self.ofproto.OFP_VERSION == 1:
                return self.ofproto_parser.OFPFlowMod(self, actions=list(actions))
            parser = self.ofproto_parser
            instructions = [parser.OFPInstructionActions(self.ofproto.OFPIT_APPLY_ACTIONS, list(actions))]
            return parser.OFPFlowMod(self, instructions=instructions)

        names = {**vars(self.ofproto_parser), "dp": self, "ofp": self.ofproto, "nx": self.nicira_ext, "with_actions": with_actions}
        message = eval(text, names)
        before = str(message)
        message.serialize()
        return {
            "before": before,
            "bytes": bytes(message.buf).hex(),
            "str": str(message),
            "repr": repr(message),
            "json": message.to_jsondict(),
            "restored": self.restored(message),
            "actions": [self.parsed(action) for action in given],
        }

    def parsed(self, action):
        """Returns what parsing an action's bytes gives."""
        data = bytearray()
        action.serialize(data, 0)
        return repr(self.ofproto_parser.OFPAction.parser(bytes(data), 0))

    def restored(self, message):
        """Returns texts and bytes of what its JSON makes; None if os-ken cannot make it."""
        try:
            text = json.dumps(message.to_jsondict())
            # os-ken prints what it refuses.
            with contextlib.redirect_stdout(None):
                made = self.of.ofp_msg_from_jsondict(self, json.loads(text))
        except TypeError:
            return None
        before = repr(made)
        made.serialize()
        return [before, bytes(made.buf).hex()]

    def decode(self, frame):
        """Returns the texts of a frame."""
        message = self.of.msg(self, *self.of.header(frame), frame)
        if message is None:
            return {"class": "none"}
        attributes = {name: repr(value) for name, value in vars(message).items() if name not in ("datapath", "buf")}
        return {
            "class": type(message).__name__,
            "str": str(message),
            "attributes": {name: value for name, value in attributes.items() if not name.startswith("_")},
            "json": message.to_jsondict(),
        }


def packets(package):
    """Returns what comes of all packets."""
    names = "arp bpdu dhcp ethernet icmp icmpv6 igmp ipv4 ipv6 llc lldp mpls packet sctp slow tcp udp vlan".split()
    modules = {name: importlib.import_module(f"{package}.lib.packet.{name}") for name in names}
    lldp, ethernet, ipv4, tcp = (modules[name] for name in ("lldp", "ethernet", "ipv4", "tcp"))
    ipv6, icmpv6, sctp = modules["ipv6"], modules["icmpv6"], modules["sctp"]

    def tlvs():
        return [
            lldp.ChassisID(subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=b"dpid:0000000000000001"),
            lldp.PortID(subtype=lldp.PortID.SUB_PORT_COMPONENT, port_id=b"\0\0\0\1"),
            lldp.TTL(ttl=120),
            lldp.PortDescription(port_description=b"s1-eth1"),
            lldp.SystemName(system_name=b"s1"),
            lldp.SystemCapabilities(system_cap=lldp.SystemCapabilities.CAP_MAC_BRIDGE, enabled_cap=0),
            lldp.OrganizationallySpecific(oui=b"abc", subtype=1, info=b"info"),
            lldp.End(),
        ]

    def with_tcp(*options):
        return ethernet.ethernet(), ipv4.ipv4(proto=6), tcp.tcp(bits=tcp.TCP_SYN, option=list(options))

    def with_icmpv6(kind, data):
        head = ipv6.ipv6(nxt=58, src="fe80::2", dst="ff02::1", hop_limit=255)
        return ethernet.ethernet(ethertype=0x86DD), head, icmpv6.icmpv6(kind, 0, 0, data)

    def with_extensions(first, *headers):
        head = ipv6.ipv6(nxt=first, src="fe80::2", dst="ff02::1", ext_hdrs=list(headers))
        return ethernet.ethernet(ethertype=0x86DD), head, b"x" * 40

    def with_sctp(*chunks):
        return ethernet.ethernet(), ipv4.ipv4(proto=132), sctp.sctp(5000, 80, 9, 0x01020304, list(chunks))

    builders = {
        "tlvs": tlvs,
        "with_tcp": with_tcp,
        "with_icmpv6": with_icmpv6,
        "with_extensions": with_extensions,
        "with_sctp": with_sctp,
    }
    found = {}
    for text in PACKETS.strip().splitlines():
        built = eval(text, {**modules, **builders})
        made = modules["packet"].Packet()
        for protocol in built if isinstance(built, tuple) else (built,):
            made.add_protocol(protocol)
        made.serialize()
        parsed = modules["packet"].Packet(bytes(made.data))
        json = parsed.to_jsondict()
        found[text] = {"bytes": bytes(made.data).hex(), "str": str(made), "parsed": str(parsed), "json": json}
    return found


def calls_of(version):
    """Returns the calls of a version."""
    made = (CALLS_1_0 if version == 1 else CALLS_1_3).strip().splitlines()
    made += [f"with_actions({action})" for action in calls_nicira.ACTIONS.strip().splitlines()]
    if version == 4:
        made += [f"with_actions({action})" for action in calls_nicira.ACTIONS_1_3.strip().splitlines()]
        made += [f"OFPFlowMod(dp, match=OFPMatch({match}))" for match in calls_nicira.MATCHES_1_3.strip().splitlines()]
        made += [f"with_actions(OFPActionSetField({field}))" for field in calls_nicira.SET_FIELDS_1_3.strip().splitlines()]
    return made + generated.calls(version, GENERATED)


def results(package):
    """Returns what comes of all calls and frames."""
    versions = {1: Calls(package, 0), 4: Calls(package, 3)}
    found = {}
    for version in versions:
        for text in calls_of(version):
            found[f"{version}: {text}"] = versions[version].call(text)
    for text in FRAMES.strip().splitlines():
        version, kind, *words = text.split()
        data = body(words)
        frame = bytes([int(version), int(kind)]) + (8 + len(data)).to_bytes(2, "big") + b"\0\0\0\5" + data
        found[text] = versions[int(version)].decode(frame)
    return found | packets(package)


if __name__ == "__main__":
    json.dump(results(sys.argv[1]), sys.stdout, default=repr)
