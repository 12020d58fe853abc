//! The kernel half steps aside under load, and later returns: no reply is lost, invalid or out of order.

use crate::packets::{Draw, Packet};
use crate::pair::Pair;
use crate::support::kernel;
use crate::switch::{Channel, PATIENCE};
use std::time::Instant;
use urtica_offload::{Kernel, Mode};
use urtica_wire::Version;

/// Number of times that the kernel half must step aside in a run.
const TIMES: u64 = 4;

/// A burst is longer than one read. It is read as it arrives: in whole, and in the middle of messages.
const BURST_BYTES: usize = 1 << 20;

#[test]
fn an_alternating_load() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        for seed in 0..2 {
            swing(&kernel, version, seed);
        }
    }
}

/// Alternates bursts and single packets until the kernel half has stepped aside and returned.
fn swing(kernel: &Kernel, version: Version, seed: u64) {
    let mut draw = Draw::new(seed);
    let mut pair = Pair::new(kernel, Mode::Auto, version, 1 << 13);
    let counters = pair.counters();
    let start = Instant::now();
    let mut answered = 0;
    while counters.stepped_aside.get() < TIMES {
        assert!(
            start.elapsed() < PATIENCE,
            "the kernel half stepped aside {} times only",
            counters.stepped_aside.get()
        );
        let stream = plain_stream(&mut draw, version);
        send_while_receiving(&mut pair, &stream);
        pair.compare();
        // It returns, each time after twice as many packets, and answers again.
        answered = counters.answered_in_kernel.get();
        let start = Instant::now();
        while counters.answered_in_kernel.get() == answered {
            assert!(start.elapsed() < PATIENCE, "it has not come back");
            for packet in draw_few(&mut draw, version) {
                pair.send(&packet);
                pair.compare();
            }
        }
    }
    assert!(answered > 0);
    pair.finish();
}

/// Draws a long queue, mostly of messages that the kernel would answer.
fn plain_stream(draw: &mut Draw, version: Version) -> Vec<u8> {
    let mut stream = Vec::new();
    while stream.len() < BURST_BYTES {
        draw.plain_packet().encode(version, 1, &mut stream);
        if draw.below(5000) == 0 {
            stream.extend(draw.stream(version, 5));
        }
    }
    stream
}

/// Draws a few packets, one of which the kernel does not answer. Each is sent when the previous one has been answered, as with
/// a short queue.
fn draw_few(draw: &mut Draw, version: Version) -> Vec<Vec<u8>> {
    let mut tagged = Packet::udp(3, 4);
    tagged.frame[12..14].copy_from_slice(&[0x81, 0]);
    let mut packets: Vec<_> = (0..20).map(|_| draw.plain_packet()).collect();
    packets.push(tagged);
    let encoded = packets.iter().map(|packet| {
        let mut message = Vec::new();
        packet.encode(version, 1, &mut message);
        message
    });
    encoded.collect()
}

/// Sends the whole stream while the replies are read.
fn send_while_receiving(pair: &mut Pair, stream: &[u8]) {
    pair.expect(stream);
    let mut socket = pair.real.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| socket.send(stream));
        pair.compare();
    });
}
