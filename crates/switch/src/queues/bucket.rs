//! A token bucket that may be overdrawn by one frame.
//!
//! **How.** Tokens are counted in bits times 10⁹, so that a rate in bits per second times a time in nanoseconds is exact. A
//! frame of any length may leave while the balance is not negative, and its length is subtracted afterwards. So a frame
//! that is longer than the burst can also leave, and the rate is still kept.

use std::time::Duration;

/// The time for which a bucket accumulates tokens.
const BURST: Duration = Duration::from_millis(5);

/// Minimum burst for a minimum rate, in bytes. A queue must not lose tokens while frames of others leave, which may last
/// longer than [`BURST`] if they are long and the port is slow.
const PATIENT_BURST: usize = 2 * 9018;

/// The balance of one bit.
const BIT: i128 = 1_000_000_000;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    rate_bps: u64,
    /// Maximum balance.
    burst: i128,
    /// The balance at the time [`TokenBucket::at`].
    balance: i128,
    at: Duration,
}

impl TokenBucket {
    /// Creates a full bucket. The rate must not be 0.
    pub fn new(rate_bps: u64, now: Duration) -> Self {
        let burst = earned(rate_bps, BURST);
        Self {
            rate_bps,
            burst,
            balance: burst,
            at: now,
        }
    }

    /// Creates a bucket for a minimum rate, which starts empty.
    pub fn patient(rate_bps: u64, now: Duration) -> Self {
        Self {
            burst: earned(rate_bps, BURST).max(bits(PATIENT_BURST)),
            balance: 0,
            ..Self::new(rate_bps, now)
        }
    }

    /// Returns its rate, in bits a second.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Returns whether a frame may leave now.
    pub fn allows(&self, now: Duration) -> bool {
        self.balance_at(now) >= 0
    }

    /// Returns the earliest time at which a frame may leave.
    pub fn ready_at(&self) -> Duration {
        let debt = (-self.balance).max(0) as u128;
        let wait_ns = debt.div_ceil(u128::from(self.rate_bps));
        let wait_ns = u64::try_from(wait_ns).unwrap_or(u64::MAX);
        self.at.saturating_add(Duration::from_nanos(wait_ns))
    }

    /// Subtracts a frame of this length.
    pub fn take(&mut self, bytes: usize, now: Duration) {
        self.balance = self.balance_at(now) - bits(bytes);
        self.at = self.at.max(now);
    }

    fn balance_at(&self, now: Duration) -> i128 {
        let elapsed = now.saturating_sub(self.at);
        let balance = self.balance.saturating_add(earned(self.rate_bps, elapsed));
        balance.min(self.burst)
    }
}

fn earned(rate_bps: u64, time: Duration) -> i128 {
    let earned = u128::from(rate_bps).saturating_mul(time.as_nanos());
    i128::try_from(earned).unwrap_or(i128::MAX)
}

fn bits(bytes: usize) -> i128 {
    bytes as i128 * 8 * BIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number of frames of this length that leave until `end`, if one is always waiting.
    fn pass(bucket: &mut TokenBucket, bytes: usize, end: Duration) -> u64 {
        let mut count = 0;
        while bucket.ready_at() <= end {
            let now = bucket.ready_at();
            assert!(bucket.allows(now));
            bucket.take(bytes, now);
            count += 1;
        }
        count
    }

    #[test]
    fn frames_longer_than_the_burst_leave_at_the_rate() {
        let mut bucket = TokenBucket::new(8000, Duration::ZERO);
        let passed = pass(&mut bucket, 1000, Duration::from_secs(100));
        assert_eq!(
            passed, 101,
            "a frame of 1,000 bytes a second, and one in advance"
        );
    }

    #[test]
    fn accumulated_tokens_are_bounded() {
        let mut bucket = TokenBucket::new(8_000_000, Duration::ZERO);
        let late = Duration::from_secs(3600);
        let mut count = 0;
        while bucket.allows(late) {
            bucket.take(100, late);
            count += 1;
        }
        assert_eq!(count, 51, "5 ms of 1 MB/s, and the frame that overdraws");
        assert!(bucket.ready_at() > late);
    }

    proptest! {
        /// Whatever the rate, exactly this rate passes.
        #[test]
        fn the_rate_is_exact(rate_bps in 1000_u64..=100_000_000_000, bytes in 60_usize..9000) {
            let frame_bits = bytes as u64 * 8;
            // The time for a thousand frames.
            let end = Duration::from_nanos((u128::from(frame_bits) * 1_000 * 1_000_000_000 / u128::from(rate_bps)) as u64);
            let mut bucket = TokenBucket::new(rate_bps, Duration::ZERO);
            // This uses up the accumulated tokens, which would otherwise need long to be used.
            let saved = u128::from(rate_bps) * BURST.as_nanos() / 8_000_000_000;
            bucket.take(saved as usize, Duration::ZERO);
            let passed = pass(&mut bucket, bytes, end);
            prop_assert!((999..=1002).contains(&passed), "{passed} frames");
        }
    }
}
