//! Reservations of bandwidth on paths, each a transaction over four links (McNettle, Figure 6).

use super::{Effort, Reading};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use urtica_bench::Error;
use urtica_state::{Abort, TVar, Transaction, atomically, check};

/// So many links that two reservations seldom meet on one.
const LINKS: usize = 4096;

/// More than can be reserved in the time that there is.
const CAPACITY: u64 = 1 << 50;

const HOPS: usize = 4;

/// What a thread does between two looks at the clock.
const BATCH: u64 = 256;

/// On one thread, and on two at once.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let length = Duration::from_millis(effort.either(500, 10));
    let alone = per_second(1, length)?;
    let together = per_second(2, length)?;
    let what = format!("path reservations ({HOPS}-hop transactions)");
    Ok(vec![
        Reading::new("reservations-1", format!("{what}, one thread"), "/s", alone),
        Reading::new(
            "reservations-2",
            format!("{what}, two threads"),
            "/s",
            together,
        ),
        Reading::new(
            "reservations-2-over-1",
            format!("{what}, two threads over one"),
            "",
            together / alone,
        ),
    ])
}

/// How many reservations a number of threads makes in a second. What they say they reserved has to be gone from the links.
fn per_second(threads: u64, length: Duration) -> Result<f64, Error> {
    let links: Vec<_> = (0..LINKS).map(|_| TVar::new(CAPACITY)).collect();
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let reserved: u64 = std::thread::scope(|scope| {
        let (links, stop) = (&links, &stop);
        let spawn = |seed| scope.spawn(move || reserve_until(links, seed, stop));
        let workers: Vec<_> = (0..threads).map(spawn).collect();
        std::thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let finished = workers.into_iter().filter_map(|worker| worker.join().ok());
        finished.sum()
    });
    let elapsed = started.elapsed();
    let gone: u64 = links.iter().map(|link| CAPACITY - link.load()).sum();
    if gone != HOPS as u64 * reserved {
        return Err(Error::invalid(format!(
            "{reserved} reservations over {HOPS} links took {gone} off the links; a transaction was lost or done twice"
        )));
    }
    Ok(reserved as f64 / elapsed.as_secs_f64())
}

/// Reserves along one path after the other; returns how often.
fn reserve_until(links: &[TVar<u64>], seed: u64, stop: &AtomicBool) -> u64 {
    let mut state = seed;
    let mut reserved = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BATCH {
            let path = next_path(&mut state);
            reserved += u64::from(atomically(|tx| reserve_path(tx, links, path, 1)));
        }
    }
    reserved
}

/// Four links anywhere, by the SplitMix64 sequence.
fn next_path(state: &mut u64) -> [usize; HOPS] {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    std::array::from_fn(|hop| (mixed >> (16 * hop)) as usize % LINKS)
}

fn reserve_path(
    tx: &mut Transaction,
    links: &[TVar<u64>],
    path: [usize; HOPS],
    amount: u64,
) -> Result<bool, Abort> {
    tx.or_else(
        |tx| {
            path.iter()
                .try_for_each(|&link| reserve_link(tx, &links[link], amount))?;
            Ok(true)
        },
        |_| Ok(false),
    )
}

fn reserve_link(tx: &mut Transaction, link: &TVar<u64>, amount: u64) -> Result<(), Abort> {
    let current = link.read(tx)?;
    check(current >= amount)?;
    link.write(tx, current - amount)
}
