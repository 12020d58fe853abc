//! Which frames carry fragments of IP packets (OFPC_FRAG_DROP, 1.3.5 section 7.3.2).

use urtica_wire::packet::ipv6_ext::ExtensionView;
use urtica_wire::packet::{EthernetView, Ipv4View, Ipv6View, VlanView, ether_type};

/// Whether a frame carries a fragment of an IPv4 or IPv6 packet, behind any VLAN tags.
pub(crate) fn is_fragment(frame: &[u8]) -> bool {
    match network_layer(frame) {
        Some((ether_type::IPV4, bytes)) => Ipv4View::new(bytes)
            .is_ok_and(|packet| packet.more_fragments() || packet.fragment_offset() != 0),
        Some((ether_type::IPV6, bytes)) => Ipv6View::new(bytes).is_ok_and(|packet| {
            let mut extensions = packet.extensions();
            extensions.any(|extension| matches!(extension, Ok(ExtensionView::Fragment(_))))
        }),
        _ => false,
    }
}

/// The EtherType after all VLAN tags, and what follows it.
fn network_layer(frame: &[u8]) -> Option<(u16, &[u8])> {
    let ethernet = EthernetView::new(frame).ok()?;
    let (mut ether_type, mut bytes) = (ethernet.ether_type(), ethernet.payload());
    while matches!(ether_type, ether_type::VLAN | ether_type::SERVICE_VLAN) {
        let tag = VlanView::new(bytes).ok()?;
        (ether_type, bytes) = (tag.ether_type(), tag.payload());
    }
    Some((ether_type, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use urtica_wire::packet::{Ipv4, Ipv6, ip_proto};

    fn ipv4(change: impl FnOnce(&mut Ipv4)) -> Vec<u8> {
        let mut header = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, ip_proto::UDP);
        change(&mut header);
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
        header.write(&mut frame, &[0; 16]).unwrap();
        frame
    }

    #[test]
    fn fragments_of_ipv4_behind_a_tag() {
        assert!(!is_fragment(&ipv4(|_| {})));
        assert!(is_fragment(&ipv4(|header| header.more_fragments = true)));
        assert!(is_fragment(&ipv4(|header| header.fragment_offset = 2)));
    }

    #[test]
    fn fragments_of_ipv6() {
        let with = |next_header| {
            let header = Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, next_header);
            let mut frame = vec![0; 12];
            frame.extend(0x86dd_u16.to_be_bytes());
            header
                .write(&mut frame, &[ip_proto::UDP, 0, 0, 1, 0, 0, 0, 1])
                .unwrap();
            frame
        };
        assert!(is_fragment(&with(ip_proto::FRAGMENT)));
        assert!(!is_fragment(&with(ip_proto::UDP)));
    }

    #[test]
    fn other_frames_are_none() {
        assert!(!is_fragment(&[]));
        assert!(!is_fragment(&[0xff; 60]));
    }
}
