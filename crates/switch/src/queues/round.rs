//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) over queues identified by index.
//!
//! **How.** Queues with frames form a ring. At the start of its turn, a queue is granted its quantum of bytes. It sends frames
//! while its deficit lasts, and keeps the rest for its next turn. A queue without frames leaves the ring, and loses its
//! deficit.
//!
//! **Cost.** A frame needs one step if quanta are at least a frame long. Queues that may not send at present are skipped, each
//! once per frame.

use std::collections::VecDeque;

/// The ring.
#[derive(Debug, Default)]
pub(super) struct Round {
    ring: VecDeque<usize>,
    /// The deficits, by queue index.
    deficits: Vec<u64>,
    /// Whether the first queue of the ring has already been granted its quantum in this turn.
    is_granted: bool,
}

/// The properties of a queue that determine the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Whether the queue may send now.
    pub may_send: bool,
    /// The length of its first frame, in bytes.
    pub bytes: u64,
    /// The number of bytes that it is granted per turn; at least 1.
    pub quantum: u64,
}

impl Round {
    /// Creates a ring for queues with the indices `0..count`.
    pub fn new(count: usize) -> Self {
        Self {
            ring: VecDeque::new(),
            deficits: vec![0; count],
            is_granted: false,
        }
    }

    /// Adds a queue that now has a frame.
    pub fn join(&mut self, place: usize) {
        self.ring.push_back(place);
    }

    /// Removes a queue that no longer has a frame.
    pub fn leave(&mut self, place: usize) {
        if self.ring.front() == Some(&place) {
            self.is_granted = false;
        }
        self.ring.retain(|&one| one != place);
        self.deficits[place] = 0;
    }

    /// Chooses the queue that sends next; `None` if no queue may send. Repeated calls choose the same queue, unless it may no
    /// longer send.
    pub fn choose(&mut self, candidate: impl Fn(usize) -> Candidate) -> Option<usize> {
        if !self.ring.iter().any(|&place| candidate(place).may_send) {
            return None;
        }
        loop {
            let &place = self.ring.front()?;
            let Candidate {
                may_send,
                bytes,
                quantum,
            } = candidate(place);
            if may_send {
                let deficit = &mut self.deficits[place];
                if !std::mem::replace(&mut self.is_granted, true) {
                    *deficit += quantum.max(1);
                }
                if *deficit >= bytes {
                    return Some(place);
                }
            }
            self.ring.rotate_left(1);
            self.is_granted = false;
        }
    }

    /// Subtracts the frame that the chosen queue has sent.
    pub fn charge(&mut self, place: usize, bytes: u64) {
        self.deficits[place] = self.deficits[place].saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of bytes that each of these queues, which always have frames, sends within `count` frames.
    fn run(queues: &[Candidate], count: usize) -> Vec<u64> {
        let mut round = Round::new(queues.len());
        (0..queues.len()).for_each(|place| round.join(place));
        let mut sent = vec![0; queues.len()];
        for _ in 0..count {
            let place = round.choose(|place| queues[place]).unwrap();
            assert_eq!(round.choose(|place| queues[place]), Some(place));
            round.charge(place, queues[place].bytes);
            sent[place] += queues[place].bytes;
        }
        sent
    }

    fn queue(bytes: u64, quantum: u64) -> Candidate {
        Candidate {
            may_send: true,
            bytes,
            quantum,
        }
    }

    #[test]
    fn bytes_are_shared_by_quanta_whatever_the_lengths() {
        let sent = run(
            &[queue(60, 3200), queue(1514, 1600), queue(9000, 1600)],
            100_000,
        );
        let total: u64 = sent.iter().sum();
        let shares = sent.iter().map(|&bytes| bytes as f64 / total as f64);
        for (share, expected) in shares.zip([0.5, 0.25, 0.25]) {
            assert!((share - expected).abs() < 0.005, "{share}, not {expected}");
        }
    }

    #[test]
    fn quanta_shorter_than_a_frame_add_up() {
        let sent = run(&[queue(1514, 64), queue(1514, 640)], 11_000);
        assert!(sent[1].abs_diff(10 * sent[0]) < 20 * 1514, "{sent:?}");
    }

    #[test]
    fn queues_that_may_not_send_are_skipped() {
        let silent = Candidate {
            may_send: false,
            ..queue(100, 1600)
        };
        assert_eq!(run(&[silent, queue(100, 1600), silent], 50), [0, 5000, 0]);
        let mut round = Round::new(1);
        assert_eq!(round.choose(|_| silent), None, "nobody has a frame");
        round.join(0);
        assert_eq!(round.choose(|_| silent), None);
    }

    #[test]
    fn a_leaving_queue_loses_its_deficit() {
        let queues = [queue(1000, 1600), queue(1000, 1600)];
        let mut round = Round::new(2);
        round.join(0);
        round.join(1);
        assert_eq!(round.choose(|place| queues[place]), Some(0));
        round.charge(0, 1000);
        round.leave(0);
        assert_eq!(round.deficits, [0, 0]);
        assert_eq!(round.choose(|place| queues[place]), Some(1));
        round.join(0);
        round.leave(1);
        assert_eq!(round.choose(|place| queues[place]), Some(0));
        round.leave(0);
        assert_eq!(round.choose(|place| queues[place]), None);
    }
}
