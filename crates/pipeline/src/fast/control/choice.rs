//! The choice of a table's search structures, which is the expensive part of planning.
//!
//! A choice is made for the entries of one moment, but can be applied to later ones: it refers to entries only by rank, and
//! unknown entries are treated like new ones. So a separate thread can make it while the table changes.

use super::cut::{Cut, Split, is_everything};
use super::decompose::{PARTS_MIN, Way, places_max};
use super::merge::{Shape, merge};
use super::planned::Planned;
use super::route::RouteTable;
use crate::classifier::Rank;
use crate::fast::datapath::table::MAX_PARTS;
use std::collections::{BTreeMap, HashSet};

/// How entries will be searched.
#[derive(Debug)]
pub(super) enum Choice {
    /// One by one.
    Direct,
    /// With hash tables.
    Hash,
    /// With a trie.
    Lpm,
    /// With sub-tables.
    Cut(Box<CutChoice>),
    /// With hash tables shared by entries with different sets of bits. Entries without one get one when they are added.
    Merged(Vec<MergedTuple>),
}

/// A table's cut, and the choice for each sub-table.
#[derive(Debug)]
pub(super) struct CutChoice {
    pub cut: Cut,
    /// The sub-tables, by the packet's value. Other packets use merged tuples.
    pub sub_tables: BTreeMap<u128, Choice>,
    pub rest: Choice,
}

/// A hash table that entries share.
#[derive(Debug)]
pub(super) struct MergedTuple {
    pub shape: Shape,
    /// The ranks of its entries, in order.
    pub ranks: Vec<Rank>,
}

/// How thoroughly to look for the best search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// With only a few inspections of each entry: without cuts, and without shared hash tables.
    Least,
    /// Without cuts.
    Uncut,
    /// Without limits.
    All,
}

impl Choice {
    /// Makes the choice for a table's ordered entries, which are too many for direct code, and none of which matches
    /// everything.
    pub fn new(entries: &[Planned], effort: Effort) -> Self {
        if RouteTable::of_compact(entries.iter(), &[]).is_some() {
            return Self::Lpm;
        }
        let masks = count_masks(entries);
        let all: Vec<_> = entries.iter().collect();
        if effort == Effort::All && masks >= PARTS_MIN {
            let cut = Cut::best(&all, &[], 0);
            if let Some(cut) = cut.and_then(|cut| Self::cut(&all, &[], cut, 1)) {
                return cut;
            }
        }
        match (masks, effort) {
            (0..=MAX_PARTS, _) => Self::Hash,
            (_, Effort::Least) => Self::Merged(Vec::new()),
            (_, Effort::Uncut | Effort::All) => Self::merged(&all),
        }
    }

    /// Returns merged tuples for ordered entries.
    pub fn merged(entries: &[&Planned]) -> Self {
        let tuples = merge(entries).into_iter().map(|tuple| MergedTuple {
            shape: tuple.shape,
            ranks: tuple.entries.iter().map(|&at| entries[at].rank).collect(),
        });
        Self::Merged(tuples.collect())
    }

    /// Returns `true` if the choice still fits a table whose entries, too many for direct code, have changed since.
    pub fn fits(&self, entries: &[Planned]) -> bool {
        match self {
            Self::Direct => false,
            Self::Hash => count_masks(entries) <= MAX_PARTS,
            Self::Lpm => RouteTable::of(entries, &[]).is_some(),
            Self::Cut(_) | Self::Merged(_) => true,
        }
    }

    /// Makes the choice for the sub-tables of a cut of ordered entries. `before` are the earlier cuts that apply to all their
    /// packets; with this one, there are `depth`. `None` if it needs too many slots.
    fn cut(entries: &[&Planned], before: &[Cut], cut: Cut, depth: usize) -> Option<Self> {
        let cuts = [before, &[cut]].concat();
        let split = cut.split(entries, places_max(entries.len()), |planned| planned);
        let Split { of_value, rest } = split?;
        let count = of_value.len();
        let sub_table = |entries: &[&Planned]| Self::of_sub_table(entries, &cuts, depth, count);
        let sub_tables = of_value.iter();
        Some(Self::Cut(Box::new(CutChoice {
            cut,
            sub_tables: sub_tables
                .map(|(&value, (_, entries))| (value, sub_table(entries)))
                .collect(),
            rest: Self::of_sub_table(&rest, before, depth, count),
        })))
    }

    /// Makes the choice for one of `count` sub-tables after `depth` cuts, of which `cuts` apply to all its packets.
    fn of_sub_table(entries: &[&Planned], cuts: &[Cut], depth: usize, count: usize) -> Self {
        let is_last = |planned: &&Planned| is_everything(&planned.entry.match_, &planned.key, cuts);
        let reached = entries.iter().position(is_last).unwrap_or(entries.len());
        let entries = &entries[..reached];
        match Way::of(entries, cuts, Way::may_be_direct(count, depth)) {
            Way::Direct => Self::Direct,
            Way::Lpm => Self::Lpm,
            way @ (Way::Hash | Way::Merged) => {
                let cut = Cut::best(entries, cuts, depth);
                let again = cut.and_then(|cut| Self::cut(entries, cuts, cut, depth + 1));
                again.unwrap_or_else(|| match way {
                    Way::Merged => Self::merged(entries),
                    _ => Self::Hash,
                })
            }
        }
    }
}

/// Returns the number of different sets of bits that entries match on.
pub(super) fn count_masks<'a>(entries: impl IntoIterator<Item = &'a Planned>) -> usize {
    let masks = entries.into_iter().map(|planned| &planned.key.mask);
    masks.collect::<HashSet<_>>().len()
}
