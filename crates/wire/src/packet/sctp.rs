//! SCTP (RFC 9260): the common header.

use super::PacketError;
use super::bytes::{array_at, split_header, u16_at, u32_at};
use super::checksum;

const LAYER: &str = "SCTP header";

mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const VERIFICATION_TAG: Range<usize> = 4..8;
    pub const CHECKSUM: Range<usize> = 8..12;
}

/// The size of the common header in bytes.
pub const HEADER_LEN: usize = 12;

/// A packet, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> SctpView<'a> {
    /// Reads the header at the start of `bytes`. The checksum is not checked: see
    /// [`is_checksum_valid`](Self::is_checksum_valid).
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header(LAYER, bytes)?;
        Ok(Self { header, payload })
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

    /// Returns the tag with which the receiver identifies the association.
    #[inline]
    pub fn verification_tag(&self) -> u32 {
        u32_at(self.header, field::VERIFICATION_TAG)
    }

    /// Returns the checksum as received: a CRC32c, sent least significant byte first.
    #[inline]
    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(array_at(self.header, field::CHECKSUM))
    }

    /// Returns everything after the header: the chunks.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns `true` if the checksum is valid, and `false` if the packet is truncated.
    pub fn is_checksum_valid(&self) -> bool {
        let before_checksum = &self.header[..field::CHECKSUM.start];
        self.checksum() == checksum::crc32c(&[before_checksum, &[0; 4], self.payload])
    }

    /// Returns the header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Sctp {
        Sctp {
            src_port: self.src_port(),
            dst_port: self.dst_port(),
            verification_tag: self.verification_tag(),
        }
    }
}

/// A header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sctp {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The tag with which the receiver identifies the association.
    pub verification_tag: u32,
}

impl Sctp {
    /// Appends the header, with its checksum, and the payload: the chunks.
    pub fn write(&self, out: &mut Vec<u8>, payload: &[u8]) {
        let start = out.len();
        out.extend_from_slice(&self.src_port.to_be_bytes());
        out.extend_from_slice(&self.dst_port.to_be_bytes());
        out.extend_from_slice(&self.verification_tag.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(payload);
        let checksum = checksum::crc32c(&[&out[start..]]);
        out[start..][field::CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 16] = [
        0xc0, 0x00, 0x0b, 0x59, // ports 49152 and 2905
        0x12, 0x34, 0x56, 0x78, // verification tag
        0x22, 0x30, 0x74, 0x2e, // checksum
        0x0b, 0x00, 0x00, 0x04, // COOKIE ACK chunk
    ];

    const HEADER: Sctp = Sctp {
        src_port: 49_152,
        dst_port: 2905,
        verification_tag: 0x1234_5678,
    };

    #[test]
    fn reads_golden_bytes() {
        let view = SctpView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(view.payload(), &GOLDEN[HEADER_LEN..]);
        assert!(view.is_checksum_valid());
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out, &GOLDEN[HEADER_LEN..]);
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn refuses_a_short_header() {
        let error = SctpView::new(&GOLDEN[..11]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 12,
                available: 11
            }
        );
    }

    #[test]
    fn a_cut_packet_has_an_invalid_checksum() {
        assert!(!SctpView::new(&GOLDEN[..15]).unwrap().is_checksum_valid());
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = SctpView::new(&bytes) {
                view.to_header();
                view.is_checksum_valid();
            }
        }

        #[test]
        fn written_headers_read_back(
            src_port: u16,
            dst_port: u16,
            verification_tag: u32,
            payload in testing::bytes(64),
        ) {
            let header = Sctp { src_port, dst_port, verification_tag };
            let mut out = vec![0xee];
            header.write(&mut out, &payload);
            let view = SctpView::new(&out[1..]).unwrap();
            prop_assert!(view.is_checksum_valid());
            prop_assert_eq!(view.to_header(), header);
            prop_assert_eq!(view.payload(), payload);
        }
    }
}
