//! The state and counters of a port that threads share.

use crate::PortIo;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;
use urtica_wire::PortConfig;

/// The state of a port that all threads share. Only the thread with the back end updates the link.
#[derive(Debug)]
pub(super) struct PortRecord {
    pub(super) added: Duration,
    /// Number of the network interface, or 0 if the port is not one.
    pub(super) link_index: AtomicU32,
    /// The port's Ethernet address, as a number.
    pub(super) hw_addr: AtomicU64,
    /// [`PortConfig`]'s bits, as in the pipeline's description of the port.
    pub(super) config: AtomicU32,
    pub(super) has_link: AtomicBool,
    pub(super) speed_kbps: AtomicU32,
    /// The counters of all threads. The lock is for adding counters, and for summing them up.
    pub(super) counters: Mutex<Vec<Arc<Counters>>>,
}

/// One thread's counters of a port, which only that thread changes. They have two cache lines of their own, since processors
/// fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counters {
    pub(super) rx_packets: AtomicU64,
    pub(super) rx_bytes: AtomicU64,
    /// Frames dropped for lack of space.
    pub(super) rx_dropped: AtomicU64,
    /// Frames dropped because of the port's configuration.
    pub(super) rx_blocked: AtomicU64,
    pub(super) rx_errors: AtomicU64,
    pub(super) tx_packets: AtomicU64,
    pub(super) tx_bytes: AtomicU64,
    pub(super) tx_dropped: AtomicU64,
}

/// One thread's count of frames received by a port, for other threads.
#[cfg(test)]
pub(crate) struct ReceivedHere(pub(super) Arc<Counters>);

#[cfg(test)]
impl ReceivedHere {
    pub fn packets(&self) -> u64 {
        self.0.rx_packets.load(Relaxed)
    }
}

impl PortRecord {
    pub(super) fn new(added: Duration, io: &dyn PortIo) -> Self {
        let record = Self {
            added,
            link_index: AtomicU32::default(),
            hw_addr: AtomicU64::default(),
            config: AtomicU32::default(),
            has_link: AtomicBool::default(),
            speed_kbps: AtomicU32::default(),
            counters: Mutex::default(),
        };
        record.identify(io);
        record
    }

    /// Notes the back end's interface and address.
    pub(super) fn identify(&self, io: &dyn PortIo) {
        self.link_index.store(io.link_index().unwrap_or(0), Relaxed);
        self.hw_addr.store(io.hw_addr().to_u64(), Relaxed);
    }

    /// Returns the sum of all threads' counters.
    pub(super) fn sum(&self, counter: fn(&Counters) -> &AtomicU64) -> u64 {
        let all = self.counters.lock();
        let counts = all.iter().map(|counters| counter(counters).load(Relaxed));
        counts.sum()
    }

    /// Returns the rate that the back end reports, in bits a second, if any.
    pub(super) fn rate_bps(&self) -> Option<u64> {
        match self.speed_kbps.load(Relaxed) {
            0 => None,
            speed_kbps => Some(u64::from(speed_kbps) * 1000),
        }
    }

    pub(super) fn config(&self) -> PortConfig {
        PortConfig::from_bits_retain(self.config.load(Relaxed))
    }
}

impl Counters {
    pub(super) fn count_sent(&self, bytes: u64) {
        add(&self.tx_packets, 1);
        add(&self.tx_bytes, bytes);
    }

    pub(super) fn count_lost(&self, count: usize) {
        if count > 0 {
            add(&self.tx_dropped, count as u64);
        }
    }
}

/// Adds to a counter that only this thread changes.
#[inline]
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}
