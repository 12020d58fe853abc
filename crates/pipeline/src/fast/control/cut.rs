//! Cuts of a table into sub-tables, and an entry's sub-tables.

use super::match_key::Key;
use super::planned::Planned;
use crate::EntryMatch;
use crate::fast::datapath::kinds::Kinds;
use std::collections::BTreeMap;
use urtica_wire::OxmField;

/// A cut of a table by the value of a field under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub field: OxmField,
    pub mask: u128,
    /// The headers that a packet with the field has.
    pub require: Kinds,
}

/// Ordered entries, split into sub-tables.
#[derive(Debug)]
pub(super) struct Split<T> {
    /// For each value, the number of entries that are only in this sub-table, and all its entries.
    pub of_value: BTreeMap<u128, (usize, Vec<T>)>,
    pub rest: Vec<T>,
}

/// The sub-tables of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The sub-table of this value.
    One(u128),
    /// The rest, and all sub-tables with this value under this mask.
    Several { value: u128, mask: u128 },
}

impl Cut {
    /// Creates a cut by a field; `None` for a field that has no single location in packets.
    pub fn new(field: OxmField, mask: u128) -> Option<Self> {
        let key = Key::of_field(field, 0, mask)?;
        Some(Self {
            field,
            mask,
            require: key.mask.require,
        })
    }

    /// Returns the key of packets in the sub-table of this value. Every value has a key, since 0 has one: see [`Cut::new`].
    pub fn key(&self, value: u128) -> Option<Key> {
        Key::of_field(self.field, value, self.mask)
    }

    /// Returns the side of an entry with this match.
    pub fn side(&self, match_: &EntryMatch) -> Side {
        let (value, mask) = match_.get(self.field).unwrap_or_default();
        match self.mask & !mask == 0 {
            true => Side::One(value & self.mask),
            false => Side::Several {
                value: value & self.mask,
                mask: mask & self.mask,
            },
        }
    }

    /// Returns the sub-tables of ordered entries; `None` if they would need more than the maximum number of slots.
    pub fn split<T: Copy>(
        &self,
        entries: &[T],
        places_max: usize,
        planned: impl Fn(&T) -> &Planned,
    ) -> Option<Split<T>> {
        let mut of_value: BTreeMap<u128, (usize, Vec<T>)> = BTreeMap::new();
        let mut several = Vec::new();
        for entry in entries {
            match self.side(&planned(entry).entry.match_) {
                Side::One(value) => of_value.entry(value).or_default().1.push(*entry),
                side => several.push((side, *entry)),
            }
        }
        let mut places = several.len();
        for (&value, (own, entries)) in &mut of_value {
            *own = entries.len();
            let others = several.iter().filter(|(side, _)| side.is_in(value));
            entries.extend(others.map(|&(_, entry)| entry));
            entries.sort_unstable_by_key(|entry| planned(entry).rank);
            places += entries.len();
            if places > places_max {
                return None;
            }
        }
        let rest = several.into_iter().map(|(_, entry)| entry).collect();
        Some(Split { of_value, rest })
    }

    /// Returns `true` if every packet of a sub-table has the value that its entries require in this field.
    pub fn implies(&self, field: OxmField, mask: u128) -> bool {
        self.field == field && mask & !self.mask == 0
    }
}

impl Side {
    /// Returns `true` if it includes the sub-table of a value.
    pub fn is_in(self, sub_table: u128) -> bool {
        match self {
            Self::One(value) => value == sub_table,
            Self::Several { value, mask } => (value ^ sub_table) & mask == 0,
        }
    }
}

/// Returns `true` if an entry matches all packets of a sub-table.
pub(super) fn is_everything(match_: &EntryMatch, key: &Key, cuts: &[Cut]) -> bool {
    let have = cuts
        .iter()
        .fold(Kinds::empty(), |have, cut| have | cut.require);
    let mut fields = match_.fields().iter();
    have.contains(key.mask.require)
        && fields.all(|&(field, _, mask)| {
            cuts.iter().any(|cut| cut.implies(field, mask)) || key.is_header(field)
        })
}
