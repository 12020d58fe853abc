//! In `auto`, the kernel answers only short segments of a switch on this machine; order and replies are unchanged.

use crate::packets::{Draw, segment_of};
use crate::pair::Pair;
use crate::support::kernel;
use crate::switch::{PATIENCE, headers};
use std::time::Instant;
use urtica_offload::{Kernel, Mode};
use urtica_wire::Version;

/// The maximum length of a segment that `auto` leaves to the kernel.
const LIMIT: usize = 384;

/// The minimum number of segments of each kind.
const SEGMENTS: usize = 100;

/// Number of rounds in which the kernel answers.
const ROUNDS: usize = 4;

#[test]
fn the_kernel_answers_segments_up_to_the_limit() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut segments = Segments::new(&kernel, Mode::Auto, version);
        segments.send_until_answered_in_kernel(LIMIT);
        assert_eq!(segments.fell_back(), 0);
        segments.send_until_passed(LIMIT + 1);
        // The kernel half may have stepped aside; it returns for short segments.
        segments.send_until_answered_in_kernel(110);
        segments.pair.finish();
    }
}

#[test]
fn in_kernel_mode_the_kernel_answers_longer_segments_too() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut segments = Segments::new(&kernel, Mode::Kernel, version);
        segments.send_until_answered_in_kernel(LIMIT + 1);
        segments.send_until_answered_in_kernel(16 << 10);
        assert_eq!(segments.fell_back(), 0);
        segments.send_until_passed((16 << 10) + 1);
        segments.pair.finish();
    }
}

/// Segments around the limit, which are cut in the middle of messages, are sent several at a time.
#[test]
fn segments_around_the_limit_are_answered_in_order() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut segments = Segments::new(&kernel, Mode::Auto, version);
        let mut draw = Draw::new(12);
        for _ in 0..ROUNDS {
            // The kernel is the owner when the first of these arrives.
            segments.send_until_answered_in_kernel(110);
            segments.send(LIMIT + 1);
            for _ in 0..SEGMENTS {
                segments.send_in_pieces(&mut draw);
            }
        }
        assert!(segments.fell_back() > 0);
        segments.pair.finish();
    }
}

/// A connection on which segments are sent, and its state.
struct Segments {
    pair: Pair,
    version: Version,
    packet_ins: u64,
}

impl Segments {
    fn new(kernel: &Kernel, mode: Mode, version: Version) -> Self {
        Self {
            pair: Pair::new(kernel, mode, version, 1 << 12),
            version,
            packet_ins: 0,
        }
    }

    /// Sends a segment of this number of bytes, and reads its answer.
    fn send(&mut self, bytes: usize) {
        let segment = segment_of(bytes, self.version);
        assert_eq!(segment.len(), bytes);
        self.packet_ins += headers(&segment).count() as u64;
        self.pair.send(&segment);
        self.pair.compare();
    }

    /// Sends segments of this number of bytes, until the kernel has answered some.
    fn send_until_answered_in_kernel(&mut self, bytes: usize) {
        let counters = self.pair.counters();
        let before = counters.answered_in_kernel.get();
        let start = Instant::now();
        let mut count = 0;
        while count < SEGMENTS || counters.answered_in_kernel.get() == before {
            assert!(start.elapsed() < PATIENCE, "{bytes} bytes are passed");
            self.send(bytes);
            count += 1;
        }
    }

    /// Sends segments of this number of bytes until the kernel has passed one. For that, it must be the owner when one arrives,
    /// which it is only a moment after the program's last reply.
    fn send_until_passed(&mut self, bytes: usize) {
        let before = self.fell_back();
        let start = Instant::now();
        while self.fell_back() == before {
            assert!(start.elapsed() < PATIENCE, "{bytes} bytes are answered");
            self.send_until_answered_in_kernel(110);
            self.send(bytes);
        }
    }

    /// Returns the number of segments that were passed because they were long. Waits until all are counted, since the kernel's
    /// work is counted only from time to time.
    fn fell_back(&self) -> u64 {
        let counters = self.pair.counters();
        let start = Instant::now();
        while counters.packet_ins.get() < self.packet_ins {
            assert!(start.elapsed() < PATIENCE, "not all is counted");
            std::thread::yield_now();
        }
        counters.fell_back.get()
    }

    /// Sends some packets in pieces that are shorter and longer than the limit.
    fn send_in_pieces(&mut self, draw: &mut Draw) {
        let mut stream = Vec::new();
        for xid in 0..60 {
            draw.plain_packet().encode(self.version, xid, &mut stream);
        }
        self.packet_ins += 60;
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let length = draw.below(2 * LIMIT as u32) as usize + 1;
            let (piece, after) = rest.split_at(length.min(rest.len()));
            self.pair.send(piece);
            rest = after;
            if draw.below(3) == 0 {
                self.pair.compare();
            }
        }
        self.pair.compare();
    }
}
