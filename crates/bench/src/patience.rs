//! Distinguishes lost packet-ins from queued ones.
//!
//! It has no clock and no sockets. The waiting packet-ins of a single switch are not sufficient: a controller that has queued
//! millions of packet-ins returns to each switch only after seconds, and leaves such a queue when a load ends. So a packet-in
//! counts as lost only if it waited long *and* the controller either answered no packet-in during that time, or has skipped its
//! switch: it has answered more packet-ins of others than can have been queued before it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The minimum age of a lost packet-in, which is longer than the pauses observed in any working controller.
pub const LOST_AFTER_NS: u64 = 5_000_000_000;

/// The maximum time to wait for replies after the tests, while they keep arriving. A slow controller may need more than ten
/// seconds for a million queued packet-ins.
pub const DRAIN_NS: u64 = 60_000_000_000;

/// The time of the last answer to any switch of the whole load, in any thread.
#[derive(Debug, Default)]
pub struct LastAnswer(AtomicU64);

impl LastAnswer {
    /// Records an answer, or the start of waiting.
    pub fn note(&self, now_ns: u64) {
        // Another thread's slightly earlier time may be stored later, but the difference does not matter.
        self.0.store(now_ns, Ordering::Relaxed);
    }

    /// Returns the time since the last answer.
    pub fn silence_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.0.load(Ordering::Relaxed))
    }
}

/// The progress of a waiting switch, compared with the others of its thread.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The time without an answer to it while its oldest packet-in was waiting.
    pub waited_ns: u64,
    /// The time without an answer to any switch.
    pub silence_ns: u64,
    /// The number of answers to other switches since the last answer to this one.
    pub answered_since: u64,
    /// The maximum number of packet-ins that can have been queued before its own, over all switches of the thread.
    pub most_queued: u64,
}

impl Wait {
    /// Returns `true` if its packet-ins count as lost.
    pub fn is_lost(&self) -> bool {
        let none_is_answered = self.silence_ns >= LOST_AFTER_NS;
        let skipped = self.answered_since > self.most_queued;
        self.waited_ns >= LOST_AFTER_NS && (none_is_answered || skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_NS: u64 = LOST_AFTER_NS;
    const SHORT_NS: u64 = LOST_AFTER_NS - 1;

    fn wait(waited_ns: u64, silence_ns: u64, answered_since: u64) -> Wait {
        Wait {
            waited_ns,
            silence_ns,
            answered_since,
            most_queued: 1000,
        }
    }

    #[test]
    fn queued_packet_ins_are_not_lost() {
        assert!(!wait(LONG_NS, 0, 0).is_lost());
        assert!(!wait(100 * LONG_NS, SHORT_NS, 1000).is_lost());
    }

    #[test]
    fn lost_after_silence_or_when_skipped() {
        assert!(wait(LONG_NS, LONG_NS, 0).is_lost());
        assert!(wait(LONG_NS, 0, 1001).is_lost());
    }

    #[test]
    fn recently_sent_packet_ins_are_not_lost() {
        assert!(!wait(SHORT_NS, LONG_NS, 5000).is_lost());
    }

    #[test]
    fn any_answer_ends_the_silence() {
        let last_answer = LastAnswer::default();
        last_answer.note(100);
        assert_eq!(last_answer.silence_ns(150), 50);
        last_answer.note(140);
        assert_eq!(
            (last_answer.silence_ns(150), last_answer.silence_ns(130)),
            (10, 0)
        );
    }
}
