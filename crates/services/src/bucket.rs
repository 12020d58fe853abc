//! Token buckets: rate limits with bursts. Time is an argument.

use std::collections::BTreeMap;
use std::time::Instant;
use urtica_wire::PortNo;

/// Lets `burst` through at once, and `rate` per second on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    since: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn new(burst: u32, now: Instant) -> Self {
        Self {
            tokens: burst.into(),
            since: now,
        }
    }

    /// Takes one token, if there is one.
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
}

/// One bucket per port of a switch. They belong to the switch's handler, so that a sender above its limit is refused before
/// anything is touched that other ports share.
#[derive(Debug)]
pub(crate) struct PortBuckets {
    rate: u32,
    burst: u32,
    by_port: BTreeMap<PortNo, Bucket>,
}

impl PortBuckets {
    /// Each port may send `burst` at once and `rate` per second.
    pub fn new(rate: u32, burst: u32) -> Self {
        Self {
            rate,
            burst,
            by_port: BTreeMap::new(),
        }
    }

    /// Takes one of a port's tokens, if there is one. The caller has checked that the port exists, and
    /// [forgets](Self::forget) a removed port, so that there are never more buckets than ports.
    pub fn take(&mut self, port: PortNo, now: Instant) -> bool {
        let new = || Bucket::new(self.burst, now);
        let bucket = self.by_port.entry(port).or_insert_with(new);
        bucket.take(self.rate, self.burst, now)
    }

    /// A port was removed.
    pub fn forget(&mut self, port: PortNo) {
        self.by_port.remove(&port);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_port.len()
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
        // Another thread's clock may be behind: at 100 ms nothing is added and nothing is lost.
        assert_eq!(
            passed,
            [yes, yes, yes, no, yes, no, no, yes, yes, yes, yes, no]
        );
    }

    #[test]
    fn each_port_has_its_own_until_it_is_removed() {
        let now = Instant::now();
        let mut buckets = PortBuckets::new(1, 2);
        let mut take = |port| buckets.take(PortNo(port), now);
        assert_eq!([1, 1, 1, 2].map(&mut take), [true, true, false, true]);
        buckets.forget(PortNo(1));
        assert_eq!(buckets.len(), 1);
        assert!(buckets.take(PortNo(1), now), "a new port begins anew");
    }
}
