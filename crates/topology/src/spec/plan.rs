//! The plan of a network.

use crate::{DirectedLink, PortId, Topology};
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_wire::{DatapathId, MacAddr};

/// The maximum number of switches in a plan.
pub const MAX_SWITCHES: usize = 10_000;

/// The maximum number of hosts in a plan.
pub const MAX_HOSTS: usize = 100_000;

/// The maximum number of full-duplex links between switches in a plan.
pub const MAX_LINKS: usize = 100_000;

/// The plan of a network, with all its switches, hosts and links.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// The switches.
    pub switches: Vec<SwitchPlan>,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// The full-duplex links between switches.
    pub links: Vec<LinkPlan>,
}

/// A switch of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchPlan {
    /// Its name, unique among switches and hosts: `s1`.
    pub name: String,
    /// Its datapath id, unique among switches.
    pub datapath_id: DatapathId,
}

/// A host of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlan {
    /// Its name, unique among switches and hosts: `h1`.
    pub name: String,
    /// Its Ethernet address, unique among hosts.
    pub mac: MacAddr,
    /// Its IPv4 address, unique among hosts. All hosts are in one network.
    pub ipv4: Ipv4Addr,
    /// The port to which only this host is connected.
    pub attached: PortId,
}

/// A full-duplex link of a plan, which consists of a [`DirectedLink`] each way.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkPlan {
    /// One end, a port to which nothing else is connected.
    pub a: PortId,
    /// The other end, a port to which nothing else is connected.
    pub b: PortId,
    /// The delay, jitter, loss and bandwidth in each direction.
    pub properties: LinkProperties,
}

/// Delay, jitter, loss and bandwidth of a link. The default link is ideal.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkProperties {
    /// The time from sending a packet to its arrival.
    pub delay: Duration,
    /// The maximum deviation from `delay`, earlier or later; at most `delay`.
    pub jitter: Duration,
    /// The probability that a packet is lost, from 0 to 1.
    pub loss: f64,
    /// The link's capacity, in bits per second; `None` for no limit.
    pub bandwidth_bps: Option<u64>,
}

impl Plan {
    /// Returns the network's true topology: every switch, and two directed links for each full-duplex link.
    pub fn topology(&self) -> Topology {
        let switches = self.switches.iter().map(|switch| switch.datapath_id);
        let links = self.links.iter().flat_map(|link| {
            let forth = DirectedLink::new(link.a, link.b);
            [forth, forth.reversed()]
        });
        Topology::new(switches, links)
    }
}
