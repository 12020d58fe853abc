//! A value that is published as a whole, read often and replaced rarely: a topology, routes.
//!
//! **How.** Readers clone an `Arc` of the current value (`arc-swap`). A version counts the publications.
//!
//! **Cost.** `load` takes no lock, but increments a reference count, which is a write to memory that readers share. On a hot
//! path, keep the loaded value, and load again when `version`, which only reads memory, has increased.
//!
//! **Thread-safety.** Any number of threads read and publish. Readers never wait.

use crate::stm::in_transaction;
use crate::wait::{Waiter, Waiters};
use arc_swap::ArcSwap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};

/// A published value.
///
/// ```
/// use urtica_state::Snapshot;
///
/// let routes = Snapshot::new(vec!["10.0.0.0/8"]);
/// let (seen, before) = (routes.version(), routes.load());
/// routes.update(|routes| [routes.as_slice(), &["192.168.0.0/16"]].concat());
/// assert_eq!(before.len(), 1, "whoever has the old value keeps it");
/// assert_eq!(routes.load().len(), 2);
/// assert!(routes.version() > seen);
/// ```
pub struct Snapshot<T> {
    value: ArcSwap<T>,
    /// The number of publications after the first value. Incremented after the value is replaced.
    version: AtomicU64,
    waiters: Waiters,
}

impl<T: Send + Sync> Snapshot<T> {
    /// Creates a snapshot of `value`, with version 0.
    pub fn new(value: T) -> Self {
        Self {
            value: ArcSwap::from_pointee(value),
            version: AtomicU64::new(0),
            waiters: Waiters::new(),
        }
    }

    /// Returns the current value.
    pub fn load(&self) -> Arc<T> {
        self.value.load_full()
    }

    /// Returns the number of publications after the first value. A later [`Snapshot::load`] returns this version or a newer
    /// one.
    pub fn version(&self) -> u64 {
        self.version.load(SeqCst)
    }

    /// Replaces the value.
    ///
    /// # Panics
    /// In a transaction, which may run again or be aborted.
    pub fn publish(&self, value: T) {
        refuse_in_transaction();
        self.value.store(Arc::new(value));
        self.announce();
    }

    /// Replaces the value by the result of `change`. If another thread publishes during the call, `change` is called again, so
    /// no update is lost.
    ///
    /// # Panics
    /// Like [`Snapshot::publish`].
    pub fn update(&self, change: impl Fn(&T) -> T) {
        refuse_in_transaction();
        self.value.rcu(|value| change(value));
        self.announce();
    }

    fn announce(&self) {
        self.version.fetch_add(1, SeqCst);
        let woken = self.waiters.take();
        woken.iter().for_each(|waiter| waiter.wake());
    }

    /// Resolves to the version when it is greater than `since`.
    ///
    /// Works with any executor; dropping the future ends the wait.
    pub fn changed(&self, since: u64) -> impl Future<Output = u64> + Send {
        Changed {
            snapshot: self,
            since,
            waiter: None,
        }
    }
}

fn refuse_in_transaction() {
    assert!(
        !in_transaction(),
        "a snapshot cannot be published inside a transaction, which may run again or be aborted; have it return the value, \
         and publish that afterwards"
    );
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Snapshot<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Snapshot")
            .field("version", &self.version())
            .field("value", &self.load())
            .finish()
    }
}

struct Changed<'a, T> {
    snapshot: &'a Snapshot<T>,
    since: u64,
    waiter: Option<Arc<Waiter>>,
}

impl<T: Send + Sync> Future for Changed<'_, T> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let is_woken = match &self.waiter {
            Some(waiter) => waiter.is_woken_or_wakes(context.waker()),
            None => true,
        };
        if is_woken {
            self.wait(context);
        }
        // The waiter is registered before the check, so a later publish wakes it.
        match self.snapshot.version() {
            version if version > self.since => Poll::Ready(version),
            _ => Poll::Pending,
        }
    }
}

impl<T: Send + Sync> Changed<'_, T> {
    fn wait(&mut self, context: &Context<'_>) {
        let waiter = Waiter::new(context.waker().clone());
        self.snapshot.waiters.add(&waiter);
        self.waiter = Some(waiter);
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            self.snapshot.waiters.remove(waiter);
        }
    }
}
