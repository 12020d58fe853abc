//! Compares the entries of a switch that has joined with the expected ones.

use super::entry::Entry;
use super::inspection::Installed;
use super::{ENTRY, EntryRequest, Flow, RoutingState, entry, is_ours};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use urtica_wire::{DatapathId, FlowStats};

/// A running comparison of a switch's entries with the expected ones.
pub(super) struct Comparison {
    /// The transaction id of the request for the entries.
    pub(super) xid: u32,
    pub(super) found: Found,
}

/// The correct entries that a switch has reported.
#[derive(Default)]
pub(super) struct Found {
    /// The flows with a correct entry: a subset of those with paths.
    flows: BTreeSet<Flow>,
    inspection: Installed,
}

impl RoutingState {
    /// Notes that a switch has connected.
    pub(super) fn note_back(&self, switch: DatapathId) {
        if let Some(background) = self.background.get() {
            self.first_join.get_or_init(|| background.now());
            self.flows().absences.note_back(switch, background.now());
        }
    }

    /// Resets the state of a switch before its entries are requested.
    pub(super) fn begin_comparison(&self, here: DatapathId) {
        let mut flows = self.flows();
        flows.reported.remove(&here);
        flows.inherited.forget_switch(here);
    }

    /// Handles a part of a switch's report: deletes entries of no path, and notes correct ones.
    pub(super) fn compare<'a>(
        &self,
        asked: &EntryRequest,
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

    /// Returns `true` if an entry is older than this run of the controller. A younger entry is of a path that was removed.
    fn is_inherited(&self, told: &FlowStats, now: Instant) -> bool {
        let age = Duration::from_secs(told.duration_sec.into())
            + Duration::from_nanos(told.duration_nsec.into());
        let first_join = self.first_join.get();
        first_join.is_some_and(|first| age > now.saturating_duration_since(*first))
    }

    /// Handles the end of a switch's report: sends the missing and different entries.
    pub(super) fn finish_comparison(&self, asked: &EntryRequest, found: &Found) {
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
