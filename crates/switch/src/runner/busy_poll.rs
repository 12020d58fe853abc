//! Whether a thread whose ports have nothing asks them again at once, or sleeps (busy polling).
//!
//! **Why.** Under load frames come some ten microseconds apart. To sleep in between costs a system call, a wake-up and the way
//! of a processor out of its idle state, more than to wait.
//!
//! **How.** A pause begins when the ports have nothing. It is spent asking them as long as half of the last `REMEMBERED`
//! pauses were short, for `limit` at most; then the thread sleeps. Who sleeps through the pauses of a quiet network has seen
//! long ones alone, and does not ask.
//!
//! **Sending.** Who asks often gets frames one by one. What comes of them waits for others to leave with, by one system call,
//! but not for long, and not when the thread is about to sleep ([`BusyPoll::hold`]).
//!
//! **Cost.** At most `limit` of a processor's time for a pause, and nothing where no frames come: a pause without an end is
//! one pause.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

/// How long a pause is spent asking, unless somebody says otherwise.
const DEFAULT_LIMIT: Duration = Duration::from_micros(50);

/// How many pauses are remembered.
const REMEMBERED: u32 = u8::BITS;

/// A pause is short that asking would have bridged for half of its length.
const SHORT: u32 = 2;

/// Frames wait for others for this part of the limit at most.
const HOLDS: u32 = 4;

/// What one thread remembers of the pauses between its frames.
#[derive(Clone, Debug)]
pub(super) struct BusyPoll {
    limit: Duration,
    /// When frames came last.
    last_input: Duration,
    /// Whether the ports have had nothing since.
    is_pausing: bool,
    /// The last pauses, the latest lowest: whether they were short.
    were_short: u8,
}

impl BusyPoll {
    /// Asks for so long; with zero, never.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            last_input: Duration::ZERO,
            is_pausing: false,
            were_short: 0,
        }
    }

    /// Takes in whether frames came when the ports were asked, at this time. Returns whether to ask them again rather than
    /// sleep.
    pub fn goes_on(&mut self, has_input: bool, now: Duration) -> bool {
        let since_input = now.saturating_sub(self.last_input);
        if !has_input {
            self.is_pausing = true;
            return self.is_worthwhile() && since_input < self.limit;
        }
        if std::mem::take(&mut self.is_pausing) {
            let is_short = since_input < self.limit * SHORT;
            self.were_short = self.were_short << 1 | u8::from(is_short);
        }
        self.last_input = now;
        self.is_worthwhile() && !self.limit.is_zero()
    }

    /// How long frames may wait for others to be sent with: not when the thread is about to sleep.
    pub fn hold(&self, goes_on: bool) -> Duration {
        match goes_on {
            true => self.limit / HOLDS,
            false => Duration::ZERO,
        }
    }

    fn is_worthwhile(&self) -> bool {
        self.were_short.count_ones() >= REMEMBERED / 2
    }
}

/// As is best for most: not on a machine with one processor, where those who send need it.
impl Default for BusyPoll {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::new(match processors {
            1 => Duration::ZERO,
            _ => DEFAULT_LIMIT,
        })
    }
}

#[cfg(test)]
mod tests;
