//! What runs are drawn from.

use super::{FaultKind, ScheduleItem};
use crate::Net;
use std::collections::BTreeSet;
use std::time::Duration;
use urtica_controller::Controller;
use urtica_topology::spec::{Plan, TopologySpec};
use urtica_wire::Version;

/// Looks at a network and at programs' state, again and again. Its error is a sentence that says what is wrong.
pub type Check = Box<dyn FnMut(&Net) -> Result<(), String>>;

/// Whether a frame is one that must arrive nowhere.
pub type Denied = fn(&[u8]) -> bool;

/// What a run draws from, and what must hold in it.
pub struct Scenario {
    /// One of these is drawn.
    pub topologies: Vec<TopologySpec>,
    /// Adapts the plan that was made of a topology specification: the addresses of the hosts, for instance.
    pub arrange: Option<fn(&mut Plan)>,
    /// Makes the controller, each time that one is started.
    pub programs: Box<dyn Fn() -> Programs>,
    /// The versions that switches may speak: both, or one of them, is drawn.
    pub versions: Vec<Version>,
    /// Whether hosts ping over IPv6 in some runs.
    pub ipv6: bool,
    /// Whether hosts are in different VLANs in some runs.
    pub vlans: bool,
    /// The faults that may happen.
    pub faults: Faults,
    /// Only these faults and flows of those that a seed has; all where it is `None`. They are what they would be among the others.
    pub only: Option<BTreeSet<ScheduleItem>>,
    /// For how long faults occur.
    pub fault_time: Duration,
    /// How many pings and flows there are meanwhile.
    pub flows: usize,
    /// Within which time after the last fault hosts reach each other again; also for how long a frame may be under way.
    pub restored_within: Duration,
    /// The same after faults that are told at once, and after which nothing waits to be tried again ([`FaultKind::is_quick`]); `None` where
    /// the programs do not promise more.
    pub quickly_restored_within: Option<Duration>,
    /// Whether the programs promise that paths are no longer than the shortest, when what was installed before has gone.
    pub shortest_paths: bool,
    /// Which frames never arrive at a host, whatever happens.
    pub denied: Option<Denied>,
    /// How long after the last frame everything that was made for it is gone.
    pub quiescent_after: Duration,
    /// How many entries a switch has left then at most.
    pub entries_when_quiescent: usize,
    /// Whether the programs promise that no frame ever loops, faults or not.
    pub never_loops: bool,
    /// How many copies of a frame a host may get while there are faults.
    pub copies: u32,
}

/// A controller with its programs, and what is looked at beside them.
pub struct Programs {
    /// The controller, to be started.
    pub controller: Controller,
    /// Looks at whether what is reserved on links exceeds what they carry, for programs that reserve.
    pub reservations: Option<Check>,
}

/// Which faults there may be. A run has some of these kinds, and each of its faults is of one of those.
#[derive(Clone, Debug)]
pub struct Faults {
    /// How many there are at most in a run.
    pub most: usize,
    /// The kinds.
    pub kinds: Vec<FaultKind>,
}

impl Faults {
    /// None at all.
    pub const NONE: Self = Self {
        most: 0,
        kinds: Vec::new(),
    };

    /// All of them, up to eight.
    pub fn all() -> Self {
        Self::of(FaultKind::ALL)
    }

    /// These, up to eight.
    pub fn of(kinds: &[FaultKind]) -> Self {
        Self {
            most: 8,
            kinds: kinds.to_vec(),
        }
    }

    /// The same without these.
    pub fn without(mut self, kinds: &[FaultKind]) -> Self {
        self.kinds.retain(|kind| !kinds.contains(kind));
        self
    }
}

impl Scenario {
    /// All faults but moves of hosts on small trees, for programs that may not work where there are loops: when the network is quiescent, a switch has only its
    /// table-miss entry.
    ///
    /// Hosts stay where they are, since a learning switch does not follow one that moves while there is no controller: those before
    /// and after have both seen it in one place only, and its old entries stay as long as they are used.
    pub fn on_trees(programs: impl Fn() -> Programs + 'static) -> Self {
        Self {
            topologies: vec![
                TopologySpec::Single { hosts: 3 },
                TopologySpec::Linear {
                    switches: 3,
                    hosts: 1,
                },
                TopologySpec::Linear {
                    switches: 2,
                    hosts: 2,
                },
                TopologySpec::Tree {
                    depth: 2,
                    fanout: 2,
                },
            ],
            arrange: None,
            programs: Box::new(programs),
            versions: Version::ALL.to_vec(),
            ipv6: true,
            vlans: true,
            faults: Faults::all().without(&[FaultKind::HostMove, FaultKind::SilentMove]),
            only: None,
            fault_time: Duration::from_secs(10),
            flows: 8,
            restored_within: Duration::from_secs(15),
            quickly_restored_within: Some(Duration::from_secs(2)),
            shortest_paths: false,
            denied: None,
            quiescent_after: Duration::from_secs(8),
            entries_when_quiescent: 1,
            never_loops: true,
            copies: 1,
        }
    }

    /// The same where there are loops, and hosts move, for programs that can deal with that. These may keep a flow's entries for a minute after its
    /// last packet, and an entry of their own on each switch.
    pub fn on_loops(programs: impl Fn() -> Programs + 'static) -> Self {
        Self {
            topologies: vec![
                TopologySpec::Ring { switches: 3 },
                TopologySpec::Ring { switches: 5 },
                TopologySpec::Mesh { switches: 4 },
                TopologySpec::Torus {
                    x: 3,
                    y: 3,
                    hosts: 1,
                },
                TopologySpec::FatTree { k: 2 },
            ],
            faults: Faults::all(),
            quiescent_after: Duration::from_secs(70),
            entries_when_quiescent: 2,
            never_loops: false,
            quickly_restored_within: None,
            copies: 64,
            ..Self::on_trees(programs)
        }
    }
}
