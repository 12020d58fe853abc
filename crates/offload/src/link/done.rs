//! The kernel's counts of its work for a connection.

use crate::session::Shared;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use urtica_controller::Reclaimed;

/// Counts of the work done in the kernel.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    answered: u64,
    replies: u64,
    pub(super) reply_bytes: u64,
    passed: u64,
    fell_back: u64,
}

impl Done {
    pub(super) fn of(shared: &Shared) -> Self {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        Self {
            answered: get(&shared.answered),
            replies: get(&shared.replies_sent),
            reply_bytes: get(&shared.reply_bytes),
            passed: get(&shared.passed_other),
            fell_back: get(&shared.passed_long) + get(&shared.passed_full),
        }
    }

    /// Returns the counts that an earlier program stored.
    pub(super) fn counted(shared: &Shared) -> Self {
        let [answered, replies, reply_bytes, passed, fell_back] =
            shared.counted.each_ref().map(|count| count.load(Relaxed));
        Self {
            answered,
            replies,
            reply_bytes,
            passed,
            fell_back,
        }
    }

    /// Stores the counts for the next program.
    pub(super) fn count(self, shared: &Shared) {
        let counts = [
            self.answered,
            self.replies,
            self.reply_bytes,
            self.passed,
            self.fell_back,
        ];
        for (counted, count) in shared.counted.iter().zip(counts) {
            counted.store(count, Relaxed);
        }
    }

    /// Returns the work done since `before`.
    pub(super) fn since(self, before: Self, xid: u32) -> Reclaimed {
        Reclaimed {
            xid,
            answered: self.answered.saturating_sub(before.answered),
            others: 0,
            sent: self.replies.saturating_sub(before.replies),
            sent_bytes: self.reply_bytes.saturating_sub(before.reply_bytes),
            passed: self.passed.saturating_sub(before.passed),
            fell_back: self.fell_back.saturating_sub(before.fell_back),
        }
    }
}
