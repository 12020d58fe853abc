use super::*;
use crate::of10::golden;
use crate::{Action, Instruction, Match, Message, PortNo, QUEUE_ALL};

/// `ofp_match` with in_port 7.
const MATCH: [u8; 40] = [
    0x00, 0x3f, 0xff, 0xfe, 0x00, 0x07, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, // to dl_vlan
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // to tp_dst
];

fn match_() -> Match<'static> {
    Match::any().in_port(PortNo(7))
}

/// A message with this type (16 request, 17 reply), OFPSF_REPLY_MORE set, and these parts as its body.
fn framed(message_type: u8, stats_type: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let [high, low] = (12 + body.len() as u16).to_be_bytes();
    let header = [
        0x01,
        message_type,
        high,
        low,
        1,
        2,
        3,
        4,
        0,
        stats_type,
        0,
        1,
    ];
    [&header, body.as_slice()].concat()
}

#[track_caller]
fn request(stats_type: u8, parts: &[&[u8]], body: MultipartRequestBody) {
    let flags = MultipartFlags::MORE;
    let request = MultipartRequest { flags, body };
    golden::message(
        &framed(16, stats_type, parts),
        &Message::MultipartRequest(request),
    );
}

#[track_caller]
fn reply(stats_type: u8, parts: &[&[u8]], body: MultipartReplyBody) {
    let flags = MultipartFlags::MORE;
    let reply = MultipartReply { flags, body };
    golden::message(
        &framed(17, stats_type, parts),
        &Message::MultipartReply(reply),
    );
}

#[test]
fn requests_without_a_body_both_ways() {
    request(0, &[], MultipartRequestBody::Desc);
    request(3, &[], MultipartRequestBody::Table);
}

#[test]
fn flow_and_aggregate_requests_both_ways() {
    let tail = [0xff, 0x00, 0x00, 0x02]; // table_id, padding, out_port
    let flows = FlowStatsRequest {
        out_port: PortNo(2),
        match_: match_(),
        ..FlowStatsRequest::default()
    };
    let parts: [&[u8]; 2] = [&MATCH, &tail];
    request(1, &parts, MultipartRequestBody::Flow(flows.clone()));
    request(2, &parts, MultipartRequestBody::Aggregate(flows));
}

#[test]
fn port_and_queue_requests_both_ways() {
    let all_ports = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
    request(
        4,
        &[&all_ports],
        MultipartRequestBody::PortStats(PortNo::ANY),
    );
    let all_queues = [0xff, 0xfc, 0, 0, 0xff, 0xff, 0xff, 0xff];
    let queues = MultipartRequestBody::Queue {
        port: PortNo::ALL,
        queue_id: QUEUE_ALL,
    };
    request(5, &[&all_queues], queues);
}

#[test]
fn vendor_both_ways() {
    let vendor = ExperimenterMultipart {
        experimenter: 0x2320,
        data: &[5, 6, 7],
    };
    let bytes: [&[u8]; 2] = [&[0, 0, 0x23, 0x20], &[5, 6, 7]];
    for (message_type, stats) in [
        (
            16,
            Message::MultipartRequest(MultipartRequest {
                flags: MultipartFlags::MORE,
                body: MultipartRequestBody::Experimenter(vendor),
            }),
        ),
        (
            17,
            Message::MultipartReply(MultipartReply {
                flags: MultipartFlags::MORE,
                body: MultipartReplyBody::Experimenter(vendor),
            }),
        ),
    ] {
        let mut frame = framed(message_type, 0xff, &bytes);
        frame[8] = 0xff;
        golden::message(&frame, &stats);
    }
}

#[test]
fn desc_reply_both_ways() {
    let padded = |text: &str, length: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length, 0);
        bytes
    };
    let desc = Desc {
        mfr_desc: const { &FixedName::truncated("maker") }.as_ref(),
        hw_desc: const { &FixedName::truncated("hardware") }.as_ref(),
        sw_desc: const { &FixedName::truncated("software") }.as_ref(),
        serial_num: const { &FixedName::truncated("serial") }.as_ref(),
        dp_desc: const { &FixedName::truncated("datapath") }.as_ref(),
    };
    let parts = [
        padded("maker", 256),
        padded("hardware", 256),
        padded("software", 256),
        padded("serial", 32),
        padded("datapath", 256),
    ];
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    reply(0, &parts, MultipartReplyBody::Desc(desc));
}

const FLOW_STATS_TAIL: [u8; 52] = [
    0x00, 0x00, 0x00, 0x3c, // duration_sec
    0x00, 0x00, 0x01, 0xf4, // duration_nsec
    0x12, 0x34, // priority
    0x00, 0x05, // idle_timeout
    0x00, 0x0a, // hard_timeout
    0, 0, 0, 0, 0, 0, // padding
    0x00, 0x00, 0x00, 0x00, 0xde, 0xad, 0xbe, 0xef, // cookie
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, // packet_count
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x1c, // byte_count
    0x00, 0x00, 0x00, 0x08, 0x00, 0x02, 0x00, 0x00, // output 2
];

fn flow_stats() -> FlowStats<'static> {
    FlowStats {
        table_id: 3,
        duration_sec: 60,
        duration_nsec: 500,
        priority: 0x1234,
        idle_timeout: 5,
        hard_timeout: 10,
        flags: FlowModFlags::empty(),
        cookie: 0xdead_beef,
        packet_count: 9,
        byte_count: 540,
        match_: match_(),
        instructions: List::from(vec![Instruction::apply(vec![Action::output(PortNo(2))])]),
    }
}

#[test]
fn flow_reply_both_ways() {
    let with_actions: [&[u8]; 3] = [&[0, 96, 3, 0], &MATCH, &FLOW_STATS_TAIL];
    let without: [&[u8]; 3] = [&[0, 88, 3, 0], &MATCH, &FLOW_STATS_TAIL[..44]];
    let dropping = FlowStats {
        instructions: List::default(),
        ..flow_stats()
    };
    let flows = List::from(vec![flow_stats(), dropping]);
    reply(
        1,
        &[with_actions, without].concat(),
        MultipartReplyBody::Flow(flows),
    );
}

#[test]
fn wrong_flow_stats_lengths_are_errors() {
    for length in [0, 1, 2, 87, 89, 95, 97, 255] {
        let parts: [&[u8]; 3] = [&[0, length, 3, 0], &MATCH, &FLOW_STATS_TAIL];
        let frame = framed(17, 1, &parts);
        assert!(Message::decode(&frame).is_err(), "length {length}");
    }
}

#[test]
fn aggregate_reply_both_ways() {
    let bytes = [
        0, 0, 0, 0, 0, 0, 0, 9, // packet_count
        0, 0, 0, 0, 0, 0, 2, 28, // byte_count
        0, 0, 0, 4, 0, 0, 0, 0, // flow_count, padding
    ];
    let stats = AggregateStats {
        packet_count: 9,
        byte_count: 540,
        flow_count: 4,
    };
    reply(2, &[&bytes], MultipartReplyBody::Aggregate(stats));
}

#[test]
fn table_reply_both_ways() {
    let head = [4, 0, 0, 0]; // table_id, padding
    let mut name = [0; 32];
    name[..4].copy_from_slice(b"main");
    let tail = [
        0x00, 0x3f, 0xff, 0xff, // wildcards
        0x00, 0x01, 0x00, 0x00, // max_entries
        0x00, 0x00, 0x00, 0x05, // active_count
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, // lookup_count
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, // matched_count
    ];
    let stats = TableStats {
        table_id: 4,
        name: FixedName::truncated("main"),
        wildcards: 0x003f_ffff,
        max_entries: 0x1_0000,
        active_count: 5,
        lookup_count: 6,
        matched_count: 7,
    };
    let tables = MultipartReplyBody::Table(List::from(vec![stats]));
    reply(3, &[&head, &name, &tail], tables);
}

#[test]
fn port_reply_both_ways() {
    let mut bytes = vec![0xff, 0xfe, 0, 0, 0, 0, 0, 0];
    bytes.extend((1..=12_u8).flat_map(|counter| [0, 0, 0, 0, 0, 0, 0, counter]));
    let stats = PortStats {
        port_no: PortNo::LOCAL,
        rx_packets: 1,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_err: 9,
        rx_over_err: 10,
        rx_crc_err: 11,
        collisions: 12,
        duration_sec: 0,
        duration_nsec: 0,
    };
    let ports = MultipartReplyBody::PortStats(List::from(vec![stats]));
    reply(4, &[&bytes], ports);
}

#[test]
fn queue_reply_both_ways() {
    let bytes = [
        0, 7, 0, 0, 0, 0, 0, 5, // port_no, padding, queue_id
        0, 0, 0, 0, 0, 0, 0, 1, // tx_bytes
        0, 0, 0, 0, 0, 0, 0, 2, // tx_packets
        0, 0, 0, 0, 0, 0, 0, 3, // tx_errors
    ];
    let stats = QueueStats {
        port_no: PortNo(7),
        queue_id: 5,
        tx_bytes: 1,
        tx_packets: 2,
        tx_errors: 3,
        duration_sec: 0,
        duration_nsec: 0,
    };
    let queues = MultipartReplyBody::Queue(List::from(vec![stats]));
    reply(5, &[&bytes], queues);
}

#[test]
fn an_unknown_type_is_an_error() {
    for message_type in [16, 17] {
        let error = Message::decode(&framed(message_type, 6, &[])).expect_err("unknown type");
        assert_eq!(error.code(), ErrorCode::BadRequestBadMultipart);
    }
}

#[test]
fn refuses_parts_of_1_3_only() {
    let refused = |body| {
        let flags = MultipartFlags::empty();
        golden::refused_message(&Message::MultipartRequest(MultipartRequest { flags, body }))
    };
    assert_eq!(
        refused(MultipartRequestBody::PortDesc),
        "OpenFlow 1.0 cannot express the multipart request OFPMP_PORT_DESC"
    );
    let by_cookie = FlowStatsRequest {
        cookie_mask: 1,
        ..FlowStatsRequest::default()
    };
    assert_eq!(
        refused(MultipartRequestBody::Flow(by_cookie)),
        "OpenFlow 1.0 cannot express the cookie_mask of a flow stats request"
    );
    let flagged = FlowStats {
        flags: FlowModFlags::SEND_FLOW_REM,
        ..flow_stats()
    };
    assert_eq!(
        golden::refused(&flagged),
        "OpenFlow 1.0 cannot express the flags of a flow stats entry"
    );
}
