//! Events for several readers, none of whom can hold up the one who tells them.
//!
//! **What.** An [`Announcer`] keeps the latest events; each [`Events`] reads them at its own pace. A reader that is more
//! than [`CAPACITY`] events behind loses the oldest, and is told how many: it then looks at the whole state and goes on
//! from there.
//!
//! **Cost.** To announce: one lock, and a wake-up for each reader that waits. To read: one lock and one copy.
//!
//! **Thread-safety.** Everything may be used from any thread.

use async_broadcast::{InactiveReceiver, Receiver, RecvError, Sender, TryRecvError};

/// How many events are kept for readers that are behind.
const CAPACITY: usize = 4096;

/// Tells events to all who read.
pub(crate) struct Announcer<T> {
    sender: Sender<T>,
    /// Keeps the sender open while nobody reads.
    _nobody: InactiveReceiver<T>,
    missed: fn(u64) -> T,
}

/// What a service tells, from the moment on at which this was asked for.
pub struct Events<T> {
    receiver: Receiver<T>,
    missed: fn(u64) -> T,
}

impl<T: Clone> Announcer<T> {
    /// Nothing has been announced yet. `missed` makes the event that tells a reader how many it has lost.
    pub fn new(missed: fn(u64) -> T) -> Self {
        let (mut sender, receiver) = async_broadcast::broadcast(CAPACITY);
        sender.set_overflow(true);
        Self {
            sender,
            _nobody: receiver.deactivate(),
            missed,
        }
    }

    /// A reader of what is announced from now on.
    pub fn events(&self) -> Events<T> {
        Events {
            receiver: self.sender.new_receiver(),
            missed: self.missed,
        }
    }

    /// Tells all readers.
    pub fn announce(&self, event: T) {
        // Fails where nobody reads.
        let _ = self.sender.try_broadcast(event);
    }
}

impl<T: Clone> Events<T> {
    /// Waits for the next event. `None` once the service is gone.
    pub async fn next(&mut self) -> Option<T> {
        match self.receiver.recv_direct().await {
            Ok(event) => Some(event),
            Err(RecvError::Overflowed(count)) => Some((self.missed)(count)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<T> {
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Overflowed(count)) => Some((self.missed)(count)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcer() -> Announcer<Result<usize, u64>> {
        Announcer::new(Err)
    }

    #[test]
    fn each_reader_gets_what_comes_after_it() {
        let announcer = announcer();
        let early = announcer.events();
        announcer.announce(Ok(1));
        let late = announcer.events();
        announcer.announce(Ok(2));
        let read = |mut events: Events<_>| std::iter::from_fn(move || events.try_next());
        assert!(read(early).eq([Ok(1), Ok(2)]));
        assert!(read(late).eq([Ok(2)]));
    }

    #[test]
    fn a_slow_reader_loses_the_oldest_and_learns_how_many() {
        let announcer = announcer();
        let mut events = announcer.events();
        (0..CAPACITY + 7).for_each(|event| announcer.announce(Ok(event)));
        assert_eq!(events.try_next(), Some(Err(7)));
        assert_eq!(events.try_next(), Some(Ok(7)));
    }
}
