//! A form's merged tuples: hash tables shared by entries with different bits.
//!
//! The entries of each tuple have been chosen ([`Choice`](crate::fast::control::choice::Choice)). A later entry is added to a
//! tuple with entries of its set of bits, or to the first of [`LOOKED_AT_MAX`] tuples with space for it, or to a new tuple.
//! At worst, the table is an ordinary tuple space until it is planned again.

use super::{Member, NO_ROOM, NeedsRebuild};
use crate::EntryMatch;
use crate::classifier::Rank;
use crate::fast::control::chains::Chains;
use crate::fast::control::choice::MergedTuple;
use crate::fast::control::match_key::Key;
use crate::fast::control::merge::{CHAIN_MAX, Shape};
use crate::fast::control::planned::Planned;
use crate::fast::control::record_place::RecordPlace;
use crate::fast::control::store::{OldForm, OldTuples, OwnedBody, Store};
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::kinds::Depth;
use crate::fast::datapath::merged::{Tuple, Tuples};
use crate::fast::datapath::table::Template;
use crate::fast::memory::arena::Arena;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// The maximum number of tuples that are tried for an entry with a new set of bits.
const LOOKED_AT_MAX: usize = 64;

/// Merged tuples, for the thread that changes them.
#[derive(Debug)]
pub(in crate::fast::control) struct MergedTuples {
    tuples: Vec<OwnedTuple>,
    shown: Box<Tuples>,
    /// The tuples with entries of each set of bits.
    homes: HashMap<Arc<KeyMask>, Vec<usize>>,
    depth: Depth,
}

#[derive(Debug)]
struct OwnedTuple {
    shape: Shape,
    chains: Chains,
    shown: Arc<Tuple>,
}

impl MergedTuples {
    /// Creates the chosen tuples of these ordered entries. Other entries are added if a tuple has space.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(super) fn new(
        store: &mut Store,
        members: &[Member],
        chosen: &[MergedTuple],
    ) -> Result<Self, &'static str> {
        let mut merged = Self {
            tuples: Vec::with_capacity(chosen.len()),
            shown: Box::new(Tuples::new(&[], 0, chosen.len())),
            homes: HashMap::new(),
            depth: Depth::default(),
        };
        match merged.fill(store, members, chosen) {
            Ok(()) => Ok(merged),
            Err(NeedsRebuild) => {
                merged.free(&mut store.arena);
                Err(NO_ROOM)
            }
        }
    }

    fn fill(
        &mut self,
        store: &mut Store,
        members: &[Member],
        chosen: &[MergedTuple],
    ) -> Result<(), NeedsRebuild> {
        let mut is_left = vec![true; members.len()];
        for (shape, entries) in present(members, chosen) {
            let first = &members[entries[0]].planned.entry.match_;
            let at = self.add_tuple(store, shape, first, None)?;
            // Each is inserted before the previous ones, so that no chain is traversed.
            for &index in entries.iter().rev() {
                self.put_into(store, at, &members[index])?;
                is_left[index] = false;
            }
        }
        let left = members.iter().zip(is_left);
        for (member, _) in left.filter(|&(_, is_left)| is_left) {
            self.put(store, member, None)?;
        }
        // Packets have never seen unordered tuples.
        let count = self.tuples.len();
        *self.shown = self.shown_tuples(count, count);
        Ok(())
    }

    /// Returns the template, and the address of the tuples.
    pub(super) fn template(&self) -> (Template, Vec<*const u8>) {
        let tuples = std::ptr::from_ref(&*self.shown).cast();
        (Template::Merged(self.depth), vec![tuples])
    }

    /// Makes packets find an entry. `shown` is the published body.
    pub(super) fn put(
        &mut self,
        store: &mut Store,
        member: &Member,
        shown: Option<&OwnedBody>,
    ) -> Result<(), NeedsRebuild> {
        // Not later: packets find the entry as soon as it is put.
        store.reach_depth(member.planned.key.mask.depth);
        let at = match self.place_for(store, member.planned) {
            Some(at) => at,
            None => {
                let match_ = &member.planned.entry.match_;
                let shape = Shape::of(match_, &member.planned.key);
                self.add_tuple(store, &shape, match_, shown)?
            }
        };
        self.put_into(store, at, member)
    }

    /// Makes packets find an entry instead of one with equal match and rank.
    pub(super) fn replace(
        &mut self,
        store: &mut Store,
        old: RecordPlace,
        member: &Member,
    ) -> Result<(), NeedsRebuild> {
        let planned = member.planned;
        let home = self.homes.get_key_value(&planned.key.mask);
        let (mask, homes) = home.ok_or(NeedsRebuild)?;
        for &at in homes {
            let tuple = &mut self.tuples[at];
            let key = tuple.key(&planned.entry.match_)?;
            let chains = &mut tuple.chains;
            let replaced = chains.replace(&mut store.arena, &key, old, planned, mask, member.place);
            if let Some((block, units)) = replaced.map_err(|_| NeedsRebuild)? {
                store.retire(OldForm::Block(block, units));
                return Ok(());
            }
        }
        Err(NeedsRebuild)
    }

    /// Hides an entry from packets.
    pub(super) fn remove(
        &mut self,
        store: &mut Store,
        member: &Member,
    ) -> Result<(), NeedsRebuild> {
        let planned = member.planned;
        let homes = self.homes.get(&planned.key.mask).ok_or(NeedsRebuild)?;
        for &at in homes {
            let tuple = &mut self.tuples[at];
            let key = tuple.key(&planned.entry.match_)?;
            let removed = tuple.chains.remove(&store.arena, &key, member.place);
            if let Some((block, units)) = removed {
                store.retire(OldForm::Block(block, units));
                return Ok(());
            }
        }
        Err(NeedsRebuild)
    }

    /// Returns the number of hash tables, and of the entries' sets of bits.
    pub fn counts(&self) -> (usize, usize) {
        (self.tuples.len(), self.homes.len())
    }

    /// Returns the size of its search structures in bytes, without those in the arena.
    pub fn bytes(&self) -> usize {
        let tables = self.tuples.iter().map(|tuple| tuple.chains.bytes());
        tables.sum::<usize>() + self.tuples.len() * (size_of::<Tuple>() + size_of::<usize>())
    }

    /// Returns the parts, to be freed when packets can no longer see them.
    pub(super) fn retired(self) -> OldTuples {
        let tuples = self.tuples.into_iter();
        OldTuples {
            tuples: tuples.map(|tuple| (tuple.chains, tuple.shown)).collect(),
            masks: self.homes.into_keys().collect(),
            shown: self.shown,
        }
    }

    /// Frees it; packets must never have seen it.
    pub(super) fn free(self, arena: &mut Arena) {
        self.retired().free(arena);
    }

    /// Returns a tuple that has space for an entry: one with similar entries, if possible.
    fn place_for(&self, store: &Store, planned: &Planned) -> Option<usize> {
        let match_ = &planned.entry.match_;
        let shape = Shape::of(match_, &planned.key);
        let has_place = |&at: &usize| self.tuples[at].has_place(&store.arena, &shape, match_);
        let homes = self.homes.get(&planned.key.mask);
        let known = homes.and_then(|homes| homes.iter().copied().find(has_place));
        known.or_else(|| (0..self.tuples.len().min(LOOKED_AT_MAX)).find(has_place))
    }

    /// Adds a tuple without entries after the others. `match_` is the match of an entry that it is for.
    fn add_tuple(
        &mut self,
        store: &mut Store,
        shape: &Shape,
        match_: &EntryMatch,
        shown: Option<&OwnedBody>,
    ) -> Result<usize, NeedsRebuild> {
        let mask = shape.key(match_).ok_or(NeedsRebuild)?.mask;
        let chains = Chains::new(mask.words.len());
        self.tuples.push(OwnedTuple {
            shape: shape.clone(),
            shown: Arc::new(Tuple::new(&mask, chains.slots_ptr())),
            chains,
        });
        let at = self.tuples.len() - 1;
        if self.shown.has_room() {
            self.shown.show(&self.tuples[at].shown);
            return Ok(at);
        }
        let grown = Box::new(self.shown_tuples(self.shown.ordered, 2 * self.tuples.len()));
        let old = std::mem::replace(&mut self.shown, grown);
        if let Some(shown) = shown {
            let tuples = std::ptr::from_ref(&*self.shown).cast_mut();
            shown.body.parts[0].store(tuples.cast(), Release);
        }
        store.retire(OldForm::Tuples(old));
        Ok(at)
    }

    /// Creates the tuples to publish, the first `ordered` of which are sorted, with a capacity of `room`.
    fn shown_tuples(&self, ordered: usize, room: usize) -> Tuples {
        let tuples: Vec<_> = self
            .tuples
            .iter()
            .map(|tuple| tuple.shown.clone())
            .collect();
        Tuples::new(&tuples, ordered, room)
    }

    /// Puts an entry into a tuple.
    fn put_into(
        &mut self,
        store: &mut Store,
        at: usize,
        member: &Member,
    ) -> Result<(), NeedsRebuild> {
        let planned = member.planned;
        self.depth = self.depth.max(planned.key.mask.depth);
        self.note_rank(at, planned.rank.to_bits());
        let mask = self.add_home(&planned.key.mask, at);
        let tuple = &mut self.tuples[at];
        let key = tuple.key(&planned.entry.match_)?;
        let put = tuple
            .chains
            .put(&mut store.arena, &key, planned, &mask, member.place);
        if let Some(old) = put.map_err(|_| NeedsRebuild)? {
            let slots = tuple.chains.slots_ptr().cast_mut();
            tuple.shown.slots.store(slots, Release);
            store.retire(OldForm::Slots(old));
        }
        Ok(())
    }

    /// Notes that a tuple contains entries with this set of bits.
    fn add_home(&mut self, mask: &KeyMask, at: usize) -> Arc<KeyMask> {
        let known = self.homes.get_key_value(mask).map(|(mask, _)| mask.clone());
        let mask = known.unwrap_or_else(|| Arc::new(mask.clone()));
        let homes = self.homes.entry(mask.clone()).or_default();
        if !homes.contains(&at) {
            homes.push(at);
        }
        mask
    }

    /// Notes a rank before packets can find its entry.
    fn note_rank(&self, at: usize, rank: u64) {
        self.tuples[at].shown.best.fetch_min(rank, Relaxed);
        if at >= self.shown.ordered {
            return;
        }
        for tuple in self.tuples[..=at].iter().rev() {
            if tuple.shown.best_from_here.fetch_min(rank, Relaxed) <= rank {
                break;
            }
        }
    }
}

/// Returns the chosen tuples that have entries, sorted by the best rank, with the indices of their entries in `members`,
/// which are sorted.
fn present<'a>(members: &[Member], chosen: &'a [MergedTuple]) -> Vec<(&'a Shape, Vec<usize>)> {
    let place = |rank: &Rank| {
        let found = members.binary_search_by_key(rank, |member| member.planned.rank);
        found.ok()
    };
    let tuples = chosen.iter().map(|tuple| {
        let entries = tuple.ranks.iter().filter_map(place);
        (&tuple.shape, entries.collect::<Vec<_>>())
    });
    let mut present: Vec<_> = tuples.filter(|(_, entries)| !entries.is_empty()).collect();
    // The first entry has the best rank.
    present.sort_by_key(|(_, entries)| entries[0]);
    present
}

impl OwnedTuple {
    /// Returns an entry's key in the tuple.
    fn key(&self, match_: &EntryMatch) -> Result<Key, NeedsRebuild> {
        self.shape.key(match_).ok_or(NeedsRebuild)
    }

    fn has_place(&self, arena: &Arena, shape: &Shape, match_: &EntryMatch) -> bool {
        let is_short = || {
            let key = self.shape.key(match_);
            key.is_some_and(|key| !self.chains.has(arena, &key, CHAIN_MAX))
        };
        self.shape == *shape || self.shape.is_within(shape) && is_short()
    }
}
