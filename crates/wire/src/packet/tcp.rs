//! TCP (RFC 9293).

use super::bytes::{pad_to_multiple, patch_u16, split_at, split_header, u16_at, u32_at};
use super::{PacketError, PseudoHeader, ip_proto};

const LAYER: &str = "TCP header";

mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const SEQ: Range<usize> = 4..8;
    pub const ACK: Range<usize> = 8..12;
    pub const DATA_OFFSET: usize = 12;
    pub const OFFSET_FLAGS: Range<usize> = 12..14;
    pub const WINDOW: Range<usize> = 14..16;
    pub const CHECKSUM: Range<usize> = 16..18;
    pub const URGENT: Range<usize> = 18..20;
}

/// The size of the header in bytes, without options.
pub const HEADER_LEN: usize = 20;

/// The maximum size of the options in a header, in bytes.
pub const MAX_OPTIONS_LEN: usize = 40;

/// All bits of the flags field, including reserved ones.
pub const MAX_FLAGS: u16 = 0x0fff;

/// The flags, as bits of the 12-bit flags field.
pub mod flags {
    /// The sender has finished.
    pub const FIN: u16 = 0x001;
    /// Start of the connection.
    pub const SYN: u16 = 0x002;
    /// The connection is reset.
    pub const RST: u16 = 0x004;
    /// The data should be delivered immediately.
    pub const PSH: u16 = 0x008;
    /// The acknowledgement number is valid.
    pub const ACK: u16 = 0x010;
    /// The urgent pointer is valid.
    pub const URG: u16 = 0x020;
    /// The sender was notified of congestion (RFC 3168).
    pub const ECE: u16 = 0x040;
    /// The sender has slowed down (RFC 3168).
    pub const CWR: u16 = 0x080;
}

const DATA_OFFSET_SHIFT: u32 = 12;

/// A segment, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpView<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Reads the header at the start of `bytes`. The checksum is not checked: see
    /// [`is_checksum_valid`](Self::is_checksum_valid).
    ///
    /// # Errors
    /// If the header is truncated, or its length field is below [`HEADER_LEN`].
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, _) = split_header::<HEADER_LEN>(LAYER, bytes)?;
        let header_len = usize::from(header[field::DATA_OFFSET] >> 4) * 4;
        PacketError::check_minimum(LAYER, "data offset", header_len, HEADER_LEN)?;
        let (with_options, payload) = split_at(LAYER, bytes, header_len)?;
        Ok(Self {
            header,
            options: &with_options[HEADER_LEN..],
            payload,
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

    /// Returns the sequence number of the first byte of the payload.
    #[inline]
    pub fn seq(&self) -> u32 {
        u32_at(self.header, field::SEQ)
    }

    /// Returns the sequence number that the sender expects next.
    #[inline]
    pub fn ack(&self) -> u32 {
        u32_at(self.header, field::ACK)
    }

    /// Returns the flags (see [`flags`]) and reserved bits, 12 bits.
    #[inline]
    pub fn flags(&self) -> u16 {
        u16_at(self.header, field::OFFSET_FLAGS) & MAX_FLAGS
    }

    /// Returns the receive window, before scaling.
    #[inline]
    pub fn window(&self) -> u16 {
        u16_at(self.header, field::WINDOW)
    }

    /// Returns the checksum as received.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.header, field::CHECKSUM)
    }

    /// Returns the end of urgent data, relative to the sequence number.
    #[inline]
    pub fn urgent(&self) -> u16 {
        u16_at(self.header, field::URGENT)
    }

    /// Returns the options, with their padding.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        self.options
    }

    /// Returns everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns `true` if the checksum is valid, and `false` if the segment is truncated.
    #[inline]
    pub fn is_checksum_valid(&self, pseudo_header: &PseudoHeader) -> bool {
        pseudo_header.checksum(ip_proto::TCP, &[self.header, self.options, self.payload]) == 0
    }

    /// Returns the header as a plain struct.
    pub fn to_header(&self) -> Tcp {
        Tcp {
            src_port: self.src_port(),
            dst_port: self.dst_port(),
            seq: self.seq(),
            ack: self.ack(),
            flags: self.flags(),
            window: self.window(),
            urgent: self.urgent(),
            options: self.options.to_vec(),
        }
    }
}

/// A header to write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tcp {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The sequence number of the first byte of the payload.
    pub seq: u32,
    /// The sequence number that the sender expects next.
    pub ack: u32,
    /// The flags (see [`flags`]) and reserved bits; the low 12 bits are written.
    pub flags: u16,
    /// The receive window, before scaling.
    pub window: u16,
    /// The end of urgent data, relative to the sequence number.
    pub urgent: u16,
    /// The options; padded with zeros ("end of options") to a multiple of 4 bytes.
    pub options: Vec<u8>,
}

impl Tcp {
    /// Appends the header, with its checksum, and the payload.
    ///
    /// # Errors
    /// If the options exceed [`MAX_OPTIONS_LEN`]. Then nothing is written.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        pseudo_header: &PseudoHeader,
        payload: &[u8],
    ) -> Result<(), PacketError> {
        PacketError::check_limit(LAYER, "options", self.options.len(), MAX_OPTIONS_LEN)?;
        let start = out.len();
        out.extend_from_slice(&self.src_port.to_be_bytes());
        out.extend_from_slice(&self.dst_port.to_be_bytes());
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.ack.to_be_bytes());
        out.extend_from_slice(&self.offset_flags().to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(&self.options);
        pad_to_multiple(out, start, 4);
        out.extend_from_slice(payload);
        let checksum = pseudo_header.checksum(ip_proto::TCP, &[&out[start..]]);
        patch_u16(out, start, field::CHECKSUM, checksum);
        Ok(())
    }

    fn offset_flags(&self) -> u16 {
        let words = (HEADER_LEN + self.options.len()).div_ceil(4) as u16;
        words << DATA_OFFSET_SHIFT | self.flags & MAX_FLAGS
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 27] = [
        0xc0, 0x00, 0x19, 0xfd, // ports 49152 and 6653
        0x00, 0x00, 0x00, 0x01, // sequence number
        0x00, 0x00, 0x00, 0x02, // acknowledgement number
        0x60, 0x12, 0x72, 0x10, // 24 bytes of header, SYN and ACK, window
        0x33, 0xfe, 0x00, 0x00, // checksum, urgent pointer
        0x02, 0x04, 0x05, 0xb4, // maximum segment size
        0x01, 0x02, 0x03, // payload
    ];

    fn header() -> Tcp {
        Tcp {
            src_port: 49_152,
            dst_port: 6653,
            seq: 1,
            ack: 2,
            flags: flags::SYN | flags::ACK,
            window: 0x7210,
            urgent: 0,
            options: vec![2, 4, 5, 0xb4],
        }
    }

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
        let view = TcpView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), header());
        assert_eq!(view.payload(), [1, 2, 3]);
        assert!(view.is_checksum_valid(&ADDRESSES));
        assert!(!view.is_checksum_valid(&ADDRESSES_V6));
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        header().write(&mut out, &ADDRESSES, &[1, 2, 3]).unwrap();
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn refuses_short_headers() {
        let error = TcpView::new(&GOLDEN[..19]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 20,
                available: 19
            }
        );
        let error = TcpView::new(&GOLDEN[..23]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 24,
                available: 23
            }
        );
        let mut bytes = GOLDEN;
        bytes[field::DATA_OFFSET] = 0x40;
        let error = TcpView::new(&bytes).unwrap_err();
        assert!(matches!(
            error,
            PacketError::BadLength {
                minimum: 20,
                found: 16,
                ..
            }
        ));
    }

    #[test]
    fn refuses_to_write_oversized_parts() {
        let mut out = Vec::new();
        let error = Tcp {
            options: vec![1; 41],
            ..header()
        }
        .write(&mut out, &ADDRESSES, &[])
        .unwrap_err();
        assert!(matches!(
            error,
            PacketError::TooLong {
                limit: 40,
                found: 41,
                ..
            }
        ));
        assert!(out.is_empty());
    }

    prop_compose! {
        fn any_header()(
            (src_port, dst_port) in any::<(u16, u16)>(),
            (seq, ack) in any::<(u32, u32)>(),
            (flags, window, urgent) in (0..=MAX_FLAGS, any::<u16>(), any::<u16>()),
            options in testing::aligned_bytes(4, 10),
        ) -> Tcp {
            Tcp { src_port, dst_port, seq, ack, flags, window, urgent, options }
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = TcpView::new(&bytes) {
                view.to_header();
                view.is_checksum_valid(&ADDRESSES);
            }
        }

        #[test]
        fn written_headers_read_back(header in any_header(), payload in testing::bytes(64)) {
            for addresses in [ADDRESSES, ADDRESSES_V6] {
                let mut out = vec![0xee];
                header.write(&mut out, &addresses, &payload).unwrap();
                let view = TcpView::new(&out[1..]).unwrap();
                prop_assert!(view.is_checksum_valid(&addresses));
                prop_assert_eq!(&view.to_header(), &header);
                prop_assert_eq!(view.payload(), &payload[..]);
            }
        }
    }
}
