//! Reduction of failing runs.
//!
//! Faults and flows are drawn by their numbers, so each can be left out of a run. The first step searches for the smallest set
//! of faults with which the run still fails: none, then each alone, then each pair, and so on, up to a limit of runs; beyond
//! it, faults are left out one by one. The second step leaves out the flows, all at once or one by one. A run that fails with
//! another message has another failure, and does not count.

use super::{Failure, Scenario, ScheduleItem, add_last_events, simulate_only};
use std::collections::BTreeSet;

/// The maximum number of runs in the search for the smallest set of faults: enough for all subsets of eight.
const SEARCHED_RUNS: usize = 256;

/// A failure whose remaining faults and flows are all necessary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimised {
    /// The remaining faults and flows. With [`Scenario::only`], the seed fails in the same way.
    pub only: BTreeSet<ScheduleItem>,
    /// The failure of that run.
    pub failure: Box<Failure>,
    /// The number of runs of the search.
    pub runs: usize,
}

/// Leaves all unnecessary faults and flows out of a failed run.
pub fn minimise(scenario: &Scenario, failure: &Failure) -> Minimised {
    let mut search = Search {
        scenario,
        least: Minimised {
            only: failure.items.clone(),
            failure: Box::new(failure.clone()),
            runs: 0,
        },
    };
    search.leave_out_faults();
    search.leave_out_flows();
    let Minimised {
        only,
        failure,
        runs,
    } = search.least;
    Minimised {
        failure: Box::new(add_last_events(scenario, Some(&only), *failure)),
        only,
        runs,
    }
}

struct Search<'a> {
    scenario: &'a Scenario,
    /// The smallest failing set so far, and its failure.
    least: Minimised,
}

impl Search<'_> {
    /// Finds the smallest set of faults.
    fn leave_out_faults(&mut self) {
        let (faults, flows): (Vec<_>, Vec<_>) = self
            .least
            .only
            .iter()
            .copied()
            .partition(|item| item.is_fault());
        for count in 0..faults.len() {
            for chosen in subsets(&faults, count) {
                if self.least.runs == SEARCHED_RUNS {
                    return self.leave_out_one_by_one(&faults);
                }
                if self.still_fails(chosen.into_iter().chain(flows.iter().copied()).collect()) {
                    return;
                }
            }
        }
    }

    fn leave_out_flows(&mut self) {
        let all = self.least.only.clone();
        let flows: Vec<_> = all
            .iter()
            .copied()
            .filter(|item| !item.is_fault())
            .collect();
        let without = all.into_iter().filter(|item| item.is_fault()).collect();
        if !flows.is_empty() && !self.still_fails(without) {
            self.leave_out_one_by_one(&flows);
        }
    }

    fn leave_out_one_by_one(&mut self, items: &[ScheduleItem]) {
        for item in items {
            let mut rest = self.least.only.clone();
            rest.remove(item);
            self.still_fails(rest);
        }
    }

    /// Returns `true` if the run fails in the same way with only these items, which are then the smallest set so far.
    fn still_fails(&mut self, only: BTreeSet<ScheduleItem>) -> bool {
        self.least.runs += 1;
        let seed = self.least.failure.seed;
        match simulate_only(self.scenario, seed, Some(&only), &mut |_| {}) {
            Err(failure) if failure.sentence == self.least.failure.sentence => {
                (self.least.only, self.least.failure) = (only, failure);
                true
            }
            _ => false,
        }
    }
}

/// Returns all subsets of this size, in order.
fn subsets(of: &[ScheduleItem], count: usize) -> Vec<Vec<ScheduleItem>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with_first = (0..of.len()).flat_map(|first| {
        let rests = subsets(&of[first + 1..], count - 1);
        rests
            .into_iter()
            .map(move |rest| [vec![of[first]], rest].concat())
    });
    with_first.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subset_is_yielded_once() {
        let items: Vec<_> = (0..6).map(ScheduleItem::Fault).collect();
        let counts: Vec<_> = (0..=6).map(|count| subsets(&items, count).len()).collect();
        assert_eq!(counts, [1, 6, 15, 20, 15, 6, 1]);
        let all: BTreeSet<_> = (0..=6).flat_map(|count| subsets(&items, count)).collect();
        assert_eq!(all.len(), 64);
    }
}
