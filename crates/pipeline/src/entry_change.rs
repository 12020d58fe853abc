//! Changes of many entries, in steps.
//!
//! **Why.** Deleting a hundred thousand entries needs a considerable part of a second. To avoid delaying packets, the caller
//! changes some entries, processes packets, and continues.
//!
//! **What packets see.** A change works through the tables from the first on, and through a table from the lowest priority
//! up. So in each table, a packet sees the entries either as before or as after the change: while its entry exists, no entry
//! of a higher priority has changed; when it is removed, so are all selected entries below it.
//!
//! **Concurrent changes.** The change applies to entries that exist at its start and are still selected when it reaches them.
//! If a group or meter is deleted, entries that a modify would change to use it are removed.
//!
//! **Errors.** All errors are found before the first change, so a change that has started always completes.

use crate::classifier::Rank;
use crate::entry_walk::{EntryWalk, Wanted};
use crate::flow_table::Counts;
use crate::linked_counters::LinkedCounters;
use crate::removed_entry::{RemovedEntry, announce};
use crate::{FlowEntry, FlowTable, Instructions, Pipeline};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use urtica_wire::FlowRemovedReason;

/// The maximum number of candidates per table that are collected at once. With more, the whole table is walked.
const FEW: usize = 4096;

/// The cost of changing an entry, as a number of inspections.
const CHANGE_LOOKS: usize = 4;

/// A change of many entries, in progress.
#[derive(Debug)]
pub struct EntryChange {
    walk: EntryWalk,
    /// Entries that were found, but not changed yet.
    found: VecDeque<(Rank, Arc<FlowEntry>)>,
    kind: Kind,
    /// Held until the change is complete: see [`Pipeline::is_changing`].
    _under_way: Arc<()>,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Remove(FlowRemovedReason),
    Modify(Modification),
}

/// A modify's change of one entry.
#[derive(Debug)]
pub(crate) struct Modification {
    pub instructions: Instructions,
    /// The new cookie, which only 1.0's modifies set.
    pub cookie: Option<u64>,
    pub counts: Counts,
}

impl Modification {
    /// Returns the modified entry.
    pub fn of(&self, entry: &FlowEntry) -> FlowEntry {
        FlowEntry {
            match_: entry.match_.clone(),
            instructions: self.instructions.clone(),
            cookie: self.cookie.unwrap_or(entry.cookie),
            counters: match self.counts {
                Counts::Reset => entry.counters.cleared(),
                Counts::Kept => entry.counters.copy(),
            },
            linked: LinkedCounters::default(),
            ..*entry
        }
    }
}

impl Pipeline {
    /// Starts a change to the wanted entries of some tables.
    pub(crate) fn begin_change(
        &self,
        tables: Range<usize>,
        wanted: Wanted,
        kind: Kind,
    ) -> EntryChange {
        EntryChange {
            walk: EntryWalk::new(&self.tables, tables, wanted, FEW),
            found: VecDeque::new(),
            kind,
            _under_way: Arc::clone(&self.changes),
        }
    }

    /// Returns whether a change is in progress.
    pub fn is_changing(&self) -> bool {
        Arc::strong_count(&self.changes) > 1
    }

    /// Continues a change with about `looks` inspections of entries; changing an entry costs four. Reduces `looks` by the
    /// inspections made. Appends removed entries whose flags request a notification to `removed`. Returns `true` if the change
    /// is complete.
    pub fn go_on(
        &mut self,
        change: &mut EntryChange,
        looks: &mut usize,
        removed: &mut Vec<RemovedEntry>,
    ) -> bool {
        self.follow();
        change.look_at_references(self);
        let (mut gone, mut changed) = (Vec::new(), 0..0);
        while *looks > 0 && !change.is_complete() {
            let Some((rank, entry)) = change.found.pop_front() else {
                change.found.extend(change.walk.go_on(&self.tables, looks));
                continue;
            };
            *looks = looks.saturating_sub(CHANGE_LOOKS);
            let index = usize::from(entry.table_id);
            changed = if changed.is_empty() {
                index
            } else {
                changed.start
            }..index + 1;
            gone.extend(change.make_at(&mut self.tables[index], rank));
        }
        gone.sort_unstable_by_key(|(rank, gone)| (gone.entry.table_id, *rank));
        announce(gone.into_iter().map(|(_, gone)| gone), removed);
        self.tables[changed.clone()]
            .iter_mut()
            .for_each(FlowTable::tidy_timers);
        self.note_expiry(changed.clone());
        self.follow_changes(changed, removed);
        change.is_complete()
    }

    /// Completes a change, if there is one.
    pub(crate) fn finish(&mut self, change: Option<EntryChange>, removed: &mut Vec<RemovedEntry>) {
        if let Some(mut change) = change {
            while !self.go_on(&mut change, &mut { usize::MAX }, removed) {}
        }
    }

    fn has_references_of(&self, instructions: &Instructions) -> bool {
        let mut meters = instructions.meter.into_iter();
        instructions
            .groups()
            .all(|group| self.groups.get(group).is_some())
            && meters.all(|meter| self.meters.get(meter).is_some())
    }
}

impl EntryChange {
    fn is_complete(&self) -> bool {
        self.found.is_empty() && self.walk.is_over()
    }

    /// Makes the change remove its remaining entries, if a modify would make them use a group or meter that was deleted.
    fn look_at_references(&mut self, pipeline: &Pipeline) {
        match &self.kind {
            Kind::Modify(to) if !pipeline.has_references_of(&to.instructions) => {
                self.kind = Kind::Remove(FlowRemovedReason::GroupDelete);
            }
            _ => {}
        }
    }

    /// Changes the entry with a rank, if it is still selected. Returns it if it was removed.
    fn make_at(&self, table: &mut FlowTable, rank: Rank) -> Option<(Rank, RemovedEntry)> {
        let entry = table.get(rank)?.clone();
        if !self.walk.wants(&entry) {
            return None;
        }
        match &self.kind {
            Kind::Modify(to) => {
                table.put(rank, Arc::new(to.of(&entry)), to.counts);
                None
            }
            Kind::Remove(reason) => {
                table.take_out(rank, &entry);
                let reason = *reason;
                Some((rank, RemovedEntry { entry, reason }))
            }
        }
    }
}
