//! Waits until a value that a transaction has read changes.

use super::core::Handle;
use super::log::Log;
use crate::wait::{Waiter, park_until};
use std::sync::Arc;
use std::task::Waker;

/// A wait for changes of the variables that a transaction has read. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    waiter: Arc<Waiter>,
    variables: Vec<Handle>,
}

impl Waiting {
    /// Starts to wait for changes of all variables in this log's read set; `None` if one has changed already.
    ///
    /// No change is missed: the waiter is on the variable's list before the word is marked, and the mark makes a commit read
    /// the list. Marking fails if the version that was read has been overwritten.
    pub fn new(log: &Log, waker: &Waker) -> Option<Self> {
        let mut waiting = Self {
            waiter: Waiter::new(waker.clone()),
            variables: Vec::new(),
        };
        for (variable, version) in log.read_handles() {
            variable.core().waiters.add(&waiting.waiter);
            let is_unchanged = variable.core().versioned.mark_awaited(version);
            waiting.variables.push(variable);
            if !is_unchanged {
                return None;
            }
        }
        Some(waiting)
    }

    /// Blocks until a variable has changed. Must be called by the thread whose waker it has.
    pub fn sleep(self) {
        park_until(&self.waiter);
    }

    /// Sets the waker. Returns `true` if a variable has changed already.
    pub fn is_over_or_wakes(&self, waker: &Waker) -> bool {
        self.waiter.is_woken_or_wakes(waker)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for variable in &self.variables {
            variable.core().waiters.remove(&self.waiter);
        }
    }
}
