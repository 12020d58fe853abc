//! Token buckets of a switch's ports.

use std::collections::BTreeMap;
use std::time::Instant;
use urtica_log::{Rate, TokenBucket};
use urtica_wire::PortNo;

/// One bucket per port of a switch. They belong to the switch's handler, so that a sender above its limit is refused before any
/// state is used that other ports share.
#[derive(Debug)]
pub(crate) struct PortBuckets {
    rate: Rate,
    by_port: BTreeMap<PortNo, TokenBucket>,
}

impl PortBuckets {
    /// Creates buckets that allow each port `burst` at once and `rate` per second.
    pub fn new(rate: u32, burst: u32) -> Self {
        Self {
            rate: Rate::per_second(rate, burst),
            by_port: BTreeMap::new(),
        }
    }

    /// Takes one of a port's tokens, if it has one. The caller has checked that the port exists, and [forgets](Self::forget) a
    /// removed port, so there are at most as many buckets as ports.
    pub fn take(&mut self, port: PortNo, now: Instant) -> bool {
        let new = || TokenBucket::new(now);
        let bucket = self.by_port.entry(port).or_insert_with(new);
        bucket.take(self.rate, now)
    }

    /// Removes the bucket of a removed port.
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

    #[test]
    fn each_port_has_a_bucket_until_it_is_removed() {
        let now = Instant::now();
        let mut buckets = PortBuckets::new(1, 2);
        let mut take = |port| buckets.take(PortNo(port), now);
        assert_eq!([1, 1, 1, 2].map(&mut take), [true, true, false, true]);
        buckets.forget(PortNo(1));
        assert_eq!(buckets.len(), 1);
        assert!(buckets.take(PortNo(1), now), "a new port begins anew");
    }
}
