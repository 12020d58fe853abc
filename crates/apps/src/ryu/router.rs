//! Ryu's `rest_router`: each switch is a router between the subnets that requests name, and a switch within each of them.
//!
//! **What.** For each VLAN, and for packets whatever theirs, a router has addresses, each of which is the gateway of a subnet, and static
//! routes. It answers ARP requests and pings for its addresses, and learns hosts and gateways from their ARP packets. Packets to
//! those follow an entry; the first to others wait until ARP has found them, for two seconds, and their senders are told where nobody
//! answers. Its MAC address in a subnet is that of the port.
//!
//! **Where it differs from Ryu.** What is neither ARP nor IPv4 comes to the controller, which has the switch forward it (`NORMAL`): Ryu's
//! entry for it would be in the place of the framework's table-miss entry.
//!
//! **Bounds.** 50 packets wait for each switch. Its hosts get 100 ICMP errors a second. `router/vlan.rs` has the others.

mod packets;
mod vlan;

pub use vlan::{RouterAddress, RouterError, RouterRoute};

use super::store::{RyuError, Store, confirmed};
use crate::registry::Setup;
use packets::Waiting;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_controller::{
    Background, EntryOptions, Network, PendingReply, Program, RequestError, Switch, SwitchHandler,
    SwitchInfo,
};
use urtica_wire::packet::ether_type;
use urtica_wire::{
    Action, BufferId, DatapathId, ErrorMessage, Ipv4Prefix, List, Match, Message, PacketIn,
    PacketOut, PortNo, Version,
};
use vlan::{VlanRouter, entry};

/// The priority of the entry that sends ARP packets to the controller.
const ARP_PRIORITY: u16 = 1;

/// How often waiting packets are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How often gateways are asked whether they are still there.
const ASK_INTERVAL: Duration = Duration::from_secs(1_800);

/// The router that requests control, one for each switch. Clones share what is kept.
#[derive(Clone, Default)]
pub struct RestRouter(Arc<Store<Routed>>);

/// What the router of a VLAN has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterView {
    /// Its addresses, in the order in which they were added.
    pub addresses: Vec<RouterAddress>,
    /// Its routes, in the order in which they were added.
    pub routes: Vec<RouterRoute>,
}

/// What was deleted, by numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// These.
    pub ids: Vec<u16>,
    /// Not these addresses: gateways of routes are in their subnets.
    pub skipped: Vec<u16>,
}

/// What is kept for a switch.
pub(super) struct Routed {
    /// The routers of VLANs; 0 is that of packets whatever their VLAN.
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
    /// Forgets the router of a VLAN where it has nothing left. Returns what deletes its last entry.
    fn close(&mut self, vlan_id: u16, network: &Network) -> Option<Message<'static>> {
        let is_empty = vlan_id != 0 && self.vlans.get(&vlan_id)?.is_empty();
        let gone = is_empty.then(|| self.vlans.remove(&vlan_id)).flatten()?;
        Some(gone.close(network.program()))
    }
}

/// How `urtica run` adds it.
pub(crate) fn add(setup: &mut Setup) -> Result<(), String> {
    let router = setup.ryu().router.clone();
    setup.add(router);
    Ok(())
}

impl RestRouter {
    /// The switches that are routers, in order.
    pub fn switches(&self) -> Vec<DatapathId> {
        self.0.switches()
    }

    /// The VLANs that a switch has routers for, and 0.
    ///
    /// # Errors
    /// [`RyuError::NotConnected`].
    pub fn vlans(&self, id: DatapathId) -> Result<Vec<u16>, RyuError> {
        self.0
            .with(id, |routed, _| Ok(routed.vlans.keys().copied().collect()))
    }

    /// What the router of a VLAN has; `None` where there is none.
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

    /// Adds an address, the gateway of the hosts of its subnet. Returns its number; the switch has its entries then.
    ///
    /// # Errors
    /// [`RyuError`]; [`RyuError::Router`] where it does not go with what is there.
    pub async fn add_address(
        &self,
        id: DatapathId,
        vlan_id: u16,
        address: Ipv4Addr,
        subnet: Ipv4Prefix,
    ) -> Result<u16, RyuError> {
        let (added, pending) = self.0.with(id, |routed, network| {
            let is_new = !routed.vlans.contains_key(&vlan_id);
            let router = routed
                .vlans
                .entry(vlan_id)
                .or_insert_with(|| VlanRouter::new(vlan_id));
            let added = router.add_address(address, subnet);
            let sent = added.map_err(RyuError::from).and_then(|added| {
                let info = info_of(network, id)?;
                let opening = if is_new {
                    router.entries(info.version)
                } else {
                    router.address_entries(&added)
                };
                // All are to know who has the address now.
                let asking = packets::ask_all(&info, vlan_id, address, address, None);
                Ok((added, confirm(network, id, opening, asking)?))
            });
            if sent.is_err() {
                if let Ok(added) = added {
                    router.delete_address(added.id, network.program());
                }
                routed.close(vlan_id, network);
            }
            sent
        })?;
        let done = confirmed(pending).await;
        if let Err(RyuError::Request(RequestError::Refused(_))) = done {
            self.undo(
                id,
                |routed, network| {
                    let router = routed.vlans.get_mut(&vlan_id);
                    router.map_or_else(Vec::new, |router| {
                        router.delete_address(added.id, network.program())
                    })
                },
                vlan_id,
            );
        }
        done.map(|()| added.id)
    }

    /// Adds a route to a destination. Returns its number; the switch has its entry then. Packets follow it as soon as its gateway has
    /// answered an ARP request.
    ///
    /// # Errors
    /// As [`RestRouter::add_address`].
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
                let asking = packets::ask_all(&info, vlan_id, own.address, gateway, None);
                Ok((route_id, confirm(network, id, entry, asking)?))
            });
            if sent.is_err() {
                router.delete_routes(Some(route_id), network.program());
            }
            sent
        })?;
        let done = confirmed(pending).await;
        if let Err(RyuError::Request(RequestError::Refused(_))) = done {
            self.undo(
                id,
                |routed, network| {
                    let router = routed.vlans.get_mut(&vlan_id);
                    router.map_or_else(Vec::new, |router| {
                        router.delete_routes(Some(route_id), network.program()).1
                    })
                },
                vlan_id,
            );
        }
        done.map(|()| route_id)
    }

    /// The switch has refused a part of something: what it has taken of it goes, too.
    fn undo(
        &self,
        id: DatapathId,
        take_back: impl FnOnce(&mut Routed, &Network) -> Vec<Message<'static>>,
        vlan_id: u16,
    ) {
        let undone = self.0.with(id, |routed, network| {
            let mut messages = take_back(routed, network);
            messages.extend(routed.close(vlan_id, network));
            Ok(network.send_all(id, &messages)?)
        });
        if let Err(error) = undone {
            urtica_log::warn!(about: id, dp_id = %id, %error, "the switch may have entries left of what it has refused");
        }
    }

    /// Deletes the address with this number, or all. Those stay in whose subnets gateways of routes are.
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
            // Where that cannot be sent, the connection is about to end or does not keep up: nothing is kept that was deleted.
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

/// A frame of the router's own, out of a port.
fn packet_out(port: PortNo, frame: &[u8]) -> Message<'_> {
    Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::CONTROLLER,
        actions: List::from(vec![Action::output(port)]),
        data: frame,
    })
}

impl Program for RestRouter {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(RouterHandler {
            router: self.clone(),
            connection: None,
            errors: (0, 0),
            asked: None,
        })
    }

    fn start(&self, background: &Background) {
        self.0.start(background.network());
    }
}

/// The handler of one switch.
struct RouterHandler {
    router: RestRouter,
    /// The number of its connection, while it is among the switches that requests are about.
    connection: Option<u64>,
    /// The current second, and how many ICMP errors were sent in it.
    errors: (u32, u32),
    /// When the gateways were asked last.
    asked: Option<Instant>,
}

impl RouterHandler {
    fn leave(&mut self, id: DatapathId) {
        if let Some(connection) = self.connection.take() {
            self.router.0.leave(id, connection);
        }
    }
}

impl SwitchHandler for RouterHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        let id = switch.datapath_id();
        let connection = self.router.0.join(id, |routed| install(routed, switch));
        self.connection = Some(connection);
        tracing::info!(dp_id = %id, "rest_router has the switch");
    }

    fn tick_interval(&self) -> Option<Duration> {
        Some(LOOK_INTERVAL)
    }

    fn tick(&mut self, switch: &mut Switch) {
        let (id, now) = (switch.datapath_id(), switch.now());
        let asks = self.asked.is_none_or(|asked| now >= asked + ASK_INTERVAL);
        if asks {
            self.asked = Some(now);
        }
        let store = Arc::clone(&self.router.0);
        store.correct(id, |routed| {
            if asks {
                ask_gateways(routed, switch);
            }
            self.give_up(routed, switch, now);
        });
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.consume();
        let store = Arc::clone(&self.router.0);
        let id = switch.datapath_id();
        if packets::is_routed(packet) {
            store.correct(id, |routed| self.take(routed, switch, packet));
        } else {
            switch.forward(packet, PortNo::NORMAL);
        }
    }

    fn error(&mut self, switch: &mut Switch, _xid: u32, error: &ErrorMessage) {
        let code = error.code;
        urtica_log::warn!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %code, "the switch refused an entry or a packet of rest_router");
    }

    fn role_changed(&mut self, switch: &mut Switch) {
        if !switch.info().role.may_write() {
            self.leave(switch.datapath_id());
        }
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.leave(info.datapath_id);
    }
}

/// Sends a switch all entries, and asks for the gateways. It has no entries of an earlier connection then.
fn install(routed: &mut Routed, switch: &mut Switch) {
    let (id, version) = (switch.datapath_id(), switch.info().version);
    routed.waiting.clear();
    // OpenFlow 1.0 cannot configure this, and does not decrement TTLs.
    if version != Version::Of10 {
        let _ = switch.send(&Message::SetAsync(crate::l3::ALL_AND_EXPIRED));
    }
    let options = EntryOptions::PERMANENT.priority(ARP_PRIORITY);
    let arp = Match::any().eth_type(ether_type::ARP);
    let mut all = vec![entry(arp, options, vec![Action::controller()])];
    for router in routed.vlans.values_mut() {
        router.forget_neighbours();
        all.extend(router.entries(version));
    }
    let sent = switch.delete(Match::any()).map(drop);
    let sent = sent.and_then(|()| {
        all.iter()
            .try_for_each(|message| switch.send(message).map(drop))
    });
    if let Err(error) = sent {
        urtica_log::error!(about: id, dp_id = %id, %error, "rest_router cannot set up the switch");
    }
    ask_gateways(routed, switch);
}

/// Asks for all gateways at all ports.
fn ask_gateways(routed: &Routed, switch: &mut Switch) {
    for (vlan_id, router) in &routed.vlans {
        for (own, gateway) in router.gateways() {
            let asking = packets::ask_all(switch.info(), *vlan_id, own.address, gateway, None);
            packets::send_frames(switch, asking);
        }
    }
}
