//! Caught panics: their messages, and threads that end by one.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a thread; a panic becomes an error.
pub(crate) fn contain_thread(run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic_text(panic);
        Err(io::Error::other(format!("it panicked: {text}")))
    })
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // The payload panics when it is dropped, as the payload of that panic may.
        std::mem::forget(another);
    }
    text.unwrap_or_else(|| "no message".to_owned())
}
