//! Counters of groups and buckets.

use crate::linked_counters::LinkedCounters;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use urtica_wire::BucketCounter;

/// Packets and bytes of a group, or of one of its buckets.
///
/// Thread-safety: any thread counts, any reads; the two numbers need not agree with each other at any moment.
#[derive(Debug, Default)]
pub(crate) struct GroupCounters {
    /// Counted by the plain form.
    packets: AtomicU64,
    bytes: AtomicU64,
    /// Counted by the compiled form.
    pub linked: LinkedCounters,
}

impl GroupCounters {
    /// Creates counters that start with these numbers.
    pub fn beginning_with(counted: &BucketCounter) -> Self {
        Self {
            packets: AtomicU64::new(counted.packet_count),
            bytes: AtomicU64::new(counted.byte_count),
            linked: LinkedCounters::default(),
        }
    }

    /// Counts a packet of `bytes` in the plain form.
    pub fn count(&self, bytes: usize) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The numbers as they are, of both forms together.
    pub fn read(&self) -> BucketCounter {
        let linked = self.linked.counts();
        BucketCounter {
            packet_count: self.packets.load(Relaxed) + linked.packets,
            byte_count: self.bytes.load(Relaxed) + linked.bytes,
        }
    }

    /// Takes over the counts of the compiled form, which no longer counts.
    pub fn unlink(&self) {
        let linked = self.linked.counts();
        self.linked.clear();
        self.packets.fetch_add(linked.packets, Relaxed);
        self.bytes.fetch_add(linked.bytes, Relaxed);
    }
}
