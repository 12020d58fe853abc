//! A simulation of switches and wires around [`Links`], with time that the tests control.

mod flapping;
mod forged;
mod many_ports;

use super::*;
use crate::offload::LinkProbe;
use crate::offload::fake::Fake;
use proptest::prelude::*;
use std::collections::BTreeSet;
use urtica_topology::Topology;
use urtica_wire::MacAddr;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Number of ports of each switch of a [`World`].
const PORTS: u32 = 4;

struct World {
    links: Links,
    now: Instant,
    owners: BTreeMap<DatapathId, Owner>,
    last_owner: u64,
    /// The port at which frames from each port arrive.
    wires: BTreeMap<PortId, PortId>,
    /// Ports that the switch reports as down.
    down: BTreeSet<PortId>,
    sent: Vec<(Instant, Probe)>,
    events: Vec<DiscoveryEvent>,
    /// The offload that settles probes of known links, if any.
    offload: Option<Arc<Fake>>,
}

fn port_id(switch: u64, port_no: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(port_no))
}

fn link(from: PortId, to: PortId) -> DirectedLink {
    DirectedLink::new(from, to)
}

impl World {
    fn new() -> Self {
        Self::with(DiscoveryConfig::default())
    }

    fn with(config: DiscoveryConfig) -> Self {
        let now = Instant::now();
        Self {
            links: Links::new(config, now),
            now,
            owners: BTreeMap::new(),
            last_owner: 0,
            wires: BTreeMap::new(),
            down: BTreeSet::new(),
            sent: Vec::new(),
            events: Vec::new(),
            offload: None,
        }
    }

    /// Settles probes that confirm a link elsewhere from now on.
    fn offload(&mut self) -> Arc<Fake> {
        let offload = Arc::new(Fake::default());
        self.offload = Some(Arc::clone(&offload));
        self.links.offload = Some(offload.clone());
        offload
    }

    /// Returns whether a probe is settled, because it arrives at the expected port.
    fn is_settled(&self, probe: &Probe) -> bool {
        let (Some(offload), Some(at)) = (&self.offload, probe.confirms_at) else {
            return false;
        };
        let is_there = self.wires.get(&probe.from) == Some(&at);
        if is_there {
            let (from, stamp) = (probe.from, probe.stamp);
            offload.settle_probe(at, LinkProbe { from, stamp }, self.now);
        }
        is_there
    }

    /// Creates two switches whose first ports are connected; the link is up, and its events have been read.
    fn pair(config: DiscoveryConfig) -> (Self, PortId, PortId) {
        let (a, b) = (port_id(1, 1), port_id(2, 1));
        let mut world = Self::with(config);
        world.plug(a, b);
        world.join(1);
        world.join(2);
        world.pass(SECOND);
        assert_eq!(world.found(), [link(a, b), link(b, a)]);
        world.events.clear();
        (world, a, b)
    }

    /// Delivers probes until there are none, and notes the events.
    fn settle(&mut self) {
        loop {
            let probes = self.links.poll_probes();
            for probe in &probes {
                self.sent.push((self.now, *probe));
                if !self.is_settled(probe) {
                    self.carry(probe.from, probe.stamp);
                }
            }
            self.events.extend(self.links.poll_events());
            if probes.is_empty() {
                return;
            }
        }
    }

    fn carry(&mut self, from: PortId, stamp: u64) {
        if let Some(&to) = self.wires.get(&from) {
            self.deliver(to, from, stamp);
        }
    }

    /// Delivers a probe if the switch is connected, so that it can report it.
    fn deliver(&mut self, at: PortId, from: PortId, stamp: u64) {
        if let Some(&owner) = self.owners.get(&at.switch) {
            if !self.down.contains(&at) {
                self.links.handle_probe(owner, at, from, stamp, self.now);
            }
        }
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        while let Some(due) = self.links.poll_timeout().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.links.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// Connects a switch for the first time, or instead of its older connection.
    fn join(&mut self, switch: u64) -> Owner {
        self.last_owner += 1;
        let owner = Owner(self.last_owner);
        let switch = DatapathId(switch);
        self.owners.insert(switch, owner);
        let ports: Vec<_> = (1..=PORTS)
            .map(|port_no| self.port(PortId::new(switch, PortNo(port_no))))
            .collect();
        self.links.handle_switch_up(switch, owner, &ports, self.now);
        self.settle();
        owner
    }

    fn part(&mut self, switch: u64) {
        if let Some(owner) = self.owners.remove(&DatapathId(switch)) {
            self.links
                .handle_switch_down(DatapathId(switch), owner, self.now);
        }
        self.settle();
    }

    /// Connects a wire in both directions, and removes earlier wires of its ports.
    fn plug(&mut self, a: PortId, b: PortId) {
        self.unplug(a);
        self.unplug(b);
        self.wires.extend([(a, b), (b, a)]);
    }

    /// Reports doubt about a port's classification as a host port.
    fn doubt(&mut self, port: PortId) -> bool {
        let is_due = self.links.handle_doubt(port, self.now);
        self.links.handle_timeout(self.now);
        self.settle();
        is_due
    }

    /// Removes a wire without a report from the switches, as with a media converter between them.
    fn unplug(&mut self, port: PortId) {
        self.wires.remove(&port);
        self.wires.retain(|_, to| *to != port);
    }

    fn set_port(&mut self, id: PortId, is_up: bool) {
        match is_up {
            true => self.down.remove(&id),
            false => self.down.insert(id),
        };
        if let Some(&owner) = self.owners.get(&id.switch) {
            let port = self.port(id);
            self.links.handle_port(id.switch, owner, &port, self.now);
        }
        self.settle();
    }

    fn port(&self, id: PortId) -> Port {
        let mut port = Port::new(id.port_no, MacAddr::from_u64(id.port_no.0.into()), "eth");
        if self.down.contains(&id) {
            port.state |= PortStateBits::LINK_DOWN;
        }
        port
    }

    fn found(&self) -> Vec<DirectedLink> {
        self.links.links().collect()
    }

    fn role(&self, port: PortId) -> Option<PortRole> {
        self.links.ports.get(port).map(PortState::role)
    }

    /// Returns the links that must be found: wires in both directions between ports that are up, of connected switches.
    fn truth(&self) -> Vec<DirectedLink> {
        let is_up =
            |port: &PortId| self.owners.contains_key(&port.switch) && !self.down.contains(port);
        let wires = self.wires.iter();
        wires
            .filter(|(from, to)| from != to && self.wires.get(to) == Some(from))
            .filter(|(from, to)| is_up(from) && is_up(to))
            .map(|(&from, &to)| link(from, to))
            .collect()
    }

    fn count(&self, is_it: impl Fn(&DiscoveryEvent) -> bool) -> usize {
        self.events.iter().filter(|event| is_it(event)).count()
    }
}

fn downs(a: PortId, b: PortId, reason: DownReason) -> [DiscoveryEvent; 2] {
    both_ways(a, b).map(|link| DiscoveryEvent::LinkDown { link, reason })
}

#[test]
fn links_are_known_immediately() {
    let mut world = World::new();
    let (a, b) = (port_id(1, 1), port_id(2, 1));
    world.plug(a, b);
    world.join(1);
    assert_eq!(world.found(), []);
    world.join(2);
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
    let expected = [
        DiscoveryEvent::SwitchUp(DatapathId(1)),
        DiscoveryEvent::SwitchUp(DatapathId(2)),
        DiscoveryEvent::LinkUp(link(a, b)),
        DiscoveryEvent::LinkUp(link(b, a)),
    ];
    assert_eq!(world.events, expected);
}

#[test]
fn a_link_goes_down_with_its_port() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.set_port(b, false);
    assert_eq!(world.events, downs(b, a, DownReason::Port));
    assert_eq!(world.found(), []);
    world.set_port(b, true);
    assert_eq!(world.found().len(), 2);
}

#[test]
fn a_link_goes_down_with_a_removed_port() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    let owner = world.owners[&a.switch];
    world
        .links
        .handle_port_removed(a.switch, owner, a.port_no, world.now);
    world.settle();
    assert_eq!(world.events, downs(a, b, DownReason::Port));
    assert_eq!(world.role(a), None);
}

#[test]
fn a_link_goes_down_with_its_switch() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.part(1);
    let [first, second] = downs(a, b, DownReason::Switch);
    let down = DiscoveryEvent::SwitchDown(DatapathId(1));
    assert_eq!(world.events, [first, second, down]);
}

#[test]
fn a_silent_link_goes_down_after_three_missed_probes() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.unplug(a);
    world.pass(Duration::from_millis(11_500));
    assert_eq!(world.events, [], "a link lives for 12.5 s at least");
    world.pass(Duration::from_secs(7));
    assert_eq!(world.events, downs(a, b, DownReason::TimedOut));
}

#[test]
fn a_link_stays_up_while_probes_arrive() {
    let (mut world, ..) = World::pair(DiscoveryConfig::default());
    world.pass(Duration::from_secs(600));
    assert_eq!(world.events, []);
    assert_eq!(world.found().len(), 2);
}

#[test]
fn a_moved_wire_moves_the_link() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    let c = port_id(2, 2);
    world.plug(a, c);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.found(), [link(a, c), link(c, a)]);
    let moved = |event: &DiscoveryEvent| {
        matches!(
            event,
            DiscoveryEvent::LinkDown {
                reason: DownReason::Moved,
                ..
            }
        )
    };
    assert_eq!(world.count(moved), 2);
    assert_eq!(world.role(b), Some(PortRole::Host));
}

#[test]
fn one_way_wires_are_reported_and_are_no_links() {
    let mut world = World::new();
    let (a, b) = (port_id(1, 1), port_id(2, 1));
    world.wires.insert(a, b);
    world.join(1);
    world.join(2);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.found(), []);
    assert_eq!(world.events[2..], [DiscoveryEvent::OneWay(link(a, b))]);
    assert_eq!(
        [a, b].map(|port| world.role(port)),
        [Some(PortRole::Blocked); 2]
    );
    world.wires.insert(b, a);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.found().len(), 2);
}

#[test]
fn circular_one_way_wires_end_their_probes() {
    let mut world = World::new();
    let ports = [port_id(1, 1), port_id(2, 1), port_id(3, 1)];
    for (place, port) in ports.iter().enumerate() {
        world.wires.insert(*port, ports[(place + 1) % 3]);
    }
    for switch in 1..=3 {
        world.join(switch);
    }
    world.pass(SECOND);
    assert_eq!(world.found(), []);
    assert!(world.sent.len() < 100, "{} probes", world.sent.len());
}

#[test]
fn a_link_goes_down_while_it_is_one_way() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.wires.remove(&a);
    world.pass(Duration::from_secs(30));
    assert_eq!(world.events[..2], downs(b, a, DownReason::TimedOut));
    assert_eq!(world.events[2..], [DiscoveryEvent::OneWay(link(b, a))]);
    world.wires.insert(a, b);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.found().len(), 2);
}

#[test]
fn a_quiet_port_becomes_a_host_port_after_the_settle_time() {
    let mut world = World::new();
    let port = port_id(1, 1);
    world.join(1);
    world.pass(299 * MS);
    assert_eq!(world.role(port), Some(PortRole::Unclassified));
    let probes = world.sent.iter().filter(|(_, probe)| probe.from == port);
    assert!(
        probes.count() >= 4,
        "a port is asked four times before it is classified"
    );
    world.pass(MS);
    assert_eq!(world.role(port), Some(PortRole::Host));
}

#[test]
fn the_local_port_is_a_host_port_without_probes() {
    let mut world = World::new();
    let local = Port::new(PortNo::LOCAL, MacAddr::ZERO, "br0");
    let owner = world.join(1);
    world
        .links
        .handle_port(DatapathId(1), owner, &local, world.now);
    world.pass(Duration::from_secs(10));
    let id = PortId::new(DatapathId(1), PortNo::LOCAL);
    assert_eq!(world.role(id), Some(PortRole::Host));
    assert!(world.sent.iter().all(|(_, probe)| probe.from != id));
}

#[test]
fn regular_probes_are_spread_over_the_interval() {
    let mut world = World::new();
    for switch in 1..=64 {
        world.join(switch);
    }
    world.pass(Duration::from_secs(5));
    let start = world.now;
    world.sent.clear();
    world.pass(Duration::from_secs(5));
    let ports = 64 * PORTS as usize;
    assert_eq!(world.sent.len(), ports);
    let mut tenths = [0; 10];
    for (at, _) in &world.sent {
        let into = at.saturating_duration_since(start).as_millis() as usize;
        tenths[(into / 500).min(9)] += 1;
    }
    let expected = ports / 10;
    for count in tenths {
        assert!((expected - 2..=expected + 2).contains(&count), "{tenths:?}");
    }
}

#[test]
fn newer_connections_replace_older_ones() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    let older = world.owners[&a.switch];
    world.join(1);
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
    world.links.handle_switch_down(a.switch, older, world.now);
    world.settle();
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
    world
        .links
        .handle_port_removed(a.switch, older, a.port_no, world.now);
    assert_eq!(world.found().len(), 2, "the older one is not listened to");
}

#[test]
fn findings_are_returned_once() {
    let (mut world, ..) = World::pair(DiscoveryConfig::default());
    let findings = world.links.poll_findings().unwrap();
    assert_eq!(findings.switches, [DatapathId(1), DatapathId(2)]);
    assert_eq!(findings.links.unwrap().len(), 2);
    assert_eq!(findings.ports.len(), 2 * PORTS as usize);
    assert_eq!(world.links.poll_findings(), None);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.links.poll_findings(), None, "nothing has changed");
    world.set_port(port_id(1, 4), false);
    let findings = world.links.poll_findings().unwrap();
    assert_eq!(findings.links, None, "a host's port went down");
}

/// An event in the network.
#[derive(Clone, Debug)]
enum Happening {
    Join(u64),
    Part(u64),
    /// A newer connection comes up before the older one's end is noticed.
    Replace(u64),
    Plug(PortId, PortId),
    PlugOneWay(PortId, PortId),
    Unplug(PortId),
    SetPort(PortId, bool),
    Forge(PortId, PortId),
    Pass(Duration),
}

fn happening() -> impl Strategy<Value = Happening> {
    let switch = || 1..6u64;
    let port = || (1..6u64, 1..=PORTS).prop_map(|(switch, port_no)| port_id(switch, port_no));
    prop_oneof![
        3 => switch().prop_map(Happening::Join),
        1 => switch().prop_map(Happening::Part),
        1 => switch().prop_map(Happening::Replace),
        5 => (port(), port()).prop_map(|(a, b)| Happening::Plug(a, b)),
        1 => (port(), port()).prop_map(|(a, b)| Happening::PlugOneWay(a, b)),
        1 => port().prop_map(Happening::Unplug),
        3 => (port(), any::<bool>()).prop_map(|(port, is_up)| Happening::SetPort(port, is_up)),
        1 => (port(), port()).prop_map(|(at, from)| Happening::Forge(at, from)),
        3 => (0..20_000u64).prop_map(|ms| Happening::Pass(Duration::from_millis(ms))),
    ]
}

impl World {
    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Join(switch) if !self.owners.contains_key(&DatapathId(switch)) => {
                self.join(switch);
            }
            Happening::Join(_) => {}
            Happening::Part(switch) => self.part(switch),
            Happening::Replace(switch) => {
                let older = self.owners.get(&DatapathId(switch)).copied();
                self.join(switch);
                if let Some(older) = older {
                    let id = DatapathId(switch);
                    self.links.handle_switch_down(id, older, self.now);
                }
            }
            Happening::Plug(a, b) => self.plug(a, b),
            Happening::PlugOneWay(from, to) => {
                self.wires.retain(|_, other| *other != to);
                self.wires.insert(from, to);
            }
            Happening::Unplug(port) => self.unplug(port),
            Happening::SetPort(port, is_up) => self.set_port(port, is_up),
            Happening::Forge(at, claimed) => {
                if let Some(&owner) = self.owners.get(&at.switch) {
                    let claimed = Some(claimed);
                    self.links.handle_forged(owner, at, claimed, self.now);
                }
            }
            Happening::Pass(duration) => self.pass(duration),
        }
        self.settle();
        self.check();
    }

    /// Checks the invariants.
    fn check(&self) {
        for (id, port) in self.links.ports.iter() {
            if let Some(heard) = port.heard {
                assert_eq!(self.links.ports.get(heard.from).unwrap().heard_by, Some(id));
            }
            if let Some(heard_by) = port.heard_by {
                assert!(self.links.hears(heard_by, id));
            }
            if let Some(other) = port.link {
                assert_eq!(self.links.ports.get(other).unwrap().link, Some(id));
                assert!(self.links.hears(id, other) && self.links.hears(other, id));
            }
        }
        assert!(self.links.probes.is_empty());
    }
}

proptest! {
    #[test]
    fn all_links_are_finally_found(
        happenings in prop::collection::vec(happening(), 1..80),
        portion in prop::sample::select(vec![1, 2, 3, PORTION]),
    ) {
        let mut world = World::new();
        world.links.portion = portion;
        happenings.into_iter().for_each(|happening| world.happen(happening));
        world.pass(Duration::from_secs(120));
        prop_assert_eq!(world.found(), world.truth());
        // The events alone give an equal result.
        let mut told = BTreeSet::new();
        for event in &world.events {
            match event {
                DiscoveryEvent::LinkUp(link) => prop_assert!(told.insert(*link)),
                DiscoveryEvent::LinkDown { link, .. } => prop_assert!(told.remove(link)),
                _ => {}
            }
        }
        prop_assert_eq!(told.into_iter().collect::<Vec<_>>(), world.found());
        // Every port that is not a link port and does not hear a probe is a host port.
        let topology = Topology::new(world.owners.keys().copied(), world.found());
        for (id, port) in world.links.ports.iter() {
            let expected = match (topology.is_link_port(id), port.is_link_port()) {
                (true, _) => PortRole::Link,
                (false, true) => PortRole::Blocked,
                (false, false) => PortRole::Host,
            };
            prop_assert_eq!(port.role(), expected);
        }
    }
}

#[test]
fn a_doubted_host_port_is_probed_at_a_limited_rate() {
    let mut world = World::new();
    let (a, b) = (port_id(1, 1), port_id(2, 1));
    world.join(1);
    world.join(2);
    world.pass(SECOND);
    assert_eq!(world.found(), []);
    // The wire has carried no frames until now, and no switch has reported it.
    world.plug(a, b);
    assert!(world.doubt(a));
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
    // A link port is not in doubt.
    assert!(!world.doubt(a));
    let hosts = port_id(1, 2);
    assert!(world.doubt(hosts));
    assert!(!world.doubt(hosts));
    world.pass(DOUBT_PAUSE);
    assert!(world.doubt(hosts));
    assert!(!world.doubt(port_id(3, 1)), "no such port");
}

#[test]
fn a_one_way_port_is_no_host_port_once_its_peer_has_joined() {
    let mut world = World::new();
    let (a, b) = (port_id(1, 1), port_id(2, 1));
    let role = |world: &World| world.links.ports.get(a).unwrap().role();
    world.join(1);
    world.plug(a, b);
    // Frames from the second switch to the first are lost.
    world.wires.remove(&b);
    world.pass(SECOND);
    assert_eq!(role(&world), PortRole::Host);
    world.join(2);
    world.links.handle_timeout(world.now);
    world.settle();
    assert_ne!(role(&world), PortRole::Host);
}

#[test]
fn settled_probes_keep_a_link_up() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.offload();
    world.pass(600 * SECOND);
    assert_eq!(world.events, []);
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
    world.unplug(a);
    world.pass(60 * SECOND);
    assert_eq!(world.found(), []);
    let lost = |event: &&DiscoveryEvent| {
        matches!(
            event,
            DiscoveryEvent::LinkDown {
                reason: DownReason::TimedOut,
                ..
            }
        )
    };
    assert_eq!(world.events.iter().filter(lost).count(), 2);
    // Probes settled for the old link do not affect the new one.
    world.plug(a, b);
    world.pass(60 * SECOND);
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
}

#[test]
fn a_settled_probe_is_refused_at_another_port() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.offload();
    world.pass(60 * SECOND);
    let sent = world.sent.iter().rev();
    let (_, probe) = sent.copied().find(|(_, probe)| probe.from == a).unwrap();
    let other = port_id(2, 2);
    world.deliver(other, a, probe.stamp);
    world.pass(60 * SECOND);
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
    let refusal = Refusal::Duplicated;
    let is_refused = |event: &DiscoveryEvent| matches!(event, DiscoveryEvent::Refused { at, refusal: found, .. } if *at == other && *found == refusal);
    assert!(world.events.iter().any(is_refused), "{:?}", world.events);
}
