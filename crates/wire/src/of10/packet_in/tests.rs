//! Tests of 1.0's packet-ins.

use super::*;
use crate::of10::golden;
use crate::{Message, PacketInReason, PortNo, Structure};

const PACKET_IN: [u8; 22] = [
    0x01, 10, 0, 22, 1, 2, 3, 4, // header
    0x00, 0x00, 0x01, 0x02, // buffer_id
    0x00, 0x52, // total_len
    0x00, 0x07, // in_port
    0x01, 0x00, // reason OFPR_ACTION, padding
    0xca, 0xfe, 0xba, 0xbe, // data
];

fn packet_in() -> PacketIn<'static> {
    PacketIn {
        buffer_id: BufferId(0x102),
        total_len: 82,
        reason: PacketInReason::Action,
        table_id: 0,
        cookie: NO_COOKIE,
        in_port: PortNo(7),
        match_: Match::any().in_port(PortNo(7)),
        data: &[0xca, 0xfe, 0xba, 0xbe],
    }
}

#[test]
fn packet_in_both_ways() {
    golden::message(&PACKET_IN, &Message::PacketIn(packet_in()));
}

#[test]
fn too_short_is_an_error() {
    assert!(decode(&mut Reader::new(&PACKET_IN[8..17], Structure::Message)).is_err());
}

#[test]
fn refuses_parts_of_1_3_only() {
    let refused = |change: fn(&mut PacketIn)| {
        let mut packet_in = packet_in();
        change(&mut packet_in);
        golden::refused_message(&Message::PacketIn(packet_in))
    };
    assert_eq!(
        refused(|packet_in| packet_in.cookie = 1),
        "OpenFlow 1.0 cannot express the cookie of a packet-in"
    );
    assert_eq!(
        refused(|packet_in| packet_in.match_ = Match::any().eth_type(0x800)),
        "OpenFlow 1.0 cannot express the match field eth_type"
    );
    assert_eq!(
        refused(|packet_in| packet_in.match_ = Match::any().in_port(PortNo(8))),
        "OpenFlow 1.0 cannot express a second in_port of a packet-in"
    );
}
