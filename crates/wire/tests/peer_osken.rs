//! Tests that os-ken, an independent controller framework, reads this crate's messages, and writes the same bytes.

mod corpus;

use corpus::Corpus;
use corpus::peer::{self, Verdict};
use std::collections::BTreeSet;
use urtica_wire::{ErrorCode, Version};

/// The Python for which `tools/setup` installs os-ken.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");

/// Messages that os-ken writes but does not read: the first words of the examples' names.
const NOT_READ: [&str; 15] = [
    "barrier_request",
    "features_request",
    "get_config_request",
    "set_config",
    "packet_out",
    "port_mod",
    "table_mod",
    "group_mod",
    "meter_mod",
    "queue_get_config_request",
    "stats_request",
    "multipart_request",
    "role_request",
    "get_async_request",
    "set_async",
];

/// Messages that os-ken reads but does not write; [`READINGS_1_0`] and [`READINGS_1_3`] have the expected values.
const NOT_WRITTEN: [&str; 5] = [
    "hello_elements",
    "packet_in",
    "flow_removed",
    "port_status",
    "_reply",
];

/// os-ken does not support experimenter instructions.
const UNKNOWN: &str = "flow_mod_instruction_65535";

/// The values that os-ken must read in those examples of 1.0 that it does not write: example, position in its JSON, and
/// value.
const READINGS_1_0: &[(&str, &str, &str)] = &[
    (
        "features_reply",
        "/OFPSwitchFeatures/datapath_id",
        "45514025410622983",
    ),
    (
        "features_reply",
        "/OFPSwitchFeatures/ports/65534/OFPPhyPort/name",
        "\"s1\"",
    ),
    ("features_reply", "/OFPSwitchFeatures/actions", "4095"),
    (
        "get_config_reply",
        "/OFPGetConfigReply/miss_send_len",
        "128",
    ),
    ("packet_in_Action", "/OFPPacketIn/buffer_id", "16909060"),
    ("packet_in_Action", "/OFPPacketIn/in_port", "5"),
    ("packet_in_Action", "/OFPPacketIn/reason", "1"),
    ("packet_in_Action", "/OFPPacketIn/total_len", "1500"),
    (
        "flow_removed_Delete",
        "/OFPFlowRemoved/cookie",
        "1234605616436508552",
    ),
    (
        "flow_removed_Delete",
        "/OFPFlowRemoved/duration_nsec",
        "123456789",
    ),
    (
        "flow_removed_Delete",
        "/OFPFlowRemoved/match/OFPMatch/tp_src",
        "1234",
    ),
    (
        "flow_removed_Delete",
        "/OFPFlowRemoved/match/OFPMatch/nw_dst",
        "\"10.4.5.6\"",
    ),
    (
        "flow_removed_Delete",
        "/OFPFlowRemoved/match/OFPMatch/wildcards",
        "0",
    ),
    (
        "flow_removed_Delete",
        "/OFPFlowRemoved/packet_count",
        "1001",
    ),
    ("flow_removed_Delete", "/OFPFlowRemoved/reason", "2"),
    ("port_status_Modify", "/OFPPortStatus/reason", "2"),
    (
        "port_status_Modify",
        "/OFPPortStatus/desc/OFPPhyPort/peer",
        "2056",
    ),
    (
        "queue_get_config_reply",
        "/OFPQueueGetConfigReply/queues/0/OFPPacketQueue/properties/0/OFPQueuePropMinRate/rate",
        "250",
    ),
    (
        "stats_reply_desc",
        "/OFPDescStatsReply/body/OFPDescStats/dp_desc",
        "\"Datapath\"",
    ),
    (
        "stats_reply_flow",
        "/OFPFlowStatsReply/body/0/OFPFlowStats/hard_timeout",
        "60",
    ),
    (
        "stats_reply_flow",
        "/OFPFlowStatsReply/body/1/OFPFlowStats/actions/0/OFPActionOutput/port",
        "65533",
    ),
    (
        "stats_reply_aggregate",
        "/OFPAggregateStatsReply/body/0/OFPAggregateStats/flow_count",
        "17",
    ),
    (
        "stats_reply_table",
        "/OFPTableStatsReply/body/0/OFPTableStats/matched_count",
        "789",
    ),
    (
        "stats_reply_port",
        "/OFPPortStatsReply/body/1/OFPPortStats/collisions",
        "211",
    ),
    (
        "stats_reply_queue",
        "/OFPQueueStatsReply/body/0/OFPQueueStats/tx_errors",
        "3",
    ),
];

/// The values that os-ken must read in those examples of 1.3 that it does not write.
const READINGS_1_3: &[(&str, &str, &str)] = &[
    (
        "hello_elements",
        "/OFPHello/elements/0/OFPHelloElemVersionBitmap/versions",
        "[1,4]",
    ),
    ("features_reply", "/OFPSwitchFeatures/auxiliary_id", "3"),
    ("features_reply", "/OFPSwitchFeatures/capabilities", "257"),
    ("get_config_reply", "/OFPGetConfigReply/flags", "1"),
    (
        "packet_in_Action",
        "/OFPPacketIn/cookie",
        "1234605616436508552",
    ),
    ("packet_in_Action", "/OFPPacketIn/table_id", "7"),
    (
        "packet_in_Action",
        "/OFPPacketIn/match/OFPMatch/oxm_fields/1/OXMTlv/field",
        "\"in_phy_port\"",
    ),
    (
        "packet_in_Action",
        "/OFPPacketIn/match/OFPMatch/oxm_fields/1/OXMTlv/value",
        "6",
    ),
    ("flow_removed_GroupDelete", "/OFPFlowRemoved/reason", "3"),
    (
        "flow_removed_GroupDelete",
        "/OFPFlowRemoved/hard_timeout",
        "60",
    ),
    (
        "flow_removed_GroupDelete",
        "/OFPFlowRemoved/match/OFPMatch/oxm_fields/3/OXMTlv/value",
        "4196",
    ),
    (
        "port_status_Modify",
        "/OFPPortStatus/desc/OFPPort/max_speed",
        "10000000",
    ),
    (
        "port_status_Modify",
        "/OFPPortStatus/desc/OFPPort/curr",
        "2176",
    ),
    (
        "queue_get_config_reply",
        "/OFPQueueGetConfigReply/queues/0/OFPPacketQueue/properties/1/OFPQueuePropMaxRate/rate",
        "750",
    ),
    ("role_reply_Slave", "/OFPRoleReply/role", "3"),
    (
        "role_reply_Slave",
        "/OFPRoleReply/generation_id",
        "72623859790382856",
    ),
    (
        "get_async_reply",
        "/OFPGetAsyncReply/flow_removed_mask",
        "[15,3]",
    ),
    (
        "get_async_reply",
        "/OFPGetAsyncReply/port_status_mask",
        "[6,5]",
    ),
    (
        "multipart_reply_desc",
        "/OFPDescStatsReply/body/OFPDescStats/serial_num",
        "\"Serial\"",
    ),
    (
        "multipart_reply_flow",
        "/OFPFlowStatsReply/body/1/OFPFlowStats/instructions/0/OFPInstructionGotoTable/table_id",
        "9",
    ),
    (
        "multipart_reply_flow",
        "/OFPFlowStatsReply/body/0/OFPFlowStats/flags",
        "1",
    ),
    (
        "multipart_reply_aggregate",
        "/OFPAggregateStatsReply/body/OFPAggregateStats/flow_count",
        "17",
    ),
    (
        "multipart_reply_table",
        "/OFPTableStatsReply/body/0/OFPTableStats/lookup_count",
        "3456",
    ),
    (
        "multipart_reply_port_stats",
        "/OFPPortStatsReply/body/1/OFPPortStats/collisions",
        "211",
    ),
    (
        "multipart_reply_queue",
        "/OFPQueueStatsReply/body/0/OFPQueueStats/duration_nsec",
        "123456789",
    ),
    (
        "multipart_reply_group",
        "/OFPGroupStatsReply/body/0/OFPGroupStats/ref_count",
        "15",
    ),
    (
        "multipart_reply_group",
        "/OFPGroupStatsReply/body/0/OFPGroupStats/bucket_stats/1/OFPBucketCounter/byte_count",
        "64000",
    ),
    (
        "multipart_reply_group_desc",
        "/OFPGroupDescStatsReply/body/0/OFPGroupDescStats/buckets/0/OFPBucket/watch_group",
        "12",
    ),
    (
        "multipart_reply_group_features",
        "/OFPGroupFeaturesStatsReply/body/OFPGroupFeaturesStats/max_groups",
        "[10,20,30,40]",
    ),
    (
        "multipart_reply_meter",
        "/OFPMeterStatsReply/body/0/OFPMeterStats/packet_in_count",
        "1001",
    ),
    (
        "multipart_reply_meter_config",
        "/OFPMeterConfigStatsReply/body/0/OFPMeterConfigStats/bands/1/OFPMeterBandDscpRemark/prec_level",
        "2",
    ),
    (
        "multipart_reply_meter_features",
        "/OFPMeterFeaturesStatsReply/body/0/OFPMeterFeaturesStats/max_color",
        "3",
    ),
    (
        "multipart_reply_table_features",
        "/OFPTableFeaturesStatsReply/body/0/OFPTableFeaturesStats/metadata_write",
        "1085102592571150095",
    ),
    (
        "multipart_reply_port_desc",
        "/OFPPortDescStatsReply/body/1/OFPPort/port_no",
        "4294967294",
    ),
    (
        "multipart_reply_experimenter",
        "/OFPExperimenterStatsReply/body/OFPExperimenterMultipart/exp_type",
        "16909060",
    ),
];

fn check_all(version: Version, readings: &[(&str, &str, &str)]) {
    if !peer::has_all(&[PYTHON]) {
        return;
    }
    let verdicts = peer::verdicts(PYTHON, "osken_check.py", &corpus::of(version));
    for verdict in &verdicts {
        assert!(is_good(verdict), "{}", verdict.details);
    }
    for &(name, pointer, expected) in readings {
        let verdict = verdicts.iter().find(|verdict| verdict.name == name);
        let json = &verdict.expect("an example with this name").details["json"];
        let read = json.pointer(pointer).map(ToString::to_string);
        assert_eq!(
            read.as_deref(),
            Some(expected),
            "{name}: {pointer} in {json}"
        );
    }
}

fn is_good(verdict: &Verdict) -> bool {
    let name = &verdict.name;
    match verdict.verdict.as_str() {
        "same" => true,
        "unparsed" => NOT_READ.iter().any(|start| name.starts_with(start)),
        "read" => NOT_WRITTEN.iter().any(|part| name.contains(part)),
        _ => name == UNKNOWN,
    }
}

#[test]
fn osken_reads_our_messages_of_1_0() {
    check_all(Version::Of10, READINGS_1_0);
}

#[test]
fn osken_reads_our_messages_of_1_3() {
    check_all(Version::Of13, READINGS_1_3);
}

/// Returns the `COUNT` bytes at `at` in messages of this type.
fn bytes_at<const COUNT: usize>(
    corpus: &Corpus,
    message_type: u8,
    at: usize,
) -> BTreeSet<[u8; COUNT]> {
    let messages = corpus.examples.iter().map(|example| &example.bytes);
    messages
        .filter(|bytes| bytes[1] == message_type)
        .filter_map(|bytes| bytes[at..].first_chunk().copied())
        .collect()
}

/// The corpus lists actions, instructions and fields by number, or uses their tables.
#[test]
fn the_corpus_has_every_message_and_multipart_type() {
    for (version, messages, stats, multiparts) in [
        (Version::Of10, 0..22_u8, [16, 17], 0..=5_u16),
        (Version::Of13, 0..30, [18, 19], 0..=13),
    ] {
        let corpus = corpus::of(version);
        let types: BTreeSet<_> = corpus
            .examples
            .iter()
            .map(|example| example.bytes[1])
            .collect();
        assert_eq!(types, messages.collect(), "messages of {version}");
        let expected: BTreeSet<_> = multiparts.chain([0xffff]).map(u16::to_be_bytes).collect();
        for message_type in stats {
            let found = bytes_at(&corpus, message_type, 8);
            assert_eq!(found, expected, "{version}, message type {message_type}");
        }
    }
}

#[test]
fn the_corpus_has_every_error_code() {
    for version in Version::ALL {
        let found = bytes_at(&corpus::of(version), 1, 8);
        for code in ErrorCode::ALL {
            let Some((error_type, number)) = code.to_wire(version) else {
                continue;
            };
            let [t0, t1] = error_type.to_be_bytes();
            let [n0, n1] = number.to_be_bytes();
            assert!(found.contains(&[t0, t1, n0, n1]), "{code} of {version}");
        }
    }
}
