//! ICMP for IPv4 (RFC 792).

use super::PacketError;
use super::bytes::{array_at, patch_u16, split_header, u16_at};
use super::checksum::{self, Checksum};

const LAYER: &str = "ICMPv4 header";

mod field {
    use std::ops::Range;

    pub const TYPE: usize = 0;
    pub const CODE: usize = 1;
    pub const CHECKSUM: Range<usize> = 2..4;
    pub const REST: Range<usize> = 4..8;
}

/// The size of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// Type: a reply to an echo request.
pub const ECHO_REPLY: u8 = 0;

/// Type: the packet in the payload could not be delivered.
pub const DESTINATION_UNREACHABLE: u8 = 3;

/// Type: a request to send this message back.
pub const ECHO_REQUEST: u8 = 8;

/// Type: the packet in the payload has passed too many routers.
pub const TIME_EXCEEDED: u8 = 11;

/// A message, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmpv4View<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Icmpv4View<'a> {
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

    /// Returns the type of message.
    #[inline]
    pub fn icmp_type(&self) -> u8 {
        self.header[field::TYPE]
    }

    /// Returns the variant of the type.
    #[inline]
    pub fn icmp_code(&self) -> u8 {
        self.header[field::CODE]
    }

    /// Returns the checksum as received.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.header, field::CHECKSUM)
    }

    /// Returns the rest of the header. Its meaning depends on the type; in an echo, it is the identifier and the sequence number.
    #[inline]
    pub fn rest(&self) -> [u8; 4] {
        array_at(self.header, field::REST)
    }

    /// Returns everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns `true` if the checksum is valid, and `false` if the message is truncated.
    #[inline]
    pub fn is_checksum_valid(&self) -> bool {
        Checksum::new()
            .add_bytes(self.header)
            .add_bytes(self.payload)
            .finish()
            == 0
    }

    /// Returns the header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Icmpv4 {
        Icmpv4 {
            icmp_type: self.icmp_type(),
            icmp_code: self.icmp_code(),
            rest: self.rest(),
        }
    }
}

/// A header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Icmpv4 {
    /// The type of message.
    pub icmp_type: u8,
    /// The variant of the type.
    pub icmp_code: u8,
    /// The rest of the header. Its meaning depends on the type.
    pub rest: [u8; 4],
}

impl Icmpv4 {
    /// Appends the header, with its checksum, and the payload.
    pub fn write(&self, out: &mut Vec<u8>, payload: &[u8]) {
        let start = out.len();
        out.extend_from_slice(&[self.icmp_type, self.icmp_code, 0, 0]);
        out.extend_from_slice(&self.rest);
        out.extend_from_slice(payload);
        let checksum = checksum::internet(&out[start..]);
        patch_u16(out, start, field::CHECKSUM, checksum);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 13] = [
        0x08, 0x00, 0xa1, 0xf8, // echo request, checksum
        0x12, 0x34, 0x00, 0x01, // identifier, sequence number
        b'h', b'e', b'l', b'l', b'o', // payload
    ];

    const HEADER: Icmpv4 = Icmpv4 {
        icmp_type: ECHO_REQUEST,
        icmp_code: 0,
        rest: [0x12, 0x34, 0x00, 0x01],
    };

    #[test]
    fn reads_golden_bytes() {
        let view = Icmpv4View::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(view.payload(), b"hello");
        assert!(view.is_checksum_valid());
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out, b"hello");
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn refuses_a_short_header() {
        let error = Icmpv4View::new(&GOLDEN[..7]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 8,
                available: 7
            }
        );
    }

    #[test]
    fn a_cut_message_has_an_invalid_checksum() {
        assert!(!Icmpv4View::new(&GOLDEN[..12]).unwrap().is_checksum_valid());
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = Icmpv4View::new(&bytes) {
                view.to_header();
                view.is_checksum_valid();
            }
        }

        #[test]
        fn written_headers_read_back(
            icmp_type: u8,
            icmp_code: u8,
            rest: [u8; 4],
            payload in testing::bytes(64),
        ) {
            let header = Icmpv4 { icmp_type, icmp_code, rest };
            let mut out = vec![0xee];
            header.write(&mut out, &payload);
            let view = Icmpv4View::new(&out[1..]).unwrap();
            prop_assert!(view.is_checksum_valid());
            prop_assert_eq!(view.to_header(), header);
            prop_assert_eq!(view.payload(), payload);
        }
    }
}
