//! Counters per switch, per shard, and of background programs.

use crate::panic_log::PanicLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and any may read.
///
/// Thread-safety: only the owning shard adds to it, so it needs no atomic read-modify-write: a relaxed load and store cost as
/// much as a plain field. A counter that several threads write uses `add_shared` for all additions.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. Only for the owning thread.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Adds to it, from any thread.
    pub(crate) fn add_shared(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns its value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$fmeta])* pub $field: Counter,)+
        }

        impl $name {
            /// Iterates over names and values, in order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field.get()),)+].into_iter()
            }
        }
    };
}

counters! {
    /// Counts of one switch's connection.
    SwitchCounters {
        /// Messages received.
        received,
        /// Packet-ins among them.
        packet_ins,
        /// Bytes received.
        received_bytes,
        /// Messages sent.
        sent,
        /// Bytes sent.
        sent_bytes,
        /// Errors that the switch sent.
        errors,
        /// Messages that could not be decoded and were answered with an error.
        malformed,
        /// Messages of handlers that could not be encoded in the switch's version.
        unsendable,
        /// Permanent entries of a 1.0 switch that another program's delete may remove, since too many are tracked already.
        unprotected,
        /// Packets that could not be forwarded because the switch sent only their first bytes.
        truncated,
        /// The number of times that reading stopped because the switch did not read its replies.
        stalls,
        /// Messages from outside the handlers that were refused because the backlog was full
        /// ([`RequestError::Busy`](crate::RequestError::Busy)).
        refused,
        /// Auxiliary connections of the switch, including closed ones.
        auxiliaries,
        /// Messages of handlers that were not sent because the controller is a secondary.
        withheld,
        /// The number of changes of the controller's role at the switch.
        role_changes,
        /// Ports that are ignored because the switch has more than [`MAX_PORTS`](crate::MAX_PORTS).
        ports_refused,
        /// Packet-ins that were answered in the kernel; they are among those received.
        answered_in_kernel,
        /// The number of times that the kernel passed on input with messages that are not answered there.
        passed_by_kernel,
        /// The number of times that the kernel passed on input because the queue was long, or the switch read its replies
        /// too slowly.
        fell_back,
        /// The number of times that the kernel half left a busy switch to the program until it was less busy.
        stepped_aside,
        /// Bytes received through a ring; they are among those received.
        through_rings,
        /// The number of times that the kernel passed on input because a ring was full.
        ring_full,
    }
}

counters! {
    /// Counts of one shard.
    ShardCounters {
        /// Connections adopted: new ones, and connections moved here from other shards.
        connections,
        /// Connections closed, or moved to other shards.
        departures,
        /// Messages received.
        received,
        /// Bytes received.
        received_bytes,
        /// Bytes sent.
        sent_bytes,
        /// Reads from sockets.
        reads,
        /// Writes to sockets.
        writes,
        /// Waits for events (calls of `epoll_wait`).
        waits,
        /// Nanoseconds between the end of one wait and the start of the next: its busy time.
        busy_ns,
        /// Handlers that panicked.
        panics,
        /// Packet-ins that were answered in the kernel.
        answered_in_kernel,
        /// The number of times that the kernel passed on input with messages that are not answered there.
        passed_by_kernel,
        /// The number of times that the kernel passed on input because the queue was long, or the switch read its replies
        /// too slowly.
        fell_back,
        /// The number of times that the kernel half left a busy switch to the program until it was less busy.
        stepped_aside,
        /// Bytes received through a ring; they are among those received.
        through_rings,
        /// The number of times that the kernel passed on input because a ring was full.
        ring_full,
    }
}

/// The busy times of a shard's wake-ups: from the notification of switches' input until all of it was answered. This is an
/// upper bound of a packet-in's latency in the controller.
///
/// Cost: for each wake-up, two instructions to find the class of a duration, and one addition.
#[derive(Debug, Default)]
pub struct BusyTimes {
    /// By the number of binary digits of the nanoseconds.
    classes: [Counter; BusyTimes::CLASSES],
}

impl BusyTimes {
    /// The last class contains all times from 2^30 ns on, about a second.
    const CLASSES: usize = 32;

    /// Counts one duration. Only for the owning thread.
    #[inline]
    pub(crate) fn add(&self, nanoseconds: u64) {
        self.add_all(nanoseconds, 1);
    }

    /// Counts several equal durations. Only for the owning thread.
    #[inline]
    pub(crate) fn add_all(&self, nanoseconds: u64, count: u64) {
        let class = (u64::BITS - nanoseconds.leading_zeros()) as usize;
        self.classes[class.min(Self::CLASSES - 1)].add(count);
    }

    /// Returns the exclusive upper bound in nanoseconds and the count of each class, in order. The last class has no upper
    /// bound.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        Self::sums(std::iter::once(self))
    }

    /// Like [`BusyTimes::iter`], for the sums of `all`.
    pub(crate) fn sums<'a>(
        all: impl Iterator<Item = &'a Self> + Clone,
    ) -> impl Iterator<Item = (u64, u64)> {
        let sum = move |class: usize| all.clone().map(|it| it.classes[class].get()).sum();
        (0..Self::CLASSES).map(move |class| (1 << class, sum(class)))
    }
}

/// Counters of background programs. Any thread adds to them.
#[derive(Debug)]
pub struct BackgroundCounters {
    panics: AtomicU64,
    stalls: AtomicU64,
    log: Arc<PanicLog>,
}

impl BackgroundCounters {
    pub(crate) fn new(log: &Arc<PanicLog>) -> Self {
        Self {
            panics: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            log: Arc::clone(log),
        }
    }

    /// Returns the number of programs that panicked, or could not be started.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Returns the number of times that a program ran for longer than [`STALL`](crate::STALL) without waiting.
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    pub(crate) fn add_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts and logs a program's panic, and keeps it for the operator.
    pub(crate) fn note_panic(&self, program: &str, reason: &str) {
        self.add_panic();
        self.log.note(Some(program), None, reason);
        urtica_log::error!(
            about: program,
            program,
            reason,
            "a background program panicked and has ended; the controller keeps running"
        );
    }

    pub(crate) fn add_stall(&self) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns `true` if the `count`th occurrence is logged: the rate decreases with the count, so that a switch that refuses
/// everything does not flood the log.
pub(crate) fn is_worth_logging(count: u64) -> bool {
    count.is_power_of_two()
}
