//! Tests of 1.0's features replies.

use super::*;
use crate::of10::golden;
use crate::port::FixedName;
use crate::{MacAddr, Message, Port, PortConfig, PortFeatures, PortNo, PortState};

const FEATURES: [u8; 80] = [
    0x01, 6, 0, 80, 1, 2, 3, 4, // header
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xab, 0xcd, // datapath_id
    0x00, 0x00, 0x01, 0x00, // n_buffers
    0xfe, 0x00, 0x00, 0x00, // n_tables, padding
    0x00, 0x00, 0x00, 0x87, // capabilities
    0x00, 0x00, 0x0f, 0xff, // actions
    0x00, 0x01, 2, 0, 0, 0, 0, 1, // port_no, hw_addr
    b'p', b'1', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // name
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, // config, state, curr
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // advertised, supported, peer
];

fn features() -> Features<'static> {
    let port = Port {
        port_no: PortNo(1),
        hw_addr: MacAddr::new([2, 0, 0, 0, 0, 1]),
        name: FixedName::truncated("p1"),
        config: PortConfig::empty(),
        state: PortState::empty(),
        curr: PortFeatures::FD_10GB,
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        curr_speed: 0,
        max_speed: 0,
    };
    Features {
        datapath_id: DatapathId(0xabcd),
        n_buffers: 256,
        n_tables: 254,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::ARP_MATCH_IP,
        actions: 0xfff,
        ports: List::from(vec![port]),
    }
}

#[test]
fn features_both_ways() {
    golden::message(&FEATURES, &Message::FeaturesReply(features()));
}

#[test]
fn a_part_of_a_port_is_an_error() {
    let mut bytes = FEATURES[..79].to_vec();
    bytes[3] = 79;
    assert!(Message::decode(&bytes).is_err());
}

#[test]
fn refuses_parts_of_1_3_only() {
    let auxiliary = Features {
        auxiliary_id: 1,
        ..features()
    };
    assert_eq!(
        golden::refused_message(&Message::FeaturesReply(auxiliary)),
        "OpenFlow 1.0 cannot express the auxiliary_id of a features reply"
    );
    let blocked = Features {
        capabilities: Capabilities::PORT_BLOCKED,
        ..features()
    };
    assert_eq!(
        golden::refused_message(&Message::FeaturesReply(blocked)),
        "OpenFlow 1.0 cannot express the capability OFPC_PORT_BLOCKED"
    );
}
