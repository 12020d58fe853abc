//! The ports at the network's edge.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::time::Duration;
use urtica_controller::{Network, SwitchInfo};
use urtica_services::{Discovery, PortRole};
use urtica_topology::PortId;
use urtica_wire::{PortNo, PortReason, PortState, PortStatus};

/// The time for switches to reconnect after the controller's start: Open vSwitch tries at least every 8 s. Until then, a
/// port with many hosts behind it may lead to a switch that is not yet connected.
pub(super) const SETTLE: Duration = Duration::from_secs(15);

/// The kind of device behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Hosts.
    Edge,
    /// Hosts, or a switch that has not reconnected yet.
    LikelyEdge,
    /// Unknown, since the port came up recently.
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
    /// The ports that are or were link ports.
    ports: BTreeSet<PortId>,
    /// The version of the topology from which they were last updated.
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
            // A port that has just gone down is not added, even if the topology still has its link.
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

    /// Forgets a port if it is down now, since any device may be plugged in next. Returns `true` if it was a link port.
    pub fn forget_where_down(&self, port: PortId, status: &PortStatus) -> bool {
        let is_down = status.port.state.contains(PortState::LINK_DOWN);
        (is_down || status.reason == PortReason::Delete) && self.trunks.lock().ports.remove(&port)
    }

    pub fn is_trunk(&self, port: PortId) -> bool {
        self.discovery.is_link_port(port) || self.trunks.lock().ports.contains(&port)
    }

    /// Returns the kind of device behind a port; `is_settled` is `true` once all switches have had the time to connect.
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

/// Returns `true` if a switch has a port, and the port's link is up.
fn is_plugged(info: &SwitchInfo, port_no: PortNo) -> bool {
    let port = info.port(port_no);
    port.is_some_and(|port| !port.state.contains(PortState::LINK_DOWN))
}
