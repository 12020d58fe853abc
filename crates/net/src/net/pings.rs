//! Pings between hosts.

use super::{Net, NetError};
use crate::HostId;
use crate::host::{ANSWER_WITHIN, PingReport};
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The interval between requests.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time to resolve an address, after which requests are lost.
const LOOK_UP: Duration = Duration::from_secs(3);

/// The interval between the first requests of different pairs.
const STAGGER: Duration = Duration::from_micros(100);

/// A ping that has been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingId {
    host: HostId,
    identifier: u16,
}

/// A ping of many pairs, from its start until it is in the report.
struct OpenPing {
    pair: (HostId, HostId),
    id: PingId,
    started: Duration,
}

/// The results of each host pinging each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingAllReport {
    /// The number of pairs, counted in both directions.
    pub pairs: usize,
    /// The number of pairs that have pinged: all pairs, unless the run was interrupted.
    pub sent: usize,
    /// Whether the run was interrupted before all pairs had an answer, or enough time for one.
    pub is_interrupted: bool,
    /// The pairs without an answer: sender and receiver.
    pub failed: Vec<(HostId, HostId)>,
    /// The number of duplicate replies.
    pub duplicates: u32,
    /// The longest round-trip time.
    pub rtt_max: Duration,
}

impl PingAllReport {
    /// Returns `true` if every host reached every other.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && !self.is_interrupted
    }
}

/// Formats the summary like Mininet's `pingall`.
impl fmt::Display for PingAllReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.sent - self.failed.len();
        if self.is_interrupted {
            let (sent, pairs) = (self.sent, self.pairs);
            return write!(
                f,
                "Interrupted: {received} of {sent} received so far, of {pairs} to be sent"
            );
        }
        let dropped = 100 * self.failed.len() / self.sent.max(1);
        write!(
            f,
            "Results: {dropped}% dropped ({received}/{} received)",
            self.sent
        )
    }
}

impl Net {
    /// Pings once, and waits for the answer.
    ///
    /// # Errors
    /// [`NetError`] if there is no such host, a watcher stops the network, or the run is interrupted. A lost ping is not an
    /// error.
    pub fn ping(&mut self, from: HostId, to: HostId) -> Result<PingReport, NetError> {
        let ping = self.start_ping(from, to, 1)?;
        self.finish_pings(&[ping])?;
        self.ping_report(ping)
    }

    /// Makes each host ping each other, nearly at the same time, and waits for the answers.
    ///
    /// # Errors
    /// [`NetError::Broken`] if a watcher stops the network. An interruption is not an error: the report is then
    /// incomplete.
    ///
    /// Duplicate replies are counted for one second after the request: only the pings of that second are remembered.
    pub fn ping_all(&mut self) -> Result<PingAllReport, NetError> {
        let hosts = self.hosts().len();
        let all = self.hosts();
        let pairs = all.flat_map(move |from| (0..hosts as u32).map(move |to| (from, HostId(to))));
        let count = hosts * hosts.saturating_sub(1);
        self.ping_each(count, pairs.filter(|(from, to)| from != to))
    }

    /// Makes hosts ping others, nearly at the same time, and waits for the answers.
    ///
    /// # Errors
    /// [`NetError`] if there is no such host, or a watcher stops the network. An interruption is not an error: the
    /// report is then incomplete.
    pub fn ping_pairs(&mut self, pairs: &[(HostId, HostId)]) -> Result<PingAllReport, NetError> {
        self.ping_each(pairs.len(), pairs.iter().copied())
    }

    fn ping_each(
        &mut self,
        count: usize,
        pairs: impl Iterator<Item = (HostId, HostId)>,
    ) -> Result<PingAllReport, NetError> {
        let mut all = PingAllReport {
            pairs: count,
            ..PingAllReport::default()
        };
        let mut open = VecDeque::new();
        let ended = self.send_pings(pairs, &mut open, &mut all);
        all.is_interrupted = match ended {
            Err(NetError::Interrupted(_)) => true,
            other => other.map(|()| false)?,
        };
        for ping in open {
            self.take_report(&ping, &mut all)?;
        }
        Ok(all)
    }

    /// Makes hosts ping others, and waits for the answers. The pings that remain in `open` have not been reported.
    fn send_pings(
        &mut self,
        pairs: impl Iterator<Item = (HostId, HostId)>,
        open: &mut VecDeque<OpenPing>,
        all: &mut PingAllReport,
    ) -> Result<(), NetError> {
        for pair in pairs {
            let (started, id) = (self.now(), self.start_ping(pair.0, pair.1, 1)?);
            open.push_back(OpenPing { pair, id, started });
            all.sent += 1;
            self.run_for(STAGGER);
            self.check_time_passes()?;
            while let Some(oldest) = open.pop_front() {
                if !self.is_over(&oldest) {
                    open.push_front(oldest);
                    break;
                }
                self.take_report(&oldest, all)?;
            }
        }
        let left: Vec<_> = open.iter().map(|ping| ping.id).collect();
        self.finish_pings(&left)
    }

    /// Returns `true` if a ping is finished and can have no more duplicate replies.
    fn is_over(&mut self, ping: &OpenPing) -> bool {
        let now = self.now();
        let pings = self.hosts[ping.id.host.place()].host.pings();
        ping.started + ANSWER_WITHIN <= now && pings.is_done(ping.id.identifier, now)
    }

    fn take_report(&mut self, ping: &OpenPing, all: &mut PingAllReport) -> Result<(), NetError> {
        let report = self.ping_report(ping.id)?;
        if report.received == 0 {
            all.failed.push(ping.pair);
        }
        all.duplicates += report.duplicates;
        all.rtt_max = all.rtt_max.max(report.rtt_max);
        let pings = self.hosts[ping.id.host.place()].host.pings();
        pings.finish(ping.id.identifier);
        Ok(())
    }

    /// Makes new pings use IPv6, to the link-local address derived from a host's MAC address, or IPv4, which is the default.
    pub fn ping_over_ipv6(&mut self, over_ipv6: bool) {
        self.pings_over_ipv6 = over_ipv6;
    }

    /// Makes a host send echo requests, one per second as time advances.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn start_ping(&mut self, from: HostId, to: HostId, count: u32) -> Result<PingId, NetError> {
        self.check_host(from)?;
        self.check_host(to)?;
        let dst = &self.hosts[to.place()].host;
        let dst = match self.pings_over_ipv6 {
            true => dst.ipv6().into(),
            false => dst.ipv4().into(),
        };
        self.start_ping_to(from, dst, count)
    }

    /// Returns `true` if new pings use IPv6.
    pub(crate) fn pings_use_ipv6(&self) -> bool {
        self.pings_over_ipv6
    }

    /// Like [`Net::start_ping`], to any address.
    pub(crate) fn start_ping_to(
        &mut self,
        from: HostId,
        dst: IpAddr,
        count: u32,
    ) -> Result<PingId, NetError> {
        self.check_host(from)?;
        let now = self.now();
        let host = &mut self.hosts[from.place()].host;
        let identifier = host.start_ping(dst, count, INTERVAL, now);
        self.wake_host(from);
        Ok(PingId {
            host: from,
            identifier,
        })
    }

    /// Returns the results of a ping so far.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn ping_report(&mut self, ping: PingId) -> Result<PingReport, NetError> {
        self.check_host(ping.host)?;
        let pings = self.hosts[ping.host.place()].host.pings();
        pings.report(ping.identifier).ok_or(NetError::NoSuchId {
            kind: "ping",
            id: ping.identifier.into(),
        })
    }

    /// Advances the time until these pings are finished.
    fn finish_pings(&mut self, pings: &[PingId]) -> Result<(), NetError> {
        let mut left = pings.to_vec();
        let are_done = |net: &mut Self| {
            let now = net.now();
            left.retain(|ping| {
                let pings = net.hosts[ping.host.place()].host.pings();
                !pings.is_done(ping.identifier, now)
            });
            left.is_empty()
        };
        self.run_until(are_done, LOOK_UP + ANSWER_WITHIN);
        self.check_time_passes()
    }
}
