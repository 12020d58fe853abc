//! When values and variables are dropped that a transaction may still look at.

use std::cell::Cell;

/// After how many retired values a thread drops those earlier ones that can be dropped.
const RETIRED_BETWEEN_DROPS: u32 = 64;

/// Calls `drop_it` when no transaction that runs now runs any more (epoch-based reclamation).
///
/// # Safety
/// `drop_it` may be called on any thread.
pub(crate) unsafe fn retire(drop_it: impl FnOnce()) {
    thread_local! {
        static RETIRED: Cell<u32> = const { Cell::new(0) };
    }
    let pinned = crossbeam_epoch::pin();
    // SAFETY: another thread may call it, which is this function's own condition; what it captures outlives the call, as it is
    // called when nobody pinned now is pinned any more, and who uses it later than that is the caller's to exclude.
    unsafe { pinned.defer_unchecked(drop_it) };
    RETIRED.set((RETIRED.get() + 1) % RETIRED_BETWEEN_DROPS);
    if RETIRED.get() == 0 {
        // The epoch library does this now and then when a thread is pinned anew, which in a series it is not.
        pinned.flush();
    }
}
