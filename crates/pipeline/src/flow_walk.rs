//! Finding the entries of a request, in steps.
//!
//! **Why.** [`Pipeline::flow_stats`] returns all entries at once. A table may have a million: to avoid delaying packets, the
//! caller inspects some, processes packets, and continues.
//!
//! **What is consistent.** Entries may change between steps. An entry that exists, and matches the request, from the first
//! step to the last is found exactly once, even if it is modified. A removed one may be found or not. One that is added
//! after the first step is not found, so nothing is found twice, and a walk always ends.
//!
//! **Cost.** A step inspects as many entries as requested. In a table with few candidates for the request's match, only
//! these are inspected.

use crate::entry_walk::{EntryWalk, Order, Wanted};
use crate::selection::Selection;
use crate::{FlowEntry, Pipeline};
use std::sync::Arc;
use urtica_wire::{ErrorCode, FlowStatsRequest};

/// The maximum number of candidates for a request's match in a table that are inspected at once.
const FEW: usize = 256;

/// A walk over the entries that a request asks for.
#[derive(Debug)]
pub struct FlowWalk(EntryWalk);

impl Pipeline {
    /// Starts a walk over the entries of a request.
    ///
    /// # Errors
    /// The specification's error if its match or table is invalid.
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

    /// Inspects about `looks` more entries, and reduces `looks` by their number. Returns the found entries, possibly none
    /// before the end of the walk.
    pub fn go_on(&mut self, pipeline: &Pipeline, looks: &mut usize) -> Vec<Arc<FlowEntry>> {
        let found = self.0.go_on(&pipeline.tables, looks).into_iter();
        found.map(|(_, entry)| entry).collect()
    }
}
