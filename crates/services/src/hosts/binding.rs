//! The address bindings that a frame may put into its receivers' caches.
//!
//! **Why in addition to [`Frame::neighbour`].** That function returns the binding that *we* believe, and ignores much: a MAC
//! address that is not the frame's source, an invalid checksum, a message type without information on hosts. Receivers may
//! believe more. So this module finds everything that any host could believe, wherever it is in the frame.

use super::frame::Frame;
use std::net::{IpAddr, Ipv6Addr};
use urtica_wire::MacAddr;
use urtica_wire::packet::{ArpView, Icmpv6View, Ipv6View, ether_type, icmpv6, ip_proto};

/// Options with a MAC address: the sender's, the target's (RFC 4861 section 4.6.1).
const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;

/// The offset of the target in messages that have one (RFC 4861 sections 4.3, 4.4 and 4.5).
const TARGET: std::ops::Range<usize> = 4..20;

/// The unit of option lengths.
const OPTION_UNIT: usize = 8;

/// An address, and the MAC address that the frame claims for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub address: IpAddr,
    pub mac: MacAddr,
}

impl Frame<'_> {
    /// Returns all bindings in the frame. Usually empty; ARP and neighbour discovery contain one or two.
    pub fn bindings(&self) -> Vec<Binding> {
        let bindings = match self.ether_type {
            ether_type::ARP => self.arp_binding(),
            ether_type::IPV6 => self.neighbour_discovery_bindings(),
            _ => None,
        };
        bindings.unwrap_or_default()
    }

    fn arp_binding(&self) -> Option<Vec<Binding>> {
        let view = ArpView::new(self.payload).ok()?;
        Some(vec![Binding {
            address: IpAddr::V4(view.spa()),
            mac: view.sha(),
        }])
    }

    fn neighbour_discovery_bindings(&self) -> Option<Vec<Binding>> {
        let ip = Ipv6View::new(self.payload).ok()?;
        let upper = ip.upper_layer().ok()?;
        if upper.proto != ip_proto::ICMPV6 || upper.is_later_fragment {
            return None;
        }
        let icmp = Icmpv6View::new(upper.payload).ok()?;
        let (options_at, option_type) = match icmp.icmp_type() {
            icmpv6::ROUTER_SOLICITATION => (4, SOURCE_LINK_LAYER),
            icmpv6::ROUTER_ADVERTISEMENT => (12, SOURCE_LINK_LAYER),
            icmpv6::NEIGHBOR_SOLICITATION => (20, SOURCE_LINK_LAYER),
            icmpv6::NEIGHBOR_ADVERTISEMENT => (20, TARGET_LINK_LAYER),
            icmpv6::REDIRECT => (36, TARGET_LINK_LAYER),
            _ => return None,
        };
        let (body, options) = icmp.payload().split_at_checked(options_at)?;
        let address = match option_type {
            SOURCE_LINK_LAYER => ip.src(),
            _ => Ipv6Addr::from(<[u8; 16]>::try_from(body.get(TARGET)?).ok()?),
        };
        let mut macs = link_layer_addresses(options, option_type);
        if icmp.icmp_type() == icmpv6::NEIGHBOR_ADVERTISEMENT && macs.is_empty() {
            macs.push(self.eth_src);
        }
        let address = IpAddr::V6(address);
        let bindings = macs.into_iter().map(|mac| Binding { address, mac });
        Some(bindings.collect())
    }
}

/// Returns the MAC addresses in all options of this type, up to the first malformed one.
fn link_layer_addresses(mut options: &[u8], option_type: u8) -> Vec<MacAddr> {
    let mut macs = Vec::new();
    while let &[found, units, ..] = options {
        let len = usize::from(units) * OPTION_UNIT;
        let Some((option, rest)) = options.split_at_checked(len).filter(|_| len > 0) else {
            break;
        };
        if found == option_type {
            if let &[_, _, a, b, c, d, e, f] = option {
                macs.push(MacAddr::new([a, b, c, d, e, f]));
            }
        }
        options = rest;
    }
    macs
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::packet::{Arp, Ethernet, Icmpv6, Ipv6};

    const HOST: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 3]);
    const OTHER: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 4]);
    const SENDER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const TOLD_OF: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    fn frame(ether_type: u16) -> Vec<u8> {
        let mut out = Vec::new();
        Ethernet {
            dst: MacAddr::BROADCAST,
            src: HOST,
            ether_type,
        }
        .write(&mut out);
        out
    }

    /// Returns a neighbour discovery message that follows `extensions`.
    fn nd(icmp_type: u8, body: &[u8], extensions: &[u8]) -> Vec<u8> {
        let proto = if extensions.is_empty() { 58 } else { 60 };
        let ip = Ipv6::new(SENDER, TOLD_OF, proto);
        let mut payload = extensions.to_vec();
        let header = Icmpv6 {
            icmp_type,
            icmp_code: 0,
        };
        header.write(&mut payload, &ip.pseudo_header(), body);
        let mut out = frame(ether_type::IPV6);
        ip.write(&mut out, &payload).unwrap();
        out
    }

    fn read(frame: &[u8]) -> Vec<(IpAddr, MacAddr)> {
        let bindings = Frame::parse(frame).unwrap().bindings();
        bindings
            .iter()
            .map(|binding| (binding.address, binding.mac))
            .collect()
    }

    fn option(option_type: u8, mac: MacAddr) -> Vec<u8> {
        [&[option_type, 1][..], &mac.octets()].concat()
    }

    #[test]
    fn arp_binds_its_sender_for_any_source_address() {
        let mut out = frame(ether_type::ARP);
        let sender = std::net::Ipv4Addr::new(10, 0, 0, 1);
        Arp::request(OTHER, sender, [10, 0, 0, 2].into()).write(&mut out);
        assert_eq!(read(&out), [(sender.into(), OTHER)]);
    }

    #[test]
    fn neighbour_discovery_binds_the_addresses_that_receivers_accept() {
        let target = [&[0; 4][..], &TOLD_OF.octets()].concat();
        let redirect = [&target[..], &[0; 16]].concat();
        let sender = IpAddr::V6(SENDER);
        let told_of = IpAddr::V6(TOLD_OF);
        for (icmp_type, body, option_type, address) in [
            (133, &[0; 4][..], 1, sender),
            (134, &[0; 12][..], 1, sender),
            (135, &target[..], 1, sender),
            (136, &target[..], 2, told_of),
            (137, &redirect[..], 2, told_of),
        ] {
            let with = |options: &[Vec<u8>]| [body, &options.concat()[..]].concat();
            let one = with(&[option(9, HOST), option(option_type, OTHER)]);
            assert_eq!(read(&nd(icmp_type, &one, &[])), [(address, OTHER)]);
            // After a destination options header.
            let hidden = nd(icmp_type, &one, &[58, 0, 1, 4, 0, 0, 0, 0]);
            assert_eq!(read(&hidden), [(address, OTHER)], "type {icmp_type}");
            let two = with(&[option(option_type, HOST), option(option_type, OTHER)]);
            let expected = [(address, HOST), (address, OTHER)];
            assert_eq!(read(&nd(icmp_type, &two, &[])), expected);
            let none = read(&nd(icmp_type, &with(&[]), &[]));
            match icmp_type {
                136 => assert_eq!(none, [(told_of, HOST)]),
                _ => assert_eq!(none, []),
            }
        }
    }

    #[test]
    fn truncated_and_other_frames_bind_no_addresses() {
        let body = [&[0; 4][..], &TOLD_OF.octets(), &option(1, OTHER)].concat();
        let whole = nd(135, &body, &[]);
        for len in 14..whole.len() {
            assert_eq!(read(&whole[..len]), [], "{len} bytes");
        }
        assert_eq!(read(&nd(128, &body, &[])), [], "an echo request");
        let endless = [&body[..20], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(read(&nd(135, &endless, &[])), []);
    }
}
