//! The cost of reservations, which read and then reduce the free capacity of each of a path's four links (McNettle Figure 6).
//!
//! `cargo bench -p urtica-state --bench transactions` compares our transactions with those of `fast-stm` and with one lock
//! around all links, in one thread and in two. Under `cargo test`, each runs briefly. Threads reserve either on separate links,
//! as the shards of a network with regions mostly do, or on shared links. The cache lines of shared links move between cores,
//! and with eight of them most paths overlap. Not measured: waiting, and more than two threads.

mod support;

use std::hint::black_box;
use std::ops::Range;
use std::sync::Mutex;
use support::compare;
use urtica_state::{Abort, TVar, Transaction, atomically, check};

const HOPS: usize = 4;

/// The number of paths that are used in rotation.
const PATHS: usize = 4096;

/// A link's capacity, which cannot be used up.
const CAPACITY: u64 = 1 << 60;

fn reserve_path(links: &[TVar<u64>], path: &[usize], amount: u64) -> bool {
    atomically(|tx| {
        tx.or_else(
            |tx| {
                path.iter()
                    .try_for_each(|&link| reserve(&links[link], amount, tx))
                    .map(|()| true)
            },
            |_| Ok(false),
        )
    })
}

fn reserve(link: &TVar<u64>, amount: u64, tx: &mut Transaction) -> Result<(), Abort> {
    let current = link.read(tx)?;
    check(current >= amount)?;
    link.write(tx, current - amount)
}

fn reserve_path_fast_stm(links: &[fast_stm::TVar<u64>], path: &[usize], amount: u64) -> bool {
    let reserve = |tx: &mut fast_stm::Transaction| {
        for &link in path {
            let current = links[link].read(tx)?;
            if current < amount {
                return fast_stm::retry();
            }
            links[link].write(tx, current - amount)?;
        }
        Ok(true)
    };
    fast_stm::atomically(|tx| tx.or(reserve, |_| Ok(false)))
}

fn reserve_path_mutex(links: &Mutex<Vec<u64>>, path: &[usize], amount: u64) -> bool {
    let mut links = links.lock().expect("nobody panics");
    if path.iter().any(|&link| links[link] < amount) {
        return false;
    }
    path.iter().for_each(|&link| links[link] -= amount);
    true
}

/// Returns paths of four different links in this range, which differ for each thread.
fn paths(links: Range<usize>, thread: usize) -> Vec<[usize; HOPS]> {
    let mut random = Random(thread as u64);
    let mut path = || {
        let mut path = [usize::MAX; HOPS];
        for at in 0..HOPS {
            while path[at] == usize::MAX || path[..at].contains(&path[at]) {
                path[at] = links.start + random.below(links.len());
            }
        }
        path
    };
    (0..PATHS).map(|_| path()).collect()
}

/// SplitMix64 of Steele, Lea and Flood, with equal numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

fn reservations(count: usize, threads: usize, is_apart: bool) -> f64 {
    let links = |thread| match is_apart {
        true => thread * count / 2..(thread + 1) * count / 2,
        false => 0..count,
    };
    let paths: Vec<_> = (0..threads)
        .map(|thread| paths(links(thread), thread))
        .collect();
    let each_path = |thread: usize, count: u64, reserve: &dyn Fn(&[usize]) -> bool| {
        let paths = paths[thread].iter().cycle().take(count as usize);
        let reserved = paths
            .filter(|path| reserve(black_box(path.as_slice())))
            .count();
        assert_eq!(reserved as u64, count, "there is enough for all");
    };
    let ours: Vec<_> = (0..count).map(|_| TVar::new(CAPACITY)).collect();
    let theirs: Vec<_> = (0..count).map(|_| fast_stm::TVar::new(CAPACITY)).collect();
    let locked = Mutex::new(vec![CAPACITY; count]);
    let rates = compare(
        &format!(
            "paths of {HOPS} among {count} links{}",
            if is_apart {
                ", half for each thread"
            } else {
                ""
            }
        ),
        threads,
        &[
            ("ours", &|thread, count| {
                each_path(thread, count, &|path| reserve_path(&ours, path, 1));
            }),
            ("fast-stm", &|thread, count| {
                each_path(thread, count, &|path| {
                    reserve_path_fast_stm(&theirs, path, 1)
                });
            }),
            ("one mutex", &|thread, count| {
                each_path(thread, count, &|path| reserve_path_mutex(&locked, path, 1));
            }),
        ],
    );
    rates[0]
}

fn main() {
    for (links, is_apart) in [(1024, true), (1024, false), (8, false)] {
        let one = reservations(links, 1, is_apart);
        let two = reservations(links, 2, is_apart);
        println!(
            "ours: two threads make {:.2} times as many as one",
            two / one
        );
    }
}
