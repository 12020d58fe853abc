//! One background program, as whatever runs it sees it.

use crate::BackgroundCounters;
use crate::panics::panic_text;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a background program may run without waiting for anything before that is logged and counted as a stall: 1 s.
pub const STALL: Duration = Duration::from_secs(1);

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
