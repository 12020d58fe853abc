//! Counters, per switch, per shard, and of background programs.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and any may read.
///
/// Thread-safety: only the owning shard adds to it, so it needs no atomic read-modify-write: a relaxed
/// load and store cost the same as a plain field. Counters that several threads write are all added to with
/// `add_shared`.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. For the owning thread alone.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Adds to it, where any thread may do so.
    pub(crate) fn add_shared(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Its value.
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
            /// Names and values, in order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field.get()),)+].into_iter()
            }
        }
    };
}

counters! {
    /// What happened on one switch's connection.
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
        /// Permanent entries of a 1.0 switch that a program's delete may take from another, since too many are noted already.
        unprotected,
        /// Packets that could not be forwarded because the switch sent only their beginning.
        truncated,
        /// How many times reading stopped because the switch did not read its replies.
        stalls,
        /// Messages from outside the handlers that were refused because the backlog was full
        /// ([`RequestError::Busy`](crate::RequestError::Busy)).
        refused,
        /// Auxiliary connections of the switch, all that there were.
        auxiliaries,
        /// Messages of handlers that were not sent because the controller's role lets it only look.
        withheld,
        /// How many times the controller's role at the switch has changed.
        role_changes,
        /// Ports that are ignored because the switch has more than [`MAX_PORTS`](crate::MAX_PORTS).
        ports_refused,
        /// Packet-ins that were answered in the kernel; they are among those received.
        answered_in_kernel,
        /// How many times the kernel passed input on because it held something that is not answered there.
        passed_by_kernel,
        /// How many times the kernel passed input on because the queue was long, or the switch did not read its replies fast enough.
        fell_back,
        /// How many times the kernel half left a busy switch to the program until it was less busy.
        stepped_aside,
        /// Bytes that came through a ring; they are among those received.
        through_rings,
        /// How many times the kernel passed input on because a ring was full.
        ring_full,
    }
}

counters! {
    /// What one shard did.
    ShardCounters {
        /// Connections adopted: new ones, and those that moved here from other shards.
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
        /// Nanoseconds between the end of one wait and the beginning of the next: how long it was busy.
        busy_ns,
        /// Handlers that panicked.
        panics,
        /// Packet-ins that were answered in the kernel.
        answered_in_kernel,
        /// How many times the kernel passed input on because it held something that is not answered there.
        passed_by_kernel,
        /// How many times the kernel passed input on because the queue was long, or the switch did not read its replies fast enough.
        fell_back,
        /// How many times the kernel half left a busy switch to the program until it was less busy.
        stepped_aside,
        /// Bytes that came through a ring; they are among those received.
        through_rings,
        /// How many times the kernel passed input on because a ring was full.
        ring_full,
    }
}

/// How long a shard was busy each time it woke up: from when it learnt which switches had sent something until all of it was
/// answered, which no packet-in's latency in the controller exceeds.
///
/// Cost: two instructions to find the class of a duration, and one addition, for each wake-up.
#[derive(Debug, Default)]
pub struct BusyTimes {
    /// By the number of binary digits of the nanoseconds.
    classes: [Counter; BusyTimes::CLASSES],
}

impl BusyTimes {
    /// The last has all from 2^30 ns on, which is a second.
    const CLASSES: usize = 32;

    /// Counts one. For the owning thread alone.
    #[inline]
    pub(crate) fn add(&self, nanoseconds: u64) {
        self.add_all(nanoseconds, 1);
    }

    /// Counts as many that were equally long. For the owning thread alone.
    #[inline]
    pub(crate) fn add_all(&self, nanoseconds: u64, count: u64) {
        let class = (u64::BITS - nanoseconds.leading_zeros()) as usize;
        self.classes[class.min(Self::CLASSES - 1)].add(count);
    }

    /// For each class, in order: the nanoseconds that all in it fall short of, and how many there are. Those of the last have
    /// no such bound.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        Self::sums(std::iter::once(self))
    }

    /// The same for several together.
    pub(crate) fn sums<'a>(
        all: impl Iterator<Item = &'a Self> + Clone,
    ) -> impl Iterator<Item = (u64, u64)> {
        let sum = move |class: usize| all.clone().map(|it| it.classes[class].get()).sum();
        (0..Self::CLASSES).map(move |class| (1 << class, sum(class)))
    }
}

/// Counters of background programs. Any thread adds to them.
#[derive(Debug, Default)]
pub struct BackgroundCounters {
    panics: AtomicU64,
    stalls: AtomicU64,
}

impl BackgroundCounters {
    /// How many programs panicked, or could not be started.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// How many times a program was found running for longer than [`STALL`](crate::STALL) without waiting.
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    pub(crate) fn add_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts and logs a program that panicked.
    pub(crate) fn note_panic(&self, program: &str, reason: &str) {
        self.add_panic();
        urtica_log::error!(
            about: program,
            program,
            reason,
            "a background program panicked and has ended; the controller goes on"
        );
    }

    pub(crate) fn add_stall(&self) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether the `count`th occurrence of something is logged: with growing count ever fewer are, so that a switch that refuses
/// everything does not flood the log.
pub(crate) fn is_worth_logging(count: u64) -> bool {
    count.is_power_of_two()
}
