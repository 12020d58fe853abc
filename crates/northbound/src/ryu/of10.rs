//! Matches and actions of OpenFlow 1.0, with its names.

use super::field::{Kind, unknown_field};
use super::typed::{Type, reader_of};
use crate::error::ApiError;
use crate::number::{MAX_LENS, Names, PORTS_10, QUEUES, integer};
use crate::object::Object;
use serde_json::{Map, Value};
use std::net::Ipv4Addr;
use urtica_wire::{
    Action, EtherType, Field, Instruction, IpProtocol, List, MacAddr, Match, OxmField, PortNo,
    VLAN_PRESENT,
};

/// The VLAN id of packets without a VLAN (1.0 section 5.2.3).
const VLAN_NONE: u64 = 0xffff;

/// Reads a port: a number, which has 16 bits in 1.0, or a name.
pub(super) fn port(object: &Object, key: &str, or: PortNo) -> Result<PortNo, ApiError> {
    const FIRST_RESERVED: u32 = 0xff00;
    let number = object.named(key, &PORTS_10, or.0)?;
    match number {
        0..FIRST_RESERVED => Ok(PortNo(number)),
        FIRST_RESERVED..=0xffff => Ok(PortNo(number | 0xffff_0000)),
        _ if PortNo(number) >= PortNo::MAX => Ok(PortNo(number)),
        _ => Err(object.wrong(key, "a port of OpenFlow 1.0, which has 16 bits")),
    }
}

/// Reads the match in a body.
///
/// # Errors
/// If it contains a field that 1.0 lacks or an invalid value, or lacks a field that another one requires.
pub(super) fn parse_match(object: Option<&Object>) -> Result<Match<'static>, ApiError> {
    let Some(object) = object else {
        return Ok(Match::any());
    };
    let mut match_ = Match::any();
    for (name, _) in object.iter() {
        require_type(object, name)?;
        match_ = parse_field(match_, object, name)?;
    }
    Ok(match_)
}

/// The names of fields that [`parse_field`] supports.
const MATCH_FIELDS: [&str; 12] = [
    "in_port",
    "dl_src",
    "dl_dst",
    "dl_vlan",
    "dl_vlan_pcp",
    "dl_type",
    "nw_tos",
    "nw_proto",
    "nw_src",
    "nw_dst",
    "tp_src",
    "tp_dst",
];

fn parse_field(
    match_: Match<'static>,
    object: &Object,
    name: &str,
) -> Result<Match<'static>, ApiError> {
    let kind = |field: OxmField, kind: Kind| {
        let value = object.get(name).and_then(|value| kind.parse(field, value));
        value.ok_or_else(|| {
            let (expected, example) = kind.expected();
            object
                .wrong(name, expected)
                .example(format!("\"{name}\": {example}"))
        })
    };
    Ok(match name {
        "in_port" => match_.in_port(port(object, name, PortNo::ANY)?),
        "dl_src" => match_.with(kind(OxmField::EthSrc, Kind::Mac)?),
        "dl_dst" => match_.with(kind(OxmField::EthDst, Kind::Mac)?),
        "dl_vlan" => match object.needed_number::<u16>(name)? {
            none if u64::from(none) == VLAN_NONE => match_.untagged(),
            vlan if vlan < VLAN_PRESENT => match_.vlan_vid(vlan),
            _ => return Err(object.wrong(name, "a VLAN id from 0 to 4095, or 65535 for none")),
        },
        "dl_vlan_pcp" => match_.with(kind(OxmField::VlanPcp, Kind::Number)?),
        "dl_type" => match_.with(kind(OxmField::EthType, Kind::Number)?),
        "nw_tos" => match_.ip_dscp(object.needed_number::<u8>(name)? >> 2),
        "nw_proto" if is_arp(object) => match_.with(kind(OxmField::ArpOp, Kind::Number)?),
        "nw_proto" => match_.with(kind(OxmField::IpProto, Kind::Number)?),
        "nw_src" if is_arp(object) => match_.with(kind(OxmField::ArpSpa, Kind::Ipv4)?),
        "nw_dst" if is_arp(object) => match_.with(kind(OxmField::ArpTpa, Kind::Ipv4)?),
        "nw_src" => match_.with(kind(OxmField::Ipv4Src, Kind::Ipv4)?),
        "nw_dst" => match_.with(kind(OxmField::Ipv4Dst, Kind::Ipv4)?),
        "tp_src" | "tp_dst" => match_.with(kind(transport_field(object, name)?, Kind::Number)?),
        _ => {
            let such_as = "1.0, such as in_port or dl_type";
            return Err(unknown_field(object, name, &MATCH_FIELDS, such_as));
        }
    })
}

/// Checks that the match contains the Ethernet type without which 1.0 ignores a field.
fn require_type(object: &Object, name: &str) -> Result<(), ApiError> {
    let is_of_ip = matches!(name, "nw_src" | "nw_dst" | "nw_proto" | "nw_tos");
    if !is_of_ip || object.get("dl_type").is_some() {
        return Ok(());
    }
    let path = object.path(name);
    let expected = format!("2048 (IPv4) or 2054 (ARP), since {path} is a field of it");
    Err(ApiError::missing(object.path("dl_type"), &expected).example("\"dl_type\": 2048"))
}

fn is_arp(object: &Object) -> bool {
    object.get("dl_type").and_then(integer) == Some(EtherType::ARP.0.into())
}

fn transport_field(object: &Object, name: &str) -> Result<OxmField, ApiError> {
    let is_source = name == "tp_src";
    let fields = match object.number("nw_proto", 0).map(IpProtocol)? {
        IpProtocol::TCP => (OxmField::TcpSrc, OxmField::TcpDst),
        IpProtocol::UDP => (OxmField::UdpSrc, OxmField::UdpDst),
        IpProtocol::ICMP => (OxmField::Icmpv4Type, OxmField::Icmpv4Code),
        _ => {
            let expected = format!(
                "1 (ICMP), 6 (TCP) or 17 (UDP), since {} requires it",
                object.path(name)
            );
            return Err(object
                .wrong("nw_proto", &expected)
                .example("\"nw_proto\": 6"));
        }
    };
    Ok(if is_source { fields.0 } else { fields.1 })
}

/// Prints a match with the names of 1.0.
pub(super) fn print_match(match_: &Match) -> Map<String, Value> {
    let basic = match_.fields().filter_map(|field| match field {
        Field::Basic { field, value, mask } => Some((field, value, mask)),
        Field::Raw(_) => None,
    });
    let print = |(field, value, mask)| print_field(field, value, mask);
    basic.filter_map(print).collect()
}

fn print_field(field: OxmField, value: u128, mask: u128) -> Option<(String, Value)> {
    let number = value as u64;
    let (name, value): (_, Value) = match field {
        OxmField::InPort => ("in_port", PORTS_10.value(number as u32)),
        OxmField::EthSrc => ("dl_src", Kind::Mac.text(value).into()),
        OxmField::EthDst => ("dl_dst", Kind::Mac.text(value).into()),
        OxmField::VlanVid if number == 0 => ("dl_vlan", VLAN_NONE.into()),
        OxmField::VlanVid => ("dl_vlan", (number as u16 & !VLAN_PRESENT).into()),
        OxmField::VlanPcp => ("dl_vlan_pcp", number.into()),
        OxmField::EthType => ("dl_type", number.into()),
        OxmField::IpDscp => ("nw_tos", (number << 2).into()),
        OxmField::IpProto | OxmField::ArpOp => ("nw_proto", number.into()),
        OxmField::Ipv4Src | OxmField::ArpSpa => ("nw_src", print_prefix(value, mask)),
        OxmField::Ipv4Dst | OxmField::ArpTpa => ("nw_dst", print_prefix(value, mask)),
        OxmField::TcpSrc | OxmField::UdpSrc | OxmField::SctpSrc | OxmField::Icmpv4Type => {
            ("tp_src", number.into())
        }
        OxmField::TcpDst | OxmField::UdpDst | OxmField::SctpDst | OxmField::Icmpv4Code => {
            ("tp_dst", number.into())
        }
        _ => return None,
    };
    Some((name.to_owned(), value))
}

fn print_prefix(value: u128, mask: u128) -> Value {
    let address = Kind::Ipv4.text(value);
    match (mask as u32).count_ones() {
        32 => address.into(),
        length => format!("{address}/{length}").into(),
    }
}

/// Reads an action.
pub(super) type ReadAction = for<'a> fn(&Object<'a>) -> Result<Action<'a>, ApiError>;

pub(super) const ACTIONS: &[Type<ReadAction>] = &[
    ("OUTPUT", &["port", "max_len"], |object| {
        Ok(Action::Output {
            port: port(object, "port", PortNo::ANY)?,
            max_len: max_len(object)?,
        })
    }),
    ("SET_VLAN_VID", &["vlan_vid"], |object| {
        object.needed_number("vlan_vid").map(Action::SetVlanVid)
    }),
    ("SET_VLAN_PCP", &["vlan_pcp"], |object| {
        object.number("vlan_pcp", 0).map(Action::SetVlanPcp)
    }),
    ("STRIP_VLAN", &[], |_| Ok(Action::PopVlan)),
    ("SET_DL_SRC", &["dl_src"], |object| {
        mac(object, "dl_src").map(Action::set_eth_src)
    }),
    ("SET_DL_DST", &["dl_dst"], |object| {
        mac(object, "dl_dst").map(Action::set_eth_dst)
    }),
    ("SET_NW_SRC", &["nw_src"], |object| {
        ipv4(object, "nw_src").map(Action::set_ipv4_src)
    }),
    ("SET_NW_DST", &["nw_dst"], |object| {
        ipv4(object, "nw_dst").map(Action::set_ipv4_dst)
    }),
    ("SET_NW_TOS", &["nw_tos"], |object| {
        let tos: u8 = object.number("nw_tos", 0)?;
        Ok(Action::set_ip_dscp(tos >> 2))
    }),
    ("SET_TP_SRC", &["tp_src"], |object| {
        object.number("tp_src", 0).map(Action::SetTpSrc)
    }),
    ("SET_TP_DST", &["tp_dst"], |object| {
        object.number("tp_dst", 0).map(Action::SetTpDst)
    }),
    ("ENQUEUE", &["port", "queue_id"], |object| {
        Ok(Action::Enqueue {
            port: port(object, "port", PortNo::ANY)?,
            queue_id: object.named("queue_id", &QUEUES, 0)?,
        })
    }),
];

/// Reads a flow's actions.
pub(super) fn parse_instructions<'a>(
    objects: &[Object<'a>],
) -> Result<Vec<Instruction<'a>>, ApiError> {
    let actions: Vec<_> = objects.iter().map(parse_action).collect::<Result<_, _>>()?;
    let apply = (!actions.is_empty()).then(|| Instruction::apply(actions));
    Ok(apply.into_iter().collect())
}

fn parse_action<'a>(object: &Object<'a>) -> Result<Action<'a>, ApiError> {
    let expected = "an action of OpenFlow 1.0, such as OUTPUT or SET_DL_DST";
    let example = "{\"type\": \"OUTPUT\", \"port\": 2}";
    reader_of(object, ACTIONS, expected, example)?(object)
}

fn max_len(object: &Object) -> Result<u16, ApiError> {
    const NUMBERS: &Names = &MAX_LENS;
    let max_len = object.named("max_len", NUMBERS, 0xffe5)?;
    max_len
        .try_into()
        .map_err(|_| object.wrong("max_len", &NUMBERS.expected()))
}

fn mac(object: &Object, key: &str) -> Result<MacAddr, ApiError> {
    let expected = "a MAC address";
    let parsed = object.text(key, expected)?.parse();
    parsed.map_err(|_| {
        object
            .wrong(key, expected)
            .example(format!("\"{key}\": \"02:00:00:00:00:01\""))
    })
}

fn ipv4(object: &Object, key: &str) -> Result<Ipv4Addr, ApiError> {
    let expected = "an IPv4 address";
    let parsed = object.text(key, expected)?.parse();
    parsed.map_err(|_| {
        object
            .wrong(key, expected)
            .example(format!("\"{key}\": \"10.0.0.1\""))
    })
}

/// Prints a flow's actions.
pub(super) fn print_instructions(instructions: &List<Instruction>) -> Vec<Value> {
    let mut printed = Vec::new();
    for instruction in instructions {
        if let Instruction::ApplyActions(actions) = instruction {
            printed.extend(
                actions
                    .iter()
                    .map(|action| Value::from(print_action(&action))),
            );
        }
    }
    printed
}

fn print_action(action: &Action) -> String {
    match *action {
        Action::Output { port, .. } => format!("OUTPUT:{}", PORTS_10.text(port.0)),
        Action::SetVlanVid(vid) => format!("SET_VLAN_VID:{vid}"),
        Action::SetVlanPcp(pcp) => format!("SET_VLAN_PCP:{pcp}"),
        Action::PopVlan => "STRIP_VLAN".into(),
        Action::SetField(Field::Basic { field, value, .. }) => print_set_field(field, value),
        Action::SetTpSrc(port) => format!("SET_TP_SRC:{port}"),
        Action::SetTpDst(port) => format!("SET_TP_DST:{port}"),
        Action::Enqueue { port, queue_id } => {
            format!(
                "ENQUEUE:{}:{}",
                PORTS_10.text(port.0),
                QUEUES.text(queue_id)
            )
        }
        Action::Experimenter { .. } => "VENDOR".into(),
        _ => "UNKNOWN".into(),
    }
}

fn print_set_field(field: OxmField, value: u128) -> String {
    let text = Kind::of(field).text(value);
    match field {
        OxmField::EthSrc => format!("SET_DL_SRC:{text}"),
        OxmField::EthDst => format!("SET_DL_DST:{text}"),
        OxmField::Ipv4Src => format!("SET_NW_SRC:{text}"),
        OxmField::Ipv4Dst => format!("SET_NW_DST:{text}"),
        OxmField::IpDscp => format!("SET_NW_TOS:{}", value << 2),
        _ => "UNKNOWN".into(),
    }
}
