//! Paths through the current network, by next hops that follow the topology ("dynamic routing", Shalimov and Ivashchenko,
//! section IV; McNettle Figure 2, "Routing").
//!
//! **How.** A background program waits for changes of [`Discovery`]'s topology, and publishes the [`NextHops`] for it.
//! Changes during a computation are handled together by the next one, so a burst costs one or two computations, not one per
//! change. Only destinations that a change affects are recomputed, in parallel if the network is large.
//!
//! **Staleness.** The next hops are for some earlier topology; [`NextHops::topology`] returns it, and [`Routes::is_current`]
//! returns whether it is the latest. A path may therefore use a link that has just gone down; programs correct their entries
//! when [`Routes::changed`] reports new next hops.
//!
//! **Cost.** A path: a load of the snapshot, and one step per switch.
//!
//! **Thread-safety.** All functions may be called from any thread. No caller waits for the computation.

use crate::Discovery;
use crate::offload::{Offload, ServiceOffload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use urtica_controller::{Background, Program, ProgramId, Stage, SwitchHandler, SwitchInfo};
use urtica_state::Snapshot;
use urtica_topology::{NextHops, Path, PortId};
use urtica_wire::DatapathId;

/// Next hops between all switches, kept up to date: a program, and a handle to its results. Cheap to clone.
///
/// ```
/// use urtica_controller::Controller;
/// use urtica_services::{Discovery, DiscoveryConfig, Routes};
/// use urtica_topology::PortId;
/// use urtica_wire::{DatapathId, PortNo};
///
/// let discovery = Discovery::new(DiscoveryConfig::default());
/// let routes = Routes::new(&discovery);
/// let controller = Controller::new().program(discovery).program(routes.clone());
///
/// let from = PortId::new(DatapathId(1), PortNo(1));
/// let error = routes.path(from, PortId::new(DatapathId(2), PortNo(1)), 0).unwrap_err();
/// assert_eq!(error.to_string(), "switch 0000000000000001 is not in the topology; expected one that is connected");
/// ```
#[derive(Clone)]
pub struct Routes(Arc<RoutesState>);

struct RoutesState {
    discovery: Discovery,
    next_hops: Snapshot<NextHops>,
    /// The version of the topology that the next hops are for, or an older one.
    topology_version: AtomicU64,
    is_started: AtomicBool,
    /// The offload that forwards first packets, if any.
    offload: Offload,
}

/// Maximum number of switches for which next hops are [offloaded](Routes::offload), since each pair of switches needs one.
const MAX_OFFLOADED_SWITCHES: usize = 256;

/// The reason why no path exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPath {
    /// A switch is not connected, or not yet.
    #[error("switch {0} is not in the topology; expected one that is connected")]
    UnknownSwitch(DatapathId),
    /// No links lead from one switch to the other.
    #[error("no links lead from switch {from} to switch {to}")]
    Unreachable {
        /// The start of the path.
        from: DatapathId,
        /// The end of the path.
        to: DatapathId,
    },
}

impl Routes {
    /// Creates a service that computes next hops for the topology of `discovery`, in the same controller.
    pub fn new(discovery: &Discovery) -> Self {
        Self(Arc::new(RoutesState {
            discovery: discovery.clone(),
            next_hops: Snapshot::new(NextHops::default()),
            topology_version: AtomicU64::new(0),
            is_started: AtomicBool::new(false),
            offload: Offload::new(),
        }))
    }

    /// Sets an offload that forwards first packets of flows if there is only one shortest path, once a program
    /// [requests](Routes::forward_as) it. Only for networks of up to 256 switches. Call this before the controller starts;
    /// later calls have no effect.
    ///
    /// Use it only if no other program has to receive these packets before that program.
    pub fn offload(&self, offload: Arc<dyn ServiceOffload>) {
        let _ = self.0.offload.set(offload);
    }

    /// Lets the offload set by [`Routes::offload`], if any, forward the first packets of flows from now on, on behalf
    /// of this program: it receives each by [`SwitchHandler::settled`], and installs the path as it would otherwise.
    pub fn forward_as(&self, program: ProgramId) {
        if let Some(offload) = self.0.offload.get() {
            offload.forward_as(program);
        }
    }

    /// Returns the next hops.
    pub fn next_hops(&self) -> &Snapshot<NextHops> {
        &self.0.next_hops
    }

    /// Returns a shortest path between two ports; if there are several, `flow_hash` chooses one.
    ///
    /// # Errors
    /// [`NoPath`].
    pub fn path(&self, from: PortId, to: PortId, flow_hash: u64) -> Result<Path, NoPath> {
        let next_hops = self.0.next_hops.load();
        if let Some(path) = next_hops.path(from, to, flow_hash) {
            return Ok(path);
        }
        let is_unknown = |switch: &DatapathId| next_hops.topology().index_of(*switch).is_none();
        let (from, to) = (from.switch, to.switch);
        Err(match [from, to].into_iter().find(is_unknown) {
            Some(switch) => NoPath::UnknownSwitch(switch),
            None => NoPath::Unreachable { from, to },
        })
    }

    /// Returns the version of the next hops: the number of computations.
    pub fn version(&self) -> u64 {
        self.0.next_hops.version()
    }

    /// Waits until the version of the next hops is greater than `since`, and returns it.
    pub fn changed(&self, since: u64) -> impl Future<Output = u64> + Send {
        self.0.next_hops.changed(since)
    }

    /// Returns whether the next hops are for the current topology.
    pub fn is_current(&self) -> bool {
        self.0.topology_version.load(Ordering::Acquire) >= self.0.discovery.topology().version()
    }
}

impl Program for Routes {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Handler)
    }

    fn start(&self, background: &Background) {
        // A second controller would have another topology; the first one keeps it.
        if !self.0.is_started.swap(true, Ordering::Relaxed) {
            let shared = Arc::clone(&self.0);
            background.spawn("routes", async move { shared.run().await });
        }
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// An empty handler: discovery handles all reports of switches.
struct Handler;

impl SwitchHandler for Handler {}

impl RoutesState {
    /// Runs the background program.
    async fn run(&self) {
        let topologies = self.discovery.topology();
        let mut seen = 0;
        loop {
            // Read before the topology, which may therefore be newer than this version, never older.
            seen = topologies.changed(seen).await;
            let topology = topologies.load();
            let updated = self.next_hops.load().updated(topology);
            if let Some(offload) = self.offload.get() {
                offload.set_next_hops(&only_next_hops(&updated));
            }
            self.next_hops.publish(updated);
            self.topology_version.store(seen, Ordering::Release);
        }
    }
}

/// Returns the port and the other switch for each pair of switches with exactly one next hop.
fn only_next_hops(next_hops: &NextHops) -> Vec<(PortId, DatapathId)> {
    let switches = next_hops.topology().switches();
    if switches.len() > MAX_OFFLOADED_SWITCHES {
        return Vec::new();
    }
    let pairs = switches
        .iter()
        .flat_map(|&at| switches.iter().map(move |&to| (at, to)));
    let only = |(at, to)| {
        let mut hops = next_hops.next_hops(at, to);
        let hop = hops.next()?;
        hops.next().is_none().then_some((hop.from, to))
    };
    pairs.filter_map(only).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_topology::{DirectedLink, Topology};
    use urtica_wire::PortNo;

    /// Returns next hops for switches 1 to 4 in a ring, and 5 behind 4. Port N of a switch leads to switch N.
    fn ring_and_tail() -> NextHops {
        let edges = [(1, 2), (2, 3), (3, 4), (4, 1), (4, 5)];
        let links = edges.into_iter().flat_map(|(a, b)| {
            let port = |at, to| PortId::new(DatapathId(at), PortNo(to as u32));
            let (here, there) = (port(a, b), port(b, a));
            [
                DirectedLink::new(here, there),
                DirectedLink::new(there, here),
            ]
        });
        NextHops::new(Arc::new(Topology::new((1..=5).map(DatapathId), links)))
    }

    #[test]
    fn only_unique_next_hops_are_offloaded() {
        let given: Vec<_> = only_next_hops(&ring_and_tail())
            .into_iter()
            .filter(|(at, _)| at.switch == DatapathId(1) || at.switch == DatapathId(5))
            .map(|(at, to)| (at.switch.0, at.port_no.0, to.0))
            .collect();
        // Two paths lead from 1 to 3.
        let expected = [
            (1, 2, 2),
            (1, 4, 4),
            (1, 4, 5),
            (5, 4, 1),
            (5, 4, 2),
            (5, 4, 3),
            (5, 4, 4),
        ];
        assert_eq!(given, expected);
    }
}
