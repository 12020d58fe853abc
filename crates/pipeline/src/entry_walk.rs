//! A search for the entries of a change, in steps.
//!
//! **Why.** A table may have a million entries. To avoid delaying packets, the caller inspects some, processes packets, and
//! continues.
//!
//! **Consistency.** Entries may change between steps. An entry that exists and is selected from the first step to the last is
//! found exactly once, even if it is modified. A removed entry may be found or not. An entry added after the first step is
//! not found. So no entry is found twice, and every walk ends.
//!
//! **Cost.** A step inspects as many entries as requested. If a table has few candidates, a step inspects all of them.

use crate::classifier::Rank;
use crate::selection::Selection;
use crate::{FlowEntry, FlowTable};
use std::ops::Range;
use std::sync::Arc;

/// A walk over the entries that a change selects.
#[derive(Debug)]
pub(crate) struct EntryWalk {
    wanted: Wanted,
    /// The maximum number of candidates per table that are inspected at once.
    few: usize,
    /// The remaining tables.
    tables: Range<usize>,
    /// The last inspected rank in the first remaining table.
    last: Option<Rank>,
    /// The number of entries ever added to each of these tables when the walk started.
    added: Box<[u64]>,
}

/// The criterion by which entries are selected.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The entries that a flow mod selects.
    Selected(Selection),
    /// Entries that use this group, or any group.
    GroupUsers(Option<u32>),
    /// Entries that use this meter, or any meter.
    MeterUsers(Option<u32>),
}

impl EntryWalk {
    /// Creates a walk over the wanted entries of these tables, from the lowest priority up in each.
    pub fn new(tables: &[FlowTable], range: Range<usize>, wanted: Wanted, few: usize) -> Self {
        let added = tables[range.clone()].iter();
        Self {
            wanted,
            few,
            added: added.map(FlowTable::added_count).collect(),
            tables: range,
            last: None,
        }
    }

    /// Returns `true` if it selects an entry.
    pub fn wants(&self, entry: &FlowEntry) -> bool {
        self.wanted.wants(entry)
    }

    /// Returns `true` if the walk has ended.
    pub fn is_over(&self) -> bool {
        self.tables.is_empty()
    }

    /// Inspects about `looks` more entries, and reduces `looks` by their number. Returns the found entries with their ranks,
    /// possibly none before the end of the walk.
    pub fn go_on(
        &mut self,
        tables: &[FlowTable],
        looks: &mut usize,
    ) -> Vec<(Rank, Arc<FlowEntry>)> {
        let mut found = Vec::new();
        while *looks > 0 && !self.is_over() {
            let is_done = self.go_on_in(&tables[self.tables.start], looks, &mut found);
            if is_done {
                self.tables.start += 1;
                self.last = None;
            }
        }
        found
    }

    /// Inspects the next entries of a table; returns `true` if they were the last.
    fn go_on_in(
        &mut self,
        table: &FlowTable,
        looks: &mut usize,
        found: &mut Vec<(Rank, Arc<FlowEntry>)>,
    ) -> bool {
        let added = self.added[self.added.len() - self.tables.len()];
        if self.last.is_none() {
            if let Some(few) = self.few_of(table) {
                *looks = looks.saturating_sub(few.len());
                let few = few.into_iter().filter(|(rank, _)| rank.sequence() < added);
                found.extend(few.rev());
                return true;
            }
        }
        for (rank, entry) in table.ranked_before(self.last) {
            if *looks == 0 {
                return false;
            }
            *looks -= 1;
            self.last = Some(rank);
            if rank.sequence() < added && self.wanted.wants(entry) {
                found.push((rank, Arc::clone(entry)));
            }
        }
        true
    }

    /// Returns the wanted entries of a table, from the highest priority down, if it has few candidates.
    fn few_of(&self, table: &FlowTable) -> Option<Vec<(Rank, Arc<FlowEntry>)>> {
        let few = match &self.wanted {
            Wanted::Selected(selection) => table.select_few(selection, self.few)?,
            Wanted::GroupUsers(group) => table.at(table.group_users().few(*group, self.few)?),
            Wanted::MeterUsers(meter) => table.at(table.meter_users().few(*meter, self.few)?),
        };
        Some(few)
    }
}

impl Wanted {
    fn wants(&self, entry: &FlowEntry) -> bool {
        let mut groups = entry.instructions.groups();
        match *self {
            Self::Selected(ref selection) => selection.is_for(entry),
            Self::GroupUsers(Some(wanted)) => groups.any(|group| group == wanted),
            Self::GroupUsers(None) => groups.next().is_some(),
            Self::MeterUsers(Some(wanted)) => entry.instructions.meter == Some(wanted),
            Self::MeterUsers(None) => entry.instructions.meter.is_some(),
        }
    }
}
