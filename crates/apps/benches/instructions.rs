//! The instructions of a packet-in in `l2`, by kind of frame.
//!
//! The count is from received bytes to the bytes of the flow mod, without sockets. The first kind is cbench's, with which the
//! others are compared. Callgrind counts (`valgrind` must be installed) in a run and in a run three times as long, so that
//! the common set-up cancels. Times would be too noisy for a comparison to the percent.
//!
//! `cargo bench -p urtica-apps --bench instructions`, with a part of a name to select kinds; under `cargo test` each runs
//! briefly.

#[path = "../../wire/benches/support/callgrind.rs"]
mod callgrind;
#[path = "instructions/frames.rs"]
mod frames;

use std::time::Duration;
use urtica_apps::L2;
use urtica_controller::{ConnectionId, Controller, Embedded, SwitchInfo};
use urtica_wire::{
    BufferId, Capabilities, DatapathId, Features, Header, List, Match, Message, PacketIn,
    PacketInReason, PortNo, Version,
};

/// The number of packet-ins that arrive together.
const BATCH: usize = 256;

/// The number of hosts, which send round-robin.
const HOSTS: u32 = 1024;

/// The length in batches of the shorter of a case's two runs, in which all hosts are learned.
const BATCHES: u64 = 40;

/// A switch and its controller, in one thread, with packet-ins of one kind.
struct Load {
    controller: Embedded,
    connection: ConnectionId,
    batch: Vec<u8>,
    packet_in_len: usize,
    sent: u32,
}

impl Load {
    /// Connects the switch, and announces the destination of its packets.
    fn new(version: Version, frame: &[u8]) -> Self {
        let mut controller = Controller::new()
            .program(|_: &SwitchInfo| L2::default())
            .embed()
            .expect("there is a program");
        let connection = controller.connect("s1".into(), Duration::ZERO);
        let packet_in = packet_in(version, PortNo(1), BufferId(1), frame);
        let mut load = Self {
            controller,
            connection,
            packet_in_len: packet_in.len(),
            batch: packet_in.repeat(BATCH),
            sent: 0,
        };
        load.send(&[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
        load.send(&encode(version, &features()));
        let announcement = frames::from(frames::DESTINATION);
        load.send(&packet_in_of_destination(version, &announcement));
        load
    }

    /// Passes bytes to the controller; returns the number of bytes that it answers.
    fn send(&mut self, bytes: &[u8]) -> usize {
        self.controller
            .handle_input(self.connection, bytes, Duration::ZERO)
            .expect("the connection is open");
        let output = self.controller.output(self.connection);
        let output = output.expect("it is connected");
        let len = output.len();
        output.clear();
        len
    }

    /// Sends `batches` batches; returns the number of bytes in the answers.
    fn answer(&mut self, batches: u64) -> usize {
        let mut answered = 0;
        for _ in 0..batches {
            let mut batch = std::mem::take(&mut self.batch);
            for packet_in in batch.chunks_exact_mut(self.packet_in_len) {
                let frame_at = self.packet_in_len - frames::LEN;
                let source = frames::source(self.sent % HOSTS);
                packet_in[frame_at + 6..frame_at + 12].copy_from_slice(&source);
                self.sent += 1;
            }
            answered += self.send(&batch);
            self.batch = batch;
        }
        answered
    }
}

fn encode(version: Version, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message
        .encode(version, 0, &mut bytes)
        .expect("both versions have it");
    bytes
}

fn features() -> Message<'static> {
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(1),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS,
        actions: 0,
        ports: List::default(),
    })
}

fn packet_in_of_destination(version: Version, frame: &[u8]) -> Vec<u8> {
    packet_in(version, PortNo(2), BufferId::NONE, frame)
}

fn packet_in(version: Version, in_port: PortNo, buffer_id: BufferId, frame: &[u8]) -> Vec<u8> {
    let message = Message::PacketIn(PacketIn {
        buffer_id,
        total_len: frame.len() as u16,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port,
        match_: Match::any().in_port(in_port),
        data: frame,
    });
    encode(version, &message)
}

/// Sends batches of a kind, and checks that each packet-in is answered by exactly one entry.
fn run(version: Version, frame: &[u8], batches: u64) {
    let mut load = Load::new(version, frame);
    let one = load.answer(1);
    let flow_mod_len = one / BATCH;
    assert!(flow_mod_len >= Header::SIZE + 64, "a flow mod for each");
    assert_eq!(
        load.answer(batches),
        flow_mod_len * BATCH * batches as usize
    );
}

/// Returns the instructions of a packet-in of a kind, if they can be counted.
fn per_packet_in(version: Version, name: &str) -> Option<f64> {
    let count = |batches: u64| {
        callgrind::instructions(&["--run", &version.to_string(), name, &batches.to_string()])
    };
    let (few, many) = (count(BATCHES)?, count(3 * BATCHES)?);
    Some((many - few) as f64 / (2 * BATCHES * BATCH as u64) as f64)
}

fn compare(wanted: &str) {
    for version in Version::ALL {
        println!("instructions for each packet-in, OpenFlow {version}");
        let mut first = None;
        for (name, _) in frames::kinds() {
            if first.is_some() && !name.contains(wanted) {
                continue;
            }
            let Some(count) = per_packet_in(version, name) else {
                return println!("  cannot count: valgrind is not installed");
            };
            let first = *first.get_or_insert(count);
            println!(
                "  {name:<32} {count:>7.1}, {:.2} of the first",
                count / first
            );
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let kinds = frames::kinds();
    match &arguments[..] {
        [run_, version, name, batches] if run_ == "--run" => {
            let version = Version::ALL
                .into_iter()
                .find(|of| of.to_string() == *version);
            let kind = kinds.iter().find(|kind| kind.0 == name);
            let (version, kind) = version.zip(kind).expect("a version and a kind");
            run(version, &kind.1, batches.parse().expect("a number"));
        }
        _ if arguments.iter().any(|argument| argument == "--bench") => {
            let part = arguments.iter().find(|argument| !argument.starts_with('-'));
            compare(part.map_or("", |part| part));
        }
        _ => {
            for (version, (_, frame)) in Version::ALL
                .into_iter()
                .flat_map(|version| kinds.iter().map(move |kind| (version, kind)))
            {
                run(version, frame, 4);
            }
        }
    }
}
