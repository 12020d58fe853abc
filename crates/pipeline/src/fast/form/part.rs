//! One hash table of a form: the entries that look at the same bits.

use super::{NeedsRebuild, make_cell};
use crate::FlowEntry;
use crate::classifier::Rank;
use crate::fast::arena::UNIT_BYTES;
use crate::fast::hash_table::{HashTable, SlotArray};
use crate::fast::key::{Key, KeyShape};
use crate::fast::store::Store;
use crate::fast::table::{HashPart, MAX_PARTS, Template};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The entries that look at the same bits.
#[derive(Debug)]
pub(super) struct Part {
    pub shape: KeyShape,
    pub table: HashTable,
    /// How many entries have each priority, those included that are hidden behind another one with the same key.
    pub priorities: BTreeMap<u16, usize>,
}

/// Where the part of this key is; a new one is added at the end, which nobody sees yet.
pub(super) fn part_index(parts: &mut Vec<Part>, key: &Key) -> Result<usize, NeedsRebuild> {
    let known = parts.iter().position(|part| part.shape == key.shape);
    if known.is_none() {
        // One table of prefixes may be better than one hash table for each length.
        if parts.len() == MAX_PARTS || parts.iter().all(|part| part.may_be_routes()) {
            return Err(NeedsRebuild);
        }
        parts.push(Part::new(&key.shape));
    }
    Ok(known.unwrap_or(parts.len() - 1))
}

/// How these parts are searched, and where their slots are.
pub(super) fn hash_template(parts: &[Part], near_bytes: usize) -> (Template, Vec<*const u8>) {
    let is_alone = parts.len() == 1;
    let described = parts.iter().enumerate().map(|(index, part)| HashPart {
        shape: part.shape.clone(),
        is_far: is_alone && part.bytes() > near_bytes,
        is_final: parts
            .get(index + 1)
            .is_none_or(|next| next.highest() < part.lowest()),
    });
    let pointers = parts.iter().map(|part| part.table.slots_ptr().cast());
    (Template::Hash(described.collect()), pointers.collect())
}

impl Part {
    pub fn new(shape: &KeyShape) -> Self {
        Self {
            shape: shape.clone(),
            table: HashTable::new(shape.words.len()),
            priorities: BTreeMap::new(),
        }
    }

    pub fn highest(&self) -> Option<u16> {
        self.priorities
            .last_key_value()
            .map(|(&priority, _)| priority)
    }

    fn lowest(&self) -> Option<u16> {
        self.priorities
            .first_key_value()
            .map(|(&priority, _)| priority)
    }

    /// What packets may have to look at.
    fn bytes(&self) -> usize {
        self.table.bytes() + self.table.len() * 2 * UNIT_BYTES
    }

    /// Whether all entries may be routes of one length, as far as can be told without a look at them.
    fn may_be_routes(&self) -> bool {
        self.priorities.len() == 1 && self.shape.words.len() <= 2
    }

    pub fn count(&mut self, rank: Rank) {
        *self.priorities.entry(rank.priority()).or_default() += 1;
    }

    fn discount(&mut self, rank: Rank) {
        if let Some(count) = self.priorities.get_mut(&rank.priority()) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&rank.priority());
            }
        }
    }

    /// Adds an entry, unless it is hidden behind one of the same key. `grown` is told of an array that has to be shown.
    pub fn add(
        &mut self,
        store: &mut Store,
        rank: Rank,
        entry: &Arc<FlowEntry>,
        key: &Key,
        grown: impl FnOnce(&Self, SlotArray, &mut Store),
    ) -> Result<(), NeedsRebuild> {
        let twin = self.table.find(&store.arena, &key.values);
        if let Some(twin) = twin
            && store.rank_of(twin, key.values.len()) < rank.to_bits()
        {
            self.count(rank);
            return Ok(());
        }
        let place = make_cell(store, rank, entry, key, key.values.len())?;
        self.count(rank);
        // SAFETY: the store keeps the cell until it is retired, and clears the link then.
        unsafe { entry.cell.set(place.cell) };
        if twin.is_some() {
            // The one that is hidden now keeps its cell, for packets that have found it.
            self.table.replace(&store.arena, &key.values, place.block);
        } else if let Some(old) = self.table.insert(&store.arena, &key.values, place.block) {
            grown(self, old, store);
        }
        Ok(())
    }

    /// Takes an entry out; if another one with the same key is left, packets find that from now on.
    pub fn remove(
        &mut self,
        store: &mut Store,
        rank: Rank,
        entry: &FlowEntry,
        next: Option<(Rank, &Arc<FlowEntry>)>,
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        let found = self.table.find(&store.arena, &key.values);
        let cell = entry.cell.cell();
        let is_found = !cell.is_null() && found == Some(store.block_of(cell, key.values.len()));
        if is_found {
            match next {
                Some((rank, next)) => self.unhide(store, rank, next, key)?,
                None => {
                    self.table.remove(&store.arena, &key.values);
                }
            }
        }
        self.discount(rank);
        Ok(())
    }

    fn unhide(
        &mut self,
        store: &mut Store,
        rank: Rank,
        entry: &Arc<FlowEntry>,
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        let words = key.values.len();
        let block = if entry.cell.cell().is_null() {
            let place = make_cell(store, rank, entry, key, words)?;
            // SAFETY: the store keeps the cell until it is retired, and clears the link then.
            unsafe { entry.cell.set(place.cell) };
            place.block
        } else {
            store.block_of(entry.cell.cell(), words)
        };
        self.table.replace(&store.arena, &key.values, block);
        Ok(())
    }
}
