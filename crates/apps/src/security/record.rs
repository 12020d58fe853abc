//! Records of the recent activity of sources, in bounded memory.

use super::SecurityConfig;
use super::known::Known;
use super::ports::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use urtica_wire::packet::{Headers, arp, ether_type, ip_proto};
use urtica_wire::{MacAddr, Match, PacketIn, PortNo};

/// The properties of a packet that may start a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub source: MacAddr,
    /// The destination MAC address.
    pub receiver: MacAddr,
    /// The IP address of the sender.
    pub sender: Option<IpAddr>,
    /// The destination IP address, or the requested one.
    pub destination: Option<IpAddr>,
    /// The flow of an IP packet that is no address request.
    pub flow: Option<Flow>,
    /// Whether the packet belongs to ARP or neighbour discovery.
    pub is_neighbour: bool,
    /// Whether an entry can pass the packet's flow.
    pub may_get_entry: bool,
    /// A digest of all fields that an entry for the flow matches.
    id: u64,
}

/// A flow of IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub proto: u8,
    /// The source port of TCP or UDP; 0 for other protocols.
    pub src_port: u16,
    pub dst_port: u16,
}

/// The part of a packet that counts against its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// Nothing, since the packet answers a flow. All other flows are checked again while they last.
    Answer,
    /// Nothing, since the packet was provoked, or is forwarded.
    Nothing,
    /// The flow and the port. The destination does not count, since it has contacted the sender before.
    AllButDestination,
    /// The whole packet.
    All,
}

impl Attempt {
    /// Reads a packet.
    pub fn of(packet: &PacketIn) -> Self {
        let headers = Headers::parse(packet.data);
        let flow = Flow::of(&headers);
        let asks = headers.icmp_type == Some(NEIGHBOUR_SOLICITATION);
        let target = headers.nd_target.filter(|_| asks);
        let (sender, destination) = match headers.arp {
            Some(asked) => (Some(asked.spa.into()), asked_address(&asked)),
            None => (headers.ip_src, target.map(IpAddr::V6).or(headers.ip_dst)),
        };
        Self {
            source: packet.eth_src(),
            receiver: packet.eth_dst(),
            sender,
            destination,
            flow: flow.filter(|_| target.is_none()),
            is_neighbour: headers.arp.is_some() || headers.nd_target.is_some(),
            may_get_entry: may_get_entry(&headers),
            id: digest(packet),
        }
    }
}

impl Flow {
    fn of(headers: &Headers) -> Option<Self> {
        let (src, dst) = headers.ip_src.zip(headers.ip_dst)?;
        let has_ports = matches!(headers.ip_proto, Some(ip_proto::TCP | ip_proto::UDP));
        let port = |port: Option<u16>| port.filter(|_| has_ports).unwrap_or(0);
        Some(Self {
            src,
            dst,
            proto: headers.ip_proto.unwrap_or(0),
            src_port: port(headers.src_port),
            dst_port: port(headers.dst_port),
        })
    }
}

/// Returns `true` if an entry can distinguish a packet's flow from others: without ports, as in fragments, an entry would
/// pass all packets between the two hosts uninspected.
fn may_get_entry(headers: &Headers) -> bool {
    let is_ip = matches!(headers.eth_type, Some(ether_type::IPV4 | ether_type::IPV6));
    let has_ports = matches!(
        headers.ip_proto,
        Some(ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP)
    );
    is_ip && headers.ip_proto.is_some() && (!has_ports || headers.dst_port.is_some())
}

/// Returns the address that an ARP packet requests; `None` for an announcement.
fn asked_address(packet: &arp::Arp) -> Option<IpAddr> {
    (packet.spa != packet.tpa).then(|| packet.tpa.into())
}

/// Returns a digest of the fields that an entry for a packet's flow matches.
fn digest(packet: &PacketIn) -> u64 {
    let mut hasher = DefaultHasher::new();
    Match::exact(packet)
        .fields()
        .for_each(|field| field.hash(&mut hasher));
    hasher.finish()
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

    fn len(&self) -> usize {
        self.now.len() + self.before.len()
    }

    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

/// The reason why a source is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offence {
    /// The source tried many ports.
    PortScan,
    /// The source tried, or requested, many addresses.
    Sweep,
    /// The source started many flows.
    Flood,
    /// The port had too many sources, or too many flows of all sources.
    Spoofing,
}

/// The records of one source.
struct Source {
    destinations: Recent<IpAddr>,
    /// Protocols and destination ports, at any address.
    ports: Recent<(u8, u16)>,
    /// Digests of the flows.
    flows: Recent<u64>,
}

impl Source {
    fn new() -> Self {
        Self {
            destinations: Recent::new(),
            ports: Recent::new(),
            flows: Recent::new(),
        }
    }

    fn note(&mut self, attempt: &Attempt, blame: Blame, config: &SecurityConfig) {
        if let Some(address) = attempt.destination.filter(|_| blame == Blame::All) {
            self.destinations.note(address, config.max_destinations);
        }
        self.flows.note(attempt.id, config.max_flows);
        if let Some(flow) = attempt.flow.filter(|flow| flow.dst_port != 0) {
            self.ports
                .note((flow.proto, flow.dst_port), config.max_ports);
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
    /// The total number of records of the sources.
    notes: usize,
    /// Whether the maximum was reached.
    is_full: bool,
    /// The flows that were checked, as digests with their sources. They do not count again while they last.
    lasting: Known<(MacAddr, u64)>,
}

impl PortRecord {
    /// Records a packet, unless its flow continues. Returns `true` if the flow is remembered, so that it does not count when it
    /// is checked again.
    fn note(&mut self, attempt: &Attempt, blame: Blame, config: &SecurityConfig) -> bool {
        let flow = (attempt.source, attempt.id);
        let continues = attempt.may_get_entry && self.lasting.contains(&flow);
        if !continues && !matches!(blame, Blame::Answer | Blame::Nothing) {
            self.count(attempt, blame, config);
        }
        let limit = match self.is_full {
            true => 0,
            false => config.max_notes_per_port(),
        };
        attempt.may_get_entry && self.lasting.note(flow, (), limit)
    }

    fn count(&mut self, attempt: &Attempt, blame: Blame, config: &SecurityConfig) {
        let is_new = !self.sources.contains_key(&attempt.source);
        self.is_full |= self.notes >= config.max_notes_per_port();
        self.is_full |= is_new && self.sources.len() >= config.max_sources;
        if !self.is_full {
            let source = self
                .sources
                .entry(attempt.source)
                .or_insert_with(Source::new);
            let before = source.len();
            source.note(attempt, blame, config);
            self.notes += source.len() - before;
        }
    }

    fn retain(&mut self, is_kept: impl FnMut(&MacAddr, &mut Source) -> bool) {
        self.sources.retain(is_kept);
        self.notes = self.sources.values().map(Source::len).sum();
    }

    /// Removes the sources that exceed a limit, with their flows, and returns them.
    fn take_offenders(&mut self, config: &SecurityConfig) -> BTreeMap<MacAddr, Offence> {
        let mut offenders = BTreeMap::new();
        self.retain(|mac, source| {
            let offence = source.offence(config);
            offenders.extend(offence.map(|offence| (*mac, offence)));
            offence.is_none()
        });
        if !offenders.is_empty() {
            self.lasting
                .retain(|(source, _)| !offenders.contains_key(source));
        }
        offenders
    }

    /// Starts a new half of the window, and drops the half before the previous one.
    fn turn(&mut self) {
        self.retain(|_, source| {
            source.turn();
            source.len() > 0
        });
        self.is_full &= !self.sources.is_empty();
    }

    fn len(&self) -> usize {
        self.notes + self.lasting.len()
    }
}

/// The records of the sources at a switch's ports.
#[derive(Default)]
pub(super) struct SwitchRecord(BTreeMap<PortNo, PortRecord>);

impl SwitchRecord {
    /// Records a packet, unless its flow continues. Returns `true` if the flow is remembered while it lasts.
    pub fn note(
        &mut self,
        port_no: PortNo,
        attempt: &Attempt,
        blame: Blame,
        config: &SecurityConfig,
    ) -> bool {
        let port = self.0.entry(port_no).or_default();
        port.note(attempt, blame, config)
    }

    /// Returns the offences, by port and, unless it is the whole port's, by address, and clears the offenders' records. Also
    /// clears the records of ports that are not at the edge, and keeps the records of ports on an unknown side.
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
            let offenders = port.take_offenders(config).into_iter();
            offences.extend(offenders.map(|(mac, offence)| (port_no, Some(mac), offence)));
        }
        offences
    }

    /// Starts a new half of the window, and drops the half before the previous one.
    pub fn turn(&mut self) {
        self.0.values_mut().for_each(PortRecord::turn);
        self.0.retain(|_, port| port.len() > 0);
    }

    /// Forgets the flows that were not checked for a while.
    pub fn forget_flows(&mut self) {
        self.0.values_mut().for_each(|port| port.lasting.turn());
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.0.values().map(PortRecord::len).sum()
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
        let mut hasher = DefaultHasher::new();
        (source, dst, ports).hash(&mut hasher);
        Attempt {
            source: MacAddr::from_u64(source),
            receiver: MacAddr::from_u64(99),
            sender: Some(flow.src),
            destination: Some(flow.dst),
            flow: Some(flow),
            is_neighbour: false,
            may_get_entry: true,
            id: hasher.finish(),
        }
    }

    #[test]
    fn repeated_events_count_once_and_expire_after_two_turns() {
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
        assert_eq!(recent.len(), 1);
        recent.turn();
        assert_eq!(recent.len(), 0);
    }

    #[test]
    fn forged_sources_fill_only_their_port() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        for number in 0..1_000_000_u32 {
            let source = u64::from(number) << 8;
            let ports = (number as u16, (number >> 3) as u16);
            record.note(
                PortNo(1),
                &attempt(source, number.to_be_bytes(), ports),
                Blame::All,
                &config,
            );
        }
        assert!(record.len() <= 2 * config.max_notes_per_port() + 3);
        let offences = record.take_offences(&config, |_| Side::Edge);
        assert_eq!(offences, [(PortNo(1), None, Offence::Spoofing)]);
        assert_eq!(record.len(), 0);
    }

    #[test]
    fn sources_at_one_port_are_distinguished() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        let mut note = |attempt| record.note(PortNo(1), &attempt, Blame::All, &config);
        for port in 1..=config.max_ports as u16 {
            note(attempt(1, [10, 0, 0, 9], (4000, port)));
            note(attempt(2, [10, 0, 0, 9], (4000, 80)));
        }
        let offences = record.take_offences(&config, |_| Side::Edge);
        let scanner = MacAddr::from_u64(1);
        assert_eq!(offences, [(PortNo(1), Some(scanner), Offence::PortScan)]);
    }

    #[test]
    fn offences_clear_their_records() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        for source in 1..=100 {
            for port in 1..=config.max_ports as u16 {
                let scan = attempt(source, [10, 0, 0, 9], (4000, port));
                record.note(PortNo(1), &scan, Blame::All, &config);
            }
            let offences = record.take_offences(&config, |_| Side::Edge);
            let scanner = Some(MacAddr::from_u64(source));
            assert_eq!(offences, [(PortNo(1), scanner, Offence::PortScan)]);
            assert_eq!(record.len(), 0);
        }
    }

    #[test]
    fn lasting_flows_count_once_at_each_port() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        let flow = attempt(1, [10, 0, 0, 9], (4000, 80));
        for port_no in [1, 2] {
            assert!(record.note(PortNo(port_no), &flow, Blame::All, &config));
        }
        let counted = record.len();
        assert_eq!(counted, 2 * 4);
        for _ in 0..10 {
            record.turn();
            record.forget_flows();
            assert!(record.note(PortNo(1), &flow, Blame::All, &config));
        }
        // Only the flow at the first port is left.
        assert_eq!(record.len(), 1);
    }

    #[test]
    fn lasting_flows_of_a_port_are_bounded() {
        let config = SecurityConfig::default();
        let mut record = SwitchRecord::default();
        let flow = |number: u32| attempt(1, number.to_be_bytes(), (4000, 80));
        let limit = config.max_notes_per_port() as u32;
        for number in 0..2 * limit {
            let is_known = record.note(PortNo(1), &flow(number), Blame::Nothing, &config);
            assert_eq!(is_known, number < limit, "{number}");
        }
        assert_eq!(record.len(), limit as usize);
        assert!(record.note(PortNo(1), &flow(0), Blame::All, &config));
        assert_eq!(record.len(), limit as usize);
    }
}
