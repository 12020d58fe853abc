//! The initiators of traffic: a host that responds to a packet is not blamed for traffic which that packet provokes.
//!
//! **What.** A packet provokes more than replies in its own flow: its receiver resolves the sender's address, reports ICMP
//! errors, replies from another port, or connects back. A router forwards it, and resolves its next hop. If the packet's
//! source address is forged, all these packets are for addresses that do not exist, and look like a sweep. So the records
//! contain which host each packet may provoke to contact which address.
//!
//! A packet excuses no host at its sender's own port, which may have sent it for that purpose.
//!
//! A flow provokes traffic for as long as it lasts. So its entry expires after half a window, and the next packet renews its
//! provocations. The entry of an answer, which provokes nothing, does not expire then.

use super::known::Known;
use super::record::{Attempt, Blame, Flow};
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
    flows: Known<Flow, PortId>,
    provoked: Known<(Party, Party), PortId>,
    limit: usize,
}

impl Begun {
    /// Creates a record of at most `limit` flows, and as many provocations.
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Known::default(),
            provoked: Known::default(),
            limit,
        }
    }

    /// Returns how much of a packet counts against its sender at this port, and records the flow that it starts and its
    /// provocations.
    pub fn judge(&mut self, attempt: &Attempt, at: PortId) -> Blame {
        if attempt.flow.is_some_and(|flow| self.is_answer(&flow)) {
            return Blame::Answer;
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
        self.flows.get(flow).is_some_and(|port| port != at)
    }

    /// Returns `true` if the sender was provoked, under the name `own`, to contact the receiver.
    fn is_provoked(&self, own: Option<Party>, attempt: &Attempt, at: PortId) -> bool {
        let port = own.and_then(|own| self.provoked.get(&(own, contacted(attempt))));
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

    /// Forgets the flows that were not checked for a while, and their provocations.
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
            // The flow's entry hides its packets for one turn; the last one provokes requests for some time.
            for _ in 0..3 {
                begun.turn();
                assert_eq!(begun.judge(&request, at(3)), Blame::Nothing, "{attacker}");
            }
        }
        begun.turn();
        assert_eq!(begun.judge(&request, at(3)), Blame::All);
    }
}
