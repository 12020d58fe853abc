//! The essential threads of the controller, and its response if one ends unexpectedly.
//!
//! **What.** The shards, the supervisor and the clock run until the controller is stopped. Panics of handlers and background
//! programs are contained by their callers; the remaining causes are a system error, or a bug in the controller. If a shard
//! ended alone, its switches would be unserved, and it would get new ones.
//!
//! **How.** A thread that ends by an error or a panic stops the controller: listeners are closed, the other shards close
//! their connections in order, so that switches try another controller or use their fail mode, and the owner of the
//! controller is notified. Nothing is restarted: after a bug, the remaining state cannot be trusted.

use crate::Network;
use crate::error::Error;
use crate::mailbox::Command;
use crate::panics::contain_thread;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The threads of one controller.
///
/// Thread-safety: the lock is never held during a call to other code.
pub(crate) struct Watch {
    network: Network,
    /// Becomes readable when the controller must stop.
    stop: OwnedFd,
    /// Whether the controller then leaves its connections to the next program.
    is_leaving: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first thread that ended.
    failure: Option<Failure>,
    /// Called with the first failure, or when another program takes over.
    callbacks: Vec<Box<dyn FnOnce() + Send>>,
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
            is_leaving: AtomicBool::new(false),
            state: Mutex::default(),
        }))
    }

    /// Starts a thread, which must run until it is stopped.
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

    /// Returns a descriptor that becomes readable when the controller must stop.
    pub fn stop_event(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Makes the threads end.
    pub fn stop(&self) {
        // Fails only if the counter is at its limit, when the descriptor is readable already.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }

    /// Makes the controller leave its connections to the next program when it stops.
    pub fn set_leaving(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// Returns whether connections are left to the next program.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    /// Makes way for another program: stops the threads, and notifies the owner of the controller.
    pub fn give_way(&self) {
        self.set_leaving();
        let callbacks = std::mem::take(&mut self.lock().callbacks);
        self.stop();
        callbacks.into_iter().for_each(|callback| callback());
    }

    /// Makes the threads end even without a supervisor, which stops the shards.
    pub fn stop_all(&self) {
        self.stop();
        for shard in self.network.shards() {
            // Fails only if the shard has ended already.
            let _ = shard.mailbox.push(Command::Stop);
        }
    }

    /// Returns the error that stopped the controller, if any.
    pub fn failure(&self) -> Option<Error> {
        let Failure { thread, reason } = self.lock().failure.clone()?;
        Some(Error::Ended { thread, reason })
    }

    /// Calls `callback` when the controller stops because of an error, or at once if it has stopped.
    pub fn on_failure(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.failure.is_none() && !self.is_leaving() {
            return state.callbacks.push(Box::new(callback));
        }
        drop(state);
        callback();
    }

    fn fail(&self, thread: String, reason: String) {
        tracing::error!(
            thread,
            reason,
            "a thread of the controller has ended; the controller stops and closes all connections: restart it"
        );
        let mut state = self.lock();
        state.failure.get_or_insert(Failure { thread, reason });
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.stop_all();
        callbacks.into_iter().for_each(|callback| callback());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Waits for a thread to end, unless it is the current one: a handler or a background program may stop the controller.
pub(crate) fn join_other(thread: JoinHandle<()>) {
    if thread.thread().id() != thread::current().id() {
        // The watch has recorded how it ended.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests;
