//! The offsets of an exact match's values in a frame.
//!
//! They are found in one pass over the headers, without a list and without an allocation. The reference model is
//! [`ExactMatch::fields`], which reads all headers.
//!
//! [`ExactMatch::fields`]: crate::ExactMatch::fields

use crate::OxmField;
use crate::packet::{
    ArpView, Icmpv4View, Icmpv6View, Ipv4View, Ipv6View, SctpView, TcpView, UdpView, VlanTags,
    ether_type, ethernet, ip_proto, ipv6_ext,
};

/// The headers of which an exact match has fields.
pub(super) struct Layers<'a> {
    /// Both addresses and the next two bytes.
    pub ethernet: &'a [u8; ethernet::HEADER_LEN],
    /// The outermost VLAN tag: priority, CFI and VLAN id.
    pub vlan_tci: Option<u16>,
    /// The EtherType after all tags.
    pub eth_type: u16,
    pub network: Network<'a>,
}

/// The layer above Ethernet.
pub(super) enum Network<'a> {
    Arp(ArpView<'a>),
    Ipv4(Ipv4View<'a>, Upper),
    /// IPv6. The protocol is `None` if extension headers hide it.
    Ipv6(Ipv6View<'a>, Option<u8>, Upper),
    /// A protocol without fields, or a header that is truncated in the frame.
    Other,
}

/// The layer above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upper {
    /// The sender's and the receiver's port, with the field of the former; the latter's is the next one.
    Ports(OxmField, u16, u16),
    /// ICMP's type and code, with the field of the former; the latter's is the next one.
    Icmp(OxmField, u8, u8),
    /// A protocol without fields, a later fragment, or a header that is truncated in the frame.
    Other,
}

impl<'a> Layers<'a> {
    /// Parses a frame; returns `None` if it ends within its Ethernet header or a VLAN tag.
    #[inline(always)] // into the writers, so that a view is no more than what they use of it
    pub fn of(frame: &'a [u8]) -> Option<Self> {
        let (ethernet, payload) = frame.split_first_chunk::<{ ethernet::HEADER_LEN }>()?;
        let mut tags = VlanTags::new(u16::from_be_bytes([ethernet[12], ethernet[13]]), payload);
        let outermost = tags.next();
        if outermost.is_some() {
            for _ in &mut tags {}
        }
        if tags.is_cut_off() {
            return None;
        }
        let (eth_type, payload) = ethernet::resolve_ether_type(tags.type_or_length(), tags.rest());
        Some(Self {
            ethernet,
            vlan_tci: outermost.map(|(_, tag)| tag.tci()),
            eth_type,
            network: Network::of(eth_type, payload),
        })
    }
}

impl<'a> Network<'a> {
    #[inline(always)]
    fn of(eth_type: u16, bytes: &'a [u8]) -> Self {
        match eth_type {
            ether_type::ARP => ArpView::new(bytes).map_or(Self::Other, Self::Arp),
            ether_type::IPV4 => {
                Ipv4View::new(bytes).map_or(Self::Other, |ip| Self::Ipv4(ip, Upper::over_ipv4(&ip)))
            }
            ether_type::IPV6 => Ipv6View::new(bytes).map_or(Self::Other, Self::ipv6),
            _ => Self::Other,
        }
    }

    #[inline(always)]
    fn ipv6(ip: Ipv6View<'a>) -> Self {
        if !ipv6_ext::is_extension(ip.next_header()) {
            let proto = ip.next_header();
            return Self::Ipv6(ip, Some(proto), Upper::over_ipv6(proto, ip.payload()));
        }
        match ip.upper_layer() {
            Ok(upper) if upper.is_later_fragment => Self::Ipv6(ip, Some(upper.proto), Upper::Other),
            Ok(upper) => {
                let fields = Upper::over_ipv6(upper.proto, upper.payload);
                Self::Ipv6(ip, Some(upper.proto), fields)
            }
            Err(_) => Self::Ipv6(ip, None, Upper::Other),
        }
    }
}

impl Upper {
    #[inline(always)]
    fn over_ipv4(ip: &Ipv4View) -> Self {
        match ip.proto() {
            _ if ip.fragment_offset() != 0 => Self::Other,
            ip_proto::ICMPV4 => Icmpv4View::new(ip.payload()).map_or(Self::Other, |icmp| {
                Self::Icmp(OxmField::Icmpv4Type, icmp.icmp_type(), icmp.icmp_code())
            }),
            proto => Self::ports(proto, ip.payload()),
        }
    }

    #[inline(always)]
    fn over_ipv6(proto: u8, bytes: &[u8]) -> Self {
        match proto {
            ip_proto::ICMPV6 => Icmpv6View::new(bytes).map_or(Self::Other, |icmp| {
                Self::Icmp(OxmField::Icmpv6Type, icmp.icmp_type(), icmp.icmp_code())
            }),
            proto => Self::ports(proto, bytes),
        }
    }

    #[inline(always)]
    fn ports(proto: u8, bytes: &[u8]) -> Self {
        match proto {
            ip_proto::TCP => TcpView::new(bytes).map_or(Self::Other, |tcp| {
                Self::Ports(OxmField::TcpSrc, tcp.src_port(), tcp.dst_port())
            }),
            ip_proto::UDP => UdpView::new(bytes).map_or(Self::Other, |udp| {
                Self::Ports(OxmField::UdpSrc, udp.src_port(), udp.dst_port())
            }),
            ip_proto::SCTP => SctpView::new(bytes).map_or(Self::Other, |sctp| {
                Self::Ports(OxmField::SctpSrc, sctp.src_port(), sctp.dst_port())
            }),
            _ => Self::Other,
        }
    }
}
