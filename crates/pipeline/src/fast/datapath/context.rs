//! The arguments of code besides frames.

use super::sent::AllSent;
use super::table::{Header, TableCounts};
use std::cell::Cell;

/// The arguments of machine code besides a frame; one per thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Context {
    /// The time of the burst, in nanoseconds of the caller's clock.
    pub now_ns: u64,
    /// Where [`Ref`](crate::fast::memory::arena::Ref)s count from, in units of 64 bytes.
    pub arena: *mut u8,
    /// All headers.
    pub headers: *const Header,
    /// This thread's counters, for each header.
    pub counts: *mut TableCounts,
    /// Not 0 where frames that no entry matches go the plain way, since somebody wants to know of them.
    pub misses_punt: u32,
    /// Not 0 after a frame of the burst was left to the plain form, which sees it after the burst. Frames behind it that pass
    /// a meter are left to it as well, so that meters see frames in their order.
    pub has_left: Cell<u32>,
    /// The thread's own counters of flow records (`thread_counts`); null where one thread counts in the flow records
    /// themselves. Machine code that was made for several threads does not ask.
    pub entry_counts: *mut u8,
    /// Where it is noted if a frame leaves more than once; of the burst that is processed.
    pub sent: *mut AllSent,
}
