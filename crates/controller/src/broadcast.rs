//! Events for several subscribers, none of which can block the sender.
//!
//! **What.** A [`Broadcast`] keeps the latest events; each [`Events`] reads them at its own pace. A subscriber that is more
//! than [`CAPACITY`] events behind loses the oldest, and is notified of their number: it then reads the whole state and
//! continues from there.
//!
//! **Cost.** To send: one lock, and a wake-up for each subscriber that waits. To receive: one lock and one copy.
//!
//! **Thread-safety.** Everything may be used from any thread.

use async_broadcast::{InactiveReceiver, Receiver, RecvError, Sender, TryRecvError};
use std::collections::VecDeque;
use std::fmt;

/// The number of events kept for slow subscribers.
const CAPACITY: usize = 4096;

/// Sends events to all subscribers: a service provides its events to its users as [`Events`].
///
/// The last 4,096 events are kept for slow subscribers.
///
/// ```
/// use urtica_controller::Broadcast;
///
/// #[derive(Clone, Debug, PartialEq)]
/// enum LinkEvent { Up(u32), Down(u32), Missed(u64) }
///
/// let links = Broadcast::new(LinkEvent::Missed);
/// let mut events = links.subscribe();
/// links.send(LinkEvent::Up(7));
/// assert_eq!(events.try_next(), Some(LinkEvent::Up(7)));
/// assert_eq!(events.try_next(), None);
/// ```
pub struct Broadcast<T> {
    sender: Sender<T>,
    /// Keeps the channel open while there are no subscribers.
    _nobody: InactiveReceiver<T>,
    missed: fn(u64) -> T,
}

/// A subscription to events, from its creation on. Dropping it ends it.
///
/// A subscriber that is more than 4,096 events behind loses the oldest; the next event that it receives contains their
/// number.
pub struct Events<T> {
    /// The state before the subscription, as events.
    before: VecDeque<T>,
    receiver: Receiver<T>,
    missed: fn(u64) -> T,
}

impl<T: Clone> Broadcast<T> {
    /// Creates a broadcast without events. `missed` creates the event that notifies a subscriber of lost events.
    pub fn new(missed: fn(u64) -> T) -> Self {
        let (mut sender, receiver) = async_broadcast::broadcast(CAPACITY);
        sender.set_overflow(true);
        Self {
            sender,
            _nobody: receiver.deactivate(),
            missed,
        }
    }

    /// Subscribes to events sent from now on.
    pub fn subscribe(&self) -> Events<T> {
        self.subscribe_after(VecDeque::new())
    }

    /// Subscribes to events sent from now on; the subscriber first receives `before`, which describes the current state.
    pub fn subscribe_after(&self, before: VecDeque<T>) -> Events<T> {
        Events {
            before,
            receiver: self.sender.new_receiver(),
            missed: self.missed,
        }
    }

    /// Sends an event to all subscribers. Never waits.
    pub fn send(&self, event: T) {
        // Fails if there are no subscribers.
        let _ = self.sender.try_broadcast(event);
    }
}

impl<T: Clone> Events<T> {
    /// Waits for the next event; returns `None` once the sender is dropped.
    pub async fn next(&mut self) -> Option<T> {
        if let Some(event) = self.before.pop_front() {
            return Some(event);
        }
        match self.receiver.recv_direct().await {
            Ok(event) => Some(event),
            Err(RecvError::Overflowed(count)) => Some((self.missed)(count)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the next event, if one is available.
    pub fn try_next(&mut self) -> Option<T> {
        if let Some(event) = self.before.pop_front() {
            return Some(event);
        }
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Overflowed(count)) => Some((self.missed)(count)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

impl<T> fmt::Debug for Broadcast<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Broadcast").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Events<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Events").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcast() -> Broadcast<Result<usize, u64>> {
        Broadcast::new(Err)
    }

    fn read_all(mut events: Events<Result<usize, u64>>) -> Vec<Result<usize, u64>> {
        std::iter::from_fn(|| events.try_next()).collect()
    }

    #[test]
    fn subscribers_receive_later_events() {
        let broadcast = broadcast();
        let early = broadcast.subscribe();
        broadcast.send(Ok(1));
        let late = broadcast.subscribe();
        broadcast.send(Ok(2));
        assert_eq!(read_all(early), [Ok(1), Ok(2)]);
        assert_eq!(read_all(late), [Ok(2)]);
    }

    #[test]
    fn earlier_state_is_received_first() {
        let broadcast = broadcast();
        let events = broadcast.subscribe_after([Ok(1), Ok(2)].into());
        broadcast.send(Ok(3));
        assert_eq!(read_all(events), [Ok(1), Ok(2), Ok(3)]);
    }

    #[test]
    fn slow_subscribers_are_notified_of_lost_events() {
        let broadcast = broadcast();
        let mut events = broadcast.subscribe();
        (0..CAPACITY + 7).for_each(|event| broadcast.send(Ok(event)));
        assert_eq!(events.try_next(), Some(Err(7)));
        assert_eq!(events.try_next(), Some(Ok(7)));
    }
}
