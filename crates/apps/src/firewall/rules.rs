//! The firewall's rules, and their verdict on a packet.

use urtica_wire::packet::{ether_type, ip_proto};
use urtica_wire::{Match, OxmField};

/// The maximum number of rules, which fit into the priorities of entries with some to spare.
pub const MAX_RULES: usize = 60_000;

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is passed to the programs that forward.
    Allow,
    /// The packet is dropped.
    Deny,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The verdict.
    pub verdict: Verdict,
    /// The packets to which the rule applies.
    pub match_: Match<'static>,
}

/// All rules, in order. Parsed from text by [`str::parse`]; `docs/apps.md` has the syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirewallRules {
    /// The rules; the first that matches a packet applies.
    pub rules: Vec<Rule>,
    /// The verdict on packets that no rule matches.
    pub default: Verdict,
}

/// The EtherType of broadcast LLDP: discovery frames that foreign switches forward.
const BROADCAST_DISCOVERY: u16 = 0x8942;

/// Types of ICMPv6 neighbour discovery messages (RFC 4861 section 4).
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Returns matches for the packets that always pass, since every network needs them: address resolution and discovery.
pub fn always_allowed() -> [Match<'static>; 5] {
    let eth_type = |number| Match::any().eth_type(number);
    let icmpv6 = |kind: u8| {
        eth_type(ether_type::IPV6)
            .ip_proto(ip_proto::ICMPV6)
            .icmpv6_type(kind)
    };
    [
        eth_type(ether_type::ARP),
        eth_type(ether_type::LLDP),
        eth_type(BROADCAST_DISCOVERY),
        icmpv6(NEIGHBOUR_SOLICITATION),
        icmpv6(NEIGHBOUR_ADVERTISEMENT),
    ]
}

/// Returns the problem of a match that has no effect in a rule, and the expected match. Switches refuse fields whose
/// prerequisites (1.3.5 table 12) are not in the match; a rule for packets that always pass would mislead its reader, and so
/// would a rule for every packet, which makes all later rules unreachable.
pub(crate) fn why_unusable(match_: &Match) -> Option<(String, &'static str)> {
    if match_.fields().next().is_none() {
        return Some(("names no field".to_owned(), FIELDS));
    }
    let eth_type = match_.get(OxmField::EthType).map(|(value, _)| value as u16);
    if matches!(
        eth_type,
        Some(ether_type::ARP | ether_type::LLDP | BROADCAST_DISCOVERY)
    ) {
        let problem = "matches packets that always pass".to_owned();
        return Some((problem, "a rule for IP or other traffic"));
    }
    let known = KnownFields {
        eth_type,
        ip_proto: match_.get(OxmField::IpProto).map(|(value, _)| value as u8),
        tagged: match_
            .get(OxmField::VlanVid)
            .is_some_and(|(value, _)| value != 0),
    };
    match_.fields().find_map(|field| {
        let Some(field) = field.oxm_field() else {
            return Some(("has a field that is not OpenFlow's".to_owned(), FIELDS));
        };
        let expected = known.lacks(field)?;
        Some((format!("has the unusable field {}", field.name()), expected))
    })
}

/// The fields that a rule may match.
const FIELDS: &str = "ports, Ethernet, VLAN, IP, TCP, UDP, SCTP and ICMP fields";

/// The known fields of every packet that a rule matches.
struct KnownFields {
    eth_type: Option<u16>,
    ip_proto: Option<u8>,
    tagged: bool,
}

impl KnownFields {
    /// Returns the missing prerequisite of a field; `None` if packets have the field.
    fn lacks(&self, field: OxmField) -> Option<&'static str> {
        use OxmField::*;
        let is_type = |number| self.eth_type == Some(number);
        let is_proto = |number| self.ip_proto == Some(number);
        let (is_there, expected) = match field {
            InPort | EthDst | EthSrc | EthType | VlanVid => (true, ""),
            VlanPcp => (self.tagged, "dl_vlan=… with it"),
            IpDscp | IpProto => {
                let is_ip = is_type(ether_type::IPV4) || is_type(ether_type::IPV6);
                (is_ip, "ip or ipv6 with it")
            }
            Ipv4Src | Ipv4Dst => (
                is_type(ether_type::IPV4),
                "ip, tcp or another of IPv4 with it",
            ),
            Ipv6Src | Ipv6Dst => (
                is_type(ether_type::IPV6),
                "ipv6, tcp6 or another of IPv6 with it",
            ),
            TcpSrc | TcpDst => (is_proto(ip_proto::TCP), "tcp or tcp6 with it"),
            UdpSrc | UdpDst => (is_proto(ip_proto::UDP), "udp or udp6 with it"),
            SctpSrc | SctpDst => (is_proto(ip_proto::SCTP), "sctp or sctp6 with it"),
            Icmpv4Type | Icmpv4Code => (is_proto(ip_proto::ICMPV4), "icmp with it"),
            Icmpv6Type | Icmpv6Code => (is_proto(ip_proto::ICMPV6), "icmp6 with it"),
            _ => (false, FIELDS),
        };
        (!is_there).then_some(expected)
    }
}
