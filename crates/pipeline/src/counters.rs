//! Counters of flow entries (1.3.5 section 5.8).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use urtica_wire::FlowModFlags;

/// An entry's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// Packets matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the last one was matched, in nanoseconds of the caller's clock.
    pub last_used_ns: u64,
}

impl EntryCounts {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            last_used_ns: self.last_used_ns.max(other.last_used_ns),
        }
    }

    /// Returns the difference to `earlier`, or zero if counts were lost, as by several threads without `is_shared`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            ..self
        }
    }

    /// Returns the counts that the flags of the entry request.
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
/// Thread-safety: any thread may add and read; the three numbers may be inconsistent with each other.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EntryCounters {
    /// Packets matched.
    pub packets: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// When the last one was matched, in nanoseconds of the caller's clock.
    pub last_used_ns: AtomicU64,
}

impl EntryCounters {
    /// The numbers as they are.
    pub(crate) fn read(&self) -> EntryCounts {
        EntryCounts {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            last_used_ns: self.last_used_ns.load(Relaxed),
        }
    }

    /// Updates the time of the last use, in nanoseconds of the caller's clock, if this is later.
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

    /// No packets yet; the last use stays.
    pub(crate) fn cleared(&self) -> Self {
        Self {
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            ..self.copy()
        }
    }
}
