//! Which ports are at the network's edge.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::time::Duration;
use urtica_controller::{Network, SwitchInfo};
use urtica_services::{Discovery, PortRole};
use urtica_topology::PortId;
use urtica_wire::{PortNo, PortReason, PortState, PortStatus};

/// How long switches have to reconnect after the controller's start: Open vSwitch tries every 8 s at least. Until then, a
/// port with many hosts behind it may lead to a switch that has not.
pub(super) const SETTLE: Duration = Duration::from_secs(15);

/// What is behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Hosts.
    Edge,
    /// Hosts, or a switch that has not come back yet.
    LikelyEdge,
    /// It came up recently.
    Unknown,
    /// Another switch.
    Trunk,
}

/// The state of all ports.
///
/// A port that was a link port remains one until it goes down: the switch behind it may have lost its controller and still
/// forward packets.
pub(super) struct Ports {
    discovery: Discovery,
    trunks: Mutex<Trunks>,
}

#[derive(Default)]
struct Trunks {
    /// Ports that were link ports. There are no more than ports.
    ports: BTreeSet<PortId>,
    /// The topology that they were last taken from.
    version: Option<u64>,
}

impl Ports {
    pub fn new(discovery: &Discovery) -> Self {
        Self {
            discovery: discovery.clone(),
            trunks: Mutex::default(),
        }
    }

    /// Updates the link ports, if the topology has changed.
    pub fn learn(&self, network: &Network) {
        let version = self.discovery.topology().version();
        let mut trunks = self.trunks.lock();
        if trunks.version == Some(version) {
            return;
        }
        trunks.version = Some(version);
        for link in self.discovery.topology().load().directed_links() {
            // One that has just gone down is not added any more, though its link may still be shown.
            let is_up = |port: &PortId| {
                network
                    .info(port.switch)
                    .is_some_and(|info| is_plugged(&info, port.port_no))
            };
            trunks
                .ports
                .extend([link.from, link.to].into_iter().filter(is_up));
        }
    }

    /// Updates the ports of a switch that has just joined.
    pub fn forget_unplugged(&self, info: &SwitchInfo) {
        let is_known =
            |port: &PortId| port.switch != info.datapath_id || is_plugged(info, port.port_no);
        self.trunks.lock().ports.retain(is_known);
    }

    /// A port has changed. Returns whether it was a link port and is down now: what is plugged in next may be anything.
    pub fn forget_where_down(&self, port: PortId, status: &PortStatus) -> bool {
        let is_down = status.port.state.contains(PortState::LINK_DOWN);
        (is_down || status.reason == PortReason::Delete) && self.trunks.lock().ports.remove(&port)
    }

    pub fn is_trunk(&self, port: PortId) -> bool {
        self.discovery.is_link_port(port) || self.trunks.lock().ports.contains(&port)
    }

    /// What is behind a port; `is_settled` says whether all switches have had the time to connect.
    pub fn side(&self, port: PortId, is_settled: bool) -> Side {
        if self.is_trunk(port) {
            return Side::Trunk;
        }
        match self.discovery.port_role(port) {
            Some(PortRole::Host) if is_settled => Side::Edge,
            Some(PortRole::Host) => Side::LikelyEdge,
            _ => Side::Unknown,
        }
    }
}

/// Whether a switch has a port, and the port a link.
fn is_plugged(info: &SwitchInfo, port_no: PortNo) -> bool {
    let port = info.port(port_no);
    port.is_some_and(|port| !port.state.contains(PortState::LINK_DOWN))
}
