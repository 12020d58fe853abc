//! Delays before reconnecting to a controller.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(8);

/// Delays of 1, 2, 4, 8, 8, … seconds, each longer or shorter by up to a fifth, so that a thousand switches do not all
/// reconnect at the same time to a controller that was restarted.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns the delay after another failure.
    pub fn next_delay(&mut self) -> Duration {
        self.delay_with(random())
    }

    /// Resets the delay to the shortest, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    fn delay_with(&mut self, random: u64) -> Duration {
        let doubled = SHORTEST * (1 << self.failures.min(3));
        self.failures = self.failures.saturating_add(1);
        let fraction = random as f64 / u64::MAX as f64;
        doubled.min(LONGEST).mul_f64(0.8 + 0.4 * fraction)
    }
}

/// Returns a number that differs between calls and between processes.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: &mut Backoff, random: u64) -> f64 {
        backoff.delay_with(random).as_secs_f64()
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let delays: Vec<_> = (0..6)
            .map(|_| seconds(&mut backoff, u64::MAX / 2))
            .collect();
        for (delay, expected) in delays.iter().zip([1.0, 2.0, 4.0, 8.0, 8.0, 8.0]) {
            assert!((delay - expected).abs() < 1e-6, "{delays:?}");
        }
        backoff.reset();
        assert!(seconds(&mut backoff, 0) < 1.0);
    }

    #[test]
    fn delays_differ_between_switches() {
        assert!((seconds(&mut Backoff::default(), 0) - 0.8).abs() < 1e-6);
        assert!((seconds(&mut Backoff::default(), u64::MAX) - 1.2).abs() < 1e-6);
        assert_ne!(random(), random());
    }
}
