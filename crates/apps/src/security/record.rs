//! What sources of traffic did recently, in bounded memory.

use super::SecurityConfig;
use super::ports::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use urtica_wire::packet::{Headers, arp, ip_proto};
use urtica_wire::{MacAddr, PacketIn, PortNo};

/// What a packet that begins a flow says about its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub source: MacAddr,
    /// The address that it is sent to, or asks for.
    destination: IpAddr,
    flow: Option<Flow>,
}

/// A flow as its sender's records know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    /// The port of TCP and UDP; 0 for all else.
    src_port: u16,
    dst_port: u16,
}

impl Attempt {
    /// Whether it asks for an address.
    pub fn is_question(&self) -> bool {
        self.flow.is_none()
    }

    /// `None` for packets that begin nothing: ARP replies, and what is neither IP nor an address resolution request.
    pub fn of(packet: &PacketIn) -> Option<Self> {
        let headers = Headers::parse(packet.data);
        let source = packet.eth_src();
        if let Some(asked) = headers.arp {
            let is_question = asked.op == arp::REQUEST && asked.spa != asked.tpa;
            return is_question.then_some(Self {
                source,
                destination: asked.tpa.into(),
                flow: None,
            });
        }
        if let Some(target) = headers.nd_target {
            let is_question = headers.icmp_type == Some(NEIGHBOUR_SOLICITATION);
            return is_question.then_some(Self {
                source,
                destination: target.into(),
                flow: None,
            });
        }
        let (src, dst) = headers.ip_src.zip(headers.ip_dst)?;
        let has_ports = matches!(headers.ip_proto, Some(ip_proto::TCP | ip_proto::UDP));
        let port = |port: Option<u16>| port.filter(|_| has_ports).unwrap_or(0);
        let flow = Flow {
            src,
            dst,
            proto: headers.ip_proto.unwrap_or(0),
            src_port: port(headers.src_port),
            dst_port: port(headers.dst_port),
        };
        Some(Self {
            source,
            destination: dst,
            flow: Some(flow),
        })
    }
}

/// The type of an ICMPv6 neighbour solicitation (RFC 4861 section 4.3).
const NEIGHBOUR_SOLICITATION: u8 = 135;

/// A set of events in the current half of the window, and one for the previous half; they are disjoint.
#[derive(Debug)]
struct Recent<T> {
    now: BTreeSet<T>,
    before: BTreeSet<T>,
}

impl<T: Ord> Recent<T> {
    fn new() -> Self {
        Self {
            now: BTreeSet::new(),
            before: BTreeSet::new(),
        }
    }

    /// Adds an event, unless the limit is already reached.
    fn note(&mut self, thing: T, limit: usize) {
        if self.len() < limit && !self.before.contains(&thing) {
            self.now.insert(thing);
        }
    }

    fn contains(&self, thing: &T) -> bool {
        self.now.contains(thing) || self.before.contains(thing)
    }

    fn len(&self) -> usize {
        self.now.len() + self.before.len()
    }

    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

/// Why a source is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offence {
    /// It tried many ports.
    PortScan,
    /// It tried, or asked for, many addresses.
    Sweep,
    /// It began many flows.
    Flood,
    /// There were too many sources, or too many flows of all sources, at one port.
    Spoofing,
}

/// The records of one source.
struct Source {
    destinations: Recent<IpAddr>,
    ports: Recent<(IpAddr, u8, u16)>,
    flows: Recent<Flow>,
}

impl Source {
    fn new() -> Self {
        Self {
            destinations: Recent::new(),
            ports: Recent::new(),
            flows: Recent::new(),
        }
    }

    fn note(&mut self, attempt: &Attempt, config: &SecurityConfig) {
        self.destinations
            .note(attempt.destination, config.max_destinations);
        if let Some(flow) = attempt.flow {
            self.flows.note(flow, config.max_flows);
            if flow.dst_port != 0 {
                let port = (flow.dst, flow.proto, flow.dst_port);
                self.ports.note(port, config.max_ports);
            }
        }
    }

    fn offence(&self, config: &SecurityConfig) -> Option<Offence> {
        let limits = [
            (self.flows.len(), config.max_flows, Offence::Flood),
            (
                self.destinations.len(),
                config.max_destinations,
                Offence::Sweep,
            ),
            (self.ports.len(), config.max_ports, Offence::PortScan),
        ];
        let over = limits.into_iter().find(|(count, limit, _)| count >= limit);
        over.map(|(.., offence)| offence)
    }

    fn turn(&mut self) {
        self.destinations.turn();
        self.ports.turn();
        self.flows.turn();
    }

    fn len(&self) -> usize {
        self.destinations.len() + self.ports.len() + self.flows.len()
    }
}

/// The records of the sources at one port.
#[derive(Default)]
struct PortRecord {
    sources: BTreeMap<MacAddr, Source>,
    /// The total number of records.
    notes: usize,
    /// Whether there were too many.
    is_full: bool,
}

impl PortRecord {
    fn note(&mut self, attempt: &Attempt, config: &SecurityConfig) {
        let is_new = !self.sources.contains_key(&attempt.source);
        self.is_full |= self.notes >= config.max_notes_per_port();
        self.is_full |= is_new && self.sources.len() >= config.max_sources;
        if !self.is_full {
            let source = self
                .sources
                .entry(attempt.source)
                .or_insert_with(Source::new);
            let before = source.len();
            source.note(attempt, config);
            self.notes += source.len() - before;
        }
    }

    fn retain(&mut self, is_kept: impl FnMut(&MacAddr, &mut Source) -> bool) {
        self.sources.retain(is_kept);
        self.notes = self.sources.values().map(Source::len).sum();
    }
}

/// The records of the sources at a switch's ports.
#[derive(Default)]
pub(super) struct SwitchRecord(BTreeMap<PortNo, PortRecord>);

impl SwitchRecord {
    pub fn note(&mut self, port_no: PortNo, attempt: &Attempt, config: &SecurityConfig) {
        self.0.entry(port_no).or_default().note(attempt, config);
    }

    /// The sources above a limit, by port and, unless it is the whole port, by address. Their records start over. Sources
    /// not known to be at the edge keep their records, and those that are not there lose them.
    pub fn take_offences(
        &mut self,
        config: &SecurityConfig,
        side: impl Fn(PortNo) -> Side,
    ) -> Vec<(PortNo, Option<MacAddr>, Offence)> {
        let mut offences = Vec::new();
        for (&port_no, port) in &mut self.0 {
            match side(port_no) {
                Side::Trunk => *port = PortRecord::default(),
                Side::Unknown => continue,
                Side::Edge | Side::LikelyEdge => {}
            }
            if port.is_full && side(port_no) == Side::Edge {
                *port = PortRecord::default();
                offences.push((port_no, None, Offence::Spoofing));
            }
            port.sources
                .retain(|mac, source| match source.offence(config) {
                    None => true,
                    Some(offence) => {
                        offences.push((port_no, Some(*mac), offence));
                        false
                    }
                });
        }
        offences
    }

    /// Half a window has passed.
    pub fn turn(&mut self) {
        for port in self.0.values_mut() {
            port.retain(|_, source| {
                source.turn();
                source.len() > 0
            });
        }
        self.0.retain(|_, port| !port.sources.is_empty());
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.0.values().map(|port| port.notes).sum()
    }
}

/// Which flows were begun recently, so that replies to them are not counted.
pub(super) struct Begun {
    flows: Recent<Flow>,
    limit: usize,
}

impl Begun {
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Recent::new(),
            limit,
        }
    }

    /// Whether this answers a flow that the other side began. If not, it is recorded as begun itself.
    pub fn is_answer(&mut self, attempt: &Attempt) -> bool {
        let Some(flow) = attempt.flow else {
            return false;
        };
        let answered = Flow {
            src: flow.dst,
            dst: flow.src,
            src_port: flow.dst_port,
            dst_port: flow.src_port,
            ..flow
        };
        let is_answer = self.flows.contains(&answered) && !self.flows.contains(&flow);
        if !is_answer {
            self.flows.note(flow, self.limit);
        }
        is_answer
    }

    pub fn turn(&mut self) {
        self.flows.turn();
    }

    pub fn len(&self) -> usize {
        self.flows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(source: u64, dst: [u8; 4], ports: (u16, u16)) -> Attempt {
        let flow = Flow {
            src: [10, 0, 0, source as u8].into(),
            dst: dst.into(),
            proto: ip_proto::TCP,
            src_port: ports.0,
            dst_port: ports.1,
        };
        Attempt {
            source: MacAddr::from_u64(source),
            destination: dst.into(),
            flow: Some(flow),
        }
    }

    #[test]
    fn what_happens_again_counts_once_and_is_forgotten_after_two_turns() {
        let mut recent = Recent::new();
        for thing in [1, 2, 2, 1] {
            recent.note(thing, 10);
        }
        assert_eq!(recent.len(), 2);
        recent.turn();
        recent.note(1, 10);
        recent.note(3, 10);
        assert_eq!(recent.len(), 3);
        recent.turn();
        assert_eq!((recent.len(), recent.contains(&3)), (1, true));
        recent.turn();
        assert_eq!(recent.len(), 0);
    }

    #[test]
    fn an_answer_counts_for_nobody_but_whoever_asked() {
        let mut begun = Begun::new(100);
        let question = attempt(1, [10, 0, 0, 2], (4000, 80));
        let answer = attempt(2, [10, 0, 0, 1], (80, 4000));
        assert!(!begun.is_answer(&question));
        assert!(begun.is_answer(&answer));
        assert!(!begun.is_answer(&question), "it is still the one who asks");
        assert!(!begun.is_answer(&attempt(2, [10, 0, 0, 1], (80, 4001))));
    }

    #[test]
    fn made_up_sources_fill_a_port_and_no_more() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        for number in 0..1_000_000_u32 {
            let source = u64::from(number) << 8;
            let ports = (number as u16, (number >> 3) as u16);
            record.note(
                PortNo(1),
                &attempt(source, number.to_be_bytes(), ports),
                &config,
            );
        }
        assert!(record.len() <= config.max_notes_per_port() + 3);
        let offences = record.take_offences(&config, |_| Side::Edge);
        assert_eq!(offences, [(PortNo(1), None, Offence::Spoofing)]);
        assert_eq!(record.len(), 0);
    }

    #[test]
    fn one_source_is_told_from_others_at_its_port() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        for port in 1..=config.max_ports as u16 {
            record.note(PortNo(1), &attempt(1, [10, 0, 0, 9], (4000, port)), &config);
            record.note(PortNo(1), &attempt(2, [10, 0, 0, 9], (4000, 80)), &config);
        }
        let offences = record.take_offences(&config, |_| Side::Edge);
        let scanner = MacAddr::from_u64(1);
        assert_eq!(offences, [(PortNo(1), Some(scanner), Offence::PortScan)]);
    }
}
