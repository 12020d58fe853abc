//! What a network is to be built of.

use crate::{DirectedLink, PortId, Topology};
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_wire::{DatapathId, MacAddr};

/// Everything that a network is to have.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// The switches.
    pub switches: Vec<SwitchPlan>,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// The full-duplex links between switches.
    pub links: Vec<LinkPlan>,
}

/// A switch that a network is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchPlan {
    /// Its name, that no other switch or host has: `s1`.
    pub name: String,
    /// Its datapath id, that no other switch has.
    pub datapath_id: DatapathId,
}

/// A host that a network is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlan {
    /// Its name, that no other host or switch has: `h1`.
    pub name: String,
    /// Its Ethernet address, that no other host has.
    pub mac: MacAddr,
    /// Its IPv4 address, that no other host has. All hosts are in one network.
    pub ipv4: Ipv4Addr,
    /// The port to which it is connected, where nothing else is.
    pub attached: PortId,
}

/// A full-duplex link that a network is to have: a [`DirectedLink`] each way.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkPlan {
    /// One end, where nothing else is connected.
    pub a: PortId,
    /// The other end, where nothing else is connected.
    pub b: PortId,
    /// What becomes of packets on the way, in either direction.
    pub properties: LinkProperties,
}

/// What becomes of packets on a link. By default nothing: they arrive at once, and all of them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkProperties {
    /// How long a packet is on the way.
    pub delay: Duration,
    /// By how much a packet may be earlier or later than `delay`; not more than it.
    pub jitter: Duration,
    /// The probability that a packet is lost, from 0 to 1.
    pub loss: f64,
    /// How much the link carries, in bits per second; `None` for no limit.
    pub bandwidth_bps: Option<u64>,
}

impl Plan {
    /// The network's true topology: every switch, and two directed links for each full-duplex link.
    pub fn topology(&self) -> Topology {
        let switches = self.switches.iter().map(|switch| switch.datapath_id);
        let links = self.links.iter().flat_map(|link| {
            let forth = DirectedLink::new(link.a, link.b);
            [forth, forth.reversed()]
        });
        Topology::new(switches, links)
    }
}
