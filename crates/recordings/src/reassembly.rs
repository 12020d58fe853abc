//! Reassembles one direction of a TCP connection.
//!
//! Skips retransmissions, and keeps segments that arrive early. Bytes count as lost if they are still missing after the other
//! side has acknowledged them repeatedly, if too many bytes wait for them, or if the capture ends.

use crate::segment::Segment;
use std::collections::BTreeMap;

/// Maximum number of bytes that wait for an earlier segment before it is considered lost.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The overhead of a waiting segment, which limits the number of small segments.
const WAITING_SEGMENT_BYTES: usize = 64;

/// Maximum number of acknowledgements of bytes that have not arrived: packets from different receive queues are captured
/// slightly out of order.
const ACKNOWLEDGED_TIMES: u32 = 16;

/// The position of the first byte, so that earlier bytes have a position, too.
const FIRST: u64 = 1 << 32;

/// The next piece of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The bytes of a segment, or the new part of them.
    Bytes(&'a [u8]),
    /// This number of bytes is missing.
    Lost(u64),
}

/// The state of one direction.
#[derive(Default)]
pub struct Reassembly {
    /// The SYN's sequence number, if the connection's start was captured.
    syn: Option<u32>,
    /// The position of the next byte, once a first segment has arrived.
    next: Option<u64>,
    /// The first byte not acknowledged by the other side.
    acknowledged: u64,
    /// Segments that arrived early, by position, from `next` on.
    waiting: BTreeMap<u64, Vec<u8>>,
    waiting_bytes: usize,
    /// Number of times that the next byte was acknowledged without having arrived.
    missed: u32,
}

impl Reassembly {
    /// Returns `true` if a segment starts another connection between these endpoints.
    pub fn is_new_connection(&self, segment: &Segment<'_>) -> bool {
        segment.starts && self.next.is_some() && self.syn != Some(segment.seq)
    }

    /// Handles a segment, and delivers the next bytes of the stream.
    pub fn take(&mut self, segment: &Segment<'_>, give: &mut dyn FnMut(Piece<'_>)) {
        let mut seq = segment.seq;
        if segment.starts {
            self.syn = Some(seq);
            seq = seq.wrapping_add(1);
        }
        if segment.payload.is_empty() && segment.cut == 0 && !segment.starts {
            return;
        }
        self.next.get_or_insert(FIRST + u64::from(seq));
        let Some(at) = self.place(seq) else {
            return;
        };
        self.put(at, segment.payload);
        if segment.cut > 0 {
            // An empty segment at the end of truncated data: the bytes up to there are missing.
            self.put(
                at + segment.payload.len() as u64 + u64::from(segment.cut),
                &[],
            );
        }
        self.give_ready(give);
        while self.waiting_bytes > WAITING_BYTES_MAX {
            self.pass_gap(give);
        }
    }

    /// Handles the other side's acknowledgement of all bytes before this number.
    pub fn acknowledge(&mut self, ack: u32, give: &mut dyn FnMut(Piece<'_>)) {
        let (Some(at), Some(next)) = (self.place(ack), self.next) else {
            return;
        };
        self.acknowledged = self.acknowledged.max(at);
        let gap = self.waiting.first_key_value().map(|(&first, _)| first);
        if gap.is_some_and(|first| first <= self.acknowledged && first > next) {
            self.missed += 1;
            if self.missed >= ACKNOWLEDGED_TIMES {
                self.pass_gap(give);
            }
        }
    }

    /// Delivers the waiting bytes at the end of the capture.
    pub fn finish(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        while !self.waiting.is_empty() {
            self.pass_gap(give);
        }
        let lost = self
            .acknowledged
            .saturating_sub(self.next.unwrap_or(u64::MAX));
        // A FIN occupies a sequence number, too.
        if lost > 1 {
            give(Piece::Lost(lost));
        }
    }

    /// Returns the position of a byte by its sequence number: the nearest to the next byte's.
    fn place(&self, seq: u32) -> Option<u64> {
        let next = self.next?;
        let ahead = seq.wrapping_sub(next as u32) as i32;
        Some(next.saturating_add_signed(ahead.into()))
    }

    /// Keeps the new part of some bytes until their turn.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let next = self.next.unwrap_or(at);
        let known = next.saturating_sub(at) as usize;
        let Some(new) = bytes.get(known..) else {
            return;
        };
        let kept = self.waiting.entry(at.max(next)).or_insert_with(|| {
            self.waiting_bytes += WAITING_SEGMENT_BYTES;
            Vec::new()
        });
        if kept.len() < new.len() {
            self.waiting_bytes += new.len() - kept.len();
            *kept = new.to_vec();
        }
    }

    /// Delivers the waiting segments that are next in the stream.
    fn give_ready(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        while let (Some(first), Some(next)) = (self.waiting.first_entry(), self.next) {
            if *first.key() > next {
                break;
            }
            let (at, bytes) = first.remove_entry();
            self.waiting_bytes -= bytes.len() + WAITING_SEGMENT_BYTES;
            if let Some(new) = bytes
                .get((next - at) as usize..)
                .filter(|new| !new.is_empty())
            {
                self.next = Some(next + new.len() as u64);
                self.missed = 0;
                give(Piece::Bytes(new));
            }
        }
    }

    /// Considers the bytes before the first waiting segment lost.
    fn pass_gap(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        if let (Some((&first, _)), Some(next)) = (self.waiting.first_key_value(), self.next) {
            if first > next {
                give(Piece::Lost(first - next));
            }
            self.next = Some(first.max(next));
            self.missed = 0;
            self.give_ready(give);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(seq: u32, payload: &[u8]) -> Segment<'_> {
        Segment {
            seq,
            payload,
            ..Segment::default()
        }
    }

    /// Returns the output for these segments and the end: bytes as text, lost bytes as their number.
    fn given(segments: &[Segment<'_>]) -> String {
        let (mut reassembly, mut told) = (Reassembly::default(), String::new());
        let mut give = |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => told.push_str(&String::from_utf8_lossy(bytes)),
            Piece::Lost(count) => told.push_str(&format!("<{count}>")),
        };
        for segment in segments {
            reassembly.take(segment, &mut give);
        }
        reassembly.finish(&mut give);
        told
    }

    #[test]
    fn segments_are_put_in_order() {
        let pieces = [data(10, b"ab"), data(14, b"ef"), data(12, b"cd")];
        assert_eq!(given(&pieces), "abcdef");
        let again = [data(10, b"ab"), data(10, b"ab"), data(11, b"bcd")];
        assert_eq!(given(&again), "abcd");
        assert_eq!(given(&[data(u32::MAX, b"ab"), data(1, b"cd")]), "abcd");
    }

    #[test]
    fn a_shorter_copy_does_not_replace_a_longer_one() {
        let pieces = [
            data(10, b"ab"),
            data(14, b"efgh"),
            data(14, b"e"),
            data(12, b"cd"),
        ];
        assert_eq!(given(&pieces), "abcdefgh");
    }

    #[test]
    fn bytes_after_a_lost_segment_are_delivered_at_the_end() {
        assert_eq!(given(&[data(10, b"ab"), data(15, b"fg")]), "ab<3>fg");
    }

    #[test]
    fn a_truncated_segment_leaves_a_gap() {
        let cut = Segment {
            cut: 3,
            ..data(10, b"ab")
        };
        assert_eq!(given(&[cut, data(15, b"fg")]), "ab<3>fg");
        assert_eq!(given(&[cut]), "ab<3>");
    }

    #[test]
    fn the_syn_has_a_number_and_may_carry_bytes() {
        let syn = Segment {
            starts: true,
            ..data(9, b"")
        };
        assert_eq!(given(&[syn, data(10, b"ab")]), "ab");
        assert_eq!(given(&[syn, data(12, b"cd")]), "<2>cd");
        let fast_open = Segment {
            payload: b"ab",
            ..syn
        };
        assert_eq!(given(&[fast_open, data(12, b"cd")]), "abcd");
    }

    #[test]
    fn new_connections_are_distinguished_from_repeated_syns() {
        let syn = |seq| Segment {
            starts: true,
            ..data(seq, b"")
        };
        let mut reassembly = Reassembly::default();
        assert!(!reassembly.is_new_connection(&syn(9)));
        reassembly.take(&syn(9), &mut |_| ());
        assert!(!reassembly.is_new_connection(&syn(9)));
        assert!(reassembly.is_new_connection(&syn(90)));
    }

    #[test]
    fn acknowledged_bytes_that_never_arrive_are_lost() {
        let (mut reassembly, mut lost) = (Reassembly::default(), Vec::new());
        reassembly.take(&data(10, b"ab"), &mut |_| ());
        reassembly.take(&data(15, b"fg"), &mut |_| ());
        let mut give = |piece: Piece<'_>| lost.push(format!("{piece:?}"));
        for _ in 0..100 {
            reassembly.acknowledge(12, &mut give);
        }
        for _ in 0..ACKNOWLEDGED_TIMES {
            reassembly.acknowledge(17, &mut give);
        }
        assert_eq!(lost, ["Lost(3)", "Bytes([102, 103])"]);
    }

    #[test]
    fn a_missing_end_is_detected_by_its_acknowledgement() {
        let lost_at_the_end = |ack| {
            let (mut reassembly, mut lost) = (Reassembly::default(), None);
            reassembly.take(&data(10, b"ab"), &mut |_| ());
            reassembly.acknowledge(ack, &mut |_| ());
            reassembly.finish(&mut |piece| match piece {
                Piece::Lost(count) => lost = Some(count),
                Piece::Bytes(_) => {}
            });
            lost
        };
        assert_eq!(lost_at_the_end(12), None);
        assert_eq!(lost_at_the_end(13), None, "the end of the connection");
        assert_eq!(lost_at_the_end(20), Some(8));
    }

    #[test]
    fn waiting_segments_are_bounded() {
        let (mut reassembly, mut lost) = (Reassembly::default(), 0);
        reassembly.take(&data(10, b"ab"), &mut |_| ());
        for number in 0..100_000 {
            reassembly.take(&data(20 + 2 * number, b"x"), &mut |piece| {
                lost += u64::from(matches!(piece, Piece::Lost(_)));
            });
        }
        assert!(reassembly.waiting_bytes <= WAITING_BYTES_MAX);
        assert!(lost > 0);
    }

    proptest! {
        #[test]
        fn any_order_gives_the_same_bytes(
            start: u32,
            cuts in proptest::collection::vec(1usize..9, 1..8),
            order in proptest::collection::vec(any::<u16>(), 8),
        ) {
            let total: usize = cuts.iter().sum();
            let all: Vec<u8> = (0..total).map(|byte| b'a' + (byte % 26) as u8).collect();
            let mut at = 0;
            let mut segments: Vec<_> = cuts.iter().map(|&length| {
                let segment = data(start.wrapping_add(at as u32), &all[at..at + length]);
                at += length;
                segment
            }).collect();
            // The first segment sets the start of the stream.
            let mut keys = order.into_iter();
            segments[1..].sort_by_cached_key(|_| keys.next());
            prop_assert_eq!(given(&segments).into_bytes(), all);
        }
    }
}
