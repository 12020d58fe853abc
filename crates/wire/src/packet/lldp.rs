//! LLDP (IEEE 802.1AB), with which stations announce themselves to neighbours, and topology discovery finds links.

use super::bytes::{split_at, split_header, u16_at};
use super::{Ethernet, PacketError, ether_type, ethernet};
use crate::MacAddr;

const LAYER: &str = "LLDP frame";
const TLV_LAYER: &str = "LLDP TLV";

/// The group address of the nearest bridge, which no conforming bridge forwards.
pub const NEAREST_BRIDGE: MacAddr = MacAddr::new([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);

/// The size of a TLV's header in bytes.
pub const TLV_HEADER_LEN: usize = 2;

/// The maximum size of a TLV's value, in bytes.
pub const MAX_VALUE_LEN: usize = 511;

/// The maximum size of a chassis or port id, in bytes.
pub const MAX_ID_LEN: usize = 255;

/// Chassis id subtypes (IEEE 802.1AB, table 8-2).
pub mod chassis_id {
    /// A MAC address.
    pub const MAC_ADDRESS: u8 = 4;
    /// A network address, after its address family.
    pub const NETWORK_ADDRESS: u8 = 5;
    /// An interface name.
    pub const INTERFACE_NAME: u8 = 6;
    /// A value chosen by the sender.
    pub const LOCALLY_ASSIGNED: u8 = 7;
}

/// Port id subtypes (IEEE 802.1AB, table 8-3).
pub mod port_id {
    /// A port of a chassis, as in its entity MIB.
    pub const PORT_COMPONENT: u8 = 2;
    /// A MAC address.
    pub const MAC_ADDRESS: u8 = 3;
    /// An interface name.
    pub const INTERFACE_NAME: u8 = 5;
    /// A value chosen by the sender.
    pub const LOCALLY_ASSIGNED: u8 = 7;
}

mod kind {
    pub const END: u8 = 0;
    pub const CHASSIS_ID: u8 = 1;
    pub const PORT_ID: u8 = 2;
    pub const TTL: u8 = 3;
    pub const PORT_DESCRIPTION: u8 = 4;
    pub const SYSTEM_NAME: u8 = 5;
    pub const SYSTEM_DESCRIPTION: u8 = 6;
    pub const ORGANIZATION_SPECIFIC: u8 = 127;
}

const KIND_SHIFT: u32 = 9;

/// A frame, read in place. It starts after the EtherType that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LldpView<'a> {
    chassis_id: LldpId<'a>,
    port_id: LldpId<'a>,
    ttl_s: u16,
    payload: &'a [u8],
}

impl<'a> LldpView<'a> {
    /// Reads the frame at the start of `bytes`, up to its End TLV or, leniently, the end of the bytes.
    ///
    /// # Errors
    /// If a TLV is truncated or too short for its type, or the frame does not start with chassis id, port id and time to live,
    /// in this order (IEEE 802.1AB, section 8.2).
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (chassis_id, rest) = split_id("first TLV type", kind::CHASSIS_ID, bytes)?;
        let (port_id, rest) = split_id("second TLV type", kind::PORT_ID, rest)?;
        let (ttl, payload) = split_expected("third TLV type", kind::TTL, rest)?;
        let (ttl_s, _) = split_header::<2>("LLDP time to live", ttl)?;
        let mut rest = payload;
        while let Some((_, next)) = split_optional(rest)? {
            rest = next;
        }
        Ok(Self {
            chassis_id,
            port_id,
            ttl_s: u16::from_be_bytes(*ttl_s),
            payload,
        })
    }

    /// Returns the sender.
    #[inline]
    pub fn chassis_id(&self) -> LldpId<'a> {
        self.chassis_id
    }

    /// Returns the sender's port.
    #[inline]
    pub fn port_id(&self) -> LldpId<'a> {
        self.port_id
    }

    /// Returns the time to live in seconds; 0 if the sender is shutting down.
    #[inline]
    pub fn ttl_s(&self) -> u16 {
        self.ttl_s
    }

    /// Returns the sender's name, if present.
    pub fn system_name(&self) -> Option<&'a [u8]> {
        self.tlvs().find_map(|tlv| match tlv {
            LldpTlv::SystemName(name) => Some(name),
            _ => None,
        })
    }

    /// Returns the sender's description, if present.
    pub fn system_description(&self) -> Option<&'a [u8]> {
        self.tlvs().find_map(|tlv| match tlv {
            LldpTlv::SystemDescription(description) => Some(description),
            _ => None,
        })
    }

    /// Returns the optional TLVs, which follow the time to live, without the End TLV.
    #[inline]
    pub fn tlvs(&self) -> LldpTlvs<'a> {
        LldpTlvs { rest: self.payload }
    }

    /// Returns everything after the time to live: optional TLVs, End TLV, padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the frame as a plain struct.
    pub fn to_header(&self) -> Lldp<'a> {
        Lldp {
            chassis_id: self.chassis_id,
            port_id: self.port_id,
            ttl_s: self.ttl_s,
            tlvs: self.tlvs().collect(),
        }
    }
}

/// The optional TLVs of a frame.
#[derive(Clone, Debug)]
pub struct LldpTlvs<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for LldpTlvs<'a> {
    type Item = LldpTlv<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // The constructor of the view has already checked all TLVs.
        let (tlv, rest) = split_optional(self.rest).ok().flatten()?;
        self.rest = rest;
        Some(tlv)
    }
}

/// Splits a TLV off the front: its type, its value, and the rest.
#[inline]
fn split_tlv(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), PacketError> {
    let (header, rest) = split_header::<TLV_HEADER_LEN>(TLV_LAYER, bytes)?;
    let kind_len = u16_at(header, 0..2);
    let (value, rest) = split_at(TLV_LAYER, rest, usize::from(kind_len) & MAX_VALUE_LEN)?;
    Ok(((kind_len >> KIND_SHIFT) as u8, value, rest))
}

/// Splits off a TLV that must be of type `expected`.
#[inline]
fn split_expected<'a>(
    field: &'static str,
    expected: u8,
    bytes: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), PacketError> {
    let (kind, value, rest) = split_tlv(bytes)?;
    PacketError::check_value(LAYER, field, kind, expected)?;
    Ok((value, rest))
}

/// Splits off a chassis or port id.
#[inline]
fn split_id<'a>(
    field: &'static str,
    expected: u8,
    bytes: &'a [u8],
) -> Result<(LldpId<'a>, &'a [u8]), PacketError> {
    let (value, rest) = split_expected(field, expected, bytes)?;
    let ([subtype], id) = split_header("LLDP id", value)?;
    Ok((
        LldpId {
            subtype: *subtype,
            id,
        },
        rest,
    ))
}

/// Splits off an optional TLV; `None` at the end of the frame.
#[inline]
fn split_optional(bytes: &[u8]) -> Result<Option<(LldpTlv<'_>, &[u8])>, PacketError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (kind, value, rest) = split_tlv(bytes)?;
    if kind == kind::END {
        return Ok(None);
    }
    Ok(Some((LldpTlv::new(kind, value)?, rest)))
}

/// A chassis or port id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LldpId<'a> {
    /// The type of the id: see [`chassis_id`] and [`port_id`].
    pub subtype: u8,
    /// The id, at most [`MAX_ID_LEN`] bytes.
    pub id: &'a [u8],
}

impl LldpId<'_> {
    fn write(&self, kind: u8, out: &mut Vec<u8>) -> Result<(), PacketError> {
        PacketError::check_limit(LAYER, "id", self.id.len(), MAX_ID_LEN)?;
        write_tlv(out, kind, &[&[self.subtype], self.id])
    }
}

/// An optional TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LldpTlv<'a> {
    /// The port's description, as text.
    PortDescription(&'a [u8]),
    /// The sender's name, as text.
    SystemName(&'a [u8]),
    /// The sender's description, as text.
    SystemDescription(&'a [u8]),
    /// A TLV defined by an organization.
    OrganizationSpecific {
        /// The organization.
        oui: [u8; 3],
        /// The organization's own type.
        subtype: u8,
        /// The information.
        info: &'a [u8],
    },
    /// Any other type, such as capabilities and management address.
    Other {
        /// The type, which must not have its own variant here; its low 7 bits are written.
        kind: u8,
        /// The value.
        value: &'a [u8],
    },
}

impl<'a> LldpTlv<'a> {
    fn new(kind: u8, value: &'a [u8]) -> Result<Self, PacketError> {
        Ok(match kind {
            kind::PORT_DESCRIPTION => Self::PortDescription(value),
            kind::SYSTEM_NAME => Self::SystemName(value),
            kind::SYSTEM_DESCRIPTION => Self::SystemDescription(value),
            kind::ORGANIZATION_SPECIFIC => {
                let ([oui @ .., subtype], info) =
                    split_header::<4>("LLDP organization-specific TLV", value)?;
                Self::OrganizationSpecific {
                    oui: *oui,
                    subtype: *subtype,
                    info,
                }
            }
            _ => Self::Other { kind, value },
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        match *self {
            Self::PortDescription(text) => write_tlv(out, kind::PORT_DESCRIPTION, &[text]),
            Self::SystemName(text) => write_tlv(out, kind::SYSTEM_NAME, &[text]),
            Self::SystemDescription(text) => write_tlv(out, kind::SYSTEM_DESCRIPTION, &[text]),
            Self::OrganizationSpecific { oui, subtype, info } => {
                write_tlv(out, kind::ORGANIZATION_SPECIFIC, &[&oui, &[subtype], info])
            }
            Self::Other { kind, value } => write_tlv(out, kind, &[value]),
        }
    }
}

/// Appends a TLV whose value consists of `pieces`.
fn write_tlv(out: &mut Vec<u8>, kind: u8, pieces: &[&[u8]]) -> Result<(), PacketError> {
    let len = pieces.iter().map(|piece| piece.len()).sum();
    PacketError::check_limit(TLV_LAYER, "value", len, MAX_VALUE_LEN)?;
    let kind_len = u16::from(kind) << KIND_SHIFT | len as u16;
    out.extend_from_slice(&kind_len.to_be_bytes());
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    Ok(())
}

/// A frame to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lldp<'a> {
    /// The sender.
    pub chassis_id: LldpId<'a>,
    /// The sender's port.
    pub port_id: LldpId<'a>,
    /// The time to live in seconds; 0 if the sender is shutting down.
    pub ttl_s: u16,
    /// The optional TLVs, without the End TLV.
    pub tlvs: Vec<LldpTlv<'a>>,
}

impl Lldp<'_> {
    /// Appends the TLVs, including the End TLV.
    ///
    /// # Errors
    /// If an id exceeds [`MAX_ID_LEN`] or a value [`MAX_VALUE_LEN`]. Then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        let start = out.len();
        let written = self.write_tlvs(out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_tlvs(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        self.chassis_id.write(kind::CHASSIS_ID, out)?;
        self.port_id.write(kind::PORT_ID, out)?;
        write_tlv(out, kind::TTL, &[&self.ttl_s.to_be_bytes()])?;
        self.tlvs.iter().try_for_each(|tlv| tlv.write(out))?;
        write_tlv(out, kind::END, &[])
    }

    /// Appends a whole Ethernet frame from `src` to the nearest bridge, padded to the minimum size.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_frame(&self, src: MacAddr, out: &mut Vec<u8>) -> Result<(), PacketError> {
        let start = out.len();
        Ethernet {
            dst: NEAREST_BRIDGE,
            src,
            ether_type: ether_type::LLDP,
        }
        .write(out);
        let written = self.write(out);
        match written {
            Ok(()) => ethernet::pad_frame(out, start),
            Err(_) => out.truncate(start),
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{EthernetView, testing};
    use super::*;

    const GOLDEN: [u8; 50] = [
        0x02, 0x07, 0x04, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, // chassis id: MAC address
        0x04, 0x05, 0x05, b'e', b't', b'h', b'1', // port id: interface name
        0x06, 0x02, 0x00, 0x78, // time to live: 120 s
        0x08, 0x02, b'u', b'p', // port description
        0x0a, 0x02, b's', b'1', // system name
        0x0c, 0x03, b'b', b'o', b'x', // system description
        0x0e, 0x04, 0x00, 0x04, 0x00, 0x04, // capabilities: a bridge, bridging
        0xfe, 0x07, 0x00, 0x26, 0xe1, 0x00, 0x01, 0x02,
        0x03, // organization-specific: OpenFlow
        0x00, 0x00, // end
    ];

    const CHASSIS: LldpId<'static> = LldpId {
        subtype: chassis_id::MAC_ADDRESS,
        id: &[2, 0, 0, 0, 0, 1],
    };

    fn header() -> Lldp<'static> {
        Lldp {
            chassis_id: CHASSIS,
            port_id: LldpId {
                subtype: port_id::INTERFACE_NAME,
                id: b"eth1",
            },
            ttl_s: 120,
            tlvs: vec![
                LldpTlv::PortDescription(b"up"),
                LldpTlv::SystemName(b"s1"),
                LldpTlv::SystemDescription(b"box"),
                LldpTlv::Other {
                    kind: 7,
                    value: &[0, 4, 0, 4],
                },
                LldpTlv::OrganizationSpecific {
                    oui: [0x00, 0x26, 0xe1],
                    subtype: 0,
                    info: &[1, 2, 3],
                },
            ],
        }
    }

    #[test]
    fn reads_golden_bytes() {
        let view = LldpView::new(&GOLDEN).unwrap();
        assert_eq!(view.to_header(), header());
        assert_eq!(view.system_name(), Some(&b"s1"[..]));
        assert_eq!(view.system_description(), Some(&b"box"[..]));
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        header().write(&mut out).unwrap();
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn reads_frames_padded_or_without_an_end() {
        let padded = [&GOLDEN[..], &[0xff; 9]].concat();
        assert_eq!(LldpView::new(&padded).unwrap().to_header(), header());
        assert_eq!(LldpView::new(&GOLDEN[..48]).unwrap().to_header(), header());
    }

    #[test]
    fn writes_whole_frames() {
        let src = MacAddr::new([2, 0, 0, 0, 0, 9]);
        let mut out = Vec::new();
        Lldp {
            tlvs: Vec::new(),
            ..header()
        }
        .write_frame(src, &mut out)
        .unwrap();
        assert_eq!(out.len(), ethernet::MIN_FRAME_LEN);
        let frame = EthernetView::new(&out).unwrap();
        assert_eq!(
            (frame.dst(), frame.src(), frame.ether_type()),
            (NEAREST_BRIDGE, src, ether_type::LLDP)
        );
        assert_eq!(
            LldpView::new(frame.payload()).unwrap().port_id(),
            header().port_id
        );
    }

    #[test]
    fn refuses_frames_without_the_mandatory_tlvs() {
        let error = LldpView::new(&GOLDEN[9..]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "LLDP frame has first TLV type 0x2, but 0x1 was expected"
        );
        let error = LldpView::new(&GOLDEN[..16]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: TLV_LAYER,
                needed: 2,
                available: 0
            }
        );
        let error = LldpView::new(&[0x02, 0x00]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: "LLDP id",
                needed: 1,
                available: 0
            }
        );
    }

    #[test]
    fn refuses_tlvs_cut_short() {
        let error = LldpView::new(&GOLDEN[..23]).unwrap_err();
        assert_eq!(
            error,
            PacketError::Truncated {
                layer: TLV_LAYER,
                needed: 2,
                available: 1
            }
        );
        let short = [&GOLDEN[..20], &[0xfe, 0x03, 0x00, 0x26, 0xe1]].concat();
        let error = LldpView::new(&short).unwrap_err();
        assert!(matches!(
            error,
            PacketError::Truncated {
                needed: 4,
                available: 3,
                ..
            }
        ));
    }

    #[test]
    fn refuses_to_write_oversized_parts() {
        let mut out = Vec::new();
        let long = Lldp {
            tlvs: vec![LldpTlv::SystemName(&[b'x'; 512])],
            ..header()
        };
        assert!(matches!(
            long.write(&mut out),
            Err(PacketError::TooLong { limit: 511, .. })
        ));
        let long = Lldp {
            port_id: LldpId {
                subtype: 7,
                id: &[b'x'; 256],
            },
            ..header()
        };
        assert!(matches!(
            long.write_frame(MacAddr::ZERO, &mut out),
            Err(PacketError::TooLong { limit: 255, .. })
        ));
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            if let Ok(view) = LldpView::new(&bytes) {
                view.to_header();
            }
        }

        #[test]
        fn written_headers_read_back(
            chassis in (any::<u8>(), testing::bytes(MAX_ID_LEN)),
            port in (any::<u8>(), testing::bytes(MAX_ID_LEN)),
            ttl_s: u16,
            tlvs in vec((4u8..127, testing::bytes(40)), 0..6),
            organization: ([u8; 3], u8),
        ) {
            let tlvs = tlvs.iter().map(|(kind, value)| LldpTlv::new(*kind, value).unwrap());
            let mut tlvs: Vec<_> = tlvs.collect();
            let (oui, subtype) = organization;
            tlvs.push(LldpTlv::OrganizationSpecific { oui, subtype, info: &chassis.1 });
            let header = Lldp {
                chassis_id: LldpId { subtype: chassis.0, id: &chassis.1 },
                port_id: LldpId { subtype: port.0, id: &port.1 },
                ttl_s,
                tlvs,
            };
            let mut out = Vec::new();
            header.write(&mut out).unwrap();
            prop_assert_eq!(LldpView::new(&out).unwrap().to_header(), header);
        }
    }
}
