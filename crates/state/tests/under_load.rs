//! Transactions and tables that several threads use concurrently, for a second or so each.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use urtica_state::{Abort, Limits, TVar, Table, Transaction, atomically, try_atomically};

const LONG_ENOUGH: Duration = Duration::from_millis(700);

/// Calls `work` repeatedly, on a thread for each seed, with pseudo-random numbers.
fn hammer(seeds: u64, work: impl Fn(u64) + Sync) {
    let end = Instant::now() + LONG_ENOUGH;
    thread::scope(|scope| {
        for seed in 1..=seeds {
            let work = &work;
            scope.spawn(move || {
                let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                while Instant::now() < end {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    work(random);
                }
            });
        }
    });
}

fn sum(accounts: &[TVar<u64>], tx: &mut Transaction) -> Result<u64, Abort> {
    accounts
        .iter()
        .try_fold(0, |sum, account| Ok(sum + account.read(tx)?))
}

/// No attempt of a transaction, not even an aborted one, sees money in transit.
#[test]
fn every_attempt_reads_values_of_one_moment() {
    const ACCOUNTS: usize = 8;
    let accounts: Vec<_> = (0..ACCOUNTS).map(|_| TVar::new(100_u64)).collect();
    let names: Vec<_> = (0..2).map(|_| TVar::new(String::from("0"))).collect();
    hammer(4, |random| {
        let (from, to) = (
            random as usize % ACCOUNTS,
            (random >> 8) as usize % ACCOUNTS,
        );
        match random >> 16 & 3 {
            0 => atomically(|tx| {
                assert_eq!(sum(&accounts, tx)?, 100 * ACCOUNTS as u64);
                Ok(())
            }),
            1 => atomically(|tx| {
                let name = names[0].read(tx)?;
                thread::yield_now();
                assert_eq!(name, names[1].read(tx)?);
                names
                    .iter()
                    .try_for_each(|variable| variable.write(tx, random.to_string()))
            }),
            _ => atomically(|tx| {
                let amount = accounts[from].read(tx)?.min(random >> 60);
                accounts[from].modify(tx, |left| left - amount)?;
                accounts[to].modify(tx, |left| left + amount)
            }),
        }
    });
    let total: u64 = accounts.iter().map(TVar::load).sum();
    assert_eq!(total, 100 * ACCOUNTS as u64);
}

/// A transaction that reads all variables and yields commits among many transactions that write without a pause.
#[test]
fn a_long_transaction_commits_under_load() {
    let accounts: Vec<_> = (0..50).map(|_| TVar::new(1_u64)).collect();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (accounts, ended) = (&accounts, &ended);
            scope.spawn(move || {
                let mut at = thread;
                while !ended.load(Relaxed) {
                    atomically(|tx| accounts[at % 50].modify(tx, |value| value));
                    at += 7;
                }
            });
        }
        for _ in 0..20 {
            let total = try_atomically(Limits::default(), |tx| {
                let half = sum(&accounts[..25], tx)?;
                thread::yield_now();
                let total = half + sum(&accounts[25..], tx)?;
                accounts[0].write(tx, 1)?;
                Ok(total)
            });
            assert_eq!(total, Ok(50));
        }
        ended.store(true, Relaxed);
    });
}

/// Loads are ordered, too: a thread that has seen one write of a transaction also sees the other.
#[test]
fn loads_are_ordered() {
    let (first, second) = (TVar::new(0_u64), TVar::new(0_u64));
    let is_writer = AtomicBool::new(true);
    hammer(3, |_| {
        if is_writer.swap(false, Relaxed) {
            atomically(|tx| {
                first.modify(tx, |value| value + 1)?;
                second.modify(tx, |value| value + 1)
            });
            is_writer.store(true, Relaxed);
        } else {
            let seen = second.load();
            assert!(first.load() >= seen);
            let seen = first.load();
            assert!(second.load() >= seen);
        }
    });
}

/// Counters in a table that grows, shrinks and grows again: no update is lost, and no thread reads another key's value.
#[test]
fn a_table_loses_no_update() {
    const COUNTED: u64 = 500;
    let table = Table::<u64, u64>::with_max_entries(3000);
    let counts = Table::<u64, u64>::new();
    hammer(4, |random| {
        // A value consists of its key's number and a count.
        let number = random % COUNTED;
        let (key, none) = (number << 20, number << 32);
        match random >> 16 & 7 {
            0..3 => {
                let count = |old: Option<u64>| Some(old.unwrap_or(none) + 1);
                table.update(key, count).expect("there is room");
                counts
                    .update(number, |old| Some(old.unwrap_or(0) + 1))
                    .expect("there is room");
            }
            3..6 => {
                let value = table.get(key).unwrap_or(none);
                assert_eq!(value >> 32, number, "another key's value");
            }
            6 => {
                let passing = random | 1;
                let _ = table.insert(passing, random >> 1);
                assert!([None, Some(random >> 1)].contains(&table.remove(passing)));
            }
            _ => {
                assert!(table.len() <= 3000);
                table.prefetch(key);
            }
        }
    });
    for (number, count) in counts.to_vec() {
        assert_eq!(table.get(number << 20), Some(number << 32 | count));
    }
    assert_eq!(table.to_vec().len(), table.len());
}
