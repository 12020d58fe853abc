//! Detection of IP fragments (OFPC_FRAG_DROP, 1.3.5 section 7.3.2).

use urtica_wire::packet::ipv6_ext::ExtensionView;
use urtica_wire::packet::{EthernetView, Ipv4View, Ipv6View, VlanTags, ether_type};

/// Returns `true` if a frame carries a fragment of an IPv4 or IPv6 packet, after any VLAN tags.
pub fn is_fragment(frame: &[u8]) -> bool {
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

/// Returns the EtherType after all VLAN tags, and the bytes after it.
fn network_layer(frame: &[u8]) -> Option<(u16, &[u8])> {
    let ethernet = EthernetView::new(frame).ok()?;
    let mut tags = VlanTags::new(ethernet.ether_type(), ethernet.payload());
    tags.by_ref().for_each(drop);
    Some((tags.type_or_length(), tags.rest()))
}

#[cfg(test)]
mod tests;
