//! The clock of background programs, and its timers.
//!
//! Thread-safety: any thread sets timers. Wakers are called and dropped without the lock, since they may set or remove timers
//! themselves.

use crate::panics::panic_text;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A clock with timers. Its driver calls [`Clock::fire`] when the next timer is due.
pub(crate) struct Clock {
    time: Time,
    timers: Mutex<Timers>,
    /// Notified when a timer is set that is due before all others.
    earlier: Condvar,
}

enum Time {
    Real,
    /// Nanoseconds since `base`.
    Simulated {
        base: Instant,
        elapsed_ns: AtomicU64,
    },
}

/// A timer's deadline, and a number that orders timers with equal deadlines as they were set.
type Key = (Instant, u64);

#[derive(Default)]
struct Timers {
    waiting: BTreeMap<Key, Waker>,
    last_id: u64,
}

impl Clock {
    pub fn real() -> Self {
        Self::new(Time::Real)
    }

    pub fn simulated(base: Instant) -> Self {
        let elapsed_ns = AtomicU64::new(0);
        Self::new(Time::Simulated { base, elapsed_ns })
    }

    fn new(time: Time) -> Self {
        Self {
            time,
            timers: Mutex::default(),
            earlier: Condvar::new(),
        }
    }

    pub fn now(&self) -> Instant {
        match &self.time {
            Time::Real => Instant::now(),
            Time::Simulated { base, elapsed_ns } => {
                *base + Duration::from_nanos(elapsed_ns.load(Ordering::Relaxed))
            }
        }
    }

    /// Sets a simulated clock. It never goes back; a real one cannot be set.
    pub fn set(&self, now: Instant) {
        if let Time::Simulated { base, elapsed_ns } = &self.time {
            let elapsed = now.saturating_duration_since(*base).as_nanos();
            // The clock stops after 584 years.
            let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
            elapsed_ns.fetch_max(elapsed, Ordering::Relaxed);
        }
    }

    /// Returns the deadline of the next timer.
    pub fn next_deadline(&self) -> Option<Instant> {
        let timers = self.timers.lock();
        timers
            .waiting
            .first_key_value()
            .map(|((deadline, _), _)| *deadline)
    }

    /// Wakes the programs whose timers have expired, in order. A program may use its own waker; if one panics, the others are
    /// still woken.
    pub fn fire(&self) {
        let now = self.now();
        let mut timers = self.timers.lock();
        let later = timers.waiting.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut timers.waiting, later);
        drop(timers);
        for waker in due.into_values() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                let reason = panic_text(panic);
                urtica_log::error!(about: "timers", reason, "a waker panicked when its timer was due");
            }
        }
    }

    /// Waits until the next timer is due, at most for `limit`.
    pub fn wait(&self, limit: Duration) {
        let mut timers = self.timers.lock();
        let next = timers
            .waiting
            .first_key_value()
            .map(|((deadline, _), _)| deadline.saturating_duration_since(self.now()));
        let duration = next.unwrap_or(limit).min(limit);
        // An early return does no harm: the caller reads the clock.
        let _ = self.earlier.wait_for(&mut timers, duration);
    }

    /// Ends a [`Clock::wait`].
    pub fn interrupt(&self) {
        let _timers = self.timers.lock();
        self.earlier.notify_all();
    }

    /// Sets a timer. Timers with equal deadlines fire in the order in which they were set.
    fn insert(&self, deadline: Instant, waker: Waker) -> Key {
        let mut timers = self.timers.lock();
        timers.last_id += 1;
        let key = (deadline, timers.last_id);
        timers.waiting.insert(key, waker);
        if timers
            .waiting
            .first_key_value()
            .is_some_and(|(first, _)| *first == key)
        {
            self.earlier.notify_all();
        }
        key
    }

    /// Replaces the waker of a timer, which keeps its position. Returns whether the timer is still set.
    fn update(&self, key: &Key, waker: &Waker) -> bool {
        let mut timers = self.timers.lock();
        let Some(waiting) = timers.waiting.get_mut(key) else {
            return false;
        };
        let replaced =
            (!waiting.will_wake(waker)).then(|| std::mem::replace(waiting, waker.clone()));
        // Dropping a waker may remove timers.
        drop(timers);
        drop(replaced);
        true
    }

    fn remove(&self, key: &Key) {
        let removed = self.timers.lock().waiting.remove(key);
        drop(removed);
    }
}

/// Resolves at its deadline: see [`Background::sleep`](crate::Background::sleep).
#[must_use = "it does nothing unless it is awaited"]
pub struct Sleep {
    clock: Arc<Clock>,
    deadline: Instant,
    timer: Option<Key>,
}

impl Sleep {
    pub(crate) fn new(clock: Arc<Clock>, deadline: Instant) -> Self {
        Self {
            clock,
            deadline,
            timer: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.deadline {
            return Poll::Ready(());
        }
        let is_set = self
            .timer
            .is_some_and(|timer| self.clock.update(&timer, context.waker()));
        if !is_set {
            let timer = self.clock.insert(self.deadline, context.waker().clone());
            self.timer = Some(timer);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            self.clock.remove(timer);
        }
    }
}
