//! The ports that are up, by switch, so that all ports of a switch can be removed together.

use super::PortState;
use std::collections::BTreeMap;
use std::ops::RangeFrom;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, PortNo};

/// The ports of one switch.
pub(super) type SwitchPorts = BTreeMap<PortNo, PortState>;

/// All ports that are up.
#[derive(Default)]
pub(super) struct Ports {
    /// Contains no switch without ports.
    by_switch: BTreeMap<DatapathId, SwitchPorts>,
    count: usize,
}

impl Ports {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn get(&self, port: PortId) -> Option<&PortState> {
        self.by_switch.get(&port.switch)?.get(&port.port_no)
    }

    pub fn get_mut(&mut self, port: PortId) -> Option<&mut PortState> {
        self.by_switch.get_mut(&port.switch)?.get_mut(&port.port_no)
    }

    pub fn contains(&self, port: PortId) -> bool {
        self.get(port).is_some()
    }

    pub fn insert(&mut self, port: PortId, state: PortState) {
        let ports = self.by_switch.entry(port.switch).or_default();
        if ports.insert(port.port_no, state).is_none() {
            self.count += 1;
        }
    }

    pub fn remove(&mut self, port: PortId) {
        let Some(ports) = self.by_switch.get_mut(&port.switch) else {
            return;
        };
        self.count -= usize::from(ports.remove(&port.port_no).is_some());
        if ports.is_empty() {
            self.by_switch.remove(&port.switch);
        }
    }

    /// Removes and returns the ports of a switch.
    pub fn take_switch(&mut self, switch: DatapathId) -> SwitchPorts {
        let ports = self.by_switch.remove(&switch).unwrap_or_default();
        self.count -= ports.len();
        ports
    }

    /// Returns the ports of a switch, in order.
    pub fn of_switch(&self, switch: DatapathId) -> impl Iterator<Item = (PortId, &PortState)> {
        let ports = self.by_switch.get(&switch).into_iter().flatten();
        ports.map(move |(&port_no, state)| (PortId::new(switch, port_no), state))
    }

    /// Returns all ports, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PortId, &PortState)> {
        let switches = self.by_switch.keys();
        switches.flat_map(|&switch| self.of_switch(switch))
    }

    /// Returns the ports from a given one on, in order.
    pub fn range_mut(
        &mut self,
        from: RangeFrom<PortId>,
    ) -> impl Iterator<Item = (PortId, &mut PortState)> {
        let first = from.start;
        let switches = self.by_switch.range_mut(first.switch..);
        switches.flat_map(move |(&switch, ports)| {
            let is_first = switch == first.switch;
            let first_port = if is_first { first.port_no } else { PortNo(0) };
            let ports = ports.range_mut(first_port..);
            ports.map(move |(&port_no, state)| (PortId::new(switch, port_no), state))
        })
    }
}
