//! The scheduler, which chooses the frame that leaves a port's queues next.
//!
//! **What.** [`Scheduler::push`] adds a frame to a queue, and [`Scheduler::poll`] sends frames as fast as the rates of the port
//! and of the queues allow, and the port accepts them. Frames of one queue leave in order.
//!
//! **Order.** Queues below their minimum rate are first. Among them, and among all others of one priority, deficit round robin
//! shares bytes in proportion to the minimum rates. Capacity above the minimum rates is first used by the lowest priority
//! number. A queue without a minimum rate gets a share as if it had the port's lowest one.
//!
//! **Other frames.** Frames without a queue, or for a queue that the port does not have, go through queue 0. If the port has
//! no queue 0, they go through an internal queue with default settings, which is not reported.
//!
//! **Bounds.** Each queue holds a limited number of frames and bytes; a frame beyond that is dropped and counted. Memory of
//! sent frames is reused.
//!
//! **Time** is an argument; the scheduler has no clock, no socket and no thread.

use super::bucket::TokenBucket;
use super::round::{Candidate, Round};
use super::settings::{PortQueues, Queue};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The bounds of a queue's quantum, which is in proportion to the queue's weight if possible.
const SHORTEST_QUANTUM: u64 = 64;
const USUAL_QUANTUM: u64 = 1600;
const LONGEST_QUANTUM: u64 = 64 << 10;

/// Maximum capacity of buffers that are kept for reuse.
const LONGEST_SPARE: usize = 2048;

/// Maximum number of buffers kept for reuse.
const MAX_SPARE: usize = 1024;

/// A port's queues and their waiting frames.
#[derive(Debug)]
pub(crate) struct Scheduler {
    settings: PortQueues,
    /// The queues, sorted by number; the internal queue is last.
    queues: Vec<WaitingQueue>,
    /// Index of the queue for frames without a queue.
    rest: usize,
    /// The rate that the port reports, in bits per second.
    reported_bps: Option<u64>,
    /// The bucket for the port's rate, from the settings or as reported.
    limit: Option<TokenBucket>,
    /// All queues with frames, for the choice among queues below their minimum rate.
    guaranteed: Round,
    /// The queues with frames, by priority.
    levels: Vec<Round>,
    waiting: usize,
    spare: Vec<Vec<u8>>,
}

/// A queue and its counters.
#[derive(Debug)]
struct WaitingQueue {
    /// The number; `None` for the internal queue.
    queue_id: Option<u32>,
    settings: Queue,
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    minimum: Option<TokenBucket>,
    maximum: Option<TokenBucket>,
    quantum: u64,
    /// Index of its priority among the priorities in use.
    level: usize,
    counters: QueueCounters,
}

/// A queue's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCounters {
    pub tx_packets: u64,
    pub tx_bytes: u64,
    /// Frames dropped because the queue was full.
    pub tx_errors: u64,
    /// The time when the queue was created.
    pub since: Duration,
}

/// Result of [`Scheduler::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// No frame is waiting.
    Empty,
    /// The waiting frames may not leave before this time.
    Until(Duration),
    /// The port does not accept more frames.
    Blocked,
}

impl Scheduler {
    /// Creates queues without frames. `rate_bps` is the rate that the port reports, if any.
    pub fn new(settings: PortQueues, rate_bps: Option<u64>, now: Duration) -> Self {
        let mut scheduler = Self {
            settings: PortQueues::default(),
            queues: Vec::new(),
            rest: 0,
            reported_bps: rate_bps,
            limit: None,
            guaranteed: Round::default(),
            levels: Vec::new(),
            waiting: 0,
            spare: Vec::new(),
        };
        scheduler.configure(settings, now);
        scheduler
    }

    /// Returns the settings of the port and its queues.
    pub fn settings(&self) -> &PortQueues {
        &self.settings
    }

    /// Returns the rate at which the port sends, in bits per second, if it is limited.
    pub fn rate_bps(&self) -> Option<u64> {
        self.limit.map(|limit| limit.rate_bps())
    }

    /// Returns the number of waiting frames.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Returns the counters of each queue.
    pub fn counters(&self) -> impl Iterator<Item = (u32, QueueCounters)> {
        let queues = self.queues.iter();
        queues.filter_map(|queue| Some((queue.queue_id?, queue.counters)))
    }

    /// Sets the rate that the port reports, which is used unless the settings have one.
    pub fn set_rate(&mut self, rate_bps: Option<u64>, now: Duration) {
        self.reported_bps = rate_bps;
        let rate_bps = self.settings.rate_bps.or(rate_bps);
        if self.rate_bps() != rate_bps {
            self.limit = rate_bps.map(|rate_bps| TokenBucket::new(rate_bps, now));
        }
    }

    /// Replaces the settings. Queues that stay keep their frames and counters; frames of other queues move to the queue for
    /// other frames. Returns the number of frames that did not fit there.
    pub fn configure(&mut self, settings: PortQueues, now: Duration) -> usize {
        let before = std::mem::take(&mut self.queues);
        let numbers = settings
            .queues
            .iter()
            .map(|(&id, queue)| (Some(id), *queue));
        let rest = (!settings.queues.contains_key(&0)).then(|| (None, Queue::default()));
        let lowest = settings
            .queues
            .values()
            .filter_map(|queue| queue.min_rate_bps)
            .min();
        let queues = numbers.chain(rest);
        self.queues = queues
            .map(|(queue_id, queue)| WaitingQueue::new(queue_id, queue, now))
            .collect();
        self.rest = if rest.is_some() {
            self.queues.len() - 1
        } else {
            0
        };
        self.settings = settings;
        self.set_rate(self.reported_bps, now);
        self.share(lowest.unwrap_or(1));
        self.waiting = 0;
        before.into_iter().map(|queue| self.take_over(queue)).sum()
    }

    /// Sets levels and quanta. `lowest` is the weight of a queue without a minimum rate.
    fn share(&mut self, lowest: u64) {
        let priorities: BTreeSet<_> = self
            .queues
            .iter()
            .map(|queue| queue.settings.priority)
            .collect();
        let weight =
            |queue: &WaitingQueue| u128::from(queue.settings.min_rate_bps.unwrap_or(lowest));
        let highest = self.queues.iter().map(weight).max().unwrap_or(1);
        let lowest = u128::from(lowest);
        // The lowest weight gets the usual quantum, unless the highest weight would then get too long a quantum.
        let (one, per) =
            match highest * u128::from(USUAL_QUANTUM) > lowest * u128::from(LONGEST_QUANTUM) {
                true => (LONGEST_QUANTUM, highest),
                false => (USUAL_QUANTUM, lowest),
            };
        for queue in &mut self.queues {
            let quantum = weight(queue) * u128::from(one) / per;
            queue.quantum = u64::try_from(quantum)
                .unwrap_or(LONGEST_QUANTUM)
                .max(SHORTEST_QUANTUM);
            queue.level = priorities.range(..queue.settings.priority).count();
        }
        let count = self.queues.len();
        self.guaranteed = Round::new(count);
        self.levels = priorities.iter().map(|_| Round::new(count)).collect();
    }

    /// Takes over the previous state of a queue; returns the number of frames that did not fit.
    fn take_over(&mut self, before: WaitingQueue) -> usize {
        let WaitingQueue {
            queue_id,
            frames,
            counters,
            ..
        } = before;
        let same = self
            .queues
            .iter()
            .position(|queue| queue.queue_id == queue_id);
        if let Some(place) = same {
            self.queues[place].counters = counters;
        }
        let place = same.unwrap_or(self.rest);
        let pushed = frames.into_iter().map(|frame| self.push_to(place, frame));
        pushed.filter(|pushed| !pushed).count()
    }

    /// Adds a frame to a queue. Returns `false` if the queue was full, and the frame was dropped and counted.
    pub fn push(&mut self, queue_id: u32, frame: &[u8]) -> bool {
        let place = match self.find(queue_id) {
            Some(place) => place,
            None => self.rest,
        };
        if !self.queues[place].has_space(frame.len()) {
            self.queues[place].counters.tx_errors += 1;
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.push_to(place, buffer)
    }

    fn find(&self, queue_id: u32) -> Option<usize> {
        let numbered = match self.queues.last() {
            Some(WaitingQueue { queue_id: None, .. }) => &self.queues[..self.rest],
            _ => &self.queues[..],
        };
        numbered
            .binary_search_by_key(&Some(queue_id), |queue| queue.queue_id)
            .ok()
    }

    fn push_to(&mut self, place: usize, frame: Vec<u8>) -> bool {
        let queue = &mut self.queues[place];
        if !queue.has_space(frame.len()) {
            queue.counters.tx_errors += 1;
            return false;
        }
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
        self.waiting += 1;
        if queue.frames.len() == 1 {
            self.guaranteed.join(place);
            self.levels[queue.level].join(place);
        }
        true
    }

    /// Sends frames with `send`, while they may leave and the port accepts them. `send` returns whether the port has accepted
    /// the frame; if not, it stays the first of its queue.
    pub fn poll(&mut self, now: Duration, mut send: impl FnMut(&[u8]) -> bool) -> Polled {
        while let Some((place, is_guaranteed)) = self.choose(now) {
            if !send(self.queues[place].first()) {
                return Polled::Blocked;
            }
            self.pop(place, is_guaranteed, now);
        }
        match self.ready_at() {
            Some(time) => Polled::Until(time),
            None => Polled::Empty,
        }
    }

    /// Sends all frames, whatever the rates. Frames that the port does not accept are dropped. Returns their number.
    pub fn drain(&mut self, mut send: impl FnMut(&[u8]) -> bool) -> usize {
        let mut dropped = 0;
        for queue in &mut self.queues {
            for frame in queue.frames.drain(..) {
                match send(&frame) {
                    true => queue.counters.count(frame.len()),
                    false => {
                        queue.counters.tx_errors += 1;
                        dropped += 1;
                    }
                }
            }
            queue.bytes = 0;
        }
        let count = self.queues.len();
        self.guaranteed = Round::new(count);
        self.levels
            .iter_mut()
            .for_each(|level| *level = Round::new(count));
        self.waiting = 0;
        dropped
    }

    /// Returns the queue that sends next, and whether it was chosen for its minimum rate.
    fn choose(&mut self, now: Duration) -> Option<(usize, bool)> {
        if self.waiting == 0 || self.limit.is_some_and(|limit| !limit.allows(now)) {
            return None;
        }
        let queues = &self.queues;
        let guaranteed = |place: usize| queues[place].candidate(now, queues[place].is_behind(now));
        if let Some(place) = self.guaranteed.choose(guaranteed) {
            return Some((place, true));
        }
        let any = |place: usize| queues[place].candidate(now, true);
        let mut levels = self.levels.iter_mut();
        levels.find_map(|level| Some((level.choose(any)?, false)))
    }

    fn pop(&mut self, place: usize, is_guaranteed: bool, now: Duration) {
        let queue = &mut self.queues[place];
        let Some(frame) = queue.frames.pop_front() else {
            return;
        };
        let bytes = frame.len();
        queue.bytes -= bytes;
        queue.counters.count(bytes);
        self.waiting -= 1;
        if let Some(maximum) = &mut queue.maximum {
            maximum.take(bytes, now);
        }
        if let Some(limit) = &mut self.limit {
            limit.take(bytes, now);
        }
        let level = &mut self.levels[queue.level];
        match (is_guaranteed, &mut queue.minimum) {
            (true, Some(minimum)) => {
                minimum.take(bytes, now);
                self.guaranteed.charge(place, bytes as u64);
            }
            _ => level.charge(place, bytes as u64),
        }
        if queue.frames.is_empty() {
            self.guaranteed.leave(place);
            level.leave(place);
        }
        if frame.capacity() <= LONGEST_SPARE && self.spare.len() < MAX_SPARE {
            self.spare.push(frame);
        }
    }

    /// Returns the earliest time at which a frame may leave; `None` if no frame is waiting.
    fn ready_at(&self) -> Option<Duration> {
        let waiting = self.queues.iter().filter(|queue| !queue.frames.is_empty());
        let first = waiting.map(|queue| {
            queue
                .maximum
                .map_or(Duration::ZERO, |maximum| maximum.ready_at())
        });
        let port = self.limit.map_or(Duration::ZERO, |limit| limit.ready_at());
        first.min().map(|first| first.max(port))
    }
}

impl WaitingQueue {
    fn new(queue_id: Option<u32>, settings: Queue, now: Duration) -> Self {
        Self {
            queue_id,
            settings,
            frames: VecDeque::new(),
            bytes: 0,
            minimum: settings
                .min_rate_bps
                .map(|rate_bps| TokenBucket::patient(rate_bps, now)),
            maximum: settings
                .max_rate_bps
                .map(|rate_bps| TokenBucket::new(rate_bps, now)),
            quantum: USUAL_QUANTUM,
            level: 0,
            counters: QueueCounters {
                tx_packets: 0,
                tx_bytes: 0,
                tx_errors: 0,
                since: now,
            },
        }
    }

    fn has_space(&self, bytes: usize) -> bool {
        self.frames.len() < self.settings.max_packets as usize
            && self.bytes + bytes <= self.settings.max_bytes as usize
    }

    /// Returns whether the queue is below its minimum rate.
    fn is_behind(&self, now: Duration) -> bool {
        self.minimum.is_some_and(|minimum| minimum.allows(now))
    }

    fn candidate(&self, now: Duration, is_asked: bool) -> Candidate {
        let is_below = |maximum: TokenBucket| maximum.allows(now);
        Candidate {
            may_send: is_asked && self.maximum.is_none_or(is_below),
            bytes: self.first().len() as u64,
            quantum: self.quantum,
        }
    }

    fn first(&self) -> &[u8] {
        self.frames.front().map_or(&[], Vec::as_slice)
    }
}

impl QueueCounters {
    fn count(&mut self, bytes: usize) {
        self.tx_packets += 1;
        self.tx_bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests;
