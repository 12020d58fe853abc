//! A program that does not read its ring, and a switch that does not read its replies: nothing is lost, and memory is bounded.

use crate::application::{Application, start};
use crate::packets::Packet;
use crate::same_messages::Pair;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Write};
use std::sync::atomic::Ordering::SeqCst;
use urtica_offload::ring::MessageType;
use urtica_wire::Version;

const PACKET_INS: [MessageType; 1] = [MessageType::PacketIn];

/// The least that a ring has.
const SMALL_RING: usize = 4096;

/// The most that may be taken of a switch whose messages nobody reads, in bytes.
const MOST_HELD: usize = 16 << 20;

/// After so long a silence a socket that takes nothing is taken for full.
const FULL_AFTER: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Sends packet-ins until the socket takes no more. Returns what was sent, and the rest of the last one.
fn fill(pair: &mut Pair, version: Version) -> (Vec<u8>, Vec<u8>) {
    let (mut sent, mut at, mut xid) = (Vec::new(), 0, 0);
    pair.real.set_nonblocking(true).unwrap();
    loop {
        while sent.len() < at + 4096 {
            Packet::udp(1, 2).encode(version, xid, &mut sent);
            xid += 1;
        }
        match pair.real.write(&sent[at..]) {
            Ok(count) => at += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(&pair.real, PollFlags::OUT)];
                if poll(&mut fds, Some(&FULL_AFTER)).unwrap() == 0 {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(at < 4 * MOST_HELD, "the socket takes more and more");
    }
    pair.real.set_nonblocking(false).unwrap();
    let missing = (sent.len() - at) % (sent.len() / xid as usize);
    let rest = sent[at..at + missing].to_vec();
    sent.truncate(at);
    (sent, rest)
}

/// The program stops reading for long, and goes on.
#[test]
fn what_a_full_ring_cannot_take_comes_later_in_order() {
    for ring_bytes in [SMALL_RING, 1 << 20] {
        let Some(rings) = start(1, ring_bytes) else { return };
        let application = Application::run(rings, &PACKET_INS);
        for version in Version::ALL {
            let mut pair = Pair::new(&application, version, 1, &PACKET_INS);
            // Whoever reads when the flood begins: until it was the kernel, whose ring is full then.
            for round in 0.. {
                assert!(round < 50, "the ring is full now and then");
                let before = application.counts().ring_full;
                application.shared.is_paused.store(true, SeqCst);
                // Small at first, so that the kernel has them, and not too long for the ring.
                let mut small = Vec::new();
                for xid in 0..20_000 {
                    let start = small.len();
                    Packet::udp(2, 1).encode(version, xid, &mut small);
                    pair.send(&small.split_off(start));
                }
                let (sent, rest) = fill(&mut pair, version);
                assert!(sent.len() < MOST_HELD, "{} bytes were taken", sent.len());
                pair.expect(&sent);
                application.shared.is_paused.store(false, SeqCst);
                pair.compare();
                pair.send(&rest);
                pair.compare();
                if application.counts().ring_full > before {
                    break;
                }
            }
            pair.finish();
        }
        application.stop();
    }
}

/// The switch sends and does not read: it is not read from either, and all is there when it reads after all.
#[test]
fn a_switch_that_does_not_read_is_not_read_from() {
    let Some(rings) = start(1, 1 << 20) else { return };
    let application = Application::run(rings, &PACKET_INS);
    for version in Version::ALL {
        let mut pair = Pair::new(&application, version, 1, &PACKET_INS);
        let (sent, mut rest) = fill(&mut pair, version);
        assert!(sent.len() < MOST_HELD, "{} bytes were taken", sent.len());
        pair.expect(&sent);
        pair.compare();
        // What it sends from here on comes behind.
        Packet::udp(3, 4).encode(version, 7, &mut rest);
        pair.send(&rest);
        pair.finish();
    }
    application.stop();
}
