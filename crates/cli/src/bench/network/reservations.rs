//! Reservations of bandwidth on paths, each a transaction over four links (McNettle, Figure 6).

use super::{Effort, Reading};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use urtica_bench::Error;
use urtica_bench::random::Random;
use urtica_state::{Abort, TVar, Transaction, atomically, check};

/// Number of links with low contention: two reservations hardly ever meet on a link, and a core seldom finds one in the
/// other's cache. A fat tree of 36-port switches has about as many (69,984), for some eleven thousand hosts.
const LINKS: usize = 1 << 16;

/// Number of links that fit in the caches of both cores; every second one was last written by the other core. Two
/// reservations hardly ever meet here, either.
const NEAR_LINKS: usize = 1 << 12;

/// The capacity of a link, more than a measurement can reserve.
const CAPACITY: u64 = 1 << 40;

const HOPS: usize = 4;

/// Number of operations of a thread between two readings of the clock.
const BATCH: u64 = 256;

/// Measures on one thread, and on two at once; and the ratio if links move between the cores' caches, with and without
/// transactions.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let length = Duration::from_millis(effort.either(500, 10));
    let alone = per_second::<Transactional>(1, LINKS, length)?;
    let together = per_second::<Transactional>(2, LINKS, length)?;
    let near = two_over_one::<Transactional>(NEAR_LINKS, length)?;
    let limit = two_over_one::<Plain>(NEAR_LINKS, length)?;
    let what = format!("path reservations ({HOPS}-hop transactions, {LINKS} links)");
    let near_what = format!("{HOPS} of {NEAR_LINKS} links that both cores' caches hold");
    let ratio = |figure, what, value| Reading::new(figure, what, "", value);
    Ok(vec![
        Reading::new("reservations-1", format!("{what}, one thread"), "/s", alone),
        Reading::new(
            "reservations-2",
            format!("{what}, two threads"),
            "/s",
            together,
        ),
        ratio(
            "reservations-2-over-1",
            format!("{what}, two threads over one"),
            together / alone,
        ),
        ratio(
            "reservations-near-2-over-1",
            format!("{near_what}, two threads over one"),
            near,
        ),
        ratio(
            "reservations-near-limit",
            format!(
                "{near_what}, by atomic subtractions without a transaction, two threads over one"
            ),
            limit,
        ),
    ])
}

/// Measures the ratio of the reservations of two threads to those of one.
fn two_over_one<L: Links>(links: usize, length: Duration) -> Result<f64, Error> {
    let alone = per_second::<L>(1, links, length)?;
    Ok(per_second::<L>(2, links, length)? / alone)
}

/// The free bandwidth of links, in one of several forms.
trait Links: Sync {
    fn new(count: usize) -> Self;

    fn count(&self) -> usize;

    /// Reserves 1 on each link of the path, or on none; returns whether it did.
    fn reserve(&self, path: [usize; HOPS]) -> bool;

    /// Returns the free bandwidth of all links together.
    fn left(&self) -> u64;
}

struct Transactional(Vec<TVar<u64>>);

impl Links for Transactional {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| TVar::new(CAPACITY)).collect())
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn reserve(&self, path: [usize; HOPS]) -> bool {
        atomically(|tx| reserve_path(tx, &self.0, path, 1))
    }

    fn left(&self) -> u64 {
        self.0.iter().map(TVar::load).sum()
    }
}

/// A counter for each link, on its own cache line, like a variable. Reserving a path is not atomic, and checks no capacity: it
/// only moves the same cache lines between cores, as a limit to compare with.
struct Plain(Vec<Line>);

#[repr(align(64))]
struct Line(AtomicU64);

impl Links for Plain {
    fn new(count: usize) -> Self {
        let line = |_| Line(AtomicU64::new(CAPACITY));
        Self((0..count).map(line).collect())
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn reserve(&self, path: [usize; HOPS]) -> bool {
        for link in path {
            self.0[link].0.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }

    fn left(&self) -> u64 {
        let left = |line: &Line| line.0.load(Ordering::Relaxed);
        self.0.iter().map(left).sum()
    }
}

/// Measures the reservations per second of a number of threads. The links must have lost exactly the reserved bandwidth.
fn per_second<L: Links>(threads: u64, links: usize, length: Duration) -> Result<f64, Error> {
    let links = L::new(links);
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
    let gone = links.count() as u64 * CAPACITY - links.left();
    if gone != HOPS as u64 * reserved {
        return Err(Error::invalid(format!(
            "{reserved} reservations over {HOPS} links took {gone} off the links; a transaction was lost or applied twice"
        )));
    }
    Ok(reserved as f64 / elapsed.as_secs_f64())
}

/// Reserves along one path after another; returns the number of reservations. A thread that is scheduled only after the
/// time is over still reserves a batch, so that there is always a rate.
fn reserve_until(links: &impl Links, seed: u64, stop: &AtomicBool) -> u64 {
    let mut random = Random::new(seed);
    let mut reserved = 0;
    loop {
        for _ in 0..BATCH {
            reserved += u64::from(links.reserve(next_path(&mut random, links.count())));
        }
        if stop.load(Ordering::Relaxed) {
            return reserved;
        }
    }
}

/// Draws four links anywhere.
fn next_path(random: &mut Random, links: usize) -> [usize; HOPS] {
    let number = random.number();
    std::array::from_fn(|hop| (number >> (16 * hop)) as usize % links)
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
