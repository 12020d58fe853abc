//! The firewall's rules, and their verdict on a packet.

use urtica_wire::packet::{ether_type, ip_proto};
use urtica_wire::{Match, OxmField};

/// The maximum number of rules: they fit into the priorities of entries, with room around them.
pub const MAX_RULES: usize = 60_000;

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on to the programs that forward.
    Allow,
    /// The packet is dropped.
    Deny,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The verdict.
    pub verdict: Verdict,
    /// The packets that it applies to.
    pub match_: Match<'static>,
}

/// All rules, in order. Parsed from text by [`str::parse`]; `docs/apps.md` has the syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirewallRules {
    /// The first that matches a packet applies.
    pub rules: Vec<Rule>,
    /// The verdict on packets that none matches.
    pub default: Verdict,
}

/// Discovery frames that pass foreign switches: broadcast LLDP.
const BROADCAST_DISCOVERY: u16 = 0x8942;

/// Types of ICMPv6 neighbour discovery messages (RFC 4861 section 4).
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Packets that a network needs to work at all, and that pass whatever the rules say: address resolution and discovery.
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

/// Why a rule with this match could not do what it says: a problem and what was expected. Switches refuse fields whose
/// prerequisites (1.3.5 table 12) are not in the match; a rule for packets that always pass would mislead its reader, and so
/// would one for every packet, which makes all later rules unreachable.
pub(crate) fn why_unusable(match_: &Match) -> Option<(String, &'static str)> {
    if match_.fields().next().is_none() {
        return Some(("names no field".to_owned(), FIELDS));
    }
    let eth_type = match_.get(OxmField::EthType).map(|(value, _)| value as u16);
    if matches!(
        eth_type,
        Some(ether_type::ARP | ether_type::LLDP | BROADCAST_DISCOVERY)
    ) {
        let problem = "asks for packets that always pass".to_owned();
        return Some((problem, "a rule for IP or other traffic"));
    }
    let known = Known {
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
        Some((
            format!("matches {}, which is not there", field.name()),
            expected,
        ))
    })
}

/// The fields that a rule may match.
const FIELDS: &str = "ports, Ethernet, VLAN, IP, TCP, UDP, SCTP and ICMP fields";

/// What is known of every packet that a rule matches.
struct Known {
    eth_type: Option<u16>,
    ip_proto: Option<u8>,
    tagged: bool,
}

impl Known {
    /// What the match would also have to contain for the field to exist; `None` if it does.
    fn lacks(&self, field: OxmField) -> Option<&'static str> {
        use OxmField::*;
        let is_type = |number| self.eth_type == Some(number);
        let is_proto = |number| self.ip_proto == Some(number);
        let (is_there, expected) = match field {
            InPort | EthDst | EthSrc | EthType | VlanVid => (true, ""),
            VlanPcp => (self.tagged, "dl_vlan=… beside it"),
            IpDscp | IpProto => {
                let is_ip = is_type(ether_type::IPV4) || is_type(ether_type::IPV6);
                (is_ip, "ip or ipv6 beside it")
            }
            Ipv4Src | Ipv4Dst => (
                is_type(ether_type::IPV4),
                "ip, tcp or another of IPv4 beside it",
            ),
            Ipv6Src | Ipv6Dst => (
                is_type(ether_type::IPV6),
                "ipv6, tcp6 or another of IPv6 beside it",
            ),
            TcpSrc | TcpDst => (is_proto(ip_proto::TCP), "tcp or tcp6 beside it"),
            UdpSrc | UdpDst => (is_proto(ip_proto::UDP), "udp or udp6 beside it"),
            SctpSrc | SctpDst => (is_proto(ip_proto::SCTP), "sctp or sctp6 beside it"),
            Icmpv4Type | Icmpv4Code => (is_proto(ip_proto::ICMPV4), "icmp beside it"),
            Icmpv6Type | Icmpv6Code => (is_proto(ip_proto::ICMPV6), "icmp6 beside it"),
            _ => (false, FIELDS),
        };
        (!is_there).then_some(expected)
    }
}
