//! State that all threads of a switch share.
//!
//! One thread has the [`Switch`](crate::Switch) and changes the pipeline; it, or others, have a
//! [`Forwarder`](crate::forwarder::Forwarder) and forward packets. Locks are acquired in the order of the fields, each for at
//! most a message or a burst. A forwarding thread has no burst in the compiled pipeline when it acquires a lock, so a change
//! can wait for bursts while it holds the pipeline's lock.
//!
//! The pipeline is locked for writing only while its plain form changes ([`Shared::change`]), for some microseconds. Updating
//! the compiled form, which may last long, only needs an unchanged pipeline: other threads can read it during the update.

use crate::normal::MacTable;
use crate::queues::NamedQueues;
use crate::state_file::{Durability, Feed};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use urtica_pipeline::{Packet, Pipeline};

/// The pipeline, and other state that affects packets.
pub(crate) struct Shared {
    pipeline: RwLock<Pipeline>,
    hosts: Mutex<MacTable>,
    /// The queues of ports, by name: a port that is added again gets them again.
    queues: Mutex<BTreeMap<String, NamedQueues>>,
    is_alone: AtomicBool,
    drops_fragments: AtomicBool,
    matches_hidden: AtomicBool,
    zeroes_ports: AtomicBool,
    wants_table_misses: AtomicBool,
    packet_ins_dropped: AtomicU64,
    /// The queue of changes to save, if changes are saved.
    feed: OnceLock<Arc<Feed>>,
}

/// Settings that apply to all packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Whether packets are forwarded without OpenFlow.
    pub is_alone: bool,
    /// Whether fragments are dropped (OFPC_FRAG_DROP).
    pub drops_fragments: bool,
    /// Whether fields that fragments hide match as 0 (Open vSwitch's OFPC_FRAG_NX_MATCH).
    pub matches_hidden: bool,
    /// Whether ports of fragments match as 0 (1.0 section 3.4).
    pub zeroes_ports: bool,
    /// Whether a controller wants packets that match no entry.
    pub wants_table_misses: bool,
}

impl Modes {
    /// Returns whether fragments are treated differently from other packets.
    pub fn has_fragments_apart(self) -> bool {
        self.drops_fragments || self.matches_hidden || self.zeroes_ports
    }

    /// Returns a fragment as entries must see it; `None` if it must be dropped.
    pub fn fragment(self, fragment: Packet) -> Option<Packet> {
        match self {
            Self {
                matches_hidden: true,
                ..
            } => Some(fragment.with_hidden_fields()),
            Self {
                drops_fragments: true,
                ..
            } => None,
            Self {
                zeroes_ports: true, ..
            } => Some(fragment.as_fragment_of10()),
            _ => Some(fragment),
        }
    }
}

impl Shared {
    /// Creates the state with this pipeline. `hash_seed` is as in [`SwitchConfig`](crate::SwitchConfig).
    pub fn new(mut pipeline: Pipeline, hash_seed: Option<u64>) -> Self {
        pipeline.defer_following(true);
        Self {
            pipeline: RwLock::new(pipeline),
            hosts: Mutex::new(MacTable::new(hash_seed)),
            queues: Mutex::default(),
            is_alone: AtomicBool::default(),
            drops_fragments: AtomicBool::default(),
            matches_hidden: AtomicBool::default(),
            zeroes_ports: AtomicBool::default(),
            wants_table_misses: AtomicBool::default(),
            packet_ins_dropped: AtomicU64::default(),
            feed: OnceLock::new(),
        }
    }

    /// Locks the pipeline for reading. A change that panics halfway ends the switch; until then packets are still forwarded.
    pub fn pipeline(&self) -> RwLockReadGuard<'_, Pipeline> {
        self.pipeline.read()
    }

    /// Makes a change to tables, groups or meters. When this returns, it applies to all packets.
    pub fn change<T>(&self, change: impl FnOnce(&mut Pipeline) -> T) -> T {
        let mut pipeline = self.pipeline.write();
        let outcome = change(&mut pipeline);
        if let Some(feed) = self.feed.get() {
            let logged = pipeline.take_logged();
            if !logged.is_empty() {
                feed.put(logged);
            }
        }
        RwLockWriteGuard::downgrade(pipeline).follow();
        outcome
    }

    /// Replaces the queues of a port's name, including their changes at run time. Does not affect the port.
    pub fn set_named_queues(&self, name: String, queues: NamedQueues) {
        // The pipeline is locked, so that changes are in the order of their numbers.
        let _pipeline = self.pipeline.write();
        if let Some(feed) = self.feed.get() {
            feed.put_queues(name.clone(), queues.clone());
        }
        self.queues.lock().insert(name, queues);
    }

    /// Returns the queues of a port's name, or none if none were set.
    pub fn named_queues(&self, name: &str) -> NamedQueues {
        self.queues.lock().get(name).cloned().unwrap_or_default()
    }

    /// Returns the queues that were changed at run time, by port name.
    pub fn changed_queues(&self) -> Vec<(String, NamedQueues)> {
        let queues = self.queues.lock();
        let changed = queues.iter().filter(|(_, queues)| queues.has_changed());
        changed
            .map(|(name, queues)| (name.clone(), queues.clone()))
            .collect()
    }

    /// Sends changes to a journal from now on.
    pub fn set_feed(&self, feed: Arc<Feed>) {
        let mut pipeline = self.pipeline.write();
        pipeline.log_changes();
        // A switch has one journal.
        let _ = self.feed.set(feed);
    }

    /// Returns which changes are durable.
    pub fn durability(&self) -> Durability {
        let feed = self.feed.get();
        feed.map(|feed| feed.durability()).unwrap_or_default()
    }

    /// Returns the number of the last change that was sent to the journal.
    pub fn sequence(&self) -> u64 {
        self.feed.get().map_or(0, |feed| feed.sequence())
    }

    /// Requests that all changes so far are made durable, for a barrier.
    pub fn request_sync(&self) {
        if let Some(feed) = self.feed.get() {
            feed.request_sync();
        }
    }

    /// Locks the pipeline for changes that do not affect compiled tables: of its ports and limits, and of whether it is compiled.
    pub fn pipeline_mut(&self) -> RwLockWriteGuard<'_, Pipeline> {
        self.pipeline.write()
    }

    /// Locks the learnt hosts. Their table is consistent after every statement.
    pub fn hosts(&self) -> MutexGuard<'_, MacTable> {
        self.hosts.lock()
    }

    /// Sets the modes, which apply to each thread's next burst at the latest.
    pub fn set_modes(&self, modes: Modes) {
        self.is_alone.store(modes.is_alone, Relaxed);
        self.drops_fragments.store(modes.drops_fragments, Relaxed);
        self.matches_hidden.store(modes.matches_hidden, Relaxed);
        self.zeroes_ports.store(modes.zeroes_ports, Relaxed);
        self.wants_table_misses
            .store(modes.wants_table_misses, Relaxed);
    }

    /// Returns the current modes.
    pub fn modes(&self) -> Modes {
        Modes {
            is_alone: self.is_alone.load(Relaxed),
            drops_fragments: self.drops_fragments.load(Relaxed),
            matches_hidden: self.matches_hidden.load(Relaxed),
            zeroes_ports: self.zeroes_ports.load(Relaxed),
            wants_table_misses: self.wants_table_misses.load(Relaxed),
        }
    }

    /// Counts a packet that did not fit into the queue to the controllers' thread.
    pub fn count_dropped_packet_in(&self) {
        self.packet_ins_dropped.fetch_add(1, Relaxed);
    }

    /// Returns the number of these packets.
    pub fn packet_ins_dropped(&self) -> u64 {
        self.packet_ins_dropped.load(Relaxed)
    }
}
