//! The flow match, `ofp_match` (section 5.2.3): twelve fields with wildcard bits.
//!
//! The OXM fields that `nw_*` and `tp_*` stand for depend on the packet's type and protocol:
//!
//! | 1.0 | IPv4 | ARP | IPv4 with TCP | UDP | ICMP |
//! | --- | --- | --- | --- | --- | --- |
//! | `nw_proto` | `ip_proto` | `arp_op` | | | |
//! | `nw_src`, `nw_dst` | `ipv4_src`, `ipv4_dst` | `arp_spa`, `arp_tpa` | | | |
//! | `nw_tos` | `ip_dscp` | | | | |
//! | `tp_src`, `tp_dst` | | | `tcp_src`, `tcp_dst` | `udp_src`, `udp_dst` | `icmpv4_type`, `icmpv4_code` |
//!
//! `dl_vlan` is `vlan_vid`: OFP_VLAN_NONE is 0 (no tag), and a VLAN id gets OFPVID_PRESENT. `dl_vlan_pcp` with `dl_vlan`
//! wildcarded is a match on tagged packets of any VLAN: `vlan_vid=0x1000/0x1000`. A match on untagged packets may also have a
//! `dl_vlan_pcp`. It has no effect, and is no field; [`Match::pcp_of_untagged`] returns it.

pub(crate) mod inline;

use super::{MATCH_SIZE, fits, port, unsupported};
use crate::matching::Repr;
use crate::packet::{ether_type, ip_proto};
use crate::{
    DecodeError, EncodeError, Field, Match, OxmField, PortNo, Put, Reader, VLAN_PRESENT, Version,
};

/// Wildcard bits (`ofp_flow_wildcards`). A set bit means that the field is not compared.
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

/// The `dl_vlan` of packets without a tag.
const OFP_VLAN_NONE: u16 = 0xffff;
pub(crate) const VLAN_VID_MASK: u16 = 0x0fff;
/// OFPVID_PRESENT, as a value and as a mask of `vlan_vid`.
const PRESENT: u128 = VLAN_PRESENT as u128;

/// The capacity of [`Fields`].
pub(crate) const FIELDS_MAX: usize = 12;

/// A list of at most as many fields as in `ofp_match`, without an allocation.
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

    /// Adds a field. There may be at most [`FIELDS_MAX`].
    pub(crate) fn push(&mut self, field: Field<'a>) {
        self.fields[self.end] = Some(field);
        self.end += 1;
    }

    /// Adds a field without a mask.
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

/// Returns the OXM fields for the bytes of an `ofp_match`, in which each follows its prerequisites.
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
/// [`EncodeError`], which names the field, if 1.0 cannot express the match: it has other fields, masks other than address
/// prefixes, or a field without its prerequisites.
pub(crate) fn encode(match_: &Match, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match &match_.0 {
        Repr::Of10(bytes) => out.put(*bytes),
        // "Every header field" means every one that 1.0 supports; for an IPv6 packet, the Ethernet header.
        Repr::Exact(packet) => {
            let fields = Match::from(packet.fields_in(Version::Of10));
            OfpMatch::from_fields(&fields)?.write(out);
        }
        _ => OfpMatch::from_fields(match_)?.write(out),
    }
    Ok(())
}

/// The fields of `ofp_match`.
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

/// Returns `COUNT` bytes of a match, starting at `at`.
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

/// Decoding.
impl OfpMatch {
    /// Returns `true` if the field with this wildcard bit is compared.
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
                // An untagged packet has no priority, so `dl_vlan_pcp` has no effect.
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
            // The number of wildcarded low bits of the address; 32 or more mean all.
            let wildcarded = self.wildcards >> shift & 0x3f;
            if let Some(mask) = u32::MAX.checked_shl(wildcarded) {
                fields.push(Field::masked(field, address.into(), mask.into()));
            }
        }
    }

    /// Adds ports, or ICMP's type and code, which are the low eight bits of `tp_src` and `tp_dst`.
    fn push_ports(&self, source: OxmField, destination: OxmField, fields: &mut Fields) {
        if self.has(OFPFW_TP_SRC) {
            fields.push_exact(source, self.tp_src);
        }
        if self.has(OFPFW_TP_DST) {
            fields.push_exact(destination, self.tp_dst);
        }
    }
}

/// The fields that determine which others may exist.
struct Context {
    dl_type: Option<u128>,
    nw_proto: Option<u128>,
    /// Whether the match requires a VLAN tag, or its absence: 1.0 can express a priority with both.
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

/// Encoding.
impl OfpMatch {
    fn from_fields(match_: &Match) -> Result<Self, EncodeError> {
        let context = Context::of(match_);
        let mut flat = Self::ANY;
        for field in match_.fields() {
            match field {
                // A field without bits has no effect.
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
        let Some(wildcards) = wildcards_of(field) else {
            return Err(unsupported(field.phrases().in_match));
        };
        if !context.allows(field) {
            return Err(unsupported(field.phrases().alone));
        }
        if field == OxmField::VlanVid && (value, mask) == (PRESENT, PRESENT) && context.has_pcp {
            // 1.0 expresses this by matching only `dl_vlan_pcp`.
            return Ok(());
        }
        let Some(left) = wildcards_left(field, mask) else {
            return Err(unsupported(field.phrases().mask));
        };
        if self.wildcards & wildcards != wildcards {
            return Err(unsupported(field.phrases().twice));
        }
        self.wildcards = self.wildcards & !wildcards | left;
        self.store(field, value)
    }

    /// Stores a field's value. Casts lose nothing: it is never wider than the field.
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

/// Returns the wildcard bits of a field; `None` if 1.0 does not have it.
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

/// Returns the field's wildcard bits that remain set with this mask; `None` if 1.0 cannot express the mask.
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
mod tests;
