//! Signals that end the command, or its current task.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The signals SIGINT and SIGTERM received so far.
#[derive(Clone)]
pub(super) struct Signals {
    interrupt: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
}

impl Signals {
    /// Registers handlers: from now on, signals only set flags.
    pub fn register() -> io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let signals = Self {
            interrupt: Arc::default(),
            terminate: Arc::default(),
        };
        signal_hook::flag::register(SIGINT, Arc::clone(&signals.interrupt))?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&signals.terminate))?;
        Ok(signals)
    }

    /// Returns `true` if either was received.
    pub fn have_come(&self) -> bool {
        self.interrupt.load(Relaxed) || self.is_terminated()
    }

    /// Returns `true` if SIGTERM was received.
    pub fn is_terminated(&self) -> bool {
        self.terminate.load(Relaxed)
    }

    /// Clears an interrupt.
    pub fn take_interrupt(&self) -> bool {
        self.interrupt.swap(false, Relaxed)
    }
}
