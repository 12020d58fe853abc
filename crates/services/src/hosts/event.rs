//! What happens to hosts.

use super::Host;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use urtica_topology::PortId;

/// Something happened to a host. `host` is as it is afterwards.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// A host was seen for the first time.
    Joined(Arc<Host>),
    /// A host has other addresses than before, or has become a router.
    Changed(Arc<Host>),
    /// A host is at another port than before.
    Moved {
        /// The host.
        host: Arc<Host>,
        /// Where it was.
        from: PortId,
    },
    /// A host is gone.
    Left {
        /// As it was.
        host: Arc<Host>,
        /// Why.
        reason: LeftReason,
    },
    /// Two hosts say that they have one address. Told at most every [`EVENT_INTERVAL`](super::EVENT_INTERVAL) for each
    /// address.
    AddressConflict {
        /// The address.
        address: IpAddr,
        /// Who has it, and keeps it for now.
        owner: Arc<Host>,
        /// Who says so, too.
        claimant: Arc<Host>,
    },
    /// An address has another owner than before: the old one did not answer when it was asked, or the newest wins.
    AddressMoved {
        /// The address.
        address: IpAddr,
        /// Who had it.
        from: Arc<Host>,
        /// Who has it.
        to: Arc<Host>,
    },
    /// A host is seen at two ports and answers at the first: two hosts with one MAC address, a loop, or a forged
    /// sender. Told at most every [`EVENT_INTERVAL`](super::EVENT_INTERVAL) for each host.
    Contested {
        /// The host, which stays where it is.
        host: Arc<Host>,
        /// Where it is seen, too.
        port: PortId,
    },
    /// A host moved too often. It stays where it is for a while.
    Flapping {
        /// The host.
        host: Arc<Host>,
        /// How long it stays at least.
        until: Instant,
    },
    /// Hosts were not learnt since there are too many. Told at most every [`EVENT_INTERVAL`](super::EVENT_INTERVAL) for
    /// each port.
    Refused {
        /// Where.
        port: PortId,
        /// How many hosts are known there.
        known: usize,
    },
    /// So many events came and went before they were read: look at [`Hosts::all`](super::Hosts::all), and go on.
    Missed(u64),
}

/// Why a host is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftReason {
    /// It was silent for too long, and did not answer when it was asked.
    Silent,
    /// Its port has no link, or is gone.
    PortDown,
    /// Its switch has left.
    SwitchLeft,
    /// Its port leads to another switch: it was never there.
    NotAnEdge,
}
