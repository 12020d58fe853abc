//! Switches, links and hosts around an embedded controller.

use std::collections::BTreeMap;
use std::time::Duration;
use urtica_controller::{ConnectionId, Controller, Embedded};
use urtica_services::{Discovery, DiscoveryConfig, DiscoveryEvent, Events};
use urtica_switch::port::memory::{self, MemoryPort};
use urtica_switch::{PortIo, Switch, SwitchConfig};
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{DatapathId, MacAddr, PortNo, Version};

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);

/// Maximum number of rounds of [`Mesh::settle`]: a network that floods in loops never settles.
const MAX_TURNS: usize = 10_000;

/// The step by which time advances.
const STEP: Duration = Duration::from_millis(10);

const LINK_FRAMES: usize = 4096;

pub struct Mesh {
    pub controller: Embedded,
    pub discovery: Discovery,
    pub events: Events<DiscoveryEvent>,
    pub now: Duration,
    /// All bytes that switches and controller have exchanged, in order.
    pub said: Vec<u8>,
    version: Version,
    nodes: BTreeMap<u64, Node>,
    hosts: BTreeMap<PortId, MemoryPort>,
}

/// A connection's id at the switch.
type SwitchEnd = urtica_switch::ConnectionId;

struct Node {
    switch: Switch,
    /// The two ends of its connection, while it has one.
    connection: Option<(SwitchEnd, ConnectionId)>,
}

pub fn port(switch: u64, port_no: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(port_no))
}

pub fn both_ways(a: PortId, b: PortId) -> [DirectedLink; 2] {
    let link = DirectedLink::new(a, b);
    [link, link.reversed()]
}

/// Returns a configuration whose runs are reproducible.
pub fn config() -> DiscoveryConfig {
    DiscoveryConfig {
        secret: Some([7; 32]),
        ..DiscoveryConfig::default()
    }
}

impl Mesh {
    /// Creates a network without switches; `add` adds programs to the controller, which has discovery already.
    pub fn new(
        config: DiscoveryConfig,
        version: Version,
        add: impl FnOnce(Controller) -> Controller,
    ) -> Self {
        Self::around(Discovery::new(config), version, add)
    }

    /// Creates a network for programs that were created for this discovery.
    pub fn around(
        discovery: Discovery,
        version: Version,
        add: impl FnOnce(Controller) -> Controller,
    ) -> Self {
        let controller = add(Controller::new().program(discovery.clone()));
        Self {
            controller: controller.embed().unwrap(),
            events: discovery.events(),
            discovery,
            now: Duration::ZERO,
            said: Vec::new(),
            version,
            nodes: BTreeMap::new(),
            hosts: BTreeMap::new(),
        }
    }

    /// Adds switches 1 to `count`, each with a host at port 1, and these links between them, each with its own ports; connects
    /// all switches.
    pub fn random(mut self, count: u64, links: &[(u64, u64)]) -> Self {
        for id in 1..=count {
            self.add_switch(id);
            self.add_host(port(id, 1));
        }
        for (&(a, b), place) in links.iter().zip(1..) {
            self.plug(port(a, 2 * place), port(b, 2 * place + 1));
        }
        (1..=count).for_each(|id| self.connect(id));
        self.settle();
        self
    }

    /// Adds switches 1 to `count` in a ring, by ports 1 and 2, each with a host at port 3; connects all of them.
    pub fn ring(mut self, count: u64) -> Self {
        (1..=count).for_each(|id| self.add_switch(id));
        for id in 1..=count {
            self.plug(port(id, 1), port(id % count + 1, 2));
            self.add_host(port(id, 3));
        }
        (1..=count).for_each(|id| self.connect(id));
        self.settle();
        self
    }

    pub fn add_switch(&mut self, id: u64) {
        let switch = Switch::new(SwitchConfig {
            datapath_id: DatapathId(id),
            versions: vec![self.version],
            ..SwitchConfig::default()
        });
        let connection = None;
        self.nodes.insert(id, Node { switch, connection });
    }

    /// Adds a link between two switches.
    pub fn plug(&mut self, a: PortId, b: PortId) {
        let (at_a, at_b) = link();
        self.add_port(a, at_a);
        self.add_port(b, at_b);
    }

    pub fn add_host(&mut self, at: PortId) {
        let (at_switch, at_host) = link();
        self.add_port(at, at_switch);
        self.hosts.insert(at, at_host);
    }

    /// Removes a port, so that the other end of its link goes down.
    pub fn remove_port(&mut self, port: PortId) {
        let now = self.now;
        self.switch(port.switch.0).remove_port(port.port_no, now);
    }

    fn add_port(&mut self, port: PortId, end: MemoryPort) {
        let now = self.now;
        self.switch(port.switch.0)
            .add_port(port.port_no, Box::new(end), now);
    }

    fn switch(&mut self, id: u64) -> &mut Switch {
        &mut self.nodes.get_mut(&id).unwrap().switch
    }

    pub fn connect(&mut self, id: u64) {
        let now = self.now;
        let at_switch = self.switch(id).connect("controller".into(), now);
        let at_controller = self.controller.connect(format!("s{id}"), now);
        self.nodes.get_mut(&id).unwrap().connection = Some((at_switch, at_controller));
    }

    /// Connects a switch a second time while its first connection is still open; returns the controller's id of the first.
    pub fn connect_anew(&mut self, id: u64) -> ConnectionId {
        let (at_switch, at_controller) = self.nodes[&id].connection.unwrap();
        let now = self.now;
        self.switch(id).disconnect(at_switch, now);
        self.connect(id);
        at_controller
    }

    /// Connects a switch twice at once, so that the older connection, which is then closed, is the last to come up.
    pub fn connect_twice(&mut self, id: u64) {
        let mut connect = || {
            self.connect(id);
            self.nodes[&id].connection.unwrap()
        };
        let (older, newer) = (connect(), connect());
        for connection in [older, newer, older, newer, newer, older] {
            self.exchange(id, connection);
        }
        self.controller.poll(self.now);
        assert!(self.controller.output(older.1).is_none());
        let now = self.now;
        self.switch(id).disconnect(older.0, now);
    }

    /// Passes a switch's messages to the controller, and the replies back.
    fn exchange(&mut self, id: u64, (at_switch, at_controller): (SwitchEnd, ConnectionId)) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let up = std::mem::take(node.switch.output(at_switch).unwrap());
        self.controller
            .handle_input(at_controller, &up, now)
            .unwrap();
        let down = std::mem::take(self.controller.output(at_controller).unwrap());
        node.switch.handle_input(at_switch, &down, now).unwrap();
    }

    pub fn disconnect(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let (at_switch, at_controller) = node.connection.take().unwrap();
        node.switch.disconnect(at_switch, now);
        self.controller.disconnect(at_controller, now);
    }

    /// Moves frames and bytes until no more move. Returns whether that happened.
    pub fn settle(&mut self) -> bool {
        (0..MAX_TURNS).any(|_| !self.take_turn())
    }

    /// Advances the time.
    pub fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        while self.now < end {
            self.now = (self.now + STEP).min(end);
            for node in self.nodes.values_mut() {
                assert_eq!(node.switch.handle_timeout(self.now), []);
            }
            assert_eq!(self.controller.handle_timeout(self.now), []);
            self.settle();
        }
    }

    /// Lets each switch and the controller do one step. Returns whether anything moved.
    fn take_turn(&mut self) -> bool {
        let now = self.now;
        let mut moved = false;
        for node in self.nodes.values_mut() {
            moved |= node.switch.poll_ports(now);
            let Some((at_switch, at_controller)) = node.connection else {
                continue;
            };
            let up = std::mem::take(node.switch.output(at_switch).unwrap());
            if !up.is_empty() {
                self.controller
                    .handle_input(at_controller, &up, now)
                    .unwrap();
            }
            self.controller.poll(now);
            let down = std::mem::take(self.controller.output(at_controller).unwrap());
            node.switch.handle_input(at_switch, &down, now).unwrap();
            moved |= !up.is_empty() || !down.is_empty();
            self.said.extend(up);
            self.said.extend(down);
        }
        moved
    }

    pub fn host_sends(&mut self, at: PortId, frame: &[u8]) {
        let host = self.hosts.get_mut(&at).unwrap();
        assert!(host.send(frame));
        host.flush();
    }

    /// Returns the frames that a host has received since the last call.
    pub fn host_receives(&mut self, at: PortId) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let host = self.hosts.get_mut(&at).unwrap();
        host.receive(usize::MAX, &mut |frame| frames.push(frame.to_vec()))
            .unwrap();
        frames
    }

    /// Returns the number of copies of `frame` that each host has received since the last call, in order.
    pub fn copies(&mut self, frame: &[u8]) -> Vec<usize> {
        let hosts: Vec<_> = self.hosts.keys().copied().collect();
        let copies = |at| {
            let received = self.host_receives(at);
            received.iter().filter(|other| *other == frame).count()
        };
        hosts.into_iter().map(copies).collect()
    }

    pub fn found(&self) -> Vec<DirectedLink> {
        self.discovery.topology().load().directed_links().to_vec()
    }

    pub fn take_events(&mut self) -> Vec<DiscoveryEvent> {
        std::iter::from_fn(|| self.events.try_next()).collect()
    }
}

fn link() -> (MemoryPort, MemoryPort) {
    let end = ("link", MacAddr::new([2, 0, 0, 0, 0, 1]));
    memory::pair(end, end, LINK_FRAMES)
}

/// Returns the links of [`Mesh::ring`], sorted.
pub fn ring_links(count: u64) -> Vec<DirectedLink> {
    let link = |id| both_ways(port(id, 1), port(id % count + 1, 2));
    let mut links: Vec<_> = (1..=count).flat_map(link).collect();
    links.sort();
    links
}
