//! Ryu's `rest_router`: each switch routes between the subnets that requests configure, and switches within each of them.
//!
//! **What.** A router has addresses, each of which is the gateway of a subnet, and static routes: for each VLAN, and for
//! packets of any VLAN. It answers ARP requests and pings for its addresses, and learns hosts and gateways from their ARP
//! packets. Entries forward packets to these hosts. The first packets to other hosts wait up to two seconds for ARP; if no
//! reply arrives, their senders receive an ICMP error. The router's MAC address in a subnet is that of the port.
//!
//! **Differences from Ryu.** Packets other than ARP and IPv4 are sent to the controller, which makes the switch forward them
//! (`NORMAL`): Ryu's entry for them would replace the framework's table-miss entry.
//!
//! **Bounds.** 50 packets wait for each switch. Its hosts get 100 ICMP errors a second. `router/vlan.rs` has the other
//! bounds, and `router/entries.rs` the entries.

mod entries;
mod frames;
mod handler;
mod packets;
mod vlan;

pub use vlan::{RouterAddress, RouterError, RouterRoute};

use super::store::{RyuError, Store, confirmed};
use crate::registry::{About, Row};
use frames::packet_out;
use handler::RouterHandler;
use packets::Waiting;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use urtica_controller::{
    Background, Network, PendingReply, Program, RequestError, SwitchHandler, SwitchInfo,
};
use urtica_wire::{DatapathId, Ipv4Prefix, Message, PortNo};
use vlan::VlanRouter;

/// The routers controlled by requests, one for each switch. Clones share their state.
#[derive(Clone, Default)]
pub struct RestRouter(Arc<Store<Routed>>);

/// The addresses and routes of a VLAN's router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterView {
    /// Its addresses, in the order in which they were added.
    pub addresses: Vec<RouterAddress>,
    /// Its routes, in the order in which they were added.
    pub routes: Vec<RouterRoute>,
}

/// The outcome of a deletion, as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The deleted addresses or routes.
    pub ids: Vec<u16>,
    /// The addresses that were kept because the gateways of routes are in their subnets.
    pub skipped: Vec<u16>,
}

/// The state of a switch.
pub(super) struct Routed {
    /// The routers by VLAN; the router of VLAN 0 handles packets of any VLAN.
    vlans: BTreeMap<u16, VlanRouter>,
    waiting: Vec<Waiting>,
}

impl Default for Routed {
    fn default() -> Self {
        Self {
            vlans: BTreeMap::from([(0, VlanRouter::new(0))]),
            waiting: Vec::new(),
        }
    }
}

impl Routed {
    /// Adds an address and sends its entries to the switch. If that fails, the address is removed again.
    fn add_address(
        &mut self,
        network: &Network,
        id: DatapathId,
        vlan_id: u16,
        (address, subnet): (Ipv4Addr, Ipv4Prefix),
    ) -> Result<(RouterAddress, PendingReply), RyuError> {
        let is_new = !self.vlans.contains_key(&vlan_id);
        let router = self.vlans.entry(vlan_id);
        let router = router.or_insert_with(|| VlanRouter::new(vlan_id));
        let added = router.add_address(address, subnet)?;
        let sent = info_of(network, id).and_then(|info| {
            let entries = match is_new {
                true => router.entries(info.version),
                false => router.address_entries(&added),
            };
            // All hosts must learn the new owner of the address.
            let asking = frames::ask_all(&info, vlan_id, address, address, None);
            Ok((added, confirm(network, id, entries, asking)?))
        });
        if sent.is_err() {
            router.delete_address(added.id, network.program());
        }
        sent
    }

    /// Removes the router of a VLAN if it is empty. Returns the message that deletes its last entry.
    fn close(&mut self, vlan_id: u16, network: &Network) -> Option<Message<'static>> {
        let is_empty = vlan_id != 0 && self.vlans.get(&vlan_id)?.is_empty();
        let gone = is_empty.then(|| self.vlans.remove(&vlan_id)).flatten()?;
        Some(gone.close(network.program()))
    }
}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row = Row {
    about: About::forwarder(
        "rest_router",
        "routes between the subnets given in requests to --northbound, as Ryu's did",
    ),
    add: |setup, ()| {
        let router = setup.ryu().router.clone();
        setup.add(router);
        Ok(())
    },
};

impl RestRouter {
    /// Returns the connected switches, in order.
    pub fn switches(&self) -> Vec<DatapathId> {
        self.0.switches()
    }

    /// Returns the VLANs for which a switch has routers, and 0.
    ///
    /// # Errors
    /// [`RyuError::NotConnected`].
    pub fn vlans(&self, id: DatapathId) -> Result<Vec<u16>, RyuError> {
        self.0
            .with(id, |routed, _| Ok(routed.vlans.keys().copied().collect()))
    }

    /// Returns the addresses and routes of a VLAN's router; `None` if it has none.
    ///
    /// # Errors
    /// [`RyuError::NotConnected`].
    pub fn view(&self, id: DatapathId, vlan_id: u16) -> Result<Option<RouterView>, RyuError> {
        self.0.with(id, |routed, _| {
            let router = routed.vlans.get(&vlan_id);
            Ok(router.map(|router| RouterView {
                addresses: router.addresses().to_vec(),
                routes: router.routes().collect(),
            }))
        })
    }

    /// Adds an address, the gateway of its subnet's hosts. Returns its number once the switch has confirmed its entries.
    ///
    /// # Errors
    /// [`RyuError`]; [`RyuError::Router`] if it conflicts with existing addresses or routes.
    pub async fn add_address(
        &self,
        id: DatapathId,
        vlan_id: u16,
        address: Ipv4Addr,
        subnet: Ipv4Prefix,
    ) -> Result<u16, RyuError> {
        let act = |routed: &mut Routed, network: &Network| {
            let added = routed.add_address(network, id, vlan_id, (address, subnet));
            if added.is_err() {
                routed.close(vlan_id, network);
            }
            added
        };
        let (added, pending) = self.0.with(id, act)?;
        self.confirmed_or_undone(id, vlan_id, pending, |router, network| {
            router.delete_address(added.id, network.program())
        })
        .await?;
        Ok(added.id)
    }

    /// Adds a route to a destination. Returns its number once the switch has confirmed its entry. Packets use it once its
    /// gateway has answered an ARP request.
    ///
    /// # Errors
    /// Like [`RestRouter::add_address`].
    pub async fn add_route(
        &self,
        id: DatapathId,
        vlan_id: u16,
        destination: Ipv4Prefix,
        gateway: Ipv4Addr,
    ) -> Result<u16, RyuError> {
        let (route_id, pending) = self.0.with(id, |routed, network| {
            let not_registered = RouterError::NotRegistered(gateway);
            let router = routed.vlans.get_mut(&vlan_id).ok_or(not_registered)?;
            let (route_id, own) = router.add_route(destination, gateway)?;
            let sent = info_of(network, id).and_then(|info| {
                let entry = Vec::from_iter(router.route_entry_of(route_id, info.version));
                let asking = frames::ask_all(&info, vlan_id, own.address, gateway, None);
                Ok((route_id, confirm(network, id, entry, asking)?))
            });
            if sent.is_err() {
                router.delete_routes(Some(route_id), network.program());
            }
            sent
        })?;
        self.confirmed_or_undone(id, vlan_id, pending, |router, network| {
            router.delete_routes(Some(route_id), network.program()).1
        })
        .await?;
        Ok(route_id)
    }

    /// Waits until the switch has processed the messages. If it refuses one of them, undoes the accepted ones.
    async fn confirmed_or_undone(
        &self,
        id: DatapathId,
        vlan_id: u16,
        pending: PendingReply,
        take_back: impl FnOnce(&mut VlanRouter, &Network) -> Vec<Message<'static>>,
    ) -> Result<(), RyuError> {
        let done = confirmed(pending).await;
        if let Err(RyuError::Request(RequestError::Refused(_))) = done {
            self.undo(id, vlan_id, take_back);
        }
        done
    }

    fn undo(
        &self,
        id: DatapathId,
        vlan_id: u16,
        take_back: impl FnOnce(&mut VlanRouter, &Network) -> Vec<Message<'static>>,
    ) {
        let undone = self.0.with(id, |routed, network| {
            let router = routed.vlans.get_mut(&vlan_id);
            let mut messages = router.map_or_else(Vec::new, |router| take_back(router, network));
            messages.extend(routed.close(vlan_id, network));
            Ok(network.send_all(id, &messages)?)
        });
        if let Err(error) = undone {
            urtica_log::warn!(about: id, dp_id = %id, %error, "the switch may still have some entries of a refused request");
        }
    }

    /// Deletes the address with this number, or all. Addresses whose subnet contains the gateway of a route stay.
    ///
    /// # Errors
    /// [`RyuError`].
    pub async fn delete_addresses(
        &self,
        id: DatapathId,
        vlan_id: u16,
        address_id: Option<u16>,
    ) -> Result<Deleted, RyuError> {
        self.delete(id, vlan_id, |router, network| {
            let (ids, skipped) = router.deletable(address_id);
            let gone = ids.iter();
            let messages = gone
                .flat_map(|id| router.delete_address(*id, network.program()))
                .collect();
            (Deleted { ids, skipped }, messages)
        })
        .await
    }

    /// Deletes the route with this number, or all.
    ///
    /// # Errors
    /// [`RyuError`].
    pub async fn delete_routes(
        &self,
        id: DatapathId,
        vlan_id: u16,
        route_id: Option<u16>,
    ) -> Result<Deleted, RyuError> {
        self.delete(id, vlan_id, |router, network| {
            let (ids, messages) = router.delete_routes(route_id, network.program());
            let skipped = Vec::new();
            (Deleted { ids, skipped }, messages)
        })
        .await
    }

    async fn delete(
        &self,
        id: DatapathId,
        vlan_id: u16,
        act: impl FnOnce(&mut VlanRouter, &Network) -> (Deleted, Vec<Message<'static>>),
    ) -> Result<Deleted, RyuError> {
        let (deleted, pending) = self.0.with(id, |routed, network| {
            let Some(router) = routed.vlans.get_mut(&vlan_id) else {
                return Ok((Deleted::default(), None));
            };
            // If this cannot be sent, the connection is about to end or the send queue is full; the deletion stays.
            let (deleted, mut messages) = act(router, network);
            messages.extend(routed.close(vlan_id, network));
            Ok((deleted, Some(network.confirm(id, &messages)?)))
        })?;
        if let Some(pending) = pending {
            confirmed(pending).await?;
        }
        Ok(deleted)
    }
}

fn info_of(network: &Network, id: DatapathId) -> Result<Arc<SwitchInfo>, RyuError> {
    network.info(id).ok_or(RyuError::NotConnected(id))
}

/// Sends these entries and packets, and waits for the switch to confirm them.
fn confirm(
    network: &Network,
    id: DatapathId,
    entries: Vec<Message<'static>>,
    frames: Vec<(PortNo, Vec<u8>)>,
) -> Result<PendingReply, RequestError> {
    let mut all: Vec<Message<'_>> = entries;
    all.extend(frames.iter().map(|(port, frame)| packet_out(*port, frame)));
    network.confirm(id, &all)
}

impl Program for RestRouter {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(RouterHandler::new(self))
    }

    fn start(&self, background: &Background) {
        self.0.start(background.network());
    }
}
