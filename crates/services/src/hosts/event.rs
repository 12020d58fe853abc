//! Events about hosts.

use super::Host;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use urtica_topology::PortId;

/// A change of a host. `host` is its state afterwards.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HostEvent {
    /// A host was seen for the first time.
    Joined(Arc<Host>),
    /// A host's addresses changed, or it became a router.
    Changed(Arc<Host>),
    /// A host moved to another port.
    Moved {
        /// The host.
        host: Arc<Host>,
        /// Its previous location.
        from: PortId,
    },
    /// A host was removed.
    Left {
        /// Its last state.
        host: Arc<Host>,
        /// The reason.
        reason: LeftReason,
    },
    /// Two hosts claim one address. At most one event per [`EVENT_INTERVAL`](super::EVENT_INTERVAL) and address.
    AddressConflict {
        /// The address.
        address: IpAddr,
        /// The owner, which keeps it for now.
        owner: Arc<Host>,
        /// The other claimant.
        claimant: Arc<Host>,
    },
    /// An address has a new owner: the old one did not answer a probe, or the latest claim wins.
    AddressMoved {
        /// The address.
        address: IpAddr,
        /// The old owner.
        from: Arc<Host>,
        /// The new owner.
        to: Arc<Host>,
    },
    /// A host is seen at two ports and answers at the first: a duplicate MAC address, a loop, or a forged source. At most
    /// one event per [`EVENT_INTERVAL`](super::EVENT_INTERVAL) and host.
    Contested {
        /// The host, which keeps its location.
        host: Arc<Host>,
        /// The other port where it is seen.
        port: PortId,
    },
    /// A host moved too often. It is held in place for a while.
    Flapping {
        /// The host.
        host: Arc<Host>,
        /// The minimum time for which it is held.
        until: Instant,
    },
    /// Hosts were not learnt because there are too many. At most one event per [`EVENT_INTERVAL`](super::EVENT_INTERVAL) and
    /// port.
    Refused {
        /// The port.
        port: PortId,
        /// The number of hosts known there.
        known: usize,
    },
    /// This reader was too slow and missed this number of events: read [`Hosts::all`](super::Hosts::all) to
    /// resynchronise.
    Missed(u64),
}

impl HostEvent {
    /// Returns the ports of hosts whose location or addresses have changed. Empty for hosts that join: no copies of them exist.
    pub(super) fn changed_ports(&self) -> impl Iterator<Item = PortId> + use<> {
        let ports = match self {
            Self::Joined(_) | Self::Refused { .. } | Self::Missed(_) => [None, None],
            Self::Changed(host) | Self::Left { host, .. } | Self::Flapping { host, .. } => {
                [Some(host.attached), None]
            }
            Self::Contested { host, port } => [Some(host.attached), Some(*port)],
            Self::Moved { host, from } => [Some(host.attached), Some(*from)],
            Self::AddressConflict {
                owner: one,
                claimant: other,
                ..
            }
            | Self::AddressMoved {
                from: one,
                to: other,
                ..
            } => [Some(one.attached), Some(other.attached)],
        };
        ports.into_iter().flatten()
    }
}

/// The reason why a host was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftReason {
    /// It was silent for too long, and did not answer a probe.
    Silent,
    /// Its port went down or was removed.
    PortDown,
    /// Its switch disconnected.
    SwitchLeft,
    /// Its port turned out to be a link port, so it was never attached there.
    NotAnEdge,
    /// The table was full, and its switch and port had more hosts than any other.
    Displaced,
}
