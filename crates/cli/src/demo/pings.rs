//! A round of pings between all hosts, one pair at a time, so that users can watch it.

use super::meter::{Pair, percentile};
use std::time::Duration;
use urtica_net::{Net, NetError, PingId};

/// The time over which the requests are spread.
const SPREAD: Duration = Duration::from_millis(1_500);

/// The time to wait for a reply: longer than hosts need to resolve an address and wait for one.
const ANSWERED_WITHIN: Duration = Duration::from_millis(4_500);

/// A round of pings: a request from each host to each other.
#[derive(Default)]
pub struct PingRound {
    pairs: Vec<Pair>,
    begun_at: Duration,
    /// The round-trip times in the order of `pairs`, once answered.
    pings: Vec<(PingId, Option<Duration>)>,
}

impl PingRound {
    /// Starts a round.
    pub fn new(net: &Net) -> Self {
        let pairs = net
            .hosts()
            .flat_map(|from| net.hosts().map(move |to| (from, to)));
        Self {
            pairs: pairs.filter(|(from, to)| from != to).collect(),
            begun_at: net.now(),
            pings: Vec::new(),
        }
    }

    /// Sends the requests that are due, and checks which have been answered.
    ///
    /// # Errors
    /// An error of the network.
    pub fn advance(&mut self, net: &mut Net) -> Result<(), NetError> {
        for &(from, to) in &self.pairs[self.pings.len()..self.due(net.now())] {
            self.pings.push((net.start_ping(from, to, 1)?, None));
        }
        for (ping, round_trip) in &mut self.pings {
            if round_trip.is_none() {
                let report = net.ping_report(*ping)?;
                *round_trip = (report.received > 0).then_some(report.rtt_max);
            }
        }
        Ok(())
    }

    /// Returns the number of pairs, counted in both directions.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the number of pairs answered.
    pub fn answered(&self) -> usize {
        let answered = self
            .pings
            .iter()
            .filter(|(_, round_trip)| round_trip.is_some());
        answered.count()
    }

    /// Returns `true` if all requests have been answered.
    pub fn is_complete(&self) -> bool {
        self.answered() == self.len()
    }

    /// Returns `true` if no further replies are expected.
    pub fn is_done(&self, now: Duration) -> bool {
        self.is_complete() || now >= self.begun_at + SPREAD + ANSWERED_WITHIN
    }

    /// Returns each pair that has been pinged, and whether a reply has arrived.
    pub fn results(&self) -> impl Iterator<Item = (Pair, bool)> + '_ {
        let pings = self.pairs.iter().zip(&self.pings);
        pings.map(|(&pair, (_, round_trip))| (pair, round_trip.is_some()))
    }

    /// Returns the median round-trip time of pairs that had not exchanged a ping before in this round.
    pub fn median_of_first(&self) -> Option<Duration> {
        self.median(|(from, to)| from < to)
    }

    /// Returns the median round-trip time of all pairs.
    pub fn median_of_all(&self) -> Option<Duration> {
        self.median(|_| true)
    }

    fn median(&self, counts: impl Fn(Pair) -> bool) -> Option<Duration> {
        let pings = self.pairs.iter().zip(&self.pings);
        let round_trips =
            pings.filter_map(|(&pair, (_, round_trip))| round_trip.filter(|_| counts(pair)));
        percentile(&mut round_trips.collect::<Vec<_>>(), 0.5)
    }

    /// Returns the number of pings that are due by now.
    fn due(&self, now: Duration) -> usize {
        let passed = now.saturating_sub(self.begun_at).as_secs_f64() / SPREAD.as_secs_f64();
        ((self.len() as f64 * passed) as usize).clamp(self.pings.len(), self.len())
    }
}
