//! Ethernet II frames, and 802.3 frames with an LLC/SNAP header (IEEE 802.3, 802.2).

use super::PacketError;
use super::bytes::{mac_at, split_header, u16_at};
use super::ether_type;
use crate::MacAddr;

const LAYER: &str = "Ethernet header";

mod field {
    use std::ops::Range;

    pub const DST: Range<usize> = 0..6;
    pub const SRC: Range<usize> = 6..12;
    pub const ETHER_TYPE: Range<usize> = 12..14;
}

/// The size of the header in bytes, without VLAN tags.
pub const HEADER_LEN: usize = 14;

/// The size of the smallest frame in bytes, without the frame check sequence. Shorter frames are padded when they are sent.
pub const MIN_FRAME_LEN: usize = 60;

/// The value below which type fields are lengths of 802.3 frames.
pub const MIN_ETHER_TYPE: u16 = 0x0600;

/// The LLC header for SNAP (`aa aa 03`), with the organisation code of encapsulated Ethernet.
const SNAP_ETHERNET: [u8; 6] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00];

/// A frame, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> EthernetView<'a> {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header(LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    /// Returns the receiver's MAC address.
    #[inline]
    pub fn dst(&self) -> MacAddr {
        mac_at(self.header, field::DST)
    }

    /// Returns the sender's MAC address.
    #[inline]
    pub fn src(&self) -> MacAddr {
        mac_at(self.header, field::SRC)
    }

    /// Returns the type field as received. Below [`MIN_ETHER_TYPE`], it is the length of an 802.3 frame.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.header, field::ETHER_TYPE)
    }

    /// Returns everything after the type field, including padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Ethernet {
        Ethernet {
            dst: self.dst(),
            src: self.src(),
            ether_type: self.ether_type(),
        }
    }
}

/// Converts a type field that may be an 802.3 length to the EtherType that OpenFlow matches, and returns the bytes after it.
///
/// An 802.3 frame with a SNAP header and organisation code 0 has the EtherType in the SNAP header; any other has
/// [`ether_type::NONE`] (OpenFlow 1.0.0, section 3.4).
#[inline]
pub fn resolve_ether_type(type_or_length: u16, payload: &[u8]) -> (u16, &[u8]) {
    if type_or_length >= MIN_ETHER_TYPE {
        return (type_or_length, payload);
    }
    resolve_snap(payload).unwrap_or((ether_type::NONE, payload))
}

/// Returns the EtherType in a SNAP header of encapsulated Ethernet, and the bytes after it.
fn resolve_snap(payload: &[u8]) -> Option<(u16, &[u8])> {
    let (ether_type, payload) = payload.strip_prefix(&SNAP_ETHERNET)?.split_first_chunk()?;
    let ether_type = u16::from_be_bytes(*ether_type);
    (ether_type >= MIN_ETHER_TYPE).then_some((ether_type, payload))
}

/// An Ethernet header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ethernet {
    /// The receiver's MAC address.
    pub dst: MacAddr,
    /// The sender's MAC address.
    pub src: MacAddr,
    /// The type of the payload.
    pub ether_type: u16,
}

impl Ethernet {
    /// Appends the header; the payload must follow. See [`pad_frame`] for the end of the frame.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.dst.octets());
        out.extend_from_slice(&self.src.octets());
        out.extend_from_slice(&self.ether_type.to_be_bytes());
    }
}

/// Pads the frame that starts at `start` with zeros to [`MIN_FRAME_LEN`].
#[inline]
pub fn pad_frame(out: &mut Vec<u8>, start: usize) {
    let len = out.len().max(start + MIN_FRAME_LEN);
    out.resize(len, 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 16] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // dst
        0x02, 0x00, 0x00, 0x00, 0x00, 0x01, // src
        0x08, 0x06, // ARP
        0xca, 0xfe, // payload
    ];

    const HEADER: Ethernet = Ethernet {
        dst: MacAddr::BROADCAST,
        src: MacAddr::new([0x02, 0, 0, 0, 0, 1]),
        ether_type: ether_type::ARP,
    };

    #[test]
    fn reads_golden_bytes() {
        let view = EthernetView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(view.payload(), [0xca, 0xfe]);
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out);
        assert_eq!(out, GOLDEN[..HEADER_LEN]);
    }

    #[test]
    fn refuses_a_short_frame() {
        let error = EthernetView::new(&GOLDEN[..13]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 14,
                available: 13
            }
        );
    }

    #[test]
    fn resolves_802_3_frames() {
        let snap = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00, 0x45];
        assert_eq!(
            resolve_ether_type(9, &snap),
            (ether_type::IPV4, &[0x45][..])
        );
        let spanning_tree = [0x42, 0x42, 0x03, 0, 0, 0];
        assert_eq!(
            resolve_ether_type(6, &spanning_tree),
            (ether_type::NONE, &spanning_tree[..])
        );
        assert_eq!(
            resolve_ether_type(ether_type::IPV6, &snap),
            (ether_type::IPV6, &snap[..])
        );
    }

    #[test]
    fn pads_only_short_frames() {
        let mut out = vec![7; 3 + 20];
        pad_frame(&mut out, 3);
        assert_eq!((out.len(), out[22], out[23]), (63, 7, 0));
        pad_frame(&mut out, 0);
        assert_eq!(out.len(), 63);
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = EthernetView::new(&bytes) {
                view.to_header();
                resolve_ether_type(view.ether_type(), view.payload());
            }
        }

        #[test]
        fn written_headers_read_back(
            dst in testing::mac(),
            src in testing::mac(),
            ether_type: u16,
            payload in testing::bytes(64),
        ) {
            let header = Ethernet { dst, src, ether_type };
            let mut out = Vec::new();
            header.write(&mut out);
            out.extend_from_slice(&payload);
            let view = EthernetView::new(&out).unwrap();
            prop_assert_eq!(view.to_header(), header);
            prop_assert_eq!(view.payload(), payload);
        }
    }
}
