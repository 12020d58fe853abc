//! Separate counters of several threads for one flow record.
//!
//! **What.** An arena holds the flow records, each in one or more units. Each thread has an area of half the arena's length,
//! with counters for every unit. A flow record uses the counters for the unit that holds its own counters. So a record needs
//! no allocation, and its address and the area's suffice to find the counters. Reading adds up all areas.
//!
//! **Why.** Shared counters need two locked operations per packet, and their cache line, with the rest of the flow record,
//! moves between processors.
//!
//! **Cost.** Address space for each thread, and memory for the counters that the thread uses: 32 bytes per unit of the arena,
//! in whole pages. Counting needs no system calls, only page faults.
//!
//! **Thread-safety.** A thread counts in its own area with plain loads and stores; other threads read. The thread that changes
//! tables clears a flow record's counters when no packet can find the record.

use crate::counters::{EntryCounters, EntryCounts};
#[cfg(miri)]
use crate::miri_memory::{mmap_anonymous, mprotect, munmap};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
#[cfg(not(miri))]
use rustix::mm::{mmap_anonymous, mprotect, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::Relaxed;

/// The size of an area's counters for one unit of the arena.
pub(crate) const PLACE_BYTES: usize = 32;

/// The size of a unit of the arena.
const UNIT_BYTES: usize = 2 * PLACE_BYTES;

/// The granularity in which areas are committed.
const STEP_BYTES: usize = 2 << 20;

const _: () = assert!(size_of::<EntryCounters>() <= PLACE_BYTES);

/// All areas.
#[derive(Debug)]
pub(crate) struct ThreadCounts {
    /// The start of the arena.
    arena: usize,
    /// The length of an area.
    bytes: usize,
    areas: RwLock<Areas>,
}

#[derive(Debug, Default)]
struct Areas {
    /// The committed length of each area.
    committed_bytes: usize,
    all: Vec<Area>,
}

#[derive(Debug)]
struct Area {
    start: NonNull<u8>,
    /// Whether its thread has ended; another may continue its counters.
    is_left: bool,
}

// SAFETY: an area is memory that belongs to no thread, and all accesses to its contents are atomic.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl ThreadCounts {
    /// Creates counters for the flow records of an arena that starts at the address `arena`, never exceeds `limit_bytes`, and
    /// has `committed_bytes` of memory. There are no threads yet.
    pub fn new(arena: usize, limit_bytes: usize, committed_bytes: usize) -> Self {
        let bytes = limit_bytes / UNIT_BYTES * PLACE_BYTES;
        let areas = Areas {
            committed_bytes: to_bytes(committed_bytes),
            all: Vec::new(),
        };
        Self {
            arena,
            bytes: bytes.next_multiple_of(STEP_BYTES),
            areas: RwLock::new(areas),
        }
    }

    /// Returns an area for a new thread. Aborts, like a `Vec`, if the address space is exhausted.
    pub fn join(&self) -> *mut u8 {
        let mut areas = self.areas_mut();
        if let Some(area) = areas.all.iter_mut().find(|area| area.is_left) {
            area.is_left = false;
            return area.start.as_ptr();
        }
        let reserved = reserve(self.bytes).and_then(|start| {
            let area = Area {
                start,
                is_left: false,
            };
            let committed = area.commit(areas.committed_bytes);
            areas.all.push(area);
            committed.map(|()| start.as_ptr())
        });
        reserved.unwrap_or_else(|_| {
            let layout = Layout::from_size_align(self.bytes, STEP_BYTES);
            handle_alloc_error(layout.unwrap_or(Layout::new::<u8>()))
        })
    }

    /// Notes that the thread with this area has ended; its counts stay.
    pub fn leave(&self, start: *mut u8) {
        let mut areas = self.areas_mut();
        let mut all = areas.all.iter_mut();
        if let Some(area) = all.find(|area| area.start.as_ptr() == start) {
            area.is_left = true;
        }
    }

    /// Commits the counters for the first `committed_bytes` of the arena. Returns `true` on success.
    pub fn reach(&self, committed_bytes: usize) -> bool {
        let committed_bytes = to_bytes(committed_bytes);
        if committed_bytes <= self.areas().committed_bytes {
            return true;
        }
        let mut areas = self.areas_mut();
        let mut all = areas.all.iter();
        let is_reached = all.all(|area| area.commit(committed_bytes).is_ok());
        if is_reached {
            areas.committed_bytes = committed_bytes;
        }
        is_reached
    }

    /// Returns the counts of all threads for the flow record with these counters.
    ///
    /// # Safety
    /// The counters belong to a flow record in the arena.
    pub unsafe fn counts(&self, counters: *const EntryCounters) -> EntryCounts {
        let areas = self.areas();
        let counts = areas.all.iter().map(|area| {
            // SAFETY: the area belongs to the arena, has memory for each of its records, and is never unmapped.
            unsafe { place(area.start.as_ptr(), self.arena, counters.addr()) }.read()
        });
        counts.fold(EntryCounts::default(), EntryCounts::plus)
    }

    /// Clears all threads' counters of the flow record with these counters, which no packet can find.
    ///
    /// # Safety
    /// As for [`ThreadCounts::counts`].
    pub unsafe fn clear(&self, counters: *const EntryCounters) {
        for area in &self.areas().all {
            // SAFETY: as in `counts`.
            let counters = unsafe { place(area.start.as_ptr(), self.arena, counters.addr()) };
            // Pages that were never written to are not touched.
            if counters.read() != EntryCounts::default() {
                counters.packets.store(0, Relaxed);
                counters.bytes.store(0, Relaxed);
                counters.last_used_ns.store(0, Relaxed);
            }
        }
    }

    /// Locks the list. No code that holds the lock panics halfway, so the list is consistent even if a thread died with it.
    fn areas(&self) -> RwLockReadGuard<'_, Areas> {
        self.areas.read()
    }

    fn areas_mut(&self) -> RwLockWriteGuard<'_, Areas> {
        self.areas.write()
    }
}

impl Drop for ThreadCounts {
    fn drop(&mut self) {
        for area in &self.areas().all {
            // SAFETY: this is the whole mapping; counting threads keep this value alive.
            let _ = unsafe { munmap(area.start.as_ptr().cast(), self.bytes) };
        }
    }
}

impl Area {
    /// Commits its first `bytes`.
    fn commit(&self, bytes: usize) -> Result<(), Errno> {
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the addresses belong to the area, and only gain rights.
        unsafe { mprotect(self.start.as_ptr().cast(), bytes, flags) }
    }
}

/// Returns an area's counters for the flow record whose own counters are at the address `counters`.
///
/// # Safety
/// The area belongs to the arena that starts at `arena` and contains the flow record, and is mapped while the result is
/// used.
#[inline]
pub(crate) unsafe fn place<'a>(area: *mut u8, arena: usize, counters: usize) -> &'a EntryCounters {
    let unit = (counters - arena) / UNIT_BYTES;
    // SAFETY: areas cover all units of the arena, are page-aligned and initially zero, and are accessed as atomics.
    unsafe { &*area.add(unit * PLACE_BYTES).cast() }
}

/// Returns the length of an area for an arena of this length.
fn to_bytes(arena_bytes: usize) -> usize {
    (arena_bytes / UNIT_BYTES * PLACE_BYTES).next_multiple_of(STEP_BYTES)
}

/// Reserves address space without memory.
fn reserve(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the system chooses the address, so none of our mappings is replaced.
    let mapping = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), flags)? };
    NonNull::new(mapping.cast()).ok_or(Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::without_provenance;

    /// The start of an arena that is never accessed.
    const ARENA: usize = 1 << 30;

    /// Creates counters for an arena of at most 16 MiB, with memory for one MiB.
    fn thread_counts() -> ThreadCounts {
        ThreadCounts::new(ARENA, 16 << 20, 1 << 20)
    }

    /// Returns the counters of the flow record in a unit of the arena.
    fn counters(unit: usize) -> *const EntryCounters {
        without_provenance(ARENA + unit * UNIT_BYTES + 16)
    }

    fn count(area: *mut u8, unit: usize, packets: u64) {
        // SAFETY: the area is the arena's, and mapped.
        let counters = unsafe { place(area, ARENA, counters(unit).addr()) };
        counters.packets.fetch_add(packets, Relaxed);
        counters.last_used_ns.fetch_max(packets, Relaxed);
    }

    fn packets(counts: &ThreadCounts, unit: usize) -> u64 {
        // SAFETY: the unit is in the arena.
        unsafe { counts.counts(counters(unit)) }.packets
    }

    #[test]
    fn counts_of_threads_are_added_per_record() {
        let counts = thread_counts();
        let units = [1, 2, 4];
        let areas = [counts.join(), counts.join()];
        for (number, unit) in (1..).zip(units) {
            count(areas[0], unit, number);
            count(areas[1], unit, 10 * number);
        }
        for (number, unit) in (1..).zip(units) {
            assert_eq!(packets(&counts, unit), 11 * number);
        }
        // SAFETY: the unit is in the arena.
        unsafe { counts.clear(counters(units[1])) };
        assert_eq!(units.map(|unit| packets(&counts, unit)), [11, 0, 33]);
    }

    #[test]
    fn counts_of_a_thread_stay_after_it_leaves() {
        let counts = thread_counts();
        let (first, _) = (counts.join(), counts.join());
        count(first, 1, 5);
        counts.leave(first);
        assert_eq!(packets(&counts, 1), 5);
        assert_eq!(counts.join(), first, "another thread continues it");
        assert_eq!(packets(&counts, 1), 5);
    }

    #[test]
    fn areas_grow_with_the_arena() {
        let counts = thread_counts();
        let area = counts.join();
        for committed_bytes in [2 << 20, 9 << 20, 16 << 20] {
            assert!(counts.reach(committed_bytes));
            let last = committed_bytes / UNIT_BYTES - 1;
            count(area, last, 1);
            assert_eq!(packets(&counts, last), 1);
            let late = counts.join();
            count(late, last, 2);
            assert_eq!(packets(&counts, last), 3);
        }
    }
}
