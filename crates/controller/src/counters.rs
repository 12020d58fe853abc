//! What is counted, per switch and per shard.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and any may read.
///
/// Thread-safety: only the owning shard adds to it, so it needs no atomic read-modify-write: a relaxed
/// load and store cost the same as a plain field. What several threads count, they all add with
/// `add_shared`.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. For the owner alone.
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
        /// Messages of handlers that the switch's version cannot express.
        unsendable,
        /// Permanent entries of a 1.0 switch that a program's delete may take from another, since too many are noted already.
        unprotected,
        /// Packets that could not be forwarded because the switch sent only their beginning.
        truncated,
        /// How often reading stopped because the switch did not read.
        stalls,
        /// Messages from elsewhere that were refused because too many waited already.
        refused,
        /// Ports that are not known, since the switch has too many ([`MAX_PORTS`](crate::MAX_PORTS)).
        ports_refused,
        /// Packet-ins that were answered in the kernel; they count among the received ones, too.
        answered_in_kernel,
        /// How often the kernel passed input on since it held something that is not answered there.
        passed_by_kernel,
        /// How often the kernel passed input on since the queue was long, or the switch did not read its replies as fast.
        fell_back,
    }
}

counters! {
    /// What one shard did.
    ShardCounters {
        /// Connections taken on.
        connections,
        /// Connections closed or given away.
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
        /// Times that it waited for something to do.
        waits,
        /// Nanoseconds between one wait's end and the next one's beginning: how long it had something to do.
        busy_ns,
        /// Handlers that panicked.
        panics,
        /// Packet-ins that were answered in the kernel.
        answered_in_kernel,
        /// How often the kernel passed input on since it held something that is not answered there.
        passed_by_kernel,
        /// How often the kernel passed input on since the queue was long, or the switch did not read its replies as fast.
        fell_back,
    }
}

/// What happened to background programs. Any thread adds to it.
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

    /// How often a program was found at work for too long.
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    pub(crate) fn add_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a program that panicked, and tells the log.
    pub(crate) fn tell_of_panic(&self, program: &str, reason: &str) {
        self.add_panic();
        urtica_log::error!(
            about: program,
            program,
            reason,
            "a background program panicked and is gone; the controller lives on"
        );
    }

    pub(crate) fn add_stall(&self) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
    }
}
