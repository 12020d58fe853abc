//! Who began what: traffic that an incoming packet provoked is not held against the host that answers.
//!
//! **What.** A packet provokes more than replies in its own flow: its receiver asks for its sender's address, reports ICMP
//! errors, answers from another port, or connects back. A router forwards it, and asks for its next hop. If the packet's
//! source address is made up, all of that goes to addresses that do not exist, and looks like a sweep. So the records note
//! whom each packet may provoke to contact which address.
//!
//! A packet excuses nobody at its sender's own port, who may have sent it for that purpose.

use super::record::{Attempt, Blame, Flow};
use std::collections::BTreeMap;
use std::net::IpAddr;
use urtica_topology::PortId;
use urtica_wire::MacAddr;

/// Somebody who may be provoked, or contacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Address(IpAddr),
    Mac(MacAddr),
    /// Whoever receives broadcasts.
    Everybody,
}

impl Party {
    fn of_mac(mac: MacAddr) -> Self {
        match mac.is_multicast() {
            true => Self::Everybody,
            false => Self::Mac(mac),
        }
    }
}

/// Which flows were begun recently, and who was provoked by that to contact whom; with the port where it began.
pub(super) struct Begun {
    flows: Recent<Flow>,
    provoked: Recent<(Party, Party)>,
    limit: usize,
}

impl Begun {
    /// Remembers at most `limit` flows, and as many provocations.
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Recent::new(),
            provoked: Recent::new(),
            limit,
        }
    }

    /// Decides what of a packet counts against its sender at this port, and records what it begins and provokes.
    pub fn judge(&mut self, attempt: &Attempt, at: PortId) -> Blame {
        if let Some(flow) = attempt.flow {
            if self.is_answer(&flow) || self.is_forwarded(&flow, at) {
                return Blame::Nothing;
            }
        }
        // Answers provoke nothing more: they would excuse whoever sweeps the same addresses again.
        let is_answer = self.is_provoked(attempt.sender.map(Party::Address), attempt, at);
        if !is_answer {
            self.note_provoked(attempt, at);
        }
        let has_ports = attempt.flow.is_some_and(|flow| flow.dst_port != 0);
        if is_answer && !has_ports {
            return Blame::Nothing;
        }
        let by_mac = [Party::Mac(attempt.source), Party::Everybody];
        let is_provoked = by_mac
            .into_iter()
            .any(|own| self.is_provoked(Some(own), attempt, at));
        if let Some(flow) = attempt.flow {
            self.flows.note(flow, at, self.limit);
        } else if is_provoked {
            return Blame::Nothing;
        }
        match is_answer || is_provoked {
            true => Blame::AllButDestination,
            false => Blame::All,
        }
    }

    /// Whether this is sent to the port that began a flow to its sender, and was not begun itself. The answer may come from
    /// another port, as in TFTP (RFC 1350).
    fn is_answer(&self, flow: &Flow) -> bool {
        let asked = |dst_port| Flow {
            src: flow.dst,
            dst: flow.src,
            src_port: flow.dst_port,
            dst_port,
            ..*flow
        };
        !self.flows.contains(flow) && self.flows.has_between(&asked(0), &asked(u16::MAX))
    }

    /// Whether a flow was begun at another port: a router forwards it.
    fn is_forwarded(&self, flow: &Flow, at: PortId) -> bool {
        self.flows.port(flow).is_some_and(|port| port != at)
    }

    /// Whether the sender was provoked, by one of its names, to contact the receiver.
    fn is_provoked(&self, own: Option<Party>, attempt: &Attempt, at: PortId) -> bool {
        let port = own.and_then(|own| self.provoked.port(&(own, contacted(attempt))));
        port.is_some_and(|port| port != at)
    }

    /// Records who is provoked to contact the sender, and that a router is provoked to contact the destination.
    fn note_provoked(&mut self, attempt: &Attempt, at: PortId) {
        let receiver = Party::of_mac(attempt.receiver);
        let destination = attempt.destination.map(Party::Address);
        let sender = match attempt.sender {
            Some(address) => Party::Address(address),
            None => Party::Mac(attempt.source),
        };
        // A question is for the owner of the address alone.
        let is_for_all = receiver == Party::Everybody && !attempt.is_neighbour;
        let is_unicast = receiver != Party::Everybody;
        let provocations = [
            destination.map(|destination| (destination, sender)),
            (is_for_all || is_unicast).then_some((receiver, sender)),
            destination
                .filter(|_| is_unicast)
                .map(|destination| (receiver, destination)),
        ];
        for provocation in provocations.into_iter().flatten() {
            self.provoked.note(provocation, at, self.limit);
        }
    }

    /// Half a window has passed.
    pub fn turn(&mut self) {
        self.flows.turn();
        self.provoked.turn();
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.flows.len() + self.provoked.len()
    }
}

/// Whom a packet is for.
fn contacted(attempt: &Attempt) -> Party {
    match attempt.destination {
        Some(address) => Party::Address(address),
        None => Party::Mac(attempt.receiver),
    }
}

/// What began in the current half of the window, and in the previous half, and where; they are disjoint.
struct Recent<T> {
    now: BTreeMap<T, PortId>,
    before: BTreeMap<T, PortId>,
}

impl<T: Ord> Recent<T> {
    fn new() -> Self {
        Self {
            now: BTreeMap::new(),
            before: BTreeMap::new(),
        }
    }

    /// Adds what is new, unless the limit is already reached.
    fn note(&mut self, thing: T, at: PortId, limit: usize) {
        if self.len() < limit && !self.before.contains_key(&thing) {
            self.now.entry(thing).or_insert(at);
        }
    }

    fn port(&self, thing: &T) -> Option<PortId> {
        self.now.get(thing).or(self.before.get(thing)).copied()
    }

    fn contains(&self, thing: &T) -> bool {
        self.port(thing).is_some()
    }

    /// Whether there is anything from `first` to `last`.
    fn has_between(&self, first: &T, last: &T) -> bool {
        let has = |things: &BTreeMap<T, PortId>| things.range(first..=last).next().is_some();
        has(&self.now) || has(&self.before)
    }

    fn len(&self) -> usize {
        self.now.len() + self.before.len()
    }

    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}
