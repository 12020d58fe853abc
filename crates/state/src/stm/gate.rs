//! Progress for a transaction that had too many conflicts: other transactions' commits wait while it runs.
//!
//! **How.** One transaction at a time may hold the lock [`ExclusiveCommit`], and runs with the gate closed. Commits that are in
//! progress when it closes can still conflict with it, at most one per thread. Commits that reach the closed gate wait until it
//! opens, for at most [`MAX_WAIT`], so that a transaction which does not end cannot block the others for ever, even on a busy
//! machine.
//!
//! **Cost.** A commit loads one word that is hardly ever written. Waiting reads the clock; a program with one thread has no
//! conflicts and never waits.

use crate::sync::{AtomicBool, Mutex, MutexGuard, yield_now};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The maximum time that a commit waits at a closed gate: many times the length of a transaction, and a few of the scheduler's
/// time slices.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// The gate that all commits pass.
pub(super) static GATE: Gate = Gate::new();

/// A gate that lets commits pass, or makes them wait.
#[repr(align(128))]
pub(crate) struct Gate {
    is_closed: AtomicBool,
    exclusive: Mutex<()>,
}

/// The lock on commits: only its holder commits. Dropping it opens the gate.
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

    /// Waits until the gate is open, for at most [`MAX_WAIT`].
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

    /// Closes the gate, unless another transaction holds the lock.
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
