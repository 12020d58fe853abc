//! The cost of a packet-in in learning programs: `l2`, with a table for each switch, and the forms of `global`, with one
//! shared table.
//!
//! The load is cbench's: sixteen switches of OpenFlow 1.0, divided among the threads. Each switch reports packets of its own
//! hosts, round-robin, to one destination that it has announced. The benchmark uses no sockets: it measures a packet-in from
//! received bytes to the bytes of the flow mod, and some instructions that write its source address. Few hosts fit into the
//! near caches and show the cost of programs; 100,000 for each switch do not fit, and also show the cost of tables.
//!
//! `cargo bench -p urtica-apps --bench packet_in`; under `cargo test` each case runs briefly.

#[path = "../../state/benches/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use support::compare;
use urtica_apps::{Global, HostTable, L2, LockFree, Locked, Transactional};
use urtica_controller::{ConnectionId, Controller, Embedded, Program, SwitchInfo};
use urtica_wire::{
    BufferId, Capabilities, DatapathId, Features, List, Match, Message, PacketIn, PacketInReason,
    PortNo, Version,
};

const SWITCHES: u8 = 16;

/// The number of packet-ins that arrive together.
const BATCH: usize = 256;

/// The offset of the frame in a packet-in of OpenFlow 1.0.
const FRAME_AT: usize = 18;

const FRAME_LEN: usize = 64;

/// The ports of the hosts, and of the destination.
const PORTS: [PortNo; 2] = [PortNo(1), PortNo(2)];

/// Some switches and their controller, in one thread.
struct Load {
    controller: Embedded,
    switches: Vec<(u8, ConnectionId)>,
    /// The packet-ins of a batch; each batch only changes their source addresses.
    batch: Vec<u8>,
    hosts: u32,
    /// The number of packet-ins that each switch has sent.
    sent: Vec<u32>,
}

impl Load {
    /// Connects all switches of this thread, and reports a packet of each of their hosts.
    fn new(program: &Arc<dyn Program>, thread: usize, threads: usize, hosts: u32) -> Self {
        let program = Arc::clone(program);
        let controller = Controller::new()
            .program(move |info: &SwitchInfo| program.handler(info))
            .embed()
            .expect("there is a program");
        let mut load = Self {
            controller,
            switches: Vec::new(),
            batch: Vec::new(),
            hosts,
            sent: Vec::new(),
        };
        for number in (1..=SWITCHES).skip(thread).step_by(threads) {
            load.connect(number);
        }
        let to_hear_all = load.switches.len() as u64 * u64::from(hosts) + BATCH as u64;
        load.answer(to_hear_all);
        load
    }

    fn connect(&mut self, number: u8) {
        let connection = self
            .controller
            .connect(format!("s{number}"), Duration::ZERO);
        self.switches.push((number, connection));
        self.sent.push(0);
        self.send(connection, &[1, 0, 0, 8, 0, 0, 0, 0]);
        self.send(connection, &encode(&features(number)));
        self.send(
            connection,
            &packet_in(PORTS[1], BROADCAST, destination(number)),
        );
    }

    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> usize {
        let controller = &mut self.controller;
        controller
            .handle_input(connection, bytes, Duration::ZERO)
            .expect("the connection is open");
        let output = controller.output(connection).expect("it is connected");
        let len = output.len();
        output.clear();
        len
    }

    /// Sends `count` packet-ins, rounded up to batches, from the switches round-robin.
    fn answer(&mut self, count: u64) {
        let batches = count.div_ceil(BATCH as u64) as usize;
        for at in (0..self.switches.len()).cycle().take(batches) {
            let (number, connection) = self.switches[at];
            self.fill(number, self.sent[at]);
            self.sent[at] = (self.sent[at] + BATCH as u32) % self.hosts;
            let batch = std::mem::take(&mut self.batch);
            assert_eq!(self.send(connection, &batch), BATCH * 80, "a flow mod each");
            self.batch = batch;
        }
    }

    /// Fills the batch of a switch, starting with the source of this number.
    fn fill(&mut self, switch: u8, first: u32) {
        if self.batch.is_empty() {
            self.batch = packet_in(PORTS[0], [0; 6], [0; 6]).repeat(BATCH);
        }
        let mut number = first;
        for message in self.batch.chunks_exact_mut(FRAME_AT + FRAME_LEN) {
            let addresses = &mut message[FRAME_AT..];
            addresses[..6].copy_from_slice(&destination(switch));
            addresses[6..12].copy_from_slice(&source(switch, number));
            number = if number + 1 == self.hosts {
                0
            } else {
                number + 1
            };
        }
    }
}

/// The bytes after the addresses in cbench's frame: an IPv4 packet of a reserved protocol.
const IPV4: [u8; 22] = [
    0x08, 0x00, 0x45, 0x00, 0x00, 0x32, 0x00, 0x00, 0x00, 0x00, 0x40, 0xff, 0xf7, 0x2c, 192, 168,
    0, 40, 192, 168, 1, 40,
];

const BROADCAST: [u8; 6] = [0xff; 6];

/// Returns cbench's address of a host, which counts up from the front.
fn source(switch: u8, number: u32) -> [u8; 6] {
    let [low, mid, high, _] = number.to_le_bytes();
    [0, low, mid, high, 0, switch]
}

/// Returns cbench's destination address of all packets of a switch.
fn destination(switch: u8) -> [u8; 6] {
    [0x80, 0, 0, 0, 0, switch]
}

fn encode(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message
        .encode(Version::Of10, 0, &mut bytes)
        .expect("it can be said in OpenFlow 1.0");
    bytes
}

fn features(number: u8) -> Message<'static> {
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(number.into()),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS,
        actions: 0,
        ports: List::default(),
    })
}

fn packet_in(in_port: PortNo, destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
    let mut frame = [destination, source].concat();
    frame.extend(IPV4);
    frame.resize(FRAME_LEN, 0);
    encode(&Message::PacketIn(PacketIn {
        buffer_id: BufferId(1),
        total_len: FRAME_LEN as u16,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port,
        match_: Match::any().in_port(in_port),
        data: &frame,
    }))
}

/// Creates the loads of all threads.
fn loads(program: Arc<dyn Program>, threads: usize, hosts: u32) -> Vec<Mutex<Load>> {
    let load = |thread| Mutex::new(Load::new(&program, thread, threads, hosts));
    (0..threads).map(load).collect()
}

fn global<T: HostTable>() -> Arc<dyn Program> {
    Arc::new(Global::<T>::new())
}

fn packet_ins(threads: usize, hosts: u32) {
    let l2 = loads(Arc::new(|_: &SwitchInfo| L2::default()), threads, hosts);
    let lock_free = loads(global::<LockFree>(), threads, hosts);
    let locked = loads(global::<Locked>(), threads, hosts);
    let transactional = loads(global::<Transactional>(), threads, hosts);
    let answer = |loads: &[Mutex<Load>], thread: usize, count| {
        let mut load = loads[thread].lock().unwrap_or_else(PoisonError::into_inner);
        load.answer(count);
    };
    compare(
        &format!("packet-ins from {SWITCHES} switches with {hosts} hosts each"),
        threads,
        &[
            ("l2", &|thread, count| answer(&l2, thread, count)),
            ("global", &|thread, count| answer(&lock_free, thread, count)),
            ("global-mutex", &|thread, count| {
                answer(&locked, thread, count)
            }),
            ("global-stm", &|thread, count| {
                answer(&transactional, thread, count)
            }),
        ],
    );
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let hosts: &[u32] = if is_bench { &[1000, 100_000] } else { &[1000] };
    for &hosts in hosts {
        for threads in [1, 2] {
            packet_ins(threads, hosts);
        }
    }
}
