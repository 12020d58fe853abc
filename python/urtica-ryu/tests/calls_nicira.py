"""Calls of Nicira's extensions."""

#: Actions of both versions.
ACTIONS = """
NXActionPopQueue()
NXActionSetQueue(7)
NXActionResubmit()
NXActionResubmit(5)
NXActionResubmitTable()
NXActionResubmitTable(in_port=5, table_id=3)
NXActionSetTunnel(0x12345678)
NXActionSetTunnel64(0x123456789ABCDEF0)
NXActionRegLoad(0x1F, "reg0", 0x1234)
NXActionRegLoad(ofs_nbits=nx.ofs_nbits(4, 31), dst="tun_ipv4_dst", value=5)
NXActionRegLoad2(dst="tun_ipv4_src", value="192.168.10.0", mask="255.255.255.0")
NXActionRegMove("reg0", "reg1", 32)
NXActionRegMove(src_field="reg0", dst_field="reg2", n_bits=16, src_ofs=3, dst_ofs=5)
NXActionOutputReg(0x1F, "reg0", 1024)
NXActionOutputReg2(0x1F, "reg7", 0xFFFF)
NXActionNote([0xB0, 0xA7, 0x18])
NXActionNote(list(range(20)))
NXActionNote([0xB0, 0xA7, 0x18, 1, 2, 3])
NXActionExit()
NXActionController(1024, 5, 1)
NXActionController2()
NXActionController2(max_len=1024, controller_id=1, reason=5, userdata=b"12345678", pause=True)
NXActionDecTtl()
NXActionDecTtlCntIds([1, 2, 3])
NXActionDecTtlCntIds(cnt_ids=[1, 2, 3, 4, 5])
NXActionPushMpls(0x8847)
NXActionPopMpls(0x0800)
NXActionSetMplsTtl(128)
NXActionDecMplsTtl()
NXActionSetMplsLabel(0x10)
NXActionSetMplsTc(3)
NXActionSample(3, 1, 2, 0)
NXActionSample(probability=3)
NXActionSample2(3, 1, 2, 0, 5)
NXActionFinTimeout(30, 60)
NXActionConjunction(0, 2, 10)
NXActionConjunction(clause=1, n_clauses=3, id_=0x12345678)
NXActionMultipath(1, 50, 0, 4, 5, 0x1F, "reg0")
NXActionBundle(0, 0, 0, nx.NXM_OF_IN_PORT, 2, 0, 0, [2, 3])
NXActionBundle(1, 1, 7, nx.NXM_OF_IN_PORT, 5, 0, 0, [2, 3, 4, 5, 6])
NXActionBundleLoad(0, 0, 0, nx.NXM_OF_IN_PORT, 2, 0x1F, "reg0", [2, 3])
NXActionOutputTrunc(8, 0x100)
NXActionCTClear()
NXActionUnknown(500, b"123456")
NXActionDecNshTtl()
NXActionEncapEther()
NXActionNAT(1)
NXActionNAT(5, range_ipv6_min="2001:db8::1", range_ipv6_max="2001:db8::ff")
NXActionCT(1, "reg0", 0x1F, 4, 0, [])
NXActionCT(flags=1, zone_src="", zone_ofs_nbits=5, recirc_table=255, alg=21, actions=[])
NXActionCT(1, "reg3", 0, 255, 0, [NXActionNAT(1, range_ipv4_min="10.0.0.1", range_ipv4_max="10.0.0.9")])
NXActionCT(1, "", 0, 1, 0, [NXActionRegLoad(0x1F, "ct_mark", 5), NXActionNAT(2)])
NXActionLearn(10, [])
NXActionLearn(table_id=2, specs=[NXFlowSpecOutput(src=("reg0", 0), dst="", n_bits=32)], idle_timeout=1, hard_timeout=2, priority=3, cookie=4, flags=5, fin_idle_timeout=6, fin_hard_timeout=7)
"""

#: Actions that os-ken sends in messages of 1.0 without their padding.
ACTIONS_1_3 = """
NXActionStackPush("reg2", 0, 5)
NXActionStackPop(field="reg2", start=3, end=20)
NXActionNAT(flags=1, range_ipv4_min="10.1.12.0", range_ipv4_max="10.1.13.255", range_ipv6_min="", range_ipv6_max="", range_proto_min=1, range_proto_max=1023)
NXActionNAT(3, range_ipv4_min="10.0.0.1", range_proto_max=5)
NXActionLearn(10, [NXFlowSpecMatch(("vlan_tci", 0), ("vlan_tci", 0), 12), NXFlowSpecMatch(("eth_src_nxm", 0), ("eth_dst_nxm", 0), 48), NXFlowSpecOutput(("in_port_nxm", 0), 16, "")], hard_timeout=300)
NXActionLearn(1, [NXFlowSpecMatch(0x800, ("eth_type_nxm", 0), 16), NXFlowSpecMatch(1, ("reg0", 5), 1), NXFlowSpecLoad(0x123456, ("reg1", 0), 24), NXFlowSpecLoad(("reg5", 0), ("reg6", 3), 5)])
"""

#: Matches of OpenFlow 1.3.
MATCHES_1_3 = """
reg0=5, reg15=(6, 7), xxreg3=(1 << 127, 1 << 127), xreg7=9
in_port=1, eth_type=0x800, reg0=5, tun_ipv4_src="1.2.3.4", _dp_hash=4, tcp_flags=1, eth_type_nxm=2048, ip_proto_nxm=6
ct_state=(0x21, 0x21), ct_zone=5, ct_mark=(6, 7), ct_label=(1 << 100, 1 << 100), eth_type=0x800
tunnel_id_nxm=(5, 0xFF), tun_ipv4_src=("10.0.0.0", "255.0.0.0"), tun_ipv4_dst="10.0.0.1", tun_ipv6_src="::1", tun_ipv6_dst=("2001:db8::", "ffff::")
in_port_nxm=1, eth_dst_nxm="02:00:00:00:00:01", eth_src_nxm=("02:00:00:00:00:00", "ff:00:00:00:00:00"), eth_type_nxm=0x806, arp_op_nxm=1
arp_spa_nxm="10.0.0.1", arp_tpa_nxm="10.0.0.2", arp_sha_nxm="02:00:00:00:00:01", arp_tha_nxm="02:00:00:00:00:02", vlan_tci=(0x1000, 0x1000)
eth_type_nxm=0x800, nw_tos=4, ip_proto_nxm=6, ipv4_src_nxm="10.0.0.0/8", ipv4_dst_nxm="10.0.0.1", tcp_src_nxm=5, tcp_dst_nxm=(80, 0xFFFE), tcp_flags_nxm=(1, 3)
ip_proto_nxm=17, udp_src_nxm=5, udp_dst_nxm=6, icmpv4_type_nxm=1, icmpv4_code_nxm=2, ip_ecn_nxm=1, nw_ttl=64, ip_frag=(1, 3), mpls_ttl=3
ipv6_src_nxm="::1", ipv6_dst_nxm="::2", icmpv6_type_nxm=1, icmpv6_code_nxm=2, nd_target="::3", nd_sll="02:00:00:00:00:01", nd_tll="02:00:00:00:00:02", ipv6_label=5
pkt_mark=(1, 3), conj_id=7, tun_gbp_id=8, tun_gbp_flags=9, tun_flags=(1, 1), _recirc_id=10
tcp_flags=(2, 3), actset_output=5, pbb_uca=1
nsh_flags=1, nsh_mdtype=2, nsh_np=3, nsh_spi=4, nsh_si=5, nsh_c1=6, nsh_c2=7, nsh_c3=(8, 9), nsh_c4=10, nsh_ttl=11
"""

#: Fields that OFPActionSetField sets.
SET_FIELDS_1_3 = """
reg3=7
xreg2=1 << 60
xxreg0=1 << 120
tun_ipv4_dst="10.0.0.1"
tun_ipv6_dst="2001:db8::1"
tcp_flags=5
actset_output=1
nsh_spi=3
pkt_mark=9
ct_label=5
"""
