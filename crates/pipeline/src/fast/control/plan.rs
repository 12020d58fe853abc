//! Which template a table gets: the cheapest whose prerequisites its entries meet (ESWITCH section 3.1).

use super::cut::Cut;
use super::decompose::{DIRECT_MAX, PARTS_MIN};
use super::match_key::Key;
use super::planned::Planned;
use super::route::RouteTable;
use crate::FlowTable;
use crate::fast::datapath::table::MAX_PARTS;
use std::collections::HashSet;

/// How a table is to be searched.
#[derive(Debug)]
pub(super) enum Plan {
    /// One after the other.
    Direct(Vec<Planned>),
    /// By hash tables. The last one is what matches everything, if an entry does.
    Hash(Vec<Planned>, Option<Planned>),
    /// By a trie.
    Lpm(Vec<Planned>, Option<Planned>),
    /// By sub-tables.
    Cut(Cut, Vec<Planned>, Option<Planned>),
    /// By hash tables that entries share which look at different sets of bits.
    Merged(Vec<Planned>, Option<Planned>),
    /// By the plain form, for this reason.
    Plain(&'static str),
}

impl Plan {
    /// The plan for a table's entries as they are now; `may_cut` is whether it may take the time to look for a cut.
    pub fn new(table: &FlowTable, may_cut: bool) -> Self {
        let mut entries = Vec::with_capacity(table.entries().len());
        for (rank, entry) in table.ranked() {
            let Some(key) = Key::new(&entry.match_) else {
                return Self::Plain("an entry looks at a field that only the plain form knows");
            };
            let is_everything = key.mask.is_everything();
            entries.push(Planned {
                rank,
                entry: entry.clone(),
                key,
            });
            // No packet comes to what follows.
            if is_everything {
                break;
            }
        }
        Self::of(entries, may_cut)
    }

    /// The entries in their order, and the one that matches everything behind them, where that is not one of them.
    pub fn entries(&self) -> (&[Planned], Option<&Planned>) {
        match self {
            Self::Direct(entries) => (entries, None),
            Self::Hash(entries, default)
            | Self::Lpm(entries, default)
            | Self::Merged(entries, default)
            | Self::Cut(_, entries, default) => (entries, default.as_ref()),
            Self::Plain(_) => (&[], None),
        }
    }

    /// Whether the entries are such that a look for a cut makes a difference.
    pub fn is_planned(&self) -> bool {
        matches!(
            self,
            Self::Hash(..) | Self::Cut(..) | Self::Merged(..) | Self::Plain(_)
        )
    }

    /// How many words there are to be before each flow record; `None` for those of its key.
    pub fn room(&self) -> Option<usize> {
        match self {
            Self::Hash(..) => None,
            // Sub-tables find the same flow records by different keys.
            Self::Cut(_, entries, _) => {
                let words = entries.iter().map(|planned| planned.key.values.len());
                words.max()
            }
            Self::Direct(_) | Self::Lpm(..) | Self::Merged(..) | Self::Plain(_) => Some(0),
        }
    }

    fn of(mut entries: Vec<Planned>, may_cut: bool) -> Self {
        if entries.len() <= DIRECT_MAX {
            return Self::Direct(entries);
        }
        let default = match entries.last() {
            Some(last) if last.key.mask.is_everything() => entries.pop(),
            _ => None,
        };
        if RouteTable::of_compact(entries.iter(), &[]).is_some() {
            return Self::Lpm(entries, default);
        }
        let masks: HashSet<_> = entries.iter().map(|planned| &planned.key.mask).collect();
        let masks = masks.len();
        if may_cut && masks >= PARTS_MIN {
            let all: Vec<_> = entries.iter().collect();
            if let Some(cut) = Cut::best(&all, &[], 0) {
                return Self::Cut(cut, entries, default);
            }
        }
        match masks {
            0..=MAX_PARTS => Self::Hash(entries, default),
            _ => Self::Merged(entries, default),
        }
    }
}
