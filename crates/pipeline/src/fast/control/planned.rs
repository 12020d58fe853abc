//! An entry for planning a table's search.

use super::match_key::Key;
use crate::FlowEntry;
use crate::classifier::Rank;
use std::sync::Arc;

/// An entry that packets may reach.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub rank: Rank,
    pub entry: Arc<FlowEntry>,
    pub key: Key,
}
