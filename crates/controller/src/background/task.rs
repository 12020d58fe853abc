//! One background program, as whatever runs it sees it.

use crate::BackgroundCounters;
use crate::panics::panic_text;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a program may be at work without waiting for anything before the log tells of it.
pub const STALL: Duration = Duration::from_secs(1);

/// What a spawned program is, once its type does not matter any more.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Lets a program work until it waits; a panic becomes what it said.
pub(super) fn poll_contained(task: &mut Task, context: &mut Context) -> Result<Poll<()>, String> {
    catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))).map_err(panic_text)
}

/// Drops a program, which may hold anything, and so may panic even now.
pub(super) fn drop_contained(name: &str, task: Task, counters: &BackgroundCounters) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(task))) {
        counters.tell_of_panic(name, &panic_text(panic));
    }
}
