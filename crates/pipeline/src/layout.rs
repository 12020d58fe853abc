//! Offsets of a frame's headers.
//!
//! # What
//! [`Layout::of`] parses a frame once and keeps offsets, so that reading or setting a field accesses known bytes. Only
//! headers that OpenFlow can match are parsed (1.3.5 section 7.2.3.7): the Ethernet type is the one after all VLAN tags;
//! nothing after an MPLS or PBB header is parsed; later fragments have no transport header.
//!
//! # How
//! A truncated or inconsistent header counts as missing, and so does everything after it. A transport header needs only its
//! fixed part: checking its lengths and options is the receiver's task.
//!
//! # Cost
//! Every step advances by at least four bytes, so the time to parse a frame is bounded by its length.

pub(crate) mod exthdr;

use exthdr::ExtensionHeaders;
use urtica_wire::packet::{
    ArpView, Icmpv6View, Ipv4View, Ipv6View, VlanTags, ether_type, ethernet, icmpv4, icmpv6,
    ip_proto, ipv6, mpls, pbb, sctp, tcp, udp,
};

/// Offsets of the headers of one frame, from its start. Every header listed is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether there is an Ethernet header.
    pub has_ethernet: bool,
    /// The outermost VLAN tag, after its EtherType.
    pub vlan: Option<usize>,
    /// The Ethernet type after all VLAN tags; [`ether_type::NONE`] in an 802.3 frame without one.
    pub eth_type: Option<u16>,
    /// The offset of that type, if there is one.
    pub ether_type_at: Option<usize>,
    /// The header that the type announces.
    pub network: Network,
}

/// The header that the Ethernet type announces, with its offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Network {
    /// Another protocol, which OpenFlow does not match.
    #[default]
    Other,
    /// ARP for IPv4 over Ethernet.
    Arp(usize),
    /// The outermost MPLS header.
    Mpls(usize),
    /// The PBB I-TAG, after its EtherType.
    Pbb(usize),
    /// IPv4 or IPv6.
    Ip(Ip),
}

/// An IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip {
    /// Its offset.
    pub at: usize,
    /// The version.
    pub version: IpVersion,
    /// The upper layer; `None` if the extension headers cannot be parsed.
    pub upper: Option<Upper>,
}

/// The version of IP, with version-specific data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpVersion {
    V4,
    V6 {
        /// The extension headers present, as `OFPIEH_*`.
        exthdr: u16,
        /// Whether a routing header names further stops, so that the destination address in the header is not the final one.
        has_stops: bool,
    },
}

/// The upper layer of IP, after all extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upper {
    /// Its protocol.
    pub proto: u8,
    /// Offset of the protocol number.
    pub proto_at: usize,
    /// Its offset.
    pub at: usize,
    /// Its end, without Ethernet padding.
    pub end: usize,
    /// The part of a packet that the frame carries.
    pub part: Part,
    /// The transport header, if OpenFlow matches on it.
    pub transport: Option<Transport>,
}

/// Whether IP carries a whole packet or a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole packet.
    Whole,
    /// The first fragment, or a truncated capture: the header is present, the end is not.
    Beginning,
    /// A later fragment, which does not start with a header.
    Later,
}

/// The transport headers that OpenFlow matches. They start at the offset in [`Upper`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6(Option<NeighbourMessage>),
}

/// A neighbour solicitation or advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeighbourMessage {
    /// The offset of the target's IPv6 address.
    pub target: usize,
    /// The offset of the Ethernet address in a solicitation's source link-layer option.
    pub sll: Option<usize>,
    /// The offset of the Ethernet address in an advertisement's target link-layer option.
    pub tll: Option<usize>,
}

impl Layout {
    /// Finds the headers of a frame, which may consist of arbitrary bytes.
    pub fn of(frame: &[u8]) -> Self {
        let mut layout = Self {
            has_ethernet: frame.len() >= ethernet::HEADER_LEN,
            ..Self::default()
        };
        if layout.has_ethernet {
            layout.find_ether_type(frame);
        }
        layout
    }

    /// Returns the IP header, if present.
    pub fn ip(&self) -> Option<&Ip> {
        match &self.network {
            Network::Ip(ip) => Some(ip),
            _ => None,
        }
    }

    /// Returns the upper layer of IP, if it can be parsed.
    pub fn upper(&self) -> Option<&Upper> {
        self.ip()?.upper.as_ref()
    }

    fn find_ether_type(&mut self, frame: &[u8]) {
        let (header, payload) = frame.split_at(ethernet::HEADER_LEN);
        let type_or_length = u16_at(header, ethernet::HEADER_LEN - 2);
        let mut tags = VlanTags::new(type_or_length, payload);
        if tags.by_ref().count() > 0 {
            self.vlan = Some(ethernet::HEADER_LEN);
        }
        if !tags.is_cut_off() {
            self.resolve_ether_type(frame, tags.type_or_length(), tags.rest());
        }
    }

    /// Distinguishes EtherTypes from the lengths of 802.3 frames, where a SNAP header may follow with the type.
    fn resolve_ether_type(&mut self, frame: &[u8], type_or_length: u16, behind: &[u8]) {
        let (eth_type, payload) = ethernet::resolve_ether_type(type_or_length, behind);
        let at = frame.len() - payload.len();
        self.eth_type = Some(eth_type);
        if eth_type != ether_type::NONE {
            self.ether_type_at = Some(at - 2);
        }
        self.network = Network::find(frame, eth_type, at);
    }
}

impl Network {
    fn find(frame: &[u8], eth_type: u16, at: usize) -> Self {
        let bytes = &frame[at..];
        match eth_type {
            ether_type::ARP if ArpView::new(bytes).is_ok() => Self::Arp(at),
            ether_type::MPLS | ether_type::MPLS_MULTICAST if bytes.len() >= mpls::HEADER_LEN => {
                Self::Mpls(at)
            }
            ether_type::PBB if bytes.len() >= pbb::HEADER_LEN => Self::Pbb(at),
            ether_type::IPV4 => Ip::find_v4(frame, at).map_or(Self::Other, Self::Ip),
            ether_type::IPV6 => Ip::find_v6(frame, at).map_or(Self::Other, Self::Ip),
            _ => Self::Other,
        }
    }
}

impl Ip {
    fn find_v4(frame: &[u8], at: usize) -> Option<Self> {
        let ip = Ipv4View::new(&frame[at..]).ok()?;
        let upper_at = at + 20 + ip.options().len();
        let end = upper_at + ip.payload().len();
        let is_cut = end < at + usize::from(ip.total_len());
        let mut upper = Upper {
            proto: ip.proto(),
            proto_at: at + 9,
            at: upper_at,
            end,
            part: Part::of(ip.fragment_offset(), ip.more_fragments() || is_cut),
            transport: None,
        };
        upper.transport = upper.find_transport(frame, ip_proto::ICMPV4);
        Some(Self {
            at,
            version: IpVersion::V4,
            upper: Some(upper),
        })
    }

    fn find_v6(frame: &[u8], at: usize) -> Option<Self> {
        let ip = Ipv6View::new(&frame[at..]).ok()?;
        let end = at + ipv6::HEADER_LEN + ip.payload().len();
        let is_cut = ip.payload().len() < usize::from(ip.payload_len());
        let headers = ExtensionHeaders::read(&ip);
        let upper = headers.upper.map(|found| {
            let mut upper = Upper {
                proto: found.proto,
                proto_at: at + found.proto_at,
                at: end - found.len,
                end,
                part: Part::of(found.fragment_offset, found.more_fragments || is_cut),
                transport: None,
            };
            upper.transport = upper.find_transport(frame, ip_proto::ICMPV6);
            upper
        });
        Some(Self {
            at,
            version: IpVersion::V6 {
                exthdr: headers.exthdr,
                has_stops: headers.has_stops,
            },
            upper,
        })
    }
}

impl Part {
    fn of(fragment_offset: u16, more_follows: bool) -> Self {
        match (fragment_offset, more_follows) {
            (0, false) => Self::Whole,
            (0, true) => Self::Beginning,
            _ => Self::Later,
        }
    }
}

impl Upper {
    /// Finds the transport header. ICMP counts only if it belongs to this version of IP.
    fn find_transport(&self, frame: &[u8], icmp: u8) -> Option<Transport> {
        if self.part == Part::Later {
            return None;
        }
        let bytes = &frame[self.at..self.end];
        let (transport, header_len) = match self.proto {
            ip_proto::TCP => (Transport::Tcp, tcp::HEADER_LEN),
            ip_proto::UDP => (Transport::Udp, udp::HEADER_LEN),
            ip_proto::SCTP => (Transport::Sctp, sctp::HEADER_LEN),
            ip_proto::ICMPV4 if icmp == ip_proto::ICMPV4 => (Transport::Icmpv4, icmpv4::HEADER_LEN),
            ip_proto::ICMPV6 if icmp == ip_proto::ICMPV6 => {
                let message = NeighbourMessage::find(bytes, self.at);
                (Transport::Icmpv6(message), icmpv6::HEADER_LEN)
            }
            _ => return None,
        };
        (bytes.len() >= header_len).then_some(transport)
    }
}

impl NeighbourMessage {
    /// Finds the message in `bytes`, an ICMPv6 packet that starts at `at`.
    fn find(bytes: &[u8], at: usize) -> Option<Self> {
        let icmp = Icmpv6View::new(bytes).ok()?;
        icmp.nd().ok()??;
        let option = |owner, option_type| {
            let found = link_layer_option(bytes, option_type)?;
            (icmp.icmp_type() == owner).then_some(at + found)
        };
        Some(Self {
            target: at + 8,
            sll: option(icmpv6::NEIGHBOR_SOLICITATION, 1),
            tll: option(icmpv6::NEIGHBOR_ADVERTISEMENT, 2),
        })
    }
}

/// Returns the offset of the Ethernet address in the first link-layer address option of this type.
fn link_layer_option(message: &[u8], option_type: u8) -> Option<usize> {
    let mut at = icmpv6::HEADER_LEN + icmpv6::ND_LEN;
    while let Some(&[kind, units]) = message.get(at..at + 2) {
        if (kind, units) == (option_type, 1) {
            return Some(at + 2);
        }
        // `Icmpv6View::nd` refuses messages with an option of length 0.
        at += usize::from(units) * 8;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
