//! Whether a flow mod's match fits the packet that it answers, and no packets to other destinations.
//!
//! Section numbers are those of OpenFlow 1.0.0 and 1.3.5.

use crate::bytes::{be16, be32};
use crate::frame::{Packet, oxm};
use crate::identity::IN_PORT;

/// A reply's match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match<'a> {
    /// No match, as in a packet-out.
    None,
    /// `ofp_match` of 1.0 (5.2.3): 40 bytes.
    Fixed(&'a [u8; 40]),
    /// OXM TLVs of 1.3 (7.2.3), and their offset in the message.
    Oxm(&'a [u8], usize),
}

/// The relation of a match to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It matches the packet, and no packets to other destinations.
    Exact,
    /// It also matches packets to other destinations.
    Broad,
    /// It does not match the packet, or a switch would refuse it.
    No,
}

impl Match<'_> {
    /// Returns how it fits the packet.
    pub fn fit(&self, packet: &Packet) -> Fit {
        let (agrees, names_destination) = match self {
            Match::None => (true, true),
            Match::Fixed(fields) => (
                fixed_agrees(fields, packet),
                be32(&fields[..], 0).is_some_and(|wildcards| wildcards & WILDCARD_ETH_DST == 0),
            ),
            Match::Oxm(fields, _) => oxm_fit(fields, packet),
        };
        match (agrees, names_destination) {
            (false, _) => Fit::No,
            (true, false) => Fit::Broad,
            (true, true) => Fit::Exact,
        }
    }

    /// Returns the offset in the message of an exactly matched source MAC, if there is one.
    pub fn eth_src_at(&self) -> Option<usize> {
        match self {
            Match::None => None,
            Match::Fixed(fields) => {
                let wildcards = be32(&fields[..], 0)?;
                (wildcards & WILDCARD_ETH_SRC == 0).then_some(8 + ETH_SRC_IN_FIXED_MATCH)
            }
            Match::Oxm(fields, at) => {
                let mut offset = *at;
                for (header, value) in oxm_fields(fields) {
                    if header == OXM_ETH_SRC {
                        return Some(offset + 4);
                    }
                    offset += 4 + value.len();
                }
                None
            }
        }
    }

    /// Returns the exactly matched source MAC, if there is one.
    pub fn eth_src(&self) -> Option<[u8; 6]> {
        self.mac(WILDCARD_ETH_SRC, ETH_SRC_IN_FIXED_MATCH, OXM_ETH_SRC)
    }

    /// Returns the exactly matched destination MAC, if there is one.
    pub fn eth_dst(&self) -> Option<[u8; 6]> {
        self.mac(WILDCARD_ETH_DST, ETH_DST_IN_FIXED_MATCH, OXM_ETH_DST)
    }

    fn mac(&self, wildcard: u32, at: usize, wanted: u32) -> Option<[u8; 6]> {
        match self {
            Match::None => None,
            Match::Fixed(fields) => {
                let wildcards = be32(&fields[..], 0)?;
                let value = fields[at..at + 6].try_into().ok()?;
                (wildcards & wildcard == 0).then_some(value)
            }
            Match::Oxm(fields, _) => {
                let (_, value) = oxm_fields(fields).find(|&(header, _)| header == wanted)?;
                value.try_into().ok()
            }
        }
    }
}

const WILDCARD_IN_PORT: u32 = 1 << 0;
const WILDCARD_VLAN_VID: u32 = 1 << 1;
const WILDCARD_ETH_SRC: u32 = 1 << 2;
const WILDCARD_ETH_DST: u32 = 1 << 3;
const WILDCARD_ETH_TYPE: u32 = 1 << 4;
const WILDCARD_IP_PROTO: u32 = 1 << 5;
const WILDCARD_TP_SRC: u32 = 1 << 6;
const WILDCARD_TP_DST: u32 = 1 << 7;
const WILDCARD_IPV4_SRC_SHIFT: u32 = 8;
const WILDCARD_IPV4_DST_SHIFT: u32 = 14;
const WILDCARD_VLAN_PCP: u32 = 1 << 20;
const WILDCARD_TOS: u32 = 1 << 21;

const ETH_SRC_IN_FIXED_MATCH: usize = 6;
const ETH_DST_IN_FIXED_MATCH: usize = 12;
/// No VLAN tag (OFP_VLAN_NONE).
const VLAN_NONE: u16 = 0xffff;
/// The six bits of the type of service that are compared.
const DSCP_BITS: u8 = 0xfc;

/// Returns `true` if each field that is not wildcarded has the packet's value. As in switches, fields without a meaning for the
/// EtherType or protocol are ignored.
fn fixed_agrees(fields: &[u8; 40], packet: &Packet) -> bool {
    let wildcards = be32(fields, 0).unwrap_or(0);
    let given = |wildcard| wildcards & wildcard == 0;
    let has16 =
        |wildcard, at: usize, value: u16| !given(wildcard) || be16(fields, at) == Some(value);
    let (vid, pcp) = packet
        .kind
        .vlan()
        .map_or((VLAN_NONE, None), |(vid, pcp)| (vid, Some(pcp)));
    has16(WILDCARD_IN_PORT, 4, IN_PORT as u16)
        && (!given(WILDCARD_ETH_SRC) || fields[6..12] == packet.eth_src)
        && (!given(WILDCARD_ETH_DST) || fields[12..18] == packet.eth_dst)
        && has16(WILDCARD_VLAN_VID, 18, vid)
        && (!given(WILDCARD_VLAN_PCP) || pcp.is_none_or(|pcp| fields[20] == pcp))
        && has16(WILDCARD_ETH_TYPE, 22, packet.kind.eth_type())
        && (!given(WILDCARD_ETH_TYPE) || network_agrees(fields, wildcards, packet))
}

fn network_agrees(fields: &[u8; 40], wildcards: u32, packet: &Packet) -> bool {
    let Some((proto, src, dst)) = packet.network_10() else {
        return true;
    };
    let given = |wildcard| wildcards & wildcard == 0;
    let prefix = |shift: u32| {
        u32::MAX
            .checked_shl((wildcards >> shift) & 0x3f)
            .unwrap_or(0)
    };
    let within = |at: usize, ip: u32, shift: u32| {
        be32(fields, at).is_some_and(|wanted| (wanted ^ ip) & prefix(shift) == 0)
    };
    let tos_agrees = packet
        .kind
        .tos()
        .is_none_or(|tos| (fields[24] ^ tos) & DSCP_BITS == 0);
    let ports_agree = !given(WILDCARD_IP_PROTO)
        || packet.kind.ports().is_none_or(|(src, dst)| {
            (!given(WILDCARD_TP_SRC) || be16(fields, 36) == Some(src))
                && (!given(WILDCARD_TP_DST) || be16(fields, 38) == Some(dst))
        });
    (!given(WILDCARD_TOS) || tos_agrees)
        && (!given(WILDCARD_IP_PROTO) || fields[25] == proto)
        && within(28, src, WILDCARD_IPV4_SRC_SHIFT)
        && within(32, dst, WILDCARD_IPV4_DST_SHIFT)
        && ports_agree
}

const OXM_ETH_DST: u32 = 0x8000_0606;
const OXM_ETH_SRC: u32 = 0x8000_0806;
const OPENFLOW_BASIC: u32 = 0x8000;

/// Returns whether each TLV has the packet's value under its mask, and whether the whole destination is matched. Switches
/// refuse fields that the frame does not have, repeated fields, fields before their prerequisites, masks of fields that
/// cannot be masked, and value bits outside the mask (1.3.5: 7.2.3).
fn oxm_fit(fields: &[u8], packet: &Packet) -> (bool, bool) {
    let (mut seen, mut names_destination, mut taken) = (0u64, false, 0);
    for (header, value) in oxm_fields(fields) {
        taken += 4 + value.len();
        let field = ((header >> 9) & 0x7f) as u8;
        let is_masked = (header >> 8) & 1 == 1;
        let Some(ours) = packet.field(field) else {
            return (false, false);
        };
        let (value, mask) = value.split_at(ours.bytes().len().min(value.len()));
        let mask_len = if is_masked { ours.bytes().len() } else { 0 };
        let is_sound = header >> 16 == OPENFLOW_BASIC
            && value.len() == ours.bytes().len()
            && mask.len() == mask_len
            && (!is_masked || may_be_masked(field))
            && (seen >> field) & 1 == 0
            && prerequisite(field).is_none_or(|other| (seen >> other) & 1 == 1);
        if !is_sound || !agrees_under(mask, value, ours.bytes()) {
            return (false, false);
        }
        seen |= 1 << field;
        let is_whole = mask.iter().all(|&byte| byte == 0xff);
        names_destination |= field == oxm::ETH_DST && is_whole;
    }
    (taken == fields.len(), names_destination)
}

/// Compares two values under a mask; without a mask, compares all bits.
fn agrees_under(mask: &[u8], value: &[u8], ours: &[u8]) -> bool {
    let masks = mask.iter().copied().chain(std::iter::repeat(0xff));
    let mut bits = value.iter().zip(ours).zip(masks);
    bits.all(|((value, ours), mask)| value & !mask == 0 && (value ^ ours) & mask == 0)
}

/// Returns `true` if the field may be masked (1.3.5, table 12).
fn may_be_masked(field: u8) -> bool {
    matches!(
        field,
        oxm::METADATA
            | oxm::ETH_DST
            | oxm::ETH_SRC
            | oxm::VLAN_VID
            | oxm::IPV4_SRC
            | oxm::IPV4_DST
            | oxm::ARP_SPA..=oxm::IPV6_FLABEL | oxm::TUNNEL_ID
    )
}

/// Returns the field that must precede this one (1.3.5, table 12).
fn prerequisite(field: u8) -> Option<u8> {
    match field {
        oxm::IN_PHY_PORT => Some(oxm::IN_PORT),
        oxm::VLAN_PCP => Some(oxm::VLAN_VID),
        oxm::IP_DSCP..=oxm::IPV4_DST | oxm::ARP_OP..=oxm::IPV6_FLABEL => Some(oxm::ETH_TYPE),
        oxm::TCP_SRC..=oxm::UDP_DST => Some(oxm::IP_PROTO),
        _ => None,
    }
}

/// Returns the OXM TLVs up to the first that exceeds the match.
fn oxm_fields(mut fields: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let header = be32(fields, 0)?;
        let end = 4 + (header & 0xff) as usize;
        let value = fields.get(4..end)?;
        fields = &fields[end..];
        Some((header, value))
    })
}
