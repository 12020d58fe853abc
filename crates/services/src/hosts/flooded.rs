//! The frames that were flooded recently.
//!
//! A switch may be behind an apparent host port: a switch without a controller, whose tables return the frame, or one whose
//! links are not discovered yet. So a frame is flooded once, even if it arrives again at any port. It neither loops nor
//! multiplies.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Time for which a frame is remembered. It may be short: hosts repeat a request after a second, and number their pings.
const WINDOW: Duration = Duration::from_millis(100);

/// The maximum number of frames remembered; the oldest are dropped.
const CAPACITY: usize = 1024;

/// The frames, by keyed hash: without the key, no host can construct a frame with the hash of another.
#[derive(Default)]
pub struct Flooded {
    hasher: RandomState,
    known: HashSet<u64>,
    /// In the order in which they were flooded, with the time.
    order: VecDeque<(u64, Instant)>,
}

impl Flooded {
    /// Returns `true` if a frame may be flooded: no equal one was flooded recently.
    pub fn is_new(&mut self, frame: &[u8], now: Instant) -> bool {
        let hash = self.hasher.hash_one(frame);
        let is_old = |at: Instant| now.saturating_duration_since(at) >= WINDOW;
        while let Some(&(_, flooded_at)) = self.order.front() {
            let needs_room = self.order.len() >= CAPACITY && !self.known.contains(&hash);
            if !is_old(flooded_at) && !needs_room {
                break;
            }
            self.forget_oldest();
        }
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back((hash, now));
        true
    }

    fn forget_oldest(&mut self) {
        if let Some((hash, _)) = self.order.pop_front() {
            self.known.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_frames_are_new_after_a_while() {
        let mut flooded = Flooded::default();
        let start = Instant::now();
        assert!(flooded.is_new(b"one", start));
        assert!(flooded.is_new(b"other", start));
        assert!(!flooded.is_new(b"one", start + WINDOW / 2));
        assert!(flooded.is_new(b"one", start + WINDOW));
    }

    #[test]
    fn remembered_frames_are_bounded() {
        let mut flooded = Flooded::default();
        let now = Instant::now();
        for number in 0..=CAPACITY {
            assert!(flooded.is_new(&number.to_be_bytes(), now));
        }
        assert_eq!(
            (flooded.order.len(), flooded.known.len()),
            (CAPACITY, CAPACITY)
        );
        assert!(flooded.is_new(&0_usize.to_be_bytes(), now));
    }
}
