//! The invariants of every run, one file each, with one interface.

mod bounded_entries;
mod bounded_floods;
mod counters;
mod demands;
mod first_resolutions;
mod isolation;
mod known_hosts;
mod no_leaks;
mod no_loops;
mod no_storms;
mod reachability;
mod rightful_receivers;
mod shortest_paths;
mod streams;
mod true_addresses;

use super::Scenario;
use super::faults::Schedule;
use super::reality::connected_pairs;
use crate::{HostId, Net, PingId};
use std::collections::BTreeSet;

/// The invariant of programs that reserve; these programs supply the check.
pub(super) const RESERVATIONS: &str = "reservations never exceed a link's capacity";

/// The faults and flows of a run, for its invariants.
#[derive(Default)]
pub(super) struct Faced {
    /// Whether the network can recover quickly from all faults.
    pub is_quick: bool,
    /// Whether any fault may have interrupted hosts' traffic.
    pub has_accidents: bool,
    /// The hosts that were hostile.
    pub offenders: BTreeSet<HostId>,
    /// The hosts that were made to request many addresses.
    pub provoked: BTreeSet<HostId>,
    /// The hosts that may be blocked for being hostile.
    blocked: BTreeSet<HostId>,
    /// The pings of unknown hosts.
    pub resolutions: Vec<Resolution>,
}

/// The first ping of one host to another.
pub(super) struct Resolution {
    pub pair: (HostId, HostId),
    pub ping: PingId,
}

impl Faced {
    pub fn of(schedule: &Schedule, blocks_offenders: bool) -> Self {
        let offenders = schedule.offenders();
        let mut kinds = schedule.items.values().flatten();
        Self {
            is_quick: kinds.all(|kind| kind.is_quick()),
            has_accidents: schedule.has_accidents(),
            blocked: match blocks_offenders {
                true => offenders.clone(),
                false => BTreeSet::new(),
            },
            offenders,
            provoked: schedule.provoked(),
            resolutions: Vec::new(),
        }
    }

    /// Returns the pairs of hosts that are connected and not blocked.
    pub fn connected_pairs(&self, net: &Net) -> Vec<(HostId, HostId)> {
        let mut pairs = connected_pairs(net);
        pairs.retain(|(from, to)| !self.blocked.contains(from) && !self.blocked.contains(to));
        pairs
    }

    /// Returns `true` if one of two hosts was hostile.
    pub fn is_offended_by(&self, (from, to): (HostId, HostId)) -> bool {
        self.offenders.contains(&from) || self.offenders.contains(&to)
    }
}

/// An invariant. Its errors describe violations.
pub(super) trait Invariant {
    /// Returns the invariant as a sentence.
    fn sentence(&self) -> &'static str;

    /// Installs watchers, if the invariant has any. The message of a violation starts with the invariant's sentence.
    fn attach(&mut self, _net: &mut Net) {}

    /// Checks at the end of the faults.
    fn after_faults(&mut self, _net: &mut Net, _faced: &Faced) -> Result<(), String> {
        Ok(())
    }

    /// Checks after the time that the network has to recover.
    fn after_recovery(&mut self, _net: &mut Net, _faced: &Faced) -> Result<(), String> {
        Ok(())
    }

    /// Checks when there was no traffic for so long that no state should remain of it.
    fn when_quiescent(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }
}

/// Returns all invariants. Those that precede reachability also watch its pings after recovery; those that follow it assume
/// that hosts can be reached.
pub(super) fn all(scenario: &Scenario, seed: u64) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(no_loops::NoLoops::new(scenario)),
        Box::new(no_storms::NoStorms::new(scenario)),
        Box::new(bounded_floods::BoundedFloods::new(scenario)),
        Box::new(bounded_entries::BoundedEntries::new(scenario)),
        Box::new(true_addresses::TrueAddresses::new(scenario)),
        Box::new(rightful_receivers::RightfulReceivers::new(scenario)),
        Box::new(first_resolutions::FirstResolutions::new(scenario)),
        Box::new(no_leaks::NoLeaks::new(scenario)),
        Box::new(isolation::Isolation::new(scenario)),
        Box::new(counters::Counters::default()),
        Box::new(reachability::Reachability::new(scenario)),
        Box::new(streams::Streams),
        Box::new(known_hosts::KnownHosts::new(scenario)),
        Box::new(demands::Demands::new(scenario, seed)),
        Box::new(shortest_paths::ShortestPaths::new(scenario)),
    ]
}
