//! Counters of flow entries (1.3.5 section 5.8).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use urtica_wire::FlowModFlags;

/// An entry's counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// The number of packets matched.
    pub packets: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The time of the last match, in nanoseconds of the caller's clock.
    pub last_used_ns: u64,
}

impl EntryCounts {
    /// Returns the sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            last_used_ns: self.last_used_ns.max(other.last_used_ns),
        }
    }

    /// Returns the difference from `earlier`, or zero if counts were lost, as by several threads without `is_shared`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            ..self
        }
    }

    /// Returns only the counts that the entry's flags request.
    pub(crate) fn wanted(mut self, flags: FlowModFlags) -> Self {
        if flags.contains(FlowModFlags::NO_PKT_COUNTS) {
            self.packets = 0;
        }
        if flags.contains(FlowModFlags::NO_BYT_COUNTS) {
            self.bytes = 0;
        }
        self
    }
}

/// An entry's counters.
///
/// Thread-safety: any thread may add and read; the three numbers may be inconsistent with each other at any time.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EntryCounters {
    /// The number of packets matched.
    pub packets: AtomicU64,
    /// The number of their bytes.
    pub bytes: AtomicU64,
    /// The time of the last match, in nanoseconds of the caller's clock.
    pub last_used_ns: AtomicU64,
}

impl EntryCounters {
    /// Returns the current counts.
    pub(crate) fn read(&self) -> EntryCounts {
        EntryCounts {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            last_used_ns: self.last_used_ns.load(Relaxed),
        }
    }

    /// Updates the time of the last match, in nanoseconds of the caller's clock, if this is later.
    pub(crate) fn use_at(&self, last_used_ns: u64) {
        self.last_used_ns.fetch_max(last_used_ns, Relaxed);
    }

    /// Copies the counters, for an entry that replaces this one.
    pub(crate) fn copy(&self) -> Self {
        Self {
            packets: AtomicU64::new(self.packets.load(Relaxed)),
            bytes: AtomicU64::new(self.bytes.load(Relaxed)),
            last_used_ns: AtomicU64::new(self.last_used_ns.load(Relaxed)),
        }
    }

    /// Returns counters without packets, but with the same last use.
    pub(crate) fn cleared(&self) -> Self {
        Self {
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            ..self.copy()
        }
    }
}
