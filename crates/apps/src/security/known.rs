//! Events that are remembered while they keep happening, in bounded memory.

use std::collections::BTreeMap;

/// The number of turns for which an event is remembered, including that in which it happened.
const TURNS: u32 = 4;

/// Events with their values. An event is forgotten at the fourth turn after it happened last.
pub(super) struct Known<K, V = ()> {
    /// The value of each event, and the turn in which it happened last.
    events: BTreeMap<K, (V, u32)>,
    turn: u32,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self {
            events: BTreeMap::new(),
            turn: 0,
        }
    }
}

impl<K: Ord, V: Copy> Known<K, V> {
    /// Adds an event, unless the limit is already reached. An event that happens again keeps its value. Returns `true` if it is
    /// remembered.
    pub fn note(&mut self, event: K, value: V, limit: usize) -> bool {
        if let Some((_, last)) = self.events.get_mut(&event) {
            *last = self.turn;
            return true;
        }
        let has_space = self.events.len() < limit;
        if has_space {
            self.events.insert(event, (value, self.turn));
        }
        has_space
    }

    pub fn get(&self, event: &K) -> Option<V> {
        self.events.get(event).map(|(value, _)| *value)
    }

    pub fn contains(&self, event: &K) -> bool {
        self.events.contains_key(event)
    }

    /// Returns `true` if there is an event from `first` to `last`.
    pub fn has_between(&self, first: &K, last: &K) -> bool {
        self.events.range(first..=last).next().is_some()
    }

    pub fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.events.retain(|event, _| is_kept(event));
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Starts a new turn, and forgets the events that did not happen in the last four.
    pub fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        self.events
            .retain(|_, (_, last)| turn.wrapping_sub(*last) < TURNS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_last_for_four_turns_after_they_happen() {
        let mut known = Known::default();
        assert!(known.note("often", 1, 2));
        assert!(known.note("once", 1, 2));
        for _ in 0..TURNS {
            assert!(known.contains(&"once"));
            known.turn();
            assert!(known.note("often", 2, 2));
        }
        assert_eq!((known.get(&"often"), known.get(&"once")), (Some(1), None));
        for _ in 0..TURNS {
            assert!(known.contains(&"often"));
            known.turn();
        }
        assert_eq!(known.len(), 0);
    }

    #[test]
    fn limit_keeps_known_events() {
        let mut known = Known::default();
        assert!(known.note("first", (), 1));
        assert!(!known.note("second", (), 1));
        assert!(known.note("first", (), 0));
        assert_eq!(known.len(), 1);
    }
}
