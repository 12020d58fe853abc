//! Global learning (McNettle section 4.2): one table of all hosts, which every switch reads and writes.
//!
//! **What.** All switches use what each of them has learnt. A packet to a host behind the same switch gets an entry. A packet
//! to a host behind another switch leaves by the port where this switch has received packets of that host, and gets an entry
//! as well; without such a port, it is flooded. If a topology is known ([`Global::with_topology`]), the packet is sent to the
//! next hop instead.
//!
//! **The switch of a host** cannot be known without a topology. The first switch that receives its packets counts, because a
//! frame reaches its sender's own switch first. The others keep their own port for the host in the same table, so that it
//! outlives their connections.
//!
//! **How.** The program is written once, for any [`HostTable`]; there are three.
//!
//! **Cost.** Nearly all packets are from hosts that have not moved, so the table is read twice and not written. Hosts are
//! never forgotten: a host stays at its last place.
//!
//! **Thread-safety.** A handler's own state is its switch's number, the flood budgets of its ports, and the back-off while
//! the switch's table is full.

use crate::edges::EdgeLearning;
use crate::flood_budget::{FloodBudget, FloodLimit, PortBudgets};
use crate::full_table::FullTable;
use crate::host_table::{
    Host, HostTable, LockFree, Locked, Numbers, Place, Transactional, WrittenEachTime,
};
use crate::registry::{About, ProgramOptions, Row, Service, Setup};
use parking_lot::Mutex;
use std::sync::Arc;
use urtica_controller::{Background, IDLE_5S, Program, Switch, SwitchHandler, SwitchInfo};
use urtica_services::{Discovery, Routes};
use urtica_wire::{ErrorMessage, MacAddr, Match, PacketIn, PortNo};

/// The program, with a table of type `T`.
pub struct Global<T>(Kind<T>);

enum Kind<T> {
    Alone(Arc<GlobalState<T>>),
    WithTopology(EdgeLearning<T>),
}

/// The state that the handlers of all switches share.
#[derive(Default)]
struct GlobalState<T> {
    hosts: T,
    numbers: Mutex<Numbers>,
    floods: FloodBudget,
}

impl<T: HostTable> Global<T> {
    /// Creates the program with an empty table, and without a topology. The network must not have loops.
    pub fn new() -> Self {
        Self(Kind::Alone(Arc::default()))
    }

    /// Creates the program for a network with a known topology: it learns hosts at edge ports only, and sends packets to hosts
    /// behind other switches to the next hop.
    pub fn with_topology(discovery: &Discovery, routes: &Routes) -> Self {
        let learning = EdgeLearning::by_shortest_paths(discovery, routes);
        Self(Kind::WithTopology(learning))
    }

    /// Limits the packets to unknown hosts that are flooded from each port. Call this before the controller starts.
    pub fn flood_limit(self, limit: FloodLimit) -> Self {
        Self(match self.0 {
            Kind::Alone(_) => Kind::Alone(Arc::new(GlobalState {
                floods: FloodBudget::new(limit),
                ..GlobalState::default()
            })),
            Kind::WithTopology(learning) => Kind::WithTopology(learning.flood_limit(limit)),
        })
    }

    /// Returns the number of packets to unknown hosts that were dropped because their port exceeded its flood limit.
    pub fn dropped_floods(&self) -> u64 {
        match &self.0 {
            Kind::Alone(shared) => shared.floods.dropped(),
            Kind::WithTopology(learning) => learning.dropped_floods(),
        }
    }
}

impl<T: HostTable> Default for Global<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Options of the program, with any table.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct GlobalArgs {
    /// Write a host's location for each of its packets, even if it is known, as McNettle's Figure 5 does: to measure the
    /// cost of writes. Cannot be combined with discovery.
    #[arg(long)]
    pub global_write_each: bool,
    /// Packets a second to unknown hosts that are flooded from each port, and a burst, or none [default: 1000,2000].
    #[arg(long, value_name = "LIMIT")]
    pub global_flood_limit: Option<FloodLimit>,
}

impl ProgramOptions for GlobalArgs {}

/// The program's rows in the registry of `urtica run`, one for each kind of table.
pub(crate) static LOCK_FREE_ROW: Row<GlobalArgs> = Row {
    about: About::forwarder(
        "global",
        "like l2, but all switches share one table of hosts, without locks",
    ),
    add: add::<LockFree>,
};

pub(crate) static LOCKED_ROW: Row<GlobalArgs> = Row {
    about: About::forwarder("global-mutex", "like global, with mutexes"),
    add: add::<Locked>,
};

pub(crate) static TRANSACTIONAL_ROW: Row<GlobalArgs> = Row {
    about: About::forwarder("global-stm", "like global, with transactions"),
    add: add::<Transactional>,
};

/// Adds the program; with a topology if discovery was requested.
fn add<T: HostTable>(setup: &mut Setup, args: &GlobalArgs) -> Result<(), String> {
    let writes_each = args.global_write_each;
    let limit = args.global_flood_limit.unwrap_or_default();
    if !setup.is_named(Service::Discovery.name()) {
        match writes_each {
            true => setup.add(Global::<WrittenEachTime<T>>::new().flood_limit(limit)),
            false => setup.add(Global::<T>::new().flood_limit(limit)),
        }
        return Ok(());
    }
    if writes_each {
        return Err(
            "--global-write-each and discovery cannot be combined; expected one of the two".into(),
        );
    }
    let global = Global::<T>::with_topology(&setup.discovery(), &setup.routes());
    setup.add(global.flood_limit(limit));
    Ok(())
}

impl<T: HostTable> Program for Global<T> {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        match &self.0 {
            Kind::Alone(shared) => {
                let mut numbers = shared.numbers.lock();
                Box::new(GlobalHandler {
                    number: numbers.of(info.datapath_id),
                    shared: Arc::clone(shared),
                    floods: shared.floods.of_switch(),
                    full: FullTable::default(),
                })
            }
            Kind::WithTopology(learning) => learning.handler(info),
        }
    }

    fn start(&self, background: &Background) {
        if let Kind::WithTopology(learning) = &self.0 {
            learning.start(background);
        }
    }
}

/// The handler of one switch.
struct GlobalHandler<T> {
    number: u32,
    shared: Arc<GlobalState<T>>,
    floods: PortBudgets,
    full: FullTable,
}

impl<T: HostTable> SwitchHandler for GlobalHandler<T> {
    fn prefetch(&self, packet: &PacketIn) {
        self.shared.hosts.prefetch(Host::new(packet.eth_src()));
    }

    #[inline(always)] // into the loop over packet-ins, as in `l2`
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let (src, dst, in_port) = (packet.eth_src(), packet.eth_dst(), packet.in_port());
        // Bridges do not forward STP, LLDP and similar protocols (IEEE 802.1Q section 8.6.3).
        if dst.is_link_local() {
            return;
        }
        let here = Place {
            switch: self.number,
            port: in_port,
        };
        let heard = self.shared.hosts.hear(Host::new(src), here, Host::new(dst));
        if let Some(first) = heard.elsewhere {
            self.note(switch, src, here, first);
        }
        let port = match heard.dst {
            Some(place) if place.switch != self.number => self.own_port(dst),
            place => place.map(|place| place.port),
        };
        match port {
            None if !self.floods.admit(switch, packet) => {}
            None => switch.forward(packet, PortNo::FLOOD),
            // Both hosts are behind this port, so the destination already has the packet.
            Some(port) if port == in_port => {}
            Some(port) if !self.full.has_space(switch.now()) => switch.forward(packet, port),
            Some(port) => switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S),
        }
    }

    fn error(&mut self, switch: &mut Switch, _: u32, error: &ErrorMessage) {
        let (here, now) = (switch.datapath_id(), switch.now());
        self.full.handle_error(here, error, now);
    }
}

impl<T: HostTable> GlobalHandler<T> {
    /// Handles a packet of a host whose first place was another switch, or another port of this one. If this switch has
    /// received packets of it at another port, the host has moved.
    #[cold]
    fn note(&self, switch: &mut Switch, src: MacAddr, here: Place, first: Place) {
        let hosts = &self.shared.hosts;
        let host = match first.switch == self.number {
            true => Some(Host::new(src)),
            false => Host::new(src).at(self.number),
        };
        let Some(host) = host else { return };
        let was = hosts.find(host);
        if was != Some(here) {
            hosts.put(host, here);
        }
        if was.is_some_and(|was| was != here) {
            // Entries towards the old port would live as long as they are used. Every version can match on an address alone.
            let _ = switch.delete(Match::any().eth_dst(src));
        }
    }

    /// Returns the port where this switch has received packets of a host behind another switch.
    #[inline(never)] // keeps the path of packets within a switch short
    fn own_port(&self, dst: MacAddr) -> Option<PortNo> {
        let host = Host::new(dst).at(self.number)?;
        Some(self.shared.hosts.find(host)?.port)
    }
}
