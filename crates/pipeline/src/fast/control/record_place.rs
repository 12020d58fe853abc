//! The location of a flow record.

use crate::fast::datapath::table::FlowRecord;
use crate::fast::memory::arena::Ref;

/// The location of a flow record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPlace {
    pub block: Ref,
    /// The number of words before the flow record.
    pub words: usize,
    pub record: *mut FlowRecord,
}
