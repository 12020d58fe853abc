//! The router of one VLAN of a switch: its addresses and routes, and the neighbours that it has learnt.

use crate::ryu::rules;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use urtica_controller::ProgramId;
use urtica_wire::{Ipv4Prefix, MacAddr, Message, PortNo, Version};

/// The maximum number of addresses of a VLAN's router.
pub(super) const MAX_ADDRESSES: usize = 256;

/// The maximum number of its routes.
pub(super) const MAX_ROUTES: usize = 4_096;

/// The maximum number of hosts with entries. The controller itself forwards packets to other hosts.
const MAX_HOSTS: usize = 4_096;

/// An address of a router: the gateway of a subnet's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterAddress {
    /// Its number, among the addresses of its VLAN.
    pub id: u16,
    /// The address.
    pub address: Ipv4Addr,
    /// The subnet.
    pub subnet: Ipv4Prefix,
}

/// A route for packets to addresses outside a router's subnets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterRoute {
    /// Its number, among the routes of its VLAN.
    pub id: u16,
    /// The destinations of its packets.
    pub destination: Ipv4Prefix,
    /// The router to which they are forwarded.
    pub gateway: Ipv4Addr,
    /// Whether the gateway's MAC address is known.
    pub is_resolved: bool,
}

/// The host or router with an address, as learnt at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub mac: MacAddr,
    pub port_no: PortNo,
    /// The port's MAC address.
    pub port_mac: MacAddr,
}

/// A route, with its gateway once learnt.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub id: u16,
    pub destination: Ipv4Prefix,
    gateway: Ipv4Addr,
    pub neighbour: Option<Neighbour>,
}

/// The reason why an address or a route cannot be added, in Ryu's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The address's subnet overlaps that of another address.
    #[error("Address overlaps [address_id={0}]")]
    AddressOverlaps(u16),
    /// Another route has this destination.
    #[error("Destination overlaps [route_id={0}]")]
    DestinationOverlaps(u16),
    /// The gateway is not in any subnet of the router.
    #[error("Gateway={0}'s address is not registered.")]
    NotRegistered(Ipv4Addr),
    /// The gateway is one of the router's own addresses.
    #[error("Gateway={gateway} is used as default gateway of address_id={address_id}")]
    Own {
        /// The gateway.
        gateway: Ipv4Addr,
        /// The number of that address.
        address_id: u16,
    },
    /// The router has too many addresses or routes.
    #[error(
        "there are {MAX_ADDRESSES} addresses or {MAX_ROUTES} routes already: expected fewer, so delete some first"
    )]
    Full,
}

/// A router: addresses, routes, and learnt neighbours.
pub(super) struct VlanRouter {
    pub(super) vlan_id: u16,
    pub(super) addresses: Vec<RouterAddress>,
    pub(super) routes: Vec<Route>,
    hosts: BTreeMap<Ipv4Addr, Neighbour>,
    last_address_id: u16,
    last_route_id: u16,
}

/// Returns the next free number after `last`; never 0.
fn next_id(last: u16, is_used: impl Fn(u16) -> bool) -> u16 {
    let following = (1..=u16::MAX).map(|step| last.wrapping_add(step));
    let mut free = following.filter(|id| *id != 0 && !is_used(*id));
    // Exists, since there are fewer addresses and routes than numbers.
    free.next().unwrap_or(1)
}

impl VlanRouter {
    pub fn new(vlan_id: u16) -> Self {
        Self {
            vlan_id,
            addresses: Vec::new(),
            routes: Vec::new(),
            hosts: BTreeMap::new(),
            last_address_id: 0,
            last_route_id: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.routes.is_empty()
    }

    pub fn addresses(&self) -> &[RouterAddress] {
        &self.addresses
    }

    pub fn routes(&self) -> impl Iterator<Item = RouterRoute> {
        self.routes.iter().map(|route| RouterRoute {
            id: route.id,
            destination: route.destination,
            gateway: route.gateway,
            is_resolved: route.neighbour.is_some(),
        })
    }

    /// Returns the router's address in the subnet that contains `address`.
    pub fn subnet_of(&self, address: Ipv4Addr) -> Option<RouterAddress> {
        let mut subnets = self.addresses.iter();
        subnets.find(|it| it.subnet.contains(address)).copied()
    }

    pub fn is_own(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|it| it.address == address)
    }

    /// Returns the next hop for an address, and the router's address in that subnet.
    pub fn next_hop(&self, address: Ipv4Addr) -> Option<(RouterAddress, Ipv4Addr)> {
        if let Some(own) = self.subnet_of(address) {
            return Some((own, address));
        }
        let routes = self.routes.iter();
        let routes = routes.filter(|route| route.destination.contains(address));
        let route = routes.max_by_key(|route| route.destination.length())?;
        Some((self.subnet_of(route.gateway)?, route.gateway))
    }

    /// Iterates over the gateways, each with the router's address in its subnet.
    pub fn gateways(&self) -> impl Iterator<Item = (RouterAddress, Ipv4Addr)> {
        let routes = self.routes.iter();
        routes.filter_map(|route| Some((self.subnet_of(route.gateway)?, route.gateway)))
    }

    pub fn add_address(
        &mut self,
        address: Ipv4Addr,
        subnet: Ipv4Prefix,
    ) -> Result<RouterAddress, RouterError> {
        let overlaps = |it: &&RouterAddress| {
            it.subnet.contains(subnet.address()) || subnet.contains(it.subnet.address())
        };
        if let Some(other) = self.addresses.iter().find(overlaps) {
            return Err(RouterError::AddressOverlaps(other.id));
        }
        if self.addresses.len() == MAX_ADDRESSES {
            return Err(RouterError::Full);
        }
        let is_used = |id| self.addresses.iter().any(|it| it.id == id);
        let id = next_id(self.last_address_id, is_used);
        self.last_address_id = id;
        let added = RouterAddress {
            id,
            address,
            subnet,
        };
        self.addresses.push(added);
        Ok(added)
    }

    /// Adds a route. Returns its number, and the router's address in the subnet of the gateway.
    pub fn add_route(
        &mut self,
        destination: Ipv4Prefix,
        gateway: Ipv4Addr,
    ) -> Result<(u16, RouterAddress), RouterError> {
        let own = self.subnet_of(gateway);
        let own = own.ok_or(RouterError::NotRegistered(gateway))?;
        if own.address == gateway {
            let address_id = own.id;
            return Err(RouterError::Own {
                gateway,
                address_id,
            });
        }
        let mut routes = self.routes.iter();
        if let Some(other) = routes.find(|route| route.destination == destination) {
            return Err(RouterError::DestinationOverlaps(other.id));
        }
        if self.routes.len() == MAX_ROUTES {
            return Err(RouterError::Full);
        }
        let is_used = |id| self.routes.iter().any(|it| it.id == id);
        let id = next_id(self.last_route_id, is_used);
        self.last_route_id = id;
        self.routes.push(Route {
            id,
            destination,
            gateway,
            neighbour: None,
        });
        Ok((id, own))
    }

    /// Returns the numbers of the addresses with this number, or of all: first of deletable ones, then of those whose subnet
    /// contains a gateway.
    pub fn deletable(&self, id: Option<u16>) -> (Vec<u16>, Vec<u16>) {
        let wanted = self.addresses.iter();
        let wanted = wanted.filter(|it| id.is_none_or(|id| it.id == id));
        let (used, unused): (Vec<_>, Vec<_>) = wanted.partition(|it| {
            let mut routes = self.routes.iter();
            routes.any(|route| it.subnet.contains(route.gateway))
        });
        let ids = |addresses: Vec<&RouterAddress>| addresses.iter().map(|it| it.id).collect();
        (ids(unused), ids(used))
    }

    /// Deletes an address. Returns the messages that delete its entries, and the entries of its subnet's hosts.
    pub fn delete_address(&mut self, id: u16, program: ProgramId) -> Vec<Message<'static>> {
        let index = self.addresses.iter().position(|it| it.id == id);
        let Some(gone) = index.map(|index| self.addresses.remove(index)) else {
            return Vec::new();
        };
        let hosts = std::mem::take(&mut self.hosts);
        let (there, kept): (BTreeMap<_, _>, _) = hosts
            .into_iter()
            .partition(|(host, _)| gone.subnet.contains(*host));
        self.hosts = kept;
        let hosts = there.keys().map(|host| self.host_place(*host));
        let places = self.address_places(&gone).into_iter().chain(hosts);
        let deletion =
            |(match_, priority)| Message::FlowMod(rules::deletion(program, priority, match_));
        places.map(deletion).collect()
    }

    /// Deletes the routes with this number, or all. Returns their numbers, and the messages for the switch.
    pub fn delete_routes(
        &mut self,
        id: Option<u16>,
        program: ProgramId,
    ) -> (Vec<u16>, Vec<Message<'static>>) {
        let all = std::mem::take(&mut self.routes);
        let is_meant = |route: &Route| id.is_none_or(|id| route.id == id);
        let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(is_meant);
        self.routes = kept;
        let undo = |route: &Route| match route.destination.length() {
            // All other packets are dropped again.
            0 => self.drop_entry(),
            _ => {
                let (match_, priority) = self.route_place(route.destination);
                Message::FlowMod(rules::deletion(program, priority, match_))
            }
        };
        let messages = gone.iter().map(undo).collect();
        (gone.iter().map(|route| route.id).collect(), messages)
    }

    /// Learns a neighbour at a port. Returns the entries for it.
    pub fn learn(
        &mut self,
        address: Ipv4Addr,
        neighbour: Neighbour,
        version: Version,
    ) -> Vec<Message<'static>> {
        let is_via = |route: &Route| route.gateway == address;
        if self.routes.iter().any(is_via) {
            let mut changed = Vec::new();
            for route in self.routes.iter_mut().filter(|route| is_via(route)) {
                if route.neighbour.replace(neighbour) != Some(neighbour) {
                    changed.push(*route);
                }
            }
            return changed
                .iter()
                .map(|route| self.route_entry(route, version))
                .collect();
        }
        let Some(own) = self.subnet_of(address) else {
            return Vec::new();
        };
        let is_full = self.hosts.len() == MAX_HOSTS && !self.hosts.contains_key(&address);
        if is_full || own.address == address {
            return Vec::new();
        }
        self.hosts.insert(address, neighbour);
        vec![self.host_entry(address, own.id, neighbour, version)]
    }

    /// Forgets all hosts, since the switch has reconnected.
    pub fn forget_neighbours(&mut self) {
        self.hosts.clear();
        self.routes
            .iter_mut()
            .for_each(|route| route.neighbour = None);
    }
}
