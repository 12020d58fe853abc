//! UDP (RFC 768).

use super::bytes::{at_most, patch_u16, split_header, u16_at};
use super::{PacketError, PseudoHeader, ip_proto};

const LAYER: &str = "UDP header";

mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const LEN: Range<usize> = 4..6;
    pub const CHECKSUM: Range<usize> = 6..8;
}

/// The size of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// A datagram, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Reads the header at the start of `bytes`. The checksum is not checked: see
    /// [`is_checksum_valid`](Self::is_checksum_valid).
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present, or the header's length is smaller.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, rest) = split_header::<HEADER_LEN>(LAYER, bytes)?;
        let len = usize::from(u16_at(header, field::LEN));
        PacketError::check_minimum(LAYER, "length", len, HEADER_LEN)?;
        Ok(Self {
            header,
            payload: at_most(rest, len - HEADER_LEN),
        })
    }

    /// Returns the sender's port.
    #[inline]
    pub fn src_port(&self) -> u16 {
        u16_at(self.header, field::SRC_PORT)
    }

    /// Returns the receiver's port.
    #[inline]
    pub fn dst_port(&self) -> u16 {
        u16_at(self.header, field::DST_PORT)
    }

    /// Returns the number of bytes in header and payload together, according to the header.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16_at(self.header, field::LEN)
    }

    /// Returns the checksum as received; 0 means that there is none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.header, field::CHECKSUM)
    }

    /// Returns the payload, which is shorter than the header's length if the packet is truncated.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns `true` if the checksum is valid, and `false` if the datagram is truncated. A datagram without a checksum is only
    /// valid in IPv4 (RFC 8200, section 8.1).
    #[inline]
    pub fn is_checksum_valid(&self, pseudo_header: &PseudoHeader) -> bool {
        if self.checksum() == 0 {
            return matches!(pseudo_header, PseudoHeader::V4 { .. });
        }
        pseudo_header.checksum(ip_proto::UDP, &[self.header, self.payload]) == 0
    }

    /// Returns the header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Udp {
        Udp {
            src_port: self.src_port(),
            dst_port: self.dst_port(),
        }
    }
}

/// A header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Udp {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
}

impl Udp {
    /// Appends the header, with length and checksum, and the payload.
    ///
    /// # Errors
    /// If the payload exceeds 65,527 bytes. Then nothing is written.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        pseudo_header: &PseudoHeader,
        payload: &[u8],
    ) -> Result<(), PacketError> {
        PacketError::check_limit(
            LAYER,
            "payload",
            payload.len(),
            usize::from(u16::MAX) - HEADER_LEN,
        )?;
        let len = (HEADER_LEN + payload.len()) as u16;
        let start = out.len();
        out.extend_from_slice(&self.src_port.to_be_bytes());
        out.extend_from_slice(&self.dst_port.to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(payload);
        let checksum = match pseudo_header.checksum(ip_proto::UDP, &[&out[start..]]) {
            // 0 would mean no checksum.
            0 => 0xffff,
            checksum => checksum,
        };
        patch_u16(out, start, field::CHECKSUM, checksum);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 13] = [
        0xc0, 0x00, 0x00, 0x35, // ports 49152 and 53
        0x00, 0x0d, 0xe7, 0xc9, // length, checksum
        b'h', b'e', b'l', b'l', b'o', // payload
    ];

    const HEADER: Udp = Udp {
        src_port: 49_152,
        dst_port: 53,
    };

    const ADDRESSES: PseudoHeader = PseudoHeader::V4 {
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 0, 2),
    };

    const ADDRESSES_V6: PseudoHeader = PseudoHeader::V6 {
        src: Ipv6Addr::LOCALHOST,
        dst: Ipv6Addr::LOCALHOST,
    };

    #[test]
    fn reads_golden_bytes() {
        let view = UdpView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(view.total_len(), 13);
        assert_eq!(view.payload(), b"hello");
        assert!(view.is_checksum_valid(&ADDRESSES));
        assert!(!view.is_checksum_valid(&ADDRESSES_V6));
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out, &ADDRESSES, b"hello").unwrap();
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn refuses_short_headers() {
        let error = UdpView::new(&GOLDEN[..7]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 8,
                available: 7
            }
        );
        let mut bytes = GOLDEN;
        bytes[5] = 7;
        let error = UdpView::new(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "UDP header gives its length as 7 bytes, but it must be at least 8"
        );
    }

    #[test]
    fn refuses_to_write_oversized_parts() {
        let mut out = Vec::new();
        let error = HEADER
            .write(&mut out, &ADDRESSES, &[0; 65_528])
            .unwrap_err();
        assert!(matches!(error, PacketError::TooLong { limit: 65_527, .. }));
        assert!(out.is_empty());
    }

    #[test]
    fn no_checksum_is_valid_in_ipv4_only() {
        let mut bytes = GOLDEN;
        bytes[field::CHECKSUM].fill(0);
        let view = UdpView::new(&bytes).unwrap();
        assert!(view.is_checksum_valid(&ADDRESSES));
        assert!(!view.is_checksum_valid(&ADDRESSES_V6));
    }

    #[test]
    fn a_checksum_of_zero_is_written_as_ones() {
        let mut out = Vec::new();
        let nobody = PseudoHeader::V4 {
            src: Ipv4Addr::UNSPECIFIED,
            dst: Ipv4Addr::UNSPECIFIED,
        };
        // 17 + 8 (pseudo header) + 8 (header) + 0xffde = 0xffff, whose complement is 0.
        Udp {
            src_port: 0xffde,
            dst_port: 0,
        }
        .write(&mut out, &nobody, &[])
        .unwrap();
        assert_eq!(out[field::CHECKSUM], [0xff, 0xff]);
        assert!(UdpView::new(&out).unwrap().is_checksum_valid(&nobody));
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = UdpView::new(&bytes) {
                view.to_header();
                view.is_checksum_valid(&ADDRESSES);
            }
        }

        #[test]
        fn written_headers_read_back(src_port: u16, dst_port: u16, payload in testing::bytes(64)) {
            let header = Udp { src_port, dst_port };
            for addresses in [ADDRESSES, ADDRESSES_V6] {
                let mut out = vec![0xee];
                header.write(&mut out, &addresses, &payload).unwrap();
                let view = UdpView::new(&out[1..]).unwrap();
                prop_assert!(view.is_checksum_valid(&addresses));
                prop_assert_eq!(view.to_header(), header);
                prop_assert_eq!(view.payload(), &payload[..]);
            }
        }
    }
}
