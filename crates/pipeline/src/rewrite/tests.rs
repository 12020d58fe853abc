//! Tests of single actions that change a packet.

use super::*;
use crate::layout::{IpVersion, Layout, Transport};
use crate::packet::testing::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use urtica_wire::packet::{
    Icmpv4View, Icmpv6View, Ipv4View, Ipv6View, PseudoHeader, SctpView, TcpView, UdpView,
};
use urtica_wire::{OxmField, PortNo, VLAN_PRESENT};

/// Fields with values from the pipeline, or without a location in the packet.
const NOT_SETTABLE: [OxmField; 4] = [
    OxmField::InPort,
    OxmField::InPhyPort,
    OxmField::Metadata,
    OxmField::Ipv6Exthdr,
];

/// Returns whether setting the field to this value leaves a packet in which the field is still at this location. It may not
/// be after setting types of tags or protocols of extension headers.
fn is_read_back(field: OxmField, value: u128) -> bool {
    match field {
        OxmField::EthType => value >= 0x600 && ![0x8100, 0x88a8].contains(&value),
        OxmField::IpProto => ![0, 43, 44, 51, 60].contains(&value),
        _ => !NOT_SETTABLE.contains(&field),
    }
}

/// Returns `true` if the packet has the field, and it has a location.
fn is_settable(packet: &Packet, field: OxmField) -> bool {
    field == OxmField::TunnelId || packet.layout().place(field).is_some()
}

/// Returns whether an action exposes other bytes as a header, whose checksum was never correct.
fn shows_other_bytes(action: &Action) -> bool {
    match action {
        Action::SetField(Field::Basic { field, .. }) => {
            matches!(field, OxmField::EthType | OxmField::IpProto)
        }
        Action::PopMpls(_) => true,
        _ => false,
    }
}

/// Returns whether all checksums that can be parsed are correct.
fn has_right_checksums(packet: &Packet) -> bool {
    let layout = packet.layout();
    let Some(ip) = layout.ip() else { return true };
    let bytes = &packet.frame()[ip.at..];
    let pseudo_header = match ip.version {
        IpVersion::V4 => {
            let view = Ipv4View::new(bytes).expect("the layout found one");
            if !view.is_checksum_valid() {
                return false;
            }
            view.pseudo_header()
        }
        IpVersion::V6 { .. } => {
            let view = Ipv6View::new(bytes).expect("the layout found one");
            view.pseudo_header()
        }
    };
    has_right_transport_checksum(packet, &pseudo_header)
}

fn has_right_transport_checksum(packet: &Packet, pseudo_header: &PseudoHeader) -> bool {
    let Some(upper) = packet.layout().upper() else {
        return true;
    };
    let bytes = &packet.frame()[upper.at..upper.end];
    let is_right = match upper.transport {
        Some(Transport::Tcp) => TcpView::new(bytes).map(|v| v.is_checksum_valid(pseudo_header)),
        Some(Transport::Udp) => UdpView::new(bytes).map(|v| v.is_checksum_valid(pseudo_header)),
        Some(Transport::Sctp) => SctpView::new(bytes).map(|v| v.is_checksum_valid()),
        Some(Transport::Icmpv4) => Icmpv4View::new(bytes).map(|v| v.is_checksum_valid()),
        Some(Transport::Icmpv6(_)) => {
            Icmpv6View::new(bytes).map(|v| v.is_checksum_valid(pseudo_header))
        }
        None => return true,
    };
    is_right.expect("the layout found one")
}

proptest! {
    #[test]
    fn any_action_on_any_bytes_leaves_a_packet_that_can_be_read(
        frame in hostile(),
        actions in vec(any_action(), 1..8),
    ) {
        let mut packet = Packet::new(PortNo(1), &frame);
        for action in actions {
            packet.apply(&action);
            prop_assert_eq!(*packet.layout(), Layout::of(packet.frame()), "{:?}", action);
            for &field in OxmField::ALL {
                let value = packet.field(field).unwrap_or(0);
                prop_assert_eq!(value & !field.full_mask(), 0, "{:?}", field);
            }
        }
    }

    #[test]
    fn set_fields_are_read_back(frame in hostile(), value: u128) {
        let before = Packet::new(PortNo(1), &frame);
        for &field in OxmField::ALL {
            let value = value & field.full_mask();
            if !is_settable(&before, field) || !is_read_back(field, value) {
                continue;
            }
            let mut packet = before.clone();
            prop_assert!(packet.apply(&set(field, value)));
            let present = if field == OxmField::VlanVid { VLAN_PRESENT } else { 0 };
            prop_assert_eq!(packet.field(field), Some(value | u128::from(present)), "{:?}", field);
            let once = packet.frame().to_vec();
            packet.apply(&set(field, value));
            prop_assert_eq!(packet.frame(), once, "{:?} again", field);
        }
    }

    #[test]
    fn valid_checksums_stay_valid(
        text in select(&ALL),
        actions in vec(any_action(), 1..8),
    ) {
        let mut packet = packet(text);
        prop_assert!(has_right_checksums(&packet));
        for action in actions.iter().filter(|action| !shows_other_bytes(action)) {
            packet.apply(action);
            prop_assert!(has_right_checksums(&packet), "{:?}", action);
        }
    }

    #[test]
    fn invalid_transport_checksums_stay_invalid(
        text in select(&[TCP_OVER_IPV4, UDP_OVER_IPV4, SCTP_OVER_IPV4, ICMPV4_ECHO, TCP_OVER_IPV6]),
        bit in 0u8..8,
        action in any_action(),
    ) {
        prop_assume!(!shows_other_bytes(&action));
        let mut packet = packet(text);
        *packet.frame_mut().last_mut().expect("a byte of payload") ^= 1 << bit;
        prop_assert!(!has_right_checksums(&packet));
        packet.apply(&action);
        prop_assert!(packet.layout().upper().is_none() || !has_right_checksums(&packet));
    }

    #[test]
    fn pop_undoes_push(
        frame in hostile().prop_filter("an Ethernet header", |frame| frame.len() >= 14),
    ) {
        let eth_type = u16::from_be_bytes([frame[12], frame[13]]);
        for (push, pop) in [
            (Action::PushVlan(0x8100), Action::PopVlan),
            (Action::PushVlan(0x88a8), Action::PopVlan),
            (Action::PushMpls(0x8847), Action::PopMpls(eth_type)),
            (Action::PushPbb(0x88e7), Action::PopPbb),
        ] {
            let mut packet = Packet::new(PortNo(1), &frame);
            prop_assert!(packet.apply(&push));
            prop_assert_ne!(packet.frame(), &frame[..]);
            prop_assert!(packet.apply(&pop));
            prop_assert_eq!(packet.frame(), &frame[..], "{:?}", push);
        }
    }
}
