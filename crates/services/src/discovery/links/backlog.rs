//! Deferred work for switches with many ports that join or leave. It is done in portions, because callers of [`Links`] hold a
//! lock that handlers of other switches wait for, and 65,536 ports at once would need a second.

use super::ports::SwitchPorts;
use super::{Links, Timer, is_local};
use crate::flooding::PortRole;
use std::collections::BTreeMap;
use std::time::Instant;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, Port, PortNo};

/// The first port of all.
const FIRST_PORT: PortId = PortId::new(DatapathId(0), PortNo(0));

/// The deferred work. See the module's documentation.
#[derive(Default)]
pub(super) struct Backlog {
    /// The time when the oldest work was added.
    since: Option<Instant>,
    /// Ports of connected switches that have not been added yet.
    new_ports: BTreeMap<DatapathId, BTreeMap<PortNo, Port>>,
    /// The ports of switches that have left, whose timers must still be cancelled.
    removed_ports: BTreeMap<DatapathId, SwitchPorts>,
    doubt: Option<Doubt>,
}

/// A pass over all ports that doubts each one without a known neighbour, since it may lead to a switch that has joined.
struct Doubt {
    /// The next port.
    next: PortId,
    /// Ports with a higher first stamp came up later, and were probed then.
    joined_at: u64,
    /// Whether another switch joined during the pass: the ports before `next` are doubted again.
    is_repeated: bool,
}

impl Backlog {
    /// Returns the time when work is due; `None` if there is none.
    pub fn due(&self) -> Option<Instant> {
        self.since
    }

    /// Defers the addition of these ports of a switch.
    pub fn add_ports(&mut self, switch: DatapathId, ports: &[Port], now: Instant) {
        if !ports.is_empty() {
            let ports = ports.iter().map(|port| (port.port_no, *port)).collect();
            self.new_ports.insert(switch, ports);
            self.since.get_or_insert(now);
        }
    }

    /// Cancels the deferred addition of a port that has changed or was removed.
    pub fn forget_port(&mut self, port: PortId) {
        if let Some(ports) = self.new_ports.get_mut(&port.switch) {
            ports.remove(&port.port_no);
        }
    }

    /// Defers the removal of the timers of a switch that has left, with these ports.
    pub fn remove_switch(&mut self, switch: DatapathId, mut ports: SwitchPorts, now: Instant) {
        self.new_ports.remove(&switch);
        if !ports.is_empty() {
            self.removed_ports
                .entry(switch)
                .or_default()
                .append(&mut ports);
            self.since.get_or_insert(now);
        }
    }

    /// Starts a pass that doubts the ports which came up before this stamp.
    pub fn doubt_ports(&mut self, joined_at: u64, now: Instant) {
        let next = self.doubt.as_ref().map_or(FIRST_PORT, |doubt| doubt.next);
        self.doubt = Some(Doubt {
            next,
            joined_at,
            is_repeated: next != FIRST_PORT,
        });
        self.since.get_or_insert(now);
    }

    fn is_empty(&self) -> bool {
        self.new_ports.is_empty() && self.removed_ports.is_empty() && self.doubt.is_none()
    }
}

/// Removes and returns the first ports of the first switch, at most `portion`.
fn take_portion<P>(
    switches: &mut BTreeMap<DatapathId, BTreeMap<PortNo, P>>,
    portion: usize,
) -> Vec<(PortId, P)> {
    let Some(mut first) = switches.first_entry() else {
        return Vec::new();
    };
    let (switch, ports) = (*first.key(), first.get_mut());
    let taken = std::iter::from_fn(|| ports.pop_first()).take(portion);
    let taken = taken.map(|(port_no, port)| (PortId::new(switch, port_no), port));
    let taken = taken.collect();
    if ports.is_empty() {
        first.remove();
    }
    taken
}

impl Links {
    /// Does one portion of each kind of work in the backlog.
    pub(super) fn work_off_backlog(&mut self, now: Instant) {
        for (id, port) in take_portion(&mut self.backlog.new_ports, self.portion) {
            if let Some(&owner) = self.switches.get(&id.switch) {
                self.handle_port(id.switch, owner, &port, now);
            }
        }
        for (id, _) in take_portion(&mut self.backlog.removed_ports, self.portion) {
            // Its switch may have joined again.
            if !self.ports.contains(id) {
                self.cancel_timers(id);
            }
        }
        if let Some(doubt) = self.backlog.doubt.take() {
            self.backlog.doubt = self.doubt_portion(doubt, now);
        }
        if self.backlog.is_empty() {
            self.backlog.since = None;
        }
    }

    /// Doubts the next ports of the pass; returns what remains of it.
    fn doubt_portion(&mut self, doubt: Doubt, now: Instant) -> Option<Doubt> {
        let mut ports = self.ports.range_mut(doubt.next..);
        for (id, port) in ports.by_ref().take(self.portion) {
            let is_doubtful = matches!(port.role(), PortRole::Host | PortRole::Unclassified);
            if port.first_stamp < doubt.joined_at && is_doubtful && !is_local(id) {
                if let Some(due) = port.doubt(now) {
                    self.timers.set(Timer::Probe(id), due);
                }
            }
        }
        match ports.next() {
            Some((next, _)) => Some(Doubt { next, ..doubt }),
            None => doubt.is_repeated.then_some(Doubt {
                next: FIRST_PORT,
                is_repeated: false,
                ..doubt
            }),
        }
    }
}
