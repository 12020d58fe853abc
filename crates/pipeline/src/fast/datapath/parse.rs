//! Finds the headers of a frame, as deep as the installed pipeline requires (ESWITCH section 3.1: parser templates).
//!
//! Only simple frames are parsed: up to two VLAN tags, then IP without fragments and IPv6 extension headers, or ARP, then a
//! transport header, each complete. Every other frame is left to the plain form from the first table on; this only affects
//! speed, and [`crate::layout`] is the reference for the parsed ones.

use super::frame::Frame;
use super::kinds::{Depth, Kinds};
use super::way::SentList;
use urtica_wire::VLAN_PRESENT;
use urtica_wire::packet::{
    ArpView, VlanTags, ether_type, ethernet, icmpv4, icmpv6, ip_proto, ipv4, ipv6, sctp, tcp, udp,
};

/// The protocols of IPv6 extension headers, and what ends a chain of them.
const EXTENSIONS: [u8; 8] = [0, 43, 44, 50, 51, 59, 60, 135];

/// Parses to the given depth. Returns `false` if the frame is not simple.
#[inline]
pub(crate) fn parse(frame: &mut Frame, depth: Depth) -> bool {
    frame.metadata = 0;
    frame.sent = SentList::default();
    if depth == Depth::Ethernet {
        frame.kinds = Kinds::empty();
        return true;
    }
    // SAFETY: `data` and `len` are the frame's part of its buffer, which is not shared.
    let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len as usize) };
    let Some(ethernet) = Ethernet::find(bytes) else {
        return false;
    };
    frame.set_tag(ethernet.vlan_vid, ethernet.vlan_pcp);
    frame.network = frame.data.with_addr(ethernet.payload.as_ptr().addr());
    let mut kinds = ethernet.kinds();
    if depth > Depth::Type {
        let Some(network) = Network::find(ethernet.payload, ethernet.eth_type) else {
            return false;
        };
        kinds |= network.kind;
        if depth > Depth::Network {
            let Some(kind) = network.transport() else {
                return false;
            };
            kinds |= kind;
            frame.transport = frame.network.wrapping_add(network.len);
        }
    }
    frame.kinds = kinds;
    true
}

/// Addresses, tags and type.
struct Ethernet<'a> {
    vlan_vid: u16,
    vlan_pcp: u16,
    eth_type: u16,
    /// The bytes after them.
    payload: &'a [u8],
}

impl<'a> Ethernet<'a> {
    #[inline]
    fn find(bytes: &'a [u8]) -> Option<Self> {
        let (header, payload) = bytes.split_first_chunk::<{ ethernet::HEADER_LEN }>()?;
        let mut tags = VlanTags::new(u16::from_be_bytes([header[12], header[13]]), payload);
        let (mut vlan_vid, mut vlan_pcp) = (0, 0);
        if let Some((_, outermost)) = tags.next() {
            vlan_vid = VLAN_PRESENT | outermost.vid();
            vlan_pcp = outermost.pcp().into();
            let has_third = tags.next().is_some() && tags.next().is_some();
            if has_third {
                return None;
            }
        }
        let is_type = tags.type_or_length() >= ethernet::MIN_ETHER_TYPE && !tags.is_cut_off();
        is_type.then(|| Self {
            vlan_vid,
            vlan_pcp,
            eth_type: tags.type_or_length(),
            payload: tags.rest(),
        })
    }

    fn kinds(&self) -> Kinds {
        match self.vlan_vid {
            0 => Kinds::empty(),
            _ => Kinds::VLAN,
        }
    }
}

/// The header that the Ethernet type announces, if it is parsed.
struct Network {
    /// No bit for another type.
    kind: Kinds,
    /// The protocol of its payload.
    proto: u8,
    /// The length of the header, and of its payload.
    len: usize,
    payload_len: usize,
}

impl Network {
    #[inline]
    fn find(bytes: &[u8], eth_type: u16) -> Option<Self> {
        match eth_type {
            ether_type::IPV4 => Self::ipv4(bytes),
            ether_type::IPV6 => Self::ipv6(bytes),
            ether_type::ARP => ArpView::new(bytes)
                .is_ok()
                .then_some(Self::other(Kinds::ARP)),
            _ => Some(Self::other(Kinds::empty())),
        }
    }

    fn other(kind: Kinds) -> Self {
        Self {
            kind,
            proto: 0,
            len: 0,
            payload_len: 0,
        }
    }

    #[inline]
    fn ipv4(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<{ ipv4::HEADER_LEN }>()?;
        let len = usize::from(header[0] & 0xf) * 4;
        let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let is_plain = header[0] >> 4 == 4
            && len >= ipv4::HEADER_LEN
            && (len..=bytes.len()).contains(&total_len)
            && fragment == 0;
        is_plain.then(|| Self {
            kind: Kinds::IPV4,
            proto: header[9],
            len,
            payload_len: total_len - len,
        })
    }

    fn ipv6(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<{ ipv6::HEADER_LEN }>()?;
        let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let is_plain = header[0] >> 4 == 6
            && payload_len <= bytes.len() - ipv6::HEADER_LEN
            && !EXTENSIONS.contains(&header[6]);
        is_plain.then_some(Self {
            kind: Kinds::IPV6,
            proto: header[6],
            len: ipv6::HEADER_LEN,
            payload_len,
        })
    }

    /// Returns the transport header of an IP payload, no bit if it is not parsed; `None` if it is truncated.
    #[inline]
    fn transport(&self) -> Option<Kinds> {
        let is_v4 = self.kind == Kinds::IPV4;
        let is_ip = is_v4 || self.kind == Kinds::IPV6;
        let (kind, header_len) = match self.proto {
            _ if !is_ip => (Kinds::empty(), 0),
            ip_proto::TCP => (Kinds::TCP, tcp::HEADER_LEN),
            ip_proto::UDP => (Kinds::UDP, udp::HEADER_LEN),
            ip_proto::SCTP => (Kinds::SCTP, sctp::HEADER_LEN),
            ip_proto::ICMPV4 if is_v4 => (Kinds::ICMPV4, icmpv4::HEADER_LEN),
            ip_proto::ICMPV6 if !is_v4 => (Kinds::ICMPV6, icmpv6::HEADER_LEN),
            _ => (Kinds::empty(), 0),
        };
        (self.payload_len >= header_len).then_some(kind)
    }
}
