//! The entries of a VLAN's router in a switch.
//!
//! Priorities and cookies are Ryu's:
//!
//! ```text
//! 1037    to an address of the router     to the controller
//! 36      within a subnet                 NORMAL
//! 35      to a known host                 to the host
//! 2..34   by a route                      to its gateway, or to the controller until the gateway is known
//! 2       to a subnet                     to the controller, which sends an ARP request for the host
//! 1       everything else                 by the default route, or dropped
//! ```
//! With a VLAN, all but the first are 1,000 higher.

use super::vlan::{Neighbour, Route, RouterAddress, VlanRouter};
use crate::ryu::rules;
use std::net::Ipv4Addr;
use urtica_controller::{EntryOptions, ProgramId};
use urtica_wire::packet::ether_type;
use urtica_wire::{
    Action, FlowMod, Instruction, Ipv4Prefix, List, Match, Message, PortNo, Version,
};

/// The seconds without a packet after which a host's entry expires.
const HOST_IDLE_TIMEOUT_S: u16 = 1_800;

const DEFAULT_ROUTE_PRIORITY: u16 = 1;
const SUBNET_PRIORITY: u16 = 2;
const STATIC_ROUTE_PRIORITY: u16 = 2;
const HOST_PRIORITY: u16 = 35;
const SWITCHING_PRIORITY: u16 = 36;
const OWN_PRIORITY: u16 = 1_037;

/// The amount by which a VLAN raises priorities.
const VLAN_RAISES_BY: u16 = 1_000;

impl VlanRouter {
    /// Returns all entries that do not depend on learnt hosts.
    pub fn entries(&self, version: Version) -> Vec<Message<'static>> {
        let addresses = self.addresses.iter();
        let addresses = addresses.flat_map(|address| self.address_entries(address));
        let routes = self.routes.iter();
        let routes = routes.map(|route| self.route_entry(route, version));
        [self.drop_entry()]
            .into_iter()
            .chain(addresses)
            .chain(routes)
            .collect()
    }

    /// Returns the message that deletes the entries of a router without addresses and routes.
    pub fn close(&self, program: ProgramId) -> Message<'static> {
        let (match_, priority) = self.default_place();
        Message::FlowMod(rules::deletion(program, priority, match_))
    }

    /// Returns the entries of one of the router's addresses.
    pub fn address_entries(&self, address: &RouterAddress) -> Vec<Message<'static>> {
        let actions = [
            Action::controller(),
            Action::controller(),
            Action::output(PortNo::NORMAL),
        ];
        let places = self.address_places(address).into_iter().zip(actions);
        let made = places.map(|((match_, priority), action)| {
            entry(
                match_,
                self.options(address.id.into(), priority),
                vec![action],
            )
        });
        made.collect()
    }

    /// Returns the entry of the route with this number.
    pub fn route_entry_of(&self, id: u16, version: Version) -> Option<Message<'static>> {
        let route = self.routes.iter().find(|route| route.id == id)?;
        Some(self.route_entry(route, version))
    }

    pub(super) fn route_entry(&self, route: &Route, version: Version) -> Message<'static> {
        let (match_, priority) = self.route_place(route.destination);
        let actions = match route.neighbour {
            Some(neighbour) => forwarding(neighbour, version),
            None => vec![Action::controller()],
        };
        entry(
            match_,
            self.options(u64::from(route.id) << 16, priority),
            actions,
        )
    }

    /// Returns the entry that drops packets without a route.
    pub(super) fn drop_entry(&self) -> Message<'static> {
        let (match_, priority) = self.default_place();
        entry(match_, self.options(0, priority), Vec::new())
    }

    /// Returns the entry of a learnt host, in the subnet of the address with this number.
    pub(super) fn host_entry(
        &self,
        host: Ipv4Addr,
        address_id: u16,
        neighbour: Neighbour,
        version: Version,
    ) -> Message<'static> {
        let (match_, priority) = self.host_place(host);
        let options = EntryOptions {
            idle_timeout: HOST_IDLE_TIMEOUT_S,
            ..self.options(address_id.into(), priority)
        };
        entry(match_, options, forwarding(neighbour, version))
    }

    /// Returns the match and priority of a host's entry.
    pub(super) fn host_place(&self, host: Ipv4Addr) -> (Match<'static>, u16) {
        (self.ipv4().ipv4_dst(host), self.raised(HOST_PRIORITY))
    }

    fn default_place(&self) -> (Match<'static>, u16) {
        (self.ipv4(), self.raised(DEFAULT_ROUTE_PRIORITY))
    }

    pub(super) fn route_place(&self, destination: Ipv4Prefix) -> (Match<'static>, u16) {
        match destination.length() {
            0 => self.default_place(),
            length => {
                let priority = STATIC_ROUTE_PRIORITY + u16::from(length);
                (self.ipv4().ipv4_dst(destination), self.raised(priority))
            }
        }
    }

    /// Returns the matches and priorities of an address's entries: to its subnet, to the address, and within its subnet.
    pub(super) fn address_places(&self, address: &RouterAddress) -> [(Match<'static>, u16); 3] {
        let subnet = address.subnet;
        [
            (self.ipv4().ipv4_dst(subnet), self.raised(SUBNET_PRIORITY)),
            (self.ipv4().ipv4_dst(address.address), OWN_PRIORITY),
            (
                self.ipv4().ipv4_src(subnet).ipv4_dst(subnet),
                self.raised(SWITCHING_PRIORITY),
            ),
        ]
    }

    fn ipv4(&self) -> Match<'static> {
        let any = match self.vlan_id {
            0 => Match::any(),
            vlan_id => Match::any().vlan_vid(vlan_id),
        };
        any.eth_type(ether_type::IPV4)
    }

    fn raised(&self, priority: u16) -> u16 {
        match self.vlan_id {
            0 => priority,
            _ => priority + VLAN_RAISES_BY,
        }
    }

    fn options(&self, low: u64, priority: u16) -> EntryOptions {
        EntryOptions {
            cookie: u64::from(self.vlan_id) << 32 | low,
            ..EntryOptions::PERMANENT.priority(priority)
        }
    }
}

/// Returns the actions on packets for a neighbour. OpenFlow 1.0 cannot decrement a TTL, and Ryu left it unchanged there.
fn forwarding(neighbour: Neighbour, version: Version) -> Vec<Action<'static>> {
    let ttl = (version != Version::Of10).then_some(Action::DecNwTtl);
    let rewrite = [
        Action::set_eth_src(neighbour.port_mac),
        Action::set_eth_dst(neighbour.mac),
        Action::output(neighbour.port_no),
    ];
    ttl.into_iter().chain(rewrite).collect()
}

/// Builds an entry that executes these actions.
pub(super) fn entry(
    match_: Match<'static>,
    options: EntryOptions,
    actions: Vec<Action<'static>>,
) -> Message<'static> {
    let apply = (!actions.is_empty()).then(|| Instruction::apply(actions));
    Message::FlowMod(FlowMod {
        match_,
        instructions: List::from(Vec::from_iter(apply)),
        ..options.flow_mod()
    })
}
