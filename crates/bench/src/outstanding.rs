//! The outstanding packet-ins of a switch, with the times when they were sent.
//!
//! Replies nearly always arrive in the order of their requests, so the outstanding packet-ins are an interval: from `head`, the
//! oldest unanswered one, to the last one sent. A reply that arrives early is recorded in a ring of bits until the head
//! reaches it. Send times are kept per batch, since all packet-ins of one `send` share one.

use std::collections::VecDeque;

use crate::hosts::Hosts;
use crate::packet_in::{BUFFER_IDS, Cursor};

/// The current state of the packet-in with some buffer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferIdState {
    /// It is waiting for its reply.
    Waiting(Cursor),
    /// It was answered.
    Answered,
    /// No packet-in with this id was sent so far.
    Never,
}

/// The source of send times.
#[derive(Clone, Debug)]
pub enum SendTimes {
    /// The clock, read once for each batch.
    Clock(VecDeque<Batch>),
    /// A schedule, by which packet-in `n` was due at `first_ns + n * interval_ns`.
    Schedule {
        /// The time at which the first one was due.
        first_ns: u64,
        /// The interval between two packet-ins.
        interval_ns: f64,
    },
}

/// Packet-ins that were sent together: those before `end` that are not in an earlier batch.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    end: u64,
    at_ns: u64,
}

/// The outstanding packet-ins of one switch.
#[derive(Clone, Debug)]
pub struct Outstanding {
    head: Cursor,
    sent: u64,
    /// A bit for each packet-in from `head` on, at `seq % capacity`, which is set if its reply arrived early.
    early: Box<[u64]>,
    early_count: u64,
    capacity: u64,
    times: SendTimes,
}

impl Outstanding {
    /// Creates an empty interval with space for at least `most` outstanding packet-ins of these hosts.
    pub fn new(most: u32, hosts: Hosts, times: SendTimes) -> Self {
        // There is spare capacity, so that a lost reply does not stop the others immediately.
        let capacity = u64::from(
            most.saturating_mul(4)
                .clamp(1024, crate::config::MAX_OUTSTANDING),
        )
        .next_power_of_two();
        let words = (capacity / 64) as usize;
        Self {
            head: Cursor::at(0, hosts),
            sent: 0,
            early: vec![0; words].into(),
            early_count: 0,
            capacity,
            times,
        }
    }

    /// Returns the oldest packet-in without a reply, or the next one to be sent if there is none.
    #[inline]
    pub fn head(&self) -> Cursor {
        self.head
    }

    /// Returns the next packet-in to send.
    pub fn next_to_send(&self) -> Cursor {
        self.head.skip(self.sent - self.head.seq)
    }

    /// Returns the number of outstanding packet-ins.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.sent - self.head.seq - self.early_count
    }

    /// Returns the time when the oldest packet-in without a reply was sent or due; `None` if all have replies.
    pub fn oldest_sent_ns(&self) -> Option<u64> {
        (self.head.seq < self.sent).then(|| self.sent_at_ns(self.head.seq))
    }

    /// Returns the number of replies that may follow in order, up to the first early one, if any.
    #[inline]
    pub fn in_order_limit(&self) -> u64 {
        if self.early_count == 0 {
            self.sent - self.head.seq
        } else {
            0
        }
    }

    /// Returns the number of packet-ins that can be sent before the oldest one must be answered.
    pub fn room(&self) -> u64 {
        self.capacity - (self.sent - self.head.seq)
    }

    /// Starts the schedule, if there is one.
    pub fn start(&mut self, start_ns: u64) {
        if let SendTimes::Schedule { first_ns, .. } = &mut self.times {
            *first_ns = start_ns;
        }
    }

    /// Notes that `count` further packet-ins were sent at `at_ns`.
    pub fn sent(&mut self, count: u64, at_ns: u64) {
        self.sent += count;
        if let SendTimes::Clock(batches) = &mut self.times {
            batches.push_back(Batch {
                end: self.sent,
                at_ns,
            });
        }
    }

    /// Returns the packet-in for which a reply has this buffer id.
    pub fn find_buffer(&self, buffer_id: u32) -> BufferIdState {
        if buffer_id >= BUFFER_IDS {
            return BufferIdState::Never;
        }
        let ahead = (buffer_id + BUFFER_IDS - self.head.buffer_id) % BUFFER_IDS;
        self.find(self.head.seq + u64::from(ahead), || {
            u64::from(BUFFER_IDS - ahead) <= self.head.seq
        })
    }

    /// Returns the packet-in for which a reply has this xid.
    pub fn find_xid(&self, xid: u32) -> BufferIdState {
        let ahead = xid.wrapping_sub(self.head.xid());
        self.find(self.head.seq + u64::from(ahead), || {
            (1 << 32) - u64::from(ahead) <= self.head.seq
        })
    }

    /// Returns the packet-in from this source; if there are several, the oldest one.
    pub fn find_source(&self, source: u32) -> BufferIdState {
        let mut cursor = self.head;
        while cursor.seq < self.sent {
            if cursor.source == source && !self.is_early(cursor.seq) {
                return BufferIdState::Waiting(cursor);
            }
            cursor = cursor.next();
        }
        BufferIdState::Never
    }

    fn find(&self, seq: u64, is_past: impl Fn() -> bool) -> BufferIdState {
        if seq < self.sent {
            if self.is_early(seq) {
                BufferIdState::Answered
            } else {
                BufferIdState::Waiting(self.head.skip(seq - self.head.seq))
            }
        } else if is_past() {
            BufferIdState::Answered
        } else {
            BufferIdState::Never
        }
    }

    /// Records the replies to the next packet-ins in order, up to `head`, which [`Outstanding::in_order_limit`] must allow. Calls
    /// `record(latency_ns, how_many)` for each batch.
    pub fn answer_in_order(&mut self, head: Cursor, now_ns: u64, mut record: impl FnMut(u64, u64)) {
        debug_assert!(head.seq - self.head.seq <= self.in_order_limit());
        let mut seq = self.head.seq;
        self.head = head;
        match &mut self.times {
            SendTimes::Clock(batches) => {
                while seq < head.seq {
                    let Some(batch) = batches.front().copied() else {
                        break;
                    };
                    let end = batch.end.min(head.seq);
                    if end > seq {
                        record(now_ns.saturating_sub(batch.at_ns), end - seq);
                        seq = end;
                    }
                    if batch.end <= head.seq {
                        batches.pop_front();
                    }
                }
            }
            SendTimes::Schedule {
                first_ns,
                interval_ns,
            } => {
                for seq in seq..head.seq {
                    record(
                        now_ns.saturating_sub(due_ns(*first_ns, *interval_ns, seq)),
                        1,
                    );
                }
            }
        }
    }

    /// Records the reply to packet-in `seq`, which must be outstanding. Returns the latency, and `true` if the reply arrived
    /// before that of an earlier packet-in.
    pub fn answer(&mut self, seq: u64, now_ns: u64) -> (u64, bool) {
        debug_assert!((self.head.seq..self.sent).contains(&seq) && !self.is_early(seq));
        let latency_ns = now_ns.saturating_sub(self.sent_at_ns(seq));
        let early = seq != self.head.seq;
        self.set_early(seq, true);
        self.early_count += 1;
        self.advance();
        (latency_ns, early)
    }

    /// Abandons the oldest packet-ins if they block the ring, of which more than half has been answered since. Returns their
    /// number.
    pub fn give_up_overtaken(&mut self) -> u64 {
        if self.room() > 0 || self.early_count < self.capacity / 2 {
            return 0;
        }
        let before = self.waiting();
        while self.room() < self.capacity / 4 {
            self.give_up_head();
        }
        before - self.waiting()
    }

    /// Abandons all outstanding packet-ins. Returns their number.
    pub fn give_up(&mut self) -> u64 {
        let before = self.waiting();
        while self.head.seq < self.sent {
            self.give_up_head();
        }
        before
    }

    fn give_up_head(&mut self) {
        self.set_early(self.head.seq, true);
        self.early_count += 1;
        self.advance();
    }

    /// Moves the head past all answered packet-ins.
    fn advance(&mut self) {
        while self.early_count > 0 && self.is_early(self.head.seq) {
            self.set_early(self.head.seq, false);
            self.early_count -= 1;
            self.head = self.head.next();
        }
        if let SendTimes::Clock(batches) = &mut self.times {
            while batches
                .front()
                .is_some_and(|batch| batch.end <= self.head.seq)
            {
                batches.pop_front();
            }
        }
    }

    fn sent_at_ns(&self, seq: u64) -> u64 {
        match &self.times {
            SendTimes::Clock(batches) => batches
                .get(batches.partition_point(|batch| batch.end <= seq))
                .map_or(u64::MAX, |batch| batch.at_ns),
            SendTimes::Schedule {
                first_ns,
                interval_ns,
            } => due_ns(*first_ns, *interval_ns, seq),
        }
    }

    fn is_early(&self, seq: u64) -> bool {
        let slot = seq & (self.capacity - 1);
        self.early_count > 0 && self.early[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    fn set_early(&mut self, seq: u64, early: bool) {
        let slot = seq & (self.capacity - 1);
        let (word, bit) = (&mut self.early[(slot / 64) as usize], 1 << (slot % 64));
        if early { *word |= bit } else { *word &= !bit }
    }
}

/// Returns the time when packet-in `seq` is due.
pub fn due_ns(first_ns: u64, interval_ns: f64, seq: u64) -> u64 {
    first_ns + (seq as f64 * interval_ns) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Addresses;
    use crate::packet_in::NO_BUFFER;

    fn hosts() -> Hosts {
        Hosts::new(10, Addresses::InTurn, 1)
    }

    fn at(seq: u64) -> Cursor {
        Cursor::at(seq, hosts())
    }

    fn sent(count: u64) -> Outstanding {
        let mut outstanding = Outstanding::new(64, hosts(), SendTimes::Clock(VecDeque::new()));
        outstanding.sent(count, 100);
        outstanding
    }

    #[test]
    fn records_ordered_replies_by_batch() {
        let mut outstanding = sent(3);
        outstanding.sent(5, 200);
        let mut latencies = Vec::new();
        let head = outstanding.head().skip(5);
        outstanding.answer_in_order(head, 1000, |latency_ns, count| {
            latencies.push((latency_ns, count))
        });
        assert_eq!(latencies, [(900, 3), (800, 2)]);
        assert_eq!((outstanding.waiting(), outstanding.head().seq), (3, 5));
        assert_eq!(outstanding.oldest_sent_ns(), Some(200));
        assert_eq!(outstanding.answer(5, 1000), (800, false));
        outstanding.give_up();
        assert_eq!(outstanding.oldest_sent_ns(), None);
    }

    #[test]
    fn early_replies_are_recorded_until_the_head_passes_them() {
        let mut outstanding = sent(3);
        assert_eq!(outstanding.answer(1, 150), (50, true));
        assert_eq!(outstanding.in_order_limit(), 0);
        assert_eq!(outstanding.find_buffer(2), BufferIdState::Answered);
        assert_eq!(outstanding.waiting(), 2);
        assert_eq!(outstanding.answer(0, 160), (60, false));
        assert_eq!((outstanding.head().seq, outstanding.waiting()), (2, 1));
        assert_eq!(outstanding.in_order_limit(), 1);
    }

    #[test]
    fn buffer_ids_are_waiting_answered_or_never_sent() {
        let mut outstanding = sent(2);
        assert_eq!(outstanding.find_buffer(1), BufferIdState::Waiting(at(0)));
        assert_eq!(outstanding.find_buffer(3), BufferIdState::Never);
        assert_eq!(outstanding.find_buffer(NO_BUFFER), BufferIdState::Never);
        outstanding.answer(0, 150);
        assert_eq!(outstanding.find_buffer(1), BufferIdState::Answered);
        assert_eq!(outstanding.find_xid(0), BufferIdState::Answered);
        assert_eq!(outstanding.find_xid(1), BufferIdState::Waiting(at(1)));
        assert_eq!(outstanding.find_xid(2), BufferIdState::Never);
        assert_eq!(outstanding.find_source(1), BufferIdState::Waiting(at(1)));
        assert_eq!(outstanding.find_source(0), BufferIdState::Never);
    }

    #[test]
    fn buffer_ids_wrap() {
        let mut outstanding = sent(0);
        for _ in 0..u64::from(BUFFER_IDS) / 100 {
            outstanding.sent(100, 0);
            outstanding.answer_in_order(outstanding.head().skip(100), 1, |_, _| ());
        }
        outstanding.sent(2, 5);
        assert_eq!(
            outstanding.find_buffer(1),
            BufferIdState::Waiting(at(u64::from(BUFFER_IDS)))
        );
        assert_eq!(outstanding.find_buffer(0), BufferIdState::Answered);
    }

    #[test]
    fn giving_up_frees_space() {
        let mut outstanding = sent(1024);
        (2..1000).for_each(|seq| assert!(outstanding.answer(seq, 150).1));
        assert_eq!((outstanding.room(), outstanding.waiting()), (0, 26));
        assert_eq!(outstanding.give_up_overtaken(), 2);
        assert_eq!(outstanding.head().seq, 1000);
        assert_eq!(outstanding.give_up_overtaken(), 0);
        assert_eq!(outstanding.give_up(), 24);
        assert_eq!((outstanding.waiting(), outstanding.room()), (0, 1024));
    }

    #[test]
    fn a_schedule_measures_from_the_due_time() {
        let times = SendTimes::Schedule {
            first_ns: 0,
            interval_ns: 10.0,
        };
        let mut outstanding = Outstanding::new(64, hosts(), times);
        outstanding.start(1000);
        outstanding.sent(3, 5000);
        let mut latencies = Vec::new();
        outstanding.answer_in_order(outstanding.head().skip(2), 2000, |latency, count| {
            latencies.push((latency, count))
        });
        assert_eq!(latencies, [(1000, 1), (990, 1)]);
        assert_eq!(outstanding.answer(2, 2000), (980, false));
    }
}
