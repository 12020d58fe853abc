//! The bytes queued for a switch, counted when they are sent.
//!
//! **What.** Messages from outside of handlers wait in a shard's mailbox first, then in the connection, until the socket accepts
//! them. A [`Backlog`] counts a switch's bytes in both. Admitted bytes are written, unless the connection closes; a sender that
//! finds it full is refused at once, and may wait for space.
//!
//! **Cost.** An atomic addition to send, a subtraction when the socket has accepted bytes. Replies of handlers are not counted:
//! they are bounded by the input from the switch, and need no atomic operation.
//!
//! **Thread-safety.** Any thread adds; only the connection's owner subtracts.

use event_listener::Event;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of bytes that may wait for a switch before more are refused.
const FULL_BYTES: usize = 4 << 20;

/// Senders that wait for space are woken at this level, so that one wake-up serves many messages.
const ROOM_BYTES: usize = FULL_BYTES / 2;

/// The bytes that wait on a switch's connection, except messages from outside of handlers
/// ([`Network::queued_bytes`](crate::Network::queued_bytes)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingBytes {
    /// Replies of handlers that the switch does not read; until it does, nothing is read from it.
    pub replies: usize,
    /// Bytes received but not handled: packet-ins that arrived before the switch stopped reading, or an incomplete message.
    pub received: usize,
}

/// The number of bytes that wait for a switch, and the senders that wait for space.
#[derive(Default)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    /// The other waiting bytes, as the connection last noted them.
    replies: AtomicUsize,
    received: AtomicUsize,
    /// Whether the connection has ended.
    is_closed: AtomicBool,
    /// Notified when there is space again, or the connection has closed.
    room: Event,
}

impl Backlog {
    /// Counts bytes that will be sent. If too many wait already, it counts none and returns `false`.
    ///
    /// Messages that are sent together are admitted together: any free space admits all of them. Otherwise messages longer than
    /// the bound would always be refused.
    pub fn add(&self, count: usize) -> bool {
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
                (bytes < FULL_BYTES).then(|| bytes.saturating_add(count))
            })
            .is_ok()
    }

    /// Returns the number of waiting bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes the other waiting bytes. Only the connection's owner calls it.
    pub fn note_waiting(&self, waiting: WaitingBytes) {
        self.replies.store(waiting.replies, Ordering::Relaxed);
        self.received.store(waiting.received, Ordering::Relaxed);
    }

    /// Returns the other waiting bytes, as the connection last noted them.
    pub fn waiting(&self) -> WaitingBytes {
        WaitingBytes {
            replies: self.replies.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
        }
    }

    /// Subtracts counted bytes that have been written.
    pub fn subtract(&self, count: usize) {
        let before = self.bytes.fetch_sub(count, Ordering::Relaxed);
        if before > ROOM_BYTES && before - count <= ROOM_BYTES {
            self.room.notify(usize::MAX);
        }
    }

    /// Notes that the connection has closed, which ends all waits.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.room.notify(usize::MAX);
    }

    /// Waits until there is space. Returns `false` if the connection has closed.
    pub async fn ready(&self) -> bool {
        // `listen` and `notify` are fences: a write before one is seen after the other.
        while !self.is_closed() && !self.has_room() {
            let room = self.room.listen();
            if !self.is_closed() && !self.has_room() {
                room.await;
            }
        }
        !self.is_closed()
    }

    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < FULL_BYTES
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll(ready: &mut std::pin::Pin<&mut impl Future<Output = bool>>) -> Poll<bool> {
        ready.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn batches_are_received_whole_while_any_space_is_left() {
        let backlog = Backlog::default();
        assert!(backlog.add(FULL_BYTES - 1));
        assert!(backlog.add(3 * FULL_BYTES));
        assert!(!backlog.add(1));
        backlog.subtract(3 * FULL_BYTES);
        assert!(backlog.add(1));
        assert!(!backlog.add(1));
    }

    #[test]
    fn senders_wake_when_half_of_the_space_is_free() {
        let backlog = Backlog::default();
        let mut early = pin!(backlog.ready());
        assert_eq!(poll(&mut early), Poll::Ready(true));
        assert!(backlog.add(FULL_BYTES));
        let mut ready = pin!(backlog.ready());
        assert_eq!(poll(&mut ready), Poll::Pending);
        backlog.subtract(FULL_BYTES / 2 - 1);
        assert_eq!(poll(&mut ready), Poll::Pending);
        backlog.subtract(1);
        assert_eq!(poll(&mut ready), Poll::Ready(true));
    }

    #[test]
    fn closed_connections_wake_all_waiting_senders() {
        let backlog = Backlog::default();
        assert!(backlog.add(FULL_BYTES));
        let mut ready = pin!(backlog.ready());
        assert_eq!(poll(&mut ready), Poll::Pending);
        backlog.close();
        assert_eq!(poll(&mut ready), Poll::Ready(false));
        let mut late = pin!(backlog.ready());
        assert_eq!(poll(&mut late), Poll::Ready(false));
    }
}
