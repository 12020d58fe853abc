//! Paths through the current network: next hops that are kept up to date with the topology ("dynamic routing", Shalimov and
//! Ivashchenko, section IV; McNettle Figure 2, "Routing").
//!
//! **How.** A background program waits for changes of [`Discovery`]'s topology, and publishes the [`NextHops`] for it.
//! Changes during a computation are handled together by the next one, so a burst costs one or two computations, not one per
//! change. Only destinations that a change affects are recomputed, in parallel if the network is large.
//!
//! **How far behind.** The next hops are for some earlier topology; [`NextHops::topology`] says which, and
//! [`Routes::is_current`] whether it is the latest. A path may therefore use a link that has just gone down; programs
//! correct their entries when [`Routes::changed`] reports it.
//!
//! **Cost.** A path: a reference to the snapshot, and one step per switch on it.
//!
//! **Thread-safety.** Everything may be used from any thread. Nobody waits for the computation.

use crate::Discovery;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use urtica_controller::{Background, Program, Stage, SwitchHandler, SwitchInfo};
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
pub struct Routes(Arc<Shared>);

struct Shared {
    discovery: Discovery,
    next_hops: Snapshot<NextHops>,
    /// The version of the topology that the next hops are for, or an older one.
    topology_version: AtomicU64,
    is_started: AtomicBool,
}

/// Why there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// Next hops for the topology of `discovery`, in the same controller.
    pub fn new(discovery: &Discovery) -> Self {
        Self(Arc::new(Shared {
            discovery: discovery.clone(),
            next_hops: Snapshot::new(NextHops::default()),
            topology_version: AtomicU64::new(0),
            is_started: AtomicBool::new(false),
        }))
    }

    /// The next hops.
    pub fn next_hops(&self) -> &Snapshot<NextHops> {
        &self.0.next_hops
    }

    /// A shortest path between two ports; if there are several, always the same for the same `flow_hash`.
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

    /// The number of computations.
    pub fn version(&self) -> u64 {
        self.0.next_hops.version()
    }

    /// Waits for a version of the next hops that is greater than `since`.
    pub fn changed(&self, since: u64) -> impl Future<Output = u64> + Send {
        self.0.next_hops.changed(since)
    }

    /// Whether the next hops are for the current topology.
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

/// Switches report nothing that discovery does not know.
struct Handler;

impl SwitchHandler for Handler {}

impl Shared {
    /// The background program.
    async fn run(&self) {
        let topologies = self.discovery.topology();
        let mut seen = 0;
        loop {
            // Read before the topology: it may be newer than its version says, never older.
            seen = topologies.changed(seen).await;
            let topology = topologies.load();
            let updated = self.next_hops.load().updated(topology);
            self.next_hops.publish(updated);
            self.topology_version.store(seen, Ordering::Release);
        }
    }
}
