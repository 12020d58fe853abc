//! IPv6 (RFC 8200): the fixed header. Extension headers are in [`ipv6_ext`].

use std::net::Ipv6Addr;

use super::bytes::{at_most, ipv6_at, split_header, u16_at, u32_at};
use super::ipv6_ext::{self, Extensions, UpperLayer};
use super::{PacketError, PseudoHeader};

const LAYER: &str = "IPv6 header";

mod field {
    use std::ops::Range;

    pub const VERSION_CLASS_LABEL: Range<usize> = 0..4;
    pub const PAYLOAD_LEN: Range<usize> = 4..6;
    pub const NEXT_HEADER: usize = 6;
    pub const HOP_LIMIT: usize = 7;
    pub const SRC: Range<usize> = 8..24;
    pub const DST: Range<usize> = 24..40;
}

/// The size of the fixed header in bytes.
pub const HEADER_LEN: usize = 40;

/// The largest flow label.
pub const MAX_FLOW_LABEL: u32 = 0x000f_ffff;

const VERSION: u8 = 6;
const VERSION_SHIFT: u32 = 28;
const DSCP_SHIFT: u32 = 22;
const ECN_SHIFT: u32 = 20;

/// A header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6View<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Ipv6View<'a> {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If the header is truncated or has another version.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, rest) = split_header::<HEADER_LEN>(LAYER, bytes)?;
        PacketError::check_value(LAYER, "version", header[0] >> 4, VERSION)?;
        let payload_len = usize::from(u16_at(header, field::PAYLOAD_LEN));
        Ok(Self {
            header,
            payload: at_most(rest, payload_len),
        })
    }

    #[inline]
    fn first_word(&self) -> u32 {
        u32_at(self.header, field::VERSION_CLASS_LABEL)
    }

    /// Returns the differentiated services code point, 6 bits.
    #[inline]
    pub fn dscp(&self) -> u8 {
        (self.first_word() >> DSCP_SHIFT) as u8 & 0x3f
    }

    /// Returns the congestion notification, 2 bits.
    #[inline]
    pub fn ecn(&self) -> u8 {
        (self.first_word() >> ECN_SHIFT) as u8 & 3
    }

    /// Returns the flow label, 0 to [`MAX_FLOW_LABEL`].
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.first_word() & MAX_FLOW_LABEL
    }

    /// Returns the number of bytes in the payload, including extension headers, according to the header.
    #[inline]
    pub fn payload_len(&self) -> u16 {
        u16_at(self.header, field::PAYLOAD_LEN)
    }

    /// Returns the protocol of the payload: an extension header, or the upper layer.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[field::NEXT_HEADER]
    }

    /// Returns the remaining hops.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.header[field::HOP_LIMIT]
    }

    /// Returns the sender.
    #[inline]
    pub fn src(&self) -> Ipv6Addr {
        ipv6_at(self.header, field::SRC)
    }

    /// Returns the receiver, or the next stop with a routing header.
    #[inline]
    pub fn dst(&self) -> Ipv6Addr {
        ipv6_at(self.header, field::DST)
    }

    /// Returns the payload without padding, starting with the extension headers. It is shorter than the header's length if the
    /// packet is truncated.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the extension headers, in order.
    #[inline]
    pub fn extensions(&self) -> Extensions<'a> {
        Extensions::new(self.next_header(), self.payload)
    }

    /// Returns the upper-layer protocol and its bytes, after all extension headers.
    ///
    /// # Errors
    /// If an extension header is truncated or malformed, or there are more than
    /// [`ipv6_ext::MAX_EXTENSIONS`].
    #[inline]
    pub fn upper_layer(&self) -> Result<UpperLayer<'a>, PacketError> {
        ipv6_ext::upper_layer(self.next_header(), self.payload)
    }

    /// Returns the pseudo header for the upper layer's checksum.
    #[inline]
    pub fn pseudo_header(&self) -> PseudoHeader {
        PseudoHeader::V6 {
            src: self.src(),
            dst: self.dst(),
        }
    }

    /// Returns the header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Ipv6 {
        Ipv6 {
            dscp: self.dscp(),
            ecn: self.ecn(),
            flow_label: self.flow_label(),
            next_header: self.next_header(),
            hop_limit: self.hop_limit(),
            src: self.src(),
            dst: self.dst(),
        }
    }
}

/// A header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6 {
    /// The differentiated services code point; its low 6 bits are written.
    pub dscp: u8,
    /// The congestion notification; its low 2 bits are written.
    pub ecn: u8,
    /// The flow label; its low 20 bits are written.
    pub flow_label: u32,
    /// The protocol of the payload: an extension header, or the upper layer.
    pub next_header: u8,
    /// The remaining hops.
    pub hop_limit: u8,
    /// The sender.
    pub src: Ipv6Addr,
    /// The receiver.
    pub dst: Ipv6Addr,
}

impl Ipv6 {
    /// Creates a simple header: best effort, no flow label, 64 hops.
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8) -> Self {
        Self {
            dscp: 0,
            ecn: 0,
            flow_label: 0,
            next_header,
            hop_limit: 64,
            src,
            dst,
        }
    }

    /// Appends the header and the payload, which starts with the extension headers.
    ///
    /// # Errors
    /// If the payload exceeds 65,535 bytes. Then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), PacketError> {
        PacketError::check_limit(LAYER, "payload", payload.len(), usize::from(u16::MAX))?;
        out.extend_from_slice(&self.first_word().to_be_bytes());
        out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        out.extend_from_slice(&[self.next_header, self.hop_limit]);
        out.extend_from_slice(&self.src.octets());
        out.extend_from_slice(&self.dst.octets());
        out.extend_from_slice(payload);
        Ok(())
    }

    fn first_word(&self) -> u32 {
        u32::from(VERSION) << VERSION_SHIFT
            | u32::from(self.dscp & 0x3f) << DSCP_SHIFT
            | u32::from(self.ecn & 3) << ECN_SHIFT
            | self.flow_label & MAX_FLOW_LABEL
    }

    /// Returns the pseudo header for the upper layer's checksum.
    #[inline]
    pub fn pseudo_header(&self) -> PseudoHeader {
        PseudoHeader::V6 {
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

    const GOLDEN: [u8; 44] = [
        0x6b, 0x91, 0x23, 0x45, // version 6, DSCP 46, ECN 1, flow label 0x12345
        0x00, 0x04, 0x11, 0x40, // 4 bytes of payload, UDP, 64 hops
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, // src
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, // dst
        0xca, 0xfe, 0xba, 0xbe, // payload
    ];

    const HEADER: Ipv6 = Ipv6 {
        dscp: 46,
        ecn: 1,
        flow_label: 0x1_2345,
        next_header: ip_proto::UDP,
        hop_limit: 64,
        src: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        dst: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    };

    #[test]
    fn reads_golden_bytes() {
        let view = Ipv6View::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(view.payload(), &GOLDEN[HEADER_LEN..]);
        assert_eq!(view.payload_len(), 4);
        assert_eq!(view.extensions().count(), 0);
        assert_eq!(view.upper_layer().unwrap().proto, ip_proto::UDP);
        assert_eq!(view.pseudo_header(), HEADER.pseudo_header());
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out, &GOLDEN[HEADER_LEN..]).unwrap();
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn padding_is_no_payload_and_a_cut_payload_no_error() {
        let padded = [&GOLDEN[..], &[0; 6]].concat();
        assert_eq!(Ipv6View::new(&padded).unwrap().payload().len(), 4);
        assert_eq!(Ipv6View::new(&GOLDEN[..42]).unwrap().payload().len(), 2);
    }

    #[test]
    fn refuses_bad_headers() {
        let mut version_4 = GOLDEN;
        version_4[0] = 0x45;
        let error = Ipv6View::new(&version_4).unwrap_err();
        assert_eq!(
            error.to_string(),
            "IPv6 header has version 0x4, but 0x6 was expected"
        );
        let error = Ipv6View::new(&GOLDEN[..39]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 40,
                available: 39
            }
        );
    }

    #[test]
    fn refuses_to_write_oversized_parts() {
        let mut out = Vec::new();
        let error = HEADER.write(&mut out, &vec![0; 65_536]).unwrap_err();
        assert!(matches!(
            error,
            PacketError::TooLong {
                limit: 65_535,
                found: 65_536,
                ..
            }
        ));
        assert!(out.is_empty());
    }

    prop_compose! {
        fn any_header()(
            (dscp, ecn, flow_label) in (0u8..64, 0u8..4, 0..=MAX_FLOW_LABEL),
            (next_header, hop_limit) in any::<(u8, u8)>(),
            (src, dst) in any::<(Ipv6Addr, Ipv6Addr)>(),
        ) -> Ipv6 {
            Ipv6 { dscp, ecn, flow_label, next_header, hop_limit, src, dst }
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = Ipv6View::new(&bytes) {
                view.to_header();
                let _ = view.upper_layer();
            }
        }

        #[test]
        fn written_headers_read_back(header in any_header(), payload in testing::bytes(64)) {
            let mut out = Vec::new();
            header.write(&mut out, &payload).unwrap();
            let view = Ipv6View::new(&out).unwrap();
            prop_assert_eq!(view.to_header(), header);
            prop_assert_eq!(view.payload(), payload);
        }
    }
}
