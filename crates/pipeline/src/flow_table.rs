//! One flow table: entries by priority, searched plainly (1.3.5 section 5.3).

use crate::{EntryMatch, FlowEntry, Packet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A flow table.
#[derive(Debug, Default)]
pub struct FlowTable {
    /// From the highest priority down; among equals in the order in which they were added.
    entries: Vec<Arc<FlowEntry>>,
    /// Packets that were looked up.
    pub lookups: AtomicU64,
    /// Packets that an entry matched.
    pub matches: AtomicU64,
}

impl FlowTable {
    /// The entries, from the highest priority down.
    pub fn entries(&self) -> &[Arc<FlowEntry>] {
        &self.entries
    }

    /// The entry that a packet matches: the first that does.
    pub fn find(&self, packet: &Packet) -> Option<&Arc<FlowEntry>> {
        self.entries
            .iter()
            .find(|entry| entry.match_.matches(packet))
    }

    /// The entry with this priority and this very match.
    pub(crate) fn find_strict(
        &self,
        priority: u16,
        match_: &EntryMatch,
    ) -> Option<&Arc<FlowEntry>> {
        let mut equals = self.entries[self.range(priority)].iter();
        equals.find(|entry| entry.match_ == *match_)
    }

    /// Whether an entry of this priority may match a packet that `match_` matches too.
    pub(crate) fn has_overlap(&self, priority: u16, match_: &EntryMatch) -> bool {
        let mut equals = self.entries[self.range(priority)].iter();
        equals.any(|entry| entry.match_.overlaps(match_))
    }

    /// Adds an entry, in place of one with the same priority and match.
    pub(crate) fn insert(&mut self, entry: FlowEntry) {
        let range = self.range(entry.priority);
        let end = range.end;
        let mut equals = self.entries[range].iter_mut();
        match equals.find(|twin| twin.match_ == entry.match_) {
            Some(twin) => *twin = Arc::new(entry),
            None => self.entries.insert(end, Arc::new(entry)),
        }
    }

    /// Puts another in the place of each entry for which `replace` gives one.
    pub(crate) fn replace(&mut self, replace: impl Fn(&FlowEntry) -> Option<FlowEntry>) {
        for entry in &mut self.entries {
            if let Some(replacement) = replace(entry) {
                *entry = Arc::new(replacement);
            }
        }
    }

    /// Takes out the entries that `goes` names, and hands them over in their order.
    pub(crate) fn remove(&mut self, goes: impl Fn(&FlowEntry) -> bool) -> Vec<Arc<FlowEntry>> {
        self.entries.extract_if(.., |entry| goes(entry)).collect()
    }

    /// Where the entries of a priority are.
    fn range(&self, priority: u16) -> Range<usize> {
        let entries = &self.entries;
        let start = entries.partition_point(|entry| entry.priority > priority);
        let end = entries.partition_point(|entry| entry.priority >= priority);
        start..end
    }
}
