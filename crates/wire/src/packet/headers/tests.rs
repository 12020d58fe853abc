//! Tests of parsing the headers of whole packets.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::super::{
    Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Nd, Pbb, PseudoHeader, Sctp, Tcp, Udp, Vlan, icmpv4,
    icmpv6, ipv6_ext, testing,
};
use super::*;

/// A TCP segment over IPv4, in a customer VLAN inside a service VLAN.
const GOLDEN: [u8; 63] = [
    0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88,
    0xa8, // Ethernet
    0x60, 0x0a, 0x81, 0x00, // service VLAN 10, PCP 3
    0x10, 0x14, 0x08, 0x00, // customer VLAN 20, CFI
    0x45, 0xb9, 0x00, 0x29, 0x00, 0x00, 0x40, 0x00, // IPv4: DSCP 46, ECN 1, 41 bytes
    0x40, 0x06, 0x26, 0x14, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, // TCP, addresses
    0xc0, 0x00, 0x19, 0xfd, 0x00, 0x00, 0x00, 0x01, // ports 49152 and 6653, sequence number
    0x00, 0x00, 0x00, 0x00, 0x50, 0x02, 0x72, 0x10, // SYN
    0x25, 0xd0, 0x00, 0x00, // checksum, urgent pointer
    0x2a, // payload
];

const SRC: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);
const DST: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 2]);
const SRC_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DST_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SRC_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const DST_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

/// Returns the common headers of every frame below.
fn ethernet(eth_type: u16) -> Headers<'static> {
    Headers {
        eth_src: Some(SRC),
        eth_dst: Some(DST),
        eth_type: Some(eth_type),
        ..Headers::default()
    }
}

fn over_ipv4(proto: u8) -> Headers<'static> {
    Headers {
        ip_src: Some(SRC_V4.into()),
        ip_dst: Some(DST_V4.into()),
        ip_proto: Some(proto),
        ip_dscp: Some(0),
        ip_ecn: Some(0),
        ..ethernet(ether_type::IPV4)
    }
}

fn over_ipv6(proto: u8) -> Headers<'static> {
    Headers {
        ip_src: Some(SRC_V6.into()),
        ip_dst: Some(DST_V6.into()),
        ip_proto: Some(proto),
        ip_dscp: Some(0),
        ip_ecn: Some(0),
        ipv6_flabel: Some(0),
        ..ethernet(ether_type::IPV6)
    }
}

fn frame(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Ethernet {
        dst: DST,
        src: SRC,
        ether_type,
    }
    .write(&mut out);
    out.extend_from_slice(payload);
    out
}

fn ipv4_frame(header: &Ipv4, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    header.write(&mut packet, payload).unwrap();
    frame(ether_type::IPV4, &packet)
}

fn ipv6_frame(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    Ipv6::new(SRC_V6, DST_V6, next_header)
        .write(&mut packet, payload)
        .unwrap();
    frame(ether_type::IPV6, &packet)
}

#[test]
fn reads_golden_bytes() {
    let expected = Headers {
        vlan: Some(VlanTag {
            tpid: ether_type::SERVICE_VLAN,
            pcp: 3,
            cfi: false,
            vid: 10,
        }),
        inner_vlan: Some(VlanTag {
            tpid: ether_type::VLAN,
            pcp: 0,
            cfi: true,
            vid: 20,
        }),
        ip_dscp: Some(46),
        ip_ecn: Some(1),
        src_port: Some(49_152),
        dst_port: Some(6653),
        payload: &[0x2a],
        ..over_ipv4(ip_proto::TCP)
    };
    assert_eq!(Headers::parse(&GOLDEN), expected);
}

#[test]
fn truncated_headers_are_none() {
    let full = Headers::parse(&GOLDEN);
    assert_eq!(
        Headers::parse(&GOLDEN[..13]),
        Headers {
            payload: &GOLDEN[..13],
            ..Headers::default()
        }
    );
    let after_tag = Headers::parse(&GOLDEN[..18]);
    assert_eq!(
        (after_tag.vlan, after_tag.inner_vlan, after_tag.eth_type),
        (full.vlan, None, None)
    );
    let within_ip = Headers::parse(&GOLDEN[..41]);
    assert_eq!(
        (within_ip.eth_type, within_ip.ip_src),
        (full.eth_type, None)
    );
    let within_tcp = Headers::parse(&GOLDEN[..50]);
    assert_eq!(
        (within_tcp.ip_proto, within_tcp.src_port),
        (full.ip_proto, None)
    );
    assert_eq!(
        Headers::parse(&GOLDEN[..62]),
        Headers {
            payload: &[],
            ..full
        }
    );
}

#[test]
fn reads_the_tags_of_a_frame_with_one() {
    let mut tagged = Vec::new();
    Vlan {
        pcp: 7,
        cfi: false,
        vid: 100,
        ether_type: 0x9000,
    }
    .write(&mut tagged);
    let expected = Headers {
        vlan: Some(VlanTag {
            tpid: ether_type::VLAN,
            pcp: 7,
            cfi: false,
            vid: 100,
        }),
        ..ethernet(0x9000)
    };
    assert_eq!(Headers::parse(&frame(ether_type::VLAN, &tagged)), expected);
}

#[test]
fn reads_arp() {
    let arp = Arp::request(SRC, SRC_V4, DST_V4);
    let mut packet = Vec::new();
    arp.write(&mut packet);
    let expected = Headers {
        arp: Some(arp),
        ..ethernet(ether_type::ARP)
    };
    assert_eq!(Headers::parse(&frame(ether_type::ARP, &packet)), expected);
}

#[test]
fn stops_after_the_outermost_label_and_the_backbone_tag() {
    let label = Mpls {
        label: 1000,
        tc: 5,
        bos: true,
        ttl: 64,
    };
    let mut packet = Vec::new();
    label.write(&mut packet);
    packet.push(0x45);
    let expected = Headers {
        mpls: Some(label),
        payload: &[0x45],
        ..ethernet(ether_type::MPLS)
    };
    assert_eq!(Headers::parse(&frame(ether_type::MPLS, &packet)), expected);

    let mut packet = Vec::new();
    Pbb {
        pcp: 0,
        dei: false,
        uca: true,
        isid: 77,
    }
    .write(&mut packet);
    packet.extend_from_slice(&GOLDEN);
    let expected = Headers {
        pbb_isid: Some(77),
        pbb_uca: Some(true),
        payload: &GOLDEN,
        ..ethernet(ether_type::PBB)
    };
    assert_eq!(Headers::parse(&frame(ether_type::PBB, &packet)), expected);
}

#[test]
fn reads_802_3_frames() {
    let expected = Headers {
        payload: &[0x42, 0x42, 0x03],
        ..ethernet(ether_type::NONE)
    };
    assert_eq!(Headers::parse(&frame(3, &[0x42, 0x42, 0x03])), expected);
}

#[test]
fn reads_the_ports_of_every_transport() {
    let addresses = PseudoHeader::V4 {
        src: SRC_V4,
        dst: DST_V4,
    };
    let ports = |proto| Headers {
        src_port: Some(1),
        dst_port: Some(2),
        ..over_ipv4(proto)
    };
    let mut tcp = Vec::new();
    Tcp {
        src_port: 1,
        dst_port: 2,
        ..Tcp::default()
    }
    .write(&mut tcp, &addresses, &[])
    .unwrap();
    let mut udp = Vec::new();
    Udp {
        src_port: 1,
        dst_port: 2,
    }
    .write(&mut udp, &addresses, &[])
    .unwrap();
    let mut sctp = Vec::new();
    Sctp {
        src_port: 1,
        dst_port: 2,
        verification_tag: 3,
    }
    .write(&mut sctp, &[]);
    for (proto, bytes) in [
        (ip_proto::TCP, tcp),
        (ip_proto::UDP, udp),
        (ip_proto::SCTP, sctp),
    ] {
        let frame = ipv4_frame(&Ipv4::new(SRC_V4, DST_V4, proto), &bytes);
        assert_eq!(Headers::parse(&frame), ports(proto));
    }
}

#[test]
fn reads_icmp_only_over_its_own_ip() {
    let mut message = Vec::new();
    Icmpv4 {
        icmp_type: icmpv4::ECHO_REQUEST,
        icmp_code: 3,
        rest: [0; 4],
    }
    .write(&mut message, &[]);
    let frame = ipv4_frame(&Ipv4::new(SRC_V4, DST_V4, ip_proto::ICMPV4), &message);
    let expected = Headers {
        icmp_type: Some(8),
        icmp_code: Some(3),
        ..over_ipv4(ip_proto::ICMPV4)
    };
    assert_eq!(Headers::parse(&frame), expected);

    let frame = ipv6_frame(ip_proto::ICMPV4, &message);
    assert_eq!(
        Headers::parse(&frame),
        Headers {
            payload: &message,
            ..over_ipv6(ip_proto::ICMPV4)
        }
    );
}

#[test]
fn reads_neighbour_messages_behind_extension_headers() {
    let addresses = PseudoHeader::V6 {
        src: SRC_V6,
        dst: DST_V6,
    };
    let (mut body, mut packet) = (Vec::new(), Vec::new());
    Nd {
        flags: 0,
        target: DST_V6,
        sll: Some(SRC),
        tll: None,
    }
    .write(&mut body);
    ipv6_ext::Options {
        next_header: ip_proto::ICMPV6,
        options: vec![1, 4, 0, 0, 0, 0],
    }
    .write(&mut packet)
    .unwrap();
    Icmpv6 {
        icmp_type: icmpv6::NEIGHBOR_SOLICITATION,
        icmp_code: 0,
    }
    .write(&mut packet, &addresses, &body);
    let expected = Headers {
        icmp_type: Some(135),
        icmp_code: Some(0),
        nd_target: Some(DST_V6),
        nd_sll: Some(SRC),
        payload: &body[20..],
        ..over_ipv6(ip_proto::ICMPV6)
    };
    assert_eq!(
        Headers::parse(&ipv6_frame(ip_proto::HOP_BY_HOP, &packet)),
        expected
    );
}

#[test]
fn a_later_fragment_has_no_ports() {
    let later = Ipv4 {
        fragment_offset: 1,
        ..Ipv4::new(SRC_V4, DST_V4, ip_proto::UDP)
    };
    let bytes = [0, 1, 0, 2, 0, 8, 0, 0];
    let frame = ipv4_frame(&later, &bytes);
    assert_eq!(
        Headers::parse(&frame),
        Headers {
            payload: &bytes,
            ..over_ipv4(ip_proto::UDP)
        }
    );

    let mut packet = Vec::new();
    ipv6_ext::Fragment {
        next_header: ip_proto::UDP,
        offset: 1,
        more_fragments: false,
        identification: 0,
    }
    .write(&mut packet);
    packet.extend_from_slice(&bytes);
    let frame = ipv6_frame(ip_proto::FRAGMENT, &packet);
    assert_eq!(
        Headers::parse(&frame),
        Headers {
            payload: &bytes,
            ..over_ipv6(ip_proto::UDP)
        }
    );
}

proptest! {
    #[test]
    fn parsing_never_panics(bytes in testing::hostile(&GOLDEN)) {
        Headers::parse(&bytes);
    }

    #[test]
    fn parsing_any_payload_never_panics(payload in testing::bytes(128), protocol in 0usize..6) {
        let ether_type = [
            ether_type::IPV4, ether_type::IPV6, ether_type::ARP,
            ether_type::MPLS, ether_type::PBB, ether_type::VLAN,
        ][protocol];
        let headers = frame(ether_type, &payload);
        prop_assert_eq!(Headers::parse(&headers).eth_src, Some(SRC));
    }
}
