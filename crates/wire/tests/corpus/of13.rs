//! The examples of OpenFlow 1.3.

use super::values::*;
use super::{BUFFER, Corpus};
use urtica_wire::*;

pub fn add_all(corpus: &mut Corpus) {
    add_hellos(corpus);
    add_experimenter_error(corpus);
    add_features(corpus);
    add_asynchronous_messages(corpus);
    add_packet_outs(corpus);
    add_flow_mods(corpus);
    add_matches(corpus);
    add_set_fields(corpus);
    add_actions(corpus);
    add_instructions(corpus);
    add_group_mods(corpus);
    add_meter_mods(corpus);
    add_other_mods(corpus);
    add_queues(corpus);
    add_roles(corpus);
    add_multipart_requests(corpus);
    add_multipart_replies(corpus);
}

const GROUP: u32 = 0x0a0b_0c0d;
const METER: u32 = 0x0e0f_1011;

fn add_hellos(corpus: &mut Corpus) {
    // Elements are multiples of eight bytes long, since os-ken does not skip an element's padding.
    let bitmap = HelloElement::VersionBitmap(&[0, 0, 0, 0x12]);
    let other = HelloElement::Other {
        element_type: 0x7fff,
        data: b"what",
    };
    let hello = Hello {
        elements: List::from(vec![other, bitmap]),
    };
    corpus.add("hello_elements", &Message::Hello(hello));
}

fn add_experimenter_error(corpus: &mut Corpus) {
    let error = ErrorMessage {
        code: ErrorCode::Other {
            error_type: 0xffff,
            code: 0x0102,
        },
        data: &[0x00, 0xab, 0xcd, 0xef, 1, 2, 3, 4],
    };
    corpus.add("error_experimenter", &Message::Error(error));
}

fn add_features(corpus: &mut Corpus) {
    let features = Features {
        datapath_id: DatapathId(0x00a1_b2c3_d4e5_f607),
        n_buffers: 256,
        n_tables: 254,
        auxiliary_id: 3,
        capabilities: Capabilities::FLOW_STATS | Capabilities::PORT_BLOCKED,
        actions: 0,
        ports: List::default(),
    };
    corpus.add("features_reply", &Message::FeaturesReply(features));
}

fn port13(port_no: PortNo, name: &str) -> Port {
    Port {
        state: PortState::LIVE,
        curr: PortFeatures::FD_40GB | PortFeatures::COPPER,
        curr_speed: 1_000_000,
        max_speed: 10_000_000,
        ..port(port_no, name)
    }
}

fn add_asynchronous_messages(corpus: &mut Corpus) {
    let in_port = Match::any().in_port(PortNo(5));
    let pipeline = in_port
        .clone()
        .with_exact(OxmField::InPhyPort, 6_u8)
        .with_exact(OxmField::Metadata, COOKIE)
        .with_exact(OxmField::TunnelId, COOKIE_MASK);
    for (reason, match_) in [
        (PacketInReason::NoMatch, in_port.clone()),
        (PacketInReason::Action, pipeline),
        (PacketInReason::InvalidTtl, in_port),
    ] {
        let packet_in = PacketIn {
            buffer_id: BUFFER,
            total_len: 1500,
            reason,
            table_id: 7,
            cookie: COOKIE,
            in_port: PortNo(5),
            match_,
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
        FlowRemovedReason::GroupDelete,
    ] {
        let removed = FlowRemoved {
            cookie: COOKIE,
            priority: PRIORITY,
            reason,
            table_id: 7,
            duration_sec: DURATION_SEC,
            duration_nsec: DURATION_NSEC,
            idle_timeout: IDLE_TIMEOUT_SEC,
            hard_timeout: HARD_TIMEOUT_SEC,
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
        let port = port13(PortNo(7), "veth7");
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
        in_port: PortNo::CONTROLLER,
        actions: List::from(vec![
            set_field(OxmField::EthDst),
            Action::output(PortNo::FLOOD),
        ]),
        data: FRAME,
    };
    corpus.add("packet_out_whole", &Message::PacketOut(whole));
}

fn flow_mod<'a>(match_: Match<'a>, instructions: Vec<Instruction<'a>>) -> FlowMod<'a> {
    FlowMod {
        cookie: COOKIE,
        cookie_mask: COOKIE_MASK,
        table_id: 7,
        command: FlowModCommand::Add,
        idle_timeout: IDLE_TIMEOUT_SEC,
        hard_timeout: HARD_TIMEOUT_SEC,
        priority: PRIORITY,
        buffer_id: BUFFER,
        out_port: PortNo(3),
        out_group: 4,
        flags: FlowModFlags::SEND_FLOW_REM | FlowModFlags::RESET_COUNTS,
        match_,
        instructions: List::from(instructions),
    }
}

fn output() -> Vec<Instruction<'static>> {
    vec![Instruction::apply(vec![Action::output(PortNo(2))])]
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
            ..flow_mod(tcp_match(), output())
        };
        corpus.add(format!("flow_mod_{command:?}"), &Message::FlowMod(flow_mod));
    }
    let table_miss = FlowMod {
        priority: 0,
        instructions: List::from(vec![Instruction::apply(vec![Action::controller()])]),
        ..FlowMod::default()
    };
    corpus.add("flow_mod_table_miss", &Message::FlowMod(table_miss));
}

/// Returns a value for every field: as many of these bits as it has. The lowest is set, and so is OFPVID_PRESENT.
fn value_of(field: OxmField) -> u128 {
    0x1122_3344_5566_7788_99aa_bbcc_ddee_ff01 & field.full_mask()
}

/// Returns a match on the prerequisites of a field.
fn prerequisites(field: OxmField) -> Match<'static> {
    let eth_type = |eth_type| Match::any().eth_type(eth_type);
    let over_ipv4 = |protocol| eth_type(0x0800).ip_proto(protocol);
    let over_ipv6 = |protocol| eth_type(0x86dd).ip_proto(protocol);
    let icmpv6 = |icmp_type: u8| over_ipv6(58).with_exact(OxmField::Icmpv6Type, icmp_type);
    match field {
        OxmField::InPort
        | OxmField::Metadata
        | OxmField::EthDst
        | OxmField::EthSrc
        | OxmField::EthType
        | OxmField::VlanVid
        | OxmField::TunnelId => Match::any(),
        OxmField::InPhyPort => Match::any().in_port(PortNo(9)),
        OxmField::VlanPcp => Match::any().vlan_vid(0xabc),
        OxmField::IpDscp | OxmField::IpProto | OxmField::Ipv4Src | OxmField::Ipv4Dst => {
            eth_type(0x0800)
        }
        OxmField::IpEcn
        | OxmField::Ipv6Src
        | OxmField::Ipv6Dst
        | OxmField::Ipv6Flabel
        | OxmField::Ipv6Exthdr => eth_type(0x86dd),
        OxmField::TcpSrc => over_ipv4(6),
        OxmField::TcpDst => over_ipv6(6),
        OxmField::UdpSrc => over_ipv4(17),
        OxmField::UdpDst => over_ipv6(17),
        OxmField::SctpSrc => over_ipv4(132),
        OxmField::SctpDst => over_ipv6(132),
        OxmField::Icmpv4Type | OxmField::Icmpv4Code => over_ipv4(1),
        OxmField::ArpOp
        | OxmField::ArpSpa
        | OxmField::ArpTpa
        | OxmField::ArpSha
        | OxmField::ArpTha => eth_type(0x0806),
        OxmField::Icmpv6Type | OxmField::Icmpv6Code => over_ipv6(58),
        OxmField::Ipv6NdTarget | OxmField::Ipv6NdSll => icmpv6(135),
        OxmField::Ipv6NdTll => icmpv6(136),
        OxmField::MplsLabel | OxmField::MplsTc | OxmField::MplsBos => eth_type(0x8847),
        OxmField::PbbIsid => eth_type(0x88e7),
    }
}

fn add_matches(corpus: &mut Corpus) {
    let mut add = |name: String, match_: Match| {
        corpus.add(name, &Message::FlowMod(flow_mod(match_, output())));
    };
    for &field in OxmField::ALL {
        let name = format!("flow_mod_oxm_{}", field.name());
        let needed = prerequisites(field);
        add(
            name.clone(),
            needed.clone().with_exact(field, value_of(field)),
        );
        if field.maskable() {
            let high_bits = field.full_mask() & !0xf;
            add(
                name + "_masked",
                needed.with_masked(field, value_of(field), high_bits),
            );
        }
    }
    let untagged = Match::any().with_exact(OxmField::VlanVid, 0_u8);
    add("flow_mod_oxm_vlan_none".into(), untagged);
    for (name, raw) in raw_fields() {
        let match_ = Match::any().with(Field::Raw(raw));
        add(format!("flow_mod_oxm_raw_{name}"), match_);
    }
}

/// Fields that are not interpreted: ONF's `tcp_flags`, and Nicira's `reg0` with a mask.
fn raw_fields() -> [(&'static str, RawField<'static>); 2] {
    let tcp_flags = RawField {
        class: 0xffff,
        field: 42,
        has_mask: false,
        body: &[0x4f, 0x4e, 0x46, 0x00, 0x01, 0x12],
    };
    let reg0 = RawField {
        class: 0x0001,
        field: 0,
        has_mask: true,
        body: &[0x11, 0x12, 0x13, 0x10, 0xff, 0xff, 0xff, 0xf0],
    };
    [("tcp_flags", tcp_flags), ("reg0", reg0)]
}

fn set_field(field: OxmField) -> Action<'static> {
    Action::SetField(Field::exact(field, value_of(field)))
}

fn is_settable(field: &&OxmField) -> bool {
    !matches!(
        field,
        OxmField::InPort | OxmField::InPhyPort | OxmField::Metadata | OxmField::Ipv6Exthdr
    )
}

fn add_set_fields(corpus: &mut Corpus) {
    for &field in OxmField::ALL.iter().filter(is_settable) {
        let actions = vec![set_field(field), Action::output(PortNo(2))];
        let flow_mod = flow_mod(prerequisites(field), vec![Instruction::apply(actions)]);
        let name = format!("flow_mod_set_field_{}", field.name());
        corpus.add(name, &Message::FlowMod(flow_mod));
    }
}

/// Every action except set-field, by its number on the wire.
fn actions() -> [(u16, Action<'static>); 16] {
    let controller = Action::Output {
        port: PortNo::CONTROLLER,
        max_len: 128,
    };
    let experimenter = Action::Experimenter {
        experimenter: EXPERIMENTER,
        data: OPAQUE,
    };
    [
        (0, controller),
        (11, Action::CopyTtlOut),
        (12, Action::CopyTtlIn),
        (15, Action::SetMplsTtl(63)),
        (16, Action::DecMplsTtl),
        (17, Action::PushVlan(0x88a8)),
        (18, Action::PopVlan),
        (19, Action::PushMpls(0x8848)),
        (20, Action::PopMpls(0x86dd)),
        (21, Action::SetQueue(0x0d0e_0f10)),
        (22, Action::Group(GROUP)),
        (23, Action::SetNwTtl(62)),
        (24, Action::DecNwTtl),
        (26, Action::PushPbb(0x88e7)),
        (27, Action::PopPbb),
        (0xffff, experimenter),
    ]
}

fn add_actions(corpus: &mut Corpus) {
    for (number, action) in actions() {
        let flow_mod = flow_mod(tcp_match(), vec![Instruction::apply(vec![action])]);
        corpus.add(
            format!("flow_mod_action_{number}"),
            &Message::FlowMod(flow_mod),
        );
    }
}

/// Every instruction, by its number on the wire.
fn instructions() -> [(u16, Instruction<'static>); 7] {
    let write_metadata = Instruction::WriteMetadata {
        metadata: 0x0102_0304_0000_0000,
        mask: 0xffff_ffff_0000_0000,
    };
    let experimenter = Instruction::Experimenter {
        experimenter: EXPERIMENTER,
        data: OPAQUE,
    };
    let all_actions = actions().into_iter().map(|(_, action)| action).collect();
    [
        (1, Instruction::GotoTable(9)),
        (2, write_metadata),
        (3, Instruction::WriteActions(vec![Action::PopVlan].into())),
        (4, Instruction::ApplyActions(all_actions)),
        (5, Instruction::ClearActions),
        (6, Instruction::Meter(METER)),
        (0xffff, experimenter),
    ]
}

fn add_instructions(corpus: &mut Corpus) {
    for (number, instruction) in instructions() {
        let flow_mod = flow_mod(tcp_match(), vec![instruction]);
        let name = format!("flow_mod_instruction_{number}");
        corpus.add(name, &Message::FlowMod(flow_mod));
    }
}

fn buckets() -> List<'static, Bucket<'static>> {
    let actions = vec![set_field(OxmField::EthDst), Action::output(PortNo(13))];
    let watched = Bucket {
        weight: 10,
        watch_port: PortNo(11),
        watch_group: 12,
        actions: List::from(actions),
    };
    let dropping = Bucket {
        weight: 20,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: List::default(),
    };
    List::from(vec![watched, dropping])
}

fn add_group_mods(corpus: &mut Corpus) {
    let group_mod = |command, group_type| GroupMod {
        command,
        group_type,
        group_id: GROUP,
        buckets: buckets(),
    };
    for command in [
        GroupModCommand::Add,
        GroupModCommand::Modify,
        GroupModCommand::Delete,
    ] {
        let group_mod = group_mod(command, GroupType::Select);
        corpus.add(
            format!("group_mod_{command:?}"),
            &Message::GroupMod(group_mod),
        );
    }
    for group_type in [
        GroupType::All,
        GroupType::Select,
        GroupType::Indirect,
        GroupType::FastFailover,
    ] {
        let group_mod = group_mod(GroupModCommand::Add, group_type);
        let name = format!("group_mod_type_{group_type:?}");
        corpus.add(name, &Message::GroupMod(group_mod));
    }
}

/// Returns every meter band, by its name in the list of Wireshark's known faults.
fn bands() -> [(&'static str, MeterBand<'static>); 3] {
    let drop = MeterBand::Drop {
        rate: 1000,
        burst_size: 100,
    };
    let remark = MeterBand::DscpRemark {
        rate: 2000,
        burst_size: 200,
        prec_level: 2,
    };
    let experimenter = MeterBand::Experimenter {
        rate: 3000,
        burst_size: 300,
        experimenter: EXPERIMENTER,
        data: &[],
    };
    [
        ("drop", drop),
        ("dscp_remark", remark),
        ("experimenter", experimenter),
    ]
}

fn add_meter_mods(corpus: &mut Corpus) {
    let meter_mod = |command, bands: Vec<_>| MeterMod {
        command,
        flags: MeterFlags::KBPS | MeterFlags::BURST | MeterFlags::STATS,
        meter_id: METER,
        bands: List::from(bands),
    };
    for (name, command) in [
        ("add", MeterModCommand::Add),
        ("modify", MeterModCommand::Modify),
        ("delete", MeterModCommand::Delete),
    ] {
        let all = bands().map(|(_, band)| band).to_vec();
        let meter_mod = meter_mod(command, all[..2].to_vec());
        corpus.add(format!("meter_mod_{name}"), &Message::MeterMod(meter_mod));
    }
    for (name, band) in bands() {
        let meter_mod = meter_mod(MeterModCommand::Add, vec![band]);
        corpus.add(
            format!("meter_mod_band_{name}"),
            &Message::MeterMod(meter_mod),
        );
    }
}

fn add_other_mods(corpus: &mut Corpus) {
    let port_mod = PortMod {
        port_no: PortNo(3),
        hw_addr: MacAddr::new([2, 0, 0, 0, 0, 0x0b]),
        config: PortConfig::PORT_DOWN,
        mask: PortConfig::PORT_DOWN | PortConfig::NO_FWD,
        advertise: PortFeatures::FD_1GB | PortFeatures::COPPER,
    };
    corpus.add("port_mod", &Message::PortMod(port_mod));
    let table_mod = TableMod {
        table_id: 7,
        config: 3,
    };
    corpus.add("table_mod", &Message::TableMod(table_mod));
}

fn add_queues(corpus: &mut Corpus) {
    corpus.add(
        "queue_get_config_request",
        &Message::QueueGetConfigRequest(PortNo(4)),
    );
    let queue = |queue_id, properties: Vec<_>| PacketQueue {
        queue_id,
        port: PortNo(4),
        properties: List::from(properties),
    };
    let experimenter = QueueProperty::Experimenter {
        experimenter: EXPERIMENTER,
        data: OPAQUE,
    };
    let rates = vec![QueueProperty::MinRate(250), QueueProperty::MaxRate(750)];
    let config = QueueConfig {
        port: PortNo(4),
        queues: List::from(vec![queue(0x11, rates), queue(0x12, vec![experimenter])]),
    };
    corpus.add(
        "queue_get_config_reply",
        &Message::QueueGetConfigReply(config),
    );
}

fn add_roles(corpus: &mut Corpus) {
    for role in [
        ControllerRole::NoChange,
        ControllerRole::Equal,
        ControllerRole::Master,
        ControllerRole::Slave,
    ] {
        let generation_id = 0x0102_0304_0506_0708;
        let body = Role {
            role,
            generation_id,
        };
        corpus.add(
            format!("role_request_{role:?}"),
            &Message::RoleRequest(body),
        );
        corpus.add(format!("role_reply_{role:?}"), &Message::RoleReply(body));
    }
    let config = AsyncConfig {
        packet_in_mask: [0x07, 0x01],
        port_status_mask: [0x06, 0x05],
        flow_removed_mask: [0x0f, 0x03],
    };
    corpus.add("get_async_request", &Message::GetAsyncRequest);
    corpus.add("get_async_reply", &Message::GetAsyncReply(config));
    corpus.add("set_async", &Message::SetAsync(config));
}

fn experimenter_multipart() -> ExperimenterMultipart<'static> {
    ExperimenterMultipart {
        experimenter: EXPERIMENTER,
        data: OPAQUE,
    }
}

fn add_multipart_requests(corpus: &mut Corpus) {
    let flows = |table_id, port, group| FlowStatsRequest {
        table_id,
        out_port: PortNo(port),
        out_group: group,
        cookie: COOKIE,
        cookie_mask: COOKIE_MASK,
        match_: tcp_match(),
    };
    let queue = MultipartRequestBody::Queue {
        port: PortNo(7),
        queue_id: 0x11,
    };
    let table_features = List::from(vec![table_features()]);
    let bodies = [
        ("desc", MultipartRequestBody::Desc),
        ("flow", MultipartRequestBody::Flow(flows(7, 3, 4))),
        ("aggregate", MultipartRequestBody::Aggregate(flows(8, 5, 6))),
        ("table", MultipartRequestBody::Table),
        ("port_stats", MultipartRequestBody::PortStats(PortNo(7))),
        ("queue", queue),
        ("group", MultipartRequestBody::Group(GROUP)),
        ("group_desc", MultipartRequestBody::GroupDesc),
        ("group_features", MultipartRequestBody::GroupFeatures),
        ("meter", MultipartRequestBody::Meter(METER)),
        ("meter_config", MultipartRequestBody::MeterConfig(METER_ALL)),
        ("meter_features", MultipartRequestBody::MeterFeatures),
        (
            "table_features",
            MultipartRequestBody::TableFeatures(List::default()),
        ),
        (
            "table_features_set",
            MultipartRequestBody::TableFeatures(table_features),
        ),
        ("port_desc", MultipartRequestBody::PortDesc),
        (
            "experimenter",
            MultipartRequestBody::Experimenter(experimenter_multipart()),
        ),
    ];
    for (name, body) in bodies {
        let flags = MultipartFlags::empty();
        let request = Message::MultipartRequest(MultipartRequest { flags, body });
        corpus.add(format!("multipart_request_{name}"), &request);
    }
}

fn add_multipart_replies(corpus: &mut Corpus) {
    let ports = vec![port13(PortNo(1), "eth1"), port13(PortNo::LOCAL, "s1")];
    let port_stats = |number, first| PortStats {
        duration_sec: DURATION_SEC,
        duration_nsec: DURATION_NSEC,
        ..port_stats(PortNo(number), first)
    };
    let bodies = [
        ("desc", MultipartReplyBody::Desc(desc())),
        ("flow", MultipartReplyBody::Flow(List::from(flow_stats()))),
        ("aggregate", MultipartReplyBody::Aggregate(aggregate())),
        (
            "table",
            MultipartReplyBody::Table(vec![table_stats()].into()),
        ),
        (
            "port_stats",
            MultipartReplyBody::PortStats(vec![port_stats(1, 100), port_stats(2, 200)].into()),
        ),
        (
            "queue",
            MultipartReplyBody::Queue(vec![queue_stats()].into()),
        ),
        (
            "group",
            MultipartReplyBody::Group(vec![group_stats()].into()),
        ),
        (
            "group_desc",
            MultipartReplyBody::GroupDesc(vec![group_desc()].into()),
        ),
        (
            "group_features",
            MultipartReplyBody::GroupFeatures(group_features()),
        ),
        (
            "meter",
            MultipartReplyBody::Meter(vec![meter_stats()].into()),
        ),
        (
            "meter_config",
            MultipartReplyBody::MeterConfig(vec![meter_config()].into()),
        ),
        (
            "meter_features",
            MultipartReplyBody::MeterFeatures(meter_features()),
        ),
        (
            "table_features",
            MultipartReplyBody::TableFeatures(vec![table_features()].into()),
        ),
        ("port_desc", MultipartReplyBody::PortDesc(ports.into())),
        (
            "experimenter",
            MultipartReplyBody::Experimenter(experimenter_multipart()),
        ),
    ];
    for (name, body) in bodies {
        let flags = MultipartFlags::MORE;
        let reply = Message::MultipartReply(MultipartReply { flags, body });
        corpus.add(format!("multipart_reply_{name}"), &reply);
    }
}

fn flow_stats() -> Vec<FlowStats<'static>> {
    let entry = |table_id, match_, instructions| FlowStats {
        table_id,
        duration_sec: DURATION_SEC,
        duration_nsec: DURATION_NSEC,
        priority: PRIORITY,
        idle_timeout: IDLE_TIMEOUT_SEC,
        hard_timeout: HARD_TIMEOUT_SEC,
        flags: FlowModFlags::SEND_FLOW_REM,
        cookie: COOKIE,
        packet_count: PACKETS,
        byte_count: BYTES,
        match_,
        instructions: List::from(instructions),
    };
    vec![
        entry(7, tcp_match(), output()),
        entry(8, Match::any(), vec![Instruction::GotoTable(9)]),
    ]
}

fn table_stats() -> TableStats {
    TableStats {
        table_id: 7,
        name: FixedName([0; 32]),
        wildcards: 0,
        max_entries: 0,
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
        duration_sec: DURATION_SEC,
        duration_nsec: DURATION_NSEC,
    }
}

const COUNTERS: [BucketCounter; 2] = [
    BucketCounter {
        packet_count: 1,
        byte_count: 64,
    },
    BucketCounter {
        packet_count: 1000,
        byte_count: 64000,
    },
];

fn group_stats() -> GroupStats<'static> {
    GroupStats {
        group_id: GROUP,
        ref_count: 15,
        packet_count: PACKETS,
        byte_count: BYTES,
        duration_sec: DURATION_SEC,
        duration_nsec: DURATION_NSEC,
        buckets: List::from(&COUNTERS),
    }
}

fn group_desc() -> GroupDesc<'static> {
    GroupDesc {
        group_type: GroupType::FastFailover,
        group_id: GROUP,
        buckets: buckets(),
    }
}

fn group_features() -> GroupFeatures {
    GroupFeatures {
        types: 0x0f,
        capabilities: GroupCapabilities::SELECT_WEIGHT | GroupCapabilities::CHAINING_CHECKS,
        max_groups: [10, 20, 30, 40],
        actions: [0x01, 0x0c00, 0x0fff_8000, 0x0fff_9801],
    }
}

fn meter_stats() -> MeterStats<'static> {
    MeterStats {
        meter_id: METER,
        flow_count: 17,
        packet_in_count: PACKETS,
        byte_in_count: BYTES,
        duration_sec: DURATION_SEC,
        duration_nsec: DURATION_NSEC,
        bands: List::from(&COUNTERS),
    }
}

fn meter_config() -> MeterConfig<'static> {
    MeterConfig {
        flags: MeterFlags::KBPS | MeterFlags::STATS,
        meter_id: METER,
        bands: List::from(bands().map(|(_, band)| band).to_vec()),
    }
}

fn meter_features() -> MeterFeatures {
    MeterFeatures {
        max_meter: 65536,
        band_types: 0x06,
        capabilities: 0x0f,
        max_bands: 5,
        max_color: 3,
    }
}

/// A table with every property. An OXM id should contain the length of its field's value, but os-ken writes 0, and so does
/// this example.
fn table_features() -> TableFeatures<'static> {
    let property = |kind, ids| TableFeatureProperty { kind, ids };
    let goto_and_apply = &[0, 1, 0, 4, 0, 4, 0, 4];
    let output_and_group = &[0, 0, 0, 4, 0, 22, 0, 4];
    let push_vlan = &[0, 17, 0, 4];
    let masked_eth_dst = &[0x80, 0x00, 3 << 1 | 1, 0];
    let tcp_src = &[0x80, 0x00, 13 << 1, 0];
    let experimenter = &[0x00, 0xab, 0xcd, 0xef, 1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44];
    let properties = vec![
        property(TableFeatureKind::Instructions, goto_and_apply),
        property(TableFeatureKind::InstructionsMiss, &goto_and_apply[..4]),
        property(TableFeatureKind::NextTables, &[8, 9, 10]),
        property(TableFeatureKind::NextTablesMiss, &[11]),
        property(TableFeatureKind::WriteActions, output_and_group),
        property(TableFeatureKind::WriteActionsMiss, push_vlan),
        property(TableFeatureKind::ApplyActions, push_vlan),
        property(TableFeatureKind::ApplyActionsMiss, &[]),
        property(TableFeatureKind::Match, masked_eth_dst),
        property(TableFeatureKind::Wildcards, masked_eth_dst),
        property(TableFeatureKind::WriteSetfield, tcp_src),
        property(TableFeatureKind::WriteSetfieldMiss, tcp_src),
        property(TableFeatureKind::ApplySetfield, tcp_src),
        property(TableFeatureKind::ApplySetfieldMiss, tcp_src),
        property(TableFeatureKind::Experimenter, experimenter),
        property(TableFeatureKind::ExperimenterMiss, &experimenter[..8]),
    ];
    TableFeatures {
        table_id: 7,
        name: FixedName::truncated("classifier"),
        metadata_match: COOKIE,
        metadata_write: COOKIE_MASK,
        config: 3,
        max_entries: 65536,
        properties: List::from(properties),
    }
}
