//! IP fragments, which hide fields from rules about ports.
//!
//! **The problem.** Only the first fragment of a packet has its ports, and a switch may not see those of TCP and SCTP if the
//! fragment is shorter than the header. By the specification, entries that match ports then do not match: a rule that denies
//! a port would pass all fragments. Open vSwitch hides the ports of all fragments by default.
//!
//! **The solution.**
//! - Switches are configured to match fragments as Open vSwitch can ([`ConfigFlags::FRAG_NX_MATCH`]): the first fragment has its
//!   real ports, and hidden fields are 0. So the first fragment is denied if the packet would be, and without it the receiver
//!   cannot use the others. UDP and ICMP headers fit into any fragment.
//! - If a rule denies TCP or SCTP ports, packets with hidden ports (0 and 0) are denied, too, if all other fields match: a
//!   truncated first fragment cannot be distinguished from a later one. Likewise for the protocol of IPv6, which a chain of
//!   extension headers may hide (protocol 0).
//! - A switch that does not support this is configured to drop fragments ([`ConfigFlags::FRAG_DROP`]).

use super::rules::{FirewallRules, Rule, Verdict};
use urtica_wire::packet::{ether_type, ip_proto};
use urtica_wire::{ConfigFlags, Field, Match, OxmField};

/// Safe ways to treat fragments, best first.
pub(super) const SAFE_WAYS: [ConfigFlags; 2] = [ConfigFlags::FRAG_NX_MATCH, ConfigFlags::FRAG_DROP];

/// The fields that fragments may hide, each with its protocol.
const PORTS: [(OxmField, u8); 4] = [
    (OxmField::TcpSrc, ip_proto::TCP),
    (OxmField::TcpDst, ip_proto::TCP),
    (OxmField::SctpSrc, ip_proto::SCTP),
    (OxmField::SctpDst, ip_proto::SCTP),
];

/// Returns `true` if fragments could bypass a rule unless switches treat them in one of the [`SAFE_WAYS`].
pub(super) fn matter_to(rules: &FirewallRules) -> bool {
    rules.rules.iter().any(|rule| {
        rule.match_.get(OxmField::IpProto).is_some() || rule.match_.fields().any(is_of_transport)
    })
}

/// Returns matches for the packets that a denying rule must also deny because their fields are hidden.
pub(super) fn hidden_from(rule: &Rule) -> Vec<Match<'static>> {
    let fields: Vec<Field> = rule.match_.fields().collect();
    let looks_at = |(field, _): &&(OxmField, u8)| fields.iter().any(|own| is(own, *field));
    if rule.verdict == Verdict::Allow {
        return Vec::new();
    }
    let above = fields
        .iter()
        .copied()
        .filter(|field| !is_of_transport(*field));
    let above = Match::from(above.collect::<Vec<_>>());
    let mut hidden = Vec::new();
    if let Some((_, proto)) = PORTS.iter().find(looks_at) {
        let ports = PORTS.iter().filter(|(_, of)| of == proto);
        hidden.push(ports.fold(above.clone(), |match_, (field, _)| {
            match_.with_exact(*field, 0_u16)
        }));
    }
    let is_ipv6 = above.get(OxmField::EthType) == Some((ether_type::IPV6.into(), u16::MAX.into()));
    if is_ipv6 && above.get(OxmField::IpProto).is_some() {
        hidden.push(above.ip_proto(0));
    }
    hidden
}

/// Returns `true` if a match also applies to packets that hide its ports.
pub(super) fn includes_hidden(match_: &Match) -> bool {
    let mut ports = PORTS.iter().filter_map(|(field, _)| match_.get(*field));
    let mut looks = false;
    let all_zero = ports.all(|(value, _)| {
        looks = true;
        value == 0
    });
    looks && all_zero
}

/// Adds the hidden fields to a packet's fields, as switches read them. Returns `true` if it has added some.
pub(super) fn add_hidden(fields: &mut Vec<Field>) -> bool {
    let get = |wanted: OxmField| {
        fields.iter().find_map(|field| match field {
            Field::Basic { field, value, .. } if *field == wanted => Some(*value),
            _ => None,
        })
    };
    let is_ipv6 = get(OxmField::EthType) == Some(ether_type::IPV6.into());
    let hidden: Vec<_> = match get(OxmField::IpProto) {
        None if is_ipv6 => vec![OxmField::IpProto],
        proto => PORTS
            .iter()
            .filter(|(field, of)| proto == Some((*of).into()) && get(*field).is_none())
            .map(|(field, _)| *field)
            .collect(),
    };
    fields.extend(hidden.iter().map(|field| Field::exact(*field, 0)));
    !hidden.is_empty()
}

fn is(field: &Field, wanted: OxmField) -> bool {
    field.oxm_field() == Some(wanted)
}

/// Returns `true` if a field is in the header after that of IP.
fn is_of_transport(field: Field) -> bool {
    use OxmField::*;
    matches!(
        field.oxm_field(),
        Some(
            TcpSrc
                | TcpDst
                | UdpSrc
                | UdpDst
                | SctpSrc
                | SctpDst
                | Icmpv4Type
                | Icmpv4Code
                | Icmpv6Type
                | Icmpv6Code
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the matches that are denied in addition to the rules of a text.
    fn hidden(text: &str) -> Vec<Match<'static>> {
        let rules: FirewallRules = text.parse().unwrap();
        rules.rules.iter().flat_map(hidden_from).collect()
    }

    fn matches(texts: &[&str]) -> Vec<Match<'static>> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn rules_that_deny_tcp_ports_deny_hidden_ports() {
        assert_eq!(
            hidden("deny tcp,nw_dst=10.0.0.0/8,tp_dst=22\ndeny sctp,tp_src=5\ndefault allow"),
            matches(&[
                "tcp,nw_dst=10.0.0.0/8,tp_src=0,tp_dst=0",
                "sctp,tp_src=0,tp_dst=0"
            ])
        );
        assert_eq!(
            hidden("deny tcp6,tp_dst=22\ndeny udp6,tp_dst=53\ndefault allow"),
            matches(&[
                "tcp6,tp_src=0,tp_dst=0",
                "ipv6,nw_proto=0",
                "ipv6,nw_proto=0"
            ])
        );
    }

    #[test]
    fn other_rules_deny_no_further_packets() {
        for text in [
            "allow tcp,tp_dst=22",
            "deny udp,tp_dst=53",
            "deny icmp,icmp_type=8",
            "deny tcp,nw_src=10.0.0.1",
            "deny ipv6,ipv6_src=fd00::1",
        ] {
            assert_eq!(hidden(&format!("{text}\ndefault allow")), [], "{text}");
        }
    }
}
