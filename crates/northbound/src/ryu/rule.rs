//! The common parts of the bodies for rules: switches, VLANs, and matches with Ryu's names of types and protocols.

use super::match13;
use crate::error::ApiError;
use crate::number::{integer, parse_integer};
use crate::object::Object;
use crate::params::Params;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use urtica_apps::{RyuError, RyuRule};
use urtica_wire::{DatapathId, Match};

/// The word for all switches or VLANs in a path, and for all rules in a body.
pub(super) const ALL: &str = "all";

/// The VLANs that Ryu accepts.
const VLAN_IDS: std::ops::RangeInclusive<u16> = 2..=4094;

/// The fields of a rule's match.
const FIELDS: [&str; 12] = [
    "in_port", "dl_src", "dl_dst", "dl_type", "nw_src", "nw_dst", "ipv6_src", "ipv6_dst",
    "nw_proto", "tp_src", "tp_dst", "ip_dscp",
];

/// The names of packets' types.
const TYPES: [(&str, u16); 3] = [("ARP", 0x0806), ("IPv4", 0x0800), ("IPv6", 0x86dd)];

/// The names of protocols.
const PROTOCOLS: [(&str, u16); 4] = [("TCP", 6), ("UDP", 17), ("ICMP", 1), ("ICMPv6", 58)];

/// Returns the switches of a program that a path selects.
pub(super) fn switches(
    params: &Params,
    program: &str,
    there: Vec<DatapathId>,
) -> Result<Vec<DatapathId>, ApiError> {
    let there = some_switches(program, there)?;
    if params.get("switch_id") == Some(ALL) {
        return Ok(there);
    }
    let id = params.ryu_switch()?;
    match there.contains(&id) {
        true => Ok(vec![id]),
        // Ryu does not respond with status 404 here.
        false => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            format!("switch {id} is not connected: expected one that is, or all"),
        )),
    }
}

/// Returns all switches of a program. Returns an error if there are none, as in Ryu.
pub(super) fn some_switches(
    program: &str,
    there: Vec<DatapathId>,
) -> Result<Vec<DatapathId>, ApiError> {
    match there.is_empty() {
        false => Ok(there),
        true => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            format!(
                "no switch is connected to {program}: expected one, and {program} among the programs of urtica run"
            ),
        )),
    }
}

/// Returns the VLAN in a path: 0 if there is none, `None` for all.
pub(super) fn vlan_id(params: &Params) -> Result<Option<u16>, ApiError> {
    let text = match params.get("vlan_id") {
        None => return Ok(Some(0)),
        Some(ALL) => return Ok(None),
        Some(text) => text,
    };
    let parsed = parse_integer(text).and_then(|number| u16::try_from(number).ok());
    let valid = parsed.filter(|vlan_id| *vlan_id == 0 || VLAN_IDS.contains(vlan_id));
    valid.map(Some).ok_or_else(|| {
        ApiError::field(
            "vlan_id",
            text,
            "a VLAN id from 2 to 4094, 0 for no VLAN, or all",
        )
        .example("2")
    })
}

/// Returns the number of a rule in a body; `None` for all.
pub(super) fn rule_id(body: &Object, key: &str) -> Result<Option<u32>, ApiError> {
    if body.get(key).and_then(Value::as_str) == Some(ALL) {
        return Ok(None);
    }
    let number = body.get(key).and_then(integer);
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| {
        body.wrong(key, "a rule's number, or all")
            .example(format!("\"{key}\": \"1\""))
    })
}

/// Returns a rule's priority.
pub(super) fn priority(body: &Object, least: u16, most: u16) -> Result<u16, ApiError> {
    let priority = body.number("priority", least)?;
    match (least..=most).contains(&priority) {
        true => Ok(priority),
        false => Err(body
            .wrong("priority", &format!("a number from {least} to {most}"))
            .example("\"priority\": 10")),
    }
}

/// Refuses fields in a body that would have no effect.
pub(super) fn check_known(body: &Object, others: &[&str]) -> Result<(), ApiError> {
    let is_known = |name: &str| FIELDS.contains(&name) || others.contains(&name);
    match body.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::field(
            body.path(name),
            "not part of a rule",
            &format!("one of {}, {}", FIELDS.join(", "), others.join(", ")),
        )),
    }
}

/// Reads a rule's match, for packets of this VLAN unless it is 0.
///
/// # Errors
/// If a field has an invalid value, or fields contradict each other.
pub(super) fn parse_match(body: &Object, vlan_id: u16) -> Result<Match<'static>, ApiError> {
    let given = |name: &&str| {
        body.get(name)
            .map(|value| ((*name).to_owned(), value.clone()))
    };
    let mut fields: Map<String, Value> = FIELDS.iter().filter_map(given).collect();
    if let Some(dl_type) = dl_type(body)? {
        fields.insert("dl_type".to_owned(), dl_type.into());
    }
    if let Some(nw_proto) = named(body, "nw_proto", &PROTOCOLS)? {
        fields.insert("nw_proto".to_owned(), nw_proto.into());
    }
    if vlan_id != 0 {
        fields.insert("dl_vlan".to_owned(), vlan_id.into());
    }
    let fields = Value::Object(fields);
    match13::parse(Some(&Object::body(&fields)?))
}

fn named(body: &Object, key: &str, names: &[(&str, u16)]) -> Result<Option<u16>, ApiError> {
    let Some(value) = body.get(key) else {
        return Ok(None);
    };
    let known = names.iter().find(|(name, _)| value.as_str() == Some(name));
    known.map(|(_, number)| Some(*number)).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        body.wrong(key, &format!("one of {}", names.join(", ")))
            .example(format!("\"{key}\": \"{}\"", names[0]))
    })
}

/// Returns the type of the packets of a match: the given one, or the one that its fields require. Returns `None` if it matches
/// packets of all types.
fn dl_type(body: &Object) -> Result<Option<u16>, ApiError> {
    let said = named(body, "dl_type", &TYPES)?.map(|_| "dl_type");
    let nw_proto = body.get("nw_proto").and_then(Value::as_str);
    let of = |name: &'static str| body.get(name).map(|_| name);
    let ipv4 = of("nw_src")
        .or(of("nw_dst"))
        .or_else(|| nw_proto.filter(|it| *it == "ICMP").map(|_| "nw_proto"));
    let ipv6 = of("ipv6_src")
        .or(of("ipv6_dst"))
        .or_else(|| nw_proto.filter(|it| *it == "ICMPv6").map(|_| "nw_proto"));
    let name = match said {
        Some(key) => body.text(key, "a type")?,
        None if ipv4.is_some() => "IPv4",
        None if ipv6.is_some() => "IPv6",
        // Both types have this field; Ryu chooses IPv4.
        None if of("ip_dscp").is_some() => "IPv4",
        None if nw_proto.is_some() => {
            return Err(ApiError::missing(
                body.path("dl_type"),
                "IPv4 or IPv6, since nw_proto is a protocol of both",
            )
            .example("\"dl_type\": \"IPv4\""));
        }
        None => return Ok(None),
    };
    let contrary = match name {
        "ARP" => ipv6.or(of("nw_proto")).or(of("ip_dscp")),
        "IPv4" => ipv6,
        _ => ipv4,
    };
    if let Some(field) = contrary {
        return Err(body.wrong(field, &format!("no {field} like this for {name} packets")));
    }
    let number = TYPES.iter().find(|(known, _)| *known == name);
    Ok(number.map(|(_, number)| *number))
}

/// Prints a rule's match, in the form of Ryu's documentation.
pub(super) fn print_match(match_: &Match) -> Map<String, Value> {
    let fields = match13::print(match_).into_iter();
    fields
        .map(|(name, value)| print_field(name, value))
        .collect()
}

fn print_field(name: String, value: Value) -> (String, Value) {
    let name_in = |names: &[(&str, u16)]| {
        let known = names.iter().find(|(_, number)| value == *number);
        known.map_or(value.clone(), |(name, _)| (*name).into())
    };
    let printed = match name.as_str() {
        "dl_type" => name_in(&TYPES),
        "nw_proto" => name_in(&PROTOCOLS),
        "dl_vlan" => integer(&value).map_or(value.clone(), Value::from),
        _ => with_prefix_length(&value).unwrap_or(value),
    };
    // In 1.0, ARP's fields share the names of IPv4's.
    let name = match name.as_str() {
        "arp_spa" => "nw_src".to_owned(),
        "arp_tpa" => "nw_dst".to_owned(),
        _ => name,
    };
    (name, printed)
}

/// Replaces the mask of an address with the prefix length.
fn with_prefix_length(value: &Value) -> Option<Value> {
    let (address, mask) = value.as_str()?.split_once('/')?;
    let mask = match mask.parse::<Ipv4Addr>() {
        Ok(mask) => u128::from(mask.to_bits()) << 96,
        Err(_) => mask.parse::<Ipv6Addr>().ok()?.to_bits(),
    };
    let length = mask.leading_ones();
    (mask.count_ones() == length).then(|| format!("{address}/{length}").into())
}

/// Returns the result of a command.
pub(super) fn result(is_done: bool, details: impl Into<Value>) -> Map<String, Value> {
    let result = if is_done { "success" } else { "failure" };
    Map::from_iter([
        ("result".to_owned(), result.into()),
        ("details".to_owned(), details.into()),
    ])
}

/// Adds the VLAN to a result, unless it is 0.
pub(super) fn with_vlan(mut result: Map<String, Value>, vlan_id: u16) -> Map<String, Value> {
    if vlan_id != 0 {
        result.insert("vlan_id".to_owned(), vlan_id.into());
    }
    result
}

/// Builds a switch's row in the answer to a command.
pub(super) fn row(id: DatapathId, command_result: impl Into<Value>) -> Value {
    json!({ "switch_id": id.to_string(), "command_result": command_result.into() })
}

/// Returns the rules of one VLAN, or of all VLANs: an object for each, with a list under this key.
pub(super) fn by_vlan<A>(
    rules: &[RyuRule<A>],
    wanted: Option<u16>,
    key: &str,
    print: impl Fn(&RyuRule<A>) -> Value,
) -> Vec<Value> {
    let mut lists: BTreeMap<u16, Vec<Value>> = BTreeMap::new();
    let is_wanted = |rule: &&RyuRule<A>| wanted.is_none_or(|it| it == rule.vlan_id);
    for rule in rules.iter().filter(is_wanted) {
        lists.entry(rule.vlan_id).or_default().push(print(rule));
    }
    let list = |(vlan_id, rules): (u16, Vec<Value>)| {
        let list = Map::from_iter([(key.to_owned(), rules.into())]);
        with_vlan(list, vlan_id).into()
    };
    lists.into_iter().map(list).collect()
}

/// Builds Ryu's response to a deletion: the numbers of the deleted rules for each VLAN, or a failure if there were none.
pub(super) fn deleted(
    rules: impl Iterator<Item = (u16, u32)>,
    wanted: Option<u32>,
    [gone, missing]: [&str; 2],
    name_of_id: &str,
) -> Value {
    let mut by_vlan: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (vlan_id, id) in rules {
        by_vlan.entry(vlan_id).or_default().push(id.to_string());
    }
    if by_vlan.is_empty() {
        let which = wanted.map_or(String::new(), |id| format!(" : {name_of_id}={id}"));
        return result(false, format!("{missing}{which}")).into();
    }
    let success = |(vlan_id, ids): (u16, Vec<String>)| {
        let details = format!("{gone} : {name_of_id}={}", ids.join(","));
        Value::from(with_vlan(result(true, details), vlan_id))
    };
    by_vlan.into_iter().map(success).collect()
}

impl From<RyuError> for ApiError {
    fn from(error: RyuError) -> Self {
        match error {
            RyuError::Request(error) => error.into(),
            RyuError::Full(_) | RyuError::TooManyMeters | RyuError::Router(_) => {
                Self::new(StatusCode::CONFLICT, error.to_string())
            }
            _ => Self::new(StatusCode::BAD_REQUEST, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: Value) -> Result<Value, String> {
        let parsed = Object::body(&body).and_then(|body| parse_match(&body, 0));
        let printed = parsed.map(|match_| print_match(&match_).into());
        printed.map_err(|error| error.to_string())
    }

    #[test]
    fn a_match_is_printed_as_it_was_given_and_with_its_type() {
        for (given, added) in [
            (json!({"nw_src": "10.0.0.0/8"}), Some(("dl_type", "IPv4"))),
            (
                json!({"ipv6_dst": "fe80::200:ff:fe00:2", "nw_proto": "ICMPv6"}),
                Some(("dl_type", "IPv6")),
            ),
            (
                json!({"ipv6_src": "2001:db8::/32"}),
                Some(("dl_type", "IPv6")),
            ),
            (json!({"nw_proto": "ICMP"}), Some(("dl_type", "IPv4"))),
            (json!({"ip_dscp": 26}), Some(("dl_type", "IPv4"))),
            (
                json!({"dl_type": "ARP", "nw_src": "10.0.0.1", "nw_dst": "10.0.0.2"}),
                None,
            ),
            (
                json!({"dl_type": "IPv4", "nw_proto": "TCP", "tp_src": 80, "tp_dst": 443}),
                None,
            ),
            (json!({"in_port": 1, "dl_src": "02:00:00:00:00:01"}), None),
            (json!({}), None),
        ] {
            let mut expected = given.clone();
            if let Some((name, value)) = added {
                expected[name] = value.into();
            }
            assert_eq!(parse(given), Ok(expected));
        }
        let texts = json!({"in_port": "1", "dl_type": "IPv6", "nw_proto": "UDP", "tp_dst": "53"});
        let numbers = json!({"in_port": 1, "dl_type": "IPv6", "nw_proto": "UDP", "tp_dst": 53});
        assert_eq!(parse(texts), Ok(numbers));
    }

    #[test]
    fn fields_that_contradict_each_other_are_refused() {
        for (given, expected) in [
            (
                json!({"nw_proto": "TCP", "tp_dst": 80}),
                "dl_type is missing",
            ),
            (
                json!({"dl_type": "IP"}),
                "dl_type is \"IP\": expected one of ARP, IPv4, IPv6",
            ),
            (
                json!({"dl_type": "IPv4", "nw_proto": "SCTP"}),
                "nw_proto is \"SCTP\"",
            ),
            (
                json!({"dl_type": "ARP", "nw_proto": "TCP"}),
                "for ARP packets",
            ),
            (
                json!({"dl_type": "IPv4", "ipv6_src": "::1"}),
                "for IPv4 packets",
            ),
            (
                json!({"dl_type": "IPv6", "nw_proto": "ICMP"}),
                "for IPv6 packets",
            ),
            (
                json!({"nw_src": "10.0.0.1", "ipv6_dst": "::1"}),
                "for IPv4 packets",
            ),
            (
                json!({"nw_src": "10.0.0.300"}),
                "nw_src is \"10.0.0.300\": expected an IPv4 address",
            ),
            (json!({"tp_dst": 80}), "nw_proto is missing"),
            (json!({"dl_src": 5}), "dl_src is 5: expected a MAC address"),
        ] {
            let error = parse(given.clone()).unwrap_err();
            assert!(error.contains(expected), "{given}: {error}");
        }
    }
}
