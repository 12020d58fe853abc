//! A search for the entries of a request, in steps.
//!
//! **Why.** [`Pipeline::flow_stats`] returns all entries at once. A table may have a million. To avoid delaying packets, the
//! caller inspects some, processes packets, and continues.
//!
//! **Consistency.** A walk finds exactly the entries that existed and matched the request when it started, as they were then,
//! whatever changes between its steps. An entry's counters are from when it is found, or from when it was changed, if that
//! was earlier. If too many entries change before they are found, the walk ends with an error: see `entry_view.rs`, which
//! also describes a walk's memory.
//!
//! **Cost.** A step inspects as many entries as requested. If a table has few candidates for the request's match, only these
//! are inspected.

use crate::classifier::Rank;
use crate::entry_view::{View, ViewLost, ViewState};
use crate::selection::Selection;
use crate::{FlowEntry, FlowTable, Pipeline};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use urtica_wire::{ErrorCode, FlowStatsRequest};

/// The maximum number of candidates per table for a request's match that are inspected at once.
const FEW: usize = 256;

/// A walk over the entries that a request selects, as they were when it started.
#[derive(Debug)]
pub struct FlowWalk {
    view: Arc<View>,
    /// The remaining tables.
    tables: Range<usize>,
    /// The last inspected rank in the first remaining table.
    last: Option<Rank>,
}

impl Pipeline {
    /// Starts a walk over the entries of a request.
    ///
    /// # Errors
    /// The specification's error if the request's match or table is invalid.
    pub fn walk_flows(&self, request: &FlowStatsRequest) -> Result<FlowWalk, ErrorCode> {
        let selection = Selection::of_request(request)?;
        let tables = self.tables_asked(request.table_id)?;
        let viewed = &self.tables[tables.clone()];
        let added = viewed.iter().map(FlowTable::added_count).collect();
        let view = View::open(selection, tables.clone(), added, &self.view_budget);
        let view = Arc::new(view);
        let filled = viewed.iter().filter(|table| table.entries().len() > 0);
        filled.for_each(|table| table.views().add(&view));
        Ok(FlowWalk {
            view,
            tables,
            last: None,
        })
    }
}

impl FlowWalk {
    /// Returns `true` if the walk has ended.
    pub fn is_over(&self) -> bool {
        self.tables.is_empty()
    }

    /// Inspects about `looks` more entries, and reduces `looks` by their number. Returns the found entries, possibly none
    /// before the end of the walk.
    ///
    /// # Errors
    /// [`ViewLost`] if the view was lost; then the walk has ended.
    pub fn go_on(
        &mut self,
        pipeline: &Pipeline,
        looks: &mut usize,
    ) -> Result<Vec<Arc<FlowEntry>>, ViewLost> {
        let view = Arc::clone(&self.view);
        let mut state = view.state();
        let mut found = Vec::new();
        while *looks > 0 && !self.is_over() {
            if state.is_lost() {
                self.tables = self.tables.end..self.tables.end;
                return Err(ViewLost);
            }
            if self.go_on_in(pipeline, &mut state, looks, &mut found) {
                state.pass(self.tables.start, Rank::LAST);
                self.tables.start += 1;
                self.last = None;
            }
        }
        Ok(found)
    }

    /// Inspects the next entries of a table; returns `true` if they were the last.
    fn go_on_in(
        &mut self,
        pipeline: &Pipeline,
        state: &mut ViewState,
        looks: &mut usize,
        found: &mut Vec<Arc<FlowEntry>>,
    ) -> bool {
        let table = &pipeline.tables[self.tables.start];
        if self.last.is_none() && state.kept_count() <= FEW {
            if let Some(few) = table.select_few(self.view.selection(), FEW) {
                let few = self.as_viewed(few, state);
                *looks = looks.saturating_sub(few.len());
                found.extend(few);
                return true;
            }
        }
        self.merge(table, state, looks, found)
    }

    /// Returns these entries of the first table, in order, as they were when the walk started.
    fn as_viewed(
        &self,
        entries: Vec<(Rank, Arc<FlowEntry>)>,
        state: &mut ViewState,
    ) -> Vec<Arc<FlowEntry>> {
        let number = self.tables.start;
        let old = entries.into_iter();
        let old = old.filter(|&(rank, _)| self.view.had(number, rank));
        let mut viewed: BTreeMap<Rank, Arc<FlowEntry>> = old.collect();
        while let Some((rank, kept)) = self.view.take_kept(state, number, None) {
            match kept {
                Some(kept) => viewed.insert(rank, kept),
                None => viewed.remove(&rank),
            };
        }
        viewed.into_values().collect()
    }

    /// Inspects the next entries of the first table, and its kept entries. Returns `true` if they were the last.
    fn merge(
        &mut self,
        table: &FlowTable,
        state: &mut ViewState,
        looks: &mut usize,
        found: &mut Vec<Arc<FlowEntry>>,
    ) -> bool {
        let (view, number) = (&self.view, self.tables.start);
        let mut present = table.ranked_behind(self.last).peekable();
        while *looks > 0 {
            let next = present.peek().map(|&(rank, _)| rank);
            let (rank, entry) = match (view.take_kept(state, number, next), next) {
                (Some((rank, kept)), _) => {
                    present.next_if(|&(present, _)| present == rank);
                    (rank, kept)
                }
                (None, Some(rank)) => {
                    let entry = present.next().map(|(_, entry)| entry);
                    let is_old = |entry: &&Arc<FlowEntry>| {
                        view.had(number, rank) && view.selection().is_for(entry)
                    };
                    (rank, entry.filter(is_old).cloned())
                }
                (None, None) => return true,
            };
            *looks -= 1;
            self.last = Some(rank);
            state.pass(number, rank);
            found.extend(entry);
        }
        present.peek().is_none() && !state.has_kept(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PipelineConfig;
    use crate::entry_view::ViewBudget;
    use std::time::Duration;
    use urtica_wire::{FlowMod, FlowModCommand};

    const ENTRIES: usize = 1000;

    fn change(pipeline: &mut Pipeline, command: FlowModCommand, text: &str) {
        let flow_mod = FlowMod::parse(command, text).unwrap();
        let changed = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
        changed.unwrap();
    }

    /// Creates a pipeline whose views keep at most this number of entries.
    fn keeping(max_kept: usize) -> Pipeline {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        pipeline.view_budget = Arc::new(ViewBudget::new(max_kept));
        for number in 0..ENTRIES {
            let text = format!("in_port={},actions=drop", number + 1);
            change(&mut pipeline, FlowModCommand::Add, &text);
        }
        pipeline
    }

    fn walk_all(pipeline: &Pipeline) -> FlowWalk {
        pipeline.walk_flows(&FlowStatsRequest::default()).unwrap()
    }

    /// Returns the number of entries that the rest of a walk finds.
    fn rest(walk: &mut FlowWalk, pipeline: &Pipeline) -> Result<usize, ViewLost> {
        walk.go_on(pipeline, &mut { usize::MAX })
            .map(|found| found.len())
    }

    #[test]
    fn views_that_retain_too_much_are_dropped() {
        let mut pipeline = keeping(ENTRIES - 1);
        let mut walk = walk_all(&pipeline);
        change(&mut pipeline, FlowModCommand::Delete, "");
        assert_eq!(rest(&mut walk, &pipeline), Err(ViewLost));
        assert!(walk.is_over());
        assert_eq!(rest(&mut walk_all(&pipeline), &pipeline), Ok(0));
    }

    /// A walk leaves no kept entries behind, whether it is read or dropped.
    #[test]
    fn walks_return_what_they_keep() {
        let mut pipeline = keeping(ENTRIES);
        for is_read in [true, false, true] {
            let mut walk = walk_all(&pipeline);
            change(&mut pipeline, FlowModCommand::Delete, "");
            if is_read {
                assert_eq!(rest(&mut walk, &pipeline), Ok(ENTRIES));
            }
            drop(walk);
            for number in 0..ENTRIES {
                let text = format!("in_port={},actions=drop", number + 1);
                change(&mut pipeline, FlowModCommand::Add, &text);
            }
        }
    }

    #[test]
    fn views_that_retain_most_are_dropped_first() {
        let mut pipeline = keeping(ENTRIES);
        let mut slow = walk_all(&pipeline);
        for number in 0..ENTRIES - 100 {
            let text = format!("in_port={}", number + 1);
            change(
                &mut pipeline,
                FlowModCommand::DeleteStrict,
                &format!("priority=32768,{text}"),
            );
        }
        let mut late = walk_all(&pipeline);
        change(&mut pipeline, FlowModCommand::Delete, "");
        assert_eq!(rest(&mut slow, &pipeline), Err(ViewLost));
        assert_eq!(rest(&mut late, &pipeline), Ok(100));
    }
}
