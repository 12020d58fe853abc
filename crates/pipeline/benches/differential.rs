//! Differential test of the compiled form with the plain form, by ten million comparisons.
//!
//! `cargo bench -p urtica-pipeline --bench differential` sends random packets through random pipelines, changes these
//! in between, and compares the outcome of each packet and all counters; it prints the number of packets compared, and
//! the number of searches in tables of each template, and in each kind of sub-table. `-- SEED` starts with other
//! pipelines. Under `cargo test` it is short. It does not measure the cost of the compiled form, which other benchmarks
//! do.

#[path = "../tests/compiled/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::choices::Choices;
use support::trial::Trial;

/// Number of comparisons, one for each packet and each way to execute the compiled form; and under `cargo test`.
const COMPARISONS: u64 = 10_000_000;
const COMPARISONS_IN_TESTS: u64 = 10_000;

/// Number of changes and bursts for each pipeline.
const EVENTS: usize = 400;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let wanted = match arguments.iter().any(|argument| argument == "--bench") {
        true => COMPARISONS,
        false => COMPARISONS_IN_TESTS,
    };
    let mut seeds = arguments
        .iter()
        .filter_map(|argument| argument.parse().ok());
    let first = seeds.next_back().unwrap_or(1000);
    let (mut compared, mut punted) = (0, 0);
    let mut looked_up: BTreeMap<_, u64> = BTreeMap::new();
    let mut told = Instant::now();
    for seed in first.. {
        if compared >= wanted {
            println!("{} pipelines", seed - first);
            break;
        }
        if told.elapsed() > Duration::from_secs(10) {
            println!("seed {seed}: {compared} comparisons so far");
            told = Instant::now();
        }
        let guard = Blame(seed);
        let mut trial = Trial::new(Choices::from_seed(seed));
        trial.run(EVENTS);
        std::mem::forget(guard);
        let comparison = &trial.comparison;
        compared += comparison.compared;
        punted += comparison.punted;
        for (templates, count) in &comparison.looked_up {
            *looked_up.entry(templates.clone()).or_default() += count;
        }
    }
    println!(
        "{compared} comparisons, all the same; in {punted} the packet was left to the plain form"
    );
    for (templates, count) in looked_up {
        let templates: Vec<_> = templates.iter().map(ToString::to_string).collect();
        let templates = templates.join(" with a sub-table that is ");
        println!("{count:>12} searches of a table that is {templates}");
    }
}

/// Prints the pipeline's seed if the trial panics.
struct Blame(u64);

impl Drop for Blame {
    fn drop(&mut self) {
        eprintln!("the seed is {}", self.0);
    }
}
