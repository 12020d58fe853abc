//! Converting fields in 1.3's encoding to a flow match, in one pass, for most matches that programs build.
//!
//! It refuses matches that it does not support; [`OfpMatch`](super::OfpMatch), the reference model, then writes them or returns
//! the error. A test compares both.

use super::{
    MATCH_SIZE, OFP_VLAN_NONE, OFPFW_ALL, OFPFW_DL_DST, OFPFW_DL_SRC, OFPFW_DL_TYPE, OFPFW_DL_VLAN,
    OFPFW_DL_VLAN_PCP, OFPFW_IN_PORT, OFPFW_NW_DST_MASK, OFPFW_NW_DST_SHIFT, OFPFW_NW_PROTO,
    OFPFW_NW_SRC_MASK, OFPFW_NW_SRC_SHIFT, OFPFW_NW_TOS, OFPFW_TP_DST, OFPFW_TP_SRC, VLAN_VID_MASK,
};
use crate::matching::inline::InlineFields;
use crate::of10::port;
use crate::packet::{ether_type, ip_proto};
use crate::{OxmField, PortNo, VLAN_PRESENT};

/// `oxm_hasmask`, in the byte that `oxm_field` shares with it.
const HAS_MASK: u8 = 1;

/// Defines a constant for the byte with `oxm_field` and `oxm_hasmask` of each field that is not masked.
macro_rules! fields {
    ($($name:ident = $field:ident;)+) => {
        $(const $name: u8 = (OxmField::$field as u8) << 1;)+
    };
}

fields! {
    IN_PORT = InPort;
    ETH_DST = EthDst;
    ETH_SRC = EthSrc;
    ETH_TYPE = EthType;
    VLAN_VID = VlanVid;
    VLAN_PCP = VlanPcp;
    IP_DSCP = IpDscp;
    IP_PROTO = IpProto;
    IPV4_SRC = Ipv4Src;
    IPV4_DST = Ipv4Dst;
    TCP_SRC = TcpSrc;
    TCP_DST = TcpDst;
    UDP_SRC = UdpSrc;
    UDP_DST = UdpDst;
    ICMPV4_TYPE = Icmpv4Type;
    ICMPV4_CODE = Icmpv4Code;
    ARP_OP = ArpOp;
    ARP_SPA = ArpSpa;
    ARP_TPA = ArpTpa;
}

/// Returns a set of fields, as in [`InlineFields::present`].
const fn set<const N: usize>(fields: [u8; N]) -> u64 {
    let (mut set, mut at) = (0, 0);
    while at < N {
        set |= 1 << (fields[at] >> 1);
        at += 1;
    }
    set
}

const TCP: u64 = set([TCP_SRC, TCP_DST]);
const UDP: u64 = set([UDP_SRC, UDP_DST]);
const ICMP: u64 = set([ICMPV4_TYPE, ICMPV4_CODE]);
/// Fields that need an `eth_type` of IPv4.
const IPV4: u64 = set([IP_DSCP, IP_PROTO, IPV4_SRC, IPV4_DST]) | TCP | UDP | ICMP;
/// Fields that need an `eth_type` of ARP.
const ARP: u64 = set([ARP_OP, ARP_SPA, ARP_TPA]);

/// Fills in an `ofp_match` of zeros. Returns `false` if the reference model must write it; then `match_` has any content.
#[inline(never)] // inlined, it would keep each field in a variable
pub(crate) fn fill(fields: &InlineFields, match_: &mut [u8; MATCH_SIZE]) -> bool {
    let mut wildcards = OFPFW_ALL;
    let mut at = 0;
    while at < fields.len() {
        let Some(&[_, _, field_and_mask, length, ref body @ ..]) = fields.tlv_at(at) else {
            return false;
        };
        match add(field_and_mask, body, match_) {
            0 => return false,
            bits => wildcards &= !bits,
        }
        at += 4 + usize::from(length);
    }
    match_[..4].copy_from_slice(&wildcards.to_be_bytes());
    has_prerequisites(fields.present(), match_)
}

/// Adds a field, and returns the wildcard bits that must be cleared; `None` if the reference model must add it. `body` starts
/// with the field's value.
#[inline(always)]
fn add(field_and_mask: u8, body: &[u8; 8], match_: &mut [u8; MATCH_SIZE]) -> u32 {
    let [b0, b1, ..] = *body;
    match field_and_mask {
        IN_PORT => add_port(body, match_),
        ETH_SRC => put::<6>(body, match_, 6, OFPFW_DL_SRC),
        ETH_DST => put::<6>(body, match_, 12, OFPFW_DL_DST),
        VLAN_VID => add_vlan(u16::from_be_bytes([b0, b1]), match_),
        VLAN_PCP => put::<1>(body, match_, 20, OFPFW_DL_VLAN_PCP),
        ETH_TYPE => put::<2>(body, match_, 22, OFPFW_DL_TYPE),
        IP_DSCP => put::<1>(&[b0 << 2], match_, 24, OFPFW_NW_TOS),
        IP_PROTO => put::<1>(body, match_, 25, OFPFW_NW_PROTO),
        // 1.0 has eight bits for the operation.
        ARP_OP if b0 == 0 => put::<1>(&[b1], match_, 25, OFPFW_NW_PROTO),
        IPV4_SRC | ARP_SPA => put::<4>(body, match_, 28, OFPFW_NW_SRC_MASK),
        IPV4_DST | ARP_TPA => put::<4>(body, match_, 32, OFPFW_NW_DST_MASK),
        TCP_SRC | UDP_SRC => put::<2>(body, match_, 36, OFPFW_TP_SRC),
        TCP_DST | UDP_DST => put::<2>(body, match_, 38, OFPFW_TP_DST),
        ICMPV4_TYPE => put::<1>(body, match_, 37, OFPFW_TP_SRC),
        ICMPV4_CODE => put::<1>(body, match_, 39, OFPFW_TP_DST),
        _ => add_prefix(field_and_mask, body, match_),
    }
}

/// Writes the first bytes of `body` to an offset. Returns `wildcards`.
#[inline(always)]
fn put<const N: usize>(
    body: &[u8],
    match_: &mut [u8; MATCH_SIZE],
    at: usize,
    wildcards: u32,
) -> u32 {
    match_[at..at + N].copy_from_slice(&body[..N]);
    wildcards
}

#[inline(always)]
fn add_port(body: &[u8; 8], match_: &mut [u8; MATCH_SIZE]) -> u32 {
    let port = body.first_chunk().copied().map(u32::from_be_bytes);
    match port.and_then(|port| wire_port(PortNo(port))) {
        Some(number) => put::<2>(&number, match_, 4, OFPFW_IN_PORT),
        None => 0,
    }
}

/// Returns the bytes of a port number; `None` if 1.0 does not have it.
#[inline(always)]
pub(crate) fn wire_port(port: PortNo) -> Option<[u8; 2]> {
    // All numbers below this are the same in both versions.
    const OFPP_MAX: u32 = 0xff00;
    let number = match port.0 {
        number if number < OFPP_MAX => number as u16,
        _ => port::encode_number(port, "port").ok()?,
    };
    Some(number.to_be_bytes())
}

fn add_vlan(vid: u16, match_: &mut [u8; MATCH_SIZE]) -> u32 {
    let vid = match vid {
        0 => OFP_VLAN_NONE,
        vid if vid & VLAN_PRESENT != 0 => vid & VLAN_VID_MASK,
        _ => return 0,
    };
    put::<2>(&vid.to_be_bytes(), match_, 18, OFPFW_DL_VLAN)
}

/// Adds a field with a mask, if it is an address with a prefix of at least one bit.
fn add_prefix(field_and_mask: u8, body: &[u8; 8], match_: &mut [u8; MATCH_SIZE]) -> u32 {
    let (at, shift, bits) = match field_and_mask ^ HAS_MASK {
        IPV4_SRC | ARP_SPA => (28, OFPFW_NW_SRC_SHIFT, OFPFW_NW_SRC_MASK),
        IPV4_DST | ARP_TPA => (32, OFPFW_NW_DST_SHIFT, OFPFW_NW_DST_MASK),
        _ => return 0,
    };
    let [_, _, _, _, m0, m1, m2, m3] = *body;
    let mask = u32::from_be_bytes([m0, m1, m2, m3]);
    let wildcarded = mask.trailing_zeros();
    if mask == 0 || mask != u32::MAX << wildcarded {
        return 0;
    }
    put::<4>(body, match_, at, bits & !(wildcarded << shift))
}

/// Returns `true` if each field has its prerequisites. A type or protocol that is not compared is 0 in `match_`.
#[inline]
fn has_prerequisites(present: u64, match_: &[u8; MATCH_SIZE]) -> bool {
    let has = |set| present & set != 0;
    let eth_type = u16::from_be_bytes([match_[22], match_[23]]);
    let nw_proto = match_[25];
    (!has(IPV4) || eth_type == ether_type::IPV4)
        && (!has(ARP) || eth_type == ether_type::ARP)
        && (!has(TCP) || nw_proto == ip_proto::TCP)
        && (!has(UDP) || nw_proto == ip_proto::UDP)
        && (!has(ICMP) || nw_proto == ip_proto::ICMPV4)
        && (!has(set([VLAN_PCP])) || has(set([VLAN_VID])))
}
