//! Tests of 1.3's features replies.

use super::super::unsupported;
use super::*;
use crate::Message;
use crate::of13::golden::{decode_error, frame, message, refused_message};

fn features() -> Features<'static> {
    Features {
        datapath_id: DatapathId(0x42),
        n_buffers: 256,
        n_tables: 254,
        auxiliary_id: 1,
        capabilities: Capabilities::FLOW_STATS | Capabilities::PORT_BLOCKED,
        actions: 0,
        ports: List::default(),
    }
}

#[test]
fn reply_both_ways() {
    let bytes = frame(6, "0000000000000042 00000100 fe 01 0000 00000101 00000000");
    message(&bytes, &Message::FeaturesReply(features()));
}

#[test]
fn wrong_lengths_are_errors() {
    let short = frame(6, "0000000000000042 00000100 fe 01 0000 00000101");
    assert_eq!(
        decode_error(&short).to_string(),
        "the features reply is cut short: 4 more bytes were expected and 0 are left"
    );
    let long = frame(
        6,
        "0000000000000042 00000100 fe 01 0000 00000101 00000000 00",
    );
    assert!(matches!(
        decode_error(&long),
        DecodeError::TrailingBytes { count: 1, .. }
    ));
}

#[test]
fn refuses_parts_of_1_0_only() {
    let features = Features {
        actions: 1,
        ..features()
    };
    assert_eq!(
        refused_message(&Message::FeaturesReply(features)),
        unsupported("actions in ofp_switch_features")
    );
}
