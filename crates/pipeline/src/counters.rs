//! What a flow entry counts (1.3.5 section 5.8).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use urtica_wire::FlowModFlags;

/// What an entry has counted, at one moment.
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

    /// What came after `earlier`; nothing where counts were lost, as they are if several threads count without
    /// having said so.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            ..self
        }
    }

    /// As much of it as the flags of its entry ask for.
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

/// What an entry has counted.
///
/// Thread-safety: any thread adds, any reads; the three numbers need not agree with each other at any moment.
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

    /// Notes that it was used at this time, in nanoseconds of the caller's clock, if that is later than what is noted.
    pub(crate) fn use_at(&self, last_used_ns: u64) {
        self.last_used_ns.fetch_max(last_used_ns, Relaxed);
    }

    /// The same numbers, for an entry that takes this one's place.
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
