//! Tasks and threads that wait for a change.
//!
//! **How.** A [`Waiter`] is in the [`Waiters`] of each thing that it waits for. The first change wakes it, through the
//! [`Waker`] of a task or a thread.
//!
//! **Thread-safety.** Any number of threads wait and wake concurrently. No list is locked while a waker is called.

use crate::sync::{AtomicBool, Mutex, MutexGuard};
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

/// A task or thread that waits to be woken once.
#[derive(Debug)]
pub(crate) struct Waiter {
    is_woken: AtomicBool,
    waker: Mutex<Waker>,
}

impl Waiter {
    pub fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            is_woken: AtomicBool::new(false),
            waker: Mutex::new(waker),
        })
    }

    /// Replaces the waker. Returns `true` if the waiter was woken already, through the old one.
    pub fn is_woken_or_wakes(&self, waker: &Waker) -> bool {
        lock(&self.waker).clone_from(waker);
        self.is_woken()
    }

    /// Returns `true` if the waiter was woken.
    pub fn is_woken(&self) -> bool {
        self.is_woken.load(Acquire)
    }

    /// Wakes the waiter.
    pub fn wake(&self) {
        self.is_woken.store(true, Release);
        let waker = lock(&self.waker).clone();
        waker.wake();
    }
}

/// The waiters for a change.
#[derive(Debug)]
pub(crate) struct Waiters(Mutex<Vec<Arc<Waiter>>>);

impl Waiters {
    pub fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub fn add(&self, waiter: &Arc<Waiter>) {
        lock(&self.0).push(Arc::clone(waiter));
    }

    pub fn remove(&self, waiter: &Arc<Waiter>) {
        lock(&self.0).retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Removes and returns all waiters, which the caller wakes.
    pub fn take(&self) -> Vec<Arc<Waiter>> {
        mem::take(&mut *lock(&self.0))
    }
}

/// Ignores poisoning: no code here panics while it holds the lock and the data is inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a waker that unparks the calling thread, which must wait with [`park_until`].
pub(crate) fn thread_waker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// Parks until the waiter, which has this thread's waker, is woken.
pub(crate) fn park_until(waiter: &Waiter) {
    while !waiter.is_woken() {
        thread::park();
    }
}
