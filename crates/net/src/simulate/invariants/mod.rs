//! The invariants of every run: one file each, all with the same interface.

mod bounded_entries;
mod bounded_floods;
mod counters;
mod isolation;
mod no_leaks;
mod no_loops;
mod no_storms;
mod reachability;
mod shortest_paths;
mod streams;
mod true_addresses;

use super::Scenario;
use crate::Net;

/// The invariants of programs that reserve; they bring their own check.
pub(super) const RESERVATIONS: &str = "reservations never exceed a link's capacity";

/// An invariant. An error describes the violation.
pub(super) trait Invariant {
    /// The invariant in words.
    fn sentence(&self) -> &'static str;

    /// Installs watchers, if it has any. The message of a violation starts with the invariant.
    fn attach(&mut self, _net: &mut Net) {}

    /// Checks at the end of the faults. If `quick`, none of them has a long recovery.
    fn after_faults(&mut self, _net: &mut Net, _quick: bool) -> Result<(), String> {
        Ok(())
    }

    /// The network has had its time to recover.
    fn after_recovery(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }

    /// Checks when there was no traffic for so long that all traces of it should be gone.
    fn when_quiescent(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }
}

/// Returns all invariants. Those before reachability already watch its pings after recovery; those after it assume that
/// hosts can be reached.
pub(super) fn all(scenario: &Scenario) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(no_loops::NoLoops::new(scenario)),
        Box::new(no_storms::NoStorms::new(scenario)),
        Box::new(bounded_floods::BoundedFloods::new(scenario)),
        Box::new(bounded_entries::BoundedEntries::new(scenario)),
        Box::new(true_addresses::TrueAddresses::new(scenario)),
        Box::new(no_leaks::NoLeaks::new(scenario)),
        Box::new(isolation::Isolation::new(scenario)),
        Box::new(counters::Counters::default()),
        Box::new(reachability::Reachability::new(scenario)),
        Box::new(streams::Streams),
        Box::new(shortest_paths::ShortestPaths::new(scenario)),
    ]
}
