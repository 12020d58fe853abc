//! Measures the time that discovery needs to find a network, from the first switch's hello to the last link.
//!
//! `cargo bench -p urtica-services` measures; under `cargo test` the large network is small, and each is discovered once.
//! Controller and switches run in one thread of this process: an embedded controller encodes and decodes all messages
//! as on a real network, but the switches only answer, and the transport needs no time. The cost of sockets,
//! wake-ups and real switches must be measured on a real network.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use urtica_controller::{ConnectionId, Controller, Embedded};
use urtica_services::{Discovery, DiscoveryConfig};
use urtica_topology::spec::TopologySpec;
use urtica_topology::{DirectedLink, PortId, Topology};
use urtica_wire::{
    Action, BufferId, Capabilities, DatapathId, Features, List, MacAddr, Match, Message,
    MultipartFlags, MultipartReply, MultipartReplyBody, PacketIn, PacketInReason, Port, PortNo,
    Version, split_frame,
};

const VERSION: Version = Version::Of13;

/// `OFPT_HELLO` of 1.3 without a bitmap.
const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];

fn main() {
    let is_measuring = std::env::args().any(|argument| argument == "--bench");
    let (switches, rounds) = if is_measuring { (1000, 11) } else { (20, 1) };
    let tree: TopologySpec = "tree,depth=3,fanout=3"
        .parse()
        .expect("it is a topology specification");
    let tree = tree.plan().expect("its sizes are small").topology();
    measure("tree of depth 3 and fanout 3", &tree, 9 * rounds);
    let name = format!("{switches} switches, three links to each");
    measure(&name, &circles(switches), rounds);
}

/// Returns a ring in which each switch has links to three of its successors, near and far.
fn circles(switches: u64) -> Topology {
    let link = |switch: u64, (place, distance): (u32, u64)| {
        let other = (switch - 1 + distance) % switches + 1;
        let from = PortId::new(DatapathId(switch), PortNo(place));
        let link = DirectedLink::new(from, PortId::new(DatapathId(other), PortNo(place + 3)));
        [link, link.reversed()]
    };
    let distances = [(1, 1), (2, switches / 7), (3, switches / 3)];
    let links =
        (1..=switches).flat_map(|switch| distances.into_iter().flat_map(move |d| link(switch, d)));
    Topology::new((1..=switches).map(DatapathId), links)
}

fn measure(name: &str, topology: &Topology, rounds: usize) {
    let mut times: Vec<_> = (0..rounds).map(|_| discover(topology)).collect();
    times.sort_by_key(|time| time.elapsed);
    let time = &times[rounds / 2];
    println!(
        "{name}: {} links known {:?} after the first hello, {:?} after the last switch was up (median of {rounds}); \
         {} probes, {} publications",
        topology.directed_links().len(),
        time.elapsed,
        time.since_last_up,
        time.probes,
        time.publications,
    );
}

/// The duration of one run.
struct Time {
    elapsed: Duration,
    since_last_up: Duration,
    probes: u64,
    publications: u64,
}

fn discover(topology: &Topology) -> Time {
    let mut network = Network::new(topology);
    let mut last_up = network.started;
    while network.discovery.topology().load().directed_links().len()
        < topology.directed_links().len()
    {
        network.take_turn();
        if network.joined < topology.switches().len() {
            last_up = Instant::now();
        }
    }
    let end = Instant::now();
    assert_eq!(*network.discovery.topology().load(), *topology);
    let counters = network.discovery.counters();
    Time {
        elapsed: end - network.started,
        since_last_up: end - last_up,
        probes: counters.probes_sent(),
        publications: counters.publications(),
    }
}

/// The controller, and switches that only answer.
struct Network {
    controller: Embedded,
    discovery: Discovery,
    started: Instant,
    switches: BTreeMap<DatapathId, Answering>,
    /// Number of switches that have described their ports.
    joined: usize,
}

/// A switch that answers the handshake and forwards LLDP.
struct Answering {
    connection: ConnectionId,
    /// The port at the other end of each port's link.
    peers: BTreeMap<PortNo, PortId>,
    has_joined: bool,
    /// Bytes for the controller.
    output: Vec<u8>,
}

impl Network {
    fn new(topology: &Topology) -> Self {
        let discovery = Discovery::new(DiscoveryConfig::default());
        let controller = Controller::new().program(discovery.clone());
        let mut controller = controller.embed().expect("it has a program");
        let started = Instant::now();
        let mut switches = BTreeMap::new();
        for &switch in topology.switches() {
            let answering = Answering {
                connection: controller.connect(switch.to_string(), Duration::ZERO),
                peers: BTreeMap::new(),
                has_joined: false,
                output: HELLO.to_vec(),
            };
            switches.insert(switch, answering);
        }
        for link in topology.directed_links() {
            let switch = switches.get_mut(&link.from.switch);
            let switch = switch.expect("links are between switches");
            switch.peers.insert(link.from.port_no, link.to);
        }
        Self {
            controller,
            discovery,
            started,
            switches,
            joined: 0,
        }
    }

    /// Passes the switches' messages to the controller, then the controller's to each switch.
    fn take_turn(&mut self) {
        let now = self.started.elapsed();
        for switch in self.switches.values_mut() {
            let said = std::mem::take(&mut switch.output);
            if !said.is_empty() {
                let taken = self.controller.handle_input(switch.connection, &said, now);
                taken.expect("what the switch says makes sense");
            }
        }
        self.controller.poll(now);
        let mut on_links = VecDeque::new();
        for (&id, switch) in &mut self.switches {
            let output = self.controller.output(switch.connection);
            let said = output.map(std::mem::take).unwrap_or_default();
            switch.answer(id, &said, &mut on_links);
        }
        for (to, frame) in on_links {
            let switch = self.switches.get_mut(&to.switch);
            let switch = switch.expect("links are between switches");
            if switch.has_joined {
                let message = packet_in(to.port_no, &frame);
                switch.say(0, &message);
            }
        }
        let switches = self.switches.values();
        self.joined = switches.filter(|switch| switch.has_joined).count();
    }
}

impl Answering {
    fn answer(
        &mut self,
        id: DatapathId,
        mut said: &[u8],
        on_links: &mut VecDeque<(PortId, Vec<u8>)>,
    ) {
        while let Ok(Some((frame, rest))) = split_frame(said) {
            said = rest;
            let (header, message) = Message::decode(frame).expect("the controller makes sense");
            match message {
                Message::FeaturesRequest => self.say(header.xid, &features(id)),
                Message::MultipartRequest(_) => {
                    self.has_joined = true;
                    let ports = self.ports();
                    self.say(header.xid, &ports);
                }
                Message::PacketOut(packet_out) => {
                    for action in &packet_out.actions {
                        if let Action::Output { port, .. } = action {
                            if let Some(&peer) = self.peers.get(&port) {
                                on_links.push_back((peer, packet_out.data.to_vec()));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn say(&mut self, xid: u32, message: &Message) {
        let written = message.encode(VERSION, xid, &mut self.output);
        written.expect("1.3 has this message");
    }

    fn ports(&self) -> Message<'static> {
        let ports = self.peers.keys().map(|&port_no| {
            let hw_addr = MacAddr::from_u64(port_no.0.into());
            Port::new(port_no, hw_addr, "eth")
        });
        Message::MultipartReply(MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::PortDesc(ports.collect()),
        })
    }
}

fn features(datapath_id: DatapathId) -> Message<'static> {
    Message::FeaturesReply(Features {
        datapath_id,
        n_buffers: 0,
        n_tables: 2,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::default(),
    })
}

fn packet_in(in_port: PortNo, frame: &[u8]) -> Message<'_> {
    Message::PacketIn(PacketIn {
        buffer_id: BufferId::NONE,
        total_len: frame.len() as u16,
        in_port,
        reason: PacketInReason::Action,
        table_id: 0,
        cookie: 0,
        match_: Match::any().in_port(in_port),
        data: frame,
    })
}
