//! Actions: `output:2`, `push_vlan:0x8100`, `set_field:10.0.0.1->ip_dst`.

use super::error::{NOT_AN_ACTION, ParseError};
use super::field;
use super::item::{Item, Span};
use super::matching::{parse_tos, write_hex};
use super::value;
use crate::{Action, CONTROLLER_NO_BUFFER, Field, List, OxmField, PortNo, Version};
use std::fmt::{self, Write};
use std::str::FromStr;

/// Parses one action.
impl FromStr for Action<'static> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut items = Span::new(text).items();
        let first = items.next().unwrap_or(items.rest());
        match items.next() {
            None => parse_action(&first.item()?, std::iter::empty()),
            Some(second) => Err(second.error("is one action too many", "one action")),
        }
    }
}

/// Writes an action as `ovs-ofctl` does for OpenFlow 1.3.
impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_action(f, self, Version::Of13)
    }
}

/// An action list or set as text: `output:1,output:2`, or `drop` if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions<'a>(pub List<'a, Action<'a>>);

/// Parses actions with commas or white space between them; `drop`, or an empty text, means no actions.
impl FromStr for Actions<'static> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_actions(Span::new(text)).map(Self)
    }
}

impl fmt::Display for Actions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_actions(f, &self.0, Version::Of13)
    }
}

/// The word for no actions.
pub(super) const DROP: &str = "drop";

/// Parses a list of actions.
pub(super) fn parse_actions(text: Span<'_>) -> Result<List<'static, Action<'static>>, ParseError> {
    let spans: Vec<_> = text.items().collect();
    if matches!(spans[..], [only] if only.text() == DROP) {
        return Ok(List::default());
    }
    let actions = spans
        .iter()
        .map(|span| parse_action(&span.item()?, std::iter::empty()));
    actions.collect::<Result<Vec<_>, _>>().map(List::from)
}

type Parse = fn(&Item<'_>) -> Result<Action<'static>, ParseError>;

/// All actions with names. A port without one is an output to it.
const ACTIONS: &[(&str, Parse)] = &[
    ("output", |item| {
        value::parse_port(item.value()?).map(output)
    }),
    ("controller", controller),
    ("enqueue", enqueue),
    ("set_queue", |item| {
        item.value()?.u32().map(Action::SetQueue)
    }),
    ("group", |item| item.value()?.u32().map(Action::Group)),
    ("set_field", set_field),
    ("mod_vlan_vid", |item| {
        bits(item, 12).map(Action::SetVlanVid)
    }),
    ("set_vlan_vid", |item| {
        bits(item, 12).map(Action::SetVlanVid)
    }),
    ("mod_vlan_pcp", |item| {
        bits(item, 3).map(|pcp| Action::SetVlanPcp(pcp as u8))
    }),
    ("set_vlan_pcp", |item| {
        bits(item, 3).map(|pcp| Action::SetVlanPcp(pcp as u8))
    }),
    ("strip_vlan", |item| bare(item, Action::PopVlan)),
    ("pop_vlan", |item| bare(item, Action::PopVlan)),
    ("push_vlan", |item| {
        item.value()?.u16().map(Action::PushVlan)
    }),
    ("push_mpls", |item| {
        item.value()?.u16().map(Action::PushMpls)
    }),
    ("pop_mpls", |item| item.value()?.u16().map(Action::PopMpls)),
    ("push_pbb", push_pbb),
    ("pop_pbb", |item| bare(item, Action::PopPbb)),
    ("mod_dl_src", |item| set(item, OxmField::EthSrc)),
    ("mod_dl_dst", |item| set(item, OxmField::EthDst)),
    ("mod_nw_src", |item| set(item, OxmField::Ipv4Src)),
    ("mod_nw_dst", |item| set(item, OxmField::Ipv4Dst)),
    ("mod_nw_ecn", |item| set(item, OxmField::IpEcn)),
    ("mod_nw_tos", |item| {
        let dscp = parse_tos(item.value()?)?;
        Ok(Action::SetField(Field::exact(
            OxmField::IpDscp,
            dscp.into(),
        )))
    }),
    ("mod_tp_src", |item| {
        item.value()?.u16().map(Action::SetTpSrc)
    }),
    ("mod_tp_dst", |item| {
        item.value()?.u16().map(Action::SetTpDst)
    }),
    ("mod_nw_ttl", |item| {
        item.value()?.u8().map(Action::SetNwTtl)
    }),
    ("set_nw_ttl", |item| {
        item.value()?.u8().map(Action::SetNwTtl)
    }),
    ("dec_ttl", |item| bare(item, Action::DecNwTtl)),
    ("dec_nw_ttl", |item| bare(item, Action::DecNwTtl)),
    ("set_mpls_ttl", |item| {
        item.value()?.u8().map(Action::SetMplsTtl)
    }),
    ("dec_mpls_ttl", |item| bare(item, Action::DecMplsTtl)),
    ("copy_ttl_in", |item| bare(item, Action::CopyTtlIn)),
    ("copy_ttl_out", |item| bare(item, Action::CopyTtlOut)),
    ("set_tunnel", |item| set(item, OxmField::TunnelId)),
    ("set_tunnel64", |item| set(item, OxmField::TunnelId)),
];

/// Parses one action. `more_words` are other words that would be accepted.
pub(super) fn parse_action(
    item: &Item<'_>,
    more_words: impl Iterator<Item = &'static str>,
) -> Result<Action<'static>, ParseError> {
    let named = ACTIONS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(item.name()));
    if let Some((_, parse)) = named {
        return parse(item);
    }
    if let Ok(port) = item.name().parse() {
        item.no_value()?;
        return Ok(output(port));
    }
    Err(unknown(item, more_words))
}

/// Actions of Open vSwitch that OpenFlow does not define.
const ACTIONS_OF_OPEN_VSWITCH: &[&str] = &[
    "resubmit",
    "ct",
    "learn",
    "delete_learned",
    "move",
    "load",
    "push",
    "pop",
    "note",
    "bundle",
    "bundle_load",
    "multipath",
    "conjunction",
    "clone",
    "sample",
    "nat",
    "fin_timeout",
    "check_pkt_larger",
    "set_tunnel",
    "set_tunnel64",
    "encap",
    "decap",
];

fn unknown(item: &Item<'_>, more_words: impl Iterator<Item = &'static str>) -> ParseError {
    if item.name() == DROP {
        let problem = "cannot be combined with other actions";
        return item.key.error(problem, "'drop' alone, or no 'drop'");
    }
    // Without a value, it may be the name of a port.
    if ACTIONS_OF_OPEN_VSWITCH.contains(&item.name()) && item.value_if_any().is_some() {
        return item.key.error(
            "is an action of Open vSwitch, not of OpenFlow",
            "an action of OpenFlow, such as output:2 or set_field:VALUE->FIELD",
        );
    }
    let error = item.key.error(
        NOT_AN_ACTION,
        "one such as output:2, drop, set_field:VALUE->FIELD or a port",
    );
    error.or_did_you_mean(ACTIONS.iter().map(|(name, _)| *name).chain(more_words))
}

/// Creates an output, which sends whole packets if the port is the controller.
fn output(port: PortNo) -> Action<'static> {
    match port {
        PortNo::CONTROLLER => Action::controller(),
        port => Action::output(port),
    }
}

fn bare(item: &Item<'_>, action: Action<'static>) -> Result<Action<'static>, ParseError> {
    item.no_value().map(|()| action)
}

fn bits(item: &Item<'_>, bits: u32) -> Result<u16, ParseError> {
    item.value()?.number(bits).map(|number| number as u16)
}

fn set(item: &Item<'_>, field: OxmField) -> Result<Action<'static>, ParseError> {
    let form = field::place_and_name(field).1.form;
    let value = value::parse(item.value()?, field, form)?;
    Ok(Action::SetField(Field::exact(field, value)))
}

/// Parses `controller`, `CONTROLLER:128`, `controller(max_len=128)`.
fn controller(item: &Item<'_>) -> Result<Action<'static>, ParseError> {
    let max_len = match item.value_if_any() {
        None => CONTROLLER_NO_BUFFER,
        Some(value) => match value.split_once("max_len=") {
            Some((before, length)) if before.is_empty() => length.u16()?,
            _ => value.u16()?,
        },
    };
    Ok(Action::Output {
        port: PortNo::CONTROLLER,
        max_len,
    })
}

/// Parses `enqueue:PORT:QUEUE` or `enqueue(PORT,QUEUE)`.
fn enqueue(item: &Item<'_>) -> Result<Action<'static>, ParseError> {
    let value = item.value()?;
    let parts = value.split_once(":").or_else(|| value.split_once(","));
    let (port, queue) = parts.ok_or_else(|| value.error("names no queue", "enqueue:PORT:QUEUE"))?;
    Ok(Action::Enqueue {
        port: value::parse_port(port)?,
        queue_id: queue.u32()?,
    })
}

fn push_pbb(item: &Item<'_>) -> Result<Action<'static>, ParseError> {
    const SERVICE_TAG: u16 = 0x88e7;
    let eth_type = item.value_if_any().map_or(Ok(SERVICE_TAG), Span::u16)?;
    Ok(Action::PushPbb(eth_type))
}

/// Parses `set_field:VALUE->FIELD`; 1.3.5 section 7.2.5 allows no mask here.
fn set_field(item: &Item<'_>) -> Result<Action<'static>, ParseError> {
    let text = item.value()?;
    let form = "set_field:VALUE->FIELD";
    let (value, name) = text
        .split_once("->")
        .ok_or_else(|| text.error("names no field", form))?;
    if name.text() == "nw_tos" {
        let dscp = parse_tos(value)?;
        return Ok(Action::SetField(Field::exact(
            OxmField::IpDscp,
            dscp.into(),
        )));
    }
    let Some(field) = field::by_name(name.text()) else {
        let error = name.error(
            "is not a field that can be set",
            "one such as eth_dst or ip_src",
        );
        return Err(error.or_did_you_mean(field::NAMES.iter().map(|name| name.set)));
    };
    let value = value::parse(value, field.field, field.form)?;
    Ok(Action::SetField(Field::exact(field.field, value)))
}

/// Writes a list of actions in the words of `version`, or `drop`.
pub(super) fn write_actions<'a>(
    out: &mut dyn Write,
    actions: &List<'a, Action<'a>>,
    version: Version,
) -> fmt::Result {
    if actions.is_empty() {
        return out.write_str(DROP);
    }
    for (index, action) in actions.iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write_action(out, &action, version)?;
    }
    Ok(())
}

/// Writes an action as `ovs-ofctl` does for messages of `version`.
pub(super) fn write_action(
    out: &mut dyn Write,
    action: &Action<'_>,
    version: Version,
) -> fmt::Result {
    match *action {
        Action::Output { port, max_len } => write_output(out, port, max_len),
        Action::CopyTtlOut => out.write_str("copy_ttl_out"),
        Action::CopyTtlIn => out.write_str("copy_ttl_in"),
        Action::SetMplsTtl(ttl) => write!(out, "set_mpls_ttl({ttl})"),
        Action::DecMplsTtl => out.write_str("dec_mpls_ttl"),
        Action::PushVlan(eth_type) => write!(out, "push_vlan:{eth_type:#06x}"),
        Action::PopVlan => out.write_str(match version {
            Version::Of10 => "strip_vlan",
            Version::Of13 => "pop_vlan",
        }),
        Action::PushMpls(eth_type) => write!(out, "push_mpls:{eth_type:#06x}"),
        Action::PopMpls(eth_type) => write!(out, "pop_mpls:{eth_type:#06x}"),
        Action::SetQueue(queue_id) => write!(out, "set_queue:{queue_id}"),
        Action::Group(group_id) => write!(out, "group:{group_id}"),
        Action::SetNwTtl(ttl) => write!(out, "mod_nw_ttl:{ttl}"),
        Action::DecNwTtl => out.write_str("dec_ttl"),
        Action::SetField(field) => write_set_field(out, &field, version),
        Action::PushPbb(eth_type) => write!(out, "push_pbb:{eth_type:#06x}"),
        Action::PopPbb => out.write_str("pop_pbb"),
        Action::SetVlanVid(vid) => write!(out, "mod_vlan_vid:{vid}"),
        Action::SetVlanPcp(pcp) => write!(out, "mod_vlan_pcp:{pcp}"),
        Action::SetTpSrc(port) => write!(out, "mod_tp_src:{port}"),
        Action::SetTpDst(port) => write!(out, "mod_tp_dst:{port}"),
        Action::Enqueue { port, queue_id } => write!(out, "enqueue:{port}:{queue_id}"),
        Action::Experimenter { experimenter, data } => write_experimenter(out, experimenter, data),
    }
}

/// Writes opaque experimenter data.
pub(super) fn write_experimenter(
    out: &mut dyn Write,
    experimenter: u32,
    data: &[u8],
) -> fmt::Result {
    write!(out, "experimenter({experimenter:#x},")?;
    write_hex(out, data)?;
    out.write_char(')')
}

fn write_output(out: &mut dyn Write, port: PortNo, max_len: u16) -> fmt::Result {
    match port {
        PortNo::CONTROLLER => write!(out, "CONTROLLER:{max_len}"),
        port if port.is_reserved() => write!(out, "{port}"),
        port => write!(out, "output:{port}"),
    }
}

/// 1.0's names of actions for 1.3's set-field.
const OF10_NAMES: &[(OxmField, &str)] = &[
    (OxmField::EthSrc, "mod_dl_src"),
    (OxmField::EthDst, "mod_dl_dst"),
    (OxmField::Ipv4Src, "mod_nw_src"),
    (OxmField::Ipv4Dst, "mod_nw_dst"),
    (OxmField::IpDscp, "mod_nw_tos"),
];

fn write_set_field(out: &mut dyn Write, field: &Field<'_>, version: Version) -> fmt::Result {
    match field {
        Field::Basic { field, value, .. } => {
            let old = OF10_NAMES.iter().find(|(old, _)| old == field);
            match old.filter(|_| version == Version::Of10) {
                Some((_, name)) => write_old_set(out, *field, *value, name),
                None => write_new_set(out, *field, *value),
            }
        }
        Field::Raw(raw) => {
            write!(out, "set_field:oxm({:#06x},{},", raw.class, raw.field)?;
            write_hex(out, raw.body)?;
            out.write_char(')')
        }
    }
}

fn write_old_set(out: &mut dyn Write, field: OxmField, value: u128, name: &str) -> fmt::Result {
    let (full, form) = (field.full_mask(), field::place_and_name(field).1.form);
    write!(out, "{name}:")?;
    match field {
        OxmField::IpDscp => write!(out, "{}", value << 2),
        _ => value::write(out, form, value, full, full),
    }
}

fn write_new_set(out: &mut dyn Write, field: OxmField, value: u128) -> fmt::Result {
    let (full, name) = (field.full_mask(), field::place_and_name(field).1);
    let form = match name.form {
        value::Form::Hex(_) => value::Form::Hex(1),
        form => form,
    };
    out.write_str("set_field:")?;
    value::write(out, form, value, full, full)?;
    write!(out, "->{}", name.set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_read_as_the_same_action() {
        let pairs = [
            ("2", "output:2"),
            ("in_port", "IN_PORT"),
            ("output:flood", "FLOOD"),
            ("controller", "CONTROLLER:65535"),
            ("controller(max_len=128)", "CONTROLLER:128"),
            ("controller:64", "CONTROLLER:64"),
            ("strip_vlan", "pop_vlan"),
            ("enqueue(1,2)", "enqueue:1:2"),
            ("mod_nw_tos:32", "set_field:8->ip_dscp"),
            ("set_field:32->nw_tos", "set_field:8->ip_dscp"),
            ("set_field:10.0.0.1->ipv4_dst", "mod_nw_dst:10.0.0.1"),
            ("set_mpls_ttl:3", "set_mpls_ttl(3)"),
            ("dec_ttl()", "dec_ttl"),
        ];
        for (alias, plain) in pairs {
            assert_eq!(alias.parse::<Action>(), plain.parse(), "{alias}");
        }
    }

    #[test]
    fn each_version_has_its_own_words() {
        let actions: Actions = "set_field:32->nw_tos,mod_dl_src:00:00:00:00:00:01,pop_vlan"
            .parse()
            .expect("actions");
        let mut text = String::new();
        write_actions(&mut text, &actions.0, Version::Of10).expect("writing to a string");
        assert_eq!(
            text,
            "mod_nw_tos:32,mod_dl_src:00:00:00:00:00:01,strip_vlan"
        );
        assert_eq!(
            actions.to_string(),
            "set_field:8->ip_dscp,set_field:00:00:00:00:00:01->eth_src,pop_vlan"
        );
    }

    #[test]
    fn errors_are_sentences_with_a_column() {
        let error = |text: &str| text.parse::<Actions>().expect_err(text).to_string();
        assert_eq!(
            error("output:1,outptu:2"),
            "column 10: 'outptu' is not an action; did you mean 'output'?"
        );
        for own in ["resubmit(,1)", "ct(commit)", "learn(table=1)", "resubmit:1"] {
            let (name, _) = own.split_once(['(', ':']).unwrap_or_default();
            assert_eq!(
                error(own),
                format!(
                    "column 1: '{name}' is an action of Open vSwitch, not of OpenFlow; expected an action of OpenFlow, such as \
                     output:2 or set_field:VALUE->FIELD"
                )
            );
        }
        assert_eq!(
            error("set_field:1"),
            "column 11: '1' names no field; expected set_field:VALUE->FIELD"
        );
        assert_eq!(
            error("output:1,drop"),
            "column 10: 'drop' cannot be combined with other actions; expected 'drop' alone, or no 'drop'"
        );
        assert_eq!(
            error("output"),
            "column 1: 'output' has no value; expected output=VALUE"
        );
        assert_eq!(
            error("mod_vlan_vid:4096"),
            "column 14: '4096' is too large; expected a number of at most 12 bits"
        );
        assert_eq!(
            error("pop_vlan:1"),
            "column 10: '1' is one value too many; expected 'pop_vlan' alone"
        );
    }
}
