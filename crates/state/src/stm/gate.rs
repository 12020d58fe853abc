//! How a transaction that had too many conflicts makes progress: others hold their commits back while it runs.
//!
//! **How.** One transaction at a time may have the lock [`ExclusiveCommit`], and runs with the gate closed. Commits that are
//! under way when it closes can still conflict with it, at most one of each thread; those that come to the gate wait until
//! it opens. They wait for [`MAX_WAIT`] and not longer, so that a transaction which does not end holds nobody up for ever,
//! however busy the machine is.
//!
//! **Cost.** A commit loads one word that is hardly ever written. Waiting reads the clock; in a program of one thread, where
//! there are no conflicts, nobody waits.

use crate::sync::{AtomicBool, Mutex, MutexGuard, yield_now};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long a commit waits at a closed gate: many times the length of a transaction, and a few slices of the scheduler.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// The gate that all commits pass.
pub(super) static GATE: Gate = Gate::new();

/// Lets commits pass, or holds them back.
#[repr(align(128))]
pub(crate) struct Gate {
    is_closed: AtomicBool,
    exclusive: Mutex<()>,
}

/// The lock on commits: who has it commits while others do not. Dropping it opens the gate.
pub(crate) struct ExclusiveCommit<'a> {
    gate: &'a Gate,
    _guard: MutexGuard<'a, ()>,
}

impl Gate {
    pub const fn new() -> Self {
        Self {
            is_closed: AtomicBool::new(false),
            exclusive: Mutex::new(()),
        }
    }

    /// Waits until the gate is open, but not for ever.
    #[inline]
    pub fn pass(&self) {
        if self.is_closed.load(Relaxed) {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let came = Instant::now();
        while self.is_closed.load(Relaxed) && came.elapsed() < MAX_WAIT {
            yield_now();
        }
    }

    /// Waits for the lock, and closes the gate.
    pub fn close(&self) -> ExclusiveCommit<'_> {
        let guard = self
            .exclusive
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.closed(guard)
    }

    /// Closes the gate, unless another transaction has the lock.
    pub fn try_close(&self) -> Option<ExclusiveCommit<'_>> {
        match self.exclusive.try_lock() {
            Ok(guard) => Some(self.closed(guard)),
            Err(TryLockError::Poisoned(guard)) => Some(self.closed(guard.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn closed<'a>(&'a self, guard: MutexGuard<'a, ()>) -> ExclusiveCommit<'a> {
        self.is_closed.store(true, Relaxed);
        ExclusiveCommit {
            gate: self,
            _guard: guard,
        }
    }
}

impl Drop for ExclusiveCommit<'_> {
    fn drop(&mut self) {
        self.gate.is_closed.store(false, Relaxed);
    }
}
