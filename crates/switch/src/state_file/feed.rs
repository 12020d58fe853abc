//! How changes of a switch reach the thread that writes its journal.
//!
//! **Order.** Changes are numbered and queued while the pipeline is locked for them, so the queue has them in their order, and whoever
//! reads the pipeline sees exactly the changes up to [`Feed::sequence`].
//!
//! **Bounds.** If the thread falls behind by [`MAX_QUEUED`] changes, further ones are dropped, and it writes the whole file instead.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::Sender;
use urtica_pipeline::StateChange;

/// The maximum number of changes that wait to be written.
const MAX_QUEUED: usize = 1 << 20;

/// Something for the thread to do.
pub(crate) enum Item {
    /// These changes have been made; the last has this number.
    Changes(u64, Vec<StateChange>),
    /// A barrier waits for all before.
    Sync,
    /// The switch has ended.
    Stop,
}

/// What the switch tells the thread, and the thread the switch.
pub(crate) struct Feed {
    items: Sender<Item>,
    /// Whether barriers wait.
    barriers_wait: bool,
    sequence: AtomicU64,
    durable: AtomicU64,
    has_failed: AtomicBool,
    queued: AtomicUsize,
    is_lost: AtomicBool,
    is_sync_asked: AtomicBool,
}

/// How far changes are on the disk, for barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Durability {
    /// The number of the last change.
    pub sequence: u64,
    /// The number of the last change that outlives the machine; all, if barriers do not wait.
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
            is_sync_asked: AtomicBool::new(false),
        }
    }

    /// Queues changes that were just made; the pipeline is locked for them.
    pub fn put(&self, changes: Vec<StateChange>) {
        let sequence = self.sequence.fetch_add(1, AcqRel) + 1;
        let count = changes.len();
        // Nothing follows a change that was dropped, until the thread knows.
        if self.is_lost.load(Acquire) || self.queued.load(Acquire) > MAX_QUEUED {
            self.is_lost.store(true, Release);
            return;
        }
        self.queued.fetch_add(count, AcqRel);
        // Fails only when the thread has ended.
        let _ = self.items.send(Item::Changes(sequence, changes));
    }

    /// Takes over that the thread has this number of changes.
    pub fn took(&self, count: usize) {
        self.queued.fetch_sub(count, AcqRel);
    }

    /// Whether changes were dropped since this was last asked.
    pub fn take_lost(&self) -> bool {
        self.is_lost.swap(false, AcqRel)
    }

    /// The number of the last change.
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Acquire)
    }

    /// Asks for all changes so far to be made durable.
    pub fn ask_sync(&self) {
        if !self.is_sync_asked.swap(true, AcqRel) {
            let _ = self.items.send(Item::Sync);
        }
    }

    /// Takes over that the thread begins to do so.
    pub fn begin_sync(&self) {
        self.is_sync_asked.store(false, Release);
    }

    /// Notes that all up to this change is durable.
    pub fn note_durable(&self, sequence: u64) {
        self.durable.store(sequence, Release);
        self.has_failed.store(false, Release);
    }

    /// Notes that changes cannot be written.
    pub fn note_failure(&self) {
        self.has_failed.store(true, Release);
    }

    /// Ends the thread.
    pub fn stop(&self) {
        let _ = self.items.send(Item::Stop);
    }

    /// How far changes are durable, as barriers see it.
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
    /// Whether a change is durable; the last one without a number.
    pub fn has(&self, wanted: Option<u64>) -> bool {
        self.durable >= wanted.unwrap_or(self.sequence)
    }
}
