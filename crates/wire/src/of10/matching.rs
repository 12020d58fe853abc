//! The flow match, `ofp_match` (section 5.2.3): twelve fields, each with wildcard bits.
//!
//! Which OXM fields `nw_*` and `tp_*` stand for depends on the packet's type and protocol:
//!
//! | 1.0 | IPv4 | ARP | IPv4 with TCP | UDP | ICMP |
//! | --- | --- | --- | --- | --- | --- |
//! | `nw_proto` | `ip_proto` | `arp_op` | | | |
//! | `nw_src`, `nw_dst` | `ipv4_src`, `ipv4_dst` | `arp_spa`, `arp_tpa` | | | |
//! | `nw_tos` | `ip_dscp` | | | | |
//! | `tp_src`, `tp_dst` | | | `tcp_src`, `tcp_dst` | `udp_src`, `udp_dst` | `icmpv4_type`, `icmpv4_code` |
//!
//! `dl_vlan` is `vlan_vid`: OFP_VLAN_NONE is 0 (no tag), and a VLAN id comes with OFPVID_PRESENT. `dl_vlan_pcp` with
//! `dl_vlan` wildcarded is a match on tagged packets, whichever their VLAN: `vlan_vid=0x1000/0x1000`. A match on untagged
//! packets may have a `dl_vlan_pcp`, too. It does not count, and is no field; [`Match::pcp_of_untagged`] returns it.

use super::{MATCH_SIZE, fits, port, unsupported};
use crate::matching::Repr;
use crate::packet::{ether_type, ip_proto};
use crate::{
    DecodeError, EncodeError, Field, Match, OxmField, PortNo, Put, Reader, VLAN_PRESENT, Version,
};

/// Wildcard bits (`ofp_flow_wildcards`). A set bit means that the field does not count.
const OFPFW_IN_PORT: u32 = 1 << 0;
const OFPFW_DL_VLAN: u32 = 1 << 1;
const OFPFW_DL_SRC: u32 = 1 << 2;
const OFPFW_DL_DST: u32 = 1 << 3;
const OFPFW_DL_TYPE: u32 = 1 << 4;
pub(crate) const OFPFW_NW_PROTO: u32 = 1 << 5;
pub(crate) const OFPFW_TP_SRC: u32 = 1 << 6;
pub(crate) const OFPFW_TP_DST: u32 = 1 << 7;
const OFPFW_NW_SRC_SHIFT: u32 = 8;
pub(crate) const OFPFW_NW_SRC_MASK: u32 = 0x3f << OFPFW_NW_SRC_SHIFT;
const OFPFW_NW_DST_SHIFT: u32 = 14;
pub(crate) const OFPFW_NW_DST_MASK: u32 = 0x3f << OFPFW_NW_DST_SHIFT;
pub(crate) const OFPFW_DL_VLAN_PCP: u32 = 1 << 20;
pub(crate) const OFPFW_NW_TOS: u32 = 1 << 21;
const OFPFW_ALL: u32 = (1 << 22) - 1;

/// `dl_vlan` of packets without a tag.
const OFP_VLAN_NONE: u16 = 0xffff;
pub(crate) const VLAN_VID_MASK: u16 = 0x0fff;
/// OFPVID_PRESENT as a value, and as a mask, of `vlan_vid`.
const PRESENT: u128 = VLAN_PRESENT as u128;

/// The capacity of [`Fields`].
pub(crate) const FIELDS_MAX: usize = 12;

/// Up to as many fields as in `ofp_match`, without an allocation.
pub(crate) struct Fields<'a> {
    fields: [Option<Field<'a>>; FIELDS_MAX],
    /// The index of the next field to return.
    next: usize,
    /// The index after the last field.
    end: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new() -> Self {
        Self {
            fields: [None; FIELDS_MAX],
            next: 0,
            end: 0,
        }
    }

    pub(crate) fn only_in_port(port: PortNo) -> Self {
        let mut fields = Self::new();
        fields.push_exact(OxmField::InPort, port.0);
        fields
    }

    /// Adds a field, of at most [`FIELDS_MAX`].
    pub(crate) fn push(&mut self, field: Field<'a>) {
        self.fields[self.end] = Some(field);
        self.end += 1;
    }

    /// Adds a field all of whose bits count.
    pub(crate) fn push_exact(&mut self, field: OxmField, value: impl Into<u128>) {
        self.push(Field::exact(field, value.into()));
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let field = self.fields.get_mut(self.next)?.take()?;
        self.next += 1;
        Some(field)
    }
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Match<'a>, DecodeError> {
    let bytes = reader.take(MATCH_SIZE)?;
    let bytes = bytes.first_chunk().expect("as many bytes were taken");
    Ok(Match::of10(bytes))
}

/// Returns the OXM fields for the bytes of an `ofp_match`, each after its prerequisites.
pub(crate) fn fields<'a>(bytes: &'a [u8; MATCH_SIZE]) -> Fields<'a> {
    let flat = OfpMatch::read(bytes);
    let mut fields = Fields::new();
    flat.push_link_fields(&mut fields);
    flat.push_network_fields(&mut fields);
    fields
}

/// Returns the `dl_vlan_pcp` of a match on untagged packets, where it has no effect.
pub(crate) fn pcp_of_untagged(bytes: &[u8; MATCH_SIZE]) -> Option<u8> {
    let flat = OfpMatch::read(bytes);
    let has_both = flat.has(OFPFW_DL_VLAN) && flat.has(OFPFW_DL_VLAN_PCP);
    (has_both && flat.dl_vlan == OFP_VLAN_NONE).then_some(flat.dl_vlan_pcp)
}

/// Returns `true` if a match has no wildcards in 1.0.
pub(crate) fn is_without_wildcards(match_: &Match) -> bool {
    let wildcards = match &match_.0 {
        Repr::Of10(bytes) => Some(OfpMatch::read(bytes).wildcards & OFPFW_ALL),
        _ => OfpMatch::from_fields(match_)
            .ok()
            .map(|flat| flat.wildcards),
    };
    wildcards == Some(0)
}

/// Appends the `ofp_match`.
///
/// # Errors
/// [`EncodeError`], naming the field, if the match has something that 1.0 lacks: other fields, masks other than address
/// prefixes, or a field without its prerequisites.
pub(crate) fn encode(match_: &Match, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match &match_.0 {
        Repr::Of10(bytes) => out.put(*bytes),
        // "Every header field" means every one that 1.0 knows; of an IPv6 packet, the Ethernet header.
        Repr::Exact(packet) => {
            let fields = Match::from(packet.fields_in(Version::Of10));
            OfpMatch::from_fields(&fields)?.write(out);
        }
        _ => OfpMatch::from_fields(match_)?.write(out),
    }
    Ok(())
}

/// `ofp_match`, with its fields' names.
struct OfpMatch {
    wildcards: u32,
    in_port: u16,
    dl_src: [u8; 6],
    dl_dst: [u8; 6],
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

/// `count` bytes of a match from `at` on.
fn bytes_at<const COUNT: usize>(bytes: &[u8; MATCH_SIZE], at: usize) -> [u8; COUNT] {
    std::array::from_fn(|index| bytes[at + index])
}

impl OfpMatch {
    const ANY: Self = Self {
        wildcards: OFPFW_ALL,
        in_port: 0,
        dl_src: [0; 6],
        dl_dst: [0; 6],
        dl_vlan: 0,
        dl_vlan_pcp: 0,
        dl_type: 0,
        nw_tos: 0,
        nw_proto: 0,
        nw_src: 0,
        nw_dst: 0,
        tp_src: 0,
        tp_dst: 0,
    };

    fn read(bytes: &[u8; MATCH_SIZE]) -> Self {
        Self {
            wildcards: u32::from_be_bytes(bytes_at(bytes, 0)),
            in_port: u16::from_be_bytes(bytes_at(bytes, 4)),
            dl_src: bytes_at(bytes, 6),
            dl_dst: bytes_at(bytes, 12),
            dl_vlan: u16::from_be_bytes(bytes_at(bytes, 18)),
            dl_vlan_pcp: bytes[20],
            dl_type: u16::from_be_bytes(bytes_at(bytes, 22)),
            nw_tos: bytes[24],
            nw_proto: bytes[25],
            nw_src: u32::from_be_bytes(bytes_at(bytes, 28)),
            nw_dst: u32::from_be_bytes(bytes_at(bytes, 32)),
            tp_src: u16::from_be_bytes(bytes_at(bytes, 36)),
            tp_dst: u16::from_be_bytes(bytes_at(bytes, 38)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.wildcards);
        out.put_u16(self.in_port);
        out.put(&self.dl_src);
        out.put(&self.dl_dst);
        out.put_u16(self.dl_vlan);
        out.put(&[self.dl_vlan_pcp, 0]);
        out.put_u16(self.dl_type);
        out.put(&[self.nw_tos, self.nw_proto, 0, 0]);
        out.put_u32(self.nw_src);
        out.put_u32(self.nw_dst);
        out.put_u16(self.tp_src);
        out.put_u16(self.tp_dst);
    }
}

/// Reading.
impl OfpMatch {
    /// Returns `true` if the field with this wildcard bit counts.
    fn has(&self, wildcard: u32) -> bool {
        self.wildcards & wildcard == 0
    }

    fn push_link_fields(&self, fields: &mut Fields) {
        if self.has(OFPFW_IN_PORT) {
            fields.push_exact(OxmField::InPort, port::decode_number(self.in_port).0);
        }
        if self.has(OFPFW_DL_DST) {
            fields.push_exact(OxmField::EthDst, mac_value(self.dl_dst));
        }
        if self.has(OFPFW_DL_SRC) {
            fields.push_exact(OxmField::EthSrc, mac_value(self.dl_src));
        }
        self.push_vlan_fields(fields);
        if self.has(OFPFW_DL_TYPE) {
            fields.push_exact(OxmField::EthType, self.dl_type);
        }
    }

    fn push_vlan_fields(&self, fields: &mut Fields) {
        match (self.has(OFPFW_DL_VLAN), self.has(OFPFW_DL_VLAN_PCP)) {
            (true, _) if self.dl_vlan == OFP_VLAN_NONE => {
                // An untagged packet has no priority, so `dl_vlan_pcp` cannot count.
                return fields.push_exact(OxmField::VlanVid, 0_u16);
            }
            (true, _) => {
                let vid = self.dl_vlan & VLAN_VID_MASK;
                fields.push_exact(OxmField::VlanVid, vid | VLAN_PRESENT);
            }
            (false, true) => fields.push(Field::masked(OxmField::VlanVid, PRESENT, PRESENT)),
            (false, false) => {}
        }
        if self.has(OFPFW_DL_VLAN_PCP) {
            fields.push_exact(OxmField::VlanPcp, self.dl_vlan_pcp);
        }
    }

    fn push_network_fields(&self, fields: &mut Fields) {
        match self.dl_type {
            _ if !self.has(OFPFW_DL_TYPE) => {}
            ether_type::IPV4 => self.push_ipv4_fields(fields),
            ether_type::ARP => self.push_arp_fields(fields),
            _ => {}
        }
    }

    fn push_ipv4_fields(&self, fields: &mut Fields) {
        if self.has(OFPFW_NW_TOS) {
            fields.push_exact(OxmField::IpDscp, self.nw_tos >> 2);
        }
        if self.has(OFPFW_NW_PROTO) {
            fields.push_exact(OxmField::IpProto, self.nw_proto);
        }
        self.push_addresses(OxmField::Ipv4Src, OxmField::Ipv4Dst, fields);
        match self.nw_proto {
            _ if !self.has(OFPFW_NW_PROTO) => {}
            ip_proto::TCP => self.push_ports(OxmField::TcpSrc, OxmField::TcpDst, fields),
            ip_proto::UDP => self.push_ports(OxmField::UdpSrc, OxmField::UdpDst, fields),
            ip_proto::ICMPV4 => self.push_ports(OxmField::Icmpv4Type, OxmField::Icmpv4Code, fields),
            _ => {}
        }
    }

    fn push_arp_fields(&self, fields: &mut Fields) {
        if self.has(OFPFW_NW_PROTO) {
            fields.push_exact(OxmField::ArpOp, self.nw_proto);
        }
        self.push_addresses(OxmField::ArpSpa, OxmField::ArpTpa, fields);
    }

    fn push_addresses(&self, source: OxmField, destination: OxmField, fields: &mut Fields) {
        for (field, address, shift) in [
            (source, self.nw_src, OFPFW_NW_SRC_SHIFT),
            (destination, self.nw_dst, OFPFW_NW_DST_SHIFT),
        ] {
            // The number of wildcarded low bits of the address; all from 32 on.
            let wildcarded = self.wildcards >> shift & 0x3f;
            if let Some(mask) = u32::MAX.checked_shl(wildcarded) {
                fields.push(Field::masked(field, address.into(), mask.into()));
            }
        }
    }

    /// ICMP's type and code have eight bits each; the low ones of `tp_src` and `tp_dst`.
    fn push_ports(&self, source: OxmField, destination: OxmField, fields: &mut Fields) {
        if self.has(OFPFW_TP_SRC) {
            fields.push_exact(source, self.tp_src);
        }
        if self.has(OFPFW_TP_DST) {
            fields.push_exact(destination, self.tp_dst);
        }
    }
}

/// The fields on which the presence of others depends.
struct Context {
    dl_type: Option<u128>,
    nw_proto: Option<u128>,
    /// Whether the match requires a VLAN tag, or requires that there is none: 1.0 can express a priority for both.
    has_vlan: bool,
    /// Whether `vlan_pcp` is matched.
    has_pcp: bool,
}

impl Context {
    fn of(match_: &Match) -> Self {
        let value = |field| match_.get(field).map(|(value, _)| value);
        Self {
            dl_type: value(OxmField::EthType),
            nw_proto: value(OxmField::IpProto),
            has_vlan: match_.get(OxmField::VlanVid).is_some_and(|(value, mask)| {
                value & PRESENT != 0 || (value, mask) == (0, OxmField::VlanVid.full_mask())
            }),
            has_pcp: value(OxmField::VlanPcp).is_some(),
        }
    }

    fn allows(&self, field: OxmField) -> bool {
        let ipv4 = self.dl_type == Some(ether_type::IPV4.into());
        let protocol = |number: u8| ipv4 && self.nw_proto == Some(number.into());
        match field {
            OxmField::VlanPcp => self.has_vlan,
            OxmField::IpDscp | OxmField::IpProto | OxmField::Ipv4Src | OxmField::Ipv4Dst => ipv4,
            OxmField::ArpOp | OxmField::ArpSpa | OxmField::ArpTpa => {
                self.dl_type == Some(ether_type::ARP.into())
            }
            OxmField::TcpSrc | OxmField::TcpDst => protocol(ip_proto::TCP),
            OxmField::UdpSrc | OxmField::UdpDst => protocol(ip_proto::UDP),
            OxmField::Icmpv4Type | OxmField::Icmpv4Code => protocol(ip_proto::ICMPV4),
            _ => true,
        }
    }
}

/// Writing.
impl OfpMatch {
    fn from_fields(match_: &Match) -> Result<Self, EncodeError> {
        let context = Context::of(match_);
        let mut flat = Self::ANY;
        for field in match_.fields() {
            match field {
                // Without bits, the field has no effect.
                Field::Basic { mask: 0, .. } => {}
                Field::Basic { field, value, mask } => flat.add(field, value, mask, &context)?,
                Field::Raw(_) => {
                    return Err(unsupported("a match field of an experimenter's class"));
                }
            }
        }
        Ok(flat)
    }

    fn add(
        &mut self,
        field: OxmField,
        value: u128,
        mask: u128,
        context: &Context,
    ) -> Result<(), EncodeError> {
        let phrases = field.phrases();
        let Some(wildcards) = wildcards_of(field) else {
            return Err(unsupported(phrases.in_match));
        };
        if !context.allows(field) {
            return Err(unsupported(phrases.alone));
        }
        if field == OxmField::VlanVid && (value, mask) == (PRESENT, PRESENT) && context.has_pcp {
            // 1.0 expresses this by matching `dl_vlan_pcp` alone.
            return Ok(());
        }
        let Some(left) = wildcards_left(field, mask) else {
            return Err(unsupported(phrases.mask));
        };
        if self.wildcards & wildcards != wildcards {
            return Err(unsupported(phrases.twice));
        }
        self.wildcards = self.wildcards & !wildcards | left;
        self.store(field, value)
    }

    /// Casts drop nothing: a field's value is never wider than the field.
    fn store(&mut self, field: OxmField, value: u128) -> Result<(), EncodeError> {
        match field {
            OxmField::InPort => {
                self.in_port = port::encode_number(PortNo(value as u32), "match field in_port")?;
            }
            OxmField::EthSrc => self.dl_src = mac_bytes(value),
            OxmField::EthDst => self.dl_dst = mac_bytes(value),
            OxmField::EthType => self.dl_type = value as u16,
            OxmField::VlanVid => self.dl_vlan = dl_vlan(value)?,
            OxmField::VlanPcp => self.dl_vlan_pcp = value as u8,
            OxmField::IpDscp => self.nw_tos = (value as u8) << 2,
            OxmField::IpProto => self.nw_proto = value as u8,
            OxmField::ArpOp => {
                fits("match field arp_op", value as u64, u8::BITS)?;
                self.nw_proto = value as u8;
            }
            OxmField::Ipv4Src | OxmField::ArpSpa => self.nw_src = value as u32,
            OxmField::Ipv4Dst | OxmField::ArpTpa => self.nw_dst = value as u32,
            OxmField::TcpSrc | OxmField::UdpSrc | OxmField::Icmpv4Type => {
                self.tp_src = value as u16;
            }
            OxmField::TcpDst | OxmField::UdpDst | OxmField::Icmpv4Code => {
                self.tp_dst = value as u16;
            }
            other => return Err(unsupported(other.phrases().in_match)),
        }
        Ok(())
    }
}

/// Returns the wildcard bits of a field, or `None` if 1.0 does not have it.
fn wildcards_of(field: OxmField) -> Option<u32> {
    match field {
        OxmField::InPort => Some(OFPFW_IN_PORT),
        OxmField::EthSrc => Some(OFPFW_DL_SRC),
        OxmField::EthDst => Some(OFPFW_DL_DST),
        OxmField::EthType => Some(OFPFW_DL_TYPE),
        OxmField::VlanVid => Some(OFPFW_DL_VLAN),
        OxmField::VlanPcp => Some(OFPFW_DL_VLAN_PCP),
        OxmField::IpDscp => Some(OFPFW_NW_TOS),
        OxmField::IpProto | OxmField::ArpOp => Some(OFPFW_NW_PROTO),
        OxmField::Ipv4Src | OxmField::ArpSpa => Some(OFPFW_NW_SRC_MASK),
        OxmField::Ipv4Dst | OxmField::ArpTpa => Some(OFPFW_NW_DST_MASK),
        OxmField::TcpSrc | OxmField::UdpSrc | OxmField::Icmpv4Type => Some(OFPFW_TP_SRC),
        OxmField::TcpDst | OxmField::UdpDst | OxmField::Icmpv4Code => Some(OFPFW_TP_DST),
        _ => None,
    }
}

/// Returns the field's wildcard bits that stay set under this mask, or `None` if 1.0 cannot express it.
fn wildcards_left(field: OxmField, mask: u128) -> Option<u32> {
    if mask == field.full_mask() {
        return Some(0);
    }
    let shift = match field {
        OxmField::Ipv4Src | OxmField::ArpSpa => OFPFW_NW_SRC_SHIFT,
        OxmField::Ipv4Dst | OxmField::ArpTpa => OFPFW_NW_DST_SHIFT,
        _ => return None,
    };
    let wildcarded = mask.trailing_zeros();
    let prefix = field.full_mask() >> wildcarded << wildcarded;
    (mask == prefix).then_some(wildcarded << shift)
}

fn dl_vlan(vlan_vid: u128) -> Result<u16, EncodeError> {
    match vlan_vid as u16 {
        0 => Ok(OFP_VLAN_NONE),
        vid if vid & VLAN_PRESENT != 0 => Ok(vid & VLAN_VID_MASK),
        _ => Err(unsupported(
            "the match field vlan_vid without OFPVID_PRESENT",
        )),
    }
}

fn mac_value([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

fn mac_bytes(value: u128) -> [u8; 6] {
    let [_, _, bytes @ ..] = (value as u64).to_be_bytes();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    const TCP: [u8; MATCH_SIZE] = [
        0x00, 0x00, 0x08, 0x00, // wildcards: the low eight bits of nw_src
        0x00, 0x07, // in_port
        0x02, 0x00, 0x00, 0x00, 0x00, 0x01, // dl_src
        0x02, 0x00, 0x00, 0x00, 0x00, 0x02, // dl_dst
        0x00, 0x64, // dl_vlan
        0x05, 0x00, // dl_vlan_pcp, padding
        0x08, 0x00, // dl_type
        0xb8, 0x06, 0x00, 0x00, // nw_tos, nw_proto, padding
        0x0a, 0x00, 0x01, 0x00, // nw_src
        0x0a, 0x00, 0x02, 0x03, // nw_dst
        0x12, 0x34, // tp_src
        0x00, 0x50, // tp_dst
    ];

    fn tcp() -> Match<'static> {
        Match::any()
            .in_port(PortNo(7))
            .with_exact(OxmField::EthDst, 0x0200_0000_0002_u64)
            .with_exact(OxmField::EthSrc, 0x0200_0000_0001_u64)
            .vlan_vid(100)
            .with_exact(OxmField::VlanPcp, 5_u8)
            .eth_type(0x0800)
            .with_exact(OxmField::IpDscp, 46_u8)
            .ip_proto(6)
            .with_masked(OxmField::Ipv4Src, 0x0a00_0100_u32, 0xffff_ff00_u32)
            .ipv4_dst(std::net::Ipv4Addr::new(10, 0, 2, 3))
            .tcp_src(0x1234)
            .tcp_dst(80)
    }

    const ARP: [u8; MATCH_SIZE] = [
        0x00, 0x3f, 0xc0, 0xcf, // wildcards: all but dl_type, nw_proto, nw_src
        0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0x00, // link fields
        0x08, 0x06, // dl_type
        0x00, 0x02, 0x00, 0x00, // nw_tos, nw_proto, padding
        0x0a, 0x00, 0x00, 0x01, // nw_src
        0x00, 0x00, 0x00, 0x00, // nw_dst
        0x00, 0x00, 0x00, 0x00, // tp_src, tp_dst
    ];

    fn arp() -> Match<'static> {
        Match::any()
            .eth_type(0x0806)
            .with_exact(OxmField::ArpOp, 2_u8)
            .with_exact(OxmField::ArpSpa, 0x0a00_0001_u32)
    }

    fn encoded(match_: &Match) -> Result<[u8; MATCH_SIZE], String> {
        let mut out = Vec::new();
        encode(match_, &mut out).map_err(|error| error.to_string())?;
        Ok(out.try_into().expect("a match has 40 bytes"))
    }

    #[track_caller]
    fn both_ways(bytes: &[u8; MATCH_SIZE], match_: &Match) {
        let wanted: Vec<_> = match_.fields().collect();
        assert_eq!(fields(bytes).collect::<Vec<_>>(), wanted);
        assert_eq!(encoded(match_).as_ref(), Ok(bytes));
    }

    /// Returns the bytes of a match on everything, with changes: (offset, bytes).
    fn any_but(wildcards: u32, changes: &[(usize, &[u8])]) -> [u8; MATCH_SIZE] {
        let mut bytes = [0; MATCH_SIZE];
        bytes[..4].copy_from_slice(&(OFPFW_ALL & !wildcards).to_be_bytes());
        for (at, change) in changes {
            bytes[*at..at + change.len()].copy_from_slice(change);
        }
        bytes
    }

    #[test]
    fn tcp_both_ways() {
        both_ways(&TCP, &tcp());
    }

    #[test]
    fn arp_both_ways() {
        both_ways(&ARP, &arp());
    }

    #[test]
    fn any_is_ofpfw_all_and_zeros() {
        let mut bytes = [0; MATCH_SIZE];
        bytes[..4].copy_from_slice(&[0x00, 0x3f, 0xff, 0xff]);
        both_ways(&bytes, &Match::any());
    }

    #[test]
    fn icmp_and_udp_both_ways() {
        let wildcards = OFPFW_DL_TYPE | OFPFW_NW_PROTO | OFPFW_TP_SRC | OFPFW_TP_DST;
        let icmp = any_but(wildcards, &[(22, &[8, 0]), (25, &[1]), (36, &[0, 3, 0, 1])]);
        let ipv4 = Match::any().eth_type(0x0800);
        let unreachable = ipv4
            .clone()
            .ip_proto(1)
            .with_exact(OxmField::Icmpv4Type, 3_u8)
            .with_exact(OxmField::Icmpv4Code, 1_u8);
        both_ways(&icmp, &unreachable);
        let udp = any_but(
            wildcards,
            &[(22, &[8, 0]), (25, &[17]), (36, &[0, 53, 0x30, 0x39])],
        );
        both_ways(&udp, &ipv4.ip_proto(17).udp_src(53).udp_dst(12345));
    }

    #[test]
    fn vlan_tags_both_ways() {
        let untagged = any_but(OFPFW_DL_VLAN, &[(18, &[0xff, 0xff])]);
        let no_tag = Match::any().with_exact(OxmField::VlanVid, 0_u8);
        both_ways(&untagged, &no_tag);
        let priority = any_but(OFPFW_DL_VLAN_PCP, &[(20, &[3])]);
        let any_tag = Match::any()
            .with_masked(OxmField::VlanVid, VLAN_PRESENT, VLAN_PRESENT)
            .with_exact(OxmField::VlanPcp, 3_u8);
        both_ways(&priority, &any_tag);
    }

    #[test]
    fn untagged_packets_may_have_a_priority() {
        let bytes = any_but(
            OFPFW_DL_VLAN | OFPFW_DL_VLAN_PCP,
            &[(18, &[0xff, 0xff]), (20, &[3])],
        );
        let read = Match::of10(&bytes);
        assert_eq!(read, Match::any().untagged());
        assert_eq!(read.pcp_of_untagged(), Some(3));
        assert_eq!(encoded(&Match::any().untagged().vlan_pcp(3)), Ok(bytes));
        let without = any_but(OFPFW_DL_VLAN, &[(18, &[0xff, 0xff])]);
        assert_eq!(Match::of10(&without).pcp_of_untagged(), None);
        let tagged = any_but(OFPFW_DL_VLAN | OFPFW_DL_VLAN_PCP, &[(20, &[3])]);
        assert_eq!(Match::of10(&tagged).pcp_of_untagged(), None);
    }

    #[test]
    fn only_matches_without_wildcards_are_exact() {
        let exact = [0; MATCH_SIZE];
        assert!(Match::of10(&exact).is_exact_in_of10());
        for bit in 0..22 {
            let wildcard = (1_u32 << bit).to_be_bytes();
            let mut bytes = exact;
            bytes[..4].copy_from_slice(&wildcard);
            assert!(!Match::of10(&bytes).is_exact_in_of10(), "bit {bit}");
        }
        assert!(!Match::any().is_exact_in_of10());
    }

    #[test]
    fn fields_without_prerequisite_are_dropped() {
        let bytes = any_but(OFPFW_NW_PROTO | OFPFW_NW_SRC_MASK | OFPFW_TP_DST, &[]);
        assert_eq!(fields(&bytes).count(), 0);
        let mpls = any_but(
            OFPFW_ALL & !OFPFW_DL_VLAN,
            &[(18, &[0xff, 0xff]), (22, &[0x88, 0x47])],
        );
        let names = fields(&mpls).map(|field| format!("{field:?}"));
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "in_port=0x0",
                "eth_dst=0x0",
                "eth_src=0x0",
                "vlan_vid=0x1000/0x1000",
                "vlan_pcp=0x0",
                "eth_type=0x8847"
            ]
        );
    }

    #[test]
    fn what_1_0_cannot_say_is_named() {
        let any = Match::any;
        let ipv4 = || any().eth_type(0x0800);
        let cases = [
            (
                any().ipv6_src(Ipv6Addr::LOCALHOST),
                "the match field ipv6_src",
            ),
            (
                ipv4().with_masked(OxmField::Ipv4Src, 1_u8, 0xff_u8),
                "this mask on the match field ipv4_src",
            ),
            (
                any().with_masked(OxmField::EthDst, 1_u8, 1_u8),
                "this mask on the match field eth_dst",
            ),
            (
                any().with_masked(OxmField::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
                "this mask on the match field vlan_vid",
            ),
            (
                any().with_exact(OxmField::VlanVid, 5_u8),
                "the match field vlan_vid without OFPVID_PRESENT",
            ),
            (
                any().tcp_src(80),
                "the match field tcp_src without its prerequisites",
            ),
            (
                ipv4().ip_proto(17).tcp_src(80),
                "the match field tcp_src without its prerequisites",
            ),
            (
                Match::from(vec![Field::exact(OxmField::EthType, 1); 2]),
                "the match field eth_type twice",
            ),
        ];
        for (match_, what) in cases {
            let expected = format!("OpenFlow 1.0 cannot express {what}");
            assert_eq!(encoded(&match_), Err(expected));
        }
    }

    #[test]
    fn exact_matches_look_at_what_1_0_knows() {
        let mut frame = [0; 54];
        frame[..15].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60]);
        let wildcards = OFPFW_IN_PORT | OFPFW_DL_SRC | OFPFW_DL_DST | OFPFW_DL_VLAN | OFPFW_DL_TYPE;
        let expected = any_but(
            wildcards,
            &[
                (5, &[7]),
                (6, &frame[6..12]),
                (12, &frame[..6]),
                (18, &[0xff, 0xff]),
                (22, &[0x86, 0xdd]),
            ],
        );
        let exact = Match::exact_frame(PortNo(7), &frame);
        assert_eq!(encoded(&exact), Ok(expected));
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let arp = Match::any()
            .eth_type(0x0806)
            .with_exact(OxmField::ArpOp, 0x101_u16);
        assert_eq!(
            encoded(&arp),
            Err("the match field arp_op is 0x101; OpenFlow 1.0 has room for 8 bits".into())
        );
        assert!(encoded(&Match::any().in_port(PortNo(0x1_0000))).is_err());
    }

    /// Returns the reference for [`fields`]: table 3 of the specification, field by field.
    fn naive(bytes: &[u8; MATCH_SIZE]) -> Vec<(OxmField, u128, u128)> {
        let number = |at: usize, length: usize| {
            bytes[at..at + length]
                .iter()
                .fold(0_u128, |number, &byte| number << 8 | u128::from(byte))
        };
        let wildcards = number(0, 4);
        let counts = |bit: u32| wildcards >> bit & 1 == 0;
        let port = match number(4, 2) {
            reserved @ 0xfff8.. => reserved + 0xffff_0000,
            port => port,
        };
        let (dl_vlan, dl_type, nw_proto) = (number(18, 2), number(22, 2), number(25, 1));
        let ip = counts(4) && dl_type == 0x0800;
        let arp = counts(4) && dl_type == 0x0806;
        let over_ip = |protocol| ip && counts(5) && nw_proto == protocol;
        let (tcp, udp, icmp) = (over_ip(6), over_ip(17), over_ip(1));
        let untagged = counts(1) && dl_vlan == 0xffff;
        let prefix = |bit: u32| {
            let free = (wildcards >> bit & 63).min(32);
            (u128::from(u32::MAX) >> free) << free
        };
        let (source, destination) = (prefix(8), prefix(14));
        use OxmField::*;
        let rows = [
            (counts(0), InPort, port, u128::MAX),
            (counts(3), EthDst, number(12, 6), u128::MAX),
            (counts(2), EthSrc, number(6, 6), u128::MAX),
            (untagged, VlanVid, 0, u128::MAX),
            (
                counts(1) && !untagged,
                VlanVid,
                dl_vlan % 0x1000 + 0x1000,
                u128::MAX,
            ),
            (!counts(1) && counts(20), VlanVid, 0x1000, 0x1000),
            (counts(20) && !untagged, VlanPcp, number(20, 1), u128::MAX),
            (counts(4), EthType, dl_type, u128::MAX),
            (ip && counts(21), IpDscp, number(24, 1) / 4, u128::MAX),
            (ip && counts(5), IpProto, nw_proto, u128::MAX),
            (arp && counts(5), ArpOp, nw_proto, u128::MAX),
            (ip && source != 0, Ipv4Src, number(28, 4), source),
            (ip && destination != 0, Ipv4Dst, number(32, 4), destination),
            (arp && source != 0, ArpSpa, number(28, 4), source),
            (arp && destination != 0, ArpTpa, number(32, 4), destination),
            (tcp && counts(6), TcpSrc, number(36, 2), u128::MAX),
            (tcp && counts(7), TcpDst, number(38, 2), u128::MAX),
            (udp && counts(6), UdpSrc, number(36, 2), u128::MAX),
            (udp && counts(7), UdpDst, number(38, 2), u128::MAX),
            (icmp && counts(6), Icmpv4Type, number(36, 2), u128::MAX),
            (icmp && counts(7), Icmpv4Code, number(38, 2), u128::MAX),
        ];
        let present = rows.into_iter().filter(|row| row.0);
        present
            .map(|(_, field, value, mask)| {
                let mask = mask & ((1 << field.bits()) - 1);
                (field, value & mask, mask)
            })
            .collect()
    }

    /// Generates matches in which the relevant types and protocols are frequent.
    fn any_bytes() -> impl Strategy<Value = [u8; MATCH_SIZE]> {
        let dl_type = prop_oneof![Just(0x0800_u16), Just(0x0806), Just(0x8847), any::<u16>()];
        let nw_proto = prop_oneof![Just(6_u8), Just(17), Just(1), any::<u8>()];
        let dl_vlan = prop_oneof![Just(0xffff_u16), any::<u16>()];
        (any::<[u8; MATCH_SIZE]>(), dl_type, nw_proto, dl_vlan).prop_map(
            |(mut bytes, dl_type, nw_proto, dl_vlan)| {
                bytes[18..20].copy_from_slice(&dl_vlan.to_be_bytes());
                bytes[22..24].copy_from_slice(&dl_type.to_be_bytes());
                bytes[25] = nw_proto;
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn reads_as_the_table_says(bytes in any_bytes()) {
            let mut read: Vec<_> = fields(&bytes)
                .filter_map(|field| match field {
                    Field::Basic { field, value, mask } => Some((field, value, mask)),
                    Field::Raw(_) => None,
                })
                .collect();
            let mut wanted = naive(&bytes);
            read.sort();
            wanted.sort();
            prop_assert_eq!(read, wanted);
        }

        #[test]
        fn what_was_read_is_written(bytes in any_bytes()) {
            let match_ = Match::from(fields(&bytes).collect::<Vec<_>>());
            let again = encoded(&match_).expect("1.0 can express what it said");
            prop_assert_eq!(&match_, &Match::of10(&again));
            let canonical = Match::from(fields(&again).collect::<Vec<_>>());
            prop_assert_eq!(encoded(&canonical), Ok(again));
        }
    }
}
