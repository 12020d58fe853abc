//! A learning switch (McNettle Figure 5, "local learning controller").
//!
//! Each switch's handler learns the ports of hosts from the packets that the switch sends to the controller. Packets to
//! known hosts get a flow entry; packets to others are flooded, within a budget for each port. The network must not have
//! loops.
//!
//! If links are known, and packets are flooded along a spanning tree, [`EdgeLearning`] learns instead.

use crate::EdgeLearning;
use crate::flood_budget::{FloodBudget, FloodLimit, PortBudgets};
use crate::full_table::FullTable;
use crate::host_table::LockFree;
use crate::mac_table::{Learned, MacEntry, MacTable, Slots};
use crate::registry::{About, ProgramOptions, Row, Service, Setup};
use std::time::Instant;
use urtica_controller::{IDLE_5S, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{ErrorMessage, MacAddr, Match, PacketIn, PortNo};

/// One switch's part of the learning program: its own table, which no other switch sees and no lock guards.
#[derive(Debug)]
pub struct L2<P = Vec<MacEntry>> {
    table: MacTable<P>,
    floods: PortBudgets,
    full: FullTable,
}

impl Default for L2 {
    fn default() -> Self {
        Self::with_table(MacTable::new())
    }
}

impl<P> L2<P> {
    /// Creates a learning switch that uses `table`, and floods all packets to unknown hosts.
    pub fn with_table(table: MacTable<P>) -> Self {
        Self {
            table,
            floods: FloodBudget::new(FloodLimit::NONE).of_switch(),
            full: FullTable::default(),
        }
    }

    /// Limits the packets to unknown hosts that are flooded from each port. By default there is no limit; `urtica run`
    /// sets one.
    pub fn flood_limit(self, limit: FloodLimit) -> Self {
        Self {
            floods: FloodBudget::new(limit).of_switch(),
            ..self
        }
    }

    /// Returns the end of the current or last pause in which no entries are added because the switch's table was full.
    pub fn paused_until(&self) -> Option<Instant> {
        self.full.paused_until()
    }

    /// Returns the table of learnt hosts.
    pub fn table(&self) -> &MacTable<P> {
        &self.table
    }
}

/// Options of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct L2Args {
    /// Packets a second to unknown hosts that are flooded from each port, and a burst, or none [default: 1000,2000].
    #[arg(long, value_name = "LIMIT")]
    pub l2_flood_limit: Option<FloodLimit>,
}

impl ProgramOptions for L2Args {}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<L2Args> = Row {
    about: About::forwarder(
        "l2",
        "learns the ports of hosts, switch by switch, and installs exact-match entries",
    ),
    add,
};

/// Adds the program. With discovery, it learns at edge ports only.
fn add(setup: &mut Setup, args: &L2Args) -> Result<(), String> {
    let limit = args.l2_flood_limit.unwrap_or_default();
    if setup.is_named(Service::Discovery.name()) {
        let learning = EdgeLearning::<LockFree>::along_tree(&setup.discovery());
        setup.add(learning.flood_limit(limit));
    } else {
        setup.add(move |_: &SwitchInfo| L2::default().flood_limit(limit));
    }
    Ok(())
}

impl<P: Slots + Send> SwitchHandler for L2<P> {
    // Worth its cost with tens of thousands of hosts, whose entries exceed the caches; simpler programs do not need it.
    fn prefetch(&self, packet: &PacketIn) {
        self.table.prefetch(packet.eth_src());
    }

    fn wants_prefetch(&self) -> bool {
        self.table.is_large()
    }

    #[inline(always)] // into the loop over packet-ins, where decoding, deciding and writing become one
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let (src, dst, in_port) = (packet.eth_src(), packet.eth_dst(), packet.in_port());
        let now_s = switch.now_s();
        // Bridges do not forward STP, LLDP and similar protocols (IEEE 802.1Q section 8.6.3).
        if dst.is_link_local() {
            return;
        }
        if self.table.learn(src, in_port, now_s) == Learned::Moved {
            delete_entries_towards(switch, src);
        }
        match self.table.port_of(dst, now_s) {
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

/// Deletes the entries towards a host that has moved: they would live as long as they are used.
#[cold]
fn delete_entries_towards(switch: &mut Switch, host: MacAddr) {
    // Every version can match on an address alone.
    let _ = switch.delete(Match::any().eth_dst(host));
}
