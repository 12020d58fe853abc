//! How a transaction that met with too many conflicts gets its way: the others hold their commits back.
//!
//! **How.** Whoever has the [`Turn`] runs with the gate closed. Commits that are under way when it closes can still be in
//! its way, at most one of each thread; those that come to the gate wait until it opens. They wait for [`PATIENCE`] and
//! not longer, so that a transaction which does not end holds nobody up for ever, however busy the machine is.
//!
//! **Cost.** A commit loads one word that is hardly ever written. Who waits looks at the clock; nobody does in a program of
//! one thread, where there are no conflicts.

use crate::sync::{AtomicBool, Mutex, MutexGuard, yield_now};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long a commit waits at a closed gate: many times what a transaction takes, and a few slices of the scheduler.
const PATIENCE: Duration = Duration::from_millis(20);

/// What all commits pass.
pub(super) static GATE: Gate = Gate::new();

/// What commits pass.
#[repr(align(128))]
pub(crate) struct Gate {
    is_closed: AtomicBool,
    turn: Mutex<()>,
}

/// The right to commit while others do not. Dropping it opens the gate.
pub(crate) struct Turn<'a> {
    gate: &'a Gate,
    _turn: MutexGuard<'a, ()>,
}

impl Gate {
    pub const fn new() -> Self {
        Self {
            is_closed: AtomicBool::new(false),
            turn: Mutex::new(()),
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
        while self.is_closed.load(Relaxed) && came.elapsed() < PATIENCE {
            yield_now();
        }
    }

    /// Waits until it is the caller's turn, and closes the gate.
    pub fn close(&self) -> Turn<'_> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed(turn)
    }

    /// Closes the gate, unless somebody else has the turn.
    pub fn try_close(&self) -> Option<Turn<'_>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(self.closed(turn)),
            Err(TryLockError::Poisoned(turn)) => Some(self.closed(turn.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn closed<'a>(&'a self, turn: MutexGuard<'a, ()>) -> Turn<'a> {
        self.is_closed.store(true, Relaxed);
        Turn {
            gate: self,
            _turn: turn,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gate.is_closed.store(false, Relaxed);
    }
}
