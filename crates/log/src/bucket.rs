//! Token buckets: rates with bursts. Time is an argument.

use std::time::{Duration, Instant};

/// The interval of the rate 0, long enough to be without effect.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A burst of tokens, and one more after each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    burst: u32,
    interval: Duration,
}

impl Rate {
    /// Creates a rate of `burst` tokens at once, and one more after each interval.
    pub const fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval }
    }

    /// Creates a rate of `burst` tokens at once, and `rate` more per second.
    pub fn per_second(rate: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1).checked_div(rate);
        Self::new(burst, interval.unwrap_or(YEAR))
    }

    /// Returns the number of tokens of a full bucket.
    pub const fn burst(self) -> u32 {
        self.burst
    }

    /// Returns the interval after which a bucket has one more token.
    pub const fn interval(self) -> Duration {
        self.interval
    }

    /// Multiplies burst and rate by `factor`.
    pub fn times(self, factor: u32) -> Self {
        Self::new(self.burst * factor, self.interval / factor)
    }
}

/// A token bucket, represented by the time at which it will be full.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub fn new(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// Returns `true` if it has a token.
    pub fn has_token(&self, rate: Rate, now: Instant) -> bool {
        self.full_at.saturating_duration_since(now) + rate.interval <= rate.interval * rate.burst
    }

    /// Takes a token; returns `false` if the bucket is empty.
    pub fn take(&mut self, rate: Rate, now: Instant) -> bool {
        let has_token = self.has_token(rate, now);
        if has_token {
            self.full_at = self.full_at.max(now) + rate.interval;
        }
        has_token
    }

    /// Returns `true` if it is full, as an unused one is.
    pub fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let start = Instant::now();
        let (mut bucket, rate) = (TokenBucket::new(start), Rate::per_second(2, 3));
        let mut take = |ms| bucket.take(rate, start + Duration::from_millis(ms));
        let passed: Vec<_> = [
            0, 0, 0, 0, 500, 500, 100, 1_000, 60_000, 60_000, 60_000, 60_000,
        ]
        .into_iter()
        .map(&mut take)
        .collect();
        let (yes, no) = (true, false);
        // The clock of another thread may be behind: at 100 ms no token is added or lost.
        assert_eq!(
            passed,
            [yes, yes, yes, no, yes, no, no, yes, yes, yes, yes, no]
        );
    }

    #[test]
    fn rate_zero_has_only_its_burst() {
        let start = Instant::now();
        let (mut bucket, rate) = (TokenBucket::new(start), Rate::per_second(0, 2));
        let later = start + Duration::from_secs(1_000_000);
        let passed = [start, start, start, later].map(|now| bucket.take(rate, now));
        assert_eq!(passed, [true, true, false, false]);
        assert!(bucket.has_token(Rate::per_second(0, u32::MAX), later));
    }

    #[test]
    fn burst_zero_has_nothing() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(now);
        assert!(!bucket.take(Rate::per_second(10, 0), now));
        assert!(bucket.is_full(now));
    }
}
