//! Waiting for descriptors.

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// An event, with the key of its descriptor.
pub use rustix::event::epoll::Event;

/// The events to watch a descriptor for, or that have occurred.
pub use rustix::event::epoll::EventFlags;

/// An epoll instance: a set of descriptors, and the events that each is watched for.
///
/// Each descriptor has a key, which its events carry. The poller does not own the descriptors; the system removes a descriptor
/// when it is closed.
///
/// A poller is itself a descriptor, which is readable while an event waits, so another poller can watch it.
#[derive(Debug)]
pub struct Poller(OwnedFd);

impl Poller {
    /// Creates a poller without descriptors.
    ///
    /// # Errors
    /// If the system cannot create an epoll instance, for instance because no file descriptors are left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Starts to watch a descriptor.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if it is watched already; other errors of the system.
    pub fn add(&self, descriptor: impl AsFd, key: u64, interest: EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(&self.0, descriptor, data, interest)?)
    }

    /// Changes the events that a descriptor is watched for.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it is not watched; other errors of the system.
    pub fn modify(&self, descriptor: impl AsFd, key: u64, interest: EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::modify(&self.0, descriptor, data, interest)?)
    }

    /// Stops watching a descriptor, if it is watched.
    pub fn delete(&self, descriptor: impl AsFd) {
        // Fails only for descriptors that are not watched, as intended.
        let _ = epoll::delete(&self.0, descriptor);
    }

    /// Waits until events occur, but no longer than the time-out, and replaces `events` by as many of them as fit into its
    /// capacity; the next call returns the others. A signal ends the wait without events.
    ///
    /// # Errors
    /// The system's errors.
    ///
    /// # Panics
    /// If `events` has no capacity.
    pub fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        assert!(events.capacity() > 0, "no capacity for events");
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        events.clear();
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.0, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Returns the keys of the waiting events.
    fn keys(poller: &Poller, capacity: usize) -> Vec<u64> {
        let mut events = Vec::with_capacity(capacity);
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        events.iter().map(|event| event.data.u64()).collect()
    }

    #[test]
    fn reports_ready_descriptors_by_key() {
        let poller = Poller::new().unwrap();
        let (first, second) = UnixStream::pair().unwrap();
        poller.add(&first, 7, EventFlags::IN).unwrap();
        assert_eq!(keys(&poller, 4), []);
        rustix::io::write(&second, b"x").unwrap();
        assert_eq!(keys(&poller, 4), [7]);
        poller.modify(&first, 8, EventFlags::IN).unwrap();
        assert_eq!(keys(&poller, 4), [8]);
        poller.delete(&first);
        assert_eq!(keys(&poller, 4), []);
        // Deleting a descriptor that is not watched has no effect.
        poller.delete(&first);
    }

    #[test]
    fn each_event_is_reported_although_few_fit() {
        let poller = Poller::new().unwrap();
        let pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().unwrap()).collect();
        for (key, (stream, _)) in pairs.iter().enumerate() {
            poller
                .add(stream, key as u64, EventFlags::OUT | EventFlags::ET)
                .unwrap();
        }
        let mut seen: Vec<_> = (0..3).flat_map(|_| keys(&poller, 2)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn watching_twice_and_changing_the_unwatched_are_errors() {
        let poller = Poller::new().unwrap();
        let (stream, _peer) = UnixStream::pair().unwrap();
        let error = poller.modify(&stream, 1, EventFlags::IN).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        poller.add(&stream, 1, EventFlags::IN).unwrap();
        let error = poller.add(&stream, 1, EventFlags::IN).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_poller_is_readable_while_an_event_waits() {
        let (inner, outer) = (Poller::new().unwrap(), Poller::new().unwrap());
        let (stream, _peer) = UnixStream::pair().unwrap();
        outer.add(&inner, 1, EventFlags::IN).unwrap();
        assert_eq!(keys(&outer, 4), []);
        inner.add(&stream, 2, EventFlags::OUT).unwrap();
        assert_eq!(keys(&outer, 4), [1]);
    }
}
