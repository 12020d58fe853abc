//! Entries that send ARP and neighbour discovery to the controller, above the entries of flows ("dynamic ARP inspection").
//!
//! **Why.** Hosts believe any ARP reply that they receive, even a unicast one. Along a flow's entries, a forged reply would
//! reach its victim uninspected. In the controller, [`NeighbourProxy`](urtica_services::NeighbourProxy) drops each message
//! that contradicts the table of hosts; this program then sends the others directly to their receivers.
//!
//! **Limits.** OpenFlow 1.0 cannot match ICMPv6, so there neighbour discovery follows the entries of its flow. A switch that
//! refuses an entry (IPv6 is optional in hardware) works without it. While the controller is away, hosts cannot resolve
//! addresses again, by broadcast or otherwise.

use super::COOKIE;
use super::late::Late;
use urtica_controller::{EntryOptions, Network};
use urtica_wire::packet::{Headers, ether_type, icmpv6, ip_proto};
use urtica_wire::{
    Action, DatapathId, ErrorMessage, FlowStats, Match, OxmField, PacketIn, Version,
};

/// The entries' priority: above all programs that forward, and below [`Security`](crate::Security), which drops all packets
/// of a blocked host.
const PRIORITY: u16 = 0xa000;

/// A kind of inspected packets. All messages of neighbour discovery can map an address to a MAC address (RFC 4861 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Inspected {
    Arp,
    /// A type of ICMPv6 message.
    Icmpv6(u8),
}

const ALL: [Inspected; 6] = [
    Inspected::Arp,
    Inspected::Icmpv6(icmpv6::ROUTER_SOLICITATION),
    Inspected::Icmpv6(icmpv6::ROUTER_ADVERTISEMENT),
    Inspected::Icmpv6(icmpv6::NEIGHBOR_SOLICITATION),
    Inspected::Icmpv6(icmpv6::NEIGHBOR_ADVERTISEMENT),
    Inspected::Icmpv6(icmpv6::REDIRECT),
];

impl Inspected {
    fn match_(self) -> Match<'static> {
        match self {
            Self::Arp => Match::any().eth_type(ether_type::ARP),
            Self::Icmpv6(icmp_type) => Match::any()
                .eth_type(ether_type::IPV6)
                .ip_proto(ip_proto::ICMPV6)
                .with_exact(OxmField::Icmpv6Type, icmp_type),
        }
    }

    fn is_possible(self, version: Version) -> bool {
        self == Self::Arp || version != Version::Of10
    }
}

/// The inspection entries that a switch is known to have.
#[derive(Clone, Debug, Default)]
pub(super) struct Installed([bool; ALL.len()]);

impl Installed {
    /// Notes an entry of ours that the switch reports.
    pub fn note(&mut self, entry: &FlowStats) {
        if entry.priority == PRIORITY {
            for (is_installed, inspected) in self.0.iter_mut().zip(ALL) {
                *is_installed |= entry.match_ == inspected.match_();
            }
        }
    }

    /// Sends the switch its missing entries.
    pub fn complete(&self, network: &Network, late: &Late, at: DatapathId, version: Version) {
        let lacks = self.0.iter().zip(ALL).filter(|(installed, _)| !**installed);
        for (_, inspected) in lacks.filter(|(_, it)| it.is_possible(version)) {
            let options = EntryOptions {
                cookie: COOKIE,
                ..EntryOptions::PERMANENT.priority(PRIORITY)
            };
            let actions = [Action::controller()];
            late.note(
                at,
                network.install(at, inspected.match_(), &actions, options),
            );
        }
    }
}

/// Returns `true` if switches send all packets of this kind to the controller.
pub(super) fn concerns(packet: &PacketIn) -> bool {
    match packet.eth_type() {
        ether_type::ARP => true,
        ether_type::IPV6 | ether_type::VLAN | ether_type::SERVICE_VLAN => {
            let headers = Headers::parse(packet.data);
            headers.eth_type == Some(ether_type::ARP)
                || headers.ip_proto == Some(ip_proto::ICMPV6)
                    && headers.icmp_type.is_some_and(is_neighbour_discovery)
        }
        _ => false,
    }
}

fn is_neighbour_discovery(icmp_type: u8) -> bool {
    ALL.contains(&Inspected::Icmpv6(icmp_type))
}

/// Returns `true` if a switch has refused one of these entries. It works without, since it would refuse the entry again.
pub(super) fn is_about(error: &ErrorMessage, version: Version) -> bool {
    // The offset of the priority in `ofp_flow_mod` (1.0 section 5.3.3, 1.3.5 section 7.3.4.1).
    let offset = match version {
        Version::Of10 => 62,
        Version::Of13 => 30,
    };
    let priority = error.data.get(offset..).and_then(<[u8]>::first_chunk);
    priority == Some(&PRIORITY.to_be_bytes())
}
