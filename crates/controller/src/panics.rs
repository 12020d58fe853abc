//! Panics that are contained: what they said, and threads that end by one.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what a thread is there for; a panic becomes an error.
pub(crate) fn contain_thread(run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic_text(panic);
        Err(io::Error::other(format!("it panicked: {text}")))
    })
}

/// What a panic said.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // What was thrown throws when it is dropped, and so may what that has thrown.
        std::mem::forget(another);
    }
    text.unwrap_or_else(|| "no message".to_owned())
}
