//! Packets that tests share, one header per line, with correct checksums; white space is for the reader.

use crate::Packet;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use urtica_wire::{Action, Field, OxmField, PortNo};

pub const ARP_REPLY: &str = "
    020000000002 020000000001 0806
    0001 0800 06 04 0002 020000000001 0a000001 020000000002 0a000002";

pub const TCP_OVER_IPV4: &str = "
    020000000002 020000000001 0800
    45b9 0029 0000 0000 40 06 6614 0a000001 0a000002
    c000 19fd 00000001 00000000 5002 0000 97e0 0000
    2a";

pub const UDP_OVER_IPV4: &str = "
    020000000002 020000000001 0800
    45b9 001d 0000 0000 40 11 6615 0a000001 0a000002
    c000 0035 0009 01a4
    2a";

pub const SCTP_OVER_IPV4: &str = "
    020000000002 020000000001 0800
    45b9 0024 0000 0000 40 84 659b 0a000001 0a000002
    c000 8e3c 00000007 4154cbb6
    0b000004";

pub const ICMPV4_ECHO: &str = "
    020000000002 020000000001 0800
    45b9 001d 0000 0000 40 01 6625 0a000001 0a000002
    08 00 cdfc 0001 0002
    2a";

pub const TCP_OVER_IPV6: &str = "
    020000000002 020000000001 86dd
    6b9abcde 0015 06 40 fe800000000000000000000000000001 fe800000000000000000000000000002
    c000 19fd 00000001 00000000 5002 0000 aede 0000
    2a";

pub const UDP_OVER_IPV6: &str = "
    020000000002 020000000001 86dd
    6b9abcde 0009 11 40 fe800000000000000000000000000001 fe800000000000000000000000000002
    c000 0035 0009 18a2
    2a";

pub const NEIGHBOR_SOLICITATION: &str = "
    020000000002 020000000001 86dd
    6b9abcde 0020 3a 40 fe800000000000000000000000000001 fe800000000000000000000000000002
    87 00 7a1b 00000000 fe800000000000000000000000000002
    01 01 020000000001";

pub const NEIGHBOR_ADVERTISEMENT: &str = "
    020000000002 020000000001 86dd
    6b9abcde 0020 3a 40 fe800000000000000000000000000001 fe800000000000000000000000000002
    88 00 b819 c0000000 fe800000000000000000000000000002
    02 01 020000000002";

/// A customer's tag inside a provider's, whose drop-eligible bit is set.
pub const UDP_IN_TWO_VLANS: &str = "
    020000000002 020000000001 88a8
    b00a 8100
    4014 0800
    45b9 001c 0000 0000 40 11 6616 0a000001 0a000002
    c000 0035 0008 2ba6";

pub const UDP_UNDER_TWO_LABELS: &str = "
    020000000002 020000000001 8847
    abcdea3f
    0001033e
    45b9 001c 0000 0000 40 11 6616 0a000001 0a000002
    c000 0035 0008 2ba6";

pub const UDP_IN_PBB: &str = "
    020000000002 020000000001 88e7
    78abcdef
    020000000002 020000000001 0800
    45b9 001c 0000 0000 40 11 6616 0a000001 0a000002
    c000 0035 0008 2ba6";

/// All of these packets.
pub const ALL: [&str; 12] = [
    ARP_REPLY,
    TCP_OVER_IPV4,
    UDP_OVER_IPV4,
    SCTP_OVER_IPV4,
    ICMPV4_ECHO,
    TCP_OVER_IPV6,
    UDP_OVER_IPV6,
    NEIGHBOR_SOLICITATION,
    NEIGHBOR_ADVERTISEMENT,
    UDP_IN_TWO_VLANS,
    UDP_UNDER_TWO_LABELS,
    UDP_IN_PBB,
];

/// Returns the bytes for hexadecimal text.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let byte = |pair: &[u32]| (pair[0] * 16 + pair[1]) as u8;
    digits.chunks_exact(2).map(byte).collect()
}

/// Creates the packet with the hex digits of `text`, received by port 1.
pub fn packet(text: &str) -> Packet {
    Packet::new(PortNo(1), &hex(text))
}

/// The action that sets a field.
pub fn set(field: OxmField, value: u128) -> Action<'static> {
    Action::SetField(Field::exact(field, value))
}

/// Asserts that `action` changes the packet `before` to `after`, and that processing may continue.
#[track_caller]
pub fn assert_applied(before: &str, action: Action, after: &str) {
    let mut packet = packet(before);
    assert!(packet.apply(&action), "{action:?} leaves a valid TTL");
    assert_eq!(spelled(packet.frame()), spelled(&hex(after)), "{action:?}");
}

/// Converts `bytes` to text, which shows differences better than a list of numbers.
fn spelled(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Random bytes, and damaged packets, since random bytes seldom get past the first check.
pub fn hostile() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..128), damaged()]
}

/// A good packet, truncated at any length and with a few bytes overwritten.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<Index>(), any::<u8>()), 0..4);
    (select(&ALL), any::<Index>(), edits).prop_map(|(text, cut, edits)| {
        let mut bytes = hex(text);
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 2);
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes
    })
}

/// Any settable field, with any value.
pub fn any_set_field() -> impl Strategy<Value = (OxmField, u128)> {
    (select(OxmField::ALL), any::<u128>())
        .prop_map(|(field, value)| (field, value & field.full_mask()))
}

/// Any action that changes a packet.
pub fn any_action() -> impl Strategy<Value = Action<'static>> {
    prop_oneof![
        any_set_field().prop_map(|(field, value)| set(field, value)),
        select(&[
            Action::PushVlan(0x8100),
            Action::PushVlan(0x88a8),
            Action::PopVlan,
            Action::PushMpls(0x8847),
            Action::PushMpls(0x8848),
            Action::PopMpls(0x8847),
            Action::PopMpls(0x0800),
            Action::PopMpls(0x86dd),
            Action::PushPbb(0x88e7),
            Action::PopPbb,
            Action::CopyTtlOut,
            Action::CopyTtlIn,
            Action::DecMplsTtl,
            Action::DecNwTtl,
        ]),
        any::<u8>().prop_map(Action::SetMplsTtl),
        any::<u8>().prop_map(Action::SetNwTtl),
        any::<u16>().prop_map(Action::SetVlanVid),
        any::<u8>().prop_map(Action::SetVlanPcp),
        any::<u16>().prop_map(Action::SetTpSrc),
        any::<u16>().prop_map(Action::SetTpDst),
    ]
}
