//! The entries that a request asks for, some at a time.
//!
//! **Why.** [`Pipeline::flow_stats`] looks at all entries at once, and hands over all that it finds. A table may have a
//! million: whoever must not keep packets waiting looks at some, lets packets pass, and goes on.
//!
//! **What is consistent.** Entries may change between two steps. One that is there from the first step to the last, and
//! meets the request all the time, is found exactly once, whether it is modified meanwhile or not. One that goes may be found
//! or not. One that is added after the first step is not found: so nothing is found twice, and a walk ends however
//! fast others add.
//!
//! **Cost.** A step costs what it is told to look at. In a table in which few entries can meet the request's match, only
//! these are looked at.

use crate::classifier::Rank;
use crate::flow_mod::Selection;
use crate::{FlowEntry, FlowTable, Pipeline};
use std::ops::Range;
use std::sync::Arc;
use urtica_wire::{ErrorCode, FlowStatsRequest};

/// In a table where no more entries than this can meet a request's match, only these are looked at, together.
const FEW: usize = 256;

/// A walk over the entries that a request asks for.
#[derive(Debug)]
pub struct FlowWalk {
    selection: Selection,
    /// The tables that are left.
    tables: Range<usize>,
    /// The last place that was looked at in the first of them.
    behind: Option<Rank>,
    /// How many entries had ever been added to each table of the request when the walk began, the first of these tables first.
    added: Box<[u64]>,
}

impl Pipeline {
    /// Begins to find the entries that a request asks for.
    ///
    /// # Errors
    /// The specification's error where its match or table is wrong.
    pub fn walk_flows(&self, request: &FlowStatsRequest) -> Result<FlowWalk, ErrorCode> {
        let selection = Selection::of_request(request)?;
        let tables = self.tables_asked(request.table_id)?;
        let added = self.tables[tables.clone()].iter();
        Ok(FlowWalk {
            selection,
            added: added.map(FlowTable::added_count).collect(),
            tables,
            behind: None,
        })
    }
}

impl FlowWalk {
    /// Whether all have been found.
    pub fn is_over(&self) -> bool {
        self.tables.is_empty()
    }

    /// Looks at about `looks` entries more, and takes off how many it has looked at. Returns what it finds, maybe nothing although the walk is not over.
    pub fn go_on(&mut self, pipeline: &Pipeline, looks: &mut usize) -> Vec<Arc<FlowEntry>> {
        let mut found = Vec::new();
        while *looks > 0 && !self.is_over() {
            let table = &pipeline.tables[self.tables.start];
            let is_done = self.go_on_in(table, looks, &mut found);
            if is_done {
                self.tables.start += 1;
                self.behind = None;
            }
        }
        found
    }

    /// Looks at the next entries of a table; whether these were its last.
    fn go_on_in(
        &mut self,
        table: &FlowTable,
        looks: &mut usize,
        found: &mut Vec<Arc<FlowEntry>>,
    ) -> bool {
        let added = self.added[self.added.len() - self.tables.len()];
        let selects = |rank: Rank, entry: &FlowEntry| {
            rank.sequence() < added && self.selection.selects(entry)
        };
        if self.behind.is_none() {
            if let Some(few) = table.select_few(&self.selection.match_, FEW) {
                *looks = looks.saturating_sub(few.len());
                let few = few.into_iter();
                found
                    .extend(few.filter_map(|(rank, entry)| selects(rank, &entry).then_some(entry)));
                return true;
            }
        }
        for (rank, entry) in table.ranked_behind(self.behind) {
            if *looks == 0 {
                return false;
            }
            *looks -= 1;
            self.behind = Some(rank);
            if selects(rank, entry) && self.selection.match_.includes(&entry.match_) {
                found.push(Arc::clone(entry));
            }
        }
        true
    }
}
