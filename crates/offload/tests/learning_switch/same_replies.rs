//! The replies are those of the program, whatever comes and however it is cut.

use crate::packets::{Draw, Packet};
use crate::support::kernel;
use crate::switch::{Channel, InMemory, connect, join, offloaded, settle};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use urtica_apps::{L2, MacEntry, MacTable};
use urtica_controller::{Running, SwitchCounters, SwitchInfo};
use urtica_offload::Kernel;
use urtica_wire::{DatapathId, Version};

/// A switch whose controller answers in the kernel, and one whose controller is the program alone; both hear the same.
struct Pair {
    controller: Running,
    real: TcpStream,
    reference: InMemory,
    version: Version,
    /// What the reference model has said and the real one is to say.
    expected: Vec<u8>,
    id: u64,
}

impl Pair {
    fn new(kernel: &Kernel, version: Version, places: usize) -> Self {
        let controller = offloaded(kernel, places);
        let program =
            move |_: &SwitchInfo| L2::with_table(MacTable::in_places(vec![MacEntry::FREE; places]));
        let (mut real, mut reference) = (connect(&controller), InMemory::new(program));
        join(&mut real, version, 1);
        join(&mut reference, version, 1);
        Self {
            controller,
            real,
            reference,
            version,
            expected: Vec::new(),
            id: 1,
        }
    }

    /// Both hear this; the real one in this piece.
    fn send(&mut self, bytes: &[u8]) {
        self.reference.send(bytes);
        self.expected.extend(self.reference.take());
        self.real.send(bytes);
    }

    /// Waits until as much was said as is expected, and compares.
    fn compare(&mut self) {
        let mut said = Vec::new();
        while said.len() < self.expected.len() {
            said.extend(self.real.receive());
        }
        assert_same(&said, &self.expected);
        self.expected.clear();
    }

    fn counters(&self) -> std::sync::Arc<SwitchCounters> {
        let id = DatapathId(self.id);
        self.controller
            .network()
            .counters(id)
            .expect("it is connected")
    }

    /// Nothing more is said than was expected.
    fn finish(mut self) {
        self.compare();
        let (mut said, mut expected) = (Vec::new(), Vec::new());
        settle(&mut self.real, &mut said, self.version);
        settle(&mut self.reference, &mut expected, self.version);
        assert_same(&said, &expected);
        drop(self.real);
        self.controller.stop().unwrap();
    }
}

fn assert_same(said: &[u8], expected: &[u8]) {
    if said == expected {
        return;
    }
    let at = said.iter().zip(expected).position(|(a, b)| a != b);
    let at = at.unwrap_or(said.len().min(expected.len()));
    let around = |bytes: &[u8]| {
        format!(
            "{:02x?}",
            &bytes[at.saturating_sub(80)..bytes.len().min(at + 80)]
        )
    };
    panic!(
        "byte {at} of {}, expected {} bytes:\n{}\nexpected\n{}",
        said.len(),
        expected.len(),
        around(said),
        around(expected)
    );
}

#[test]
fn a_random_stream_in_random_pieces() {
    let Some(kernel) = kernel() else { return };
    for seed in 0..4 {
        for version in Version::ALL {
            let mut draw = Draw::new(seed);
            let mut pair = Pair::new(&kernel, version, 1 << 16);
            for _ in 0..200 {
                let stream = draw.stream(version, 60);
                for piece in draw.cut(&stream) {
                    pair.send(piece);
                }
                pair.compare();
            }
            let answered = pair.counters().answered_in_kernel.get();
            assert!(answered > 0, "the kernel has answered nothing");
            pair.finish();
        }
    }
}

/// Which host gives way in a full table depends on when hosts were heard, in seconds: a run that sees the clock move on is done
/// anew.
#[test]
fn hosts_that_displace_each_other() {
    let Some(kernel) = kernel() else { return };
    for seed in 0..10 {
        for version in Version::ALL {
            let mut runs = 0..50;
            while !displace(&kernel, version, seed) {
                runs.next()
                    .expect("the machine does this in less than a second");
            }
        }
    }
}

/// Whether it took less than the first second of the controller's clock.
fn displace(kernel: &Kernel, version: Version, seed: u64) -> bool {
    let before_all = Instant::now();
    let mut pair = Pair::new(kernel, version, 64 << (seed % 2));
    let mut draw = Draw::new(seed);
    let stream = draw.stream(version, 600);
    let (mut said, mut expected) = (Vec::new(), Vec::new());
    for piece in draw.cut(&stream) {
        pair.reference.send(piece);
        expected.extend(pair.reference.take());
        pair.real.send(piece);
    }
    while said.len() < expected.len() && before_all.elapsed() < Duration::from_secs(1) {
        said.extend(pair.real.receive());
    }
    let in_time = before_all.elapsed() < Duration::from_secs(1);
    if in_time {
        assert_same(&said, &expected);
    }
    drop(pair.real);
    pair.controller.stop().unwrap();
    in_time
}

#[test]
fn packet_ins_alone_are_answered_in_the_kernel() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut draw = Draw::new(7);
        let mut pair = Pair::new(&kernel, version, 1024);
        let before = 10;
        for at in 0..1000 + before {
            let mut bytes = Vec::new();
            for _ in 0..draw.below(30) + 1 {
                draw.plain_packet().encode(version, at, &mut bytes);
            }
            pair.send(&bytes);
            pair.compare();
        }
        let mut said = Vec::new();
        settle(&mut pair.real, &mut said, version);
        pair.reference.send(&echo_of_settle(version));
        pair.reference.take();
        let counters = pair.counters();
        let (all, kernel) = (counters.packet_ins.get(), counters.answered_in_kernel.get());
        assert!(
            kernel * 10 > all * 9,
            "{kernel} of {all} packet-ins were answered in the kernel"
        );
        assert_eq!(counters.fell_back.get(), 0);
        pair.finish();
    }
}

fn echo_of_settle(version: Version) -> Vec<u8> {
    let mut echo = Vec::new();
    urtica_wire::Message::EchoRequest(&[])
        .encode(version, 0x5e77_1e00, &mut echo)
        .unwrap();
    echo
}

#[test]
fn a_stream_cut_at_every_byte() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut stream = Vec::new();
        for (at, packet) in [(1, 2), (2, 1), (1, 2)].into_iter().enumerate() {
            Packet::udp(packet.0, packet.1).encode(version, at as u32, &mut stream);
        }
        stream.extend(echo_of_settle(version));
        Packet::udp(2, 1).encode(version, 4, &mut stream);
        let mut pair = Pair::new(&kernel, version, 64);
        for cut in 1..stream.len() {
            let (head, tail) = stream.split_at(cut);
            pair.send(head);
            pair.send(tail);
            pair.compare();
        }
        for piece in stream.chunks(1) {
            pair.send(piece);
        }
        pair.finish();
    }
}

#[test]
fn a_port_that_may_be_reserved_is_the_programs_from_then_on() {
    let Some(kernel) = kernel() else { return };
    let mut pair = Pair::new(&kernel, Version::Of10, 64);
    for (at, port) in [0xfffe, 1, 0x8000, 2, 0xff00]
        .into_iter()
        .cycle()
        .take(50)
        .enumerate()
    {
        let packet = Packet {
            in_port: port,
            ..Packet::udp(at as u8 % 7 + 1, at as u8 % 5 + 1)
        };
        let mut bytes = Vec::new();
        packet.encode(Version::Of10, at as u32, &mut bytes);
        pair.send(&bytes);
        pair.compare();
    }
    pair.finish();
}
