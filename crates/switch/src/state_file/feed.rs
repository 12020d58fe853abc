//! The queue of a switch's changes for the thread that writes its journal.
//!
//! **Order.** Changes are numbered and queued while the pipeline is locked for them, so the queue is in order, and a reader of
//! the pipeline sees exactly the changes up to [`Feed::sequence`].
//!
//! **Bounds.** If the thread falls behind by [`MAX_QUEUED`] changes, further ones are dropped, and it writes the whole file
//! instead.

use crate::queues::NamedQueues;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::Sender;
use urtica_pipeline::StateChange;

/// The maximum number of changes waiting to be written.
const MAX_QUEUED: usize = 1 << 20;

/// A task for the writing thread.
pub(crate) enum Item {
    /// These changes have been made; the last has this number.
    Changes(u64, Vec<StateChange>),
    /// The queues of a port's name were changed at run time; the change has this number.
    Queues(u64, String, NamedQueues),
    /// A barrier waits for all earlier changes.
    Sync,
    /// The switch has stopped.
    Stop,
}

/// The communication between the switch and the writing thread.
pub(crate) struct Feed {
    items: Sender<Item>,
    /// Whether barriers wait.
    barriers_wait: bool,
    sequence: AtomicU64,
    durable: AtomicU64,
    has_failed: AtomicBool,
    queued: AtomicUsize,
    is_lost: AtomicBool,
    is_sync_requested: AtomicBool,
}

/// The changes that are durable, for barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Durability {
    /// The number of the last change.
    pub sequence: u64,
    /// The number of the last change that outlives the machine; the last of all if barriers do not wait.
    pub durable: u64,
    /// Whether changes cannot be written at present.
    pub has_failed: bool,
}

impl Feed {
    pub fn new(items: Sender<Item>, barriers_wait: bool) -> Self {
        Self {
            items,
            barriers_wait,
            sequence: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
            is_sync_requested: AtomicBool::new(false),
        }
    }

    /// Queues changes that were just made, while the pipeline is locked for them.
    pub fn put(&self, changes: Vec<StateChange>) {
        self.queue(changes.len(), |sequence| Item::Changes(sequence, changes));
    }

    /// Queues a change of the queues of a port's name, while the pipeline is locked for it.
    pub fn put_queues(&self, name: String, queues: NamedQueues) {
        self.queue(1, |sequence| Item::Queues(sequence, name, queues));
    }

    fn queue(&self, count: usize, item: impl FnOnce(u64) -> Item) {
        let sequence = self.sequence.fetch_add(1, AcqRel) + 1;
        // No change may follow a dropped one until the thread knows that it was dropped.
        if self.is_lost.load(Acquire) || self.queued.load(Acquire) > MAX_QUEUED {
            self.is_lost.store(true, Release);
            return;
        }
        self.queued.fetch_add(count, AcqRel);
        // This fails only if the thread has ended.
        let _ = self.items.send(item(sequence));
    }

    /// Notes that the thread has received this number of changes.
    pub fn took(&self, count: usize) {
        self.queued.fetch_sub(count, AcqRel);
    }

    /// Returns whether changes were dropped since the last call.
    pub fn take_lost(&self) -> bool {
        self.is_lost.swap(false, AcqRel)
    }

    /// Returns the number of the last change.
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Acquire)
    }

    /// Requests that all changes so far are made durable.
    pub fn request_sync(&self) {
        if !self.is_sync_requested.swap(true, AcqRel) {
            let _ = self.items.send(Item::Sync);
        }
    }

    /// Notes that the thread starts to synchronize.
    pub fn begin_sync(&self) {
        self.is_sync_requested.store(false, Release);
    }

    /// Notes that all changes up to `sequence` are durable.
    pub fn note_durable(&self, sequence: u64) {
        self.durable.store(sequence, Release);
        self.has_failed.store(false, Release);
    }

    /// Notes that changes cannot be written.
    pub fn note_failure(&self) {
        self.has_failed.store(true, Release);
    }

    /// Stops the thread.
    pub fn stop(&self) {
        let _ = self.items.send(Item::Stop);
    }

    /// Returns which changes are durable, for barriers.
    pub fn durability(&self) -> Durability {
        if !self.barriers_wait {
            return Durability::default();
        }
        Durability {
            sequence: self.sequence(),
            durable: self.durable.load(Acquire),
            has_failed: self.has_failed.load(Acquire),
        }
    }
}

impl Durability {
    /// Returns whether a change is durable; without a number, whether the last one is.
    pub fn has(&self, wanted: Option<u64>) -> bool {
        self.durable >= wanted.unwrap_or(self.sequence)
    }
}
