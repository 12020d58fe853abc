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

use crate::entry_walk::{EntryWalk, Order, Wanted};
use crate::selection::Selection;
use crate::{FlowEntry, Pipeline};
use std::sync::Arc;
use urtica_wire::{ErrorCode, FlowStatsRequest};

/// In a table where no more entries than this can meet a request's match, only these are looked at, together.
const FEW: usize = 256;

/// A walk over the entries that a request asks for.
#[derive(Debug)]
pub struct FlowWalk(EntryWalk);

impl Pipeline {
    /// Begins to find the entries that a request asks for.
    ///
    /// # Errors
    /// The specification's error where its match or table is wrong.
    pub fn walk_flows(&self, request: &FlowStatsRequest) -> Result<FlowWalk, ErrorCode> {
        let wanted = Wanted::Selected(Selection::of_request(request)?);
        let tables = self.tables_asked(request.table_id)?;
        let walk = EntryWalk::new(&self.tables, tables, wanted, Order::Down, FEW);
        Ok(FlowWalk(walk))
    }
}

impl FlowWalk {
    /// Whether all have been found.
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Looks at about `looks` entries more, and takes off how many it has looked at. Returns what it finds, maybe nothing although the walk is not over.
    pub fn go_on(&mut self, pipeline: &Pipeline, looks: &mut usize) -> Vec<Arc<FlowEntry>> {
        let found = self.0.go_on(&pipeline.tables, looks).into_iter();
        found.map(|(_, entry)| entry).collect()
    }
}
