//! The event queue.
//!
//! **What.** A heap of events, ordered by time and, at equal times, by insertion. Events are never removed early: the code that
//! scheduled an event checks, when it is due, whether it is stale.
//!
//! **Why a heap.** It holds one event for each pipe, switch and host with pending work, not one per frame: a few hundred of 24
//! bytes each, which fit into the L1 cache.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events of one kind, each at a time in nanoseconds.
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Item<T>>,
    put_down: u64,
}

struct Item<T> {
    at_ns: u64,
    number: u64,
    thing: T,
}

impl<T> Agenda<T> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            put_down: 0,
        }
    }

    /// Schedules an event.
    pub fn put(&mut self, at_ns: u64, thing: T) {
        let number = self.put_down;
        self.put_down += 1;
        self.heap.push(Item {
            at_ns,
            number,
            thing,
        });
    }

    /// Returns the time of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|item| item.at_ns)
    }

    /// Removes and returns the next event that is due by this time.
    pub fn take_due(&mut self, until_ns: u64) -> Option<(u64, T)> {
        self.next_ns().filter(|&at_ns| at_ns <= until_ns)?;
        self.heap.pop().map(|item| (item.at_ns, item.thing))
    }
}

impl<T> Item<T> {
    fn key(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

/// The heap returns the greatest item first, so the earliest item is the greatest.
impl<T> Ord for Item<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for Item<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Item<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Item<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The reference is a stable sort.
        #[test]
        fn items_are_ordered_by_time_and_then_insertion(times in prop::collection::vec(0..20_u64, 0..60)) {
            let mut agenda = Agenda::new();
            let mut expected: Vec<_> = times.iter().copied().zip(0..).collect();
            expected.iter().for_each(|&(at_ns, thing): &(u64, usize)| agenda.put(at_ns, thing));
            expected.sort_by_key(|&(at_ns, _)| at_ns);
            let taken: Vec<_> = std::iter::from_fn(|| agenda.take_due(u64::MAX)).collect();
            prop_assert_eq!(taken, expected);
        }
    }

    #[test]
    fn items_are_not_returned_early() {
        let mut agenda = Agenda::new();
        agenda.put(5, 'x');
        assert_eq!(agenda.take_due(4), None);
        assert_eq!(agenda.next_ns(), Some(5));
        assert_eq!(agenda.take_due(5), Some((5, 'x')));
        assert_eq!(agenda.next_ns(), None);
    }
}
