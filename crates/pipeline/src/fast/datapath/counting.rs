//! Counting with separate counters for each thread.

use super::context::Context;
use crate::counters::EntryCounters;
use crate::thread_counts::place;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Adds to a counter that only this thread changes.
#[inline]
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Returns the thread's counters for the flow record with its counters at this address.
///
/// # Safety
/// The counters are in the arena of the context's pipeline, and not freed while the result is used.
#[inline]
pub(super) unsafe fn counters_of<'a>(
    context: &Context,
    counters: *const EntryCounters,
) -> &'a EntryCounters {
    // SAFETY: the counters are alive, and the thread's area belongs to their arena.
    unsafe {
        match context.entry_counts.is_null() {
            true => &*counters,
            false => place(context.entry_counts, context.arena.addr(), counters.addr()),
        }
    }
}
