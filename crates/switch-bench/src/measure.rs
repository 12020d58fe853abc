//! The measured loop.
//!
//! **What.** Bursts, one after the other, for a given time. Nothing in between but a look at the clock every
//! [`BURSTS_PER_LOOK`] bursts, which is less than a thousandth of the time.

use super::forwarder::{Forwarder, Sent};
use super::measured_core::cycles;
use super::replay::{BURST, Replay};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Number of bursts between two readings of the clock.
const BURSTS_PER_LOOK: u64 = 256;

/// How long packets are forwarded before each reading, so that caches hold what this form needs and not what the one
/// before it did.
const LEAD_IN: Duration = Duration::from_millis(50);

/// The result of one run of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Packets taken in.
    pub packets: u64,
    /// Packets sent.
    pub sent: u64,
    /// Those taken in that the compiled form left to the plain one.
    pub plain: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// The cycles of the run, if there is a cycle counter.
    pub cycles: Option<u64>,
}

impl Reading {
    /// Million packets per second.
    pub fn mpps(&self) -> f64 {
        self.packets as f64 / self.elapsed.as_secs_f64() / 1e6
    }

    /// Cycles per packet.
    pub fn cycles_per_packet(&self) -> Option<f64> {
        Some(self.cycles? as f64 / self.packets as f64)
    }
}

/// A run: a forwarder, its packets, and its time.
pub struct Loop<'a> {
    /// The forwarder.
    pub forwarder: &'a mut dyn Forwarder,
    /// Where packets come from.
    pub replay: &'a mut Replay,
    /// When the switch's time began.
    pub epoch: Instant,
}

impl Loop<'_> {
    /// Runs for `length`, after a lead-in that is not counted.
    pub fn read(&mut self, length: Duration) -> Reading {
        self.run(LEAD_IN);
        self.run(length)
    }

    /// Runs for `length`.
    pub fn run(&mut self, length: Duration) -> Reading {
        let mut reading = Reading::default();
        let (start, first_cycles) = (Instant::now(), cycles());
        while reading.elapsed < length {
            let now = self.epoch.elapsed();
            for _ in 0..BURSTS_PER_LOOK {
                let sent = self.forwarder.forward(self.replay, now);
                reading.sent += u64::from(sent.out) + u64::from(sent.probe);
                reading.plain += u64::from(sent.plain);
            }
            reading.packets += BURSTS_PER_LOOK * BURST as u64;
            reading.elapsed = start.elapsed();
        }
        reading.cycles = first_cycles.and_then(|first| Some(cycles()? - first));
        reading
    }

    /// Runs for `length`, and tells how many cycles each burst took from being taken in to having been sent. Without a
    /// cycle counter there are none.
    pub fn time_bursts(&mut self, length: Duration) -> Histogram<u64> {
        let mut histogram = new_histogram();
        self.run(LEAD_IN);
        let start = Instant::now();
        while start.elapsed() < length {
            let now = self.epoch.elapsed();
            for _ in 0..BURSTS_PER_LOOK {
                let first = cycles();
                self.forwarder.forward(self.replay, now);
                if let (Some(first), Some(last)) = (first, cycles()) {
                    histogram.saturating_record(last - first);
                }
            }
        }
        histogram
    }

    /// Runs for `length`, and calls `changed` after each burst of which one frame more or fewer left by the probes'
    /// port than of the one before.
    pub fn watch_probes(&mut self, length: Duration, mut changed: impl FnMut()) {
        let mut before = Sent::default();
        let start = Instant::now();
        while start.elapsed() < length {
            let now = self.epoch.elapsed();
            for _ in 0..BURSTS_PER_LOOK {
                let sent = self.forwarder.forward(self.replay, now);
                if sent.probe != before.probe {
                    changed();
                }
                before = sent;
            }
        }
    }
}

/// Of numbers up to 2^40, with three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_max(1 << 40, 3).expect("bounds and digits that a histogram can have")
}

#[cfg(test)]
mod tests {
    use super::super::forwarder::Departure;
    use super::super::replay::Cells;
    use super::super::workload::FRAME_SIZE;
    use super::*;
    use std::sync::Arc;

    /// Sends all but one of each burst by one port, and that one by the probes' port for every fourth burst.
    struct Fake {
        bursts: u64,
    }

    impl Forwarder for Fake {
        fn forward(&mut self, replay: &mut Replay, _now: Duration) -> Sent {
            replay.receive(|_| {});
            self.bursts += 1;
            Sent {
                out: 30,
                probe: u32::from(self.bursts.is_multiple_of(4)),
                plain: 2,
            }
        }

        fn departures(&mut self, _replay: &mut Replay, _now: Duration) -> Vec<Departure> {
            Vec::new()
        }
    }

    fn with_loop<T>(body: impl FnOnce(&mut Loop) -> T) -> (T, u64) {
        let mut fake = Fake { bursts: 0 };
        let cells = Arc::new(Cells::new(&[[0; FRAME_SIZE]]).unwrap());
        let result = body(&mut Loop {
            forwarder: &mut fake,
            replay: &mut Replay::new(&cells),
            epoch: Instant::now(),
        });
        (result, fake.bursts)
    }

    #[test]
    fn a_run_counts_every_burst() {
        let (reading, bursts) = with_loop(|measured| measured.run(Duration::from_millis(2)));
        assert_eq!((reading.packets, reading.plain), (bursts * 32, bursts * 2));
        assert_eq!(reading.sent, bursts * 30 + bursts / 4);
        assert!(reading.elapsed >= Duration::from_millis(2));
        assert_eq!(reading.cycles.is_some(), cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn a_readings_lead_in_does_not_count() {
        let (reading, bursts) = with_loop(|measured| measured.read(Duration::from_millis(1)));
        assert!(reading.packets < bursts * 32);
    }

    #[test]
    fn probes_are_seen_to_change() {
        let mut changes = 0;
        let ((), bursts) =
            with_loop(|measured| measured.watch_probes(Duration::from_millis(1), || changes += 1));
        // Once there and once back for every fourth burst; the last one does not come back.
        assert_eq!(changes, bursts / 4 * 2 - 1);
    }

    #[test]
    fn rates_are_of_packets_and_time() {
        let reading = Reading {
            packets: 3_000_000,
            sent: 3_000_000,
            plain: 0,
            elapsed: Duration::from_millis(1500),
            cycles: Some(600_000_000),
        };
        assert_eq!(reading.mpps(), 2.0);
        assert_eq!(reading.cycles_per_packet(), Some(200.0));
    }
}
