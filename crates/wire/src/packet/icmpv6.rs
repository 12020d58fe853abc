//! ICMP for IPv6 (RFC 4443) and the neighbour discovery messages that OpenFlow matches (RFC 4861).

use std::net::Ipv6Addr;

use super::bytes::{ipv6_at, mac_at, patch_u16, split_at, split_header, u16_at};
use super::{PacketError, PseudoHeader, ip_proto};
use crate::MacAddr;

const LAYER: &str = "ICMPv6 header";
const ND_LAYER: &str = "ICMPv6 neighbour message";
const ND_OPTION_LAYER: &str = "ICMPv6 neighbour option";

mod field {
    use std::ops::Range;

    pub const TYPE: usize = 0;
    pub const CODE: usize = 1;
    pub const CHECKSUM: Range<usize> = 2..4;

    pub const ND_FLAGS: usize = 0;
    pub const ND_TARGET: Range<usize> = 4..20;

    pub const OPTION_TYPE: usize = 0;
    pub const OPTION_LEN: usize = 1;
    pub const OPTION_MAC: Range<usize> = 2..8;
}

/// The size of the header in bytes.
pub const HEADER_LEN: usize = 4;

/// The size of the fixed part of a neighbour message in bytes, after the ICMPv6 header.
pub const ND_LEN: usize = 20;

/// Type of an echo request (RFC 4443 section 4.1).
pub const ECHO_REQUEST: u8 = 128;

/// Type of an echo reply (RFC 4443 section 4.2).
pub const ECHO_REPLY: u8 = 129;

/// Type of a router solicitation (RFC 4861 section 4.1).
pub const ROUTER_SOLICITATION: u8 = 133;

/// Type of a router advertisement (RFC 4861 section 4.2).
pub const ROUTER_ADVERTISEMENT: u8 = 134;

/// Type of a neighbour solicitation (RFC 4861 section 4.3).
pub const NEIGHBOR_SOLICITATION: u8 = 135;

/// Type of a neighbour advertisement (RFC 4861 section 4.4).
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;

/// Type of a redirect (RFC 4861 section 4.5).
pub const REDIRECT: u8 = 137;

/// Neighbour advertisement flags.
pub mod nd_flags {
    /// The sender is a router.
    pub const ROUTER: u8 = 0x80;
    /// The message answers a solicitation.
    pub const SOLICITED: u8 = 0x40;
    /// The message overrides the receiver's cached address.
    pub const OVERRIDE: u8 = 0x20;
}

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;

/// The unit of the length of options, in bytes.
const OPTION_UNIT: usize = 8;

/// A message, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmpv6View<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Icmpv6View<'a> {
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

    /// Returns everything after the header: the body of the message.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the neighbour message in the payload; `None` if the message is not a neighbour solicitation or
    /// advertisement.
    ///
    /// # Errors
    /// If the neighbour message is truncated or malformed.
    #[inline]
    pub fn nd(&self) -> Result<Option<NdView<'a>>, PacketError> {
        match (self.icmp_type(), self.icmp_code()) {
            (NEIGHBOR_SOLICITATION | NEIGHBOR_ADVERTISEMENT, 0) => {
                NdView::new(self.payload).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns `true` if the checksum is valid, and `false` if the message is truncated.
    #[inline]
    pub fn is_checksum_valid(&self, pseudo_header: &PseudoHeader) -> bool {
        pseudo_header.checksum(ip_proto::ICMPV6, &[self.header, self.payload]) == 0
    }

    /// Returns the header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Icmpv6 {
        Icmpv6 {
            icmp_type: self.icmp_type(),
            icmp_code: self.icmp_code(),
        }
    }
}

/// The body of a neighbour solicitation or advertisement, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdView<'a> {
    header: &'a [u8; ND_LEN],
    options: &'a [u8],
}

impl<'a> NdView<'a> {
    /// Reads the body of the message, after its ICMPv6 header.
    ///
    /// # Errors
    /// If it is truncated, or an option has length 0 or exceeds the message, which must then be discarded (RFC 4861, section
    /// 7.1).
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, options) = split_header(ND_LAYER, bytes)?;
        let mut rest = options;
        while !rest.is_empty() {
            (_, rest) = split_option(rest)?;
        }
        Ok(Self { header, options })
    }

    /// Returns the flags of an advertisement (see [`nd_flags`]); 0 in a solicitation.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.header[field::ND_FLAGS]
    }

    /// Returns the target address.
    #[inline]
    pub fn target(&self) -> Ipv6Addr {
        ipv6_at(self.header, field::ND_TARGET)
    }

    /// Returns the sender's MAC address, if the message has it.
    #[inline]
    pub fn sll(&self) -> Option<MacAddr> {
        self.link_layer(SOURCE_LINK_LAYER)
    }

    /// Returns the target's MAC address, if the message has it.
    #[inline]
    pub fn tll(&self) -> Option<MacAddr> {
        self.link_layer(TARGET_LINK_LAYER)
    }

    /// Returns the options.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.options
    }

    /// Returns the MAC address in the first option of type `option_type` that contains one.
    fn link_layer(&self, option_type: u8) -> Option<MacAddr> {
        let mut rest = self.options;
        while let Ok((option, next)) = split_option(rest) {
            if option[field::OPTION_TYPE] == option_type && option.len() == OPTION_UNIT {
                return Some(mac_at(option, field::OPTION_MAC));
            }
            rest = next;
        }
        None
    }

    /// Returns the message as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Nd {
        Nd {
            flags: self.flags(),
            target: self.target(),
            sll: self.sll(),
            tll: self.tll(),
        }
    }
}

/// Splits one option off the front.
#[inline]
fn split_option(bytes: &[u8]) -> Result<(&[u8], &[u8]), PacketError> {
    let (start, _) = split_header::<2>(ND_OPTION_LAYER, bytes)?;
    let len = usize::from(start[field::OPTION_LEN]) * OPTION_UNIT;
    PacketError::check_minimum(ND_OPTION_LAYER, "length", len, OPTION_UNIT)?;
    split_at(ND_OPTION_LAYER, bytes, len)
}

/// A header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Icmpv6 {
    /// The type of message.
    pub icmp_type: u8,
    /// The variant of the type.
    pub icmp_code: u8,
}

impl Icmpv6 {
    /// Appends the header, with its checksum, and the payload.
    pub fn write(&self, out: &mut Vec<u8>, pseudo_header: &PseudoHeader, payload: &[u8]) {
        let start = out.len();
        out.extend_from_slice(&[self.icmp_type, self.icmp_code, 0, 0]);
        out.extend_from_slice(payload);
        let checksum = pseudo_header.checksum(ip_proto::ICMPV6, &[&out[start..]]);
        patch_u16(out, start, field::CHECKSUM, checksum);
    }
}

/// The body of a neighbour solicitation or advertisement to write; the payload of an [`Icmpv6`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nd {
    /// The flags of an advertisement (see [`nd_flags`]); 0 in a solicitation.
    pub flags: u8,
    /// The target address.
    pub target: Ipv6Addr,
    /// The sender's MAC address.
    pub sll: Option<MacAddr>,
    /// The target's MAC address.
    pub tll: Option<MacAddr>,
}

impl Nd {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.flags, 0, 0, 0]);
        out.extend_from_slice(&self.target.octets());
        write_link_layer(out, SOURCE_LINK_LAYER, self.sll);
        write_link_layer(out, TARGET_LINK_LAYER, self.tll);
    }
}

fn write_link_layer(out: &mut Vec<u8>, option_type: u8, address: Option<MacAddr>) {
    if let Some(address) = address {
        out.extend_from_slice(&[option_type, 1]);
        out.extend_from_slice(&address.octets());
    }
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 40] = [
        0x88, 0x00, 0x15, 0x07, // neighbour advertisement, checksum
        0x60, 0x00, 0x00, 0x00, // solicited, override
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, // target
        0x01, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x0a, // source link-layer address
        0x02, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, // target link-layer address
    ];

    const HEADER: Icmpv6 = Icmpv6 {
        icmp_type: NEIGHBOR_ADVERTISEMENT,
        icmp_code: 0,
    };

    const ND: Nd = Nd {
        flags: nd_flags::SOLICITED | nd_flags::OVERRIDE,
        target: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2),
        sll: Some(MacAddr::new([2, 0, 0, 0, 0, 0x0a])),
        tll: Some(MacAddr::new([2, 0, 0, 0, 0, 2])),
    };

    const ADDRESSES: PseudoHeader = PseudoHeader::V6 {
        src: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2),
        dst: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
    };

    #[test]
    fn reads_golden_bytes() {
        let view = Icmpv6View::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), HEADER);
        assert!(view.is_checksum_valid(&ADDRESSES));
        let nd = view.nd().unwrap().unwrap();
        assert_eq!(nd.to_header(), ND);
        assert_eq!(nd.payload(), &GOLDEN[24..]);
    }

    #[test]
    fn writes_golden_bytes() {
        let (mut body, mut out) = (Vec::new(), Vec::new());
        ND.write(&mut body);
        HEADER.write(&mut out, &ADDRESSES, &body);
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn only_neighbour_messages_have_a_neighbour() {
        let mut echo = GOLDEN;
        echo[0] = ECHO_REQUEST;
        assert_eq!(Icmpv6View::new(&echo).unwrap().nd(), Ok(None));
    }

    #[test]
    fn refuses_short_headers_and_bad_options() {
        let error = Icmpv6View::new(&GOLDEN[..3]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: LAYER,
                needed: 4,
                available: 3
            }
        );
        let error = NdView::new(&GOLDEN[4..20]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: ND_LAYER,
                needed: 20,
                available: 16
            }
        );
        let error = NdView::new(&GOLDEN[4..30]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: ND_OPTION_LAYER,
                needed: 8,
                available: 6
            }
        );
        let mut endless = GOLDEN;
        endless[25] = 0;
        let error = NdView::new(&endless[4..]).unwrap_err();
        assert!(matches!(
            error,
            PacketError::BadLength {
                minimum: 8,
                found: 0,
                ..
            }
        ));
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = Icmpv6View::new(&bytes) {
                view.to_header();
                view.is_checksum_valid(&ADDRESSES);
                if let Ok(Some(nd)) = view.nd() {
                    nd.to_header();
                }
            }
        }

        #[test]
        fn written_headers_read_back(icmp_type: u8, icmp_code: u8, payload in testing::bytes(64)) {
            let header = Icmpv6 { icmp_type, icmp_code };
            let mut out = vec![0xee];
            header.write(&mut out, &ADDRESSES, &payload);
            let view = Icmpv6View::new(&out[1..]).unwrap();
            prop_assert!(view.is_checksum_valid(&ADDRESSES));
            prop_assert_eq!(view.to_header(), header);
            prop_assert_eq!(view.payload(), payload);
        }

        #[test]
        fn written_neighbours_read_back(
            flags: u8,
            target: Ipv6Addr,
            sll in option::of(testing::mac()),
            tll in option::of(testing::mac()),
        ) {
            let nd = Nd { flags, target, sll, tll };
            let mut out = Vec::new();
            nd.write(&mut out);
            prop_assert_eq!(NdView::new(&out).unwrap().to_header(), nd);
        }
    }
}
