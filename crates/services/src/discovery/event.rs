//! The events of link discovery, and its counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::DatapathId;

/// A change that discovery has found. The topology already shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryEvent {
    /// A switch joined; events for its links follow.
    SwitchUp(DatapathId),
    /// A switch left; events for its links were published before.
    SwitchDown(DatapathId),
    /// A link came up. Each direction has its own event; the two are always published together.
    LinkUp(DirectedLink),
    /// A link went down, and its reverse direction with it.
    LinkDown {
        /// The link.
        link: DirectedLink,
        /// The reason.
        reason: DownReason,
    },
    /// Probes arrive in this direction but not in the other: not a link until they do.
    OneWay(DirectedLink),
    /// A link is flapping and is held down for a while. Identified by its lower end.
    Flapping {
        /// The link.
        link: DirectedLink,
        /// The time for which it is held down.
        held_for: Duration,
    },
    /// A frame that would have created a link was refused. At most one event per second and port.
    Refused {
        /// The port where it arrived.
        at: PortId,
        /// The port that it claims to come from, if that could be parsed.
        claimed: Option<PortId>,
        /// The reason.
        refusal: Refusal,
        /// The number of frames refused at this port since it came up.
        count: u64,
    },
    /// This reader was too slow and missed this number of events: read the topology again to resynchronise.
    Missed(u64),
}

/// The reason why a link went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DownReason {
    /// The port at one end went down or was removed.
    Port,
    /// The switch at one end disconnected.
    Switch,
    /// Probes no longer arrive.
    TimedOut,
    /// One end's probes arrive at another port: the link was moved there.
    Moved,
}

/// The reason why a frame that would have created a link was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Its authenticator is invalid: it is forged.
    Authenticator,
    /// It arrived at the port that sent it: a host reflected it, or the link ends in a loop.
    Reflected,
    /// It is too old: it was replayed.
    Replayed,
    /// It also arrived at another port: a host relayed it, or a device between the ports duplicates frames.
    Duplicated,
    /// The port was a host port ([`DiscoveryConfig::refuse_late_links`](super::DiscoveryConfig::refuse_late_links)).
    Late,
}

/// Counters of link discovery. Any thread may increment them.
#[derive(Debug, Default)]
pub struct DiscoveryCounters {
    pub(super) probes_sent: AtomicU64,
    pub(super) probes_received: AtomicU64,
    pub(super) forged: AtomicU64,
    pub(super) foreign: AtomicU64,
    pub(super) overrun: AtomicU64,
    pub(super) publications: AtomicU64,
}

impl DiscoveryCounters {
    /// Probes sent.
    pub fn probes_sent(&self) -> u64 {
        self.probes_sent.load(Ordering::Relaxed)
    }

    /// Own probes received.
    pub fn probes_received(&self) -> u64 {
        self.probes_received.load(Ordering::Relaxed)
    }

    /// Forged probes received.
    pub fn forged(&self) -> u64 {
        self.forged.load(Ordering::Relaxed)
    }

    /// Other stations' LLDP frames.
    pub fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    /// LLDP frames dropped unread: their port exceeded its limit, or their switch has no such port.
    pub fn overrun(&self) -> u64 {
        self.overrun.load(Ordering::Relaxed)
    }

    /// The number of publications.
    pub fn publications(&self) -> u64 {
        self.publications.load(Ordering::Relaxed)
    }
}

pub(super) fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
