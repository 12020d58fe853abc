//! Distinguishes lost packet-ins from packet-ins that are still queued.
//!
//! It has no clock and no sockets. A switch's waiting packet-ins say little on their own: a controller that has millions of
//! packet-ins queued returns to each switch only after seconds, and a load that ends leaves such a queue. So a packet-in
//! counts as lost only if it waited long *and* the controller either answered no packet-in during that time, or has skipped
//! its switch: it has answered more packet-ins of others than can have been queued before it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The minimum time before a packet-in counts as lost. Longer than the pauses observed in any working controller.
pub const LOST_AFTER_NS: u64 = 5_000_000_000;

/// The maximum wait for replies after the tests, while they keep arriving. A slow controller may need more than ten seconds
/// for a million queued packet-ins.
pub const DRAIN_NS: u64 = 60_000_000_000;

/// The time of the last answer to any switch of the whole load, of any thread.
#[derive(Debug, Default)]
pub struct LastAnswer(AtomicU64);

impl LastAnswer {
    /// Records an answer, or the start of waiting.
    pub fn note(&self, now_ns: u64) {
        // Another thread's slightly earlier time may be stored later; the difference does not matter.
        self.0.store(now_ns, Ordering::Relaxed);
    }

    /// Returns the time since the last answer.
    pub fn silence_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.0.load(Ordering::Relaxed))
    }
}

/// The progress of a waiting switch, relative to the others of its thread.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The time without an answer for it while its oldest packet-in waited.
    pub waited_ns: u64,
    /// The time without an answer for any switch.
    pub silence_ns: u64,
    /// Answers to other switches since its own last one.
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
