//! The turns of a program that runs in simulated time.
//!
//! Such a program has its own tasks and timers. They run in `advance(now)`, which returns the time of the first timer once
//! all tasks wait. A background program calls it at that time, and when a task is woken.

use crate::program::Raised;
use pyo3::prelude::*;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use urtica::controller::Background;

/// The pause after an exception in `advance`.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The turns of one program.
pub(crate) struct Turns {
    program: Py<PyAny>,
    is_woken: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Turns {
    pub fn new(program: Py<PyAny>) -> Self {
        Self {
            program,
            is_woken: AtomicBool::new(false),
            waker: Mutex::default(),
        }
    }

    /// Requests a turn, from any thread.
    pub fn wake(&self) {
        self.is_woken.store(true, Ordering::Release);
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    }

    /// Runs the turns as a background program.
    pub fn start(self: Arc<Self>, background: &Background, raised: Arc<Raised>) {
        let clock = background.clone();
        background.spawn("the program's turns", async move {
            let started = clock.now();
            loop {
                let now = clock.now().saturating_duration_since(started);
                let next = self.advance(now).unwrap_or_else(|error| {
                    raised.end(error);
                    Some(now + AFTER_ERROR)
                });
                match next {
                    Some(next) => {
                        let mut sleep = clock.sleep_until(started + next);
                        poll_fn(|context| match self.poll_woken(context) {
                            Poll::Ready(()) => Poll::Ready(()),
                            Poll::Pending => Pin::new(&mut sleep).poll(context),
                        })
                        .await;
                    }
                    None => poll_fn(|context| self.poll_woken(context)).await,
                }
            }
        });
    }

    /// Calls `advance` with the time in nanoseconds; returns the time of the program's first timer.
    fn advance(&self, now: Duration) -> PyResult<Option<Duration>> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Python::attach(|py| {
            let next = self.program.call_method1(py, "advance", (now,))?;
            let next: Option<u64> = next.extract(py)?;
            Ok(next.map(Duration::from_nanos))
        })
    }

    fn poll_woken(&self, context: &Context<'_>) -> Poll<()> {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        *waker = Some(context.waker().clone());
        match self.is_woken.swap(false, Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
