//! Flap damping: a link that goes up and down too often is held down for a while.
//!
//! **Why.** Whenever a link goes up or down, the topology changes, paths are recomputed and entries are rewritten. A
//! faulty transceiver causes this many times a second, and all hosts behind the link lose packets each time. A link
//! that is held down costs nothing, and traffic stays on links that work.
//!
//! **How.** The times at which a link came up are remembered for [`DampingConfig::window`]. If there are more than
//! [`DampingConfig::max_ups`], the link is held down: for [`DampingConfig::first_hold`] at first, then twice as long
//! each time, up to [`DampingConfig::max_hold`]. A link that has been quiet for `max_hold` starts over. (RFC 2439 damps
//! routes by decaying penalties; counting needs fewer parameters.)

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The limits at which a link counts as flapping, and the times for which it is then held down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DampingConfig {
    /// Maximum number of times that a link may come up within `window` before it is held down. 5 by default.
    pub max_ups: usize,
    /// The period in which links are counted. 10 s by default.
    pub window: Duration,
    /// Time for which a link is held down at first. 1 s by default.
    pub first_hold: Duration,
    /// Maximum time for which a link is held down, and time after which the history of a quiet link is forgotten. 60 s
    /// by default.
    pub max_hold: Duration,
}

impl Default for DampingConfig {
    fn default() -> Self {
        Self {
            max_ups: 5,
            window: Duration::from_secs(10),
            first_hold: Duration::from_secs(1),
            max_hold: Duration::from_secs(60),
        }
    }
}

/// The history of one link.
#[derive(Debug, Default)]
pub(super) struct Damping {
    /// The recent times at which it came up, in order.
    ups: VecDeque<Instant>,
    /// Number of times it was held down.
    holds: u32,
    held_until: Option<Instant>,
}

impl Damping {
    /// Returns `true` if the link is held down.
    pub fn is_holding(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }

    /// Notes that the link is about to come up. Returns the time for which to hold it down instead, if any.
    pub fn note_up(&mut self, config: &DampingConfig, now: Instant) -> Option<Duration> {
        let is_recent = |up: &Instant| now.saturating_duration_since(*up) < config.window;
        self.ups.retain(is_recent);
        self.ups.push_back(now);
        if self.ups.len() <= config.max_ups {
            return None;
        }
        let hold = config.first_hold.saturating_mul(1 << self.holds.min(16));
        let hold = hold.min(config.max_hold);
        self.ups.clear();
        self.holds += 1;
        self.held_until = Some(now + hold);
        Some(hold)
    }

    /// Returns when this history may be forgotten if nothing happens until then.
    pub fn expires_at(&self, config: &DampingConfig) -> Option<Instant> {
        let latest = self.ups.back().copied().max(self.held_until)?;
        Some(latest + config.max_hold.max(config.window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn holds_grow_up_to_the_maximum() {
        let config = DampingConfig::default();
        let mut damping = Damping::default();
        let mut now = Instant::now();
        let mut holds = Vec::new();
        while holds.len() < 8 {
            now += MS;
            if let Some(hold) = damping.note_up(&config, now) {
                assert!(damping.is_holding(now));
                now += hold;
                assert!(!damping.is_holding(now));
                holds.push(hold.as_secs());
            }
        }
        assert_eq!(holds, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn rare_flaps_are_not_damped() {
        let config = DampingConfig::default();
        let mut damping = Damping::default();
        let start = Instant::now();
        for i in 0..100 {
            let now = start + config.window.mul_f64(0.21) * i;
            assert_eq!(damping.note_up(&config, now), None);
        }
    }
}
