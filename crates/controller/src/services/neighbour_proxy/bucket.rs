//! How much may pass in how much time: a token bucket. Time is an argument.

use std::time::Instant;

/// Lets `burst` pass at once, and `rate` a second in the long run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: f64,
    since: Instant,
}

impl Bucket {
    /// A full one.
    pub fn new(burst: u32, now: Instant) -> Self {
        Self {
            tokens: burst.into(),
            since: now,
        }
    }

    /// Takes one token out, if there is one.
    pub fn take(&mut self, rate: u32, burst: u32, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.since).as_secs_f64();
        self.tokens = (self.tokens + elapsed * f64::from(rate)).min(burst.into());
        self.since = self.since.max(now);
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }

    /// Puts one back that was taken for nothing.
    pub fn put_back(&mut self) {
        self.tokens += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(3, start);
        let mut take = |ms| bucket.take(2, 3, start + Duration::from_millis(ms));
        let passed: Vec<_> = [
            0, 0, 0, 0, 500, 500, 100, 1_000, 60_000, 60_000, 60_000, 60_000,
        ]
        .into_iter()
        .map(&mut take)
        .collect();
        let (yes, no) = (true, false);
        // The clock of another thread may be behind: at 100 ms nothing is gained and nothing lost.
        assert_eq!(
            passed,
            [yes, yes, yes, no, yes, no, no, yes, yes, yes, yes, no]
        );
    }
}
