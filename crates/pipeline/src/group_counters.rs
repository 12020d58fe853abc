//! Counters of groups and buckets.

use crate::linked_counters::LinkedCounters;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use urtica_wire::BucketCounter;

/// The packets and bytes of a group, or of one of its buckets.
///
/// Thread-safety: any thread may count and read; the two numbers may be inconsistent with each other at any time.
#[derive(Debug, Default)]
pub(crate) struct GroupCounters {
    /// The packets that the plain form counted.
    packets: AtomicU64,
    bytes: AtomicU64,
    /// The counts of the compiled form.
    pub linked: LinkedCounters,
}

impl GroupCounters {
    /// Creates counters with these initial values.
    pub fn beginning_with(counted: &BucketCounter) -> Self {
        Self {
            packets: AtomicU64::new(counted.packet_count),
            bytes: AtomicU64::new(counted.byte_count),
            linked: LinkedCounters::default(),
        }
    }

    /// Counts a packet of `bytes` for the plain form.
    pub fn count(&self, bytes: usize) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns the current counts of both forms together.
    pub fn read(&self) -> BucketCounter {
        let linked = self.linked.counts();
        BucketCounter {
            packet_count: self.packets.load(Relaxed) + linked.packets,
            byte_count: self.bytes.load(Relaxed) + linked.bytes,
        }
    }

    /// Takes over the counts of the compiled form, which must no longer count.
    pub fn unlink(&self) {
        let linked = self.linked.counts();
        self.linked.clear();
        self.packets.fetch_add(linked.packets, Relaxed);
        self.bytes.fetch_add(linked.bytes, Relaxed);
    }
}
