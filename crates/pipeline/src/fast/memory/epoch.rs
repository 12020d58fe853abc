//! Finding out when removed data can no longer be seen.
//!
//! **What.** The writer unlinks a block, so that no later reader finds it, and passes it to [`Retired::retire`].
//! [`Retired::collect`] returns it, to be freed, when every reader that may have found it is done. Readers never wait, for
//! the writer or for each other, and the writer never waits for readers.
//!
//! **How.** Quiescent-state-based reclamation (McKenney and Slingwine's read-copy update, 1998; compared with others by
//! Hart, McKenney, Demke Brown and Walpole, Journal of Parallel and Distributed Computing 67, 2007). A number, the *epoch*,
//! grows by one with each block that is retired, which is stamped with the new one. A reader, or [`Participant`], publishes
//! the epoch that it sees at the start of each burst ([`Participant::begin`]), as it keeps nothing from the previous one.
//! Blocks stamped with an epoch that all participants have seen are out of sight. A sleeping participant has called
//! [`Participant::rest`], and delays nothing.
//!
//! **Correctness.** Let a block be unlinked, the epoch then raised to *e*, and the block stamped with it.
//!
//! - *A participant that has seen e or more does not find the block.* It read the epoch with `Acquire`, and the writer
//!   raised it with `Release` after the unlinking; so the unlinking happened before all that the participant reads from
//!   then on.
//! - *It is also done with everything that it found before.* It reports that with a `Release` store after its last use,
//!   which `collect` reads with `Acquire`; so the use happened before the block is freed. Every store of a participant
//!   is such a `Release` store, as `collect` may see any of them without the earlier ones.
//! - *A participant that rests does not find the block either.* Its `rest` is a `Release` store, too, so it is done
//!   with everything that it had found. The danger is that it wakes while `collect` checks it: its own store could
//!   still be on the way while it reads links already. Hence a `SeqCst` fence between that store and the first link
//!   that it reads, and one between the unlinking and the check of `collect`. One fence is the earlier. If the
//!   writer's, the participant reads the links as they are without the block. If the participant's, `collect` sees that
//!   it is awake, and waits for it to see *e*.
//! - *A participant that joins* is in the list before it wakes. If `collect` locked the list before that, the unlinking
//!   happened before the joining, by the lock; if after, `collect` sees it, and the above holds.
//!
//! An awake participant needs no fence: until it has reported that it sees *e*, `collect` waits for it anyway.
//!
//! **Cost.** `begin` is two loads, and one store if the epoch has changed: no fence, no read-modify-write, no line that
//! another reader writes. Waking needs a fence. `retire` is one atomic addition; `collect` checks each participant
//! once, whatever it returns. A retired block stays for a burst of each participant: a participant that neither begins
//! nor rests delays all of them.
//!
//! **Thread-safety.** [`Epochs`] is shared, a [`Participant`] belongs to one thread, a [`Retired`] to one writer; there
//! may be several, each for what it unlinks itself. `tests/epoch_model.rs` tries all orders in which two threads can see
//! each other's stores.

use super::sync::{AtomicU64, Mutex, MutexGuard, fence};
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, PoisonError};

/// The epoch of a resting participant: no real epoch has this number.
const RESTING: u64 = 0;

/// The epoch, and its participants.
#[derive(Debug)]
pub(crate) struct Epochs {
    now: Line,
    participants: Mutex<Vec<Arc<Line>>>,
}

/// A number with its cache lines to itself; two of them, as processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Line(AtomicU64);

impl Epochs {
    /// The first epoch, without participants.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: Line(AtomicU64::new(RESTING + 1)),
            participants: Mutex::new(Vec::new()),
        })
    }

    /// A new participant, which rests.
    pub fn join(self: &Arc<Self>) -> Participant {
        let seen = Arc::new(Line(AtomicU64::new(RESTING)));
        self.participants().push(Arc::clone(&seen));
        Participant {
            epochs: Arc::clone(self),
            seen,
        }
    }

    /// Raises the epoch: data unlinked before is out of sight for participants that see the new one.
    fn advance(&self) -> u64 {
        self.now.0.fetch_add(1, Release) + 1
    }

    /// Returns the last epoch that all participants have seen which do not rest.
    fn seen_by_all(&self) -> u64 {
        // The writer's side of the pair in `Participant::wake`.
        fence(SeqCst);
        let participants = self.participants();
        let seen = participants.iter().map(|seen| seen.0.load(Acquire));
        seen.filter(|&epoch| epoch != RESTING)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Locks the list. Nothing in here panics halfway, so it is consistent even if a thread died with the lock.
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
    /// The epoch it last saw, or `RESTING`. Written here only.
    seen: Arc<Line>,
}

impl Participant {
    /// Starts a burst: from now on links may be followed, until the next `begin` or `rest`, over which nothing found is
    /// kept.
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
        // `Release` as ever: `collect` may see this store and not that of `rest`.
        self.seen.0.store(now, Release);
        // No link is read before `collect` can see that we are awake.
        fence(SeqCst);
    }

    /// Goes to sleep: until the next `begin` no link is followed, nothing found is kept, and the writer does not wait
    /// for this participant.
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

/// Items that a writer has unlinked, and not yet freed.
///
/// Dropping it drops the items that are out of sight by then, and leaks the rest: end the readers before.
#[derive(Debug)]
pub(crate) struct Retired<T> {
    epochs: Arc<Epochs>,
    /// Each with its stamp, which grow.
    queue: VecDeque<(u64, T)>,
}

impl<T> Retired<T> {
    /// An empty queue.
    pub fn new(epochs: &Arc<Epochs>) -> Self {
        Self {
            epochs: Arc::clone(epochs),
            queue: VecDeque::new(),
        }
    }

    /// Adds an item that this thread has unlinked: no later reader finds it.
    pub fn retire(&mut self, item: T) {
        self.queue.push_back((self.epochs.advance(), item));
    }

    /// Passes on the items that no participant can see any longer, in the order of retiring, and returns their number.
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

    /// Readers follow a link to a canary, which the writer exchanges, retires and poisons once it is collected.
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
