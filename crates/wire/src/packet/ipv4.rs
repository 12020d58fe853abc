//! IPv4 (RFC 791; DSCP of RFC 2474, ECN of RFC 3168).

use std::net::Ipv4Addr;

use super::bytes::{at_most, ipv4_at, pad_to_multiple, patch_u16, split_at, split_header, u16_at};
use super::checksum::{self, Checksum};
use super::{PacketError, PseudoHeader};

const LAYER: &str = "IPv4 header";

mod field {
    use std::ops::Range;

    pub const VERSION_IHL: usize = 0;
    pub const DSCP_ECN: usize = 1;
    pub const TOTAL_LEN: Range<usize> = 2..4;
    pub const IDENTIFICATION: Range<usize> = 4..6;
    pub const FLAGS_OFFSET: Range<usize> = 6..8;
    pub const TTL: usize = 8;
    pub const PROTO: usize = 9;
    pub const CHECKSUM: Range<usize> = 10..12;
    pub const SRC: Range<usize> = 12..16;
    pub const DST: Range<usize> = 16..20;
}

/// The size of the header in bytes, without options.
pub const HEADER_LEN: usize = 20;

/// The maximum size of the options in a header, in bytes.
pub const MAX_OPTIONS_LEN: usize = 40;

/// The largest fragment offset, in units of 8 bytes.
pub const MAX_FRAGMENT_OFFSET: u16 = 0x1fff;

const VERSION: u8 = 4;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// A header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4View<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Reads the header at the start of `bytes`. The header checksum is not checked: see
    /// [`is_checksum_valid`](Self::is_checksum_valid).
    ///
    /// # Errors
    /// If the header is truncated, has another version, or contains inconsistent lengths.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, _) = split_header::<HEADER_LEN>(LAYER, bytes)?;
        PacketError::check_value(LAYER, "version", header[field::VERSION_IHL] >> 4, VERSION)?;
        let header_len = usize::from(header[field::VERSION_IHL] & 0xf) * 4;
        PacketError::check_minimum(LAYER, "header length (IHL)", header_len, HEADER_LEN)?;
        let total_len = usize::from(u16_at(header, field::TOTAL_LEN));
        PacketError::check_minimum(LAYER, "total length", total_len, header_len)?;
        let (with_options, rest) = split_at(LAYER, bytes, header_len)?;
        let payload = at_most(rest, total_len - header_len);
        Ok(Self {
            header,
            options: &with_options[HEADER_LEN..],
            payload,
        })
    }

    /// Returns the differentiated services code point, 6 bits.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.header[field::DSCP_ECN] >> 2
    }

    /// Returns the congestion notification, 2 bits.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.header[field::DSCP_ECN] & 3
    }

    /// Returns the number of bytes in header and payload together, according to the header.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16_at(self.header, field::TOTAL_LEN)
    }

    /// Returns the identification shared by the fragments of a packet.
    #[inline]
    pub fn identification(&self) -> u16 {
        u16_at(self.header, field::IDENTIFICATION)
    }

    /// Returns `true` if routers must not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.flags_offset() & DONT_FRAGMENT != 0
    }

    /// Returns `true` if this is a fragment, but not the last.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.flags_offset() & MORE_FRAGMENTS != 0
    }

    /// Returns the fragment's offset, in units of 8 bytes. If it is not 0, the payload does not start with a header.
    #[inline]
    pub fn fragment_offset(&self) -> u16 {
        self.flags_offset() & MAX_FRAGMENT_OFFSET
    }

    #[inline]
    fn flags_offset(&self) -> u16 {
        u16_at(self.header, field::FLAGS_OFFSET)
    }

    /// Returns the time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.header[field::TTL]
    }

    /// Returns the protocol of the payload.
    #[inline]
    pub fn proto(&self) -> u8 {
        self.header[field::PROTO]
    }

    /// Returns the sender.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        ipv4_at(self.header, field::SRC)
    }

    /// Returns the receiver.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        ipv4_at(self.header, field::DST)
    }

    /// Returns the options, with their padding.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        self.options
    }

    /// Returns the payload without padding. It is shorter than the header's length if the packet is truncated.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns `true` if the header checksum is valid.
    #[inline]
    pub fn is_checksum_valid(&self) -> bool {
        Checksum::new()
            .add_bytes(self.header)
            .add_bytes(self.options)
            .finish()
            == 0
    }

    /// Returns the pseudo header for the payload's checksum.
    #[inline]
    pub fn pseudo_header(&self) -> PseudoHeader {
        PseudoHeader::V4 {
            src: self.src(),
            dst: self.dst(),
        }
    }

    /// Returns the header as a plain struct.
    pub fn to_header(&self) -> Ipv4 {
        Ipv4 {
            dscp: self.dscp(),
            ecn: self.ecn(),
            identification: self.identification(),
            dont_fragment: self.dont_fragment(),
            more_fragments: self.more_fragments(),
            fragment_offset: self.fragment_offset(),
            ttl: self.ttl(),
            proto: self.proto(),
            src: self.src(),
            dst: self.dst(),
            options: self.options.to_vec(),
        }
    }
}

/// A header to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4 {
    /// The differentiated services code point; its low 6 bits are written.
    pub dscp: u8,
    /// The congestion notification; its low 2 bits are written.
    pub ecn: u8,
    /// The identification shared by the fragments of a packet.
    pub identification: u16,
    /// Whether routers must not fragment the packet.
    pub dont_fragment: bool,
    /// Whether this is a fragment, but not the last.
    pub more_fragments: bool,
    /// The fragment's offset, in units of 8 bytes; its low 13 bits are written.
    pub fragment_offset: u16,
    /// The time to live.
    pub ttl: u8,
    /// The protocol of the payload.
    pub proto: u8,
    /// The sender.
    pub src: Ipv4Addr,
    /// The receiver.
    pub dst: Ipv4Addr,
    /// The options; padded with zeros ("end of options") to a multiple of 4 bytes.
    pub options: Vec<u8>,
}

impl Ipv4 {
    /// Creates a simple header: unfragmented, best effort, 64 hops, no options.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr, proto: u8) -> Self {
        Self {
            dscp: 0,
            ecn: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            proto,
            src,
            dst,
            options: Vec::new(),
        }
    }

    /// Appends the header, with lengths and checksum, and the payload.
    ///
    /// # Errors
    /// If the options exceed [`MAX_OPTIONS_LEN`] or the packet exceeds 65,535 bytes. Then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), PacketError> {
        PacketError::check_limit(LAYER, "options", self.options.len(), MAX_OPTIONS_LEN)?;
        let header_len = HEADER_LEN + self.options.len().next_multiple_of(4);
        PacketError::check_limit(
            LAYER,
            "payload",
            payload.len(),
            usize::from(u16::MAX) - header_len,
        )?;
        let total_len = (header_len + payload.len()) as u16;

        let start = out.len();
        out.extend_from_slice(&[
            VERSION << 4 | (header_len / 4) as u8,
            self.dscp << 2 | self.ecn & 3,
        ]);
        out.extend_from_slice(&total_len.to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
        out.extend_from_slice(&self.flags_offset().to_be_bytes());
        out.extend_from_slice(&[self.ttl, self.proto, 0, 0]);
        out.extend_from_slice(&self.src.octets());
        out.extend_from_slice(&self.dst.octets());
        out.extend_from_slice(&self.options);
        pad_to_multiple(out, start, 4);
        let checksum = checksum::internet(&out[start..]);
        patch_u16(out, start, field::CHECKSUM, checksum);
        out.extend_from_slice(payload);
        Ok(())
    }

    fn flags_offset(&self) -> u16 {
        let dont_fragment = u16::from(self.dont_fragment) * DONT_FRAGMENT;
        let more_fragments = u16::from(self.more_fragments) * MORE_FRAGMENTS;
        dont_fragment | more_fragments | (self.fragment_offset & MAX_FRAGMENT_OFFSET)
    }

    /// Returns the pseudo header for the payload's checksum.
    #[inline]
    pub fn pseudo_header(&self) -> PseudoHeader {
        PseudoHeader::V4 {
            src: self.src,
            dst: self.dst,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{ip_proto, testing};
    use super::*;

    const GOLDEN: [u8; 28] = [
        0x46, 0xb9, 0x00,
        0x1c, // version 4, 24 bytes of header, DSCP 46, ECN 1, 28 bytes in all
        0x12, 0x34, 0x40, 0x00, // identification, don't fragment
        0x40, 0x11, 0x7e, 0xdd, // TTL 64, UDP, checksum
        0x0a, 0x00, 0x00, 0x01, // src
        0x0a, 0x00, 0x00, 0x02, // dst
        0x94, 0x04, 0x00, 0x00, // router alert (RFC 2113)
        0xca, 0xfe, 0xba, 0xbe, // payload
    ];

    fn header() -> Ipv4 {
        Ipv4 {
            dscp: 46,
            ecn: 1,
            identification: 0x1234,
            options: vec![0x94, 0x04, 0, 0],
            ..Ipv4::new(
                Ipv4Addr::new(10, 0, 0, 1),
                Ipv4Addr::new(10, 0, 0, 2),
                ip_proto::UDP,
            )
        }
    }

    #[test]
    fn reads_golden_bytes() {
        let view = Ipv4View::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), header());
        assert_eq!(view.total_len(), 28);
        assert_eq!(view.payload(), [0xca, 0xfe, 0xba, 0xbe]);
        assert!(view.is_checksum_valid());
        assert_eq!(view.pseudo_header(), header().pseudo_header());
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        header().write(&mut out, &GOLDEN[24..]).unwrap();
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn padding_is_no_payload_and_a_cut_payload_no_error() {
        let padded = [&GOLDEN[..], &[0; 18]].concat();
        assert_eq!(Ipv4View::new(&padded).unwrap().payload(), &GOLDEN[24..]);
        assert_eq!(
            Ipv4View::new(&GOLDEN[..26]).unwrap().payload(),
            &GOLDEN[24..26]
        );
    }

    #[test]
    fn refuses_bad_headers() {
        let with = |place: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[place] = value;
            Ipv4View::new(&bytes).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(
            with(0, 0x65),
            "IPv4 header has version 0x6, but 0x4 was expected"
        );
        assert_eq!(
            with(0, 0x44),
            "IPv4 header gives its header length (IHL) as 16 bytes, but it must be at least 20"
        );
        assert_eq!(
            with(0, 0x4f),
            "IPv4 header gives its total length as 28 bytes, but it must be at least 60"
        );
        let cut = Ipv4View::new(&GOLDEN[..22]).unwrap_err();
        assert_eq!(
            cut,
            PacketError::Truncated {
                layer: LAYER,
                needed: 24,
                available: 22
            }
        );
    }

    #[test]
    fn refuses_to_write_oversized_parts() {
        let mut out = Vec::new();
        let long = Ipv4 {
            options: vec![1; 41],
            ..header()
        };
        assert!(matches!(
            long.write(&mut out, &[]),
            Err(PacketError::TooLong {
                limit: 40,
                found: 41,
                ..
            })
        ));
        assert!(matches!(
            header().write(&mut out, &[0; 65_512]),
            Err(PacketError::TooLong { limit: 65_511, .. })
        ));
        assert!(out.is_empty());
    }

    #[test]
    fn a_damaged_header_has_an_invalid_checksum() {
        let mut bytes = GOLDEN;
        bytes[field::TTL] -= 1;
        assert!(!Ipv4View::new(&bytes).unwrap().is_checksum_valid());
    }

    prop_compose! {
        fn any_header()(
            (dscp, ecn, identification) in (0u8..64, 0u8..4, any::<u16>()),
            (dont_fragment, more_fragments) in any::<(bool, bool)>(),
            (fragment_offset, ttl, proto) in (0..=MAX_FRAGMENT_OFFSET, any::<u8>(), any::<u8>()),
            (src, dst) in any::<(Ipv4Addr, Ipv4Addr)>(),
            options in testing::aligned_bytes(4, 10),
        ) -> Ipv4 {
            Ipv4 {
                dscp,
                ecn,
                identification,
                dont_fragment,
                more_fragments,
                fragment_offset,
                ttl,
                proto,
                src,
                dst,
                options,
            }
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = Ipv4View::new(&bytes) {
                view.to_header();
                view.is_checksum_valid();
            }
        }

        #[test]
        fn written_headers_read_back(header in any_header(), payload in testing::bytes(64)) {
            let mut out = vec![0xee];
            header.write(&mut out, &payload).unwrap();
            let view = Ipv4View::new(&out[1..]).unwrap();
            prop_assert!(view.is_checksum_valid());
            prop_assert_eq!(view.payload(), payload);
            prop_assert_eq!(view.to_header(), header);
        }
    }
}
