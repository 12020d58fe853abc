"""Golden messages of OpenFlow 1.0. Every field has its own non-zero value, so that swapped fields show."""

from os_ken.ofproto import ofproto_v1_0 as ofp
from os_ken.ofproto import ofproto_v1_0_parser as parser

from vectors import Vectors, ipv4, mac, pack, serialized

FRAME = bytes.fromhex(
    "0a0b0c0d0e0f" "1a1b1c1d1e1f" "0800"
    "45000020123440004011abcd0a0102030a040506" "04d2162e000c0000" "cafebabe"
)
VENDOR = 0x00ABCDEF


def build():
    """Returns all vectors of version 1.0."""
    vectors = Vectors(ofp.OFP_VERSION)
    for add in (symmetric, errors, handshake, asynchronous, packet_outs, flow_mods, other_mods, queues,
                stats_requests, stats_replies):
        add(vectors)
    return vectors


def symmetric(v):
    dp = v.datapath
    v.built("hello", parser.OFPHello(dp))
    v.built("echo_request_empty", parser.OFPEchoRequest(dp, b""))
    v.built("echo_request_data", parser.OFPEchoRequest(dp, b"anyone there?"))
    v.built("echo_reply_data", parser.OFPEchoReply(dp, b"yes"))
    v.crafted("vendor", "OFPVendor", pack("I", VENDOR) + b"\x11\x22\x33\x44")


def errors(v):
    offending = pack("BBHI", ofp.OFP_VERSION, ofp.OFPT_BARRIER_REQUEST, 8, 0x0BADF00D)
    for name, type_, code in error_codes():
        data = b"unsupported version" if type_ == ofp.OFPET_HELLO_FAILED else offending
        v.built(f"error_{name}", parser.OFPErrorMsg(v.datapath, type_, code, data))


def error_codes():
    """Returns every (name, type, code) of the specification."""
    families = {
        "HELLO_FAILED": "OFPHFC_", "BAD_REQUEST": "OFPBRC_", "BAD_ACTION": "OFPBAC_",
        "FLOW_MOD_FAILED": "OFPFMFC_", "PORT_MOD_FAILED": "OFPPMFC_", "QUEUE_OP_FAILED": "OFPQOFC_",
    }
    for family, prefix in families.items():
        for constant, code in vars(ofp).items():
            if constant.startswith(prefix):
                name = f"{family}_{constant.removeprefix(prefix)}".lower()
                yield name, getattr(ofp, f"OFPET_{family}"), code


def handshake(v):
    dp = v.datapath
    v.built("features_request", parser.OFPFeaturesRequest(dp))
    features = pack("QIB3xII", 0x00A1B2C3D4E5F607, 256, 3, 0xC7, 0x0FFF)
    v.crafted("features_reply_two_ports", "OFPSwitchFeatures",
              features + phy_port(1, "eth1") + phy_port(ofp.OFPP_LOCAL, "s1"))
    v.crafted("features_reply_no_ports", "OFPSwitchFeatures", features)
    v.built("get_config_request", parser.OFPGetConfigRequest(dp))
    v.crafted("get_config_reply", "OFPGetConfigReply", pack("HH", ofp.OFPC_FRAG_DROP, 128))
    v.built("set_config", parser.OFPSetConfig(dp, ofp.OFPC_FRAG_REASM, 0xFFE5))
    v.built("barrier_request", parser.OFPBarrierRequest(dp))
    v.crafted("barrier_reply", "OFPBarrierReply", b"")


def phy_port(number, name):
    return pack("H6s16sIIIIII", number, mac("02:00:00:00:00:0a"), name.encode(),
                ofp.OFPPC_NO_FLOOD, ofp.OFPPS_STP_FORWARD, 0x0C0, 0x2C0, 0x6FF, 0x040)


def asynchronous(v):
    for reason, name in enumerate(("no_match", "action")):
        v.crafted(f"packet_in_{name}", "OFPPacketIn",
                  pack("IHHBx", 0x01020304, len(FRAME), 5, reason) + FRAME)
    v.crafted("packet_in_unbuffered_truncated", "OFPPacketIn",
              pack("IHHBx", ofp.OFP_NO_BUFFER, 1500, 6, ofp.OFPR_NO_MATCH) + FRAME[:32])
    v.crafted("packet_in_empty", "OFPPacketIn", pack("IHHBx", 0x01020304, 60, 7, ofp.OFPR_NO_MATCH))
    for reason, name in enumerate(("idle_timeout", "hard_timeout", "delete")):
        v.crafted(f"flow_removed_{name}", "OFPFlowRemoved", serialized(tcp_match()) + pack(
            "QHBxIIH2xQQ", 0x1122334455667788, 0x8001, reason, 90, 123456789, 60, 1001, 64064))
    for reason, name in enumerate(("add", "delete", "modify")):
        v.crafted(f"port_status_{name}", "OFPPortStatus", pack("B7x", reason) + phy_port(7, "veth7"))


def tcp_match():
    """Returns a match with every field set."""
    return parser.OFPMatch(
        in_port=1, dl_src="02:00:00:00:00:01", dl_dst="02:00:00:00:00:02", dl_vlan=100, dl_vlan_pcp=5,
        dl_type=0x0800, nw_tos=0x20, nw_proto=6, nw_src="10.1.2.3", nw_dst="10.4.5.6", tp_src=1234, tp_dst=80)


def matches():
    """Returns named matches: each field alone (with its prerequisites), prefixes, and both extremes."""
    udp = {"dl_type": 0x0800, "nw_proto": 17}
    return {
        "all_wildcarded": parser.OFPMatch(),
        "exact": tcp_match(),
        "in_port": parser.OFPMatch(in_port=9),
        "dl_src": parser.OFPMatch(dl_src="02:00:00:00:00:03"),
        "dl_dst": parser.OFPMatch(dl_dst="02:00:00:00:00:04"),
        "dl_vlan": parser.OFPMatch(dl_vlan=0x0ABC),
        "dl_vlan_none": parser.OFPMatch(dl_vlan=0xFFFF),
        "dl_vlan_pcp": parser.OFPMatch(dl_vlan=0x0ABC, dl_vlan_pcp=6),
        "dl_type": parser.OFPMatch(dl_type=0x88CC),
        "nw_tos": parser.OFPMatch(dl_type=0x0800, nw_tos=0xB8),
        "nw_proto": parser.OFPMatch(**udp),
        "nw_src": parser.OFPMatch(dl_type=0x0800, nw_src="192.0.2.1"),
        "nw_dst": parser.OFPMatch(dl_type=0x0800, nw_dst="192.0.2.2"),
        "nw_src_prefix_8": parser.OFPMatch(dl_type=0x0800, nw_src="10.0.0.0", nw_src_mask=8),
        "nw_dst_prefix_25": parser.OFPMatch(dl_type=0x0800, nw_dst="10.9.8.128", nw_dst_mask=25),
        "tp_src": parser.OFPMatch(**udp, tp_src=53),
        "tp_dst": parser.OFPMatch(**udp, tp_dst=5353),
        "arp": parser.OFPMatch(dl_type=0x0806, nw_proto=2, nw_src="10.1.1.1", nw_dst="10.1.1.2"),
        "icmp": parser.OFPMatch(dl_type=0x0800, nw_proto=1, tp_src=3, tp_dst=1),
    }


def actions():
    """Returns every action."""
    return {
        "output": parser.OFPActionOutput(2),
        "output_controller": parser.OFPActionOutput(ofp.OFPP_CONTROLLER, 128),
        "set_vlan_vid": parser.OFPActionVlanVid(0x0123),
        "set_vlan_pcp": parser.OFPActionVlanPcp(3),
        "strip_vlan": parser.OFPActionStripVlan(),
        "set_dl_src": parser.OFPActionSetDlSrc("02:00:00:00:00:05"),
        "set_dl_dst": parser.OFPActionSetDlDst("02:00:00:00:00:06"),
        "set_nw_src": parser.OFPActionSetNwSrc("198.51.100.1"),
        "set_nw_dst": parser.OFPActionSetNwDst("198.51.100.2"),
        "set_nw_tos": parser.OFPActionSetNwTos(0x48),
        "set_tp_src": parser.OFPActionSetTpSrc(1001),
        "set_tp_dst": parser.OFPActionSetTpDst(1002),
        "enqueue": parser.OFPActionEnqueue(4, 0x0D0E0F10),
        "vendor": parser.OFPActionVendorUnknown(VENDOR, b"\x01\x02\x03\x04\x05\x06\x07\x08"),
    }


def packet_outs(v):
    dp = v.datapath
    v.built("packet_out_buffered", parser.OFPPacketOut(
        dp, buffer_id=0x01020304, in_port=5, actions=[parser.OFPActionOutput(2)]))
    v.built("packet_out_data_flood", parser.OFPPacketOut(
        dp, buffer_id=ofp.OFP_NO_BUFFER, in_port=5, actions=[parser.OFPActionOutput(ofp.OFPP_FLOOD)], data=FRAME))
    v.built("packet_out_drop", parser.OFPPacketOut(dp, buffer_id=0x01020305, in_port=ofp.OFPP_NONE, actions=[]))
    v.built("packet_out_table", parser.OFPPacketOut(
        dp, buffer_id=ofp.OFP_NO_BUFFER, in_port=ofp.OFPP_CONTROLLER,
        actions=[parser.OFPActionOutput(ofp.OFPP_TABLE)], data=FRAME))


def flow_mods(v):
    for command, name in enumerate(("add", "modify", "modify_strict", "delete", "delete_strict")):
        v.built(f"flow_mod_{name}", flow_mod(v.datapath, tcp_match(), command=command, out_port=3))
    for name, match in matches().items():
        v.built(f"flow_mod_match_{name}", flow_mod(v.datapath, match))
    for name, action in actions().items():
        v.built(f"flow_mod_action_{name}", flow_mod(v.datapath, tcp_match(), actions=[action]))
    v.built("flow_mod_all_actions", flow_mod(v.datapath, tcp_match(), actions=list(actions().values())))
    v.built("flow_mod_no_actions", flow_mod(v.datapath, tcp_match(), actions=[]))
    v.built("flow_mod_flags", flow_mod(v.datapath, tcp_match(), flags=ofp.OFPFF_SEND_FLOW_REM | ofp.OFPFF_CHECK_OVERLAP))
    v.built("flow_mod_emergency", flow_mod(
        v.datapath, tcp_match(), flags=ofp.OFPFF_EMERG, idle_timeout=0, hard_timeout=0))


def flow_mod(datapath, match, **changed):
    fields = {
        "cookie": 0x1122334455667788, "idle_timeout": 5, "hard_timeout": 60, "priority": 0x8001,
        "buffer_id": 0x01020304, "flags": ofp.OFPFF_SEND_FLOW_REM, "actions": [parser.OFPActionOutput(2)],
    }
    return parser.OFPFlowMod(datapath, match, **{**fields, **changed})


def other_mods(v):
    v.built("port_mod", parser.OFPPortMod(
        v.datapath, port_no=3, hw_addr="02:00:00:00:00:0a", config=ofp.OFPPC_PORT_DOWN,
        mask=ofp.OFPPC_PORT_DOWN | ofp.OFPPC_NO_FLOOD, advertise=0x2C0))


def queues(v):
    v.built("queue_get_config_request", parser.OFPQueueGetConfigRequest(v.datapath, 4))
    min_rate = pack("HH4xH6x", ofp.OFPQT_MIN_RATE, 16, 250)
    none = pack("HH4x", ofp.OFPQT_NONE, 8)
    v.crafted("queue_get_config_reply_two_queues", "OFPQueueGetConfigReply",
              pack("H6x", 4) + packet_queue(0x11, min_rate) + packet_queue(0x12, none))
    v.crafted("queue_get_config_reply_empty", "OFPQueueGetConfigReply", pack("H6x", 4))


def packet_queue(queue_id, properties):
    return pack("IH2x", queue_id, 8 + len(properties)) + properties


def stats_requests(v):
    dp = v.datapath
    v.built("stats_request_desc", parser.OFPDescStatsRequest(dp, 0))
    v.built("stats_request_flow", parser.OFPFlowStatsRequest(dp, 0, tcp_match(), 2, 3))
    v.built("stats_request_flow_all", parser.OFPFlowStatsRequest(dp, 0, parser.OFPMatch(), 0xFF, ofp.OFPP_NONE))
    v.built("stats_request_aggregate", parser.OFPAggregateStatsRequest(dp, 0, tcp_match(), 0xFE, 4))
    v.built("stats_request_table", parser.OFPTableStatsRequest(dp, 0))
    v.built("stats_request_port", parser.OFPPortStatsRequest(dp, 0, 7))
    v.built("stats_request_port_all", parser.OFPPortStatsRequest(dp, 0, ofp.OFPP_NONE))
    v.built("stats_request_queue", parser.OFPQueueStatsRequest(dp, 0, 7, 0x11))
    v.built("stats_request_vendor", parser.OFPVendorStatsRequest(dp, 0, VENDOR, b"\x21\x22\x23\x24"))


def stats_replies(v):
    def reply(name, type_name, stats_type, body, flags=0):
        # os-ken's class of a reply depends on the stats type, unlike its message type.
        message_type = ofp.OFPT_STATS_REPLY
        v.crafted(f"stats_reply_{name}", type_name, pack("HH", stats_type, flags) + body, message_type)

    reply("desc", "OFPDescStatsReply", ofp.OFPST_DESC, pack(
        "256s256s256s32s256s", b"Maker", b"Hardware", b"Software", b"Serial", b"Datapath"))
    reply("flow_two_entries_more", "OFPFlowStatsReply", ofp.OFPST_FLOW,
          flow_stats(1, tcp_match(), parser.OFPActionSetDlDst("02:00:00:00:00:06"), parser.OFPActionOutput(2))
          + flow_stats(2, parser.OFPMatch(in_port=9)), flags=ofp.OFPSF_REPLY_MORE)
    reply("flow_empty", "OFPFlowStatsReply", ofp.OFPST_FLOW, b"")
    reply("aggregate", "OFPAggregateStatsReply", ofp.OFPST_AGGREGATE, pack("QQI4x", 1001, 64064, 17))
    reply("table", "OFPTableStatsReply", ofp.OFPST_TABLE,
          pack("B3x32sIIIQQ", 1, b"classifier", ofp.OFPFW_ALL, 65536, 12, 3456, 789))
    reply("port_two_ports", "OFPPortStatsReply", ofp.OFPST_PORT, port_stats(1, 100) + port_stats(2, 200))
    reply("queue", "OFPQueueStatsReply", ofp.OFPST_QUEUE, pack("H2xIQQQ", 7, 0x11, 64064, 1001, 3))
    reply("vendor", "OFPVendorStatsReply", ofp.OFPST_VENDOR, pack("I", VENDOR) + b"\x31\x32\x33\x34")


def flow_stats(table_id, match, *actions_):
    tail = b"".join(serialized(action) for action in actions_)
    head = pack("HBx", 88 + len(tail), table_id)
    counters = pack("IIHHH6xQQQ", 90, 123456789, 0x8001, 5, 60, 0x1122334455667788, 1001, 64064)
    return head + serialized(match) + counters + tail


def port_stats(number, first):
    return pack("H6x12Q", number, *range(first, first + 12))
