//! Learning in networks with known links: the form of `l2` and `global` when [`Discovery`] runs.
//!
//! **What.** All switches share one table, in which a host is at the edge port that last received its packets. A packet to
//! a known host gets an entry and is sent to the next hop: along the spanning tree ([`EdgeLearning::along_tree`]), or over a
//! shortest path ([`EdgeLearning::by_shortest_paths`]). A packet to an unknown host is flooded: along the spanning tree, or,
//! with shortest paths, without using links. (A copy flooded along the tree could meet entries of a shortest path that were
//! added while it was in flight, leave the tree, and arrive twice.)
//!
//! **Why not learn from every port.** A packet on a link shows a host's direction only while packets keep using the same
//! links. When the tree changes, frames in flight along the old tree teach false directions, and a packet that is sent again
//! and again keeps the false entry alive. An edge port is always right about its own hosts.
//!
//! **When the network changes.** As in 802.1D after a topology change, everything derived is discarded: if the path to any
//! switch may have changed, this program's entries are deleted from all switches. A host whose port goes down, or turns out to
//! lead to a switch, is forgotten together with the entries from and to it; packets to it are flooded until it sends again. A
//! switch that joins loses the entries of its earlier connection.
//!
//! A switch that refuses a deletion is swept until it has confirmed the deletion of all entries of this program.
//!
//! A switch whose table is full gets no entries for a while; packet-outs forward its packets ([`FullTable`]).
//!
//! **Why no outdated entry stays.** An entry depends on the known state when its packet was handled. The state changes first,
//! then deletions are sent, and a switch's shard sends them after the replies to the packets that it has handled until then.
//! So each entry that depends on an old state is deleted after it was added.
//!
//! **Bounds.** A [`FloodLimit`] on packets to unknown hosts from each edge port; packets on links were counted at their edge.
//! [`MAX_HOSTS_PER_PORT`]; beyond it, hosts are not learnt: packets to them are flooded, and packets from them are counted
//! ([`EdgeLearning::refused`]). A full port is cleared [`FULL_PORT_KEPT_FOR`] after its first host was learnt.
//!
//! **Cost.** A packet from a known host: one look-up in the flood tree, and two in the table of hosts. A host that is new or
//! has moved: a lock, and two flow mods per switch if it has moved.
//!
//! **Thread-safety.** This program reads the table of hosts without a lock. One lock guards all changes of the table; no
//! message is sent while it is held.

mod sweeper;

use crate::flood_budget::{FloodBudget, FloodLimit, PortBudgets};
use crate::full_table::FullTable;
use crate::host_table::{Host, HostTable, Numbers, Place};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sweeper::{Sweeper, delete};
use urtica_controller::{
    Background, EntryOptions, IDLE_5S, Network, Program, Switch, SwitchHandler, SwitchInfo,
};
use urtica_services::{Discovery, FloodTree, PortRole, Routes, is_provisioned};
use urtica_state::Snapshot;
use urtica_topology::{NextHops, PortId, Topology};
use urtica_wire::{DatapathId, ErrorMessage, MacAddr, Match, PacketIn, PortNo};

/// Marks the program's entries: `ulearns` in ASCII.
const COOKIE: u64 = u64::from_be_bytes(*b"\0ulearns");
const _: () = assert!(!is_provisioned(COOKIE));

/// The options of entries, which expire after five seconds without a packet.
const ENTRY: EntryOptions = EntryOptions {
    cookie: COOKIE,
    ..IDLE_5S
};

/// The maximum number of hosts learnt per port.
pub const MAX_HOSTS_PER_PORT: usize = 4096;

/// The time after its first host when a full port is cleared: hosts that are still there are learnt again.
pub const FULL_PORT_KEPT_FOR: Duration = Duration::from_secs(300);

/// The maximum number of lost hosts whose entries are deleted one by one; if more are lost at once, all entries are deleted.
const FEW: usize = 64;

/// A program that learns hosts at edge ports, and a handle to its counters. Cheap to clone.
///
/// Packets to known hosts follow the spanning tree or shortest paths; packets to unknown hosts are flooded.
pub struct EdgeLearning<T> {
    shared: Arc<EdgesState<T>>,
    floods: FloodBudget,
}

struct EdgesState<T> {
    hosts: T,
    discovery: Discovery,
    ways: Ways,
    numbers: Mutex<Numbers>,
    edges: Mutex<Edges>,
    refused: AtomicU64,
    sweeper: Arc<Sweeper>,
}

/// The edge ports with hosts.
type Edges = BTreeMap<PortId, Edge>;

struct Edge {
    hosts: BTreeSet<Host>,
    /// The time when the first host was learnt.
    since: Instant,
}

/// The paths of packets from switch to switch.
enum Ways {
    Shortest(Routes),
    AlongTree(Snapshot<NextHops>),
}

impl Ways {
    fn next_hops(&self) -> &Snapshot<NextHops> {
        match self {
            Self::Shortest(routes) => routes.next_hops(),
            Self::AlongTree(next_hops) => next_hops,
        }
    }
}

impl<T> Clone for EdgeLearning<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            floods: self.floods.clone(),
        }
    }
}

impl<T: HostTable> EdgeLearning<T> {
    /// Creates a program that sends packets to known hosts along the spanning tree, like flooded ones. The service must run
    /// in the same controller.
    pub fn along_tree(discovery: &Discovery) -> Self {
        Self::new(
            discovery,
            Ways::AlongTree(Snapshot::new(NextHops::default())),
        )
    }

    /// Creates a program that sends packets to known hosts over shortest paths. The services must run in the same controller.
    pub fn by_shortest_paths(discovery: &Discovery, routes: &Routes) -> Self {
        Self::new(discovery, Ways::Shortest(routes.clone()))
    }

    fn new(discovery: &Discovery, ways: Ways) -> Self {
        let shared = EdgesState {
            hosts: T::default(),
            discovery: discovery.clone(),
            ways,
            numbers: Mutex::default(),
            edges: Mutex::default(),
            refused: AtomicU64::new(0),
            sweeper: Arc::new(Sweeper::new(COOKIE)),
        };
        Self {
            shared: Arc::new(shared),
            floods: FloodBudget::default(),
        }
    }

    /// Limits the packets to unknown hosts that are flooded from each edge port. Call this before the controller starts.
    pub fn flood_limit(self, limit: FloodLimit) -> Self {
        Self {
            floods: FloodBudget::new(limit),
            ..self
        }
    }

    /// Returns the number of packets to unknown hosts that were dropped because their port exceeded its flood limit.
    pub fn dropped_floods(&self) -> u64 {
        self.floods.dropped()
    }

    /// Returns the number of packets from hosts that were not learnt because their port has too many.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

impl<T: HostTable> Program for EdgeLearning<T> {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(EdgeHandler {
            number: self.shared.numbers().of(info.datapath_id),
            shared: Arc::clone(&self.shared),
            floods: self.floods.of_switch(),
            full: FullTable::default(),
        })
    }

    fn start(&self, background: &Background) {
        let (shared, network) = (Arc::clone(&self.shared), background.network().clone());
        background.spawn("learning-tree", shared.follow_tree(network));
        if let Ways::Shortest(routes) = &self.shared.ways {
            let (shared, network) = (Arc::clone(&self.shared), background.network().clone());
            let routes = routes.clone();
            background.spawn("learning-routes", shared.follow_routes(routes, network));
        }
        let sweeper = Arc::clone(&self.shared.sweeper);
        background.spawn("learning-sweeper", sweeper.run(background.clone()));
        let sweeper = Arc::clone(&self.shared.sweeper);
        background.spawn(
            "learning-switches",
            sweeper.follow_switches(background.network().clone()),
        );
    }
}

/// The handler of one switch.
struct EdgeHandler<T> {
    number: u32,
    shared: Arc<EdgesState<T>>,
    floods: PortBudgets,
    full: FullTable,
}

impl<T: HostTable> SwitchHandler for EdgeHandler<T> {
    fn prefetch(&self, packet: &PacketIn) {
        self.shared.hosts.prefetch(Host::new(packet.eth_src()));
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let (dst, in_port) = (packet.eth_dst(), packet.in_port());
        // Bridges do not forward STP, LLDP and similar protocols (IEEE 802.1Q section 8.6.3).
        if dst.is_link_local() {
            return;
        }
        let at = PortId::new(switch.datapath_id(), in_port);
        let role = self.shared.discovery.port_role(at);
        let is_known = match role {
            Some(PortRole::Host) => self.hear(switch, packet.eth_src(), at),
            role => role == Some(PortRole::Link),
        };
        let place = self.shared.hosts.find(Host::new(dst));
        match place.and_then(|place| self.port_towards(at.switch, place)) {
            // The budget of the edge port where the packet entered has admitted it.
            None if role == Some(PortRole::Link) => self.shared.flood(switch, at, packet),
            None if !self.floods.admit(switch, packet) => {}
            None => self.shared.flood(switch, at, packet),
            // Both hosts are behind this port, so the destination already has the packet.
            Some(port) if port == in_port => {}
            Some(port) if is_known && self.full.has_space(switch.now()) => {
                switch.forward_with_rule(packet, Match::exact(packet), port, ENTRY);
            }
            // The table is full, or an entry would hide the source, which cannot be learnt yet.
            Some(port) => switch.forward(packet, port),
        }
    }

    fn error(&mut self, switch: &mut Switch, _: u32, error: &ErrorMessage) {
        let (here, now) = (switch.datapath_id(), switch.now());
        self.full.handle_error(here, error, now);
    }

    fn refused(&mut self, switch: &mut Switch, _: &ErrorMessage) {
        // Only deletions are sent outside the handlers, so the switch still has the entries.
        self.shared.sweeper.sweep([switch.datapath_id()]);
    }
}

impl<T: HostTable> EdgeHandler<T> {
    /// Handles a packet of a host at an edge port. Returns `true` if the host is now known to be there.
    fn hear(&self, switch: &Switch, src: MacAddr, at: PortId) -> bool {
        let here = Place {
            switch: self.number,
            port: at.port_no,
        };
        let host = Host::new(src);
        self.shared.hosts.find(host) == Some(here) || self.shared.settle(switch, host, here, at)
    }

    /// Returns the port towards a place, if known.
    fn port_towards(&self, here: DatapathId, place: Place) -> Option<PortNo> {
        if place.switch == self.number {
            return Some(place.port);
        }
        let there = self.shared.numbers().switch(place.switch)?;
        let next_hops = self.shared.ways.next_hops().load();
        let link = next_hops.next_hops(here, there).next()?;
        Some(link.from.port_no)
    }
}

impl<T: HostTable> EdgesState<T> {
    /// Learns a host's new place. Returns `false` if it cannot be learnt.
    #[cold]
    fn settle(&self, switch: &Switch, host: Host, here: Place, at: PortId) -> bool {
        let mut edges = self.edges();
        let edge = edges.entry(at).or_insert_with(|| Edge::new(switch.now()));
        if edge.is_full() && switch.now() >= edge.since + FULL_PORT_KEPT_FOR {
            self.forget(edge);
            *edge = Edge::new(switch.now());
            self.sweeper.sweep(switch.network().switches());
        }
        // The port may have gone down since its look-up, and lost its hosts.
        let may_stay = !edge.is_full() && self.discovery.is_host_port(at);
        let was = self.hosts.find(host);
        if !may_stay || !self.hosts.put(host, here) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        edge.hosts.insert(host);
        if let Some(was) = was {
            if let Some(edge) = self.port_id(was).and_then(|port| edges.get_mut(&port)) {
                edge.hosts.remove(&host);
            }
            drop(edges);
            // The host's frames may loop over an unknown link.
            self.discovery.doubt(at);
            self.delete_entries_of(switch.network(), host);
        }
        true
    }

    /// Sends a packet to all hosts that its sender can reach.
    fn flood(&self, switch: &mut Switch, at: PortId, packet: &PacketIn) {
        let is_whole = packet.data.len() >= usize::from(packet.total_len);
        match &self.ways {
            Ways::Shortest(routes) if is_whole => {
                let next_hops = routes.next_hops().load();
                let reaches =
                    |there| there == at.switch || next_hops.distance(at.switch, there).is_some();
                self.discovery
                    .flood(switch.network(), at, packet.data, reaches);
            }
            // Only the switch has the whole packet if it buffers it.
            _ => switch.forward(packet, PortNo::FLOOD),
        }
    }

    fn forget(&self, edge: &Edge) {
        edge.hosts.iter().for_each(|host| self.hosts.remove(*host));
    }

    /// Discards outdated hosts and entries whenever discovery learns about ports and links.
    async fn follow_tree(self: Arc<Self>, network: Network) {
        let mut seen = 0;
        loop {
            seen = self.discovery.flood_tree().changed(seen).await;
            let tree = self.discovery.flood_tree().load();
            self.forget_lost(&tree, &network);
            if let Ways::AlongTree(next_hops) = &self.ways {
                let links = along(&tree, &self.discovery.topology().load());
                if **next_hops.load().topology() != links {
                    next_hops.publish(NextHops::new(Arc::new(links)));
                    self.sweeper.sweep(network.switches());
                }
            }
        }
    }

    /// Discards all entries whenever shortest paths change.
    async fn follow_routes(self: Arc<Self>, routes: Routes, network: Network) {
        let mut seen = 0;
        loop {
            seen = routes.changed(seen).await;
            self.sweeper.sweep(network.switches());
        }
    }

    /// Forgets the hosts at ports that are no longer edge ports.
    fn forget_lost(&self, tree: &FloodTree, network: &Network) {
        let mut lost = Vec::new();
        self.edges().retain(|port, edge| {
            let stays = tree.role(*port) == Some(PortRole::Host);
            if !stays {
                lost.extend(edge.hosts.iter().copied());
                self.forget(edge);
            }
            stays
        });
        match lost.len() {
            0..=FEW => lost
                .into_iter()
                .for_each(|host| self.delete_entries_of(network, host)),
            _ => self.sweeper.sweep(network.switches()),
        }
    }

    /// Deletes the entries to and from a host that has moved or been lost. Entries towards its old place would live as long as
    /// they are used, and entries for its own packets would hide its new place.
    fn delete_entries_of(&self, network: &Network, host: Host) {
        let mac = host.mac();
        for switch in network.switches() {
            let towards = delete(network, switch, COOKIE, Match::any().eth_dst(mac));
            let from = delete(network, switch, COOKIE, Match::any().eth_src(mac));
            if towards.and(from).is_err() {
                self.sweeper.sweep([switch]);
            }
        }
    }

    fn port_id(&self, place: Place) -> Option<PortId> {
        let switch = self.numbers().switch(place.switch)?;
        Some(PortId::new(switch, place.port))
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock()
    }

    /// Locks the edge ports. This lock is taken before that of the numbers.
    fn edges(&self) -> MutexGuard<'_, Edges> {
        self.edges.lock()
    }
}

impl Edge {
    fn new(now: Instant) -> Self {
        Self {
            hosts: BTreeSet::new(),
            since: now,
        }
    }

    fn is_full(&self) -> bool {
        self.hosts.len() >= MAX_HOSTS_PER_PORT
    }
}

/// Returns the topology without links that the spanning tree blocks.
fn along(tree: &FloodTree, topology: &Topology) -> Topology {
    let links = topology.directed_links().iter();
    let links = links.filter(|link| tree.is_open(link.from) && tree.is_open(link.to));
    Topology::new(topology.switches().iter().copied(), links.copied())
}
