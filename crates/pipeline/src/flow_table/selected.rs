//! The entries of a table that a request or flow mod selects.

use super::FlowTable;
use crate::classifier::Rank;
use crate::selection::{Scope, Selection};
use crate::{EntryMatch, FlowEntry};
use std::sync::Arc;

/// With more tuples than this, `few_within` does not check which of them a match may affect.
const FEW_TUPLES: usize = 4096;

impl FlowTable {
    /// Returns the selected entries, in order.
    pub(crate) fn select(&self, selection: &Selection) -> impl Iterator<Item = Arc<FlowEntry>> {
        let selected = self.select_ranked(selection.scope(), |entry| selection.selects(entry));
        selected.into_iter().map(|(_, entry)| entry)
    }

    /// Returns the selected entries with their ranks, unless more than `max` entries must be inspected.
    pub(crate) fn select_few(
        &self,
        selection: &Selection,
        max: usize,
    ) -> Option<Vec<(Rank, Arc<FlowEntry>)>> {
        let mut few = match selection.scope() {
            scope @ Scope::Strict(..) => self.select_ranked(scope, |_| true),
            Scope::Within(match_) => self.few_within(match_, max)?,
        };
        few.retain(|(_, entry)| selection.selects(entry));
        Some(few)
    }

    /// Returns whether its scope contains an entry.
    pub(crate) fn finds_any(&self, selection: &Selection) -> bool {
        match selection.scope() {
            Scope::Strict(priority, match_) => self.find_strict(priority, match_).is_some(),
            Scope::Within(match_) => self.has_within(match_),
        }
    }

    /// Returns the entries within a match, with their ranks, in order, unless more than `max` must be inspected.
    fn few_within(&self, match_: &EntryMatch, max: usize) -> Option<Vec<(Rank, Arc<FlowEntry>)>> {
        let may_be_few = self.classifier.tuple_count() <= FEW_TUPLES
            && self.classifier.within(match_).nth(max).is_none();
        may_be_few.then(|| self.select_ranked(Scope::Within(match_), |_| true))
    }
}
