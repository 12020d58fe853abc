//! Checksums: the internet checksum (RFC 1071) with its pseudo headers, its incremental update (RFC 1624), and the CRC32c of
//! SCTP (RFC 9260, appendix A).

use std::net::{Ipv4Addr, Ipv6Addr};

/// A running internet checksum.
///
/// Every piece except the last must have an even length, as headers have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    /// The sum of 16-bit words, without folding carries: 64 bits cannot overflow before 2^48 words.
    sum: u64,
}

impl Checksum {
    /// Creates the checksum of an empty sequence.
    #[inline]
    pub const fn new() -> Self {
        Self { sum: 0 }
    }

    /// Adds bytes. An odd last byte counts as if a zero followed.
    #[inline]
    #[must_use]
    pub fn add_bytes(mut self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(2);
        for word in &mut words {
            self.sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            self.sum += u64::from(u16::from_be_bytes([*last, 0]));
        }
        self
    }

    /// Adds one 16-bit word.
    #[inline]
    #[must_use]
    pub const fn add_u16(mut self, word: u16) -> Self {
        self.sum += word as u64;
        self
    }

    /// Returns the checksum: the ones' complement of the ones' complement sum.
    #[inline]
    pub const fn finish(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

/// Returns the checksum of `bytes`. It is 0 if `bytes` contain their own, correct checksum.
#[inline]
pub fn internet(bytes: &[u8]) -> u16 {
    Checksum::new().add_bytes(bytes).finish()
}

/// Returns the checksum of a header in which `old` became `new`, without reading the rest of the header (RFC 1624,
/// equation 3).
///
/// Both must have the same length and start at an even offset of the header.
#[inline]
pub fn update(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    debug_assert_eq!(old.len(), new.len(), "a field keeps its length");
    // HC' = ~(~HC + ~m + m'), where the complements of all old words are added word by word.
    let mut sum = Checksum::new().add_u16(!checksum).add_bytes(new);
    for word in old.chunks(2) {
        let word = u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]);
        sum = sum.add_u16(!word);
    }
    sum.finish()
}

/// The addresses that the checksums of TCP, UDP and ICMPv6 cover in addition to their own bytes (RFC 9293 section 3.1,
/// RFC 8200 section 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PseudoHeader {
    /// Carried in IPv4.
    V4 {
        /// The sender.
        src: Ipv4Addr,
        /// The receiver.
        dst: Ipv4Addr,
    },
    /// Carried in IPv6.
    V6 {
        /// The sender.
        src: Ipv6Addr,
        /// The receiver; with a routing header, the final destination.
        dst: Ipv6Addr,
    },
}

impl PseudoHeader {
    /// Returns the checksum of the pseudo header and of `pieces`, which make up the whole upper-layer packet with protocol
    /// `proto`. Every piece except the last must have an even length.
    ///
    /// It is 0 if the pieces contain their own, correct checksum.
    #[inline]
    pub fn checksum(&self, proto: u8, pieces: &[&[u8]]) -> u16 {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let start = self
            .addresses()
            .add_bytes(&(len as u32).to_be_bytes())
            .add_u16(u16::from(proto));
        pieces
            .iter()
            .fold(start, |sum, piece| sum.add_bytes(piece))
            .finish()
    }

    #[inline]
    fn addresses(&self) -> Checksum {
        match self {
            Self::V4 { src, dst } => Checksum::new()
                .add_bytes(&src.octets())
                .add_bytes(&dst.octets()),
            Self::V6 { src, dst } => Checksum::new()
                .add_bytes(&src.octets())
                .add_bytes(&dst.octets()),
        }
    }
}

/// The Castagnoli polynomial, with reversed bits.
const CRC32C_POLYNOMIAL: u32 = 0x82f6_3b78;

const CRC32C_TABLE: [u32; 256] = crc32c_table();

const fn crc32c_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = crc32c_of_byte(byte as u32);
        byte += 1;
    }
    table
}

const fn crc32c_of_byte(byte: u32) -> u32 {
    let mut crc = byte;
    let mut bit = 0;
    while bit < 8 {
        crc = (crc >> 1) ^ (if crc & 1 != 0 { CRC32C_POLYNOMIAL } else { 0 });
        bit += 1;
    }
    crc
}

/// Returns the CRC32c of the concatenated `pieces`.
pub fn crc32c(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().copied().flatten();
    !bytes.fold(u32::MAX, |crc, byte| {
        CRC32C_TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    /// The example of RFC 1071, section 3.
    const GOLDEN: [u8; 8] = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];

    #[test]
    fn sums_golden_bytes() {
        assert_eq!(internet(&GOLDEN), !0xddf2);
        assert_eq!(internet(&[0x12]), !0x1200);
        assert_eq!(internet(&[]), 0xffff);
    }

    #[test]
    fn updates_as_in_rfc_1624() {
        // Section 4: checksum 0xdd2f, a word goes from 0x5555 to 0x3285.
        assert_eq!(update(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
    }

    #[test]
    fn crc32c_of_the_check_string() {
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xe306_9283);
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
    }

    #[test]
    fn pseudo_headers_cover_addresses_protocol_and_length() {
        let v4 = PseudoHeader::V4 {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
        };
        // 0a00 + 0001 + 0a00 + 0002 + length 0003 + protocol 0011 + data 0102 0300 = 1819
        assert_eq!(v4.checksum(17, &[&[1, 2, 3]]), !0x1819);
        let v6 = PseudoHeader::V6 {
            src: Ipv6Addr::LOCALHOST,
            dst: Ipv6Addr::LOCALHOST,
        };
        assert_eq!(
            v6.checksum(58, &[&[1, 2], &[3]]),
            !(1 + 1 + 3 + 58 + 0x0102 + 0x0300)
        );
    }

    proptest! {
        #[test]
        fn data_with_its_checksum_sums_to_zero(mut bytes in testing::bytes(300)) {
            bytes.splice(0..0, [0, 0]);
            let checksum = internet(&bytes);
            bytes[..2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert_eq!(internet(&bytes), 0);
        }

        #[test]
        fn pieces_sum_as_the_whole(
            head in testing::aligned_bytes(2, 40),
            tail in testing::bytes(80),
        ) {
            let whole = [head.clone(), tail.clone()].concat();
            let in_pieces = Checksum::new().add_bytes(&head).add_bytes(&tail);
            prop_assert_eq!(in_pieces.finish(), internet(&whole));
        }

        #[test]
        fn an_update_agrees_with_a_new_sum(bytes: [u8; 20], new: [u8; 4], pair in 0usize..8) {
            // The last word stays nonzero, since only a sum of all zeros has two complements.
            let mut bytes = bytes;
            bytes[18] |= 1;
            let old = internet(&bytes);
            let place = pair * 2..pair * 2 + 4;
            let updated = update(old, &bytes[place.clone()], &new);
            bytes[place].copy_from_slice(&new);
            prop_assert_eq!(updated, internet(&bytes));
        }
    }
}
