//! Valid and invalid matches, and how they relate to each other (1.3.5 sections 6.4 and 7.2.3).

use crate::support::{Bed, TCP, Tcp};
use proptest::collection::vec;
use proptest::prelude::*;
use urtica_pipeline::{EntryMatch, Packet};
use urtica_wire::{ErrorCode, Field, Match, OxmField, PortNo, RawField};

#[track_caller]
fn entry_match(text: &str) -> EntryMatch {
    EntryMatch::new(&text.parse().expect(text)).expect(text)
}

#[track_caller]
fn refused(fields: Vec<Field<'static>>) -> ErrorCode {
    EntryMatch::new(&Match::from(fields)).expect_err("a bad match")
}

#[test]
fn unknown_fields_and_classes_are_refused() {
    let unknown = RawField {
        class: 0x8000,
        field: 44,
        has_mask: false,
        body: &[0, 0, 8, 0],
    };
    let experimenter = RawField {
        class: 0xffff,
        ..unknown
    };
    for raw in [unknown, experimenter] {
        assert_eq!(refused(vec![Field::Raw(raw)]), ErrorCode::BadMatchBadField);
    }
}

#[test]
fn a_field_may_occur_once() {
    let fields = vec![
        Field::exact(OxmField::InPort, 1),
        Field::exact(OxmField::InPort, 1),
    ];
    assert_eq!(refused(fields), ErrorCode::BadMatchDupField);
}

#[test]
fn values_and_masks_must_be_of_the_field() {
    let basic = |field, value, mask| vec![Field::Basic { field, value, mask }];
    let cases = [
        (OxmField::IpProto, 6, 0xfe, ErrorCode::BadMatchBadMask),
        (OxmField::EthDst, 0, 1 << 48, ErrorCode::BadMatchBadMask),
        (
            OxmField::EthDst,
            1 << 48,
            (1 << 48) - 1,
            ErrorCode::BadMatchBadValue,
        ),
        (OxmField::VlanVid, 5, 0x1fff, ErrorCode::BadMatchBadValue),
        (OxmField::Metadata, 3, 1, ErrorCode::BadMatchBadWildcards),
    ];
    for (field, value, mask, code) in cases {
        assert_eq!(refused(basic(field, value, mask)), code, "{field:?}");
    }
}

#[test]
fn every_field_needs_its_prerequisites() {
    let needs = |alone: OxmField, text: &str| {
        let field = Field::exact(alone, alone.full_mask());
        assert_eq!(
            refused(vec![field]),
            ErrorCode::BadMatchBadPrereq,
            "{alone:?}"
        );
        let with = text.parse::<Match>().expect(text).with(field);
        assert!(EntryMatch::new(&with).is_ok(), "{alone:?} with {text}");
    };
    needs(OxmField::InPhyPort, "in_port=1");
    needs(OxmField::VlanPcp, "vlan_tci=0x1000/0x1000");
    for text in ["ip", "ipv6"] {
        needs(OxmField::IpDscp, text);
        needs(OxmField::IpEcn, text);
        needs(OxmField::IpProto, text);
    }
    needs(OxmField::Ipv4Src, "ip");
    needs(OxmField::TcpSrc, "tcp");
    needs(OxmField::TcpDst, "tcp6");
    needs(OxmField::UdpSrc, "udp");
    needs(OxmField::SctpDst, "sctp");
    needs(OxmField::Icmpv4Code, "icmp");
    needs(OxmField::ArpTha, "arp");
    needs(OxmField::Ipv6Flabel, "ipv6");
    needs(OxmField::Ipv6Exthdr, "ipv6");
    needs(OxmField::Icmpv6Type, "icmp6");
    needs(OxmField::Ipv6NdTarget, "icmp6,icmpv6_type=135");
    needs(OxmField::Ipv6NdTarget, "icmp6,icmpv6_type=136");
    needs(OxmField::Ipv6NdSll, "icmp6,icmpv6_type=135");
    needs(OxmField::Ipv6NdTll, "icmp6,icmpv6_type=136");
    needs(OxmField::MplsBos, "mpls");
    needs(OxmField::MplsLabel, "mplsm");
    needs(OxmField::PbbIsid, "eth_type=0x88e7");
}

#[test]
fn a_prerequisite_needs_its_value() {
    let fields = |eth_type| {
        vec![
            Field::exact(OxmField::EthType, eth_type),
            Field::exact(OxmField::Ipv4Src, 1),
        ]
    };
    assert_eq!(refused(fields(0x86dd)), ErrorCode::BadMatchBadPrereq);
    let untagged = vec![
        Field::exact(OxmField::VlanVid, 0),
        Field::exact(OxmField::VlanPcp, 1),
    ];
    assert_eq!(refused(untagged), ErrorCode::BadMatchBadPrereq);
}

#[test]
fn prerequisites_may_follow() {
    let match_ = Match::from(vec![
        Field::exact(OxmField::TcpDst, 80),
        Field::exact(OxmField::IpProto, 6),
        Field::exact(OxmField::EthType, 0x0800),
    ]);
    assert_eq!(EntryMatch::new(&match_), Ok(entry_match("tcp,tp_dst=80")));
}

#[test]
fn vlan_vid_has_its_special_cases() {
    let vid = |value, mask| {
        let field = OxmField::VlanVid;
        EntryMatch::new(&Match::from(vec![Field::Basic { field, value, mask }]))
    };
    assert!(vid(0, 0x1fff).is_ok(), "no tag");
    assert!(vid(0x1000, 0x1000).is_ok(), "any tag");
    assert!(vid(0x1000, 0x1fff).is_ok(), "a priority tag");
    assert!(vid(0x1064, 0x1fff).is_ok(), "a VLAN");
    assert!(vid(0x60, 0xf0).is_ok(), "some bits of the id");
    assert_eq!(vid(0x64, 0x1fff), Err(ErrorCode::BadMatchBadValue));
}

#[test]
fn a_field_with_an_empty_mask_matches_all_packets() {
    let match_ = Match::any().with_masked(OxmField::Metadata, 0_u8, 0_u8);
    assert_eq!(EntryMatch::new(&match_), Ok(EntryMatch::default()));
}

#[test]
fn reported_matches_equal_the_given_ones() {
    for text in ["", "tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80", "dl_vlan=5"] {
        let match_: Match = text.parse().expect(text);
        let taken = EntryMatch::new(&match_).expect(text);
        assert_eq!(taken.to_wire(), match_);
    }
}

#[test]
fn a_match_includes_more_specific_ones() {
    let all = entry_match("");
    let net = entry_match("ip,nw_dst=10.0.0.0/8");
    let host = entry_match("ip,nw_dst=10.0.0.1");
    let other = entry_match("ip,nw_dst=11.0.0.1");
    assert!(all.includes(&host) && net.includes(&host) && host.includes(&host));
    assert!(!host.includes(&net) && !net.includes(&all) && !net.includes(&other));
}

#[test]
fn matches_overlap_unless_a_common_field_differs() {
    let overlap = |a, b| entry_match(a).overlaps(&entry_match(b));
    assert!(overlap("", "tcp"));
    assert!(overlap("in_port=1", "tcp"));
    assert!(overlap("ip,nw_dst=10.0.0.0/8", "ip,nw_dst=10.1.0.0/16"));
    assert!(!overlap("ip,nw_dst=10.0.0.0/8", "ip,nw_dst=11.0.0.0/8"));
    assert!(!overlap("tcp,in_port=1", "tcp,in_port=2"));
    assert!(!overlap("ip", "arp"));
}

/// The specification allows masks on neither; Open vSwitch and this switch do.
#[test]
fn ports_and_the_target_of_neighbour_discovery_may_be_masked() {
    let bed = Bed::with(&[
        "priority=2,tcp,tp_dst=0x40/0xffe0,actions=3",
        "priority=1,tcp,tp_src=0x1000/0xf000,actions=2",
        "priority=1,icmp6,icmp_type=135,nd_target=fe80::/10,actions=4",
    ]);
    assert!(
        bed.dump()
            .iter()
            .any(|line| line.contains("tp_dst=0x40/0xffe0"))
    );
    assert!(
        bed.dump()
            .iter()
            .any(|line| line.contains("nd_target=fe80::/10"))
    );
    let to = |tcp_src, tcp_dst| {
        let tcp = Tcp {
            tcp_src,
            tcp_dst,
            ..TCP
        };
        bed.send(&tcp.frame()).ports()
    };
    assert_eq!(to(5, 80), [3]);
    assert_eq!(to(5, 96), []);
    assert_eq!(to(0x1fff, 96), [2]);
    assert_eq!(to(0x2000, 63), []);
}

/// Values have two bits, so that matches are often related.
fn any_match() -> impl Strategy<Value = EntryMatch> {
    let fields = [OxmField::InPort, OxmField::Metadata, OxmField::TunnelId];
    vec((0_u128..4, 0_u128..5), 3).prop_map(move |parts| {
        let parts = fields.into_iter().zip(parts);
        let parts = parts.filter(|(_, (_, mask))| *mask < 4);
        let fields = parts.map(|(field, (value, mask))| match field.maskable() {
            true => Field::masked(field, value, mask),
            false => Field::exact(field, value),
        });
        EntryMatch::new(&Match::from(fields.collect::<Vec<_>>())).expect("a good match")
    })
}

fn any_packet() -> impl Strategy<Value = Packet> {
    (0_u32..4, 0_u64..4, 0_u64..4).prop_map(|(in_port, metadata, tunnel_id)| {
        let mut packet = Packet::new(PortNo(in_port), &crate::support::any_frame());
        packet.metadata = metadata;
        packet.tunnel_id = tunnel_id;
        packet
    })
}

proptest! {
    #[test]
    fn including_is_a_partial_order(a in any_match(), b in any_match(), c in any_match()) {
        prop_assert!(a.includes(&a));
        prop_assert!(!(a.includes(&b) && b.includes(&c)) || a.includes(&c));
        prop_assert_eq!(a.includes(&b) && b.includes(&a), a == b);
    }

    #[test]
    fn overlapping_is_symmetric(a in any_match(), b in any_match()) {
        prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
        prop_assert!(a.overlaps(&a));
    }

    #[test]
    fn inclusion_implies_overlap(a in any_match(), b in any_match()) {
        prop_assert!(!a.includes(&b) || a.overlaps(&b));
    }

    #[test]
    fn packets_of_an_included_match_match_the_including_one(a in any_match(), b in any_match(), packet in any_packet()) {
        prop_assert!(!(a.includes(&b) && b.matches(&packet)) || a.matches(&packet));
    }

    #[test]
    fn matches_with_a_packet_in_common_overlap(a in any_match(), b in any_match(), packet in any_packet()) {
        prop_assert!(!(a.matches(&packet) && b.matches(&packet)) || a.overlaps(&b));
    }
}
