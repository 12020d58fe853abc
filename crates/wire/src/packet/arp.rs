//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use super::PacketError;
use super::bytes::{ipv4_at, mac_at, split_header, u16_at};
use super::ether_type;
use crate::MacAddr;

const LAYER: &str = "ARP packet";

mod field {
    use std::ops::Range;

    pub const HARDWARE_TYPE: Range<usize> = 0..2;
    pub const PROTOCOL_TYPE: Range<usize> = 2..4;
    pub const HARDWARE_LEN: usize = 4;
    pub const PROTOCOL_LEN: usize = 5;
    pub const OP: Range<usize> = 6..8;
    pub const SHA: Range<usize> = 8..14;
    pub const SPA: Range<usize> = 14..18;
    pub const THA: Range<usize> = 18..24;
    pub const TPA: Range<usize> = 24..28;
}

/// The size of a packet for IPv4 over Ethernet, in bytes.
pub const HEADER_LEN: usize = 28;

/// Operation: a request for the owner of an address.
pub const REQUEST: u16 = 1;

/// Operation: the reply with the owner of an address.
pub const REPLY: u16 = 2;

const HARDWARE_ETHERNET: u16 = 1;
const HARDWARE_LEN: u8 = 6;
const PROTOCOL_LEN: u8 = 4;

/// A packet, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> ArpView<'a> {
    /// Reads the packet at the start of `bytes`.
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present, or the addresses are not those of IPv4 over Ethernet.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header::<HEADER_LEN>(LAYER, bytes)?;
        let check = |field, found: u16, expected: u16| {
            PacketError::check_value(LAYER, field, found, expected)
        };
        check(
            "hardware type",
            u16_at(header, field::HARDWARE_TYPE),
            HARDWARE_ETHERNET,
        )?;
        check(
            "protocol type",
            u16_at(header, field::PROTOCOL_TYPE),
            ether_type::IPV4,
        )?;
        check(
            "hardware address length",
            header[field::HARDWARE_LEN].into(),
            HARDWARE_LEN.into(),
        )?;
        check(
            "protocol address length",
            header[field::PROTOCOL_LEN].into(),
            PROTOCOL_LEN.into(),
        )?;
        Ok(Self { header, payload })
    }

    /// Returns the operation: [`REQUEST`], [`REPLY`] or one of the rare others.
    #[inline]
    pub fn op(&self) -> u16 {
        u16_at(self.header, field::OP)
    }

    /// Returns the sender's MAC address.
    #[inline]
    pub fn sha(&self) -> MacAddr {
        mac_at(self.header, field::SHA)
    }

    /// Returns the sender's IPv4 address.
    #[inline]
    pub fn spa(&self) -> Ipv4Addr {
        ipv4_at(self.header, field::SPA)
    }

    /// Returns the target's MAC address, which is unknown in a request.
    #[inline]
    pub fn tha(&self) -> MacAddr {
        mac_at(self.header, field::THA)
    }

    /// Returns the target's IPv4 address.
    #[inline]
    pub fn tpa(&self) -> Ipv4Addr {
        ipv4_at(self.header, field::TPA)
    }

    /// Returns the bytes after the packet: Ethernet padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the packet as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Arp {
        Arp {
            op: self.op(),
            sha: self.sha(),
            spa: self.spa(),
            tha: self.tha(),
            tpa: self.tpa(),
        }
    }
}

/// A packet to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arp {
    /// The operation.
    pub op: u16,
    /// The sender's MAC address.
    pub sha: MacAddr,
    /// The sender's IPv4 address.
    pub spa: Ipv4Addr,
    /// The target's MAC address.
    pub tha: MacAddr,
    /// The target's IPv4 address.
    pub tpa: Ipv4Addr,
}

impl Arp {
    /// Creates a request of `sha`, at `spa`, for the owner of `tpa`.
    pub fn request(sha: MacAddr, spa: Ipv4Addr, tpa: Ipv4Addr) -> Self {
        Self {
            op: REQUEST,
            sha,
            spa,
            tha: MacAddr::ZERO,
            tpa,
        }
    }

    /// Creates the reply that `sha` has the requested address.
    pub fn reply(&self, sha: MacAddr) -> Self {
        Self {
            op: REPLY,
            sha,
            spa: self.tpa,
            tha: self.sha,
            tpa: self.spa,
        }
    }

    /// Appends the packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&HARDWARE_ETHERNET.to_be_bytes());
        out.extend_from_slice(&ether_type::IPV4.to_be_bytes());
        out.extend_from_slice(&[HARDWARE_LEN, PROTOCOL_LEN]);
        out.extend_from_slice(&self.op.to_be_bytes());
        out.extend_from_slice(&self.sha.octets());
        out.extend_from_slice(&self.spa.octets());
        out.extend_from_slice(&self.tha.octets());
        out.extend_from_slice(&self.tpa.octets());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 28] = [
        0x00, 0x01, 0x08, 0x00, 0x06, 0x04, // IPv4 over Ethernet
        0x00, 0x02, // reply
        0x02, 0x00, 0x00, 0x00, 0x00, 0x02, // sha
        0x0a, 0x00, 0x00, 0x02, // spa
        0x02, 0x00, 0x00, 0x00, 0x00, 0x01, // tha
        0x0a, 0x00, 0x00, 0x01, // tpa
    ];

    const ASKER: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);
    const ANSWERER: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 2]);

    const HEADER: Arp = Arp {
        op: REPLY,
        sha: ANSWERER,
        spa: Ipv4Addr::new(10, 0, 0, 2),
        tha: ASKER,
        tpa: Ipv4Addr::new(10, 0, 0, 1),
    };

    #[test]
    fn reads_golden_bytes() {
        let view = ArpView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert!(view.payload().is_empty());
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out);
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn a_request_has_its_reply() {
        let request = Arp::request(ASKER, HEADER.tpa, HEADER.spa);
        assert_eq!((request.op, request.tha), (REQUEST, MacAddr::ZERO));
        assert_eq!(request.reply(ANSWERER), HEADER);
    }

    #[test]
    fn refuses_other_than_ipv4_over_ethernet() {
        let mut token_ring = GOLDEN;
        token_ring[1] = 6;
        let error = ArpView::new(&token_ring).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ARP packet has hardware type 0x6, but 0x1 was expected"
        );
        let error = ArpView::new(&GOLDEN[..27]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 28,
                available: 27
            }
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = ArpView::new(&bytes) {
                view.to_header();
            }
        }

        #[test]
        fn written_headers_read_back(
            op: u16,
            sha in testing::mac(),
            spa: Ipv4Addr,
            tha in testing::mac(),
            tpa: Ipv4Addr,
        ) {
            let header = Arp { op, sha, spa, tha, tpa };
            let mut out = Vec::new();
            header.write(&mut out);
            prop_assert_eq!(ArpView::new(&out).unwrap().to_header(), header);
        }
    }
}
