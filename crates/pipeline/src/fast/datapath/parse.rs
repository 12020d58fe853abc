//! A parser that finds the headers of a frame, as deeply as the installed pipeline requires (ESWITCH section 3.1: parser
//! templates).
//!
//! It only parses frames with up to two VLAN tags, and with a complete header of IP or ARP. A transport header that is
//! truncated, or in an earlier fragment, counts as missing. All other frames are left to the plain form from the first table
//! on, which only affects speed. The reference model for parsed frames is [`crate::layout`].

use super::frame::Frame;
use super::kinds::{Depth, Kinds};
use super::way::SentList;
use crate::layout::exthdr::ExtensionHeaders;
use urtica_wire::VLAN_PRESENT;
use urtica_wire::packet::{
    ArpView, Ipv6View, VlanTags, ether_type, ethernet, icmpv4, icmpv6, ip_proto, ipv4, ipv6, sctp,
    tcp, udp,
};

/// The protocol numbers of IPv6 extension headers, including those that end a chain.
const EXTENSIONS: [u8; 8] = [0, 43, 44, 50, 51, 59, 60, 135];

/// Parses a frame to the given depth. Returns `false` if it must be left to the plain form.
#[inline]
pub(crate) fn parse(frame: &mut Frame, depth: Depth) -> bool {
    frame.metadata = 0;
    frame.sent = SentList::default();
    if depth == Depth::Ethernet {
        frame.kinds = Kinds::empty();
        return true;
    }
    // SAFETY: `data` and `len` describe the frame's part of its buffer, which is not shared.
    let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len as usize) };
    let Some(ethernet) = Ethernet::find(bytes) else {
        return false;
    };
    frame.set_tag(ethernet.vlan_vid, ethernet.vlan_pcp);
    frame.network = frame.data.with_addr(ethernet.payload.as_ptr().addr());
    let mut kinds = ethernet.kinds();
    if depth > Depth::Type {
        let Some(network) = Network::find(ethernet.payload, ethernet.eth_type, &mut frame.ip_proto)
        else {
            return false;
        };
        kinds |= network.kind;
        if depth > Depth::Network {
            kinds |= network.transport();
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

/// The header that the Ethernet type announces, if it can be parsed.
struct Network {
    /// The kind of header; empty for another type.
    kind: Kinds,
    /// The protocol of its payload.
    proto: u8,
    /// The total length of the header, including extension headers, and of its payload; 0 for a later fragment, which has no
    /// transport header.
    len: usize,
    payload_len: usize,
}

impl Network {
    #[inline]
    fn find(bytes: &[u8], eth_type: u16, ipv6_proto: &mut u64) -> Option<Self> {
        match eth_type {
            ether_type::IPV4 => Self::ipv4(bytes),
            ether_type::IPV6 => Self::ipv6(bytes).inspect(|ip| *ipv6_proto = ip.proto.into()),
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
        let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        let is_plain = header[0] >> 4 == 4
            && len >= ipv4::HEADER_LEN
            && (len..=bytes.len()).contains(&total_len);
        let payload_len = match fragment_offset {
            0 => total_len.wrapping_sub(len),
            _ => 0,
        };
        is_plain.then(|| Self {
            kind: Kinds::IPV4,
            proto: header[9],
            len,
            payload_len,
        })
    }

    fn ipv6(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<{ ipv6::HEADER_LEN }>()?;
        let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let is_whole = header[0] >> 4 == 6 && payload_len <= bytes.len() - ipv6::HEADER_LEN;
        if is_whole && EXTENSIONS.contains(&header[6]) {
            return Self::behind_extensions(bytes);
        }
        is_whole.then_some(Self {
            kind: Kinds::IPV6,
            proto: header[6],
            len: ipv6::HEADER_LEN,
            payload_len,
        })
    }

    /// Parses IPv6 with extension headers. Returns `None` if the end of the chain cannot be found.
    #[cold]
    fn behind_extensions(bytes: &[u8]) -> Option<Self> {
        let ip = Ipv6View::new(bytes).ok()?;
        let upper = ExtensionHeaders::read(&ip).upper?;
        Some(Self {
            kind: Kinds::IPV6,
            proto: upper.proto,
            len: ipv6::HEADER_LEN + ip.payload().len() - upper.len,
            payload_len: match upper.fragment_offset {
                0 => upper.len,
                _ => 0,
            },
        })
    }

    /// Returns the transport header of an IP payload; empty if it is missing or cannot be parsed.
    #[inline]
    fn transport(&self) -> Kinds {
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
        match self.payload_len >= header_len {
            true => kind,
            false => Kinds::empty(),
        }
    }
}
