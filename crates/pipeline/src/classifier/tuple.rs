//! A tuple: the entries that match on the same bits of the same fields.

use super::fields_read::FieldsRead;
use super::hash::Seeds;
use super::rank::Rank;
use crate::{EntryMatch, FlowEntry};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;
use urtica_wire::OxmField;

/// Entries by the values of some fields under some masks.
///
/// The key consists of the values, without the trailing bits outside their masks, side by side in 128 bits; an IPv4
/// five-tuple needs 120. If they need more, the key is a hash of them. Entries with different values may then share a key,
/// so the entry's match is compared.
#[derive(Debug)]
pub(super) struct Tuple {
    parts: Box<[TupleField]>,
    /// Whether keys are hashes.
    is_hashed: bool,
    /// The first entry of each key.
    first: HashTable<TupleSlot>,
    /// Further entries of each key. Few tables have any.
    others: BTreeMap<(u128, Rank), Arc<FlowEntry>>,
    /// The number of entries of each priority.
    priorities: BTreeMap<u16, usize>,
    seeds: Seeds,
    hash: u64,
}

/// A field's bits in a tuple.
#[derive(Debug)]
struct TupleField {
    field: OxmField,
    mask: u128,
    /// The number of bits from the field's first to the mask's last, and the number after that.
    bits: u32,
    shift: u32,
}

/// A slot of the hash table.
#[derive(Debug)]
struct TupleSlot {
    key: u128,
    rank: Rank,
    entry: Arc<FlowEntry>,
}

impl Tuple {
    /// Creates an empty tuple for entries with this match.
    pub fn new(match_: &EntryMatch, seeds: Seeds) -> Self {
        let fields = match_.fields().iter();
        let parts: Box<[_]> = fields
            .map(|&(field, _, mask)| TupleField::new(field, mask))
            .collect();
        Self {
            is_hashed: parts.iter().map(|part| part.bits).sum::<u32>() > u128::BITS,
            parts,
            first: HashTable::new(),
            others: BTreeMap::new(),
            priorities: BTreeMap::new(),
            seeds,
            hash: seeds.hash_masks(match_),
        }
    }

    /// Returns `true` if entries with this match belong here.
    pub fn is_tuple_of(&self, match_: &EntryMatch) -> bool {
        let own = self.parts.iter().map(|part| (part.field, part.mask));
        own.eq(match_
            .fields()
            .iter()
            .map(|&(field, _, mask)| (field, mask)))
    }

    /// Returns a hash of its fields and masks.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the highest priority of its entries.
    pub fn highest(&self) -> Option<u16> {
        self.priorities
            .last_key_value()
            .map(|(&priority, _)| priority)
    }

    /// Returns `true` if its masks contain every bit of `match_`; then no other tuple has entries within `match_`.
    pub fn looks_at_all_of(&self, match_: &EntryMatch) -> bool {
        let mut fields = match_.fields().iter();
        fields.all(|&(field, _, mask)| {
            let mut parts = self.parts.iter();
            parts.any(|part| part.field == field && mask & !part.mask == 0)
        })
    }

    /// Returns the first entry that a packet matches.
    #[inline]
    pub fn find(&self, fields: &mut FieldsRead) -> Option<(Rank, &Arc<FlowEntry>)> {
        let key = self.key(|part| fields.get(part.field))?;
        let first = self.first_of(key)?;
        if !self.is_hashed || first.entry.match_.matches(fields.packet()) {
            return Some((first.rank, &first.entry));
        }
        let mut others = self.others_of(key);
        others.find(|(_, entry)| entry.match_.matches(fields.packet()))
    }

    /// Returns the entry with this priority and exactly this match.
    pub fn find_strict(
        &self,
        priority: u16,
        match_: &EntryMatch,
    ) -> Option<(Rank, &Arc<FlowEntry>)> {
        let key = self.key_of(match_)?;
        let first = self.first_of(key)?;
        if first.rank.priority() == priority && first.entry.match_ == *match_ {
            return Some((first.rank, &first.entry));
        }
        let (start, end) = Rank::all_of(priority).into_inner();
        let others = self.others.range((key, start)..=(key, end));
        let mut others = others.map(|(&(_, rank), entry)| (rank, entry));
        others.find(|(_, entry)| entry.match_ == *match_)
    }

    /// Returns the entry with exactly this match and the highest priority.
    pub fn first_with(&self, match_: &EntryMatch) -> Option<(Rank, &Arc<FlowEntry>)> {
        let mut with = self.with(self.key_of(match_)?);
        with.find(|(_, entry)| entry.match_ == *match_)
    }

    /// Returns all entries that match a packet that `match_` also matches, and possibly others.
    pub fn near(&self, match_: &EntryMatch) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let key = self.key_of(match_);
        let (some, all) = match key {
            Some(key) => (Some(self.with(key)), None),
            None => (None, Some(self.all())),
        };
        some.into_iter().flatten().chain(all.into_iter().flatten())
    }

    /// Adds an entry of this tuple. There must be no entry with its rank.
    pub fn insert(&mut self, rank: Rank, entry: Arc<FlowEntry>) {
        let Some(key) = self.key_of(&entry.match_) else {
            return;
        };
        *self.priorities.entry(rank.priority()).or_default() += 1;
        let mut new = TupleSlot { key, rank, entry };
        let seeds = self.seeds;
        let hash_of = |place: &TupleSlot| seeds.hash(place.key);
        match self
            .first
            .entry(seeds.hash(key), |place| place.key == key, hash_of)
        {
            Entry::Vacant(vacant) => {
                vacant.insert(new);
            }
            Entry::Occupied(mut first) => {
                if new.rank < first.get().rank {
                    std::mem::swap(&mut new, first.get_mut());
                }
                self.others.insert((key, new.rank), new.entry);
            }
        }
    }

    /// Replaces the entry with this rank by one with the same match.
    pub fn replace(&mut self, rank: Rank, entry: Arc<FlowEntry>) {
        let Some(key) = self.key_of(&entry.match_) else {
            return;
        };
        let hash = self.seeds.hash(key);
        match self.first.find_mut(hash, |place| place.key == key) {
            Some(first) if first.rank == rank => first.entry = entry,
            _ => {
                self.others
                    .entry((key, rank))
                    .and_modify(|old| *old = entry);
            }
        }
    }

    /// Removes the entry with this rank and match.
    pub fn remove(&mut self, rank: Rank, match_: &EntryMatch) {
        let Some(key) = self.key_of(match_) else {
            return;
        };
        let is_removed = self.remove_first(key, rank) || self.others.remove(&(key, rank)).is_some();
        if is_removed {
            self.discount(rank.priority());
        }
    }

    /// Removes the first entry of a key, if it has this rank, and makes the next one the first.
    fn remove_first(&mut self, key: u128, rank: Rank) -> bool {
        let next = self.others_of(key).next().map(|(rank, _)| rank);
        let hash = self.seeds.hash(key);
        let is_it = |place: &TupleSlot| place.key == key && place.rank == rank;
        let Ok(mut first) = self.first.find_entry(hash, is_it) else {
            return false;
        };
        match next.and_then(|rank| Some((rank, self.others.remove(&(key, rank))?))) {
            Some((rank, entry)) => *first.get_mut() = TupleSlot { key, rank, entry },
            None => {
                first.remove();
            }
        }
        true
    }

    /// Counts the removal of an entry with this priority.
    fn discount(&mut self, priority: u16) {
        if let Some(count) = self.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
    }

    /// Returns all entries of a key.
    fn with(&self, key: u128) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let first = self.first_of(key).into_iter();
        let first = first.map(|place| (place.rank, &place.entry));
        first.chain(self.others_of(key))
    }

    /// Returns all entries.
    fn all(&self) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let first = self.first.iter().map(|place| (place.rank, &place.entry));
        let others = self.others.iter();
        first.chain(others.map(|(&(_, rank), entry)| (rank, entry)))
    }

    #[inline]
    fn first_of(&self, key: u128) -> Option<&TupleSlot> {
        let hash = self.seeds.hash(key);
        self.first.find(hash, |place| place.key == key)
    }

    fn others_of(&self, key: u128) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let others = self.others.range((key, Rank::FIRST)..=(key, Rank::LAST));
        others.map(|(&(_, rank), entry)| (rank, entry))
    }

    /// Returns the key of all packets that `match_` matches; `None` if they have several.
    fn key_of(&self, match_: &EntryMatch) -> Option<u128> {
        self.key(|part| {
            let (value, mask) = match_.get(part.field)?;
            (part.mask & !mask == 0).then_some(value)
        })
    }

    /// Returns the key of these field values.
    #[inline]
    fn key(&self, mut value_of: impl FnMut(&TupleField) -> Option<u128>) -> Option<u128> {
        let mut key: u128 = 0;
        for part in &self.parts {
            let value = value_of(part)? & part.mask;
            key = match self.is_hashed {
                true => self.seeds.hash_on(key as u64, value).into(),
                false => key.checked_shl(part.bits).unwrap_or(0) | value >> part.shift,
            };
        }
        Some(key)
    }
}

impl TupleField {
    /// No mask of a match is zero.
    fn new(field: OxmField, mask: u128) -> Self {
        let shift = mask.trailing_zeros();
        let bits = field.bits() - shift;
        Self {
            field,
            mask,
            bits,
            shift,
        }
    }
}
