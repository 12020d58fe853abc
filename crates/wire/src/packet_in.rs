//! Packet-ins, which carry packets to the controller.

mod decoding;

use crate::codec::wire_enum;
use crate::{BufferId, MacAddr, Match, OxmField, PortNo};

wire_enum! {
    /// The reason for a packet-in (`ofp_packet_in_reason`).
    PacketInReason: u8 {
        /// No entry matched (in 1.3, only the table-miss entry).
        NoMatch = 0,
        /// An entry sent it.
        Action = 1,
        /// The TTL is invalid. 1.3 only.
        InvalidTtl = 2,
    }
}

/// A packet-in (1.3.5 section 7.4.1, 1.0 section 5.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn<'a> {
    /// The switch's buffer with the packet, if any.
    pub buffer_id: BufferId,
    /// The length of the whole packet in bytes; `data` may be shorter.
    pub total_len: u16,
    /// The reason.
    pub reason: PacketInReason,
    /// The table of the entry that sent it; 0 in 1.0.
    pub table_id: u8,
    /// The cookie of the entry that sent it; all ones in 1.0, or without an entry.
    pub cookie: u64,
    /// The input port; [`PortNo::ANY`] if a 1.3 switch omitted it.
    pub in_port: PortNo,
    /// The packet's pipeline fields. In 1.0, this is only `in_port`.
    pub match_: Match<'a>,
    /// The packet's bytes that were sent, starting with the Ethernet header.
    pub data: &'a [u8],
}

impl<'a> PacketIn<'a> {
    /// Returns the port that received the packet.
    #[inline]
    pub fn in_port(&self) -> PortNo {
        self.in_port
    }

    /// Returns the Ethernet destination; all zeros if less than an Ethernet header was sent.
    #[inline]
    pub fn eth_dst(&self) -> MacAddr {
        self.mac_at(0)
    }

    /// Returns the Ethernet source; all zeros if less than an Ethernet header was sent.
    #[inline]
    pub fn eth_src(&self) -> MacAddr {
        self.mac_at(6)
    }

    /// Returns the type field of the Ethernet header, or of the VLAN tag, if there is one; 0 if it was not sent.
    #[inline]
    pub fn eth_type(&self) -> u16 {
        self.data
            .get(12..14)
            .map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Returns the key of the packet's tunnel, if the switch reports it (1.3).
    pub fn tunnel_id(&self) -> Option<u64> {
        self.match_
            .get(OxmField::TunnelId)
            .map(|(value, _)| value as u64)
    }

    /// Reads an address as the first six of eight bytes, in one load, which is the fastest way.
    #[inline]
    fn mac_at(&self, at: usize) -> MacAddr {
        let header = self.data.first_chunk::<14>();
        let bytes = header.and_then(|header| header[at..].first_chunk::<8>());
        bytes.map_or(MacAddr::ZERO, |&bytes| {
            MacAddr::from_u64(u64::from_be_bytes(bytes) >> 16)
        })
    }
}

impl<'a> Match<'a> {
    /// Creates a match on packets with this packet's port and header fields (McNettle Figure 4, `exactMatch`).
    #[inline]
    pub fn exact(packet: &PacketIn<'a>) -> Self {
        Self::exact_frame(packet.in_port, packet.data)
    }
}
