//! One hash table of a form: the entries with one set of bits.

use super::{Member, NeedsRebuild, Next};
use crate::classifier::Rank;
use crate::fast::control::record_place::RecordPlace;
use crate::fast::control::store::Store;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::table::{HashPart, MAX_PARTS, Template};
use crate::fast::memory::arena::UNIT_BYTES;
use crate::fast::memory::hash_table::{HashTable, SlotArray};
use std::collections::BTreeMap;

/// The entries with one set of bits.
#[derive(Debug)]
pub(super) struct Part {
    pub mask: KeyMask,
    /// The number of words before each flow record.
    room: usize,
    pub table: HashTable,
    /// The number of entries of each priority, including entries hidden by another one with an equal key.
    pub priorities: BTreeMap<u16, usize>,
}

/// Returns the index of an entry's part. A new part is added at the end, and not published yet.
pub(super) fn part_index(parts: &mut Vec<Part>, member: &Member) -> Result<usize, NeedsRebuild> {
    let mask = &member.planned.key.mask;
    let known = parts.iter().position(|part| part.mask == *mask);
    if known.is_none() {
        // One table of prefixes may be better than a hash table for each length.
        if parts.len() == MAX_PARTS || parts.iter().all(|part| part.may_be_routes()) {
            return Err(NeedsRebuild);
        }
        parts.push(Part::new(mask, member.place.words));
    }
    Ok(known.unwrap_or(parts.len() - 1))
}

/// Returns the template for searching these parts, and the addresses of their slots.
pub(super) fn hash_template(parts: &[Part], near_bytes: usize) -> (Template, Vec<*const u8>) {
    let is_alone = parts.len() == 1;
    let described = parts.iter().enumerate().map(|(index, part)| HashPart {
        mask: part.mask.clone(),
        room: part.room,
        is_far: is_alone && part.bytes() > near_bytes,
        is_final: parts
            .get(index + 1)
            .is_none_or(|next| next.highest() < part.lowest()),
    });
    let pointers = parts.iter().map(|part| part.table.slots_ptr().cast());
    (Template::Hash(described.collect()), pointers.collect())
}

/// Returns `true` if the published parts still find all entries of these parts.
///
/// Publishing others needs new code, which costs more than many changes. So empty parts stay until half of all are empty, or
/// all but one, and parts stay in an order in which some searches could end sooner.
pub(super) fn are_shown_by(parts: &[Part], shown: &[HashPart], near_bytes: usize) -> bool {
    let empty = parts.iter().filter(|part| part.priorities.is_empty());
    let (empty, all) = (empty.count(), parts.len());
    if shown.len() != all || 2 * empty > all || empty > 0 && empty + 1 >= all {
        return false;
    }
    let is_alone = parts.len() == 1;
    let mut highest_behind = None;
    let mut pairs = shown.iter().zip(parts).rev();
    pairs.all(|(shown, part)| {
        let is_final = part
            .lowest()
            .is_none_or(|lowest| highest_behind < Some(lowest));
        highest_behind = highest_behind.max(part.highest());
        shown.mask == part.mask
            && shown.room == part.room
            && shown.is_far == (is_alone && part.bytes() > near_bytes)
            && (is_final || !shown.is_final)
    })
}

/// Creates a hash table for each set of bits.
pub(super) fn hash_parts(store: &Store, members: &[Member]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for member in members {
        let mask = &member.planned.key.mask;
        let known = parts.iter().position(|part| part.mask == *mask);
        let index = known.unwrap_or_else(|| {
            parts.push(Part::new(mask, member.place.words));
            parts.len() - 1
        });
        // If an array was outgrown, no packet has seen it.
        drop(parts[index].put(store, member));
    }
    parts
}

impl Part {
    pub fn new(mask: &KeyMask, room: usize) -> Self {
        Self {
            mask: mask.clone(),
            room,
            table: HashTable::new(mask.words.len()),
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

    /// Returns the size of the memory that packets may access, in bytes.
    fn bytes(&self) -> usize {
        self.table.bytes() + self.table.len() * 2 * UNIT_BYTES
    }

    /// Returns `true` if all entries may be routes of one length, without inspecting them.
    fn may_be_routes(&self) -> bool {
        self.priorities.len() == 1 && self.mask.words.len() <= 2
    }

    fn count(&mut self, rank: Rank) {
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

    /// Makes packets find an entry, unless one with an equal key hides it. Returns an array that became too small; then the new
    /// one must be published.
    #[must_use]
    pub fn put(&mut self, store: &Store, member: &Member) -> Option<SlotArray> {
        let (values, place) = (&member.planned.key.values, member.place);
        self.count(member.planned.rank);
        let Some(twin) = self.table.find(&store.arena, values) else {
            return self.table.insert(&store.arena, values, place.block);
        };
        // SAFETY: blocks in this table have flow records after `room` words, and are removed before they are retired.
        let twin_rank = unsafe { store.rank_of(twin, self.room) };
        if member.planned.rank.to_bits() < twin_rank {
            // The entry that is hidden now keeps its flow record, for packets that have found it.
            self.table.replace(&store.arena, values, place.block);
        }
        None
    }

    /// Makes packets find an entry instead of one with equal match and rank, unless that one is hidden.
    pub fn replace(&mut self, store: &Store, old: RecordPlace, member: &Member) {
        let values = &member.planned.key.values;
        if self.table.find(&store.arena, values) == Some(old.block) {
            self.table.replace(&store.arena, values, member.place.block);
        }
    }

    /// Removes an entry. If another one with an equal key is left, packets find that one from now on.
    pub fn remove(&mut self, store: &Store, member: &Member, next: Next) {
        let values = &member.planned.key.values;
        if self.table.find(&store.arena, values) == Some(member.place.block) {
            match next {
                Some((_, next)) => self.table.replace(&store.arena, values, next),
                None => self.table.remove(&store.arena, values),
            };
        }
        self.discount(member.planned.rank);
    }
}
