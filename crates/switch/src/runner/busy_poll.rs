//! Busy polling: whether a thread whose ports have no frames polls or sleeps.
//!
//! **Why.** Under load, frames arrive about ten microseconds apart. Sleeping in between costs a system call, a wake-up and a
//! processor's exit from its idle state, which is more than polling.
//!
//! **How.** A pause starts when the ports have no frames. The thread polls them during a pause if half of the last
//! `REMEMBERED` pauses were short, for at most `limit`; then it sleeps. In a quiet network all pauses are long, so the thread
//! does not poll.
//!
//! **Sending.** A thread that polls often receives frames one by one. It holds the resulting output, so that more can be sent
//! by one system call, but not for long, and not when it is about to sleep ([`BusyPoll::hold`]).
//!
//! **Cost.** At most `limit` of a processor's time for each pause, and none if no frames arrive, since an endless pause is
//! one pause.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

/// Default limit on polling during a pause.
const DEFAULT_LIMIT: Duration = Duration::from_micros(50);

/// Number of pauses that are remembered.
const REMEMBERED: u32 = u8::BITS;

/// A pause is short if it is at most this multiple of the limit.
const SHORT: u32 = 2;

/// Frames wait for others for at most the limit divided by this.
const HOLDS: u32 = 4;

/// One thread's record of the pauses between its frames.
#[derive(Clone, Debug)]
pub(super) struct BusyPoll {
    limit: Duration,
    /// The time when frames last arrived.
    last_input: Duration,
    /// Whether the ports have had no frames since.
    is_pausing: bool,
    /// Whether each of the last pauses was short, the latest in the lowest bit.
    were_short: u8,
}

impl BusyPoll {
    /// Creates a state that polls for at most `limit`, and never if that is zero.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            last_input: Duration::ZERO,
            is_pausing: false,
            were_short: 0,
        }
    }

    /// Notes whether polling the ports at this time returned frames. Returns whether to poll again instead of sleeping.
    pub fn keeps_polling(&mut self, has_input: bool, now: Duration) -> bool {
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

    /// Returns how long frames may wait to be sent together with others; zero if the thread is about to sleep.
    pub fn hold(&self, keeps_polling: bool) -> Duration {
        match keeps_polling {
            true => self.limit / HOLDS,
            false => Duration::ZERO,
        }
    }

    fn is_worthwhile(&self) -> bool {
        self.were_short.count_ones() >= REMEMBERED / 2
    }
}

/// The default for most machines. With one processor, there is no polling, since the senders need it.
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
