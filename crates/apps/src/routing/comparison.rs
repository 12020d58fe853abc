//! The entries of a switch that is back, compared with those that it should have.

use super::entry::Entry;
use super::inspection::Installed;
use super::{Asked, ENTRY, Flow, Shared, entry, is_ours};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use urtica_wire::{DatapathId, FlowStats};

/// A comparison of a switch's entries with those that it should have.
pub(super) struct Comparison {
    /// The id of the request for its entries.
    pub(super) xid: u32,
    pub(super) found: Found,
}

/// Entries that a switch has reported and that are right.
#[derive(Default)]
pub(super) struct Found {
    /// Flows with such an entry: no more than have paths.
    flows: BTreeSet<Flow>,
    inspection: Installed,
}

impl Shared {
    /// A switch has identified itself.
    pub(super) fn note_back(&self, switch: DatapathId) {
        if let Some(background) = self.background.get() {
            self.first_join.get_or_init(|| background.now());
            self.flows().absences.note_back(switch, background.now());
        }
    }

    /// A switch is asked for its entries.
    pub(super) fn begin_comparison(&self, here: DatapathId) {
        let mut flows = self.flows();
        flows.reported.remove(&here);
        flows.inherited.forget_switch(here);
    }

    /// Handles a switch's report of its entries: deletes those that belong to no path, and notes those that are right.
    pub(super) fn compare<'a>(
        &self,
        asked: &Asked,
        told: impl Iterator<Item = FlowStats<'a>>,
        found: &mut Found,
    ) {
        let (network, here) = (asked.network, asked.switch);
        let mut flows = self.flows();
        for told in told.filter(|entry| is_ours(entry.cookie) && entry.table_id == asked.table_id) {
            let Some(flow) = Flow::of_entry(&told.match_) else {
                found.inspection.note(&told);
                continue;
            };
            let entry = Entry::told(&told, asked.table_id);
            let is_kept = match (flows.paths.get(&flow), entry) {
                (Some(path), entry) => match entry::of_path(path).get(&here) {
                    // A different entry is overwritten.
                    Some(expected) if told.priority == ENTRY.priority => {
                        if entry == Some(*expected) {
                            found.flows.insert(flow);
                        }
                        true
                    }
                    _ => false,
                },
                (None, Some(entry)) => {
                    self.is_inherited(&told, asked.now)
                        && flows.inherited.insert(flow, here, entry, asked.now)
                }
                (None, None) => false,
            };
            if !is_kept {
                entry::delete(network, &flows.late, &flow, here, told.priority);
            }
        }
    }

    /// Whether an entry is older than this run of the controller. If not, it was this program's own, and its path is gone.
    fn is_inherited(&self, told: &FlowStats, now: Instant) -> bool {
        let age = Duration::from_secs(told.duration_sec.into())
            + Duration::from_nanos(told.duration_nsec.into());
        let first_join = self.first_join.get();
        first_join.is_some_and(|first| age > now.saturating_duration_since(*first))
    }

    /// A switch has reported all its entries: sends it those that are missing or different.
    pub(super) fn finish_comparison(&self, asked: &Asked, found: &Found) {
        let (network, here) = (asked.network, asked.switch);
        let mut flows = self.flows();
        flows.reported.insert(here);
        if let Some(info) = network.info(here) {
            let inspection = &found.inspection;
            inspection.complete(network, &flows.late, here, info.version);
        }
        let is_missing = |flow: &Flow| !found.flows.contains(flow);
        for (flow, path) in flows.paths.iter().filter(|(flow, _)| is_missing(flow)) {
            if let Some(entry) = entry::of_path(path).get(&here) {
                entry.add(network, &flows.late, flow, here);
            }
        }
    }
}
