//! Each host pings each, a pair at a time, and it can be watched.

use super::meter::{Pair, percentile};
use std::time::Duration;
use urtica_net::{Net, NetError, PingId};

/// How long it takes to begin them all.
const SPREAD: Duration = Duration::from_millis(1_500);

/// How long an answer is waited for: longer than hosts look for an address and wait for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_millis(4_500);

/// One round: a request from each host to each other one.
#[derive(Default)]
pub struct PingRound {
    pairs: Vec<Pair>,
    begun_at: Duration,
    /// Each with its round trip once it is answered, in the order of `pairs`.
    pings: Vec<(PingId, Option<Duration>)>,
}

impl PingRound {
    /// A round that begins now.
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

    /// Sends the requests that are due, and looks which have been answered.
    ///
    /// # Errors
    /// What the network refuses.
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

    /// How many pairs there are, counted both ways.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// How many have been answered.
    pub fn answered(&self) -> usize {
        let answered = self
            .pings
            .iter()
            .filter(|(_, round_trip)| round_trip.is_some());
        answered.count()
    }

    /// Whether all have been answered.
    pub fn is_complete(&self) -> bool {
        self.answered() == self.len()
    }

    /// Whether nothing more is to be expected.
    pub fn is_done(&self, now: Duration) -> bool {
        self.is_complete() || now >= self.begun_at + SPREAD + ANSWERED_WITHIN
    }

    /// Each pair that has been pinged, and whether it has answered.
    pub fn results(&self) -> impl Iterator<Item = (Pair, bool)> + '_ {
        let pings = self.pairs.iter().zip(&self.pings);
        pings.map(|(&pair, (_, round_trip))| (pair, round_trip.is_some()))
    }

    /// The median round trip of those pairs of which neither had pinged the other before in this round.
    pub fn median_of_first(&self) -> Option<Duration> {
        self.median(|(from, to)| from < to)
    }

    /// The median round trip.
    pub fn median_of_all(&self) -> Option<Duration> {
        self.median(|_| true)
    }

    fn median(&self, counts: impl Fn(Pair) -> bool) -> Option<Duration> {
        let pings = self.pairs.iter().zip(&self.pings);
        let round_trips =
            pings.filter_map(|(&pair, (_, round_trip))| round_trip.filter(|_| counts(pair)));
        percentile(&mut round_trips.collect::<Vec<_>>(), 0.5)
    }

    /// How many should have been sent by now.
    fn due(&self, now: Duration) -> usize {
        let passed = now.saturating_sub(self.begun_at).as_secs_f64() / SPREAD.as_secs_f64();
        ((self.len() as f64 * passed) as usize).clamp(self.pings.len(), self.len())
    }
}
