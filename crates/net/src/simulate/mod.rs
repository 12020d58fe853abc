//! Whole runs from one seed: a network, its faults, and the invariants that must hold despite them.
//!
//! **What.** [`simulate`] draws everything from a seed: a topology, links, the behaviour of switches and channels, a
//! schedule of faults, and traffic. The run has these phases:
//!
//! ```text
//! connect ──► faults and traffic ──► recover ──► stable ──► quiescent
//!             loops, storms and      every pair  no loop,   nothing is left over
//!             reservations are       that links no second
//!             watched all along      connect     copy
//! ```
//! The first invariant that does not hold ends the run with a [`Failure`], which contains the seed. This seed fails again in
//! the same way and at the same time, and the run can be traced.
//!
//! **Swarms.** A run has a drawn subset of the kinds of faults, because a few kinds reveal failures that many together hide.
//!
//! **Streams.** Each link, channel, switch, fault and flow has its own stream of draws, by the seed and its name, so a change
//! to one does not change the draws of others.
//!
//! **Minimal failures.** [`minimise`] leaves out all faults and flows that a failing run does not need in order to fail.
//!
//! **Why two runs.** The last events before a failure are recorded by a second run of the seed, with a tracer. So the first run
//! is faster, and a run that cannot be repeated is detected.
//!
//! **Programs.** A [`Scenario`] has a function that creates the programs, so this crate does not depend on any of them.

mod faults;
mod invariants;
mod last_lines;
mod minimise;
mod planted;
mod reality;
mod run;
mod scenario;

pub use faults::{FaultKind, NoSuchItem, NoSuchKind, ScheduleItem, malformed_input};
pub use minimise::{Minimised, minimise};
pub use planted::{NoSuchBug, PlantedBug};
pub use scenario::{Check, Denied, Faults, FloodBound, Programs, Refused, Scenario};

use crate::tracer::Tracer;
use crate::{Net, digest::Digest};
use last_lines::LastLines;
use run::Run;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// The number of last events in a failure.
const LAST_EVENTS: usize = 30;

/// The result of a run in which all invariants held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The topology.
    pub topology: String,
    /// The number of faults.
    pub faults: usize,
    /// The run's duration, by the network's clock.
    pub time: Duration,
    /// The hash of all events.
    pub digest: Digest,
}

/// The violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// The topology.
    pub topology: String,
    /// The time of the violation, by the network's clock.
    pub at: Duration,
    /// The invariant.
    pub sentence: &'static str,
    /// The observed violation.
    pub seen: String,
    /// The faults and flows of the run, including later ones.
    pub items: BTreeSet<ScheduleItem>,
    /// The faults and the traffic so far.
    pub faults: Vec<String>,
    /// The hash of all events so far.
    pub digest: Digest,
    /// The last events before the violation.
    pub last_events: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} ({}) fails at {:?}: {}",
            self.seed, self.topology, self.at, self.sentence
        )?;
        writeln!(f, "  {}", self.seen)?;
        writeln!(f, "  {} until then", self.digest)?;
        writeln!(f, "faults and traffic:")?;
        self.faults
            .iter()
            .try_for_each(|fault| writeln!(f, "  {fault}"))?;
        writeln!(f, "the last events:")?;
        self.last_events
            .iter()
            .try_for_each(|event| writeln!(f, "  {event}"))
    }
}

/// Runs the scenario with a seed.
///
/// # Errors
/// [`Failure`] if an invariant does not hold.
///
/// # Panics
/// If the scenario has no topology, or one that does not fit its own limits.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure>> {
    let only = scenario.only.as_ref();
    simulate_only(scenario, seed, only, &mut |_| {})
        .map_err(|failure| Box::new(add_last_events(scenario, only, *failure)))
}

/// Like [`simulate`], with watchers: `watch` is called with the network before time starts. The failure then contains no last
/// events.
///
/// # Errors
/// [`Failure`] if an invariant does not hold.
///
/// # Panics
/// Like [`simulate`].
pub fn simulate_watched(
    scenario: &Scenario,
    seed: u64,
    watch: &mut dyn FnMut(&mut Net),
) -> Result<Report, Box<Failure>> {
    simulate_only(scenario, seed, scenario.only.as_ref(), watch)
}

/// Like [`simulate_watched`], with all faults and flows or only these.
fn simulate_only(
    scenario: &Scenario,
    seed: u64,
    only: Option<&BTreeSet<ScheduleItem>>,
    watch: &mut dyn FnMut(&mut Net),
) -> Result<Report, Box<Failure>> {
    let mut run = Run::new(scenario, seed, only);
    watch(run.net());
    run.run()
}

/// Runs the seed again, to record its last events.
fn add_last_events(
    scenario: &Scenario,
    only: Option<&BTreeSet<ScheduleItem>>,
    failure: Failure,
) -> Failure {
    let mut tracer = None;
    let again = simulate_only(scenario, failure.seed, only, &mut |net| {
        let lines = Tracer::new(net, LastLines::new(LAST_EVENTS));
        let lines = Rc::new(RefCell::new(lines));
        net.watch(Rc::clone(&lines));
        tracer = Some(lines);
    });
    let last_events = tracer.map_or_else(Vec::new, |tracer| tracer.borrow().get_ref().lines());
    let told = failure.last_events.clone();
    let failed_again = again.err().is_some_and(|again| {
        let again = Failure {
            last_events: told,
            ..*again
        };
        again == failure
    });
    let doubt = "the second run differed: it depends on something other than the seed";
    let doubt = (!failed_again).then(|| doubt.to_owned());
    Failure {
        last_events: last_events.into_iter().chain(doubt).collect(),
        ..failure
    }
}
