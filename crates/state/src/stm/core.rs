//! A variable without its type, as its handles share it: the value in raw form, and its waiters.
//!
//! **Memory.** A core has its own cache line. It lives until it has no handles and no running transaction can still have read
//! it. So a transaction only notes the cores that it reads. If it counted as a handle instead, readers would write shared
//! memory.

use super::reclaim::retire;
use super::versioned::{Raw, Versioned};
use crate::sync::AtomicUsize;
use crate::wait::Waiters;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A variable without its type.
#[repr(align(64))]
pub(crate) struct Core {
    pub versioned: Versioned,
    pub waiters: Waiters,
    /// Drops a value in raw form; `None` for types that need no drop.
    pub drop_raw: Option<unsafe fn(Raw)>,
    handles: AtomicUsize,
}

impl Core {
    /// Creates a core with one handle.
    pub fn new(raw: Raw, drop_raw: Option<unsafe fn(Raw)>) -> Self {
        Self {
            versioned: Versioned::new(raw),
            waiters: Waiters::new(),
            drop_raw,
            handles: AtomicUsize::new(1),
        }
    }

    /// Adds a handle. Returns `false` if the core has no handles left.
    fn try_share(&self) -> bool {
        let mut handles = self.handles.load(Relaxed);
        while handles != 0 {
            match (self.handles).compare_exchange_weak(handles, handles + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(found) => handles = found,
            }
        }
        false
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let raw = self.versioned.raw_mut();
        if let Some(drop_raw) = self.drop_raw {
            // SAFETY: the core owns its value, and no thread refers to the core any longer.
            unsafe { drop_raw(raw) };
        }
    }
}

/// A reference-counted handle of a core.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<Core>);

// SAFETY: a core consists of atomics and locks; the values that it returns and drops on any thread are Send and Sync, as
// `TVar::new` requires.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    pub fn new(core: Core) -> Self {
        Self(NonNull::from(Box::leak(Box::new(core))))
    }

    /// Returns a handle of a core that a running transaction has read; `None` if no other handle is left.
    ///
    /// # Safety
    /// The calling thread has been pinned since before it read the core through a handle.
    pub unsafe fn of(core: NonNull<Core>) -> Option<Self> {
        // SAFETY: the core had a handle when the caller read it, and the caller has been pinned since: it is not freed.
        let is_shared = unsafe { core.as_ref() }.try_share();
        is_shared.then_some(Self(core))
    }

    #[inline]
    pub fn core(&self) -> &Core {
        // SAFETY: the core lives while it has handles.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub fn as_ptr(&self) -> NonNull<Core> {
        self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        self.core().handles.fetch_add(1, Relaxed);
        Self(self.0)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.core().handles.fetch_sub(1, Release) != 1 {
            return;
        }
        // All other threads' uses of the core happened before they dropped their handles.
        self.core().handles.load(Acquire);
        let core = self.0;
        // SAFETY: it was made by a Box, no handle is left or can be created, and `retire` waits for running transactions.
        unsafe { retire(move || drop(Box::from_raw(core.as_ptr()))) };
    }
}
