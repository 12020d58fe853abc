//! An entry as the compiler looks at it, to decide how a table is searched.

use super::match_key::Key;
use crate::FlowEntry;
use crate::classifier::Rank;
use std::sync::Arc;

/// An entry that packets may come to.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub rank: Rank,
    pub entry: Arc<FlowEntry>,
    pub key: Key,
}
