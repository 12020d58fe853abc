//! Space for new hosts: shares of ports and switches.

use super::{Change, Subject};
use crate::hosts::host::{Host, HostId};
use crate::hosts::{HostEvent, LeftReason};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use urtica_topology::PortId;
use urtica_wire::DatapathId;

impl Change<'_> {
    /// Adds an unknown host. Returns whether it is known now.
    pub(super) fn join(&mut self, id: HostId, port: PortId) -> bool {
        let config = &self.table.config;
        if !self.has_room(port) || !self.make_space(port) {
            self.refuse(port);
            return false;
        }
        let host = Arc::new(Host::new(id, port, self.now));
        self.writer.at_port.entry(port).or_default().insert(id);
        self.writer.count += 1;
        self.set_age(id, self.now + config.max_age);
        self.put(Arc::clone(&host));
        self.tell(HostEvent::Joined(host));
        true
    }

    /// Removes a host of the largest share if the table is full. Returns `false` if that share is the new host's, or hardly
    /// larger.
    fn make_space(&mut self, port: PortId) -> bool {
        if self.writer.count < self.table.config.max_hosts {
            return true;
        }
        let lost = self
            .largest_share(port)
            .and_then(|port| self.least_heard_at(port));
        let has_space = lost.is_some();
        if let Some(lost) = lost {
            self.remove(&lost, LeftReason::Displaced);
        }
        has_space
    }

    /// Returns the port with the most hosts, of the switch with the most hosts, if that has more than the new host's will have.
    fn largest_share(&self, new: PortId) -> Option<PortId> {
        let mut of_switches = BTreeMap::<DatapathId, usize>::new();
        for (port, hosts) in &self.writer.at_port {
            *of_switches.entry(port.switch).or_default() += hosts.len();
        }
        let own = of_switches.get(&new.switch).copied().unwrap_or(0);
        let (switch, of_switch) = of_switches.into_iter().max_by_key(|(_, hosts)| *hosts)?;
        let ports = self.writer.at_port.iter();
        let (port, of_port) = ports
            .filter(|(port, _)| port.switch == switch)
            .map(|(port, hosts)| (*port, hosts.len()))
            .max_by_key(|(_, hosts)| *hosts)?;
        let is_larger = match switch == new.switch {
            true => of_port > self.known_at(new) + 1,
            false => of_switch > own + 1,
        };
        is_larger.then_some(port)
    }

    /// Returns the host of a port that was heard the fewest times; prefers one without an address.
    fn least_heard_at(&self, port: PortId) -> Option<Arc<Host>> {
        let hosts = self.writer.at_port.get(&port)?.iter();
        hosts
            .filter_map(|id| self.find(*id))
            .min_by_key(|host| (host.addresses().next().is_some(), host.heard()))
    }

    pub(super) fn has_room(&self, port: PortId) -> bool {
        self.known_at(port) < self.table.config.max_hosts_per_port
    }

    fn known_at(&self, port: PortId) -> usize {
        self.writer.at_port.get(&port).map_or(0, BTreeSet::len)
    }

    pub(super) fn refuse(&mut self, port: PortId) {
        self.writer.refused += 1;
        if self.is_worth_telling(Subject::Refused(port)) {
            let known = self.known_at(port);
            self.tell(HostEvent::Refused { port, known });
        }
    }
}
