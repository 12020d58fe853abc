//! Delayed drops of values and variables that a transaction may still read.

use std::cell::Cell;

/// The number of retired values after which a thread drops those that no transaction can read any longer.
const RETIRED_BETWEEN_DROPS: u32 = 64;

/// Calls `drop_it` after all transactions that run now have ended (epoch-based reclamation).
///
/// # Safety
/// `drop_it` may be called on any thread.
pub(crate) unsafe fn retire(drop_it: impl FnOnce()) {
    thread_local! {
        static RETIRED: Cell<u32> = const { Cell::new(0) };
    }
    let pinned = crossbeam_epoch::pin();
    // SAFETY: another thread may call it, by this function's own condition. Its captures outlive the call, since it is called
    // when no thread pinned now is still pinned, and excluding later uses is the caller's duty.
    unsafe { pinned.defer_unchecked(drop_it) };
    RETIRED.set((RETIRED.get() + 1) % RETIRED_BETWEEN_DROPS);
    if RETIRED.get() == 0 {
        // The epoch library occasionally does this when a thread is pinned again, but a series does not pin again.
        pinned.flush();
    }
}
