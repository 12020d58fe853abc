//! Whole runs from one seed: a network, its faults, and what must hold all the same.
//!
//! **What.** [`simulate`] draws everything from a seed: a topology, links, how switches and channels behave, a schedule of faults, and
//! traffic. Then the run goes through its phases:
//!
//! ```text
//! connect ──► faults and traffic ──► recover ──► stable ──► quiescent
//!             loops, storms and      every pair  no loop,   nothing is left over
//!             reservations are       that links no second
//!             watched all along      connect     copy
//! ```
//! The first invariant that does not hold ends it with a [`Failure`], which tells the seed: the same seed fails again, in the same way and
//! at the same time, and can be traced.
//!
//! **Swarms.** A run has some kinds of faults and not others, drawn as well: what many kinds together hide, a few of them show.
//!
//! **Streams.** Each link, channel, switch, fault and flow is drawn from a stream of its own, by the seed and its name: a change to one
//! leaves what is drawn for the others.
//!
//! **Least failures.** [`minimise`] leaves out of a run that fails all faults and flows without which it fails as well.
//!
//! **Why two runs.** The last events before a failure come from a second run of the seed with a tracer on. So the first goes without one,
//! and a run that cannot be repeated is found by the way.
//!
//! **Who brings the programs.** A [`Scenario`] names a function that makes them, so that this crate knows none.

mod faults;
mod invariants;
mod last_lines;
mod minimise;
mod planted;
mod reality;
mod run;
mod scenario;

pub use faults::{FaultKind, NoSuchItem, NoSuchKind, ScheduleItem};
pub use minimise::{Minimised, minimise};
pub use planted::{NoSuchBug, PlantedBug};
pub use scenario::{Check, Denied, Faults, Programs, Scenario};

use crate::tracer::Tracer;
use crate::{Net, digest::Digest};
use last_lines::LastLines;
use run::Run;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// How many of the last events a failure tells.
const LAST_EVENTS: usize = 30;

/// A run in which everything held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it was drawn from.
    pub seed: u64,
    /// The topology.
    pub topology: String,
    /// How many faults there were.
    pub faults: usize,
    /// How long it took, by the network's clock.
    pub time: Duration,
    /// What all that happened hashes to.
    pub digest: Digest,
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    /// What the run was drawn from.
    pub seed: u64,
    /// The topology.
    pub topology: String,
    /// When it was noticed, by the network's clock.
    pub at: Duration,
    /// What should have held.
    pub sentence: &'static str,
    /// What was seen instead.
    pub seen: String,
    /// The faults and flows of the run, also those that were still to come.
    pub items: BTreeSet<ScheduleItem>,
    /// The faults and the traffic by then.
    pub faults: Vec<String>,
    /// What all that happened until then hashes to.
    pub digest: Digest,
    /// The last things that happened before.
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

/// Runs what is drawn from a seed.
///
/// # Errors
/// [`Failure`] where an invariant does not hold.
///
/// # Panics
/// If the scenario has no topology, or one that does not fit its own limits.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure>> {
    let only = scenario.only.as_ref();
    simulate_only(scenario, seed, only, &mut |_| {})
        .map_err(|failure| Box::new(add_last_events(scenario, only, *failure)))
}

/// The same, with a watcher: `watch` is given the network before its time begins. A failure does not tell the last events
/// then.
///
/// # Errors
/// [`Failure`] where an invariant does not hold.
///
/// # Panics
/// As [`simulate`].
pub fn simulate_watched(
    scenario: &Scenario,
    seed: u64,
    watch: &mut dyn FnMut(&mut Net),
) -> Result<Report, Box<Failure>> {
    simulate_only(scenario, seed, scenario.only.as_ref(), watch)
}

/// The same with these faults and flows alone, or with all.
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

/// Runs the seed again, for its last events.
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
    let doubt = "the second run went otherwise: something in it does not come from the seed";
    let doubt = (!failed_again).then(|| doubt.to_owned());
    Failure {
        last_events: last_events.into_iter().chain(doubt).collect(),
        ..failure
    }
}
