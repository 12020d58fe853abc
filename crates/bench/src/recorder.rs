//! The measurements of a load thread: latency, the number outstanding over time, and its CPU time.

use std::time::Instant;

use hdrhistogram::Histogram;

use crate::controller_process::SchedTimes;

/// The highest latency in the histogram, as which longer ones count.
const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits in the histogram.
const DIGITS: u8 = 3;

/// A clock of nanoseconds since the load started, which all threads share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// Returns the time.
    #[inline]
    pub fn now_ns(self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

/// Creates an empty histogram of latencies in nanoseconds.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NS, DIGITS)
        .expect("constant bounds that hdrhistogram accepts")
}

/// A recorder of a thread's load between [`Recorder::begin`] and [`Recorder::end`].
pub struct Recorder {
    latency: Histogram<u64>,
    latency_sum_ns: u128,
    /// The number of packet-ins outstanding now, its integral over time, and the end of that integral.
    waiting: u64,
    waiting_ns: u128,
    waiting_until_ns: u64,
    /// The total delay with which due packet-ins were noticed, and their number.
    late_ns: u128,
    due: u64,
    sched: SchedTimes,
    begun_ns: u64,
    measuring: bool,
}

/// The measurements of a [`Recorder`].
pub struct Recording {
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// The exact sum of the latencies.
    pub latency_sum_ns: u128,
    /// The total delay of packet-ins that were sent late because the load thread woke up late.
    pub waiting_ns: u128,
    /// The total delay of packet-ins that were sent after they were due because the load thread woke up late.
    pub late_ns: u128,
    /// The number of packet-ins that were due by a schedule.
    pub due: u64,
    /// The duration of the measurement.
    pub elapsed_ns: u64,
    /// The thread's times during the measurement.
    pub sched: SchedTimes,
}

impl Recorder {
    /// Creates a recorder that is not measuring yet.
    pub fn new() -> Self {
        Self {
            latency: latency_histogram(),
            latency_sum_ns: 0,
            waiting: 0,
            waiting_ns: 0,
            waiting_until_ns: 0,
            late_ns: 0,
            due: 0,
            sched: SchedTimes::default(),
            begun_ns: 0,
            measuring: false,
        }
    }

    /// Starts the measurement.
    pub fn begin(&mut self, now_ns: u64) {
        self.set_waiting(self.waiting, now_ns);
        (self.waiting_ns, self.begun_ns, self.sched) = (0, now_ns, SchedTimes::of_this_thread());
        self.measuring = true;
    }

    /// Ends the measurement. If it was not started, the recording is empty.
    pub fn end(mut self, now_ns: u64) -> Recording {
        if !self.measuring {
            self.begin(now_ns);
        }
        self.set_waiting(self.waiting, now_ns);
        Recording {
            latency: self.latency,
            latency_sum_ns: self.latency_sum_ns,
            waiting_ns: self.waiting_ns,
            late_ns: self.late_ns,
            due: self.due,
            elapsed_ns: now_ns - self.begun_ns,
            sched: SchedTimes::of_this_thread().since(self.sched),
        }
    }

    /// Records `count` replies with a latency of `latency_ns` each.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, count: u64) {
        if self.measuring {
            self.latency.saturating_record_n(latency_ns.max(1), count);
            self.latency_sum_ns += u128::from(latency_ns) * u128::from(count);
        }
    }

    /// Notes that `count` further packet-ins are outstanding.
    pub fn add_waiting(&mut self, count: u64, now_ns: u64) {
        self.set_waiting(self.waiting + count, now_ns);
    }

    /// Notes that another packet-in is outstanding since it was due, which is earlier than now if the load thread woke up late.
    pub fn add_due(&mut self, due_ns: u64, now_ns: u64) {
        self.add_waiting(1, now_ns);
        if self.measuring {
            self.waiting_ns += u128::from(now_ns.saturating_sub(due_ns.max(self.begun_ns)));
            self.late_ns += u128::from(now_ns.saturating_sub(due_ns));
            self.due += 1;
        }
    }

    /// Notes that `count` packet-ins are no longer outstanding.
    pub fn remove_waiting(&mut self, count: u64, now_ns: u64) {
        self.set_waiting(self.waiting.saturating_sub(count), now_ns);
    }

    fn set_waiting(&mut self, waiting: u64, now_ns: u64) {
        self.waiting_ns +=
            u128::from(self.waiting) * u128::from(now_ns.saturating_sub(self.waiting_until_ns));
        self.waiting_until_ns = self.waiting_until_ns.max(now_ns);
        self.waiting = waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outstanding_is_weighted_by_time() {
        let mut recorder = Recorder::new();
        recorder.add_waiting(4, 0);
        recorder.begin(100);
        recorder.remove_waiting(2, 150);
        recorder.add_waiting(1, 200);
        let recording = recorder.end(300);
        assert_eq!(recording.waiting_ns, 4 * 50 + 2 * 50 + 3 * 100);
        assert_eq!(recording.elapsed_ns, 200);
    }

    #[test]
    fn due_packet_ins_wait_since_they_were_due() {
        let mut recorder = Recorder::new();
        recorder.begin(100);
        recorder.add_due(140, 150);
        recorder.remove_waiting(1, 170);
        let recording = recorder.end(200);
        assert_eq!(
            (recording.waiting_ns, recording.late_ns, recording.due),
            (30, 10, 1)
        );
    }

    #[test]
    fn percentiles_are_exact_to_three_digits() {
        let mut recorder = Recorder::new();
        recorder.record(5, 1);
        recorder.begin(0);
        (1..=1000).for_each(|us| recorder.record(us * 1000, 1));
        let recording = recorder.end(1);
        assert_eq!(recording.latency.len(), 1000);
        assert_eq!(recording.latency_sum_ns, 500_500_000);
        let p50 = recording.latency.value_at_quantile(0.5) as f64;
        assert!((p50 / 500_000.0 - 1.0).abs() < 0.002, "{p50}");
    }
}
