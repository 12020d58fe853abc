//! What must hold in every run: one file for each sentence, all of one shape.

mod no_leaks;
mod no_loops;
mod no_storms;
mod reachability;

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

    /// The faults are over.
    fn after_faults(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }

    /// The network has had its time to recover.
    fn at_peace(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }

    /// Nothing was sent for so long that all traces of it should be gone.
    fn at_rest(&mut self, _net: &mut Net) -> Result<(), String> {
        Ok(())
    }
}

/// All of them. Reachability comes last: those before it look on already while it has hosts ping in peace.
pub(super) fn all(scenario: &Scenario) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(no_loops::NoLoops::new(scenario)),
        Box::new(no_storms::NoStorms::new(scenario)),
        Box::new(no_leaks::NoLeaks::new(scenario)),
        Box::new(reachability::Reachability::new(scenario)),
    ]
}
