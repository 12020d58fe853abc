//! Matches of OpenFlow 1.3, whose fields have the names of OXM or of 1.0.

use super::field::{Kind, unknown_field};
use crate::error::ApiError;
use crate::number::integer;
use crate::object::Object;
use serde_json::{Map, Value};
use urtica_wire::{EtherType, Field, IpProtocol, Match, OxmField};

/// The names of 1.0 that mean exactly one field.
const OLD_NAMES: &[(&str, OxmField)] = &[
    ("dl_dst", OxmField::EthDst),
    ("dl_src", OxmField::EthSrc),
    ("dl_type", OxmField::EthType),
    ("dl_vlan", OxmField::VlanVid),
    ("nw_src", OxmField::Ipv4Src),
    ("nw_dst", OxmField::Ipv4Dst),
    ("nw_proto", OxmField::IpProto),
];

/// Reads the match in a body.
///
/// # Errors
/// If it contains an unknown field or an invalid value.
pub(super) fn parse(object: Option<&Object>) -> Result<Match<'static>, ApiError> {
    let Some(object) = object else {
        return Ok(Match::any());
    };
    let of = |old, new| object.get(old).or(object.get(new)).and_then(integer);
    let is_arp = of("dl_type", "eth_type") == Some(EtherType::ARP.0.into());
    let protocol = of("nw_proto", "ip_proto");
    let mut fields = Vec::new();
    for (name, value) in object.iter() {
        let field = field_named(name, is_arp, protocol).ok_or_else(|| unknown(object, name))?;
        let kind = Kind::of(field);
        let parsed = kind.parse(field, value).ok_or_else(|| {
            let (expected, example) = kind.expected();
            object
                .wrong(name, expected)
                .example(format!("\"{name}\": {example}"))
        })?;
        require_type(object, name, field)?;
        fields.push(parsed);
    }
    // OXM requires a field's prerequisites before the field. A field that is given by both names is counted once.
    fields.sort_by_key(|field: &Field| field.oxm_field());
    fields.dedup_by_key(|field| field.oxm_field());
    Ok(Match::from(fields))
}

/// Checks that the match contains the Ethernet type that a field requires.
fn require_type(object: &Object, name: &str, field: OxmField) -> Result<(), ApiError> {
    use OxmField::*;
    if object.get("dl_type").or(object.get("eth_type")).is_some() {
        return Ok(());
    }
    let (expected, example) = match field {
        Ipv4Src | Ipv4Dst => ("2048 (IPv4)", 2048),
        Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => ("34525 (IPv6)", 34525),
        ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => ("2054 (ARP)", 2054),
        IpDscp | IpEcn | IpProto => ("2048 (IPv4) or 34525 (IPv6)", 2048),
        _ => return Ok(()),
    };
    let (path, eth_type) = (object.path(name), object.path("eth_type"));
    Err(ApiError::missing(
        eth_type,
        &format!("{expected}, since {path} is a field of it"),
    )
    .example(format!("\"eth_type\": {example}")))
}

fn field_named(name: &str, is_arp: bool, protocol: Option<u64>) -> Option<OxmField> {
    match (name, is_arp) {
        ("nw_src", true) => return Some(OxmField::ArpSpa),
        ("nw_dst", true) => return Some(OxmField::ArpTpa),
        ("tp_src", _) => return port_fields(protocol).map(|(src, _)| src),
        ("tp_dst", _) => return port_fields(protocol).map(|(_, dst)| dst),
        _ => {}
    }
    let old = OLD_NAMES.iter().find(|(old, _)| *old == name);
    old.map(|(_, field)| *field).or_else(|| oxm_named(name))
}

/// Returns the field with this name in OXM.
pub(super) fn oxm_named(name: &str) -> Option<OxmField> {
    OxmField::ALL
        .iter()
        .copied()
        .find(|field| field.name() == name)
}

/// Returns the names of all fields in OXM.
pub(super) fn oxm_names() -> impl Iterator<Item = &'static str> {
    OxmField::ALL.iter().map(|field| field.name())
}

fn port_fields(protocol: Option<u64>) -> Option<(OxmField, OxmField)> {
    match IpProtocol(protocol?.try_into().ok()?) {
        IpProtocol::TCP => Some((OxmField::TcpSrc, OxmField::TcpDst)),
        IpProtocol::UDP => Some((OxmField::UdpSrc, OxmField::UdpDst)),
        IpProtocol::SCTP => Some((OxmField::SctpSrc, OxmField::SctpDst)),
        _ => None,
    }
}

fn unknown(object: &Object, name: &str) -> ApiError {
    let path = object.path(name);
    match name {
        "tp_src" | "tp_dst" => ApiError::missing(
            object.path("nw_proto"),
            &format!("6 (TCP), 17 (UDP) or 132 (SCTP), since {path} is a port of one of these"),
        )
        .example("\"nw_proto\": 6"),
        _ => {
            let old = OLD_NAMES.iter().map(|(old, _)| *old);
            let known: Vec<_> = oxm_names().chain(old).chain(["tp_src", "tp_dst"]).collect();
            unknown_field(object, name, &known, "1.3, such as in_port or eth_type")
        }
    }
}

/// Prints a match as Ryu does, with the names of 1.0 for fields that 1.0 has.
pub(super) fn print(match_: &Match) -> Map<String, Value> {
    let mut printed = Map::new();
    for field in match_.fields() {
        let (name, value) = match field {
            Field::Basic { field, value, mask } => {
                let mask = (mask != field.full_mask()).then_some(mask);
                (
                    name_of(field).to_owned(),
                    Kind::of(field).print(value, mask),
                )
            }
            Field::Raw(raw) => (
                format!("field_{}", u32::from(raw.class) << 7 | u32::from(raw.field)),
                hex(raw.body).into(),
            ),
        };
        printed.entry(name).or_insert(value);
    }
    printed
}

fn name_of(field: OxmField) -> &'static str {
    match field {
        OxmField::TcpSrc | OxmField::UdpSrc => "tp_src",
        OxmField::TcpDst | OxmField::UdpDst => "tp_dst",
        _ => {
            let old = OLD_NAMES.iter().find(|(_, old)| *old == field);
            old.map_or(field.name(), |(name, _)| name)
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
