//! Separate counters of several threads for the same flow records.
//!
//! **What.** Each thread has an area half as long as the arena, with counters for every unit, and so for every flow record:
//! those of the unit of the record's own counters. So nothing is allocated for a record, and the two addresses suffice to
//! find it. Reading adds up all areas.
//!
//! **Why.** Shared counters need two locked operations per packet, and their cache line moves between processors, with the
//! rest of the flow record.
//!
//! **Cost.** Addresses for each thread, and memory for the thread's used counters: 32 bytes per unit of the arena, by pages.
//! Counting needs no system calls, only page faults.
//!
//! **Thread-safety.** A thread adds in its own area by plain loads and stores; others read. The thread that changes tables
//! clears counters when no packet can see the flow record.

use super::arena::{Arena, UNIT_BYTES};
#[cfg(miri)]
use super::miri_memory::{mmap_anonymous, mprotect, munmap};
use crate::counters::{EntryCounters, EntryCounts};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
#[cfg(not(miri))]
use rustix::mm::{mmap_anonymous, mprotect, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::Relaxed;

/// The size of the counters in an area for each unit of the arena.
pub(crate) const PLACE_BYTES: usize = 32;

/// The step in which areas are mapped.
const STEP_BYTES: usize = 2 << 20;

const _: () = assert!(size_of::<EntryCounters>() <= PLACE_BYTES && 2 * PLACE_BYTES == UNIT_BYTES);

/// All areas.
#[derive(Debug)]
pub(crate) struct ThreadCounts {
    /// Where the arena begins.
    arena: usize,
    /// The length of an area.
    bytes: usize,
    areas: RwLock<Areas>,
}

#[derive(Debug, Default)]
struct Areas {
    /// The committed part of each.
    committed_bytes: usize,
    all: Vec<Area>,
}

#[derive(Debug)]
struct Area {
    start: NonNull<u8>,
    /// The thread has ended; another may continue its counters.
    is_left: bool,
}

// SAFETY: an area is memory that belongs to no thread; all that is in it is accessed as atomics.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl ThreadCounts {
    /// For the flow records of this arena; no thread counts yet.
    pub fn new(arena: &Arena) -> Self {
        let bytes = arena.limit_bytes() / UNIT_BYTES * PLACE_BYTES;
        let areas = Areas {
            committed_bytes: to_bytes(arena.committed_bytes()),
            all: Vec::new(),
        };
        Self {
            arena: arena.base().addr(),
            bytes: bytes.next_multiple_of(STEP_BYTES),
            areas: RwLock::new(areas),
        }
    }

    /// Returns an area for one more thread. Ends the process, as a `Vec` would, if the system has no addresses left.
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

    /// Ensures memory for the flow records of all committed memory of the arena. Returns `true` on success.
    pub fn reach(&self, arena: &Arena) -> bool {
        let committed_bytes = to_bytes(arena.committed_bytes());
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
    /// They belong to a flow record in the arena.
    pub unsafe fn counts(&self, counters: *const EntryCounters) -> EntryCounts {
        let areas = self.areas();
        let counts = areas.all.iter().map(|area| {
            // SAFETY: the area belongs to the arena, and there is memory for each of its records; nothing unmaps it.
            unsafe { place(area.start.as_ptr(), self.arena, counters.addr()) }.read()
        });
        counts.fold(EntryCounts::default(), EntryCounts::plus)
    }

    /// Clears all threads' counters of the flow record with these counters, which no packet sees.
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

    /// Nothing in here panics halfway, so that the list is whole whatever thread died with the lock.
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
    /// Makes its first `bytes` memory.
    fn commit(&self, bytes: usize) -> Result<(), Errno> {
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: addresses of the area's own, which get more rights.
        unsafe { mprotect(self.start.as_ptr().cast(), bytes, flags) }
    }
}

/// Returns an area's counters for the flow record whose own are at the address `counters`.
///
/// # Safety
/// The area belongs to the arena that begins at `arena`, in which the flow record is, and is mapped as long as the result is
/// used.
#[inline]
pub(crate) unsafe fn place<'a>(area: *mut u8, arena: usize, counters: usize) -> &'a EntryCounters {
    let unit = (counters - arena) / UNIT_BYTES;
    // SAFETY: areas cover all units of the arena, are aligned to pages, zeroed at first, and accessed as atomics.
    unsafe { &*area.add(unit * PLACE_BYTES).cast() }
}

/// Returns the length of an area for a length of the arena.
fn to_bytes(arena_bytes: usize) -> usize {
    (arena_bytes / UNIT_BYTES * PLACE_BYTES).next_multiple_of(STEP_BYTES)
}

/// Addresses without memory.
fn reserve(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the system chooses where, so nothing of ours is mapped over.
    let mapping = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), flags)? };
    NonNull::new(mapping.cast()).ok_or(Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::memory::arena::{NODE_UNITS, Ref};

    fn counters(arena: &Arena, block: Ref) -> *const EntryCounters {
        arena.pointer(block).wrapping_add(16).cast_const().cast()
    }

    fn count(arena: &Arena, area: *mut u8, block: Ref, packets: u64) {
        let at = counters(arena, block);
        // SAFETY: the area is the arena's, and mapped.
        let counters = unsafe { place(area, arena.base().addr(), at.addr()) };
        counters.packets.fetch_add(packets, Relaxed);
        counters.last_used_ns.fetch_max(packets, Relaxed);
    }

    fn packets(arena: &Arena, counts: &ThreadCounts, block: Ref) -> u64 {
        // SAFETY: the block is of the arena.
        unsafe { counts.counts(counters(arena, block)) }.packets
    }

    #[test]
    fn all_threads_are_added_up_record_by_record() {
        let mut arena = Arena::new(1 << 20).unwrap();
        let counts = ThreadCounts::new(&arena);
        let blocks = [1, 2, 1].map(|units| arena.allocate(units).unwrap());
        let areas = [counts.join(), counts.join()];
        for (number, &block) in (1..).zip(&blocks) {
            count(&arena, areas[0], block, number);
            count(&arena, areas[1], block, 10 * number);
        }
        for (number, &block) in (1..).zip(&blocks) {
            assert_eq!(packets(&arena, &counts, block), 11 * number);
        }
        // SAFETY: the block is of the arena.
        unsafe { counts.clear(counters(&arena, blocks[1])) };
        let all = blocks.map(|block| packets(&arena, &counts, block));
        assert_eq!(all, [11, 0, 33]);
    }

    #[test]
    fn what_a_thread_has_counted_stays_when_it_leaves() {
        let mut arena = Arena::new(1 << 20).unwrap();
        let block = arena.allocate(1).unwrap();
        let counts = ThreadCounts::new(&arena);
        let (first, _) = (counts.join(), counts.join());
        count(&arena, first, block, 5);
        counts.leave(first);
        assert_eq!(packets(&arena, &counts, block), 5);
        assert_eq!(counts.join(), first, "another goes on in its place");
        assert_eq!(packets(&arena, &counts, block), 5);
    }

    #[test]
    fn areas_grow_with_the_arena() {
        let mut arena = Arena::new(usize::MAX).unwrap();
        let counts = ThreadCounts::new(&arena);
        let area = counts.join();
        for _ in 0..5000 {
            let block = arena.allocate(NODE_UNITS).unwrap();
            assert!(counts.reach(&arena));
            count(&arena, area, block, 1);
            assert_eq!(packets(&arena, &counts, block), 1);
        }
        let late = counts.join();
        let block = arena.allocate(1).unwrap();
        count(&arena, late, block, 2);
        assert_eq!(packets(&arena, &counts, block), 2);
    }
}
