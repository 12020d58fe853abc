//! What must hold in every run: one file for each sentence, all of the same form.

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

/// What holds of programs that reserve; they bring how it is looked at.
pub(super) const RESERVATIONS: &str = "what is reserved never exceeds what a link carries";

/// Something that must hold. An error says what was seen instead.
pub(super) trait Invariant {
    /// What must hold.
    fn sentence(&self) -> &'static str;

    /// Begins to look on, where it does. What it sees that must not be begins with the sentence.
    fn attach(&mut self, _net: &mut Net) {}

    /// The faults are over. Where it is `quick`, none of them takes long to get over.
    fn after_faults(&mut self, _net: &mut Net, _quick: bool) -> Result<(), String> {
        Ok(())
    }

    /// The network has had its time to recover.
    fn after_recovery(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }

    /// Nothing was sent for so long that all traces of it should be gone.
    fn when_quiescent(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }
}

/// All of them. Those before reachability look on already while it has hosts ping after recovery; those behind it take for granted that hosts
/// are reached.
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
