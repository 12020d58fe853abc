//! Budgets of flooded packets to unknown hosts, one per ingress port.
//!
//! **Why.** A packet to an unknown single host is flooded, as by a bridge. A host that sends thousands of packets a second to
//! addresses that do not exist would load all other hosts, and all switches' connections.
//!
//! **What.** Each ingress port has a token bucket. Packets that exceed it are dropped, counted, and logged once per
//! [`EVENT_INTERVAL`] and port. Packets to known hosts and to groups are not limited here: the former are not flooded, and
//! address resolution needs the latter.
//!
//! **Bound.** A switch's handler has at most one bucket for each of its ports, and one more.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use urtica_controller::{Switch, SwitchInfo};
use urtica_log::{Rate, TokenBucket};
use urtica_services::EVENT_INTERVAL;
use urtica_topology::PortId;
use urtica_wire::{MacAddr, PacketIn, PortNo};

/// The default number of packets a second: enough for a stream to a host that is silent, or has moved.
const PER_SECOND: u32 = 1_000;

/// The seconds for which a bucket without an explicit burst saves tokens.
const SAVED_S: u32 = 2;

/// The maximum number of packets to unknown hosts that are flooded from one ingress port. Text: packets per second, or
/// packets per second and a burst as in `1000,2000`, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodLimit(Option<Rate>);

impl FloodLimit {
    /// No limit: floods all packets.
    pub const NONE: Self = Self(None);

    /// Creates a limit of `per_second` packets a second after a burst of `burst` packets.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self(Some(Rate::per_second(per_second, burst)))
    }

    /// Returns the burst, and the interval between further packets; `None` without a limit.
    pub fn burst_and_interval(self) -> Option<(u32, Duration)> {
        self.0.map(|rate| (rate.burst(), rate.interval()))
    }
}

impl Default for FloodLimit {
    /// Returns 1,000 packets a second and a burst of 2,000. While tables are empty, each conversation of a host floods one or
    /// two packets.
    fn default() -> Self {
        Self::new(PER_SECOND, PER_SECOND * SAVED_S)
    }
}

/// The error for an invalid [`FloodLimit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a limit of flooded packets; expected packets per second, such as 1000, with a burst, such as 1000,2000, or none"
)]
pub struct ParseFloodLimitError {
    /// The given text.
    pub text: String,
}

impl FromStr for FloodLimit {
    type Err = ParseFloodLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let (per_second, burst) = match text.split_once(',') {
            Some((per_second, burst)) => (per_second.parse().ok(), burst.parse().ok()),
            None => {
                let per_second = text.parse().ok();
                let saved = |rate: u32| rate.saturating_mul(SAVED_S);
                (per_second, per_second.map(saved))
            }
        };
        let limit = per_second
            .zip(burst)
            .map(|(rate, burst)| Self::new(rate, burst));
        limit.ok_or_else(|| ParseFloodLimitError {
            text: text.to_owned(),
        })
    }
}

/// A program's limit, and the number of packets that exceeded it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FloodBudget {
    limit: FloodLimit,
    dropped: Arc<AtomicU64>,
}

impl FloodBudget {
    /// Creates the budget of a program with this limit.
    pub fn new(limit: FloodLimit) -> Self {
        Self {
            limit,
            dropped: Arc::default(),
        }
    }

    /// Creates the budgets of a switch's ports.
    pub fn of_switch(&self) -> PortBudgets {
        PortBudgets {
            program: self.clone(),
            ports: BTreeMap::new(),
        }
    }

    /// Returns the number of packets that were not flooded.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The budgets of one switch's ports. They belong to its handler, so no port's packets delay another's.
#[derive(Debug)]
pub(crate) struct PortBudgets {
    program: FloodBudget,
    ports: BTreeMap<PortNo, PortBudget>,
}

#[derive(Debug)]
struct PortBudget {
    bucket: TokenBucket,
    /// The number of packets dropped since the last log line.
    untold: u64,
    told: Option<Instant>,
}

impl PortBudgets {
    /// Returns `true` if a packet whose destination is unknown may be flooded.
    #[inline]
    pub fn admit(&mut self, switch: &Switch, packet: &PacketIn) -> bool {
        self.admit_from(packet.in_port(), packet.eth_dst(), switch)
    }

    /// Accepts no packet-in: a reference to it would force handlers to store each one in memory, even for known hosts.
    #[inline(never)]
    fn admit_from(&mut self, in_port: PortNo, eth_dst: MacAddr, switch: &Switch) -> bool {
        let Some(rate) = self.program.limit.0 else {
            return true;
        };
        if eth_dst.is_multicast() {
            return true;
        }
        let (info, now) = (switch.info(), switch.now());
        let port_no = match info.port(in_port) {
            Some(_) => in_port,
            None => PortNo::ANY,
        };
        self.forget_removed(info);
        let Some(dropped) = self.take(port_no, rate, now) else {
            return true;
        };
        if dropped > 0 {
            let port = PortId::new(info.datapath_id, port_no);
            urtica_log::warn!(about: port, %port, dropped, "too many packets to unknown hosts; dropping packets above the flood limit");
        }
        false
    }

    /// Takes one of a port's tokens. If it has none, returns the number of dropped packets to log, or 0.
    fn take(&mut self, port_no: PortNo, rate: Rate, now: Instant) -> Option<u64> {
        let port = self.ports.entry(port_no).or_insert_with(|| PortBudget {
            bucket: TokenBucket::new(now),
            untold: 0,
            told: None,
        });
        if port.bucket.take(rate, now) {
            return None;
        }
        self.program.dropped.fetch_add(1, Ordering::Relaxed);
        port.untold += 1;
        if port.told.is_some_and(|told| now < told + EVENT_INTERVAL) {
            return Some(0);
        }
        port.told = Some(now);
        Some(std::mem::take(&mut port.untold))
    }

    /// Forgets the budgets of removed ports if there are more budgets than ports.
    fn forget_removed(&mut self, info: &SwitchInfo) {
        if self.ports.len() > info.ports.len() + 1 {
            self.ports
                .retain(|port_no, _| info.port(*port_no).is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 10;
    const BURST: u32 = 30;

    fn budgets() -> (FloodBudget, PortBudgets, Rate) {
        let budget = FloodBudget::new(FloodLimit::new(RATE, BURST));
        let ports = budget.of_switch();
        (budget, ports, Rate::per_second(RATE, BURST))
    }

    #[test]
    fn each_port_has_its_own_burst_and_rate() {
        let (budget, mut ports, rate) = budgets();
        let start = Instant::now();
        let mut flood = |port, ms: u64| {
            let now = start + Duration::from_millis(ms);
            let sent = (0..1_000).filter(|_| ports.take(PortNo(port), rate, now).is_none());
            sent.count() as u32
        };
        assert_eq!(flood(1, 0), BURST);
        assert_eq!(flood(1, 1_000), RATE);
        assert_eq!(flood(2, 1_000), BURST);
        let all = 3_000 - u64::from(2 * BURST + RATE);
        assert_eq!(budget.dropped(), all);
    }

    #[test]
    fn drops_are_counted_and_logged_once_per_interval() {
        let (_, mut ports, rate) = budgets();
        let start = Instant::now();
        let mut logged = |times: u32, now: Instant| -> Vec<u64> {
            let taken = (0..times).filter_map(|_| ports.take(PortNo(1), rate, now));
            taken.filter(|dropped| *dropped > 0).collect()
        };
        assert_eq!(logged(BURST + 100, start), [1]);
        // After this time it has its burst again.
        assert_eq!(logged(BURST + 5, start + EVENT_INTERVAL), [100]);
        assert_eq!(logged(5, start + EVENT_INTERVAL), []);
    }

    #[test]
    fn parses_limits_and_rejects_others() {
        for (text, limit) in [
            ("none", FloodLimit::NONE),
            ("1000", FloodLimit::default()),
            ("1000,2000", FloodLimit::default()),
            ("0,1", FloodLimit::new(0, 1)),
        ] {
            assert_eq!(text.parse(), Ok(limit));
        }
        for text in ["", "many", "1,", ",1", "-1", "1,2,3", "5000000000"] {
            let error = text.parse::<FloodLimit>().unwrap_err().to_string();
            assert!(error.contains("expected packets per second"), "{error}");
        }
    }
}
