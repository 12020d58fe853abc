//! Threads that the controller cannot do without, and what happens when one ends that should not.
//!
//! **What.** The shards, the supervisor and the clock work until the controller is told to stop. What handlers and background
//! programs do wrong is contained where they are called; what is left is an error of the system, or a mistake of ours. A
//! shard that ended alone would leave switches that nobody serves, and get new ones.
//!
//! **How.** A thread that ends by an error or a panic stops the controller: nobody listens any more, the other shards let
//! their switches go in order, so that these look for another controller or do without one, and whoever runs the controller
//! is told. Nothing is started anew: after a mistake of ours, nobody knows what else is wrong.

use crate::Network;
use crate::error::Error;
use crate::mailbox::Command;
use crate::panics::contain_thread;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The threads of one controller.
///
/// Thread-safety: the lock is never held while anything is called.
pub(crate) struct Watch {
    network: Network,
    /// Readable once the controller is to stop.
    stop: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first that ended.
    failure: Option<Failure>,
    /// Who wants to know.
    told: Vec<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone)]
struct Failure {
    thread: String,
    reason: String,
}

impl Watch {
    pub fn new(network: Network) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            network,
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
            state: Mutex::default(),
        }))
    }

    /// Starts a thread, which is to end well and when it is told to.
    pub fn spawn(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let (watch, thread) = (Arc::clone(self), name.clone());
        thread::Builder::new().name(name).spawn(move || {
            if let Err(error) = contain_thread(run) {
                watch.fail(thread, error.to_string());
            }
        })
    }

    /// Becomes readable when the controller is to stop.
    pub fn stop_event(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Tells the threads to end.
    pub fn stop(&self) {
        // Cannot fail but for a counter at its limit, in which case it is readable already.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }

    /// Why the controller has stopped by itself, if it has.
    pub fn failure(&self) -> Option<Error> {
        let Failure { thread, reason } = self.lock().failure.clone()?;
        Some(Error::Ended { thread, reason })
    }

    /// Calls `tell` when the controller stops by itself; at once where it has.
    pub fn on_failure(&self, tell: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.failure.is_none() {
            return state.told.push(Box::new(tell));
        }
        drop(state);
        tell();
    }

    fn fail(&self, thread: String, reason: String) {
        tracing::error!(
            thread,
            reason,
            "a thread of the controller has ended; the controller stops and lets all switches go: restart it"
        );
        let mut state = self.lock();
        state.failure.get_or_insert(Failure { thread, reason });
        let told = std::mem::take(&mut state.told);
        drop(state);
        self.stop();
        // The supervisor would do that; but it may be what has ended.
        for shard in self.network.shards() {
            // Refused only where the shard has ended already.
            let _ = shard.mailbox.push(Command::Stop);
        }
        told.into_iter().for_each(|tell| tell());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Waits until a thread has ended, unless it is the calling one: a handler or a background program may be what stops the
/// controller.
pub(crate) fn join_other(thread: JoinHandle<()>) {
    if thread.thread().id() != thread::current().id() {
        // Whatever it ended by, the watch knows.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests;
