//! A one-way queue with delays: items come out later, in order.
//!
//! Links and control channels consist of these. Only the first item of a pipe is scheduled as an event.

use std::collections::VecDeque;

/// Items in flight, in order.
pub(crate) struct Pipe<T> {
    under_way: VecDeque<(u64, T)>,
    /// The time at which the last item comes out; later items do not overtake it.
    last_ns: u64,
    /// Whether this pipe is scheduled.
    is_on_agenda: bool,
}

impl<T> Pipe<T> {
    /// Creates an empty pipe.
    pub fn new() -> Self {
        Self {
            under_way: VecDeque::new(),
            last_ns: 0,
            is_on_agenda: false,
        }
    }

    /// Adds an item that comes out at this time, or after all earlier ones. Returns when to schedule the pipe, if it is not
    /// scheduled.
    #[must_use]
    pub fn put(&mut self, at_ns: u64, thing: T) -> Option<u64> {
        self.last_ns = self.last_ns.max(at_ns);
        self.under_way.push_back((self.last_ns, thing));
        self.next_on_agenda()
    }

    /// Notes that the pipe's event was due: call [`Pipe::take_due`] until it returns `None`, then [`Pipe::next_on_agenda`].
    pub fn leave_agenda(&mut self) {
        self.is_on_agenda = false;
    }

    /// Removes and returns the next item that has come out.
    #[inline]
    pub fn take_due(&mut self, now_ns: u64) -> Option<T> {
        self.under_way
            .front()
            .filter(|(at_ns, _)| *at_ns <= now_ns)?;
        self.under_way.pop_front().map(|(_, thing)| thing)
    }

    /// Returns when to schedule the pipe, if it is not scheduled and not empty.
    #[must_use]
    pub fn next_on_agenda(&mut self) -> Option<u64> {
        if self.is_on_agenda {
            return None;
        }
        let (at_ns, _) = self.under_way.front()?;
        self.is_on_agenda = true;
        Some(*at_ns)
    }

    /// Returns the number of items in flight.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Removes and returns all items in flight.
    pub fn clear(&mut self) -> impl Iterator<Item = T> {
        self.under_way.drain(..).map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_delivered_in_order_at_their_time() {
        let mut pipe = Pipe::new();
        assert_eq!(pipe.put(10, 'a'), Some(10));
        assert_eq!(pipe.put(5, 'b'), None, "it is on the agenda already");
        pipe.leave_agenda();
        assert_eq!(pipe.take_due(9), None);
        assert_eq!(pipe.take_due(10), Some('a'));
        assert_eq!(pipe.take_due(10), Some('b'), "nothing overtakes");
        assert_eq!(pipe.next_on_agenda(), None);
    }

    #[test]
    fn a_cleared_pipe_stays_on_the_agenda_until_its_time() {
        let mut pipe = Pipe::new();
        assert_eq!(pipe.put(10, 'a'), Some(10));
        assert_eq!(pipe.clear().collect::<Vec<_>>(), ['a']);
        assert_eq!(pipe.put(20, 'b'), None);
        pipe.leave_agenda();
        assert_eq!(pipe.take_due(10), None);
        assert_eq!(pipe.next_on_agenda(), Some(20));
    }
}
