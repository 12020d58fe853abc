//! A bounded queue between threads, with a bell.
//!
//! **What.** Any number of threads add items; one takes all of them at once. The bell, an eventfd, rings only for a receiver
//! that waits, so two busy threads make no system calls.
//!
//! **Cost.** One short lock for each item added, and one for taking all items; one load if the queue is empty. Used items
//! are returned for reuse.
//!
//! **Limits.** Each item has a weight, and the total is limited. An item that would exceed it is refused; the sender counts
//! it.

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

/// A queue of `T`s.
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    /// Whether the queue has items. Changed only with the lock.
    has_things: AtomicBool,
    capacity: usize,
    bell: OwnedFd,
}

struct State<T> {
    things: Vec<T>,
    /// Total weight of the items.
    weight: usize,
    /// Used items.
    spare: Vec<T>,
    /// Whether the next item must ring the bell.
    is_awaited: bool,
}

impl<T> Mailbox<T> {
    /// Creates an empty queue for items of a total weight of `capacity`.
    ///
    /// # Errors
    /// The system's, if it cannot create an eventfd.
    pub fn new(capacity: usize) -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(State {
                things: Vec::new(),
                weight: 0,
                spare: Vec::new(),
                is_awaited: false,
            }),
            has_things: AtomicBool::new(false),
            capacity,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Adds an item of this weight; returns a used one, if any.
    ///
    /// # Errors
    /// Returns the item if the queue is full.
    pub fn put(&self, thing: T, weight: usize) -> Result<Option<T>, T> {
        let mut state = self.lock();
        if state.weight + weight > self.capacity {
            return Err(thing);
        }
        state.weight += weight;
        state.things.push(thing);
        self.has_things.store(true, Release);
        let spare = state.spare.pop();
        let is_awaited = std::mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            // Fails only if the counter is at its limit, and so readable already.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
        Ok(spare)
    }

    /// Takes all items, in order. The previous items of `things` are returned for reuse.
    pub fn exchange(&self, things: &mut Vec<T>) {
        // An item that is added after this check is found next time, or rings the bell.
        if things.is_empty() && !self.has_things.load(Acquire) {
            return;
        }
        let mut state = self.lock();
        self.has_things.store(false, Release);
        state.is_awaited = false;
        state.weight = 0;
        state.spare.append(things);
        std::mem::swap(&mut state.things, things);
    }

    /// Returns whether the receiver may wait for the bell: the queue is empty, and the next item will ring.
    pub fn may_wait(&self) -> bool {
        let mut state = self.lock();
        state.is_awaited = state.things.is_empty();
        state.is_awaited
    }

    /// Returns the descriptor that becomes readable when a waiting receiver's bell rings.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Makes the bell unreadable again.
    pub fn silence(&self) {
        // Fails only if it is silent already.
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Arc;

    fn rings(mailbox: &Mailbox<u32>, timeout_ms: i64) -> bool {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout_ms * 1_000_000,
        };
        let mut bell = [PollFd::from_borrowed_fd(mailbox.bell(), PollFlags::IN)];
        poll(&mut bell, Some(&timeout)).unwrap() == 1
    }

    #[test]
    fn items_stay_in_order_and_are_reused() {
        let mailbox = Mailbox::new(8).unwrap();
        assert_eq!(mailbox.put(1, 1), Ok(None));
        assert_eq!(mailbox.put(2, 1), Ok(None));
        let mut things = Vec::new();
        mailbox.exchange(&mut things);
        assert_eq!(things, [1, 2]);
        mailbox.exchange(&mut things);
        assert_eq!(things, []);
        assert_eq!(mailbox.put(3, 1), Ok(Some(2)));
    }

    #[test]
    fn a_full_mailbox_refuses_items() {
        let mailbox = Mailbox::new(10).unwrap();
        assert_eq!(mailbox.put(1, 4), Ok(None));
        assert_eq!(mailbox.put(2, 7), Err(2));
        assert_eq!(mailbox.put(3, 6), Ok(None));
        mailbox.exchange(&mut Vec::new());
        assert_eq!(mailbox.put(4, 10), Ok(None));
    }

    #[test]
    fn the_bell_rings_for_a_waiting_receiver() {
        let mailbox = Mailbox::new(8).unwrap();
        mailbox.put(1, 1).unwrap();
        assert!(!rings(&mailbox, 0), "nobody waits");
        assert!(!mailbox.may_wait(), "there is something already");
        mailbox.exchange(&mut Vec::new());
        assert!(mailbox.may_wait());
        mailbox.put(2, 1).unwrap();
        assert!(rings(&mailbox, 0));
        mailbox.silence();
        assert!(!rings(&mailbox, 0));
    }

    #[test]
    fn no_items_are_lost_between_threads() {
        const COUNT: u32 = 100_000;
        let mailbox = Arc::new(Mailbox::new(64).unwrap());
        let senders = [0, COUNT].map(|first| {
            let mailbox = Arc::clone(&mailbox);
            std::thread::spawn(move || {
                for number in first..first + COUNT {
                    while mailbox.put(number, 1).is_err() {
                        std::thread::yield_now();
                    }
                }
            })
        });
        let (mut things, mut received) = (Vec::new(), Vec::new());
        while received.len() < 2 * COUNT as usize {
            if mailbox.may_wait() {
                assert!(rings(&mailbox, 900), "a bell that should ring");
                mailbox.silence();
            }
            mailbox.exchange(&mut things);
            received.append(&mut things);
        }
        for sender in senders {
            sender.join().unwrap();
        }
        let (low, high): (Vec<_>, Vec<_>) = received.into_iter().partition(|&one| one < COUNT);
        assert!(low.into_iter().eq(0..COUNT) && high.into_iter().eq(COUNT..2 * COUNT));
    }
}
