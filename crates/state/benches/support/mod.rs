//! Measures rivals alternately in several rounds, so that other load on the machine affects all of them.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The number of measurements of each rival.
const ROUNDS: usize = 7;

/// The minimum duration of a measurement.
const LONG_ENOUGH: Duration = Duration::from_millis(150);

/// A function that performs operations in one of several threads; its arguments are the thread's number and the number of
/// operations.
pub type Work<'a> = &'a (dyn Fn(usize, u64) + Sync);

/// Measures rivals at one task on `threads` threads, and prints a line for each: operations per second, as the median, minimum
/// and maximum of the rounds, and the ratio of the median to the first rival's. Returns the medians.
///
/// Under `cargo test`, each rival runs once, briefly.
pub fn compare(task: &str, threads: usize, rivals: &[(&str, Work)]) -> Vec<f64> {
    println!(
        "{task}, {threads} thread{}",
        if threads == 1 { "" } else { "s" }
    );
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_bench { ROUNDS } else { 1 };
    let counts: Vec<_> = rivals
        .iter()
        .map(|(_, work)| if is_bench { enough(threads, work) } else { 100 })
        .collect();
    let mut rates = vec![Vec::new(); rivals.len()];
    for _ in 0..rounds {
        for (at, (_, work)) in rivals.iter().enumerate() {
            rates[at].push(rate(threads, counts[at], *work));
        }
    }
    rates
        .iter_mut()
        .for_each(|rates| rates.sort_by(f64::total_cmp));
    let medians: Vec<_> = rates.iter().map(|rates| rates[rates.len() / 2]).collect();
    for (at, (name, _)) in rivals.iter().enumerate() {
        let (least, most) = (rates[at][0], rates[at][rounds - 1]);
        println!(
            "  {name:<24} {:>8.2} M/s ({:.2} to {:.2}), {:.2} of the first",
            medians[at] / 1e6,
            least / 1e6,
            most / 1e6,
            medians[at] / medians[0]
        );
    }
    medians
}

/// Returns a number of operations that lasts long enough to measure.
fn enough(threads: usize, work: Work) -> u64 {
    let mut count = 1000;
    loop {
        let took = threads as f64 * count as f64 / rate(threads, count, work);
        if took >= LONG_ENOUGH.as_secs_f64() / 4.0 {
            return (count as f64 * LONG_ENOUGH.as_secs_f64() / took) as u64;
        }
        count *= 4;
    }
}

/// Returns the number of operations per second of all threads together.
fn rate(threads: usize, count: u64, work: Work) -> f64 {
    let start = Barrier::new(threads);
    let took = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let begin = Instant::now();
                    work(thread, count);
                    begin.elapsed()
                })
            })
            .collect();
        let took = threads
            .into_iter()
            .map(|thread| thread.join().expect("it worked"));
        took.max().expect("a thread")
    });
    (threads as u64 * count) as f64 / took.as_secs_f64()
}
