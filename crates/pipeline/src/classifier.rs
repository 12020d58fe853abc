//! An index of a flow table's entries, to find a packet's entry without a linear search.
//!
//! **What.** [`Classifier::find`] returns the packet's entry with the highest priority, and among equal priorities the one
//! added first, which the specification leaves open (1.3.5 section 5.3). The reference model is a linear search.
//!
//! **How.** Tuple space search (Srinivasan, Suri and Varghese, SIGCOMM 1999), as in Open vSwitch. Entries that match on the
//! same bits of the same fields form a tuple: a hash table whose key is the packet's value of these bits. So a table of
//! similar entries needs one probe, whatever its size, and a table of prefixes one probe per length. Tuples are ordered by
//! their highest priority, and a search ends when no later tuple can have a better entry. A search reads a field of the
//! packet at most once. A packet without one of a tuple's fields matches no entry in it.
//!
//! **Cost.** A search probes one hash table per tuple and allocates nothing. Adding, removing and finding by strict match
//! need one probe, whatever the number of entries, and, among entries that differ only in priority, the logarithm of their
//! number. The weakness is many different masks: each needs its own probe. An entry uses 33 bytes in its tuple's hash
//! table, which is between 7/16 and 7/8 full: 43 bytes per entry for 100,000 entries.
//!
//! **Hashing.** A learning controller copies keys from packets, so an attacker can choose them. Random seeds per process
//! prevent the computation of keys that collide. The hash is fast, not cryptographic. Results do not depend on the seeds.
//!
//! **Thread-safety.** Any number of threads may search at once; a change needs exclusive access, which the borrow checker
//! enforces: a shared reference allows no changes.

mod fields_read;
mod hash;
mod rank;
mod tuple;

pub(crate) use rank::Rank;

use crate::{EntryMatch, FlowEntry, Packet};
use fields_read::FieldsRead;
use hash::Seeds;
use hashbrown::HashTable;
use slab::Slab;
use std::cmp::Reverse;
use std::sync::Arc;
use tuple::Tuple;

/// An index of entries by their matches.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    tuples: Slab<Tuple>,
    /// Each tuple's highest priority and its index in `tuples`, from the highest priority down.
    order: Vec<(Reverse<u16>, usize)>,
    /// The indices in `tuples`, by fields and masks.
    by_masks: HashTable<usize>,
    seeds: Seeds,
}

impl Classifier {
    /// Creates a classifier with as many collisions as possible, to test that results do not depend on the hashes.
    #[cfg(test)]
    pub fn colliding() -> Self {
        Self {
            seeds: Seeds::colliding(),
            ..Self::default()
        }
    }

    /// Returns whether it is empty, and has no empty tuples either.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty() && self.order.is_empty() && self.by_masks.is_empty()
    }

    /// Returns the number of tuples.
    pub fn tuple_count(&self) -> usize {
        self.tuples.len()
    }

    /// Returns the entry that a packet matches: of those with the highest priority, the one added first.
    pub fn find(&self, packet: &Packet) -> Option<&Arc<FlowEntry>> {
        let mut fields = FieldsRead::new(packet);
        let mut best: Option<(Rank, &Arc<FlowEntry>)> = None;
        for &(Reverse(highest), key) in &self.order {
            if best.is_some_and(|(rank, _)| rank.priority() > highest) {
                break;
            }
            let found = self.tuples[key].find(&mut fields);
            let better = found.filter(|&(rank, _)| best.is_none_or(|(known, _)| rank < known));
            if better.is_some() {
                best = better;
            }
        }
        best.map(|(_, entry)| entry)
    }

    /// Returns the entry with this priority and exactly this match.
    pub fn find_strict(
        &self,
        priority: u16,
        match_: &EntryMatch,
    ) -> Option<(Rank, &Arc<FlowEntry>)> {
        let tuple = &self.tuples[self.tuple_of(match_)?];
        tuple.find_strict(priority, match_)
    }

    /// Returns the entry with exactly this match and the highest priority.
    pub fn first_with(&self, match_: &EntryMatch) -> Option<(Rank, &Arc<FlowEntry>)> {
        self.tuples[self.tuple_of(match_)?].first_with(match_)
    }

    /// Returns all entries that match a packet that `match_` also matches, and possibly others, unordered.
    pub fn near(&self, match_: &EntryMatch) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let tuples = self.tuples.iter();
        tuples.flat_map(|(_, tuple)| tuple.near(match_))
    }

    /// Returns all entries that `match_` includes, and possibly others, unordered.
    pub fn within(&self, match_: &EntryMatch) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let tuples = self.tuples.iter();
        let finer = tuples.filter(|(_, tuple)| tuple.looks_at_all_of(match_));
        finer.flat_map(|(_, tuple)| tuple.near(match_))
    }

    /// Adds an entry. There must be no entry with its rank, or with its priority and match.
    pub fn insert(&mut self, rank: Rank, entry: Arc<FlowEntry>) {
        let key = self
            .tuple_of(&entry.match_)
            .unwrap_or_else(|| self.add_tuple(&entry.match_));
        self.change(key, |tuple| tuple.insert(rank, entry));
    }

    /// Replaces the entry with this rank by one with the same match.
    pub fn replace(&mut self, rank: Rank, entry: Arc<FlowEntry>) {
        if let Some(key) = self.tuple_of(&entry.match_) {
            self.tuples[key].replace(rank, entry);
        }
    }

    /// Removes the entry with this rank and match.
    pub fn remove(&mut self, rank: Rank, match_: &EntryMatch) {
        if let Some(key) = self.tuple_of(match_) {
            self.change(key, |tuple| tuple.remove(rank, match_));
        }
    }

    /// Returns the index of the tuple for entries with this match.
    fn tuple_of(&self, match_: &EntryMatch) -> Option<usize> {
        let hash = self.seeds.hash_masks(match_);
        let is_it = |&key: &usize| self.tuples[key].is_tuple_of(match_);
        self.by_masks.find(hash, is_it).copied()
    }

    fn add_tuple(&mut self, match_: &EntryMatch) -> usize {
        let Self { tuples, seeds, .. } = self;
        let key = tuples.insert(Tuple::new(match_, *seeds));
        let hash_of = |&key: &usize| tuples[key].hash();
        self.by_masks
            .insert_unique(tuples[key].hash(), key, hash_of);
        key
    }

    /// Changes a tuple, updates the order, and removes the tuple if it is empty.
    fn change(&mut self, key: usize, change: impl FnOnce(&mut Tuple)) {
        let tuple = &mut self.tuples[key];
        let before = tuple.highest();
        change(tuple);
        let after = tuple.highest();
        if before == after {
            return;
        }
        if let Some(priority) = before {
            self.take_out_of_order(priority, key);
        }
        match after {
            Some(priority) => self.put_in_order(priority, key),
            None => self.remove_tuple(key),
        }
    }

    fn take_out_of_order(&mut self, priority: u16, key: usize) {
        if let Ok(at) = self.order.binary_search(&(Reverse(priority), key)) {
            self.order.remove(at);
        }
    }

    fn put_in_order(&mut self, priority: u16, key: usize) {
        let place = (Reverse(priority), key);
        let at = self.order.partition_point(|other| *other < place);
        self.order.insert(at, place);
    }

    fn remove_tuple(&mut self, key: usize) {
        let hash = self.tuples.remove(key).hash();
        if let Ok(found) = self.by_masks.find_entry(hash, |&other| other == key) {
            found.remove();
        }
    }
}
