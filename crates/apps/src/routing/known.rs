//! The known state of the network, against which paths and entries are checked.

use super::absence::Absences;
use std::collections::BTreeSet;
use std::time::Instant;
use urtica_controller::Network;
use urtica_topology::{DirectedLink, NextHops, Path, PortId, Topology};
use urtica_wire::{DatapathId, Port, PortConfig, PortState};

/// The network at one moment.
pub(super) struct Known<'a> {
    pub network: &'a Network,
    pub next_hops: &'a NextHops,
    /// The switches that have reported all their entries since they joined.
    pub reported: &'a BTreeSet<DatapathId>,
    pub absences: &'a Absences,
    /// Whether a port is known to be a host port.
    pub is_host_port: &'a dyn Fn(PortId) -> bool,
    /// Whether no switch of an earlier run of the controller is still expected.
    pub all_are_back: bool,
    pub now: Instant,
}

impl Known<'_> {
    pub fn topology(&self) -> &Topology {
        self.next_hops.topology()
    }

    /// Returns `true` if all switches and links of a path are connected.
    pub fn sees(&self, path: &Path) -> bool {
        path.hops.iter().all(|hop| self.sees_switch(hop.switch))
            && path
                .directed_links()
                .all(|link| self.topology().contains(&link))
    }

    pub fn sees_switch(&self, switch: DatapathId) -> bool {
        self.topology().index_of(switch).is_some()
    }

    /// Returns `true` if all missing switches and links of a path are believed to forward as before.
    pub fn believes(&self, path: &Path) -> bool {
        path.hops
            .iter()
            .all(|hop| self.sees_switch(hop.switch) || self.believes_switch(hop.switch))
            && path
                .directed_links()
                .all(|link| self.topology().contains(&link) || self.believes_link(&link))
    }

    pub fn believes_switch(&self, switch: DatapathId) -> bool {
        self.absences.is_believed(switch, self.now)
    }

    /// Returns `true` for a link that was not found again since one of its switches disconnected, if neither end reports it
    /// down, or was found to lead to another port.
    fn believes_link(&self, link: &DirectedLink) -> bool {
        let ends = [link.from, link.to];
        let may_be_there = |end| self.may_be_up(end) && !self.topology().is_link_port(end);
        ends.iter().any(|end| self.believes_switch(end.switch))
            && ends.into_iter().all(may_be_there)
    }

    /// Returns `true` unless a port is known to be down. Ports of switches that are away may be up.
    pub fn may_be_up(&self, port: PortId) -> bool {
        let Some(info) = self.network.info(port.switch) else {
            return true;
        };
        // The list is empty until a 1.3 switch has described its ports.
        info.ports.is_empty() || info.port(port.port_no).is_some_and(is_up)
    }
}

/// Returns `true` if a port is enabled and its link is up.
pub(super) fn is_up(port: &Port) -> bool {
    !port.config.contains(PortConfig::PORT_DOWN) && !port.state.contains(PortState::LINK_DOWN)
}
