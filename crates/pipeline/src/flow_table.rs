//! One flow table: its ordered entries and their index (1.3.5 section 5.3).
//!
//! **What.** [`FlowTable::find`] finds a packet's entry, and [`FlowTable::entries`] returns all entries from the highest
//! priority down. Flow mods and timeouts change the table.
//!
//! **How.** An ordered map holds all entries by priority and age. A [`Classifier`] indexes all of them, to find those for a
//! packet or a match.
//!
//! **Cost.** Finding a packet's entry: see [`Classifier`]. Adding an entry, and finding or removing one by strict match,
//! costs the logarithm of the number of entries. A non-strict match inspects the entries that match on all of its bits and
//! more; entries with exactly its bits are found as by a strict match. A check for overlap inspects the entries that match
//! on other bits. Expiry inspects an entry only when it may have expired, at the cost of the logarithm of the number of
//! entries with a timeout. A timeout needs 16 to 48 bytes. An entry with one field and one action needs 381 bytes, of which
//! the map uses 34 and the classifier 43, without the allocator's overhead.
//!
//! **Thread-safety.** Any number of threads may look up entries at once, and count packets in them; a change needs exclusive
//! access. To change a table while packets pass, put it behind a lock, or replace it with a copy.

mod selected;
#[cfg(test)]
mod tests;
mod timers;

use crate::change_log::{ChangeLog, StateChange};
use crate::classifier::{Classifier, Rank};
use crate::counters::EntryCounts;
use crate::entry_view::Views;
use crate::references::References;
use crate::removed_entry::RemovedEntry;
use crate::selection::Scope;
use crate::{EntryMatch, FlowEntry, Packet};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use timers::Timers;

/// A flow table.
#[derive(Debug, Default)]
pub struct FlowTable {
    entries: BTreeMap<Rank, Arc<FlowEntry>>,
    classifier: Classifier,
    /// The entries that use a group.
    group_users: References<Rank>,
    /// The entries that use a meter.
    meter_users: References<Rank>,
    /// The number of entries ever added.
    added: u64,
    timers: Timers,
    /// Changes since the last call of `take_changes`; `None` if they are not recorded.
    changes: Option<Vec<Change>>,
    /// The journal's log of changes.
    log: ChangeLog,
    /// Open views of the table as it was.
    views: Views,
    /// The number of packets looked up.
    pub lookups: AtomicU64,
    /// The number of packets that matched an entry.
    pub matches: AtomicU64,
}

/// A change of one entry, for a compiled form that follows the table.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// An entry was added.
    Added(Rank, Arc<FlowEntry>),
    /// An entry replaced another one with the same priority and match.
    Replaced {
        rank: Rank,
        old: Arc<FlowEntry>,
        new: Arc<FlowEntry>,
        /// The old entry's counts, if the new one continues them.
        kept: Option<EntryCounts>,
    },
    /// An entry was removed.
    Removed(Rank, Arc<FlowEntry>),
}

/// Whether an entry that replaces another continues its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    Kept,
    Reset,
}

impl FlowTable {
    /// Returns the entries, from the highest priority down, and by age within a priority.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<FlowEntry>> {
        self.entries.values()
    }

    /// Returns the entry that a packet matches: the first in order that does.
    pub fn find(&self, packet: &Packet) -> Option<&Arc<FlowEntry>> {
        self.classifier.find(packet)
    }

    /// Finds a packet's entry with a linear search: the reference model of [`FlowTable::find`].
    pub fn find_plainly(&self, packet: &Packet) -> Option<&Arc<FlowEntry>> {
        self.entries().find(|entry| entry.match_.matches(packet))
    }

    /// Starts recording changes for [`FlowTable::take_changes`].
    pub(crate) fn keep_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.changes
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns the entries and their ranks, in order.
    pub(crate) fn ranked(&self) -> impl ExactSizeIterator<Item = (Rank, &Arc<FlowEntry>)> {
        self.entries.iter().map(|(&rank, entry)| (rank, entry))
    }

    /// Returns the entries after a rank, or all, and their ranks, in order.
    pub(crate) fn ranked_behind(
        &self,
        place: Option<Rank>,
    ) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let start = place.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.entries.range((start, Bound::Unbounded));
        behind.map(|(&rank, entry)| (rank, entry))
    }

    /// Returns the entries before a rank, or all, and their ranks, from the lowest priority up.
    pub(crate) fn ranked_before(
        &self,
        place: Option<Rank>,
    ) -> impl Iterator<Item = (Rank, &Arc<FlowEntry>)> {
        let end = place.map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.entries.range((Bound::Unbounded, end));
        before.rev().map(|(&rank, entry)| (rank, entry))
    }

    /// Returns the entry with a rank.
    pub(crate) fn get(&self, rank: Rank) -> Option<&Arc<FlowEntry>> {
        self.entries.get(&rank)
    }

    /// Returns the entries with these ranks.
    pub(crate) fn at(&self, ranks: Vec<Rank>) -> Vec<(Rank, Arc<FlowEntry>)> {
        let ranks = ranks.into_iter();
        ranks
            .filter_map(|rank| Some((rank, self.get(rank)?.clone())))
            .collect()
    }

    /// Returns the number of entries ever added.
    pub(crate) fn added_count(&self) -> u64 {
        self.added
    }

    /// Returns the entry with exactly this match and the highest priority.
    pub(crate) fn first_with(&self, match_: &EntryMatch) -> Option<(Rank, &Arc<FlowEntry>)> {
        self.classifier.first_with(match_)
    }

    /// Returns whether `match_` includes the match of any entry.
    pub(crate) fn has_within(&self, match_: &EntryMatch) -> bool {
        let mut near = self.classifier.within(match_);
        near.any(|(_, entry)| match_.includes(&entry.match_))
    }

    /// Returns the entry with this priority and exactly this match.
    pub(crate) fn find_strict(
        &self,
        priority: u16,
        match_: &EntryMatch,
    ) -> Option<&Arc<FlowEntry>> {
        let found = self.classifier.find_strict(priority, match_);
        found.map(|(_, entry)| entry)
    }

    /// Returns `true` if an entry of this priority may match a packet that `match_` also matches.
    pub(crate) fn has_overlap(&self, priority: u16, match_: &EntryMatch) -> bool {
        let mut near = self.classifier.near(match_);
        near.any(|(rank, entry)| rank.priority() == priority && entry.match_.overlaps(match_))
    }

    /// Adds an entry, or replaces the one with its priority and match.
    pub(crate) fn insert(&mut self, entry: FlowEntry, counts: Counts) {
        let entry = Arc::new(entry);
        match self.classifier.find_strict(entry.priority, &entry.match_) {
            Some((rank, _)) => self.put(rank, entry, counts),
            None => {
                let rank = Rank::new(entry.priority, self.added);
                self.added += 1;
                self.timers.add(rank, &entry);
                self.note_uses(rank, &entry);
                self.classifier.insert(rank, entry.clone());
                self.log.note(|| StateChange::Flow(entry.clone()));
                self.note(|| Change::Added(rank, entry.clone()));
                self.entries.insert(rank, entry);
            }
        }
    }

    /// Returns the entries that use a group, by rank.
    pub(crate) fn group_users(&self) -> &References<Rank> {
        &self.group_users
    }

    /// Returns the entries that use a meter, by rank.
    pub(crate) fn meter_users(&self) -> &References<Rank> {
        &self.meter_users
    }

    /// Returns a lower bound for the next expiry; `None` if no entry expires.
    pub(crate) fn next_expiry(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Removes expired entries, and returns them in order. Inspects at most `looks` entries, by deadline, and reduces `looks` by
    /// their number.
    pub(crate) fn expire(&mut self, now: Duration, looks: &mut usize) -> Vec<RemovedEntry> {
        let mut gone = Vec::new();
        while *looks > 0 {
            let Some(rank) = self.timers.pop(now) else {
                break;
            };
            *looks -= 1;
            let Some(entry) = self.entries.get(&rank).cloned() else {
                continue;
            };
            match (entry.expired(now), entry.due()) {
                (Some(reason), _) => {
                    self.take_out(rank, &entry);
                    gone.push((rank, RemovedEntry { entry, reason }));
                }
                (None, Some(due)) => self.timers.note(rank, due),
                (None, None) => {}
            }
        }
        gone.sort_unstable_by_key(|&(rank, _)| rank);
        gone.into_iter().map(|(_, gone)| gone).collect()
    }

    /// Returns the entries of a scope that `is_wanted` accepts, with their ranks, in order.
    pub(crate) fn select_ranked(
        &self,
        scope: Scope,
        is_wanted: impl Fn(&FlowEntry) -> bool,
    ) -> Vec<(Rank, Arc<FlowEntry>)> {
        let wanted = |&(_, entry): &(Rank, &Arc<FlowEntry>)| is_wanted(entry);
        let owned = |(rank, entry): (Rank, &Arc<FlowEntry>)| (rank, entry.clone());
        let mut selected: Vec<_> = match scope {
            Scope::Strict(priority, match_) => {
                let found = self.classifier.find_strict(priority, match_).into_iter();
                found.filter(wanted).map(owned).collect()
            }
            Scope::Within(match_) if !match_.fields().is_empty() => {
                let found = self.classifier.within(match_);
                let found = found.filter(|(_, entry)| match_.includes(&entry.match_));
                found.filter(wanted).map(owned).collect()
            }
            Scope::Within(_) => {
                let all = self.entries.iter().map(|(&rank, entry)| (rank, entry));
                all.filter(wanted).map(owned).collect()
            }
        };
        selected.sort_unstable_by_key(|&(rank, _)| rank);
        selected
    }

    /// Sets the log to which changes are appended.
    pub(crate) fn set_log(&mut self, log: ChangeLog) {
        self.log = log;
    }

    /// Returns the open views.
    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    /// Replaces the entry with this rank by one with the same match.
    pub(crate) fn put(&mut self, rank: Rank, entry: Arc<FlowEntry>, counts: Counts) {
        self.timers.add(rank, &entry);
        self.classifier.replace(rank, entry.clone());
        let old = self.entries.insert(rank, entry.clone());
        if let Some(old) = old {
            self.views.note(rank, &old, Some(&entry));
            self.log.note(|| StateChange::Flow(entry.clone()));
            let kept = (counts == Counts::Kept).then(|| entry.counters.read());
            self.forget_uses(rank, &old);
            self.note_uses(rank, &entry);
            self.timers.remove(&old);
            self.tidy_timers();
            self.note(|| Change::Replaced {
                rank,
                old,
                new: entry,
                kept,
            });
        }
    }

    fn note_uses(&mut self, rank: Rank, entry: &FlowEntry) {
        let instructions = &entry.instructions;
        self.group_users.add(rank, instructions.groups());
        self.meter_users.add(rank, instructions.meter.into_iter());
    }

    fn forget_uses(&mut self, rank: Rank, entry: &FlowEntry) {
        let instructions = &entry.instructions;
        self.group_users.remove(rank, instructions.groups());
        self.meter_users
            .remove(rank, instructions.meter.into_iter());
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// Removes the entry with a rank.
    pub(crate) fn take_out(&mut self, rank: Rank, entry: &Arc<FlowEntry>) {
        self.views.note(rank, entry, None);
        self.log.note(|| StateChange::FlowRemoved(entry.clone()));
        self.entries.remove(&rank);
        self.forget_uses(rank, entry);
        self.classifier.remove(rank, &entry.match_);
        self.timers.remove(entry);
        self.note(|| Change::Removed(rank, entry.clone()));
    }

    /// Removes the deadlines of removed entries, if these are too many.
    pub(crate) fn tidy_timers(&mut self) {
        if self.timers.are_stale() {
            let entries = self.entries.iter();
            self.timers
                .renew(entries.map(|(&rank, entry)| (rank, &**entry)));
        }
    }
}
