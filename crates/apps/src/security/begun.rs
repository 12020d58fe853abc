//! The initiators of traffic: a host that responds to a packet is not blamed for traffic which that packet provokes.
//!
//! **What.** A packet provokes more than replies in its own flow: its receiver resolves the sender's address, reports ICMP
//! errors, replies from another port, or connects back. A router forwards it, and resolves its next hop. If the packet's
//! source address is forged, all these packets are for addresses that do not exist, and look like a sweep. So the records
//! contain which host each packet may provoke to contact which address.
//!
//! A packet excuses no host at its sender's own port, which may have sent it for that purpose.

use super::record::{Attempt, Blame, Flow};
use std::collections::BTreeMap;
use std::net::IpAddr;
use urtica_topology::PortId;
use urtica_wire::MacAddr;

/// A host that may be provoked, or contacted, under one of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Address(IpAddr),
    Mac(MacAddr),
    /// All receivers of broadcasts.
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

/// The flows that were started recently, and the provocations (a party, and the one that it may contact), with the ports of
/// the initiators.
pub(super) struct Begun {
    flows: Recent<Flow>,
    provoked: Recent<(Party, Party)>,
    limit: usize,
}

impl Begun {
    /// Creates a record of at most `limit` flows, and as many provocations.
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Recent::new(),
            provoked: Recent::new(),
            limit,
        }
    }

    /// Returns how much of a packet counts against its sender at this port, and records the flow that it starts and its
    /// provocations.
    pub fn judge(&mut self, attempt: &Attempt, at: PortId) -> Blame {
        if attempt.flow.is_some_and(|flow| self.is_answer(&flow)) {
            return Blame::Nothing;
        }
        // Answers provoke no further packets: they would excuse a host that sweeps the same addresses again.
        let is_answer = self.is_provoked(attempt.sender.map(Party::Address), attempt, at);
        if !is_answer {
            self.note_provoked(attempt, at);
        }
        if let Some(flow) = attempt.flow.filter(|flow| self.is_forwarded(flow, at)) {
            self.flows.note(flow, at, self.limit);
            return Blame::Nothing;
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

    /// Returns `true` if a flow was not started itself, and its destination port started a flow to its sender. The answer may
    /// be sent from another port, as in TFTP (RFC 1350).
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

    /// Returns `true` if a flow was started at another switch port, so that a router forwards it.
    fn is_forwarded(&self, flow: &Flow, at: PortId) -> bool {
        self.flows.port(flow).is_some_and(|port| port != at)
    }

    /// Returns `true` if the sender was provoked, under the name `own`, to contact the receiver.
    fn is_provoked(&self, own: Option<Party>, attempt: &Attempt, at: PortId) -> bool {
        let port = own.and_then(|own| self.provoked.port(&(own, contacted(attempt))));
        port.is_some_and(|port| port != at)
    }

    /// Records that the receiver and the destination may contact the sender, and that the receiver, if it is a router, may
    /// contact the destination.
    fn note_provoked(&mut self, attempt: &Attempt, at: PortId) {
        let receiver = Party::of_mac(attempt.receiver);
        let destination = attempt.destination.map(Party::Address);
        let sender = match attempt.sender {
            Some(address) => Party::Address(address),
            None => Party::Mac(attempt.source),
        };
        // A request for an address provokes only its owner.
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

    /// Starts a new half of the window, and drops the half before the previous one.
    pub fn turn(&mut self) {
        self.flows.turn();
        self.provoked.turn();
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.flows.len() + self.provoked.len()
    }
}

/// Returns the party that a packet is for.
fn contacted(attempt: &Attempt) -> Party {
    match attempt.destination {
        Some(address) => Party::Address(address),
        None => Party::Mac(attempt.receiver),
    }
}

/// Events with their ports, in the current and in the previous half of the window; the halves are disjoint.
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

    /// Adds an event, unless the limit is already reached. One that happens again keeps its port, and lasts for another window.
    fn note(&mut self, thing: T, at: PortId, limit: usize) {
        let known = self.before.remove(&thing);
        if known.is_some() || self.len() < limit {
            self.now.entry(thing).or_insert(known.unwrap_or(at));
        }
    }

    fn port(&self, thing: &T) -> Option<PortId> {
        self.now.get(thing).or(self.before.get(thing)).copied()
    }

    fn contains(&self, thing: &T) -> bool {
        self.port(thing).is_some()
    }

    /// Returns `true` if there is an event from `first` to `last`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use urtica_wire::packet::{Arp, Ethernet, Icmpv4, Ipv4, ether_type, icmpv4, ip_proto};
    use urtica_wire::{BufferId, DatapathId, Match, PacketIn, PacketInReason, PortNo};

    const TARGET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const MADE_UP: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

    fn attempt(src: u64, dst: MacAddr, ether_type: u16, write: impl Fn(&mut Vec<u8>)) -> Attempt {
        let mut frame = Vec::new();
        let header = Ethernet {
            dst,
            src: MacAddr::from_u64(src),
            ether_type,
        };
        header.write(&mut frame);
        write(&mut frame);
        Attempt::of(&PacketIn {
            buffer_id: BufferId::NONE,
            total_len: frame.len() as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(1),
            match_: Match::any(),
            data: &frame,
        })
    }

    /// A ping of the target by a made-up sender.
    fn ping(src: u64) -> Attempt {
        attempt(src, MacAddr::from_u64(3), ether_type::IPV4, |frame| {
            let echo = Icmpv4 {
                icmp_type: icmpv4::ECHO_REQUEST,
                icmp_code: 0,
                rest: [0; 4],
            };
            let mut icmp = Vec::new();
            echo.write(&mut icmp, &[]);
            let ip = Ipv4::new(MADE_UP, TARGET, ip_proto::ICMPV4);
            ip.write(frame, &icmp).unwrap();
        })
    }

    #[test]
    fn requests_are_excused_as_long_as_they_are_provoked_from_whichever_port() {
        let at = |port| PortId::new(DatapathId(1), PortNo(port));
        let request = attempt(3, MacAddr::BROADCAST, ether_type::ARP, |frame| {
            Arp::request(MacAddr::from_u64(3), TARGET, MADE_UP).write(frame);
        });
        let mut begun = Begun::new(100);
        for attacker in [1, 1, 2, 1] {
            begun.judge(&ping(attacker), at(attacker as u32));
            begun.turn();
            assert_eq!(begun.judge(&request, at(3)), Blame::Nothing, "{attacker}");
        }
        begun.turn();
        assert_eq!(begun.judge(&request, at(3)), Blame::All);
    }

    #[test]
    fn repeated_events_last_for_another_window() {
        let at = |port| PortId::new(DatapathId(1), PortNo(port));
        let mut recent = Recent::new();
        recent.note("often", at(1), 2);
        recent.note("once", at(1), 2);
        for _ in 0..3 {
            recent.turn();
            recent.note("often", at(2), 2);
            recent.note("further", at(2), recent.len());
        }
        assert_eq!(recent.port(&"often"), Some(at(1)));
        assert!(!recent.contains(&"once") && !recent.contains(&"further"));
        recent.turn();
        assert!(recent.contains(&"often"));
        recent.turn();
        assert_eq!(recent.len(), 0);
    }
}
