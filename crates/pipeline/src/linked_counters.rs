//! A link from an entry to counters of the compiled form.

use crate::counters::{EntryCounters, EntryCounts};
use crate::thread_counts::ThreadCounts;
use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::ptr::null;

/// A link to the counters that the compiled form keeps for an entry, if any. The entry only reads them.
///
/// Only the compiled form sets and clears the link, and it clears it before freeing the counters. The lock keeps the counters
/// alive while any thread reads them. Packet processing does not use it.
pub(crate) struct LinkedCounters(Mutex<Link>);

/// The counters, or null, and the counters of each thread, or null.
struct Link(*const EntryCounters, *const ThreadCounts);

// SAFETY: the counters belong to no thread, and are read through a link as atomics, under the lock.
unsafe impl Send for Link {}

impl LinkedCounters {
    /// Returns the current counts.
    pub fn counts(&self) -> EntryCounts {
        let link = self.link();
        // SAFETY: null, or counters that are not freed while the link is locked: see `set`.
        let counters = unsafe { link.0.as_ref() };
        let own = counters.map(EntryCounters::read).unwrap_or_default();
        // SAFETY: as above.
        match unsafe { link.1.as_ref() } {
            // SAFETY: they belong to the arena that the counters are in: see `set`.
            Some(threads) => own.plus(unsafe { threads.counts(link.0) }),
            None => own,
        }
    }

    /// Returns the pointer to the counters, or null.
    pub fn pointer(&self) -> *const EntryCounters {
        self.link().0
    }

    /// Links counters, and the per-thread counters, if any.
    ///
    /// # Safety
    /// Until the link is changed or cleared, they are not freed, and only accessed as atomics. The counters are those of a flow
    /// record in the arena of `threads`.
    pub unsafe fn set(&self, counters: *const EntryCounters, threads: Option<&ThreadCounts>) {
        *self.link() = Link(counters, threads.map_or(null(), std::ptr::from_ref));
    }

    /// Removes the link.
    pub fn clear(&self) {
        *self.link() = Link(null(), null());
    }

    /// Locks the link. A pointer is always consistent, even if a thread died with the lock.
    fn link(&self) -> MutexGuard<'_, Link> {
        self.0.lock()
    }
}

impl Default for LinkedCounters {
    fn default() -> Self {
        Self(Mutex::new(Link(null(), null())))
    }
}

impl fmt::Debug for LinkedCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkedCounters")
            .field(&self.counts())
            .finish()
    }
}
