use super::*;
use proptest::prelude::*;
use std::net::Ipv6Addr;

const TCP: [u8; MATCH_SIZE] = [
    0x00, 0x00, 0x08, 0x00, // wildcards: the low eight bits of nw_src
    0x00, 0x07, // in_port
    0x02, 0x00, 0x00, 0x00, 0x00, 0x01, // dl_src
    0x02, 0x00, 0x00, 0x00, 0x00, 0x02, // dl_dst
    0x00, 0x64, // dl_vlan
    0x05, 0x00, // dl_vlan_pcp, padding
    0x08, 0x00, // dl_type
    0xb8, 0x06, 0x00, 0x00, // nw_tos, nw_proto, padding
    0x0a, 0x00, 0x01, 0x00, // nw_src
    0x0a, 0x00, 0x02, 0x03, // nw_dst
    0x12, 0x34, // tp_src
    0x00, 0x50, // tp_dst
];

fn tcp() -> Match<'static> {
    Match::any()
        .in_port(PortNo(7))
        .with_exact(OxmField::EthDst, 0x0200_0000_0002_u64)
        .with_exact(OxmField::EthSrc, 0x0200_0000_0001_u64)
        .vlan_vid(100)
        .with_exact(OxmField::VlanPcp, 5_u8)
        .eth_type(0x0800)
        .with_exact(OxmField::IpDscp, 46_u8)
        .ip_proto(6)
        .with_masked(OxmField::Ipv4Src, 0x0a00_0100_u32, 0xffff_ff00_u32)
        .ipv4_dst(std::net::Ipv4Addr::new(10, 0, 2, 3))
        .tcp_src(0x1234)
        .tcp_dst(80)
}

const ARP: [u8; MATCH_SIZE] = [
    0x00, 0x3f, 0xc0, 0xcf, // wildcards: all but dl_type, nw_proto, nw_src
    0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0x00, // link fields
    0x08, 0x06, // dl_type
    0x00, 0x02, 0x00, 0x00, // nw_tos, nw_proto, padding
    0x0a, 0x00, 0x00, 0x01, // nw_src
    0x00, 0x00, 0x00, 0x00, // nw_dst
    0x00, 0x00, 0x00, 0x00, // tp_src, tp_dst
];

fn arp() -> Match<'static> {
    Match::any()
        .eth_type(0x0806)
        .with_exact(OxmField::ArpOp, 2_u8)
        .with_exact(OxmField::ArpSpa, 0x0a00_0001_u32)
}

fn encoded(match_: &Match) -> Result<[u8; MATCH_SIZE], String> {
    let mut out = Vec::new();
    encode(match_, &mut out).map_err(|error| error.to_string())?;
    Ok(out.try_into().expect("a match has 40 bytes"))
}

#[track_caller]
fn both_ways(bytes: &[u8; MATCH_SIZE], match_: &Match) {
    let wanted: Vec<_> = match_.fields().collect();
    assert_eq!(fields(bytes).collect::<Vec<_>>(), wanted);
    assert_eq!(encoded(match_).as_ref(), Ok(bytes));
}

/// Returns the bytes of a match on everything, with changes given as (offset, bytes).
fn any_but(wildcards: u32, changes: &[(usize, &[u8])]) -> [u8; MATCH_SIZE] {
    let mut bytes = [0; MATCH_SIZE];
    bytes[..4].copy_from_slice(&(OFPFW_ALL & !wildcards).to_be_bytes());
    for (at, change) in changes {
        bytes[*at..at + change.len()].copy_from_slice(change);
    }
    bytes
}

#[test]
fn tcp_both_ways() {
    both_ways(&TCP, &tcp());
}

#[test]
fn arp_both_ways() {
    both_ways(&ARP, &arp());
}

#[test]
fn any_is_ofpfw_all_and_zeros() {
    let mut bytes = [0; MATCH_SIZE];
    bytes[..4].copy_from_slice(&[0x00, 0x3f, 0xff, 0xff]);
    both_ways(&bytes, &Match::any());
}

#[test]
fn icmp_and_udp_both_ways() {
    let wildcards = OFPFW_DL_TYPE | OFPFW_NW_PROTO | OFPFW_TP_SRC | OFPFW_TP_DST;
    let icmp = any_but(wildcards, &[(22, &[8, 0]), (25, &[1]), (36, &[0, 3, 0, 1])]);
    let ipv4 = Match::any().eth_type(0x0800);
    let unreachable = ipv4
        .clone()
        .ip_proto(1)
        .with_exact(OxmField::Icmpv4Type, 3_u8)
        .with_exact(OxmField::Icmpv4Code, 1_u8);
    both_ways(&icmp, &unreachable);
    let udp = any_but(
        wildcards,
        &[(22, &[8, 0]), (25, &[17]), (36, &[0, 53, 0x30, 0x39])],
    );
    both_ways(&udp, &ipv4.ip_proto(17).udp_src(53).udp_dst(12345));
}

#[test]
fn vlan_tags_both_ways() {
    let untagged = any_but(OFPFW_DL_VLAN, &[(18, &[0xff, 0xff])]);
    let no_tag = Match::any().with_exact(OxmField::VlanVid, 0_u8);
    both_ways(&untagged, &no_tag);
    let priority = any_but(OFPFW_DL_VLAN_PCP, &[(20, &[3])]);
    let any_tag = Match::any()
        .with_masked(OxmField::VlanVid, VLAN_PRESENT, VLAN_PRESENT)
        .with_exact(OxmField::VlanPcp, 3_u8);
    both_ways(&priority, &any_tag);
}

#[test]
fn untagged_packets_may_have_a_priority() {
    let bytes = any_but(
        OFPFW_DL_VLAN | OFPFW_DL_VLAN_PCP,
        &[(18, &[0xff, 0xff]), (20, &[3])],
    );
    let read = Match::of10(&bytes);
    assert_eq!(read, Match::any().untagged());
    assert_eq!(read.pcp_of_untagged(), Some(3));
    assert_eq!(encoded(&Match::any().untagged().vlan_pcp(3)), Ok(bytes));
    let without = any_but(OFPFW_DL_VLAN, &[(18, &[0xff, 0xff])]);
    assert_eq!(Match::of10(&without).pcp_of_untagged(), None);
    let tagged = any_but(OFPFW_DL_VLAN | OFPFW_DL_VLAN_PCP, &[(20, &[3])]);
    assert_eq!(Match::of10(&tagged).pcp_of_untagged(), None);
}

#[test]
fn only_matches_without_wildcards_are_exact() {
    let exact = [0; MATCH_SIZE];
    assert!(Match::of10(&exact).is_exact_in_of10());
    for bit in 0..22 {
        let wildcard = (1_u32 << bit).to_be_bytes();
        let mut bytes = exact;
        bytes[..4].copy_from_slice(&wildcard);
        assert!(!Match::of10(&bytes).is_exact_in_of10(), "bit {bit}");
    }
    assert!(!Match::any().is_exact_in_of10());
}

#[test]
fn fields_without_prerequisite_are_dropped() {
    let bytes = any_but(OFPFW_NW_PROTO | OFPFW_NW_SRC_MASK | OFPFW_TP_DST, &[]);
    assert_eq!(fields(&bytes).count(), 0);
    let mpls = any_but(
        OFPFW_ALL & !OFPFW_DL_VLAN,
        &[(18, &[0xff, 0xff]), (22, &[0x88, 0x47])],
    );
    let names = fields(&mpls).map(|field| format!("{field:?}"));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "in_port=0x0",
            "eth_dst=0x0",
            "eth_src=0x0",
            "vlan_vid=0x1000/0x1000",
            "vlan_pcp=0x0",
            "eth_type=0x8847"
        ]
    );
}

#[test]
fn errors_name_features_missing_in_1_0() {
    let any = Match::any;
    let ipv4 = || any().eth_type(0x0800);
    let cases = [
        (
            any().ipv6_src(Ipv6Addr::LOCALHOST),
            "the match field ipv6_src",
        ),
        (
            ipv4().with_masked(OxmField::Ipv4Src, 1_u8, 0xff_u8),
            "this mask on the match field ipv4_src",
        ),
        (
            any().with_masked(OxmField::EthDst, 1_u8, 1_u8),
            "this mask on the match field eth_dst",
        ),
        (
            any().with_masked(OxmField::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
            "this mask on the match field vlan_vid",
        ),
        (
            any().with_exact(OxmField::VlanVid, 5_u8),
            "the match field vlan_vid without OFPVID_PRESENT",
        ),
        (
            any().tcp_src(80),
            "the match field tcp_src without its prerequisites",
        ),
        (
            ipv4().ip_proto(17).tcp_src(80),
            "the match field tcp_src without its prerequisites",
        ),
        (
            Match::from(vec![Field::exact(OxmField::EthType, 1); 2]),
            "the match field eth_type twice",
        ),
    ];
    for (match_, what) in cases {
        let expected = format!("OpenFlow 1.0 cannot express {what}");
        assert_eq!(encoded(&match_), Err(expected));
    }
}

#[test]
fn exact_matches_compare_the_fields_of_1_0() {
    let mut frame = [0; 54];
    frame[..15].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60]);
    let wildcards = OFPFW_IN_PORT | OFPFW_DL_SRC | OFPFW_DL_DST | OFPFW_DL_VLAN | OFPFW_DL_TYPE;
    let expected = any_but(
        wildcards,
        &[
            (5, &[7]),
            (6, &frame[6..12]),
            (12, &frame[..6]),
            (18, &[0xff, 0xff]),
            (22, &[0x86, 0xdd]),
        ],
    );
    let exact = Match::exact_frame(PortNo(7), &frame);
    assert_eq!(encoded(&exact), Ok(expected));
}

#[test]
fn values_that_do_not_fit_are_named() {
    let arp = Match::any()
        .eth_type(0x0806)
        .with_exact(OxmField::ArpOp, 0x101_u16);
    assert_eq!(
        encoded(&arp),
        Err("the match field arp_op is 0x101; OpenFlow 1.0 has 8 bits for it".into())
    );
    assert!(encoded(&Match::any().in_port(PortNo(0x1_0000))).is_err());
}

/// The reference model of [`fields`]: table 3 of the specification, field by field.
fn naive(bytes: &[u8; MATCH_SIZE]) -> Vec<(OxmField, u128, u128)> {
    let number = |at: usize, length: usize| {
        bytes[at..at + length]
            .iter()
            .fold(0_u128, |number, &byte| number << 8 | u128::from(byte))
    };
    let wildcards = number(0, 4);
    let counts = |bit: u32| wildcards >> bit & 1 == 0;
    let port = match number(4, 2) {
        reserved @ 0xfff8.. => reserved + 0xffff_0000,
        port => port,
    };
    let (dl_vlan, dl_type, nw_proto) = (number(18, 2), number(22, 2), number(25, 1));
    let ip = counts(4) && dl_type == 0x0800;
    let arp = counts(4) && dl_type == 0x0806;
    let over_ip = |protocol| ip && counts(5) && nw_proto == protocol;
    let (tcp, udp, icmp) = (over_ip(6), over_ip(17), over_ip(1));
    let untagged = counts(1) && dl_vlan == 0xffff;
    let prefix = |bit: u32| {
        let free = (wildcards >> bit & 63).min(32);
        (u128::from(u32::MAX) >> free) << free
    };
    let (source, destination) = (prefix(8), prefix(14));
    use OxmField::*;
    let rows = [
        (counts(0), InPort, port, u128::MAX),
        (counts(3), EthDst, number(12, 6), u128::MAX),
        (counts(2), EthSrc, number(6, 6), u128::MAX),
        (untagged, VlanVid, 0, u128::MAX),
        (
            counts(1) && !untagged,
            VlanVid,
            dl_vlan % 0x1000 + 0x1000,
            u128::MAX,
        ),
        (!counts(1) && counts(20), VlanVid, 0x1000, 0x1000),
        (counts(20) && !untagged, VlanPcp, number(20, 1), u128::MAX),
        (counts(4), EthType, dl_type, u128::MAX),
        (ip && counts(21), IpDscp, number(24, 1) / 4, u128::MAX),
        (ip && counts(5), IpProto, nw_proto, u128::MAX),
        (arp && counts(5), ArpOp, nw_proto, u128::MAX),
        (ip && source != 0, Ipv4Src, number(28, 4), source),
        (ip && destination != 0, Ipv4Dst, number(32, 4), destination),
        (arp && source != 0, ArpSpa, number(28, 4), source),
        (arp && destination != 0, ArpTpa, number(32, 4), destination),
        (tcp && counts(6), TcpSrc, number(36, 2), u128::MAX),
        (tcp && counts(7), TcpDst, number(38, 2), u128::MAX),
        (udp && counts(6), UdpSrc, number(36, 2), u128::MAX),
        (udp && counts(7), UdpDst, number(38, 2), u128::MAX),
        (icmp && counts(6), Icmpv4Type, number(36, 2), u128::MAX),
        (icmp && counts(7), Icmpv4Code, number(38, 2), u128::MAX),
    ];
    let present = rows.into_iter().filter(|row| row.0);
    present
        .map(|(_, field, value, mask)| {
            let mask = mask & ((1 << field.bits()) - 1);
            (field, value & mask, mask)
        })
        .collect()
}

/// Generates matches in which the relevant types and protocols are frequent.
fn any_bytes() -> impl Strategy<Value = [u8; MATCH_SIZE]> {
    let dl_type = prop_oneof![Just(0x0800_u16), Just(0x0806), Just(0x8847), any::<u16>()];
    let nw_proto = prop_oneof![Just(6_u8), Just(17), Just(1), any::<u8>()];
    let dl_vlan = prop_oneof![Just(0xffff_u16), any::<u16>()];
    (any::<[u8; MATCH_SIZE]>(), dl_type, nw_proto, dl_vlan).prop_map(
        |(mut bytes, dl_type, nw_proto, dl_vlan)| {
            bytes[18..20].copy_from_slice(&dl_vlan.to_be_bytes());
            bytes[22..24].copy_from_slice(&dl_type.to_be_bytes());
            bytes[25] = nw_proto;
            bytes
        },
    )
}

proptest! {
    #[test]
    fn decodes_like_the_naive_table(bytes in any_bytes()) {
        let mut read: Vec<_> = fields(&bytes)
            .filter_map(|field| match field {
                Field::Basic { field, value, mask } => Some((field, value, mask)),
                Field::Raw(_) => None,
            })
            .collect();
        let mut wanted = naive(&bytes);
        read.sort();
        wanted.sort();
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn encoding_a_decoded_match_is_canonical(bytes in any_bytes()) {
        let match_ = Match::from(fields(&bytes).collect::<Vec<_>>());
        let again = encoded(&match_).expect("1.0 can express what it said");
        prop_assert_eq!(&match_, &Match::of10(&again));
        let canonical = Match::from(fields(&again).collect::<Vec<_>>());
        prop_assert_eq!(encoded(&canonical), Ok(again));
    }
}
