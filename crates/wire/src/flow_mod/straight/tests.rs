//! Tests that compare every message with the general encoder's.

use super::*;
use crate::{BufferId, EtherType, IpProtocol, List, MacAddr, Match, Message, PortNo, RawField};
use proptest::prelude::*;
use std::net::Ipv4Addr;

/// Bytes before the message, which must not change.
const EARLIER: [u8; 3] = [1, 2, 3];

/// Asserts that both encoders write the same bytes. Returns `true` if the straight-line writer wrote them: it may refuse any
/// message, but writes none that the general encoder refuses.
fn is_straight(flow_mod: &FlowMod, version: Version) -> bool {
    let (mut straight, mut general) = (EARLIER.to_vec(), EARLIER.to_vec());
    let is_written = write(flow_mod, version, 7, &mut straight);
    let message = Message::FlowMod(flow_mod.clone());
    let result = message.encode_general(version, 7, &mut general);
    if is_written {
        assert_eq!(result, Ok(()), "{flow_mod:?} in OpenFlow {version}");
        assert_eq!(straight, general, "{flow_mod:?} in OpenFlow {version}");
    } else {
        assert_eq!(straight, EARLIER);
    }
    is_written
}

fn web(number: u32) -> Match<'static> {
    Match::any()
        .in_port(PortNo(1))
        .eth_type(EtherType::IPV4)
        .ip_proto(IpProtocol::TCP)
        .ipv4_dst(Ipv4Addr::from_bits(number))
        .tcp_dst(80)
}

fn flow_mod(match_: Match<'static>, actions: &[Action<'static>]) -> FlowMod<'static> {
    FlowMod {
        match_,
        instructions: List::from(vec![Instruction::apply(actions.to_vec())]),
        ..FlowMod::default()
    }
}

fn rewrite() -> [Action<'static>; 3] {
    [
        Action::set_eth_dst(MacAddr::new([2, 0, 0, 0, 0, 9])),
        Action::set_ipv4_dst(Ipv4Addr::new(10, 0, 0, 9)),
        Action::output(PortNo(3)),
    ]
}

#[test]
fn frequent_flow_mods_are_straight() {
    let prefix: crate::Ipv4Prefix = "10.1.0.0/16".parse().unwrap();
    let arp = || Match::any().eth_type(EtherType::ARP);
    for match_ in [
        Match::any(),
        web(1),
        web(1).vlan_vid(5).vlan_pcp(3),
        web(1).untagged(),
        Match::any().eth_type(EtherType::IPV4).ipv4_src(prefix),
        arp().arp_op(1).arp_spa(Ipv4Addr::LOCALHOST).arp_tpa(prefix),
        Match::any()
            .eth_src(MacAddr::BROADCAST)
            .eth_dst(MacAddr::ZERO),
    ] {
        for version in Version::ALL {
            let flow_mod = flow_mod(match_.clone(), &rewrite());
            assert!(
                is_straight(&flow_mod, version),
                "{match_} in OpenFlow {version}"
            );
        }
    }
}

#[test]
fn refuses_messages_that_are_too_long() {
    let many = vec![Action::output(PortNo(1)); 4096];
    assert!(!is_straight(&flow_mod(web(1), &many), Version::Of13));
    assert!(is_straight(&flow_mod(web(1), &many), Version::Of10));
    let more = vec![Action::output(PortNo(1)); 8192];
    assert!(!is_straight(&flow_mod(web(1), &more), Version::Of10));
}

/// A field and a value, often one that is a prerequisite of other fields.
fn field_and_value() -> impl Strategy<Value = (OxmField, u128)> {
    prop_oneof![
        2 => prop::sample::select(vec![0x0800_u128, 0x0806]).prop_map(|value| (OxmField::EthType, value)),
        2 => prop::sample::select(vec![6_u128, 17, 1]).prop_map(|value| (OxmField::IpProto, value)),
        8 => (prop::sample::select(&OxmField::ALL[..26]), any::<u128>()),
        1 => (prop::sample::select(OxmField::ALL), any::<u128>()),
    ]
}

/// A field with all its bits, with a prefix of them, or with invalid parts.
fn field() -> impl Strategy<Value = Field<'static>> {
    (field_and_value(), 0..128_u32, any::<u128>()).prop_map(|((field, value), kind, mask)| {
        let full = field.full_mask();
        match kind {
            0..=2 => Field::Basic { field, value, mask },
            3..=40 => Field::masked(field, value, full & full << (kind % field.bits())),
            _ => Field::exact(field, value),
        }
    })
}

fn action() -> impl Strategy<Value = Action<'static>> {
    let raw = RawField {
        class: 0xffff,
        field: 1,
        has_mask: false,
        body: &[0, 0, 0, 9],
    };
    prop_oneof![
        4 => any::<u16>().prop_map(|port| Action::output(PortNo(port.into()))),
        1 => any::<u32>().prop_map(|port| Action::output(PortNo(port))),
        1 => Just(Action::controller()),
        1 => Just(Action::PopVlan),
        1 => any::<u16>().prop_map(Action::SetTpDst),
        1 => any::<u32>().prop_map(Action::Group),
        1 => Just(Action::SetField(Field::Raw(raw))),
        6 => field().prop_map(Action::SetField),
    ]
}

fn instruction() -> impl Strategy<Value = Instruction<'static>> {
    let actions = || prop::collection::vec(action(), 0..4);
    prop_oneof![
        8 => actions().prop_map(Instruction::apply),
        1 => actions().prop_map(|actions| Instruction::WriteActions(actions.into())),
        1 => any::<u8>().prop_map(Instruction::GotoTable),
        1 => any::<u32>().prop_map(Instruction::Meter),
    ]
}

/// A number that is usually the neutral one.
fn mostly(neutral: u32) -> impl Strategy<Value = u32> {
    prop_oneof![8 => Just(neutral), 1 => any::<u32>()]
}

fn any_flow_mod() -> impl Strategy<Value = FlowMod<'static>> {
    let fields = prop::collection::vec(field(), 0..8);
    let instructions = prop::collection::vec(instruction(), 0..3);
    let numbers = (any::<u64>(), any::<[u16; 3]>(), any::<u32>(), any::<u8>());
    let restricted = (
        mostly(0),
        mostly(0),
        mostly(u32::MAX),
        mostly(u32::MAX),
        mostly(1),
    );
    (fields, instructions, numbers, restricted).prop_map(
        |(fields, instructions, (cookie, times, buffer_id, command), restricted)| FlowMod {
            cookie,
            cookie_mask: restricted.0.into(),
            table_id: restricted.1 as u8,
            command: command.into(),
            idle_timeout: times[0],
            hard_timeout: times[1],
            priority: times[2],
            buffer_id: BufferId(buffer_id),
            out_port: PortNo(restricted.2),
            out_group: restricted.3,
            flags: FlowModFlags::from_bits_retain(restricted.4 as u16),
            match_: fields.into_iter().fold(Match::any(), Match::with),
            instructions: instructions.into(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn equals_the_general_encoder(flow_mod in any_flow_mod()) {
        for version in Version::ALL {
            is_straight(&flow_mod, version);
        }
    }
}
