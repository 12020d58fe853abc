//! Attempts that succeed once the kernel owns a connection.

use std::time::{Duration, Instant};

/// Maximum duration of all attempts on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pause in which the controller's thread can hand the connection to the kernel. Without it, a scheduler that always prefers
/// the test's thread would let it send its next message first each time.
const PAUSE: Duration = Duration::from_millis(1);

/// A limit on the duration of attempts.
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
    /// With the message `expected`, if the earlier attempts took too long.
    pub fn next(&self, expected: &str) {
        assert!(self.started.elapsed() < PATIENCE, "{expected}");
        std::thread::sleep(PAUSE);
    }
}
