//! The arguments of code in addition to frames.

use super::sent::AllSent;
use super::table::{Header, TableCounts};
use std::cell::Cell;

/// The arguments of machine code in addition to a frame; one per thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Context {
    /// The time of the burst, in nanoseconds of the caller's clock.
    pub now_ns: u64,
    /// The base of [`Ref`](crate::fast::memory::arena::Ref)s, which count in units of 64 bytes.
    pub arena: *mut u8,
    /// All headers.
    pub headers: *const Header,
    /// This thread's counters, for each header.
    pub counts: *mut TableCounts,
    /// Not 0 if frames that no entry matches are left to the plain form, since a controller wants them.
    pub misses_punt: u32,
    /// Not 0 after a frame of the burst was left to the plain form, which sees it after the burst. Frames behind it that pass
    /// a meter are left to it as well, so that meters see frames in their order.
    pub has_left: Cell<u32>,
    /// The thread's own counters of flow records (`thread_counts`); null if a single thread counts in the flow records
    /// themselves. Machine code generated for several threads does not check this.
    pub entry_counts: *mut u8,
    /// The additional outputs of frames in the present burst.
    pub sent: *mut AllSent,
}
