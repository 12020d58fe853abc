//! One of a table's merged tuples, for the thread that changes it: a hash table of candidates, in which candidates with
//! equal keys are chained by rank.
//!
//! A chain changes by one store, to a slot or to the previous block; see [`crate::fast::datapath::merged`].

use super::match_key::Key;
use super::planned::Planned;
use super::record_place::RecordPlace;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::merged::{Candidate, candidate_at, candidate_units};
use crate::fast::memory::arena::{Arena, Full, Ref};
use crate::fast::memory::hash_table::{HashTable, SlotArray, Slots};
use std::ptr::addr_of_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// The candidates of a tuple.
#[derive(Debug)]
pub(super) struct Chains {
    table: HashTable,
    /// The number of words of a key.
    words: usize,
}

/// A removed block, with its size in units, to be freed when no packet can use it.
pub(super) type OldCandidate = (Ref, usize);

/// A position in a chain: between these two.
#[derive(Clone, Copy)]
struct ChainPosition {
    before: Option<Ref>,
    next: Option<Ref>,
}

impl Chains {
    /// Creates an empty tuple, with keys of `words` words.
    pub fn new(words: usize) -> Self {
        Self {
            table: HashTable::new(words),
            words,
        }
    }

    /// Returns the array that packets should see.
    pub fn slots_ptr(&self) -> *const Slots {
        self.table.slots_ptr()
    }

    /// Returns the bytes of the search structures.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Returns `true` if the chain of a key has this many candidates or more.
    pub fn has(&self, arena: &Arena, key: &Key, count: usize) -> bool {
        self.chain(arena, key).take(count).count() == count
    }

    /// Adds an entry's candidate to the chain. `mask` is the entry's whole mask, and must live as long as the candidate.
    /// Returns an array that became too small; then the new one must be published.
    ///
    /// # Errors
    /// If there is not enough memory; then nothing has changed.
    pub fn put(
        &mut self,
        arena: &mut Arena,
        key: &Key,
        planned: &Planned,
        mask: &Arc<KeyMask>,
        record: RecordPlace,
    ) -> Result<Option<SlotArray>, Full> {
        let block = make_candidate(arena, key, planned, mask, record)?;
        let rank = planned.rank.to_bits();
        let place = self.place(arena, key, |candidate| candidate.rank > rank);
        match (place.before, place.next) {
            (None, None) => Ok(self.table.insert(arena, &key.values, block)),
            _ => {
                self.link(arena, key, place, block);
                Ok(None)
            }
        }
    }

    /// Replaces the candidate with a flow record; returns `None` if there is none.
    ///
    /// # Errors
    /// If there is not enough memory; then nothing has changed.
    pub fn replace(
        &mut self,
        arena: &mut Arena,
        key: &Key,
        old: RecordPlace,
        planned: &Planned,
        mask: &Arc<KeyMask>,
        record: RecordPlace,
    ) -> Result<Option<OldCandidate>, Full> {
        let Some((place, found)) = self.find(arena, key, old) else {
            return Ok(None);
        };
        let block = make_candidate(arena, key, planned, mask, record)?;
        let next = self.next(arena, found);
        self.link(arena, key, ChainPosition { next, ..place }, block);
        Ok(Some((found, self.units(arena, found))))
    }

    /// Removes the candidate with a flow record; returns `None` if there is none.
    pub fn remove(
        &mut self,
        arena: &Arena,
        key: &Key,
        record: RecordPlace,
    ) -> Option<OldCandidate> {
        let (place, found) = self.find(arena, key, record)?;
        match (place.before, self.next(arena, found)) {
            (Some(before), next) => self.set_next(arena, before, next),
            (None, Some(next)) => {
                self.table.replace(arena, &key.values, next);
            }
            (None, None) => {
                self.table.remove(arena, &key.values);
            }
        }
        Some((found, self.units(arena, found)))
    }

    /// Frees all candidates, which no packet may use any longer.
    pub fn free(self, arena: &mut Arena) {
        let heads: Vec<_> = self.table.blocks().collect();
        for head in heads {
            let mut next = Some(head);
            while let Some(block) = next {
                next = self.next(arena, block);
                let units = self.units(arena, block);
                arena.free(block, units);
            }
        }
    }

    /// Returns the candidates of a key, in order.
    fn chain<'a>(&'a self, arena: &'a Arena, key: &Key) -> impl Iterator<Item = Ref> + 'a {
        let first = self.table.find(arena, &key.values);
        std::iter::successors(first, move |&block| self.next(arena, block))
    }

    /// Returns the position before the first candidate for which `ends` holds.
    fn place(&self, arena: &Arena, key: &Key, ends: impl Fn(&Candidate) -> bool) -> ChainPosition {
        let mut before = None;
        for block in self.chain(arena, key) {
            if ends(self.candidate(arena, block)) {
                let next = Some(block);
                return ChainPosition { before, next };
            }
            before = Some(block);
        }
        ChainPosition { before, next: None }
    }

    /// Returns the candidate that refers to a flow record, and its position.
    fn find(&self, arena: &Arena, key: &Key, record: RecordPlace) -> Option<(ChainPosition, Ref)> {
        let record = record_bits(arena, record);
        let place = self.place(arena, key, |candidate| candidate.record == record);
        Some((place, place.next?))
    }

    /// Links a candidate between its predecessor and successor.
    fn link(&mut self, arena: &Arena, key: &Key, place: ChainPosition, block: Ref) {
        self.set_next(arena, block, place.next);
        match place.before {
            Some(before) => self.set_next(arena, before, Some(block)),
            None => {
                self.table.replace(arena, &key.values, block);
            }
        }
    }

    fn set_next(&self, arena: &Arena, block: Ref, next: Option<Ref>) {
        let candidate = self.candidate(arena, block);
        candidate.next.store(next.map_or(0, Ref::bits), Release);
    }

    fn next(&self, arena: &Arena, block: Ref) -> Option<Ref> {
        Ref::from_bits(self.candidate(arena, block).next.load(Relaxed))
    }

    fn candidate<'a>(&self, arena: &'a Arena, block: Ref) -> &'a Candidate {
        // SAFETY: the blocks in the table, and blocks linked from them, are candidates after `words` words. None is freed while
        // the arena is borrowed.
        unsafe { &*candidate_at(arena.base(), block, self.words) }
    }

    /// Returns the size of a candidate, in units of the arena.
    fn units(&self, arena: &Arena, block: Ref) -> usize {
        // SAFETY: masks live as long as their candidates.
        let values = unsafe { (*self.candidate(arena, block).mask).words.len() };
        candidate_units(self.words, values)
    }
}

/// Creates a candidate after this key, and does not publish it yet.
fn make_candidate(
    arena: &mut Arena,
    key: &Key,
    planned: &Planned,
    mask: &Arc<KeyMask>,
    record: RecordPlace,
) -> Result<Ref, Full> {
    let (words, values) = (key.values.len(), &planned.key.values);
    let block = arena
        .allocate(candidate_units(words, values.len()))
        .ok_or(Full)?;
    let record = record_bits(arena, record);
    // SAFETY: the block is ours, long enough, aligned, and not published yet.
    unsafe {
        let start = arena.pointer(block).cast::<u64>();
        start.copy_from_nonoverlapping(key.values.as_ptr(), words);
        let candidate = start.add(words).cast::<Candidate>();
        addr_of_mut!((*candidate).rank).write(planned.rank.to_bits());
        addr_of_mut!((*candidate).mask).write(Arc::as_ptr(mask));
        addr_of_mut!((*candidate).record).write(record);
        addr_of_mut!((*candidate).next).write(AtomicU32::new(0));
        let place = addr_of_mut!((*candidate).values).cast::<u64>();
        place.copy_from_nonoverlapping(values.as_ptr(), values.len());
    }
    Ok(block)
}

fn record_bits(arena: &Arena, place: RecordPlace) -> u32 {
    ((place.record as usize - arena.base() as usize) / size_of::<u64>()) as u32
}
