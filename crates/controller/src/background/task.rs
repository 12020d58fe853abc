//! One background program, as its executor sees it.

use crate::BackgroundCounters;
use crate::panics::panic_text;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// The time that a background program may run without waiting before it is logged and counted as a stall: 1 s.
pub const STALL: Duration = Duration::from_secs(1);

/// A control program's run, from start to end, which all its tasks share.
#[derive(Debug, Default)]
pub(crate) struct Run {
    is_over: AtomicBool,
    /// Whether its tasks wait to be released.
    is_held: AtomicBool,
}

impl Run {
    /// Creates a run whose programs wait until it is [released](Run::release).
    pub fn held() -> Self {
        Self {
            is_held: AtomicBool::new(true),
            ..Self::default()
        }
    }

    pub fn release(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// Ends the run: none of its programs is polled again.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// A spawned program, type-erased.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Polls a program; a panic becomes an error with its message.
pub(super) fn poll_contained(task: &mut Task, context: &mut Context) -> Result<Poll<()>, String> {
    catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))).map_err(panic_text)
}

/// Drops a program, which may panic in the destructor of anything that it holds.
pub(super) fn drop_contained(name: &str, task: Task, counters: &BackgroundCounters) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(task))) {
        counters.note_panic(name, &panic_text(panic));
    }
}
