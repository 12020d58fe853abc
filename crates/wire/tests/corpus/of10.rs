//! The examples of OpenFlow 1.0.

use super::values::*;
use super::{BUFFER, Corpus};
use urtica_wire::*;

pub fn add_all(corpus: &mut Corpus) {
    add_features(corpus);
    add_asynchronous_messages(corpus);
    add_packet_outs(corpus);
    add_flow_mods(corpus);
    add_matches(corpus);
    add_actions(corpus);
    add_port_mod(corpus);
    add_queues(corpus);
    add_stats_requests(corpus);
    add_stats_replies(corpus);
}

fn add_features(corpus: &mut Corpus) {
    let features = Features {
        datapath_id: DatapathId(0x00a1_b2c3_d4e5_f607),
        n_buffers: 256,
        n_tables: 254,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS | Capabilities::ARP_MATCH_IP,
        actions: 0xfff,
        ports: List::from(vec![port(PortNo(1), "eth1"), port(PortNo::LOCAL, "s1")]),
    };
    corpus.add("features_reply", &Message::FeaturesReply(features));
}

fn add_asynchronous_messages(corpus: &mut Corpus) {
    for reason in [PacketInReason::NoMatch, PacketInReason::Action] {
        let packet_in = PacketIn {
            buffer_id: BUFFER,
            total_len: 1500,
            reason,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(5),
            match_: Match::any().in_port(PortNo(5)),
            data: FRAME,
        };
        corpus.add(
            format!("packet_in_{reason:?}"),
            &Message::PacketIn(packet_in),
        );
    }
    for reason in [
        FlowRemovedReason::IdleTimeout,
        FlowRemovedReason::HardTimeout,
        FlowRemovedReason::Delete,
    ] {
        let removed = FlowRemoved {
            cookie: COOKIE,
            priority: PRIORITY,
            reason,
            table_id: 0,
            duration_sec: DURATION_SEC,
            duration_nsec: DURATION_NSEC,
            idle_timeout: IDLE_TIMEOUT_SEC,
            hard_timeout: 0,
            packet_count: PACKETS,
            byte_count: BYTES,
            match_: tcp_match(),
        };
        corpus.add(
            format!("flow_removed_{reason:?}"),
            &Message::FlowRemoved(removed),
        );
    }
    for reason in [PortReason::Add, PortReason::Delete, PortReason::Modify] {
        let port = port(PortNo(7), "veth7");
        let status = Message::PortStatus(PortStatus { reason, port });
        corpus.add(format!("port_status_{reason:?}"), &status);
    }
}

fn add_packet_outs(corpus: &mut Corpus) {
    let kept = PacketOut {
        buffer_id: BUFFER,
        in_port: PortNo(5),
        actions: List::from(vec![Action::output(PortNo(2))]),
        data: &[],
    };
    corpus.add("packet_out_kept", &Message::PacketOut(kept));
    let whole = PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::ANY,
        actions: List::from(vec![Action::output(PortNo::FLOOD)]),
        data: FRAME,
    };
    corpus.add("packet_out_whole", &Message::PacketOut(whole));
}

fn flow_mod<'a>(match_: Match<'a>, actions: Vec<Action<'a>>) -> FlowMod<'a> {
    FlowMod {
        cookie: COOKIE,
        idle_timeout: IDLE_TIMEOUT_SEC,
        hard_timeout: HARD_TIMEOUT_SEC,
        priority: PRIORITY,
        buffer_id: BUFFER,
        out_port: PortNo(3),
        flags: FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP | FlowModFlags::EMERG,
        match_,
        instructions: List::from(vec![Instruction::apply(actions)]),
        ..FlowMod::default()
    }
}

fn add_flow_mods(corpus: &mut Corpus) {
    for command in [
        FlowModCommand::Add,
        FlowModCommand::Modify,
        FlowModCommand::ModifyStrict,
        FlowModCommand::Delete,
        FlowModCommand::DeleteStrict,
    ] {
        let flow_mod = FlowMod {
            command,
            ..flow_mod(tcp_match(), vec![Action::output(PortNo(2))])
        };
        corpus.add(format!("flow_mod_{command:?}"), &Message::FlowMod(flow_mod));
    }
}

fn add_matches(corpus: &mut Corpus) {
    let ipv4 = || Match::any().eth_type(0x0800);
    let matches = [
        ("any", Match::any()),
        (
            "arp",
            Match::any()
                .eth_type(0x0806)
                .with_exact(OxmField::ArpOp, 2_u8)
                .with_exact(OxmField::ArpSpa, 0x0a00_0001_u32)
                .with_masked(OxmField::ArpTpa, 0x0a00_0200_u32, 0xffff_ff00_u32),
        ),
        ("udp", ipv4().ip_proto(17).udp_src(53).udp_dst(1053)),
        (
            "icmp",
            ipv4()
                .ip_proto(1)
                .with_exact(OxmField::Icmpv4Type, 3_u8)
                .with_exact(OxmField::Icmpv4Code, 13_u8),
        ),
        (
            "prefixes",
            ipv4()
                .with_masked(OxmField::Ipv4Src, 0x8000_0000_u32, 0x8000_0000_u32)
                .with_masked(OxmField::Ipv4Dst, 0x0a01_0202_u32, 0xffff_fffe_u32),
        ),
        ("untagged", Match::any().with_exact(OxmField::VlanVid, 0_u8)),
        (
            "any_vlan",
            Match::any()
                .with_masked(OxmField::VlanVid, VLAN_PRESENT, VLAN_PRESENT)
                .with_exact(OxmField::VlanPcp, 6_u8),
        ),
    ];
    for (name, match_) in matches {
        let flow_mod = flow_mod(match_, vec![Action::output(PortNo(2))]);
        corpus.add(
            format!("flow_mod_match_{name}"),
            &Message::FlowMod(flow_mod),
        );
    }
}

fn set_field(field: OxmField, value: u128) -> Action<'static> {
    Action::SetField(Field::exact(field, value))
}

/// Every action, by its number on the wire.
fn actions() -> [(u16, Action<'static>); 13] {
    let controller = Action::Output {
        port: PortNo::CONTROLLER,
        max_len: 128,
    };
    let enqueue = Action::Enqueue {
        port: PortNo(7),
        queue_id: 0x11,
    };
    let vendor = Action::Experimenter {
        experimenter: EXPERIMENTER,
        data: OPAQUE,
    };
    [
        (0, controller),
        (1, Action::SetVlanVid(0xabc)),
        (2, Action::SetVlanPcp(6)),
        (3, Action::PopVlan),
        (4, set_field(OxmField::EthSrc, 0x0200_0000_0003)),
        (5, set_field(OxmField::EthDst, 0x0200_0000_0004)),
        (6, set_field(OxmField::Ipv4Src, 0x0a01_0203)),
        (7, set_field(OxmField::Ipv4Dst, 0x0a04_0506)),
        (8, set_field(OxmField::IpDscp, 46)),
        (9, Action::SetTpSrc(1021)),
        (10, Action::SetTpDst(1022)),
        (11, enqueue),
        (0xffff, vendor),
    ]
}

fn add_actions(corpus: &mut Corpus) {
    for (number, action) in actions() {
        let flow_mod = flow_mod(tcp_match(), vec![action]);
        corpus.add(
            format!("flow_mod_action_{number}"),
            &Message::FlowMod(flow_mod),
        );
    }
    let all = actions().into_iter().map(|(_, action)| action).collect();
    let flow_mod = flow_mod(tcp_match(), all);
    corpus.add("flow_mod_all_actions", &Message::FlowMod(flow_mod));
}

fn add_port_mod(corpus: &mut Corpus) {
    let port_mod = PortMod {
        port_no: PortNo(3),
        hw_addr: MacAddr::new([2, 0, 0, 0, 0, 0x0b]),
        config: PortConfig::NO_FLOOD,
        mask: PortConfig::NO_FLOOD | PortConfig::NO_RECV,
        advertise: PortFeatures::FD_1GB | PortFeatures::COPPER,
    };
    corpus.add("port_mod", &Message::PortMod(port_mod));
}

fn add_queues(corpus: &mut Corpus) {
    corpus.add(
        "queue_get_config_request",
        &Message::QueueGetConfigRequest(PortNo(4)),
    );
    let queue = |queue_id, properties: Vec<_>| PacketQueue {
        queue_id,
        port: PortNo::ANY,
        properties: List::from(properties),
    };
    let config = QueueConfig {
        port: PortNo(4),
        queues: List::from(vec![
            queue(0x11, vec![QueueProperty::MinRate(250)]),
            queue(0x12, vec![QueueProperty::None]),
        ]),
    };
    corpus.add(
        "queue_get_config_reply",
        &Message::QueueGetConfigReply(config),
    );
}

fn vendor_stats() -> ExperimenterMultipart<'static> {
    ExperimenterMultipart {
        experimenter: EXPERIMENTER,
        data: OPAQUE,
    }
}

fn add_stats_requests(corpus: &mut Corpus) {
    let flows = |table_id, port| FlowStatsRequest {
        table_id,
        out_port: PortNo(port),
        match_: tcp_match(),
        ..FlowStatsRequest::default()
    };
    let queue = MultipartRequestBody::Queue {
        port: PortNo::ALL,
        queue_id: 0x11,
    };
    let bodies = [
        ("desc", MultipartRequestBody::Desc),
        ("flow", MultipartRequestBody::Flow(flows(2, 3))),
        ("aggregate", MultipartRequestBody::Aggregate(flows(4, 5))),
        ("table", MultipartRequestBody::Table),
        ("port", MultipartRequestBody::PortStats(PortNo(7))),
        ("queue", queue),
        ("vendor", MultipartRequestBody::Experimenter(vendor_stats())),
    ];
    for (name, body) in bodies {
        let flags = MultipartFlags::empty();
        let request = Message::MultipartRequest(MultipartRequest { flags, body });
        corpus.add(format!("stats_request_{name}"), &request);
    }
}

fn add_stats_replies(corpus: &mut Corpus) {
    let bodies = [
        ("desc", MultipartReplyBody::Desc(desc())),
        ("flow", MultipartReplyBody::Flow(List::from(flow_stats()))),
        ("aggregate", MultipartReplyBody::Aggregate(aggregate())),
        (
            "table",
            MultipartReplyBody::Table(List::from(vec![table_stats()])),
        ),
        (
            "port",
            MultipartReplyBody::PortStats(List::from(vec![
                port_stats(PortNo(1), 100),
                port_stats(PortNo::LOCAL, 200),
            ])),
        ),
        (
            "queue",
            MultipartReplyBody::Queue(List::from(vec![queue_stats()])),
        ),
        ("vendor", MultipartReplyBody::Experimenter(vendor_stats())),
    ];
    for (name, body) in bodies {
        let flags = MultipartFlags::MORE;
        let reply = Message::MultipartReply(MultipartReply { flags, body });
        corpus.add(format!("stats_reply_{name}"), &reply);
    }
}

fn flow_stats() -> Vec<FlowStats<'static>> {
    let entry = |table_id, match_, actions: Vec<_>| FlowStats {
        table_id,
        duration_sec: DURATION_SEC,
        duration_nsec: DURATION_NSEC,
        priority: PRIORITY,
        idle_timeout: IDLE_TIMEOUT_SEC,
        hard_timeout: HARD_TIMEOUT_SEC,
        flags: FlowModFlags::empty(),
        cookie: COOKIE,
        packet_count: PACKETS,
        byte_count: BYTES,
        match_,
        instructions: List::from(vec![Instruction::apply(actions)]),
    };
    vec![
        entry(
            7,
            tcp_match(),
            vec![Action::PopVlan, Action::output(PortNo(2))],
        ),
        entry(
            8,
            Match::any().in_port(PortNo(9)),
            vec![Action::controller()],
        ),
    ]
}

fn table_stats() -> TableStats {
    TableStats {
        table_id: 7,
        name: FixedName::truncated("classifier"),
        wildcards: 0x003f_ffff,
        max_entries: 0x1_0000,
        active_count: 12,
        lookup_count: 3456,
        matched_count: 789,
    }
}

fn queue_stats() -> QueueStats {
    QueueStats {
        port_no: PortNo(7),
        queue_id: 0x11,
        tx_bytes: BYTES,
        tx_packets: PACKETS,
        tx_errors: 3,
        duration_sec: 0,
        duration_nsec: 0,
    }
}
