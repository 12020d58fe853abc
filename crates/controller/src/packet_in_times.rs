//! The durations of packet-ins in each program.
//!
//! **What.** The time from the return of a read of the switch's socket until the program had written its answer to the
//! output, which is sent at the end of the batch. Time in the socket's queues, or in a kernel half, is not included.
//!
//! **How.** The clock is read when a read returns, and after the last packet-in of each run, which waited longest: its time
//! counts for the whole run. If several programs see it, the clock is read after each of them.
//!
//! **Cost.** Two readings of the clock for a batch, for any number of messages; none unless enabled
//! ([`Controller::time_packet_ins`](crate::Controller::time_packet_ins)).

use crate::ProgramId;
use crate::counters::{BusyTimes, Counter};
use std::time::{Duration, Instant};

/// The durations of packet-ins in one program, from the read to the answer.
///
/// Thread-safety: each shard writes its own part; readers sum the parts.
#[derive(Debug)]
pub struct PacketInTimes {
    program: ProgramId,
    name: Option<String>,
    started: Instant,
    shards: Box<[OfShard]>,
}

/// The counts of one shard, in its own cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct OfShard {
    classes: BusyTimes,
    sum_ns: Counter,
}

impl PacketInTimes {
    pub(crate) fn new(program: ProgramId, name: Option<&str>, shards: usize) -> Self {
        Self {
            program,
            name: name.map(str::to_owned),
            started: Instant::now(),
            shards: (0..shards).map(|_| OfShard::default()).collect(),
        }
    }

    /// Counts packet-ins that were read at `read_at` and are answered now. Only for the thread of this shard.
    #[inline(never)] // so that the loop over packet-ins stays short where nothing is timed
    pub(crate) fn add(&self, shard: usize, count: u64, read_at: Instant) {
        let nanoseconds = read_at.elapsed().as_nanos() as u64;
        let shard = &self.shards[shard];
        shard.sum_ns.add(nanoseconds.saturating_mul(count));
        shard.classes.add_all(nanoseconds, count);
    }

    /// Returns the program.
    pub fn program(&self) -> ProgramId {
        self.program
    }

    /// Returns its name, if it has one ([`Program::program_name`](crate::Program::program_name)).
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the time when the program started: when its controller did, or when it was added or replaced another.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        let shards = self.shards.iter();
        Duration::from_nanos(shards.map(|shard| shard.sum_ns.get()).sum())
    }

    /// Returns the exclusive upper bound in nanoseconds and the count of each class, in order. The last class has no upper
    /// bound.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        BusyTimes::sums(self.shards.iter().map(|shard| &shard.classes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_shards_are_added() {
        let id = ProgramId::of_cookie(1 << 56).unwrap();
        let times = PacketInTimes::new(id, Some("l2"), 2);
        let second_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        times.add(0, 3, second_ago);
        times.add(1, 2, second_ago);
        assert_eq!(times.iter().map(|(_, count)| count).sum::<u64>(), 5);
        assert!(times.sum() >= Duration::from_secs(5));
        let shortest = times.iter().find(|(_, count)| *count > 0).unwrap();
        assert!(shortest.0 >= 1_000_000_000, "{shortest:?}");
        assert_eq!(times.name(), Some("l2"));
        assert_eq!(times.program(), id);
    }

    #[test]
    fn programs_without_answers_have_empty_classes() {
        let id = ProgramId::of_cookie(2 << 56).unwrap();
        let times = PacketInTimes::new(id, None, 1);
        assert!(times.iter().all(|(_, count)| count == 0));
        assert_eq!(times.sum(), Duration::ZERO);
    }
}
