//! Deadlines at which a table's entries are checked for expiry.
//!
//! They are in a heap. A packet postpones an idle timeout without updating the heap: when the deadline has passed, the entry
//! is checked, and added again with a later one. Deadlines of removed entries stay until then, or until they outnumber the
//! others ([`Timers::are_stale`]).

use crate::FlowEntry;
use crate::classifier::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// The number of stale deadlines that is always tolerated.
const SPARE: usize = 1024;

/// The deadlines of a table's entries.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Duration, Rank)>>,
    /// The number of entries with a timeout.
    entries: usize,
}

impl Timers {
    /// Notes an entry's deadline, if it has one.
    pub fn add(&mut self, rank: Rank, entry: &FlowEntry) {
        if let Some(due) = entry.due() {
            self.entries += 1;
            self.note(rank, due);
        }
    }

    /// Notes that an entry was removed. Its deadline stays, and will find no entry, or the one that replaced it.
    pub fn remove(&mut self, entry: &FlowEntry) {
        self.entries -= usize::from(entry.has_timeout());
    }

    /// Adds the deadline of an entry.
    pub fn note(&mut self, rank: Rank, due: Duration) {
        self.heap.push(Reverse((due, rank)));
    }

    /// Returns the next deadline; `None` if no entry expires.
    pub fn next(&self) -> Option<Duration> {
        let Reverse((due, _)) = self.heap.peek()?;
        Some(*due)
    }

    /// Returns the next entry whose deadline has passed.
    pub fn pop(&mut self, now: Duration) -> Option<Rank> {
        self.next().filter(|&due| due <= now)?;
        let first = self.heap.pop()?;
        while self.heap.peek() == Some(&first) {
            self.heap.pop();
        }
        let Reverse((_, rank)) = first;
        Some(rank)
    }

    /// Returns `true` if most deadlines are of removed entries.
    pub fn are_stale(&self) -> bool {
        self.heap.len() > 2 * self.entries + SPARE
    }

    /// Sets the deadlines to those of these entries, which must be all of the table.
    pub fn renew<'a>(&mut self, entries: impl Iterator<Item = (Rank, &'a FlowEntry)>) {
        let due = entries.filter_map(|(rank, entry)| Some(Reverse((entry.due()?, rank))));
        self.heap = due.collect();
    }
}

#[cfg(test)]
impl Timers {
    /// Returns the number of deadlines.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
}
