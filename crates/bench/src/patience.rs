//! Which of the packet-ins that wait are lost, and which have just not had their turn.
//!
//! No clock and no sockets. What one switch waits for says little: a controller that has millions of packet-ins queued
//! comes back to each switch after seconds only, and a load that ends leaves such a queue. So a packet-in is called lost
//! only when it waited long *and* the controller either answered nobody meanwhile, or has passed its switch over:
//! answered more packet-ins of others than can have been queued before it.

use std::sync::atomic::{AtomicU64, Ordering};

/// No packet-in is lost that waited for less. Longer than any working controller was seen to pause.
pub const LOST_AFTER_NS: u64 = 5_000_000_000;

/// How long replies are waited for after the tests, while they keep coming. A million that a slow controller has queued need
/// more than ten seconds.
pub const DRAIN_NS: u64 = 60_000_000_000;

/// When any switch of the whole load, whichever thread has it, last had an answer.
#[derive(Debug, Default)]
pub struct LastAnswer(AtomicU64);

impl LastAnswer {
    /// Notes that there was an answer, or that waiting begins.
    pub fn note(&self, now_ns: u64) {
        // A time that another thread read a moment before may come after it; that moment matters to nobody.
        self.0.store(now_ns, Ordering::Relaxed);
    }

    /// How long there was none.
    pub fn silence_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.0.load(Ordering::Relaxed))
    }
}

/// How a switch stands that waits for replies, beside the others of its thread.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// For how long it had no answer while its oldest packet-in waited.
    pub waited_ns: u64,
    /// For how long nobody had any.
    pub silence_ns: u64,
    /// Answers to others since its own last one.
    pub answered_since: u64,
    /// The most packet-ins that can have been queued before its own, those of all switches of the thread together.
    pub most_queued: u64,
}

impl Wait {
    /// Whether its packet-ins are lost.
    pub fn is_lost(&self) -> bool {
        let nobody_is_answered = self.silence_ns >= LOST_AFTER_NS;
        let passed_over = self.answered_since > self.most_queued;
        self.waited_ns >= LOST_AFTER_NS && (nobody_is_answered || passed_over)
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
    fn behind_a_long_queue_nothing_is_lost() {
        assert!(!wait(LONG_NS, 0, 0).is_lost());
        assert!(!wait(100 * LONG_NS, SHORT_NS, 1000).is_lost());
    }

    #[test]
    fn where_nobody_is_answered_or_others_more_than_once_it_is() {
        assert!(wait(LONG_NS, LONG_NS, 0).is_lost());
        assert!(wait(LONG_NS, 0, 1001).is_lost());
    }

    #[test]
    fn what_was_sent_lately_is_not() {
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
