//! The measured loop.
//!
//! **What.** Forwards burst after burst for a given time. Between bursts it only reads the clock every
//! [`BURSTS_PER_LOOK`] bursts, which costs less than a thousandth of the time.

use super::forwarder::{Forwarder, Sent};
use super::measured_core::cycles;
use super::replay::{BURST, Replay};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Number of bursts between two readings of the clock.
const BURSTS_PER_LOOK: u64 = 256;

/// The time of forwarding before each reading, which fills the caches with this form's data instead of the last form's.
const LEAD_IN: Duration = Duration::from_millis(50);

/// The result of one run of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Received packets.
    pub packets: u64,
    /// Packets sent.
    pub sent: u64,
    /// Received packets that the compiled form left to the plain form.
    pub plain: u64,
    /// The duration of the run.
    pub elapsed: Duration,
    /// The cycles of the run, if the machine has a cycle counter.
    pub cycles: Option<u64>,
}

impl Reading {
    /// Returns million packets per second.
    pub fn mpps(&self) -> f64 {
        self.packets as f64 / self.elapsed.as_secs_f64() / 1e6
    }

    /// Returns cycles per packet.
    pub fn cycles_per_packet(&self) -> Option<f64> {
        Some(self.cycles? as f64 / self.packets as f64)
    }
}

/// A run: a forwarder, its packets, and its time.
pub struct Loop<'a> {
    /// The forwarder.
    pub forwarder: &'a mut dyn Forwarder,
    /// The source of packets.
    pub replay: &'a mut Replay,
    /// The start of the switch's time.
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

    /// Runs for `length`, and returns the cycles of each burst from receiving to sending; empty without a cycle
    /// counter.
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

    /// Runs for `length`, and calls `changed` after each burst whose number of frames sent by the probes' port differs from
    /// that of the burst before.
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

/// Creates a histogram of numbers up to 2^40, with three significant digits.
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

    /// Sends 30 frames of each burst by one port, and one by the probes' port in every fourth burst.
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
    fn changes_of_probes_are_noticed() {
        let mut changes = 0;
        let ((), bursts) =
            with_loop(|measured| measured.watch_probes(Duration::from_millis(1), || changes += 1));
        // One change and one back for every fourth burst, except the last change back.
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
