"""Golden messages of OpenFlow 1.3. Every field has its own non-zero value, so that swapped fields show."""

from os_ken.lib import type_desc
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto import oxm_fields

from vectors import Vectors, mac, pack, serialized

FRAME = bytes.fromhex(
    "0a0b0c0d0e0f" "1a1b1c1d1e1f" "0800"
    "45000020123440004011abcd0a0102030a040506" "04d2162e000c0000" "cafebabe"
)
EXPERIMENTER = 0x00ABCDEF
OPAQUE = b"\x01\x02\x03\x04\x05\x06\x07\x08"

OFPTC_DEPRECATED_MASK = 3  # os-ken does not name it


def build():
    """Returns all vectors of version 1.3."""
    vectors = Vectors(ofp.OFP_VERSION)
    for add in (symmetric, errors, handshake, asynchronous, packet_outs, flow_mods, oxm_matches, set_fields,
                group_mods, meter_mods, other_mods, queues, roles_and_async, multipart_requests, multipart_replies):
        add(vectors)
    return vectors


def symmetric(v):
    dp = v.datapath
    v.built("hello_plain", parser.OFPHello(dp))
    bitmap_10_13 = pack("HHI", ofp.OFPHET_VERSIONBITMAP, 8, 1 << 1 | 1 << 4)
    v.crafted("hello_bitmap_1.0_1.3", "OFPHello", bitmap_10_13)
    # Elements without padding, since os-ken's parser does not skip it and then loops for ever on a length of 0.
    v.crafted("hello_bitmap_three_words", "OFPHello", pack(
        "HHIII", ofp.OFPHET_VERSIONBITMAP, 16, 1 << 4, 1 << 2, 1 << 3))
    v.crafted("hello_unknown_element_then_bitmap", "OFPHello", pack("HH4s", 0x7FFF, 8, b"what") + bitmap_10_13)
    v.built("echo_request_empty", parser.OFPEchoRequest(dp, b""))
    v.built("echo_request_data", parser.OFPEchoRequest(dp, b"anyone there?"))
    v.built("echo_reply_data", parser.OFPEchoReply(dp, b"yes"))
    v.built("experimenter", parser.OFPExperimenter(dp, EXPERIMENTER, 0x01020304, b"\x11\x22\x33\x44"))
    v.built("experimenter_empty", parser.OFPExperimenter(dp, EXPERIMENTER, 0x01020304, b""))
    v.built("experimenter_onf_bundle_open", parser.ONFBundleCtrlMsg(
        dp, bundle_id=0x0A0B0C0D, type_=ofp.ONF_BCT_OPEN_REQUEST, flags=ofp.ONF_BF_ATOMIC, properties=[]))


def errors(v):
    offending = pack("BBHI", ofp.OFP_VERSION, ofp.OFPT_BARRIER_REQUEST, 8, 0x0BADF00D)
    for name, type_, code in error_codes():
        data = b"unsupported version" if type_ == ofp.OFPET_HELLO_FAILED else offending
        v.built(f"error_{name}", parser.OFPErrorMsg(v.datapath, type_, code, data))
    v.built("error_experimenter", parser.OFPErrorMsg(
        v.datapath, ofp.OFPET_EXPERIMENTER, exp_type=0x0102, experimenter=EXPERIMENTER, data=b"\x11\x22\x33\x44"))


def error_codes():
    """Returns every (name, type, code) of the specification."""
    families = {
        "HELLO_FAILED": "OFPHFC_", "BAD_REQUEST": "OFPBRC_", "BAD_ACTION": "OFPBAC_", "BAD_INSTRUCTION": "OFPBIC_",
        "BAD_MATCH": "OFPBMC_", "FLOW_MOD_FAILED": "OFPFMFC_", "GROUP_MOD_FAILED": "OFPGMFC_",
        "PORT_MOD_FAILED": "OFPPMFC_", "TABLE_MOD_FAILED": "OFPTMFC_", "QUEUE_OP_FAILED": "OFPQOFC_",
        "SWITCH_CONFIG_FAILED": "OFPSCFC_", "ROLE_REQUEST_FAILED": "OFPRRFC_", "METER_MOD_FAILED": "OFPMMFC_",
        "TABLE_FEATURES_FAILED": "OFPTFFC_",
    }
    for family, prefix in families.items():
        for constant, code in vars(ofp).items():
            if constant.startswith(prefix):
                name = f"{family}_{constant.removeprefix(prefix)}".lower()
                yield name, getattr(ofp, f"OFPET_{family}"), code


def handshake(v):
    dp = v.datapath
    v.built("features_request", parser.OFPFeaturesRequest(dp))
    v.crafted("features_reply", "OFPSwitchFeatures", pack("QIBB2xI4x", 0x00A1B2C3D4E5F607, 256, 254, 3, 0x4F))
    v.built("get_config_request", parser.OFPGetConfigRequest(dp))
    v.crafted("get_config_reply", "OFPGetConfigReply", pack("HH", ofp.OFPC_FRAG_DROP, 128))
    v.built("set_config", parser.OFPSetConfig(dp, ofp.OFPC_FRAG_REASM, ofp.OFPCML_MAX))
    v.built("set_config_no_buffer", parser.OFPSetConfig(dp, ofp.OFPC_FRAG_NORMAL, ofp.OFPCML_NO_BUFFER))
    v.built("barrier_request", parser.OFPBarrierRequest(dp))
    v.crafted("barrier_reply", "OFPBarrierReply", b"")


def port(number, name):
    return pack("I4x6s2x16sIIIIIIII", number, mac("02:00:00:00:00:0a"), name.encode(), ofp.OFPPC_NO_FWD,
                ofp.OFPPS_LIVE, 0x0840, 0x2840, 0x68FF, 0x0020, 1_000_000, 10_000_000)


def asynchronous(v):
    on_port = parser.OFPMatch(in_port=5)
    for reason, name in enumerate(("no_match", "action", "invalid_ttl")):
        v.crafted(f"packet_in_{name}", "OFPPacketIn", packet_in(on_port, reason, FRAME))
    rich = parser.OFPMatch(in_port=5, in_phy_port=6, metadata=0x1122334455667788, tunnel_id=0x0102030405060708)
    v.crafted("packet_in_metadata_tunnel", "OFPPacketIn", packet_in(rich, ofp.OFPR_ACTION, FRAME))
    v.crafted("packet_in_empty", "OFPPacketIn", packet_in(on_port, ofp.OFPR_NO_MATCH, b""))
    v.crafted("packet_in_unbuffered_truncated", "OFPPacketIn", packet_in(
        on_port, ofp.OFPR_ACTION, FRAME[:32], total_length=1500, buffer_id=ofp.OFP_NO_BUFFER))
    for reason, name in enumerate(("idle_timeout", "hard_timeout", "delete", "group_delete")):
        v.crafted(f"flow_removed_{name}", "OFPFlowRemoved", pack(
            "QHBBIIHHQQ", 0x1122334455667788, 0x8001, reason, 7, 90, 123456789, 5, 60, 1001, 64064)
            + serialized(tcp_match()))
    for reason, name in enumerate(("add", "delete", "modify")):
        v.crafted(f"port_status_{name}", "OFPPortStatus", pack("B7x", reason) + port(7, "veth7"))


def packet_in(match, reason, frame, total_length=len(FRAME), buffer_id=0x01020304):
    head = pack("IHBBQ", buffer_id, total_length, reason, 7, 0x1122334455667788)
    return head + serialized(match) + b"\0\0" + frame


def tcp_match():
    """Returns a learning switch's exact match, with the fields in the order of their numbers."""
    return parser.OFPMatch(
        in_port=1, eth_dst="02:00:00:00:00:02", eth_src="02:00:00:00:00:01", eth_type=0x0800,
        vlan_vid=ofp.OFPVID_PRESENT | 100, vlan_pcp=5, ip_dscp=8, ip_ecn=2, ip_proto=6, ipv4_src="10.1.2.3",
        ipv4_dst="10.4.5.6", tcp_src=1234, tcp_dst=80)


def actions():
    """Returns every action but set-field, which `set_fields` covers field by field."""
    return {
        "output": parser.OFPActionOutput(2, 0),
        "output_controller": parser.OFPActionOutput(ofp.OFPP_CONTROLLER, 128),
        "copy_ttl_out": parser.OFPActionCopyTtlOut(),
        "copy_ttl_in": parser.OFPActionCopyTtlIn(),
        "set_mpls_ttl": parser.OFPActionSetMplsTtl(63),
        "dec_mpls_ttl": parser.OFPActionDecMplsTtl(),
        "push_vlan": parser.OFPActionPushVlan(0x88A8),
        "pop_vlan": parser.OFPActionPopVlan(),
        "push_mpls": parser.OFPActionPushMpls(0x8848),
        "pop_mpls": parser.OFPActionPopMpls(0x86DD),
        "set_queue": parser.OFPActionSetQueue(0x0D0E0F10),
        "group": parser.OFPActionGroup(0x0A0B0C0D),
        "set_nw_ttl": parser.OFPActionSetNwTtl(62),
        "dec_nw_ttl": parser.OFPActionDecNwTtl(),
        "push_pbb": parser.OFPActionPushPbb(0x88E7),
        "pop_pbb": parser.OFPActionPopPbb(),
        "experimenter": parser.OFPActionExperimenterUnknown(EXPERIMENTER, OPAQUE),
    }


def apply(*actions_):
    return parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, list(actions_))


def instructions():
    """Returns every instruction that os-ken supports."""
    output = parser.OFPActionOutput(2, 0)
    return {
        "goto_table": parser.OFPInstructionGotoTable(9),
        "write_metadata": parser.OFPInstructionWriteMetadata(0x0102030400000000, 0xFFFFFFFF00000000),
        "write_actions": parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, [parser.OFPActionPopVlan(), output]),
        "apply_actions": parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [output]),
        "apply_no_actions": parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, []),
        "clear_actions": parser.OFPInstructionActions(ofp.OFPIT_CLEAR_ACTIONS, []),
        "meter": parser.OFPInstructionMeter(0x0E0F1011),
    }


def packet_outs(v):
    dp = v.datapath
    v.built("packet_out_buffered", parser.OFPPacketOut(
        dp, buffer_id=0x01020304, in_port=5, actions=[parser.OFPActionOutput(2, 0)]))
    v.built("packet_out_data_flood", parser.OFPPacketOut(
        dp, buffer_id=ofp.OFP_NO_BUFFER, in_port=5, actions=[parser.OFPActionOutput(ofp.OFPP_FLOOD, 0)], data=FRAME))
    v.built("packet_out_drop", parser.OFPPacketOut(dp, buffer_id=0x01020305, in_port=ofp.OFPP_CONTROLLER, actions=[]))
    v.built("packet_out_set_field_table", parser.OFPPacketOut(
        dp, buffer_id=ofp.OFP_NO_BUFFER, in_port=ofp.OFPP_CONTROLLER, data=FRAME,
        actions=[parser.OFPActionSetField(eth_dst="02:00:00:00:00:06"), parser.OFPActionOutput(ofp.OFPP_TABLE, 0)]))


def flow_mods(v):
    dp = v.datapath
    for command, name in enumerate(("add", "modify", "modify_strict", "delete", "delete_strict")):
        v.built(f"flow_mod_{name}", flow_mod(dp, tcp_match(), command=command))
    v.built("flow_mod_table_miss", flow_mod(
        dp, parser.OFPMatch(), cookie=0, cookie_mask=0, table_id=0, priority=0, idle_timeout=0, hard_timeout=0,
        flags=0, buffer_id=ofp.OFP_NO_BUFFER, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
        instructions=[apply(parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER))]))
    v.built("flow_mod_delete_all", flow_mod(
        dp, parser.OFPMatch(), command=ofp.OFPFC_DELETE, cookie=0, cookie_mask=0, table_id=ofp.OFPTT_ALL, priority=0,
        idle_timeout=0, hard_timeout=0, flags=0, buffer_id=ofp.OFP_NO_BUFFER, out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY, instructions=[]))
    v.built("flow_mod_all_flags", flow_mod(dp, tcp_match(), flags=0x1F))
    for name, action in actions().items():
        v.built(f"flow_mod_action_{name}", flow_mod(dp, tcp_match(), instructions=[apply(action)]))
    v.built("flow_mod_all_actions", flow_mod(dp, tcp_match(), instructions=[apply(*actions().values())]))
    for name, instruction in instructions().items():
        v.built(f"flow_mod_instruction_{name}", flow_mod(dp, tcp_match(), instructions=[instruction]))
    v.built("flow_mod_all_instructions", flow_mod(dp, tcp_match(), instructions=[
        instructions()[name]
        for name in ("meter", "apply_actions", "clear_actions", "write_actions", "write_metadata", "goto_table")]))
    v.unread("flow_mod_instruction_experimenter", "OFPFlowMod", pack(
        "QQBBHHHIIIH2x", 0x1122334455667788, 0x0F0F0F0F0F0F0F0F, 7, ofp.OFPFC_ADD, 5, 60, 0x8001, 0x01020304, 3, 4, 1)
        + serialized(tcp_match()) + pack("HHI", ofp.OFPIT_EXPERIMENTER, 16, EXPERIMENTER) + OPAQUE,
        ofp.OFPT_FLOW_MOD)


def flow_mod(datapath, match, **changed):
    fields = {
        "cookie": 0x1122334455667788, "cookie_mask": 0x0F0F0F0F0F0F0F0F, "table_id": 7, "idle_timeout": 5,
        "hard_timeout": 60, "priority": 0x8001, "buffer_id": 0x01020304, "out_port": 3, "out_group": 4,
        "flags": ofp.OFPFF_SEND_FLOW_REM, "instructions": [apply(parser.OFPActionOutput(2, 0))],
    }
    return parser.OFPFlowMod(datapath, match=match, **{**fields, **changed})


IPV4 = {"eth_type": 0x0800}
IPV6 = {"eth_type": 0x86DD}
ARP = {"eth_type": 0x0806}
MPLS = {"eth_type": 0x8847}

# For each field: its prerequisites, a value, and, if the specification allows a mask, a masked value and the mask.
OXM_BASIC = {
    "in_port": ({}, 9, None),
    "in_phy_port": ({"in_port": 9}, 10, None),
    "metadata": ({}, 0x1122334455667788, (0x1122334400000000, 0xFFFFFFFF00000000)),
    "eth_dst": ({}, "02:00:00:00:00:03", ("01:00:00:00:00:00", "01:00:00:00:00:00")),
    "eth_src": ({}, "02:00:00:00:00:04", ("02:00:5e:00:00:00", "ff:ff:ff:00:00:00")),
    "eth_type": ({}, 0x88CC, None),
    "vlan_vid": ({}, 0x1ABC, (0x1000, 0x1000)),
    "vlan_pcp": ({"vlan_vid": 0x1ABC}, 6, None),
    "ip_dscp": (IPV4, 46, None),
    "ip_ecn": (IPV6, 3, None),
    "ip_proto": (IPV4, 89, None),
    "ipv4_src": (IPV4, "192.0.2.1", ("192.0.2.0", "255.255.255.0")),
    "ipv4_dst": (IPV4, "192.0.2.2", ("10.0.0.1", "255.0.0.255")),
    "tcp_src": (IPV4 | {"ip_proto": 6}, 1021, None),
    "tcp_dst": (IPV6 | {"ip_proto": 6}, 1022, None),
    "udp_src": (IPV4 | {"ip_proto": 17}, 1023, None),
    "udp_dst": (IPV6 | {"ip_proto": 17}, 1024, None),
    "sctp_src": (IPV4 | {"ip_proto": 132}, 1025, None),
    "sctp_dst": (IPV6 | {"ip_proto": 132}, 1026, None),
    "icmpv4_type": (IPV4 | {"ip_proto": 1}, 3, None),
    "icmpv4_code": (IPV4 | {"ip_proto": 1}, 13, None),
    "arp_op": (ARP, 2, None),
    "arp_spa": (ARP, "10.1.1.1", ("10.1.0.0", "255.255.0.0")),
    "arp_tpa": (ARP, "10.1.1.2", ("10.1.1.0", "255.255.255.128")),
    "arp_sha": (ARP, "02:00:00:00:00:05", ("02:00:5e:00:00:00", "ff:ff:ff:00:00:00")),
    "arp_tha": (ARP, "02:00:00:00:00:06", ("02:00:00:00:00:00", "fe:00:00:00:00:00")),
    "ipv6_src": (IPV6, "2001:db8:1:2:3:4:5:6", ("2001:db8:1::", "ffff:ffff:ffff::")),
    "ipv6_dst": (IPV6, "2001:db8:9:8:7:6:5:4", ("ff02::1", "ffff::ff")),
    "ipv6_flabel": (IPV6, 0x0ABCDE, (0x0AB000, 0x0FF000)),
    "icmpv6_type": (IPV6 | {"ip_proto": 58}, 128, None),
    "icmpv6_code": (IPV6 | {"ip_proto": 58}, 4, None),
    "ipv6_nd_target": (IPV6 | {"ip_proto": 58, "icmpv6_type": 135}, "fe80::1:2:3:4", None),
    "ipv6_nd_sll": (IPV6 | {"ip_proto": 58, "icmpv6_type": 135}, "02:00:00:00:00:07", None),
    "ipv6_nd_tll": (IPV6 | {"ip_proto": 58, "icmpv6_type": 136}, "02:00:00:00:00:08", None),
    "mpls_label": (MPLS, 0x0FEDC, None),
    "mpls_tc": (MPLS, 5, None),
    "mpls_bos": (MPLS, 1, None),
    "pbb_isid": ({"eth_type": 0x88E7}, 0x0A0B0C, (0x0A0B00, 0xFFFF00)),
    "tunnel_id": ({}, 0x0102030405060708, (0x0000000005060000, 0x00000000FFFF0000)),
    "ipv6_exthdr": (IPV6, 0x155, (0x041, 0x0C1)),
}
NOT_SETTABLE = ("in_port", "in_phy_port", "metadata", "ipv6_exthdr")


def oxm_matches(v):
    for name, (needed, value, masked) in OXM_BASIC.items():
        v.built(f"flow_mod_oxm_{name}", flow_mod(v.datapath, parser.OFPMatch(**needed, **{name: value})))
        if masked is not None:
            v.built(f"flow_mod_oxm_{name}_masked", flow_mod(
                v.datapath, parser.OFPMatch(**needed, **{name: masked})))
    v.built("flow_mod_oxm_vlan_none", flow_mod(v.datapath, parser.OFPMatch(vlan_vid=ofp.OFPVID_NONE)))
    for name, value, masked in experimenter_fields():
        v.built(f"flow_mod_oxm_{name}", flow_mod(v.datapath, parser.OFPMatch(**{name: value})))
        v.built(f"flow_mod_oxm_{name}_masked", flow_mod(v.datapath, parser.OFPMatch(**{name: masked})))


def experimenter_fields():
    """Returns the fields outside the basic class (ONF's, Nicira's registers and extensions), with made-up values."""
    for field in ofp.oxm_types:
        if not isinstance(field, oxm_fields.OpenFlowBasic):
            size = field.type.size
            plain = bytes(range(0x11, 0x11 + size))
            mask = b"\xF0" * size
            masked = bytes(byte & 0xF0 for byte in plain)
            yield field.name, user_value(field, plain), (user_value(field, masked), user_value(field, mask))


def user_value(field, data):
    """Returns the value with these bytes in the form that os-ken expects."""
    if isinstance(field.type, type_desc.IntDescr):
        return int.from_bytes(data, "big")
    return field.type.to_user(data)


def set_fields(v):
    for name, (needed, value, _) in OXM_BASIC.items():
        if name not in NOT_SETTABLE:
            v.built(f"flow_mod_set_field_{name}", flow_mod(
                v.datapath, parser.OFPMatch(**needed),
                instructions=[apply(parser.OFPActionSetField(**{name: value}), parser.OFPActionOutput(2, 0))]))
    v.built("flow_mod_set_field_reg0", flow_mod(
        v.datapath, parser.OFPMatch(), instructions=[apply(parser.OFPActionSetField(reg0=0x11121314))]))


def buckets():
    return [
        parser.OFPBucket(weight=10, watch_port=11, watch_group=12, actions=[
            parser.OFPActionSetField(eth_dst="02:00:00:00:00:06"), parser.OFPActionOutput(13, 0)]),
        parser.OFPBucket(weight=20, watch_port=ofp.OFPP_ANY, watch_group=ofp.OFPG_ANY, actions=[]),
    ]


def group_mods(v):
    for command, name in enumerate(("add", "modify", "delete")):
        v.built(f"group_mod_{name}", parser.OFPGroupMod(
            v.datapath, command, ofp.OFPGT_SELECT, 0x0A0B0C0D, [] if name == "delete" else buckets()))
    for type_, name in enumerate(("all", "select", "indirect", "fast_failover")):
        v.built(f"group_mod_type_{name}", parser.OFPGroupMod(
            v.datapath, ofp.OFPGC_ADD, type_, 0x0A0B0C0E, buckets()[:1]))


def bands():
    """Returns every meter band."""
    return {
        "drop": parser.OFPMeterBandDrop(rate=1000, burst_size=100),
        "dscp_remark": parser.OFPMeterBandDscpRemark(rate=2000, burst_size=200, prec_level=2),
        "experimenter": parser.OFPMeterBandExperimenter(rate=3000, burst_size=300, experimenter=EXPERIMENTER),
    }


def meter_mods(v):
    flags = ofp.OFPMF_KBPS | ofp.OFPMF_BURST | ofp.OFPMF_STATS
    for command, name in enumerate(("add", "modify", "delete")):
        v.built(f"meter_mod_{name}", parser.OFPMeterMod(
            v.datapath, command, flags, 0x0E0F1011, [] if name == "delete" else list(bands().values())))
    for name, band in bands().items():
        v.built(f"meter_mod_band_{name}", parser.OFPMeterMod(
            v.datapath, ofp.OFPMC_ADD, ofp.OFPMF_PKTPS, 0x0E0F1012, [band]))


def other_mods(v):
    v.built("port_mod", parser.OFPPortMod(
        v.datapath, port_no=3, hw_addr="02:00:00:00:00:0a", config=ofp.OFPPC_PORT_DOWN,
        mask=ofp.OFPPC_PORT_DOWN | ofp.OFPPC_NO_FWD, advertise=0x2840))
    v.built("table_mod", parser.OFPTableMod(v.datapath, 7, OFPTC_DEPRECATED_MASK))


def queues(v):
    v.built("queue_get_config_request", parser.OFPQueueGetConfigRequest(v.datapath, 4))
    properties = (
        pack("HH4xH6x", ofp.OFPQT_MIN_RATE, 16, 250),
        pack("HH4xH6x", ofp.OFPQT_MAX_RATE, 16, 750),
        pack("HH4xI4x", ofp.OFPQT_EXPERIMENTER, 24, EXPERIMENTER) + OPAQUE,
    )
    v.crafted("queue_get_config_reply_three_queues", "OFPQueueGetConfigReply", pack("I4x", 4)
              + packet_queue(0x11, b"".join(properties)) + packet_queue(0x12, properties[1]) + packet_queue(0x13, b""))
    v.crafted("queue_get_config_reply_empty", "OFPQueueGetConfigReply", pack("I4x", 4))


def packet_queue(queue_id, properties):
    return pack("IIH6x", queue_id, 4, 16 + len(properties)) + properties


def roles_and_async(v):
    dp = v.datapath
    for role, name in enumerate(("nochange", "equal", "master", "slave")):
        v.built(f"role_request_{name}", parser.OFPRoleRequest(dp, role, 0x0102030405060708))
        v.crafted(f"role_reply_{name}", "OFPRoleReply", pack("I4xQ", role, 0x0102030405060708))
    masks = ((0x07, 0x01), (0x06, 0x05), (0x0F, 0x03))
    v.built("get_async_request", parser.OFPGetAsyncRequest(dp))
    v.crafted("get_async_reply", "OFPGetAsyncReply", pack("6I", *(word for pair in masks for word in pair)))
    v.built("set_async", parser.OFPSetAsync(dp, *(list(pair) for pair in masks)))


def table_features():
    """Returns one table with every property. os-ken writes 0 as the length in an OXM id; others write the field's length."""
    def oxm(type_, *ids):
        return parser.OFPTableFeaturePropOxm(type_=type_, oxm_ids=list(ids))

    def actions_of(type_, *types):
        return parser.OFPTableFeaturePropActions(type_=type_, action_ids=[parser.OFPActionId(t) for t in types])

    def instructions_of(type_, *types):
        return parser.OFPTableFeaturePropInstructions(
            type_=type_, instruction_ids=[parser.OFPInstructionId(t) for t in types])

    def experimenter(type_, *words):
        return parser.OFPTableFeaturePropExperimenter(
            type_=type_, experimenter=EXPERIMENTER, exp_type=0x01020304, data=list(words))

    eth_dst, tcp_src = parser.OFPOxmId("eth_dst", hasmask=True), parser.OFPOxmId("tcp_src")
    properties = [
        instructions_of(ofp.OFPTFPT_INSTRUCTIONS, ofp.OFPIT_GOTO_TABLE, ofp.OFPIT_APPLY_ACTIONS),
        instructions_of(ofp.OFPTFPT_INSTRUCTIONS_MISS, ofp.OFPIT_METER),
        parser.OFPTableFeaturePropNextTables(type_=ofp.OFPTFPT_NEXT_TABLES, table_ids=[8, 9, 10]),
        parser.OFPTableFeaturePropNextTables(type_=ofp.OFPTFPT_NEXT_TABLES_MISS, table_ids=[11]),
        actions_of(ofp.OFPTFPT_WRITE_ACTIONS, ofp.OFPAT_OUTPUT, ofp.OFPAT_GROUP),
        actions_of(ofp.OFPTFPT_WRITE_ACTIONS_MISS, ofp.OFPAT_POP_VLAN),
        actions_of(ofp.OFPTFPT_APPLY_ACTIONS, ofp.OFPAT_SET_FIELD, ofp.OFPAT_PUSH_VLAN, ofp.OFPAT_DEC_NW_TTL),
        actions_of(ofp.OFPTFPT_APPLY_ACTIONS_MISS),
        oxm(ofp.OFPTFPT_MATCH, eth_dst, tcp_src),
        oxm(ofp.OFPTFPT_WILDCARDS, eth_dst),
        oxm(ofp.OFPTFPT_WRITE_SETFIELD, parser.OFPOxmId("eth_src")),
        oxm(ofp.OFPTFPT_WRITE_SETFIELD_MISS, parser.OFPOxmId("vlan_vid")),
        oxm(ofp.OFPTFPT_APPLY_SETFIELD, parser.OFPOxmId("ipv4_src"), parser.OFPOxmId("ipv6_dst")),
        oxm(ofp.OFPTFPT_APPLY_SETFIELD_MISS, parser.OFPOxmId("tunnel_id")),
        experimenter(ofp.OFPTFPT_EXPERIMENTER, 0x11223344, 0x55667788),
        experimenter(ofp.OFPTFPT_EXPERIMENTER_MISS),
    ]
    return parser.OFPTableFeaturesStats(
        table_id=7, name=b"classifier", metadata_match=0x1122334455667788, metadata_write=0x0F0F0F0F00000000,
        config=OFPTC_DEPRECATED_MASK, max_entries=65536, properties=properties)


def table_features_with_experimenter_ids():
    """Returns the ids that are 8 bytes long, which os-ken reads; but it fails to write the OXM id."""
    properties = (
        pack("HHHHHHI", ofp.OFPTFPT_INSTRUCTIONS, 16, 1, 4, ofp.OFPIT_EXPERIMENTER, 8, EXPERIMENTER),
        pack("HHHHHHI", ofp.OFPTFPT_APPLY_ACTIONS, 16, 0, 4, ofp.OFPAT_EXPERIMENTER, 8, EXPERIMENTER),
        pack("HHIII", ofp.OFPTFPT_MATCH, 16, 0x80000004, 0xFFFF5406, 0x4F4E4600),
    )
    body = b"".join(properties)
    return pack("HB5x32sQQII", 64 + len(body), 9, b"acl", 0x1122334455667788, 0x0F0F0F0F00000000, 0, 4096) + body


def multipart_requests(v):
    dp = v.datapath
    v.built("multipart_request_desc", parser.OFPDescStatsRequest(dp, 0))
    v.built("multipart_request_flow", parser.OFPFlowStatsRequest(
        dp, 0, 7, 3, 4, 0x1122334455667788, 0x0F0F0F0F0F0F0F0F, tcp_match()))
    v.built("multipart_request_flow_all", parser.OFPFlowStatsRequest(dp))
    v.built("multipart_request_aggregate", parser.OFPAggregateStatsRequest(
        dp, 0, 8, 5, 6, 0x1122334455667789, 0x0F0F0F0F0F0F0FF0, tcp_match()))
    v.built("multipart_request_table", parser.OFPTableStatsRequest(dp, 0))
    v.built("multipart_request_port_stats", parser.OFPPortStatsRequest(dp, 0, 7))
    v.built("multipart_request_queue", parser.OFPQueueStatsRequest(dp, 0, 7, 0x11))
    v.built("multipart_request_group", parser.OFPGroupStatsRequest(dp, 0, 0x0A0B0C0D))
    v.built("multipart_request_group_desc", parser.OFPGroupDescStatsRequest(dp, 0))
    v.built("multipart_request_group_features", parser.OFPGroupFeaturesStatsRequest(dp, 0))
    v.built("multipart_request_meter", parser.OFPMeterStatsRequest(dp, 0, 0x0E0F1011))
    v.built("multipart_request_meter_config", parser.OFPMeterConfigStatsRequest(dp, 0, ofp.OFPM_ALL))
    v.built("multipart_request_meter_features", parser.OFPMeterFeaturesStatsRequest(dp, 0))
    v.built("multipart_request_table_features", parser.OFPTableFeaturesStatsRequest(dp, 0, []))
    v.built("multipart_request_table_features_set_more", parser.OFPTableFeaturesStatsRequest(
        dp, ofp.OFPMPF_REQ_MORE, [table_features()]))
    v.built("multipart_request_port_desc", parser.OFPPortDescStatsRequest(dp, 0))
    v.built("multipart_request_experimenter", parser.OFPExperimenterStatsRequest(
        dp, 0, EXPERIMENTER, 0x01020304, b"\x21\x22\x23\x24"))


def multipart_replies(v):
    def reply(name, type_name, multipart_type, body, flags=0):
        # os-ken's class of a reply depends on the multipart type, unlike its message type.
        message_type = ofp.OFPT_MULTIPART_REPLY
        v.crafted(f"multipart_reply_{name}", type_name, pack("HH4x", multipart_type, flags) + body, message_type)

    reply("desc", "OFPDescStatsReply", ofp.OFPMP_DESC, pack(
        "256s256s256s32s256s", b"Maker", b"Hardware", b"Software", b"Serial", b"Datapath"))
    reply("flow_two_entries_more", "OFPFlowStatsReply", ofp.OFPMP_FLOW,
          flow_stats(7, tcp_match(), apply(parser.OFPActionPopVlan(), parser.OFPActionOutput(2, 0)),
                     parser.OFPInstructionGotoTable(9))
          + flow_stats(8, parser.OFPMatch(in_port=9)), flags=ofp.OFPMPF_REPLY_MORE)
    reply("flow_empty", "OFPFlowStatsReply", ofp.OFPMP_FLOW, b"")
    reply("aggregate", "OFPAggregateStatsReply", ofp.OFPMP_AGGREGATE, pack("QQI4x", 1001, 64064, 17))
    reply("table", "OFPTableStatsReply", ofp.OFPMP_TABLE,
          pack("B3xIQQ", 7, 12, 3456, 789) + pack("B3xIQQ", 8, 13, 3457, 790))
    reply("port_stats", "OFPPortStatsReply", ofp.OFPMP_PORT_STATS, port_stats(1, 100) + port_stats(2, 200))
    reply("queue", "OFPQueueStatsReply", ofp.OFPMP_QUEUE, pack("IIQQQII", 7, 0x11, 64064, 1001, 3, 90, 123456789))
    reply("group", "OFPGroupStatsReply", ofp.OFPMP_GROUP, pack(
        "H2xII4xQQII", 72, 0x0A0B0C0D, 15, 1001, 64064, 90, 123456789) + pack("QQQQ", 1, 64, 1000, 64000))
    reply("group_desc", "OFPGroupDescStatsReply", ofp.OFPMP_GROUP_DESC,
          group_desc(ofp.OFPGT_FF, 0x0A0B0C0D, buckets()) + group_desc(ofp.OFPGT_INDIRECT, 0x0A0B0C0E, buckets()[:1]))
    reply("group_features", "OFPGroupFeaturesStatsReply", ofp.OFPMP_GROUP_FEATURES, pack(
        "II4I4I", 0x0F, 0x0B, 10, 20, 30, 40, 0x01, 0x0C00, 0x0FFF8000, 0x0FFF9801))
    reply("meter", "OFPMeterStatsReply", ofp.OFPMP_METER, pack(
        "IH6xIQQII", 0x0E0F1011, 72, 17, 1001, 64064, 90, 123456789) + pack("QQQQ", 1, 64, 1000, 64000))
    config = b"".join(serialized(band) for band in bands().values())
    reply("meter_config", "OFPMeterConfigStatsReply", ofp.OFPMP_METER_CONFIG,
          pack("HHI", 8 + len(config), ofp.OFPMF_KBPS | ofp.OFPMF_STATS, 0x0E0F1011) + config)
    reply("meter_features", "OFPMeterFeaturesStatsReply", ofp.OFPMP_METER_FEATURES,
          pack("IIIBB2x", 65536, 0x06, 0x0F, 5, 3))
    reply("table_features", "OFPTableFeaturesStatsReply", ofp.OFPMP_TABLE_FEATURES, bytes(table_features().serialize()))
    reply("table_features_experimenter_ids", "OFPTableFeaturesStatsReply", ofp.OFPMP_TABLE_FEATURES,
          table_features_with_experimenter_ids())
    reply("port_desc", "OFPPortDescStatsReply", ofp.OFPMP_PORT_DESC, port(1, "eth1") + port(ofp.OFPP_LOCAL, "s1"))
    reply("experimenter", "OFPExperimenterStatsReply", ofp.OFPMP_EXPERIMENTER,
          pack("II", EXPERIMENTER, 0x01020304) + b"\x31\x32\x33\x34")


def flow_stats(table_id, match, *instructions_):
    body = serialized(match) + b"".join(serialized(instruction) for instruction in instructions_)
    return pack("HBxIIHHHH4xQQQ", 48 + len(body), table_id, 90, 123456789, 0x8001, 5, 60, ofp.OFPFF_SEND_FLOW_REM,
                0x1122334455667788, 1001, 64064) + body


def port_stats(number, first):
    return pack("I4x12QII", number, *range(first, first + 12), 90, 123456789)


def group_desc(type_, group_id, buckets_):
    body = b"".join(serialized(bucket) for bucket in buckets_)
    return pack("HBxI", 8 + len(body), type_, group_id) + body
