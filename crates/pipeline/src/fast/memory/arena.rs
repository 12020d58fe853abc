//! Memory for blocks with small numbers: flow records and trie nodes.
//!
//! **What.** [`Arena::allocate`] allocates a block of a few cache lines, and [`Arena::free`] frees it. A block is identified
//! by a [`Ref`], the number of its first *unit* of 64 bytes counted from [`Arena::base`]: 28 bits instead of a pointer's 64,
//! so that a slot of a hash table also has space for a tag, and an entry of a trie for a mark. No block has number 0, which
//! means none.
//!
//! **How.** A range of at most 16 GiB of addresses is reserved at once, and committed in steps as needed; so blocks never
//! move, and readers only need the base. The first step is the last 64 KiB before the border of a huge page, in small pages,
//! so that a thousand small switches in one process do not need a huge page each; after the border, steps are huge pages.
//! Freed blocks are chained, by huge page and size, through their first bytes, and are reused before new memory. No block
//! crosses the border of a huge page; an empty huge page is returned to the system, and later used for blocks of any size.
//!
//! **Cost.** Allocating needs a few ns, plus zeroing; each step, and each returned huge page, needs a system call and zeroing
//! by the kernel. The arena needs 32 bytes per huge page in addition to the blocks. Reserved addresses need no memory.
//!
//! **Thread-safety.** There is one writer, as `&mut self` ensures. Readers have the base and numbers that they found in
//! memory. The writer frees a block only when no reader can see it ([`super::epoch`]). The arena itself never reads or writes
//! a block between `allocate` and `free`.

use super::zeroed::HUGE_PAGE_BYTES;
#[cfg(miri)]
use crate::miri_memory::{madvise, mmap_anonymous, mprotect, munmap};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
#[cfg(not(miri))]
use rustix::mm::{madvise, mmap_anonymous, mprotect, munmap};
use std::io;
use std::num::NonZeroU32;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;

/// The size of a unit.
pub(crate) const UNIT_BYTES: usize = 64;

/// The bound of every `Ref`: the upper bits of a 32-bit number are free for marks.
pub(crate) const REFS: u32 = 1 << 28;

/// The size of a trie's node, in units.
pub(crate) const NODE_UNITS: usize = 16;

/// The possible sizes of blocks, in units.
const SIZES: [usize; 5] = [1, 2, 3, 4, NODE_UNITS];

const RESERVED_BYTES_MAX: usize = REFS as usize * UNIT_BYTES;

/// The size of the first step, which ends at the first border of a huge page. Enough for a few hundred flow records.
const FIRST_STEP_BYTES: usize = 64 << 10;

/// The number of units of a huge page.
const PAGE_UNITS: usize = HUGE_PAGE_BYTES / UNIT_BYTES;

/// The offset of the first block.
const START_BYTES: usize = HUGE_PAGE_BYTES - FIRST_STEP_BYTES;

/// A block in an arena: the number of its first unit. `None` is represented by 0.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Ref(NonZeroU32);

impl Ref {
    /// Returns the block with this number; `None` for 0.
    #[inline]
    pub fn from_bits(bits: u32) -> Option<Self> {
        NonZeroU32::new(bits).map(Self)
    }

    /// Returns the number, from 1 to 2^28 - 1.
    #[inline]
    pub fn bits(self) -> u32 {
        self.0.get()
    }

    /// Returns the offset from an arena's base, in bytes.
    #[inline]
    pub fn offset(self) -> usize {
        self.bits() as usize * UNIT_BYTES
    }
}

/// The arena cannot allocate more: its limit is reached, or the system has no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

/// An allocator of numbered blocks.
#[derive(Debug)]
pub(crate) struct Arena {
    /// The mapping, in which `base` is the first border of a huge page.
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    base: NonNull<u8>,
    /// The maximum end of a block, relative to the base.
    limit_bytes: usize,
    /// The end of committed memory, which starts [`START_BYTES`] after the base.
    committed_bytes: usize,
    /// The first unit of unused memory, which extends to the end of its page.
    fresh_unit: usize,
    /// The end of all units that have ever been in a block.
    end_unit: usize,
    used_units: usize,
    pages: Vec<Page>,
    /// For each of `SIZES`, the numbers of pages that have freed blocks.
    with_freed: [Vec<u32>; SIZES.len()],
    /// The numbers of pages that were returned to the system.
    empty: Vec<u32>,
}

/// The state of a huge page.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    used_units: u32,
    /// For each of `SIZES`, the first freed block, which starts with the number of the next one.
    freed: [Option<Ref>; SIZES.len()],
}

// SAFETY: it owns its mapping like a `Vec`, and `&Arena` only returns copies.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Creates an arena of at most `limit_bytes`, and never more than 16 GiB less 2 MiB.
    ///
    /// If the system refuses this range, one of half the size is requested, and so on.
    ///
    /// # Errors
    /// The system's error, if it refuses even 2 MiB of addresses.
    pub fn new(limit_bytes: usize) -> io::Result<Self> {
        let limit_bytes = limit_bytes.min(RESERVED_BYTES_MAX - START_BYTES) + START_BYTES;
        let mut reserved = limit_bytes.next_multiple_of(HUGE_PAGE_BYTES);
        reserved = reserved.max(HUGE_PAGE_BYTES);
        loop {
            match reserve(reserved + HUGE_PAGE_BYTES) {
                Ok(mapping) => return Ok(Self::within(mapping, reserved, limit_bytes)),
                Err(error) if reserved == HUGE_PAGE_BYTES => return Err(error.into()),
                Err(_) => reserved = (reserved / 2).next_multiple_of(HUGE_PAGE_BYTES),
            }
        }
    }

    fn within(mapping: NonNull<u8>, reserved: usize, limit_bytes: usize) -> Self {
        let skipped = mapping.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: the mapping is a huge page longer than `reserved`, so the next border lies within.
        let base = unsafe { mapping.add(skipped) };
        // This is advice, which a kernel without huge pages refuses; it then uses small ones. SAFETY: these are our own
        // addresses, which contain nothing yet.
        let _ = unsafe { madvise(base.as_ptr().cast(), reserved, Advice::LinuxHugepage) };
        Self {
            mapping,
            mapping_bytes: reserved + HUGE_PAGE_BYTES,
            base,
            limit_bytes: limit_bytes.min(reserved),
            committed_bytes: START_BYTES,
            fresh_unit: START_BYTES / UNIT_BYTES,
            end_unit: START_BYTES / UNIT_BYTES,
            used_units: 0,
            pages: vec![Page::default()],
            with_freed: Default::default(),
            empty: Vec::new(),
        }
    }

    /// Allocates a zeroed block of 1, 2, 3, 4 or [`NODE_UNITS`] units; `None` if the limit is reached or the system has no
    /// memory.
    ///
    /// # Panics
    /// If the size is another one.
    pub fn allocate(&mut self, units: usize) -> Option<Ref> {
        let class = size_class(units);
        let block = match self.with_freed[class].last() {
            Some(&page) => self.reuse(page, class)?,
            None => self.allocate_fresh(units)?,
        };
        self.used_units += units;
        self.pages[page_of(block)].used_units += units as u32;
        Some(block)
    }

    fn reuse(&mut self, page: u32, class: usize) -> Option<Ref> {
        let block = self.pages[page as usize].freed[class]?;
        let pointer = self.pointer(block);
        // SAFETY: the block was freed, so it is not shared; it is aligned to 64 bytes and starts with the link from `free`.
        let next = unsafe { pointer.cast::<u32>().read() };
        // SAFETY: as above; `free` was given this size.
        unsafe { pointer.write_bytes(0, SIZES[class] * UNIT_BYTES) };
        self.pages[page as usize].freed[class] = Ref::from_bits(next);
        if next == 0 {
            self.with_freed[class].pop();
        }
        Some(block)
    }

    fn allocate_fresh(&mut self, units: usize) -> Option<Ref> {
        let left = self.fresh_unit.next_multiple_of(PAGE_UNITS) - self.fresh_unit;
        if left < units {
            self.begin_page();
        }
        let end_bytes = (self.fresh_unit + units) * UNIT_BYTES;
        if end_bytes > self.limit_bytes {
            return None;
        }
        if end_bytes > self.committed_bytes {
            self.commit().ok()?;
        }
        let block = Ref::from_bits(self.fresh_unit as u32);
        self.fresh_unit += units;
        self.end_unit = self.end_unit.max(self.fresh_unit);
        if self.pages.len() * PAGE_UNITS < self.fresh_unit {
            self.pages.push(Page::default());
        }
        block
    }

    /// Continues in a page that was returned to the system, or after the last page.
    fn begin_page(&mut self) {
        self.fresh_unit = match self.empty.pop() {
            Some(0) => START_BYTES / UNIT_BYTES,
            Some(page) => page as usize * PAGE_UNITS,
            None => self.end_unit.next_multiple_of(PAGE_UNITS),
        };
    }

    /// Commits the next step, up to the next border of a huge page. No block is larger, and the reserved range ends at a
    /// border. Pages in a step that is shorter than a huge page are small.
    fn commit(&mut self) -> Result<(), Errno> {
        let end_bytes = (self.committed_bytes + 1).next_multiple_of(HUGE_PAGE_BYTES);
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the limit is within the reserved range, so these are our own addresses; they become accessible.
        unsafe {
            let start = self.base.add(self.committed_bytes);
            mprotect(
                start.as_ptr().cast(),
                end_bytes - self.committed_bytes,
                flags,
            )?;
        }
        self.committed_bytes = end_bytes;
        Ok(())
    }

    /// Frees a block, given its allocated size. No reader may see it any longer.
    ///
    /// # Panics
    /// If there is no such size, or no such block.
    pub fn free(&mut self, block: Ref, units: usize) {
        self.check(block, units);
        let (number, class) = (page_of(block), size_class(units));
        let page = &mut self.pages[number];
        page.used_units -= units as u32;
        let next = page.freed[class].replace(block).map_or(0, Ref::bits);
        let is_empty = page.used_units == 0;
        if next == 0 {
            self.with_freed[class].push(number as u32);
        }
        // SAFETY: this is within committed memory, as checked; the block was freed, so it is not shared.
        unsafe { self.pointer(block).cast::<u32>().write(next) };
        self.used_units -= units;
        if is_empty && number != (self.fresh_unit - 1) / PAGE_UNITS {
            self.give_back(number);
        }
    }

    /// Returns a page without blocks to the system, until it is needed again.
    fn give_back(&mut self, number: usize) {
        let start = (number * HUGE_PAGE_BYTES).max(START_BYTES);
        let bytes = (number + 1) * HUGE_PAGE_BYTES - start;
        // SAFETY: this is our own committed memory, without blocks; it stays mapped, and reads as zeros from then on.
        let given = unsafe {
            let start = self.base.add(start).as_ptr();
            madvise(start.cast(), bytes, Advice::LinuxDontNeed)
        };
        // If the system refuses, the freed blocks keep their sizes.
        if given.is_ok() {
            self.pages[number] = Page::default();
            let pages = self.with_freed.iter_mut();
            pages.for_each(|pages| pages.retain(|&page| page as usize != number));
            self.empty.push(number as u32);
        }
    }

    /// Returns the size of all blocks that are not freed, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.used_units * UNIT_BYTES
    }

    /// Returns the maximum end of a block, relative to the base.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Returns the end of committed memory, relative to the base. It never shrinks.
    pub fn committed_bytes(&self) -> usize {
        self.committed_bytes
    }

    /// Returns the base that block numbers refer to, which never changes, and is the border of a huge page.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Returns a block's address.
    #[inline]
    pub fn pointer(&self, block: Ref) -> *mut u8 {
        self.base.as_ptr().wrapping_add(block.offset())
    }

    /// Returns a 64-bit word of a block, for the writer.
    ///
    /// # Panics
    /// If there has never been a block at this position.
    #[inline]
    pub fn word(&self, block: Ref, index: usize) -> u64 {
        self.check(block, (index * 8 + 8).div_ceil(UNIT_BYTES));
        // SAFETY: this is within committed memory, as checked, aligned, and initialised, since it is zeroed at first. Only the
        // writer writes, and we have a reference to its data.
        unsafe { self.pointer(block).cast::<u64>().add(index).read() }
    }

    /// Returns a block's units as 32-bit numbers, which readers may read concurrently. The block cannot be freed while the slice
    /// exists, since that needs exclusive access to the arena.
    ///
    /// # Panics
    /// If there is no block of this size.
    pub fn atomics(&self, block: Ref, units: usize) -> &[AtomicU32] {
        self.check(block, units);
        let len = units * UNIT_BYTES / size_of::<AtomicU32>();
        // SAFETY: this is within committed memory, as checked, aligned to 64 bytes, and initialised, since it is zeroed at
        // first. It stays mapped as long as the arena exists. Non-atomic accesses need `&mut self`.
        unsafe { std::slice::from_raw_parts(self.pointer(block).cast(), len) }
    }

    #[inline]
    fn check(&self, block: Ref, units: usize) {
        let end = block.bits() as usize + units;
        assert!(
            end <= self.end_unit,
            "no block of {units} units at {block:?}"
        );
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // This fails only for addresses that are not a mapping. SAFETY: this is our own mapping, which readers may not use
        // after the arena is dropped.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
    }
}

/// Reserves address space without memory.
fn reserve(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the system chooses the address, so none of our mappings is replaced.
    let mapping = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), flags)? };
    NonNull::new(mapping.cast()).ok_or(Errno::NOMEM)
}

fn page_of(block: Ref) -> usize {
    block.bits() as usize / PAGE_UNITS
}

fn size_class(units: usize) -> usize {
    let class = SIZES.iter().position(|&size| size == units);
    class.unwrap_or_else(|| panic!("no block has {units} units"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    const MIB: usize = 1 << 20;

    fn content(arena: &mut Arena, block: Ref, units: usize) -> &mut [u8] {
        arena.check(block, units);
        // SAFETY: the block has this size, and only its test uses it.
        unsafe { std::slice::from_raw_parts_mut(arena.pointer(block), units * UNIT_BYTES) }
    }

    #[test]
    fn references_are_consecutive() {
        let mut arena = Arena::new(MIB).unwrap();
        assert_eq!(arena.used_bytes(), 0);
        let first = arena.allocate(3).unwrap();
        assert_eq!(first.offset(), START_BYTES);
        assert_eq!(arena.allocate(1).map(Ref::bits), Some(first.bits() + 3));
        assert_eq!(arena.used_bytes(), 256);
        assert_eq!(size_of::<Option<Ref>>(), 4);
    }

    #[test]
    fn freed_blocks_are_reused_as_zeros() {
        let mut arena = Arena::new(MIB).unwrap();
        let first = arena.allocate(2).unwrap();
        let second = arena.allocate(2).unwrap();
        content(&mut arena, first, 2).fill(0xff);
        arena.free(first, 2);
        arena.free(second, 2);
        assert_eq!(arena.used_bytes(), 0);
        assert_ne!(arena.allocate(1), Some(first), "other sizes stay apart");
        assert_eq!(arena.allocate(2), Some(second));
        assert_eq!(arena.allocate(2), Some(first));
        assert!(content(&mut arena, first, 2).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn allocation_fails_at_the_limit_until_blocks_are_freed() {
        let mut arena = Arena::new(4 * UNIT_BYTES).unwrap();
        let block = arena.allocate(4).unwrap();
        assert_eq!(arena.allocate(1), None);
        arena.free(block, 4);
        assert_eq!(arena.allocate(4), Some(block));
        assert_eq!(Arena::new(0).unwrap().allocate(1), None);
    }

    #[test]
    fn empty_pages_are_returned_and_used_for_other_sizes() {
        let mut arena = Arena::new(usize::MAX).unwrap();
        let nodes: Vec<_> = (0..5000)
            .map(|_| arena.allocate(NODE_UNITS).unwrap())
            .collect();
        let committed = arena.committed_bytes;
        let (kept, freed) = nodes.split_first().unwrap();
        content(&mut arena, freed[1000], NODE_UNITS).fill(0xff);
        freed.iter().for_each(|&node| arena.free(node, NODE_UNITS));
        assert_eq!(arena.empty.len(), 2, "not the first, and not the last");
        assert_eq!(arena.used_bytes(), NODE_UNITS * UNIT_BYTES);
        let blocks: Vec<_> = (0..50_000).map(|_| arena.allocate(1).unwrap()).collect();
        for &block in &blocks {
            assert!(content(&mut arena, block, 1).iter().all(|&byte| byte == 0));
        }
        assert_eq!(arena.committed_bytes, committed);
        blocks.iter().for_each(|&block| arena.free(block, 1));
        arena.free(*kept, NODE_UNITS);
        assert_eq!(arena.used_bytes(), 0);
    }

    #[test]
    fn a_small_arena_needs_no_huge_page() {
        let mut arena = Arena::new(usize::MAX).unwrap();
        for _ in 0..FIRST_STEP_BYTES / UNIT_BYTES {
            arena.allocate(1).unwrap();
        }
        assert_eq!(arena.committed_bytes, HUGE_PAGE_BYTES);
        let block = arena.allocate(1).unwrap();
        assert_eq!(block.offset(), HUGE_PAGE_BYTES);
        assert_eq!(arena.committed_bytes, 2 * HUGE_PAGE_BYTES);
    }

    #[test]
    fn grows_over_many_steps_without_moving() {
        let mut arena = Arena::new(usize::MAX).unwrap();
        let base = arena.base();
        let nodes: Vec<_> = (0..9_000)
            .map(|_| arena.allocate(NODE_UNITS).unwrap())
            .collect();
        for (number, &node) in (0_u64..).zip(&nodes) {
            content(&mut arena, node, NODE_UNITS)[1016..].copy_from_slice(&number.to_ne_bytes());
        }
        for (number, &node) in (0_u64..).zip(&nodes) {
            assert_eq!(arena.word(node, 127), number);
        }
        assert_eq!(arena.base(), base);
        assert!(base.addr() % HUGE_PAGE_BYTES == 0);
        assert_eq!(arena.committed_bytes, 12 * MIB);
    }

    proptest! {
        /// Blocks in use never overlap: each keeps its content.
        #[test]
        fn blocks_do_not_overlap(steps in vec((select(&SIZES[..]), any::<bool>(), any::<prop::sample::Index>()), 1..200)) {
            let mut arena = Arena::new(MIB).unwrap();
            let mut blocks: Vec<(Ref, usize, u8)> = Vec::new();
            for (number, (units, free, which)) in steps.into_iter().enumerate() {
                if free && !blocks.is_empty() {
                    let (block, units, _) = blocks.swap_remove(which.index(blocks.len()));
                    arena.free(block, units);
                } else {
                    let block = arena.allocate(units).unwrap();
                    prop_assert!(content(&mut arena, block, units).iter().all(|&byte| byte == 0));
                    content(&mut arena, block, units).fill(number as u8 | 1);
                    blocks.push((block, units, number as u8 | 1));
                }
                let used: usize = blocks.iter().map(|&(_, units, _)| units * UNIT_BYTES).sum();
                prop_assert_eq!(arena.used_bytes(), used);
                for &(block, units, mark) in &blocks {
                    prop_assert!(content(&mut arena, block, units).iter().all(|&byte| byte == mark));
                }
            }
        }
    }
}
