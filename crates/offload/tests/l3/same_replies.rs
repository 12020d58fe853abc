//! The replies equal the program's for any input and any segmentation.

use crate::packets::Draw;
use crate::pair::{Pair, packet_in};
use crate::plan::{HOSTS, handed, header, ip_of, port_of, question_for_gateway};
use crate::traffic::Traffic;
use urtica_offload::Mode;
use urtica_wire::{Message, Version};

/// Default number of messages in random streams for each version and mode.
const MESSAGES: u64 = 5_000;

/// Sets this number: `URTICA_TEST_MESSAGES=5000000 cargo test --release -p urtica-offload random_pieces`.
const MESSAGES_VARIABLE: &str = "URTICA_TEST_MESSAGES";

/// Messages on one connection.
const MESSAGES_A_SEED: u64 = 5_000;

#[test]
fn a_random_stream_in_random_pieces() {
    let messages = std::env::var(MESSAGES_VARIABLE).map_or(MESSAGES, |count| {
        count.parse().expect("the variable is a number of messages")
    });
    for mode in [Mode::Kernel, Mode::Auto] {
        for version in Version::ALL {
            for seed in 0..messages.div_ceil(MESSAGES_A_SEED) {
                random_stream(mode, version, seed);
            }
        }
    }
}

fn random_stream(mode: Mode, version: Version, seed: u64) {
    const MESSAGES_A_ROUND: u32 = 50;
    let Some(mut pair) = Pair::new(mode, version) else {
        return;
    };
    let (mut traffic, mut cuts) = (Traffic::new(seed), Draw::new(seed));
    for _ in 0..MESSAGES_A_SEED / u64::from(MESSAGES_A_ROUND) {
        let stream = traffic.stream(version, MESSAGES_A_ROUND);
        for piece in cuts.cut(&stream) {
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

#[test]
fn packets_of_known_hosts_are_forwarded_in_the_kernel() {
    for version in Version::ALL {
        let Some(mut pair) = Pair::new(Mode::Kernel, version) else {
            return;
        };
        let mut traffic = Traffic::new(7);
        introduce(&mut pair);
        let before = pair.counters().answered_in_kernel.get();
        for at in 0..1000 {
            let mut bytes = Vec::new();
            for _ in 0..traffic.draw.below(10) + 1 {
                traffic.plain(version, at, &mut bytes);
            }
            pair.send(&bytes);
            pair.compare();
        }
        let counters = pair.counters();
        pair.finish();
        // The number depends on how soon the program hands connections over.
        let kernel = counters.answered_in_kernel.get() - before;
        assert!(kernel > 0, "{version:?}: the kernel has answered nothing");
    }
}

/// Makes each host send to each other one.
fn introduce(pair: &mut Pair) {
    for src in 1..=HOSTS {
        for dst in 1..=HOSTS {
            pair.come(src, handed(src, &header(src, ip_of(dst)), b"first"));
            pair.compare();
        }
        for last in 0..5 {
            let far = [192, 168, 0, last].into();
            pair.come(src, handed(src, &header(src, far), b"first"));
        }
        pair.compare();
    }
}

#[test]
fn a_stream_cut_at_every_byte() {
    for version in Version::ALL {
        let Some(mut pair) = Pair::new(Mode::Kernel, version) else {
            return;
        };
        let mut stream = Vec::new();
        let mut add = |src, frame| packet_in(port_of(src), frame).encode(version, 1, &mut stream);
        add(2, handed(2, &header(2, ip_of(3)), b"from 2 to 3"));
        add(3, question_for_gateway(3));
        add(3, handed(3, &header(3, ip_of(2)), b"from 3 to 2"));
        Message::EchoRequest(&[])
            .encode(version, 1, &mut stream)
            .unwrap();
        packet_in(port_of(4), question_for_gateway(4)).encode(version, 1, &mut stream);
        for cut in 1..stream.len() {
            let (head, tail) = stream.split_at(cut);
            pair.send(head);
            pair.send(tail);
            pair.compare();
        }
        for piece in stream.chunks(1) {
            pair.send(piece);
        }
        let counters = pair.counters();
        pair.finish();
        assert!(counters.answered_in_kernel.get() > 0);
    }
}

/// Two switches with separate hosts, in two shards. Changes at one do not affect the other.
#[test]
fn switches_of_several_shards() {
    const HOSTS_OF_ONE: std::ops::RangeInclusive<u8> = 1..=12;
    const HOSTS_OF_OTHER: std::ops::RangeInclusive<u8> = 13..=HOSTS;
    for version in Version::ALL {
        let Some(mut one) = Pair::with_hosts(Mode::Kernel, version, HOSTS_OF_ONE) else {
            return;
        };
        let mut other = one.beside(2);
        other.introduce(HOSTS_OF_OTHER);
        std::thread::scope(|scope| {
            for (pair, hosts) in [(&mut one, HOSTS_OF_ONE), (&mut other, HOSTS_OF_OTHER)] {
                scope.spawn(move || {
                    let mut traffic = Traffic::of(hosts, 11);
                    for _ in 0..50 {
                        let stream = traffic.stream(version, 50);
                        for piece in traffic.draw.cut(&stream) {
                            pair.send(piece);
                        }
                        pair.compare();
                    }
                });
            }
        });
        one.finish();
        other.finish();
    }
}
