//! The replies equal the program's for any input and any segmentation.

use crate::packets::{Draw, Packet};
use crate::pair::{Pair, assert_same};
use crate::support::kernel;
use crate::switch::{Channel, settle};
use std::time::{Duration, Instant};
use urtica_offload::{Kernel, Mode};
use urtica_wire::Version;

/// Default number of messages in random streams for each version and mode.
const MESSAGES: u64 = 10_000;

/// Sets this number: `URTICA_TEST_MESSAGES=5000000 cargo test --release -p urtica-offload random_pieces`.
const MESSAGES_VARIABLE: &str = "URTICA_TEST_MESSAGES";

#[test]
fn a_random_stream_in_random_pieces() {
    let Some(kernel) = kernel() else { return };
    let messages = std::env::var(MESSAGES_VARIABLE).map_or(MESSAGES, |count| {
        count.parse().expect("the variable is a number of messages")
    });
    for mode in [Mode::Kernel, Mode::Auto] {
        for version in Version::ALL {
            for seed in 0..messages.div_ceil(MESSAGES_A_SEED) {
                random_stream(&kernel, mode, version, seed);
            }
        }
    }
}

/// Messages on one connection.
const MESSAGES_A_SEED: u64 = 10_000;

fn random_stream(kernel: &Kernel, mode: Mode, version: Version, seed: u64) {
    const MESSAGES_A_ROUND: u32 = 50;
    let mut draw = Draw::new(seed);
    let mut pair = Pair::new(kernel, mode, version, 1 << 13);
    for _ in 0..MESSAGES_A_SEED / u64::from(MESSAGES_A_ROUND) {
        let stream = draw.stream(version, MESSAGES_A_ROUND);
        for piece in draw.cut(&stream) {
            pair.send(piece);
        }
        pair.compare();
    }
    let answered = pair.counters().answered_in_kernel.get();
    // In the other mode, the speed of the program decides who answers.
    if mode == Mode::Kernel {
        assert!(answered > 0, "seed {seed}: the kernel has answered nothing");
    }
    pair.finish();
}

/// Which host is displaced in a full table depends on the seconds in which hosts were heard. If the clock advances during a
/// run, the run is repeated with fewer messages, which even a busy machine answers in time.
#[test]
fn hosts_that_displace_each_other() {
    let Some(kernel) = kernel() else { return };
    for seed in 0..10 {
        for version in Version::ALL {
            let mut messages = 600;
            while !displace(&kernel, version, seed, messages) {
                messages = (messages / 2).max(100);
            }
        }
    }
}

/// Returns whether the run ended within the first second of the controller's clock.
fn displace(kernel: &Kernel, version: Version, seed: u64, messages: u32) -> bool {
    let before_all = Instant::now();
    let mut pair = Pair::new(kernel, Mode::Kernel, version, 64 << (seed % 2));
    let mut draw = Draw::new(seed);
    let stream = draw.stream(version, messages);
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
fn only_packet_ins_are_answered_in_the_kernel() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut draw = Draw::new(7);
        let mut pair = Pair::new(&kernel, Mode::Kernel, version, 1024);
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
        let mut pair = Pair::new(&kernel, Mode::Kernel, version, 64);
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
fn a_possibly_reserved_port_retires_the_kernel_half() {
    let Some(kernel) = kernel() else { return };
    let mut pair = Pair::new(&kernel, Mode::Kernel, Version::Of10, 64);
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
