//! Where a flow record is.

use crate::FlowEntry;
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

impl RecordPlace {
    /// Has an entry count by the flow record.
    ///
    /// # Safety
    /// The flow record is not freed before it is retired with this entry, which clears the link.
    pub unsafe fn count_for(&self, entry: &FlowEntry) {
        // SAFETY: the flow record is there, as it is not freed; it stays as long as the link.
        unsafe { entry.linked.set(&raw const (*self.record).counters) };
    }
}
