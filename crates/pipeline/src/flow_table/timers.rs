//! When entries of a table are to be looked at, to see whether they have expired.
//!
//! A heap by deadline. A packet puts off an idle timeout without telling anybody: an entry is looked at when its deadline
//! has come, and noted again with its new one if that is later. What is noted of entries that are gone stays until then,
//! or until there is more of it than of others ([`Timers::are_stale`]).

use crate::FlowEntry;
use crate::classifier::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// So many notes too many are not worth a look at all entries.
const SPARE: usize = 1024;

/// The deadlines of a table's entries.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Duration, Rank)>>,
    /// How many entries have a timeout.
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

    /// An entry is not in the table any more. What is noted of it finds nothing, or the one that took its place.
    pub fn remove(&mut self, entry: &FlowEntry) {
        self.entries -= usize::from(entry.has_timeout());
    }

    /// Notes when an entry is to be looked at again.
    pub fn note(&mut self, rank: Rank, due: Duration) {
        self.heap.push(Reverse((due, rank)));
    }

    /// Before this no entry expires; `None` where none ever does.
    pub fn next(&self) -> Option<Duration> {
        let Reverse((due, _)) = self.heap.peek()?;
        Some(*due)
    }

    /// The next entry to be looked at whose deadline has come.
    pub fn pop(&mut self, now: Duration) -> Option<Rank> {
        self.next().filter(|&due| due <= now)?;
        let first = self.heap.pop()?;
        while self.heap.peek() == Some(&first) {
            self.heap.pop();
        }
        let Reverse((_, rank)) = first;
        Some(rank)
    }

    /// Whether most of it is noted of entries that are gone.
    pub fn are_stale(&self) -> bool {
        self.heap.len() > 2 * self.entries + SPARE
    }

    /// Notes the deadlines of these entries, all of the table, and nothing else.
    pub fn renew<'a>(&mut self, entries: impl Iterator<Item = (Rank, &'a FlowEntry)>) {
        let due = entries.filter_map(|(rank, entry)| Some(Reverse((entry.due()?, rank))));
        self.heap = due.collect();
    }
}

#[cfg(test)]
impl Timers {
    /// How much is noted.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
}
