//! What must hold in every run: one file per invariant, all with the same interface.

mod counters;
mod isolation;
mod no_leaks;
mod no_loops;
mod no_storms;
mod reachability;
mod shortest_paths;
mod streams;

use super::Scenario;
use crate::Net;

/// The invariants of programs that reserve; they bring their own check.
pub(super) const RESERVATIONS: &str = "what is reserved never exceeds what a link carries";

/// An invariant. An error says what was seen instead.
pub(super) trait Invariant {
    /// The invariant in words.
    fn sentence(&self) -> &'static str;

    /// Starts to watch, if it does. The message of a violation begins with the invariant.
    fn attach(&mut self, _net: &mut Net) {}

    /// The faults are over. If it is `quick`, none of them takes long to recover from.
    fn after_faults(&mut self, _net: &mut Net, _quick: bool) -> Result<(), String> {
        Ok(())
    }

    /// The network has had its time to recover.
    fn after_recovery(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }

    /// Nothing was sent for so long that all traces of traffic should be gone.
    fn when_quiescent(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }
}

/// All invariants. Those before reachability already watch while it lets hosts ping after recovery; those after it assume
/// that hosts can be reached.
pub(super) fn all(scenario: &Scenario) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(no_loops::NoLoops::new(scenario)),
        Box::new(no_storms::NoStorms::new(scenario)),
        Box::new(no_leaks::NoLeaks::new(scenario)),
        Box::new(isolation::Isolation::new(scenario)),
        Box::new(counters::Counters::default()),
        Box::new(reachability::Reachability::new(scenario)),
        Box::new(streams::Streams),
        Box::new(shortest_paths::ShortestPaths::new(scenario)),
    ]
}
