//! What several threads count for the same flow records, each in memory of its own.
//!
//! **What.** Each thread has an area as long as half of the arena, in which the counters of every flow record have a place: that
//! of the unit that the record's own counters are in. So nothing is allocated for a record, and nothing beyond the two
//! addresses is needed to find it. Who asks adds up all areas.
//!
//! **Why.** Counters that several threads add to take two locked operations for a packet, and their cache line goes from
//! processor to processor with all else that threads read of the flow record.
//!
//! **Cost.** Addresses for each thread, and memory as far as the thread has counted: 32 bytes for a unit of the arena, by
//! pages. Nothing is asked of the system while packets are counted but pages.
//!
//! **Thread-safety.** A thread adds in its own area by plain loads and stores; others read. Counters are cleared by the one
//! that changes tables, once no packet can see the flow record.

use super::arena::{Arena, UNIT_BYTES};
#[cfg(miri)]
use super::miri_memory::{mmap_anonymous, mprotect, munmap};
use crate::counters::{EntryCounters, EntryCounts};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
#[cfg(not(miri))]
use rustix::mm::{mmap_anonymous, mprotect, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What counters take in an area, for each unit of the arena.
pub(crate) const PLACE_BYTES: usize = 32;

/// What areas are mapped in.
const STEP_BYTES: usize = 2 << 20;

const _: () = assert!(size_of::<EntryCounters>() <= PLACE_BYTES && 2 * PLACE_BYTES == UNIT_BYTES);

/// All areas.
#[derive(Debug)]
pub(crate) struct ThreadCounts {
    /// Where the arena begins.
    arena: usize,
    /// How long an area is.
    bytes: usize,
    areas: RwLock<Areas>,
}

#[derive(Debug, Default)]
struct Areas {
    /// How much of each is memory.
    committed_bytes: usize,
    all: Vec<Area>,
}

#[derive(Debug)]
struct Area {
    start: NonNull<u8>,
    /// The thread is gone; another may go on with what it has counted.
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

    /// An area for one more thread. Ends the process, as a `Vec` would, where the system has no addresses left.
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

    /// The thread with this area counts no more; what it has counted stays.
    pub fn leave(&self, start: *mut u8) {
        let mut areas = self.areas_mut();
        let mut all = areas.all.iter_mut();
        if let Some(area) = all.find(|area| area.start.as_ptr() == start) {
            area.is_left = true;
        }
    }

    /// Sees to it that there is memory for flow records as far as the arena has any. Returns whether there is.
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

    /// What all threads have counted for the flow record with these counters.
    ///
    /// # Safety
    /// They are of a flow record in the arena.
    pub unsafe fn counts(&self, counters: *const EntryCounters) -> EntryCounts {
        let areas = self.areas();
        let counts = areas.all.iter().map(|area| {
            // SAFETY: the area belongs to the arena, and there is memory for each of its records; nothing unmaps it.
            unsafe { place(area.start.as_ptr(), self.arena, counters.addr()) }.read()
        });
        counts.fold(EntryCounts::default(), EntryCounts::plus)
    }

    /// Has all threads begin anew with the flow record with these counters, which no packet sees.
    ///
    /// # Safety
    /// As for [`ThreadCounts::counts`].
    pub unsafe fn clear(&self, counters: *const EntryCounters) {
        for area in &self.areas().all {
            // SAFETY: as in `counts`.
            let counters = unsafe { place(area.start.as_ptr(), self.arena, counters.addr()) };
            // Pages that nobody has written to stay so.
            if counters.read() != EntryCounts::default() {
                counters.packets.store(0, Relaxed);
                counters.bytes.store(0, Relaxed);
                counters.last_used_ns.store(0, Relaxed);
            }
        }
    }

    /// Nothing in here panics halfway, so that the list is whole whatever thread died with the lock.
    fn areas(&self) -> RwLockReadGuard<'_, Areas> {
        self.areas.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn areas_mut(&self) -> RwLockWriteGuard<'_, Areas> {
        self.areas.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ThreadCounts {
    fn drop(&mut self) {
        for area in &self.areas().all {
            // SAFETY: this is the whole mapping; threads that count hold what holds this value.
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

/// Where an area has the counters of the flow record whose own are at the address `counters`.
///
/// # Safety
/// The area belongs to the arena that begins at `arena`, in which the flow record is, and is mapped as long as the result is
/// used.
#[inline]
pub(crate) unsafe fn place<'a>(area: *mut u8, arena: usize, counters: usize) -> &'a EntryCounters {
    let unit = (counters - arena) / UNIT_BYTES;
    // SAFETY: areas are as long as the arena's units take, aligned to pages, zeros at first, and accessed as atomics.
    unsafe { &*area.add(unit * PLACE_BYTES).cast() }
}

/// How much of an area belongs to so much of the arena.
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
