//! Where a flow record is.

use crate::fast::datapath::table::FlowRecord;
use crate::fast::memory::arena::Ref;

/// A flow record, where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPlace {
    pub block: Ref,
    /// How many words there are before the flow record.
    pub words: usize,
    pub record: *mut FlowRecord,
}
