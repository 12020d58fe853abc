//! The answers equal those of the services in the program, for any input and any segmentation.

use crate::attempts::Attempts;
use crate::bench::{driven, driven_for};
use crate::frames::{Draw, announcement, datagram, encode, request};
use crate::pair::Pair;
use urtica_offload::Driven;
use urtica_wire::{Message, Version};

/// Default number of messages in random streams for each version.
const MESSAGES: u64 = 10_000;

/// Sets this number, as for the learning switch.
const MESSAGES_VARIABLE: &str = "URTICA_TEST_MESSAGES";

/// Messages on one connection.
const MESSAGES_A_SEED: u64 = 2_500;

#[test]
fn a_random_stream_in_random_pieces() {
    let messages = std::env::var(MESSAGES_VARIABLE).map_or(MESSAGES, |count| {
        count.parse().expect("the variable is a number of messages")
    });
    for version in Version::ALL {
        for seed in 0..messages.div_ceil(MESSAGES_A_SEED) {
            let Some(driven) = driven() else { return };
            let pair = random_stream(driven, version, seed);
            let (settled, all) = (pair.driven.offload().counts(), pair.counters());
            assert!(settled.requests > 20, "seed {seed}: {settled:?}");
            assert!(all.passed_by_kernel.get() > 10, "seed {seed}");
            pair.finish();
        }
    }
}

/// Some hosts and addresses do not fit into the kernel's tables.
#[test]
fn a_random_stream_with_full_tables() {
    for version in Version::ALL {
        for hosts in [4, 9] {
            let Some(driven) = driven_for(hosts) else {
                return;
            };
            random_stream(driven, version, hosts.into()).finish();
        }
    }
}

/// Sends a random stream; the caller finishes the pair.
fn random_stream(driven: Driven, version: Version, seed: u64) -> Pair {
    const MESSAGES_A_ROUND: u64 = 50;
    let mut pair = Pair::new(driven, version);
    let mut draw = Draw::new(seed);
    for round in 0..MESSAGES_A_SEED / MESSAGES_A_ROUND {
        // A message for the program is passed with its whole piece, so some rounds have none.
        let is_plain = round % 2 == 0;
        let mut sent = 0;
        while sent < MESSAGES_A_ROUND {
            let count = u64::from(draw.below(12)) + 1;
            let message = |_| match is_plain {
                true => draw.plain_message(version),
                false => draw.message(version),
            };
            let stream: Vec<_> = (0..count).flat_map(message).collect();
            for piece in draw.cut(&stream) {
                pair.send(piece);
            }
            if is_plain {
                pair.compare();
            }
            sent += count;
        }
        pair.compare();
    }
    pair
}

#[test]
fn a_stream_cut_at_every_byte() {
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let mut pair = Pair::new(driven, version);
        let mut stream = Vec::new();
        stream.extend(encode(version, &request(1, 2)));
        Message::EchoRequest(b"echo")
            .encode(version, 9, &mut stream)
            .unwrap();
        stream.extend(encode(version, &request(30, 3)));
        stream.extend(encode(version, &datagram(1, 2)));
        stream.extend(encode(version, &request(4, 5)));
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
fn requests_of_known_hosts_do_not_reach_the_program() {
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let mut pair = Pair::new(driven, version);
        let before = pair.driven.offload().counts().requests;
        for round in 0..500_u32 {
            let (host, target) = ((round % 8) as u8 + 1, ((round + 3) % 8) as u8 + 1);
            pair.send(&encode(version, &request(host, target)));
            pair.compare();
        }
        let settled = pair.driven.offload().counts().requests - before;
        assert!(
            settled > 250,
            "{settled} of 500 were answered in the kernel"
        );
        pair.finish();
    }
}

/// More messages at once than there are verdicts, or than a piece of input may contain.
#[test]
fn long_pieces_are_left_to_the_program() {
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let mut pair = Pair::new(driven, version);
        let mut echoes = Vec::new();
        for xid in 1..=1500 {
            Message::EchoRequest(&[])
                .encode(version, xid, &mut echoes)
                .unwrap();
        }
        let requests: Vec<_> = (0..250)
            .flat_map(|_| encode(version, &request(1, 2)))
            .collect();
        for _ in 0..20 {
            pair.send(&echoes);
            pair.send(&requests);
            pair.send(&encode(version, &announcement(40)));
            pair.compare();
        }
        pair.finish();
    }
}

/// The kernel forwards the first packet, if possible, and the program installs an equal path.
#[test]
fn flows_are_forwarded_and_their_paths_installed_as_without_it() {
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let mut pair = Pair::routing(driven, version);
        let mut draw = Draw::new(11);
        let before = pair.counters().answered_in_kernel.get();
        for _ in 0..300 {
            let count = draw.below(3) + 1;
            let stream: Vec<_> = (0..count)
                .flat_map(|_| encode(version, &draw.flow()))
                .collect();
            for piece in draw.cut(&stream) {
                pair.send(piece);
            }
            pair.compare();
        }
        // Until there were enough of both.
        let counters = pair.counters();
        let (attempts, mut hosts) = (Attempts::new(), (1..=8).cycle());
        while counters.answered_in_kernel.get() - before < 100 {
            attempts.next("the kernel sends on now and then");
            let host = hosts.next().expect("they repeat");
            pair.send(&encode(version, &datagram(host, host % 8 + 1)));
            pair.compare();
        }
        pair.finish();
    }
}
