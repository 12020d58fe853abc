//! Timers: at most one deadline per key. No clock; time is an argument.
//!
//! **Why one per key.** A timer that is set again and again, for instance by a port that goes up and down as fast as its switch
//! can report it, needs no more space than a single one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Keys by deadline.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    by_time: BTreeSet<(Instant, K)>,
    by_key: BTreeMap<K, Instant>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self {
            by_time: BTreeSet::new(),
            by_key: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Sets the key's deadline, replacing an earlier one.
    pub fn set(&mut self, key: K, due: Instant) {
        if let Some(before) = self.by_key.insert(key, due) {
            self.by_time.remove(&(before, key));
        }
        self.by_time.insert((due, key));
    }

    /// Removes the key's deadline.
    pub fn cancel(&mut self, key: K) {
        if let Some(due) = self.by_key.remove(&key) {
            self.by_time.remove(&(due, key));
        }
    }

    /// Returns and removes the first key that is due, in the order of deadlines, then of keys.
    pub fn pop_due(&mut self, now: Instant) -> Option<K> {
        let (due, key) = *self.by_time.first()?;
        if due > now {
            return None;
        }
        self.cancel(key);
        Some(key)
    }

    /// Returns the next deadline.
    pub fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(due, _)| *due)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_time.len()
    }

    #[cfg(test)]
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.by_key.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn keys_are_due_in_order() {
        let start = Instant::now();
        let mut timers = Timers::default();
        timers.set('c', start + SECOND);
        timers.set('b', start);
        timers.set('a', start + SECOND);
        assert_eq!(timers.next(), Some(start));
        assert_eq!(timers.pop_due(start), Some('b'));
        assert_eq!(timers.pop_due(start), None);
        assert_eq!(timers.pop_due(start + SECOND), Some('a'));
        assert_eq!(timers.pop_due(start + SECOND), Some('c'));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn timers_set_again_are_due_once() {
        let start = Instant::now();
        let mut timers = Timers::default();
        for count in (0..1_000).rev() {
            timers.set('a', start + SECOND * count);
        }
        assert_eq!((timers.len(), timers.by_key.len()), (1, 1));
        timers.set('a', start + SECOND);
        assert_eq!(timers.pop_due(start), None);
        assert_eq!(timers.pop_due(start + SECOND), Some('a'));
        timers.set('a', start);
        timers.cancel('a');
        assert_eq!((timers.next(), timers.by_key.len()), (None, 0));
    }
}
