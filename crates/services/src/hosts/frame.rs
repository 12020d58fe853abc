//! The information that a frame contains on its sender and its target: ARP (RFC 826) and neighbour discovery (RFC 4861) in one
//! form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use urtica_wire::MacAddr;
use urtica_wire::packet::{
    ArpView, Icmpv6View, Ipv4View, Ipv6View, VlanView, arp, ether_type, icmpv6, ip_proto,
};
use urtica_wire::packet::{EthernetView, NdView, Vlan};

/// Router advertisement (RFC 4861 section 4.2).
const ROUTER_ADVERTISEMENT: u8 = 134;

/// The hop limit of all neighbour discovery messages, which shows that no router has forwarded the packet (RFC 4861 section
/// 7.1).
pub(crate) const ND_HOP_LIMIT: u8 = 255;

/// The parts of a frame that concern hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub eth_src: MacAddr,
    pub eth_dst: MacAddr,
    /// The outermost tag, if any.
    pub tag: Option<Vlan>,
    /// The EtherType of the payload, after an 802.1Q tag. A second tag is not parsed, nor is the payload of an 802.1ad tag,
    /// because we would not answer with such a tag.
    pub(super) ether_type: u16,
    pub(super) payload: &'a [u8],
}

/// A frame's information on addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// A request for `target`. The sender claims `sender` for itself, unless it only checks whether the target is free.
    Question {
        sender: Option<IpAddr>,
        target: IpAddr,
    },
    /// The sender claims `address`. In IPv6, it also reports whether it is a router.
    Announcement {
        address: IpAddr,
        is_router: Option<bool>,
    },
}

impl Neighbour {
    /// The address that the sender claims.
    pub fn claim(&self) -> Option<IpAddr> {
        match *self {
            Self::Question { sender, .. } => sender,
            Self::Announcement { address, .. } => Some(address),
        }
    }

    pub fn is_router(&self) -> Option<bool> {
        match *self {
            Self::Question { .. } => None,
            Self::Announcement { is_router, .. } => is_router,
        }
    }
}

impl<'a> Frame<'a> {
    /// Parses a frame; returns `None` if it has no complete Ethernet header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let ethernet = EthernetView::new(bytes).ok()?;
        let mut frame = Self {
            eth_src: ethernet.src(),
            eth_dst: ethernet.dst(),
            tag: None,
            ether_type: ethernet.ether_type(),
            payload: ethernet.payload(),
        };
        if matches!(
            frame.ether_type,
            ether_type::VLAN | ether_type::SERVICE_VLAN
        ) {
            let tag = VlanView::new(frame.payload).ok()?;
            frame.tag = Some(tag.to_header());
            if frame.ether_type == ether_type::VLAN {
                (frame.ether_type, frame.payload) = (tag.ether_type(), tag.payload());
            }
        }
        Some(frame)
    }

    /// Returns the VLAN, as [`Headers::vlan_id`](urtica_wire::packet::Headers::vlan_id) reads it for all programs; `None` if
    /// the frame is untagged or only priority-tagged.
    #[inline]
    pub fn vlan(&self) -> Option<u16> {
        self.tag.map(|tag| tag.vid).filter(|&vid| vid != 0)
    }

    /// Returns `true` if the frame may be ARP or neighbour discovery: a cheap check.
    #[inline]
    pub fn may_be_neighbour(&self) -> bool {
        matches!(self.ether_type, ether_type::ARP | ether_type::IPV6)
    }

    /// Returns the frame's information on addresses, if it is credible. It is not if it gives a MAC address other than the
    /// frame's source, or if it is neighbour discovery that is damaged or that a router has forwarded.
    #[inline]
    pub fn neighbour(&self) -> Option<Neighbour> {
        let neighbour = match self.ether_type {
            ether_type::ARP => self.arp(),
            ether_type::IPV6 => self.neighbour_discovery(),
            _ => None,
        };
        neighbour.filter(|neighbour| neighbour.claim().is_none_or(can_be_had))
    }

    fn arp(&self) -> Option<Neighbour> {
        let view = ArpView::new(self.payload).ok()?;
        if view.sha() != self.eth_src {
            return None;
        }
        let sender = Some(view.spa()).filter(|spa| !spa.is_unspecified());
        match view.op() {
            arp::REQUEST => Some(Neighbour::Question {
                sender: sender.map(IpAddr::V4),
                target: IpAddr::V4(view.tpa()),
            }),
            arp::REPLY => sender.map(|address| Neighbour::Announcement {
                address: IpAddr::V4(address),
                is_router: None,
            }),
            _ => None,
        }
    }

    fn neighbour_discovery(&self) -> Option<Neighbour> {
        let ip = Ipv6View::new(self.payload).ok()?;
        if ip.hop_limit() != ND_HOP_LIMIT || ip.next_header() != ip_proto::ICMPV6 {
            return None;
        }
        let icmp = Icmpv6View::new(ip.payload()).ok()?;
        if icmp.icmp_code() != 0 || !icmp.is_checksum_valid(&ip.pseudo_header()) {
            return None;
        }
        match icmp.icmp_type() {
            icmpv6::NEIGHBOR_SOLICITATION => self.solicitation(&ip, &icmp.nd().ok()??),
            icmpv6::NEIGHBOR_ADVERTISEMENT => self.advertisement(&icmp.nd().ok()??),
            ROUTER_ADVERTISEMENT => router_advertisement(&ip, &icmp),
            _ => None,
        }
    }

    /// Reads a neighbour solicitation (RFC 4861 section 7.1.1).
    fn solicitation(&self, ip: &Ipv6View, nd: &NdView) -> Option<Neighbour> {
        let target = nd.target();
        let sender = Some(ip.src()).filter(|src| !src.is_unspecified());
        let is_detection = sender.is_none();
        if target.is_multicast()
            || nd
                .sll()
                .is_some_and(|sll| is_detection || sll != self.eth_src)
            || is_detection && ip.dst() != solicited_node(target)
        {
            return None;
        }
        Some(Neighbour::Question {
            sender: sender.map(IpAddr::V6),
            target: IpAddr::V6(target),
        })
    }

    /// Reads a neighbour advertisement (RFC 4861 section 7.1.2).
    fn advertisement(&self, nd: &NdView) -> Option<Neighbour> {
        if nd.tll().is_some_and(|tll| tll != self.eth_src) {
            return None;
        }
        Some(Neighbour::Announcement {
            address: IpAddr::V6(nd.target()),
            is_router: Some(nd.flags() & icmpv6::nd_flags::ROUTER != 0),
        })
    }

    /// Returns the source address of an IP packet, which need not be its sender's: a router forwards others' packets.
    pub fn ip_src(&self) -> Option<IpAddr> {
        let address = match self.ether_type {
            ether_type::IPV4 => IpAddr::V4(Ipv4View::new(self.payload).ok()?.src()),
            ether_type::IPV6 => IpAddr::V6(Ipv6View::new(self.payload).ok()?.src()),
            _ => return None,
        };
        can_be_had(address).then_some(address)
    }
}

/// Reads a router advertisement (RFC 4861 section 6.1.2). A lifetime of 0 means that the sender is no longer a default router.
fn router_advertisement(ip: &Ipv6View, icmp: &Icmpv6View) -> Option<Neighbour> {
    let &[_, _, l0, l1, ..] = icmp.payload() else {
        return None;
    };
    let is_link_local = ip.src().is_unicast_link_local();
    is_link_local.then_some(Neighbour::Announcement {
        address: IpAddr::V6(ip.src()),
        is_router: Some([l0, l1] != [0, 0]),
    })
}

/// Returns `true` if this can be a host's address.
fn can_be_had(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}

/// Returns the solicited-node multicast address (RFC 4291 section 2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::packet::Headers;

    #[test]
    fn reads_the_vlan_of_the_outermost_tag() {
        let tag = |tpid: u16, vid: u16| [tpid.to_be_bytes(), vid.to_be_bytes()].concat();
        let (vlan, service) = (ether_type::VLAN, ether_type::SERVICE_VLAN);
        for (tags, expected) in [
            (vec![], None),
            (vec![tag(vlan, 5)], Some(5)),
            (vec![tag(vlan, 0x6000)], None),
            (vec![tag(service, 5)], Some(5)),
            (vec![tag(service, 0)], None),
            (vec![tag(service, 5), tag(vlan, 6)], Some(5)),
            (vec![tag(service, 0), tag(vlan, 6)], None),
            (vec![tag(vlan, 5), tag(vlan, 6)], Some(5)),
        ] {
            let bytes = [vec![2; 12], tags.concat(), vec![0x88, 0xb5], vec![0; 46]].concat();
            let frame = Frame::parse(&bytes).unwrap();
            assert_eq!(frame.vlan(), expected, "{tags:x?}");
            assert_eq!(Headers::parse(&bytes).vlan_id(), expected, "{tags:x?}");
        }
    }
}
