//! The parameters of simulated runs.

use super::{FaultKind, ScheduleItem};
use crate::Net;
use crate::watch::Violation;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use urtica_controller::Controller;
use urtica_topology::spec::{Plan, TopologySpec};
use urtica_wire::Version;

/// Checks a network and the state of programs, repeatedly.
pub type Check = Box<dyn FnMut(&Net) -> Result<(), Violation>>;

/// Returns `true` for a frame that must not be delivered.
pub type Denied = fn(&[u8]) -> bool;

/// Returns the reason why the last flow with a demand from one address to another was refused, if it was.
pub type Refused = Rc<dyn Fn(Ipv4Addr, Ipv4Addr) -> Option<String>>;

/// The choices that a run draws from, and the invariants that must hold in it.
pub struct Scenario {
    /// The topologies, one of which is drawn.
    pub topologies: Vec<TopologySpec>,
    /// Adapts the plan made from a topology specification, for instance the hosts' addresses.
    pub arrange: Option<fn(&mut Plan)>,
    /// Creates the controller and its programs for each start.
    pub programs: Box<dyn Fn() -> Programs>,
    /// The versions of the switches: all of them, or a single one, as drawn.
    pub versions: Vec<Version>,
    /// Whether hosts ping over IPv6 in some runs.
    pub ipv6: bool,
    /// Whether hosts are in different VLANs in some runs.
    pub vlans: bool,
    /// The possible faults.
    pub faults: Faults,
    /// The only faults and flows of a seed to run; all if `None`. Each is as in the full run.
    pub only: Option<BTreeSet<ScheduleItem>>,
    /// The time during which faults occur.
    pub fault_time: Duration,
    /// The number of pings and flows during that time.
    pub flows: usize,
    /// The time after the last fault within which hosts reach each other again; also the maximum time of a frame in flight.
    pub restored_within: Duration,
    /// Like `restored_within`, after faults that are reported at once and after which nothing waits for a retry
    /// ([`FaultKind::is_quick`]); `None` if the programs guarantee no shorter time.
    pub quickly_restored_within: Option<Duration>,
    /// Whether the programs guarantee shortest paths once earlier entries have expired.
    pub shortest_paths: bool,
    /// The frames that must never arrive at a host.
    pub denied: Option<Denied>,
    /// The time after the last frame in which all state created for it is removed.
    pub quiescent_after: Duration,
    /// The maximum number of entries that remain in a switch after that time.
    pub entries_when_quiescent: usize,
    /// Whether the programs guarantee that no frame ever loops, even with faults.
    pub never_loops: bool,
    /// The maximum number of copies of a frame that a host may receive while there are faults.
    pub copies: u32,
    /// The rate at which the programs flood one host's packets to hosts that do not exist; `None` if they guarantee nothing.
    pub unknown_flood: Option<FloodBound>,
    /// The rate at which the programs relay one host's requests for unused addresses; `None` if they guarantee nothing.
    pub sweep: Option<FloodBound>,
    /// Whether the programs drop ARP and neighbour discovery messages that contradict their knowledge of hosts.
    pub drops_spoofed_replies: bool,
    /// Whether hostile hosts may be unreachable, because they are blocked, or because their made-up hosts have used up their
    /// port's share.
    pub blocks_offenders: bool,
    /// The time in which an unknown host answers a ping while another host sweeps; `None` if the programs guarantee nothing.
    pub resolved_within: Option<Duration>,
    /// Whether the programs keep knowing the hosts at other ports if hosts are made up at one.
    pub keeps_hosts: bool,
    /// Returns the reason why a flow with a demand was refused, for programs that reserve for datagrams; `None` for other
    /// programs.
    pub refused: Option<Refused>,
    /// The maximum number of entries that a switch has during faults; `None` if the programs guarantee nothing.
    pub entries_at_most: Option<usize>,
}

/// A bound on the packets of one host that are sent to all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodBound {
    /// The number of packets per second.
    pub per_second: u32,
    /// The number of packets in a burst.
    pub burst: u32,
}

/// A controller with its programs, and an additional check.
pub struct Programs {
    /// The controller, to be started.
    pub controller: Controller,
    /// Checks that reservations do not exceed the links' capacities, for programs that reserve.
    pub reservations: Option<Check>,
}

/// The possible faults. A run has a subset of these kinds, and each of its faults is of one of them.
#[derive(Clone, Debug)]
pub struct Faults {
    /// The maximum number of faults in a run.
    pub most: usize,
    /// The kinds.
    pub kinds: Vec<FaultKind>,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self {
        most: 0,
        kinds: Vec::new(),
    };

    /// Returns all accidents ([`FaultKind::ALL`]), with up to eight faults per run.
    pub fn all() -> Self {
        Self::of(FaultKind::ALL)
    }

    /// Returns these kinds, with up to eight faults per run.
    pub fn of(kinds: &[FaultKind]) -> Self {
        Self {
            most: 8,
            kinds: kinds.to_vec(),
        }
    }

    /// Removes these kinds.
    pub fn without(mut self, kinds: &[FaultKind]) -> Self {
        self.kinds.retain(|kind| !kinds.contains(kind));
        self
    }
}

impl Scenario {
    /// Creates a scenario of small trees, with all faults except moves of hosts, for programs that may not support loops. When
    /// the network is quiescent, a switch has only its table-miss entry.
    ///
    /// Hosts do not move, since a learning switch does not follow a host that moves while there is no controller: the
    /// controllers before and after have both seen it in one place only, and its old entries stay as long as they are used.
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
            unknown_flood: None,
            sweep: None,
            drops_spoofed_replies: false,
            blocks_offenders: false,
            resolved_within: None,
            keeps_hosts: false,
            refused: None,
            entries_at_most: None,
        }
    }

    /// Creates a scenario of topologies with loops and moving hosts, for programs that support them. These programs may keep a
    /// flow's entries for a minute after its last packet, and one entry of their own on each switch.
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
