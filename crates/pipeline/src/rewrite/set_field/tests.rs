//! Tests of setting fields, and of the checksums afterwards.

use crate::packet::testing::*;
use urtica_wire::{Action, Field, OxmField, PortNo, RawField};

#[test]
fn only_the_tunnel_id_of_the_pipelines_fields_can_be_set() {
    let mut packet = packet("");
    for field in [
        OxmField::InPort,
        OxmField::InPhyPort,
        OxmField::Metadata,
        OxmField::TunnelId,
    ] {
        assert!(packet.apply(&set(field, 7)));
    }
    assert_eq!((packet.in_port, packet.in_phy_port), (PortNo(1), PortNo(1)));
    assert_eq!((packet.metadata, packet.tunnel_id), (0, 7));
}

#[test]
fn the_queue_is_kept_for_outputs() {
    let mut packet = packet("");
    assert!(packet.apply(&Action::SetQueue(3)));
    assert_eq!(packet.queue_id, 3);
}

#[test]
fn other_actions_leave_the_packet() {
    let raw = Field::Raw(RawField {
        class: 0xffff,
        field: 0,
        has_mask: false,
        body: &[0; 8],
    });
    for action in [
        Action::output(PortNo(2)),
        Action::Group(1),
        Action::SetField(raw),
        set(OxmField::Ipv6Exthdr, 1),
    ] {
        assert_applied(TCP_OVER_IPV6, action, TCP_OVER_IPV6);
    }
}

#[test]
fn a_missing_field_is_not_set() {
    for field in [
        OxmField::VlanVid,
        OxmField::UdpSrc,
        OxmField::Ipv6Src,
        OxmField::ArpOp,
    ] {
        assert_applied(TCP_OVER_IPV4, set(field, 1), TCP_OVER_IPV4);
    }
    let without_type = "020000000002 020000000001 0003 424203";
    assert_applied(without_type, set(OxmField::EthType, 0x0800), without_type);
}

#[test]
fn bits_around_a_field_stay() {
    let tag = |tci: &str| UDP_IN_TWO_VLANS.replace("b00a", tci);
    assert_applied(
        UDP_IN_TWO_VLANS,
        set(OxmField::VlanVid, 0x1fff),
        &tag("bfff"),
    );
    assert_applied(UDP_IN_TWO_VLANS, set(OxmField::VlanPcp, 2), &tag("500a"));
    let label = |header: &str| UDP_UNDER_TWO_LABELS.replace("abcdea3f", header);
    assert_applied(
        UDP_UNDER_TWO_LABELS,
        set(OxmField::MplsLabel, 1),
        &label("00001a3f"),
    );
    assert_applied(
        UDP_UNDER_TWO_LABELS,
        set(OxmField::MplsTc, 0),
        &label("abcde03f"),
    );
    assert_applied(
        UDP_UNDER_TWO_LABELS,
        set(OxmField::MplsBos, 1),
        &label("abcdeb3f"),
    );
    let service = UDP_IN_PBB.replace("78abcdef", "78000001");
    assert_applied(UDP_IN_PBB, set(OxmField::PbbIsid, 1), &service);
    let ip = |start: &str| TCP_OVER_IPV6.replace("6b9abcde", start);
    assert_applied(TCP_OVER_IPV6, set(OxmField::IpDscp, 0), &ip("601abcde"));
    assert_applied(TCP_OVER_IPV6, set(OxmField::IpEcn, 2), &ip("6baabcde"));
    assert_applied(TCP_OVER_IPV6, set(OxmField::Ipv6Flabel, 0), &ip("6b900000"));
}

#[test]
fn a_new_type_changes_the_layout_after_it() {
    let mut packet = packet(TCP_OVER_IPV4);
    assert!(packet.field(OxmField::TcpSrc).is_some());
    assert!(packet.apply(&set(OxmField::IpProto, 17)));
    assert_eq!(packet.field(OxmField::TcpSrc), None);
    assert_eq!(packet.field(OxmField::UdpSrc), Some(0xc000));
    assert!(packet.apply(&set(OxmField::EthType, 0x9000)));
    assert_eq!(packet.field(OxmField::Ipv4Src), None);
}

#[test]
fn of10_ports_are_transport_ports() {
    let with_ports = |text: &str, src: &str, checksum: (&str, &str)| {
        text.replace("c000", src).replace(checksum.0, checksum.1)
    };
    let tcp = with_ports(TCP_OVER_IPV4, "0001", ("97e0", "57e0"));
    assert_applied(TCP_OVER_IPV4, Action::SetTpSrc(1), &tcp);
    let udp = with_ports(UDP_OVER_IPV4, "0001", ("01a4", "c1a3"));
    assert_applied(UDP_OVER_IPV4, Action::SetTpSrc(1), &udp);
    let udp = UDP_OVER_IPV4.replace("0035 0009 01a4", "0036 0009 01a3");
    assert_applied(UDP_OVER_IPV4, Action::SetTpDst(0x36), &udp);
    let icmp = ICMPV4_ECHO.replace("08 00 cdfc", "00 00 d5fc");
    assert_applied(ICMPV4_ECHO, Action::SetTpSrc(0), &icmp);
    let icmp = ICMPV4_ECHO.replace("08 00 cdfc", "08 01 cdfb");
    assert_applied(ICMPV4_ECHO, Action::SetTpDst(1), &icmp);
    assert_applied(SCTP_OVER_IPV4, Action::SetTpSrc(1), SCTP_OVER_IPV4);
    assert_applied(ARP_REPLY, Action::SetTpDst(1), ARP_REPLY);
}
