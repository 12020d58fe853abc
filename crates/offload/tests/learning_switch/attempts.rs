//! Attempts that succeed once the kernel owns a connection.

use std::time::{Duration, Instant};

/// Maximum time of all attempts on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time in which the controller's thread can hand the connection to the kernel. A scheduler that always prefers the
/// test's thread would let it send its next message before that each time.
const PAUSE: Duration = Duration::from_millis(1);

/// A limited time for attempts.
pub struct Attempts {
    started: Instant,
}

impl Attempts {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// Pauses before the next attempt.
    ///
    /// # Panics
    /// With `expected`, if the earlier ones took too long.
    pub fn next(&self, expected: &str) {
        assert!(self.started.elapsed() < PATIENCE, "{expected}");
        std::thread::sleep(PAUSE);
    }
}
