//! Changes that concern many entries, carried out some at a time.
//!
//! **Why.** To delete a hundred thousand entries takes a good part of a second. Whoever must not keep packets waiting changes
//! some, lets packets pass, and goes on.
//!
//! **What packets meet meanwhile.** The entries of a table are changed from the lowest priority up, tables from the first on. So within
//! a table each packet meets what it met before the change or what it meets after: as long as its entry is there nothing of a
//! higher priority can have come before it, and when it is gone all selected ones below it are.
//!
//! **What others may do meanwhile.** The entries are those that are there when the change begins, as far as it is for them still when
//! their turn comes. A group or meter that is deleted takes along the entries that a modify would have use it.
//!
//! **Errors.** All are found before anything is changed: a change that has begun comes to its end.

use crate::classifier::Rank;
use crate::entry_walk::{EntryWalk, Order, Wanted};
use crate::flow_table::Counts;
use crate::linked_counters::LinkedCounters;
use crate::removed_entry::{RemovedEntry, announce};
use crate::{FlowEntry, FlowTable, Instructions, Pipeline};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use urtica_wire::FlowRemovedReason;

/// In a table where no more entries than this can be concerned, these are found together. Of more than these a walk over
/// the whole table finds enough.
const FEW: usize = 4096;

/// What a change to an entry costs, in looks at entries.
const CHANGE_LOOKS: usize = 4;

/// A change to many entries that has begun.
#[derive(Debug)]
pub struct EntryChange {
    walk: EntryWalk,
    /// What the walk has found and is not changed yet.
    found: VecDeque<(Rank, Arc<FlowEntry>)>,
    kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Remove(FlowRemovedReason),
    Modify(Modification),
}

/// What a modify makes of an entry.
#[derive(Debug)]
pub(crate) struct Modification {
    pub instructions: Instructions,
    /// 1.0's modifies change it.
    pub cookie: Option<u64>,
    pub counts: Counts,
}

impl Modification {
    /// The entry after it.
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
    /// Begins a change to those entries of some tables that are wanted.
    pub(crate) fn begin_change(
        &self,
        tables: Range<usize>,
        wanted: Wanted,
        kind: Kind,
    ) -> EntryChange {
        EntryChange {
            walk: EntryWalk::new(&self.tables, tables, wanted, Order::Up, FEW),
            found: VecDeque::new(),
            kind,
        }
    }

    /// Goes on with a change that has begun, with about so many looks at entries, of which each entry that it changes costs four; what
    /// was looked at is taken off. Entries that it removes and whose flags ask for a notification are appended to `removed`. Returns
    /// whether the change is complete.
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

    /// Carries out all of a change that may have begun.
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

    /// Has the entries that are left removed where a modify would have them use a group or meter that is gone.
    fn look_at_references(&mut self, pipeline: &Pipeline) {
        match &self.kind {
            Kind::Modify(to) if !pipeline.has_references_of(&to.instructions) => {
                self.kind = Kind::Remove(FlowRemovedReason::GroupDelete);
            }
            _ => {}
        }
    }

    /// Changes the entry in a place, if it is still wanted; returns one that it removes.
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
