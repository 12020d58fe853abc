//! VLAN tags of 802.1Q (customer) and 802.1ad (service), which differ only in the EtherType that announces them.

use super::bytes::{split_header, u16_at};
use super::{PacketError, ether_type};

const LAYER: &str = "VLAN tag";

mod field {
    use std::ops::Range;

    pub const TCI: Range<usize> = 0..2;
    pub const ETHER_TYPE: Range<usize> = 2..4;
}

/// The size of a tag in bytes: its control information and the EtherType after it.
pub const HEADER_LEN: usize = 4;

/// The largest VLAN id.
pub const MAX_VID: u16 = 0x0fff;

const CFI_BIT: u16 = 0x1000;
const PCP_SHIFT: u32 = 13;

/// A tag, read in place. It starts after the EtherType that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> VlanView<'a> {
    /// Reads the tag at the start of `bytes`.
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header(LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    /// Returns the tag control information: priority, CFI and VLAN id in 16 bits.
    #[inline]
    pub fn tci(&self) -> u16 {
        u16_at(self.header, field::TCI)
    }

    /// Returns the priority, 0 to 7.
    #[inline]
    pub fn pcp(&self) -> u8 {
        (self.tci() >> PCP_SHIFT) as u8
    }

    /// Returns the canonical format indicator; in 802.1ad the drop eligible indicator.
    #[inline]
    pub fn cfi(&self) -> bool {
        self.tci() & CFI_BIT != 0
    }

    /// Returns the VLAN id, 0 to [`MAX_VID`]; 0 means a priority tag.
    #[inline]
    pub fn vid(&self) -> u16 {
        self.tci() & MAX_VID
    }

    /// Returns the EtherType after the tag, which may announce another tag.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.header, field::ETHER_TYPE)
    }

    /// Returns everything after the tag.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the tag as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Vlan {
        Vlan {
            pcp: self.pcp(),
            cfi: self.cfi(),
            vid: self.vid(),
            ether_type: self.ether_type(),
        }
    }
}

/// The tags of a frame, outermost first: an iterator over each tag with the type that announces it. After the last tag,
/// [`VlanTags::type_or_length`] is the next type.
///
/// It also ends at a truncated tag; then [`VlanTags::is_cut_off`] is true.
#[derive(Clone, Copy, Debug)]
pub struct VlanTags<'a> {
    type_or_length: u16,
    rest: &'a [u8],
    is_cut_off: bool,
}

impl<'a> VlanTags<'a> {
    /// Creates an iterator over the tags after an Ethernet header with this type, in the bytes after the header.
    #[inline]
    pub fn new(type_or_length: u16, payload: &'a [u8]) -> Self {
        Self {
            type_or_length,
            rest: payload,
            is_cut_off: false,
        }
    }

    /// Returns the EtherType, or length of an 802.3 frame, of the next header; after the last tag, that of the payload.
    #[inline]
    pub fn type_or_length(&self) -> u16 {
        self.type_or_length
    }

    /// Returns the bytes after the last tag.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns `true` if the iterator ended at a truncated tag.
    #[inline]
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }
}

impl<'a> Iterator for VlanTags<'a> {
    type Item = (u16, VlanView<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let announced_by = self.type_or_length;
        if !matches!(announced_by, ether_type::VLAN | ether_type::SERVICE_VLAN) {
            return None;
        }
        let Ok(tag) = VlanView::new(self.rest) else {
            self.is_cut_off = true;
            return None;
        };
        (self.type_or_length, self.rest) = (tag.ether_type(), tag.payload());
        Some((announced_by, tag))
    }
}

/// A tag to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vlan {
    /// The priority; its low 3 bits are written.
    pub pcp: u8,
    /// The canonical format (or drop eligible) indicator.
    pub cfi: bool,
    /// The VLAN id; its low 12 bits are written.
    pub vid: u16,
    /// The EtherType after the tag.
    pub ether_type: u16,
}

impl Vlan {
    /// Appends the tag; the payload must follow.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tci().to_be_bytes());
        out.extend_from_slice(&self.ether_type.to_be_bytes());
    }

    /// Returns the tag control information: priority, CFI and VLAN id in 16 bits.
    #[inline]
    pub fn tci(&self) -> u16 {
        let pcp = u16::from(self.pcp) << PCP_SHIFT;
        let cfi = u16::from(self.cfi) * CFI_BIT;
        pcp | cfi | (self.vid & MAX_VID)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{ether_type, testing};
    use super::*;

    const GOLDEN: [u8; 6] = [
        0xb0, 0x64, // PCP 5, CFI, VLAN 100
        0x08, 0x00, // IPv4
        0xca, 0xfe, // payload
    ];

    const HEADER: Vlan = Vlan {
        pcp: 5,
        cfi: true,
        vid: 100,
        ether_type: ether_type::IPV4,
    };

    #[test]
    fn reads_golden_bytes() {
        let view = VlanView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(view.tci(), HEADER.tci());
        assert_eq!(view.payload(), [0xca, 0xfe]);
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out);
        assert_eq!(out, GOLDEN[..HEADER_LEN]);
    }

    #[test]
    fn refuses_a_short_tag() {
        let error = VlanView::new(&GOLDEN[..3]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 4,
                available: 3
            }
        );
    }

    #[test]
    fn walks_all_whole_tags() {
        let bytes = [
            0x60, 0x07, 0x81, 0x00, // PCP 3, VLAN 7
            0x00, 0x09, 0x08, 0x00, // VLAN 9
            0xca,
        ];
        let mut tags = VlanTags::new(ether_type::SERVICE_VLAN, &bytes);
        let seen: Vec<_> = tags.by_ref().map(|(by, tag)| (by, tag.tci())).collect();
        assert_eq!(
            seen,
            [(ether_type::SERVICE_VLAN, 0x6007), (ether_type::VLAN, 9)]
        );
        assert!(!tags.is_cut_off());
        assert_eq!(tags.type_or_length(), ether_type::IPV4);
        assert_eq!(tags.rest(), [0xca]);

        let mut tags = VlanTags::new(ether_type::VLAN, &bytes[..6]);
        assert_eq!(tags.by_ref().count(), 1, "the second tag is cut off");
        assert!(tags.is_cut_off());
        assert_eq!(tags.rest(), [0x00, 0x09]);
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = VlanView::new(&bytes) {
                view.to_header();
            }
        }

        #[test]
        fn written_headers_read_back(pcp in 0u8..8, cfi: bool, vid in 0..=MAX_VID, ether_type: u16) {
            let header = Vlan { pcp, cfi, vid, ether_type };
            let mut out = Vec::new();
            header.write(&mut out);
            prop_assert_eq!(VlanView::new(&out).unwrap().to_header(), header);
        }
    }
}
