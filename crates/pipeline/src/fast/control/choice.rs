//! Which template the entries of a table get, and in which way, so far as that takes long to find out.
//!
//! A choice is made for entries as they were at some time, and can be carried out for those that there are later: it
//! names entries by rank alone, and what it does not know goes where a new entry would. So a thread of its own can make it
//! while the table changes.

use super::cut::{Cut, Split, is_everything};
use super::decompose::{PARTS_MIN, Way, places_max};
use super::merge::{Shape, merge};
use super::planned::Planned;
use super::route::RouteTable;
use crate::classifier::Rank;
use crate::fast::datapath::table::MAX_PARTS;
use std::collections::{BTreeMap, HashSet};

/// How entries are to be searched.
#[derive(Debug)]
pub(super) enum Choice {
    /// One after the other.
    Direct,
    /// By hash tables.
    Hash,
    /// By a trie.
    Lpm,
    /// By sub-tables.
    Cut(Box<CutChoice>),
    /// By hash tables that entries share which look at different sets of bits. Entries that are in none of these find a
    /// place when they are put.
    Merged(Vec<MergedTuple>),
}

/// By what a table is cut, and how each sub-table is searched.
#[derive(Debug)]
pub(super) struct CutChoice {
    pub cut: Cut,
    /// By the value that packets have. Others get merged tuples.
    pub sub_tables: BTreeMap<u128, Choice>,
    pub rest: Choice,
}

/// Entries that share a hash table.
#[derive(Debug)]
pub(super) struct MergedTuple {
    pub shape: Shape,
    /// In their order.
    pub ranks: Vec<Rank>,
}

/// How much is done to find the best for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// What some looks at each entry tell: no cut is looked for, nor which entries share a hash table.
    Least,
    /// No cut is looked for.
    Uncut,
    /// All.
    All,
}

impl Choice {
    /// The choice for the entries of a table, in their order, which are too many for direct code, and none of which matches
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

    /// Merged tuples for entries, in their order.
    pub fn merged(entries: &[&Planned]) -> Self {
        let tuples = merge(entries).into_iter().map(|tuple| MergedTuple {
            shape: tuple.shape,
            ranks: tuple.entries.iter().map(|&at| entries[at].rank).collect(),
        });
        Self::Merged(tuples.collect())
    }

    /// Whether a table can be searched so whose entries, too many for direct code, have changed since.
    pub fn fits(&self, entries: &[Planned]) -> bool {
        match self {
            Self::Direct => false,
            Self::Hash => count_masks(entries) <= MAX_PARTS,
            Self::Lpm => RouteTable::of(entries, &[]).is_some(),
            Self::Cut(_) | Self::Merged(_) => true,
        }
    }

    /// What is chosen for the sub-tables that a cut makes of entries, in their order. `before` are the cuts that tell something of
    /// all their packets; with this one there are `depth`. `None` where it makes too many places.
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

    /// The choice for one of `count` sub-tables, to which `depth` cuts have led, of which these tell something of all packets.
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

/// How many different sets of bits entries look at.
pub(super) fn count_masks<'a>(entries: impl IntoIterator<Item = &'a Planned>) -> usize {
    let masks = entries.into_iter().map(|planned| &planned.key.mask);
    masks.collect::<HashSet<_>>().len()
}
