//! A program that does not read its ring, and a switch that does not read its replies: nothing is lost, and memory is bounded.

use crate::application::{Application, start};
use crate::flood::{MOST_HELD, fill};
use crate::packets::Packet;
use crate::same_messages::Pair;
use std::sync::atomic::Ordering::SeqCst;
use urtica_offload::ring::MessageType;
use urtica_wire::Version;

const PACKET_INS: [MessageType; 1] = [MessageType::PacketIn];

/// The minimum size of a ring.
const SMALL_RING: usize = 4096;

/// The program stops reading for long, and then continues.
#[test]
fn messages_beyond_a_full_ring_arrive_later_in_order() {
    for ring_bytes in [SMALL_RING, 1 << 20] {
        let Some(rings) = start(1, ring_bytes) else {
            return;
        };
        let application = Application::run(rings, &PACKET_INS);
        for version in Version::ALL {
            let mut pair = Pair::new(&application, version, 1, &PACKET_INS);
            // It is random which side reads when the flood starts, so the test is repeated until it was the kernel, whose ring
            // is then full.
            for round in 0.. {
                assert!(round < 50, "the ring is full now and then");
                let before = application.counts().ring_full;
                application.shared.is_paused.store(true, SeqCst);
                let (sent, rest) = fill(&mut pair.real, version);
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

/// A switch that does not read its replies is not read from. All replies arrive when it finally reads.
#[test]
fn a_switch_that_does_not_read_is_not_read_from() {
    let Some(rings) = start(1, 1 << 20) else {
        return;
    };
    let application = Application::run(rings, &PACKET_INS);
    for version in Version::ALL {
        let mut pair = Pair::new(&application, version, 1, &PACKET_INS);
        let (sent, mut rest) = fill(&mut pair.real, version);
        assert!(sent.len() < MOST_HELD, "{} bytes were taken", sent.len());
        pair.expect(&sent);
        pair.compare();
        // Its further messages arrive after these.
        Packet::udp(3, 4).encode(version, 7, &mut rest);
        pair.send(&rest);
        pair.finish();
    }
    application.stop();
}
