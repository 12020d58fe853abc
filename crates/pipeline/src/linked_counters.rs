//! Where others count for a flow entry.

use crate::counters::{EntryCounters, EntryCounts};
use crate::fast::ThreadCounts;
use std::fmt;
use std::ptr::null;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counters that another form of the pipeline keeps for an entry, if there are any. The entry only reads them.
///
/// That form alone sets and clears the link, and clears it before it frees the counters. The lock is for those who have the
/// entry and ask for its counts, in whatever thread: while one reads, the counters stay. Packets do not take it.
pub(crate) struct LinkedCounters(Mutex<Link>);

/// The counters, null where there are none; and where threads count for themselves, null where they do not.
struct Link(*const EntryCounters, *const ThreadCounts);

// SAFETY: counters belong to no thread; what reads them through a link reads atomics, under the lock.
unsafe impl Send for Link {}

impl LinkedCounters {
    /// What has been counted there so far.
    pub fn counts(&self) -> EntryCounts {
        let link = self.link();
        // SAFETY: null, or counters that are not freed while the link is locked: see `set`.
        let counters = unsafe { link.0.as_ref() };
        let own = counters.map(EntryCounters::read).unwrap_or_default();
        // SAFETY: the same.
        match unsafe { link.1.as_ref() } {
            // SAFETY: they belong to the arena that the counters are in: see `set`.
            Some(threads) => own.plus(unsafe { threads.counts(link.0) }),
            None => own,
        }
    }

    /// Where the counters are; null where there are none.
    pub fn pointer(&self) -> *const EntryCounters {
        self.link().0
    }

    /// Links counters, and what threads count beside them, if they do.
    ///
    /// # Safety
    /// They are not freed, nor accessed but as atomics, before others are set or the link is cleared. The counters are of a
    /// flow record in the arena of `threads`.
    pub unsafe fn set(&self, counters: *const EntryCounters, threads: Option<&ThreadCounts>) {
        *self.link() = Link(counters, threads.map_or(null(), std::ptr::from_ref));
    }

    /// Takes the link away.
    pub fn clear(&self) {
        *self.link() = Link(null(), null());
    }

    /// A pointer is whole at any time, whatever thread died with the lock.
    fn link(&self) -> MutexGuard<'_, Link> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
