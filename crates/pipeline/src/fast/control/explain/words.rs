//! The compiler's data in `ovs-ofctl`'s words.

use super::Row;
use crate::EntryMatch;
use crate::fast::control::cut::Cut;
use crate::fast::control::route::Route;
use crate::fast::datapath::action_program::{ActionProgram, End};
use crate::fast::datapath::kinds::{Depth, Kinds};
use crate::fast::datapath::op::Op;
use std::collections::BTreeSet;
use urtica_wire::{Field, Match, OxmField};

/// Returns `1 entry`, `2 entries`, and so on.
pub fn entries(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}

/// Returns the last header that is parsed.
pub fn depth(depth: Depth) -> &'static str {
    match depth {
        Depth::Ethernet => "the Ethernet addresses",
        Depth::Type => "VLAN tags and the Ethernet type",
        Depth::Network => "the header of IP or ARP",
        Depth::Transport => "the header of TCP, UDP, SCTP or ICMP",
    }
}

/// Returns a match's fields and masks, without the values.
pub fn looks_at(match_: &EntryMatch) -> String {
    let text = match_.to_wire().to_string();
    if text.is_empty() {
        return "everything".to_owned();
    }
    text.split(',')
        .map(without_value)
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns the field of a cut, and its mask.
pub fn cut(cut: Cut) -> String {
    let Cut {
        field,
        mask,
        require,
    } = cut;
    // The names of fields depend on the protocol.
    let (eth_type, ip_proto) = match require {
        Kinds::IPV4 => (Some(0x0800_u16), None),
        Kinds::IPV6 => (Some(0x86dd), None),
        Kinds::ARP => (Some(0x0806), None),
        Kinds::TCP => (Some(0x0800), Some(6_u8)),
        Kinds::UDP => (Some(0x0800), Some(17)),
        Kinds::SCTP => (Some(0x0800), Some(132)),
        Kinds::ICMPV4 => (Some(0x0800), Some(1)),
        Kinds::ICMPV6 => (Some(0x86dd), Some(58)),
        _ => (None, None),
    };
    let eth_type = eth_type.map(|number| Field::exact(OxmField::EthType, number.into()));
    let ip_proto = ip_proto.map(|number| Field::exact(OxmField::IpProto, number.into()));
    let field = Field::masked(field, mask, mask);
    let fields = eth_type.into_iter().chain(ip_proto).chain([field]);
    let text = Match::from(fields.collect::<Vec<_>>()).to_string();
    let name = text.split(',').next_back();
    name.map(without_value).unwrap_or_default()
}

fn without_value(field: &str) -> String {
    match field.split_once('=') {
        None => field.to_owned(),
        Some((name, value)) => match value.split_once('/') {
            None => name.to_owned(),
            Some((_, mask)) => format!("{name}/{mask}"),
        },
    }
}

/// Returns the address field of these prefixes, and their lengths.
pub fn prefixes(routes: &[&Row]) -> String {
    let longest = routes.iter().map(|row| looks_at(&row.entry.match_));
    let address = longest.max_by_key(|text| text.find('/').unwrap_or(text.len()));
    let address = address.unwrap_or_default();
    let address = address.split('/').next().unwrap_or_default();
    let route = |row: &&Row| Route::new(&row.entry.match_, row.key.mask.require);
    let lengths: BTreeSet<u32> = routes
        .iter()
        .filter_map(route)
        .map(|route| route.len)
        .collect();
    let lengths: Vec<_> = lengths.iter().map(u32::to_string).collect();
    format!("{address}, prefixes of {} bits", listed(&lengths))
}

/// Returns a list such as `1, 2 and 3`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Describes a program's operations and the final destination of frames. A `*` is a value that differs between entries.
pub fn actions(program: &ActionProgram) -> String {
    let end = match program.end {
        End::Output => Some("output:*"),
        End::InPort => Some("IN_PORT"),
        End::Goto => Some("goto_table:*"),
        End::Group => Some("group:*"),
        End::Drop => (program.ops.is_empty() && program.sent == 0).then_some("drop"),
        End::Punt => Some("left to the plain form"),
    };
    let ops = program.ops.iter().map(|&op| op_text(op, program.require));
    let sent = (0..program.sent).map(|_| "output:*".to_owned());
    let all = ops
        .chain(sent)
        .chain(set_text(program))
        .chain(end.map(str::to_owned));
    all.collect::<Vec<_>>().join(",")
}

/// Describes headers by `ovs-ofctl`'s names of protocols.
pub fn headers(kinds: Kinds) -> String {
    const NAMES: [(Kinds, &str); 9] = [
        (Kinds::VLAN, "vlan"),
        (Kinds::IPV4, "ip"),
        (Kinds::IPV6, "ipv6"),
        (Kinds::ARP, "arp"),
        (Kinds::TCP, "tcp"),
        (Kinds::UDP, "udp"),
        (Kinds::SCTP, "sctp"),
        (Kinds::ICMPV4, "icmp"),
        (Kinds::ICMPV6, "icmp6"),
    ];
    let there = NAMES.iter().filter(|(kind, _)| kinds.contains(*kind));
    there.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

fn set_text(program: &ActionProgram) -> Option<String> {
    let step = program.set.as_ref().filter(|step| step.writes())?;
    let text = match (step.clears, step.written.len()) {
        (true, 0) => "clear_actions",
        (true, _) => "clear_actions,write_actions(*)",
        (false, _) => "write_actions(*)",
    };
    Some(text.to_owned())
}

fn op_text(op: Op, require: Kinds) -> String {
    let is_udp = require.contains(Kinds::UDP);
    let field = match op {
        Op::SetEthDst => "eth_dst",
        Op::SetEthSrc => "eth_src",
        Op::SetVlanVid => "vlan_vid",
        Op::SetVlanPcp => "vlan_pcp",
        Op::SetIpv4Src => "ip_src",
        Op::SetIpv4Dst => "ip_dst",
        Op::SetTransportSrc if is_udp => "udp_src",
        Op::SetTransportDst if is_udp => "udp_dst",
        Op::SetTransportSrc => "tcp_src",
        Op::SetTransportDst => "tcp_dst",
        Op::DecNwTtl => return "dec_ttl".to_owned(),
        Op::PushVlan(ether_type) => return format!("push_vlan:{ether_type:#06x}"),
        Op::PopVlan => return "pop_vlan".to_owned(),
        Op::Meter => return "meter:*".to_owned(),
        Op::Send => return "output:*".to_owned(),
        Op::WriteMetadata => return "write_metadata:*".to_owned(),
    };
    format!("set_field:*->{field}")
}
