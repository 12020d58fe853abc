//! The state that code uses in addition to frames.

use super::sent::AllSent;
use super::table::{Header, TableCounts};
use std::cell::Cell;

/// The state of one thread, an argument of machine code in addition to the frame.
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
    /// Not 0 if frames without an entry are left to the plain form, because a controller wants them.
    pub misses_punt: u32,
    /// Not 0 if a frame of the burst was left to the plain form, which processes it after the burst. Later frames that pass a
    /// meter are then also left to it, so that meters see frames in order.
    pub has_left: Cell<u32>,
    /// This thread's counters of flow records (`thread_counts`); null if a single thread counts in the flow records themselves.
    /// Machine code that was generated for several threads does not check this.
    pub entry_counts: *mut u8,
    /// The additional outputs of frames in the current burst.
    pub sent: *mut AllSent,
}
