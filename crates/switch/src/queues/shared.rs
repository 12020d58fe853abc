//! A port's scheduler, shared by the threads of a switch.
//!
//! Any thread adds frames. Only the port's own thread sends them, so that frames of a queue stay in order; other threads wake
//! it. The lock is held while a frame is added, and while frames are sent.

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
    /// Whether the port's own thread was notified of waiting frames, and has not polled yet.
    is_rung: AtomicBool,
}

#[derive(Debug)]
struct State {
    scheduler: Scheduler,
    /// Whether the port no longer has queues.
    is_closed: bool,
}

/// The result of adding a frame to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The frame is waiting.
    Waits,
    /// The frame was dropped, because its queue was full.
    Dropped,
    /// The port no longer has queues: the frame must be sent without.
    Closed,
}

impl SharedQueues {
    /// Creates queues without frames. `rate_bps` is the rate that the port reports, if any.
    pub fn new(settings: PortQueues, rate_bps: Option<u64>, now: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                scheduler: Scheduler::new(settings, rate_bps, now),
                is_closed: false,
            }),
            is_rung: AtomicBool::default(),
        }
    }

    /// Adds a frame to a queue.
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

    /// Notes that frames are waiting; returns whether the port's own thread must be notified.
    pub fn ring(&self) -> bool {
        !self.is_rung.swap(true, SeqCst)
    }

    /// Sends frames: see [`Scheduler::poll`]. `rate_bps` is the rate that the port reports now.
    pub fn poll(
        &self,
        rate_bps: Option<u64>,
        now: Duration,
        send: impl FnMut(&[u8]) -> bool,
    ) -> Polled {
        // Frames that arrive after this notify the thread again.
        self.is_rung.store(false, SeqCst);
        let mut state = self.state.lock();
        state.scheduler.set_rate(rate_bps, now);
        state.scheduler.poll(now, send)
    }

    /// Drops all waiting frames, for a port without a link; returns their number.
    pub fn discard(&self) -> usize {
        self.is_rung.store(false, SeqCst);
        self.state.lock().scheduler.drain(|_| false)
    }

    /// Closes the queues, and sends all frames. Returns the number of frames that the port did not accept.
    pub fn close(&self, send: impl FnMut(&[u8]) -> bool) -> usize {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.scheduler.drain(send)
    }

    /// Replaces the settings; returns the number of dropped frames: see [`Scheduler::configure`].
    pub fn configure(&self, settings: PortQueues, now: Duration) -> usize {
        self.state.lock().scheduler.configure(settings, now)
    }

    /// Returns the rate at which the port sends, in bits per second, if it is limited.
    pub fn rate_bps(&self) -> Option<u64> {
        self.state.lock().scheduler.rate_bps()
    }

    /// Returns the settings.
    pub fn settings(&self) -> PortQueues {
        self.state.lock().scheduler.settings().clone()
    }

    /// Returns the counters of each queue.
    pub fn counters(&self) -> Vec<(u32, QueueCounters)> {
        self.state.lock().scheduler.counters().collect()
    }
}
