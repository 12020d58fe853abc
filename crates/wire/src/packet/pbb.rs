//! Provider backbone bridging (IEEE 802.1ah): the I-TAG before a customer's frame.

use super::PacketError;
use super::bytes::split_header;

const LAYER: &str = "PBB I-TAG";

/// The size of the tag control information in bytes.
pub const HEADER_LEN: usize = 4;

/// The largest backbone service instance identifier.
pub const MAX_ISID: u32 = 0x00ff_ffff;

const PCP_SHIFT: u32 = 29;
const DEI_BIT: u32 = 0x1000_0000;
const UCA_BIT: u32 = 0x0800_0000;

/// An I-TAG, read in place. It starts after the EtherType that announces it.
///
/// In the standard, the customer's addresses are part of the tag; here they are part of [`payload`](Self::payload), which is
/// a whole Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PbbView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> PbbView<'a> {
    /// Reads the tag at the start of `bytes`.
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header(LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    #[inline]
    fn word(&self) -> u32 {
        u32::from_be_bytes(*self.header)
    }

    /// Returns the priority, 0 to 7.
    #[inline]
    pub fn pcp(&self) -> u8 {
        (self.word() >> PCP_SHIFT) as u8
    }

    /// Returns `true` if the frame is eligible for dropping.
    #[inline]
    pub fn dei(&self) -> bool {
        self.word() & DEI_BIT != 0
    }

    /// Returns `true` if the customer's addresses are in use (UCA).
    #[inline]
    pub fn uca(&self) -> bool {
        self.word() & UCA_BIT != 0
    }

    /// Returns the backbone service instance, 0 to [`MAX_ISID`].
    #[inline]
    pub fn isid(&self) -> u32 {
        self.word() & MAX_ISID
    }

    /// Returns the customer's Ethernet frame.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the tag as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Pbb {
        Pbb {
            pcp: self.pcp(),
            dei: self.dei(),
            uca: self.uca(),
            isid: self.isid(),
        }
    }
}

/// An I-TAG to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pbb {
    /// The priority; its low 3 bits are written.
    pub pcp: u8,
    /// Whether the frame is eligible for dropping.
    pub dei: bool,
    /// Whether the customer's addresses are in use.
    pub uca: bool,
    /// The backbone service instance; its low 24 bits are written.
    pub isid: u32,
}

impl Pbb {
    /// Appends the tag; the customer's frame must follow.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let pcp = u32::from(self.pcp) << PCP_SHIFT;
        let dei = u32::from(self.dei) * DEI_BIT;
        let uca = u32::from(self.uca) * UCA_BIT;
        let word = pcp | dei | uca | (self.isid & MAX_ISID);
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Ethernet, EthernetView, ether_type, testing};
    use super::*;
    use crate::MacAddr;

    const GOLDEN: [u8; 18] = [
        0x78, 0x01, 0x02, 0x03, // PCP 3, DEI, UCA, I-SID 0x010203
        0x02, 0x00, 0x00, 0x00, 0x00, 0x0b, // customer dst
        0x02, 0x00, 0x00, 0x00, 0x00, 0x0a, // customer src
        0x08, 0x00, // IPv4
    ];

    const HEADER: Pbb = Pbb {
        pcp: 3,
        dei: true,
        uca: true,
        isid: 0x01_0203,
    };

    const CUSTOMER: Ethernet = Ethernet {
        dst: MacAddr::new([2, 0, 0, 0, 0, 0x0b]),
        src: MacAddr::new([2, 0, 0, 0, 0, 0x0a]),
        ether_type: ether_type::IPV4,
    };

    #[test]
    fn reads_golden_bytes() {
        let view = PbbView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert_eq!(
            EthernetView::new(view.payload()).unwrap().to_header(),
            CUSTOMER
        );
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        HEADER.write(&mut out);
        CUSTOMER.write(&mut out);
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn refuses_a_short_tag() {
        let error = PbbView::new(&GOLDEN[..2]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 4,
                available: 2
            }
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = PbbView::new(&bytes) {
                view.to_header();
            }
        }

        #[test]
        fn written_headers_read_back(pcp in 0u8..8, dei: bool, uca: bool, isid in 0..=MAX_ISID) {
            let header = Pbb { pcp, dei, uca, isid };
            let mut out = Vec::new();
            header.write(&mut out);
            prop_assert_eq!(PbbView::new(&out).unwrap().to_header(), header);
        }
    }
}
