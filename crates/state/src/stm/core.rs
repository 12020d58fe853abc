//! A variable without its type, behind its handles: the value in raw form, and who waits for it.
//!
//! **Memory.** A core has a cache line of its own. It lives while there are handles, and then until no running transaction
//! can still have read it: so a transaction notes the cores that it reads without counting itself among the handles, which
//! would make readers write shared memory.

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
    /// How to drop a value in raw form; nothing for those that need none.
    pub drop_raw: Option<unsafe fn(Raw)>,
    handles: AtomicUsize,
}

impl Core {
    /// With one handle.
    pub fn new(raw: Raw, drop_raw: Option<unsafe fn(Raw)>) -> Self {
        Self {
            versioned: Versioned::new(raw),
            waiters: Waiters::new(),
            drop_raw,
            handles: AtomicUsize::new(1),
        }
    }

    /// One handle more, unless there is none.
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
            // SAFETY: the core owns its value, and nobody sees the core any more.
            unsafe { drop_raw(raw) };
        }
    }
}

/// A reference-counted handle of a core.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<Core>);

// SAFETY: a core is made of atomics and locks; the values that it gives out and drops on any thread are Send and Sync,
// which `TVar::new` asks for.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    pub fn new(core: Core) -> Self {
        Self(NonNull::from(Box::leak(Box::new(core))))
    }

    /// A handle of a core that a running transaction has read; `None` if all other handles are gone.
    ///
    /// # Safety
    /// The calling thread has been pinned since before it read the core through a handle.
    pub unsafe fn of(core: NonNull<Core>) -> Option<Self> {
        // SAFETY: there was a handle when the caller read the core, and the caller has been pinned since: it is not freed.
        let is_shared = unsafe { core.as_ref() }.try_share();
        is_shared.then_some(Self(core))
    }

    #[inline]
    pub fn core(&self) -> &Core {
        // SAFETY: the core lives while there are handles.
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
        // What others did with the core happened before they dropped their handles.
        self.core().handles.load(Acquire);
        let core = self.0;
        // SAFETY: it came from a Box, no handle is left or can be made again, and transactions that run are waited for.
        unsafe { retire(move || drop(Box::from_raw(core.as_ptr()))) };
    }
}
