//! A port's scheduler, as the threads of a switch share it.
//!
//! Any thread puts frames in. One alone, the port's own, has them leave, so that frames of a queue stay in order; the others ring for
//! it. The lock is held for a frame that comes in, and while those leave that may.

use super::scheduler::{Polled, QueueCounters, Scheduler};
use super::settings::PortQueues;
use parking_lot::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// The queues of a port.
#[derive(Debug)]
pub(crate) struct SharedQueues {
    state: Mutex<State>,
    /// Whether the port's own thread was told that frames wait, and has not looked yet.
    is_rung: AtomicBool,
}

#[derive(Debug)]
struct State {
    scheduler: Scheduler,
    /// The port has no queues any longer.
    is_closed: bool,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It waits.
    Waits,
    /// Its queue was full.
    Dropped,
    /// The port has no queues any longer: it is to be sent without.
    Closed,
}

impl SharedQueues {
    /// Creates queues without frames. `rate_bps` is the rate that the port reports, if it does.
    pub fn new(settings: PortQueues, rate_bps: Option<u64>, now: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                scheduler: Scheduler::new(settings, rate_bps, now),
                is_closed: false,
            }),
            is_rung: AtomicBool::default(),
        }
    }

    /// Puts a frame into a queue.
    pub fn push(&self, queue_id: u32, frame: &[u8]) -> Pushed {
        let mut state = self.state.lock();
        if state.is_closed {
            return Pushed::Closed;
        }
        match state.scheduler.push(queue_id, frame) {
            true => Pushed::Waits,
            false => Pushed::Dropped,
        }
    }

    /// Notes that frames wait; returns whether the port's own thread has to be told.
    pub fn ring(&self) -> bool {
        !self.is_rung.swap(true, SeqCst)
    }

    /// Has frames leave: see [`Scheduler::poll`]. `rate_bps` is the rate that the port reports now.
    pub fn poll(
        &self,
        rate_bps: Option<u64>,
        now: Duration,
        send: impl FnMut(&[u8]) -> bool,
    ) -> Polled {
        // Frames that come after this ring again.
        self.is_rung.store(false, SeqCst);
        let mut state = self.state.lock();
        state.scheduler.set_rate(rate_bps, now);
        state.scheduler.poll(now, send)
    }

    /// Drops all frames that wait, as a port without a link does; returns how many.
    pub fn discard(&self) -> usize {
        self.is_rung.store(false, SeqCst);
        self.state.lock().scheduler.drain(|_| false)
    }

    /// Ends the queues: all frames leave at once. Returns how many the port has not accepted.
    pub fn close(&self, send: impl FnMut(&[u8]) -> bool) -> usize {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.scheduler.drain(send)
    }

    /// Takes over other settings; returns how many frames were dropped: see [`Scheduler::configure`].
    pub fn configure(&self, settings: PortQueues, now: Duration) -> usize {
        self.state.lock().scheduler.configure(settings, now)
    }

    /// The rate by which the port sends, in bits a second, if there is one.
    pub fn rate_bps(&self) -> Option<u64> {
        self.state.lock().scheduler.rate_bps()
    }

    /// The settings.
    pub fn settings(&self) -> PortQueues {
        self.state.lock().scheduler.settings().clone()
    }

    /// What went through each queue.
    pub fn counters(&self) -> Vec<(u32, QueueCounters)> {
        self.state.lock().scheduler.counters().collect()
    }
}
