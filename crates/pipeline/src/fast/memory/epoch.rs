//! Epochs, which determine when removed data can no longer be seen.
//!
//! **What.** The writer unlinks a block, so that no later reader finds it, and passes it to [`Retired::retire`].
//! [`Retired::collect`] returns it for freeing when every reader that may have found it no longer uses it. Readers never wait
//! for the writer or for each other, and the writer never waits for readers.
//!
//! **How.** Quiescent-state-based reclamation (McKenney and Slingwine's read-copy update, 1998; compared with others by
//! Hart, McKenney, Demke Brown and Walpole, Journal of Parallel and Distributed Computing 67, 2007). A number, the *epoch*,
//! increases by one with each retired block, which is stamped with the new epoch. A reader, or [`Participant`], publishes the
//! epoch that it sees at the start of each burst ([`Participant::begin`]), as it keeps nothing from the previous burst. A
//! block is out of sight if all participants have seen its epoch or a later one. A sleeping participant has called
//! [`Participant::rest`], and delays nothing.
//!
//! **Correctness.** Let a block be unlinked, the epoch then be raised to *e*, and the block be stamped with it.
//!
//! - *A participant that has seen e or more does not find the block.* It read the epoch with `Acquire`, and the writer raised
//!   it with `Release` after unlinking; so the unlinking happened before everything that the participant reads from then on.
//! - *It also no longer uses anything that it found before.* It reports that with a `Release` store after its last use, which
//!   `collect` reads with `Acquire`; so the use happened before the block is freed. Every store of a participant is such a
//!   `Release` store, since `collect` may see any of them without the earlier ones.
//! - *A resting participant does not find the block either.* Its `rest` is also a `Release` store, so it no longer uses
//!   anything that it had found. The danger is that it wakes while `collect` checks it: its own store may not be visible yet
//!   when it already reads links. Hence there is a `SeqCst` fence between that store and the first link that it reads, and
//!   one between the unlinking and the check of `collect`. One fence is the earlier. If it is the writer's, the participant
//!   reads the links without the block. If it is the participant's, `collect` sees that it is awake, and waits for it to see
//!   *e*.
//! - *A participant that joins* is in the list before it wakes. If `collect` locked the list before that, the unlinking
//!   happened before the joining, because of the lock; otherwise `collect` sees it, and the above holds.
//!
//! An awake participant needs no fence: until it has reported that it sees *e*, `collect` waits for it anyway.
//!
//! **Cost.** `begin` needs two loads, and one store if the epoch has changed: no fence, no read-modify-write, no cache line
//! that another reader writes. Waking needs a fence. `retire` is one atomic addition; `collect` checks each participant once,
//! whatever it returns. A retired block stays for one burst of each participant: a participant that neither begins nor rests
//! delays all blocks.
//!
//! **Thread-safety.** [`Epochs`] is shared, a [`Participant`] belongs to one thread, a [`Retired`] to one writer. There may be
//! several writers, each for data that it unlinks itself. `tests/epoch_model.rs` tries all orders in which two threads can see
//! each other's stores.

use super::sync::{AtomicU64, Mutex, MutexGuard, fence};
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, PoisonError};

/// The epoch of a resting participant, which is no real epoch.
const RESTING: u64 = 0;

/// The current epoch, and the participants.
#[derive(Debug)]
pub(crate) struct Epochs {
    now: Line,
    participants: Mutex<Vec<Arc<Line>>>,
}

/// A number in its own cache lines; two of them, since processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Line(AtomicU64);

impl Epochs {
    /// Creates the first epoch, without participants.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: Line(AtomicU64::new(RESTING + 1)),
            participants: Mutex::new(Vec::new()),
        })
    }

    /// Creates a participant, which rests.
    pub fn join(self: &Arc<Self>) -> Participant {
        let seen = Arc::new(Line(AtomicU64::new(RESTING)));
        self.participants().push(Arc::clone(&seen));
        Participant {
            epochs: Arc::clone(self),
            seen,
        }
    }

    /// Raises the epoch: data unlinked before is out of sight for participants that see the new epoch.
    fn advance(&self) -> u64 {
        self.now.0.fetch_add(1, Release) + 1
    }

    /// Returns the last epoch that all awake participants have seen.
    fn seen_by_all(&self) -> u64 {
        // The writer's counterpart of the fence in `Participant::wake`.
        fence(SeqCst);
        let participants = self.participants();
        let seen = participants.iter().map(|seen| seen.0.load(Acquire));
        seen.filter(|&epoch| epoch != RESTING)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Locks the list. No code that holds the lock panics halfway, so the list is consistent even if a thread died with it.
    fn participants(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.participants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader, for one thread. It rests at first; dropping it removes it from the list.
#[derive(Debug)]
pub(crate) struct Participant {
    epochs: Arc<Epochs>,
    /// The epoch that it saw last, or `RESTING`. Only the participant writes this.
    seen: Arc<Line>,
}

impl Participant {
    /// Starts a burst: from now on, until the next `begin` or `rest`, links may be followed. Data that was found must not be
    /// kept beyond that.
    #[inline]
    pub fn begin(&mut self) {
        let now = self.epochs.now.0.load(Acquire);
        let seen = self.seen.0.load(Relaxed);
        if now == seen {
            return;
        }
        if seen == RESTING {
            self.wake(now);
        } else {
            self.seen.0.store(now, Release);
        }
    }

    #[cold]
    fn wake(&mut self, now: u64) {
        // `Release` as always: `collect` may see this store and not that of `rest`.
        self.seen.0.store(now, Release);
        // No link may be read before `collect` can see that this participant is awake.
        fence(SeqCst);
    }

    /// Goes to sleep: until the next `begin` no link may be followed, no data that was found may be kept, and the writer does
    /// not wait for this participant.
    #[inline]
    pub fn rest(&mut self) {
        self.seen.0.store(RESTING, Release);
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.rest();
        let mut participants = self.epochs.participants();
        participants.retain(|seen| !Arc::ptr_eq(seen, &self.seen));
    }
}

/// Items that a writer has unlinked, but not freed yet.
///
/// Dropping it drops the items that are then out of sight, and leaks the rest: end the readers first.
#[derive(Debug)]
pub(crate) struct Retired<T> {
    epochs: Arc<Epochs>,
    /// The items, each with its stamp, which increase.
    queue: VecDeque<(u64, T)>,
}

impl<T> Retired<T> {
    /// Creates an empty queue.
    pub fn new(epochs: &Arc<Epochs>) -> Self {
        Self {
            epochs: Arc::clone(epochs),
            queue: VecDeque::new(),
        }
    }

    /// Adds an item that this thread has unlinked, so that no later reader finds it.
    pub fn retire(&mut self, item: T) {
        self.queue.push_back((self.epochs.advance(), item));
    }

    /// Passes the items that no participant can see any longer to `hand_over`, oldest first, and returns their number.
    pub fn collect(&mut self, mut hand_over: impl FnMut(T)) -> usize {
        if self.queue.is_empty() {
            return 0;
        }
        let seen = self.epochs.seen_by_all();
        let count = self.queue.partition_point(|&(stamp, _)| stamp <= seen);
        self.queue
            .drain(..count)
            .for_each(|(_, item)| hand_over(item));
        count
    }

    /// Returns the number of waiting items.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        self.collect(drop);
        for (_, item) in self.queue.drain(..) {
            mem::forget(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr};
    use std::thread;

    fn collected(retired: &mut Retired<u32>) -> Vec<u32> {
        let mut items = Vec::new();
        retired.collect(|item| items.push(item));
        items
    }

    #[test]
    fn resting_or_dropped_participants_are_not_waited_for() {
        let epochs = Epochs::new();
        let mut retired = Retired::new(&epochs);
        retired.retire(1);
        assert_eq!(collected(&mut retired), [1]);

        let mut reader = epochs.join();
        retired.retire(2);
        assert_eq!(collected(&mut retired), [2], "it has not begun");
        reader.begin();
        retired.retire(3);
        assert!(collected(&mut retired).is_empty());
        reader.rest();
        assert_eq!(collected(&mut retired), [3]);
        reader.begin();
        retired.retire(4);
        assert!(collected(&mut retired).is_empty());
        drop(reader);
        assert_eq!(collected(&mut retired), [4]);
    }

    #[test]
    fn all_participants_must_restart() {
        let epochs = Epochs::new();
        let mut retired = Retired::new(&epochs);
        let (mut one, mut other) = (epochs.join(), epochs.join());
        one.begin();
        other.begin();
        retired.retire(1);
        one.begin();
        assert!(collected(&mut retired).is_empty());
        retired.retire(2);
        other.begin();
        assert_eq!(collected(&mut retired), [1], "one may see 2 still");
        assert_eq!(retired.len(), 1);
        one.begin();
        assert_eq!(collected(&mut retired), [2]);
    }

    #[test]
    fn a_dropped_queue_frees_only_items_out_of_sight() {
        let epochs = Epochs::new();
        let item = Arc::new(());
        let mut reader = epochs.join();
        for resting in [true, false] {
            let mut retired = Retired::new(&epochs);
            retired.retire(Arc::clone(&item));
            if !resting {
                reader.begin();
                retired.retire(Arc::clone(&item));
            }
            drop(retired);
        }
        assert_eq!(Arc::strong_count(&item), 2, "the last one may be seen");
    }

    const ALIVE: u64 = 0x600d_600d_600d_600d;
    const POISON: u64 = 0xdead_dead_dead_dead;

    /// Readers follow a link to a canary, which the writer replaces, retires, and poisons once it is collected.
    #[test]
    fn no_reader_ever_sees_poison() {
        const ROUNDS: usize = 10_000;
        let epochs = Epochs::new();
        let canaries: Vec<_> = (0..16).map(|_| AtomicU64::new(ALIVE)).collect();
        let link = AtomicPtr::new(ptr::from_ref(&canaries[0]).cast_mut());
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..3 {
                let mut participant = epochs.join();
                let (link, ended) = (&link, &ended);
                scope.spawn(move || {
                    let mut round = 0_u32;
                    while !ended.load(Relaxed) {
                        participant.begin();
                        // SAFETY: it points into `canaries`, which outlives the threads.
                        let canary = unsafe { &*link.load(Acquire) };
                        for _ in 0..round % 50 {
                            assert_eq!(canary.load(Relaxed), ALIVE);
                        }
                        round += 1;
                        if round % 3 == reader {
                            participant.rest();
                        }
                    }
                });
            }
            let mut retired = Retired::new(&epochs);
            let mut free: Vec<_> = (1..canaries.len()).collect();
            let mut linked = 0;
            for _ in 0..ROUNDS {
                if let Some(next) = free.pop() {
                    canaries[next].store(ALIVE, Relaxed);
                    link.store(ptr::from_ref(&canaries[next]).cast_mut(), Release);
                    retired.retire(linked);
                    linked = next;
                } else {
                    thread::yield_now();
                }
                retired.collect(|index| {
                    canaries[index].store(POISON, Relaxed);
                    free.push(index);
                });
            }
            ended.store(true, Relaxed);
        });
    }
}
