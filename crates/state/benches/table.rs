//! The cost of a table: look-ups, and inserts of existing and of new entries.
//!
//! `cargo bench -p urtica-state --bench table` compares it with `papaya`'s map, with a `HashMap` behind a lock, and with the
//! learning switch's own `MacTable`, which belongs to one thread. Under `cargo test`, each runs briefly. Addresses are
//! cbench's, 100,000 for each of two switches, alternately. No other code contends for the caches.

mod support;

#[path = "../../apps/src/mac_table.rs"]
#[allow(dead_code, unused_imports, reason = "the program uses all of it")]
mod mac_table;

use mac_table::MacTable;
use papaya::HashMap as Papaya;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use support::compare;
use urtica_state::{Table, Word, neighbourly};
use urtica_wire::{MacAddr, PortNo};

const HOSTS: u64 = 100_000;

#[derive(Clone, Copy)]
struct Mac(u64);

impl Word for Mac {
    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Returns the first slot of an address; these addresses count up in their second byte.
    fn first_slot(word: u64) -> u64 {
        const SECOND_BITS: u64 = 0x3f << 32;
        neighbourly(word & !SECOND_BITS, word >> 32)
    }
}

/// Returns cbench's address of a host, in which the first bytes count.
fn mac(switch: usize, number: u64) -> u64 {
    let [low, mid, high, ..] = (number % HOSTS).to_le_bytes();
    u64::from_be_bytes([0, 0, 0, low, mid, high, 0, switch as u8 + 1])
}

fn learn_and_find(threads: usize) {
    let ours = Table::<Mac, u32>::new();
    let papaya = Papaya::new();
    let locked = Mutex::new(HashMap::new());
    let local: Vec<_> = (0..threads).map(|_| Mutex::new(MacTable::new())).collect();
    for (switch, local) in local.iter().enumerate() {
        for number in 0..HOSTS {
            let mac = mac(switch, number);
            ours.insert(Mac(mac), 1).expect("there is room");
            papaya.pin().insert(mac, 1);
            lock(&locked).insert(mac, 1);
            lock(local).learn(MacAddr::from_u64(mac), PortNo(1), 1);
        }
    }
    let pairs = |switch, count| {
        (0..count).map(move |number| {
            (
                black_box(mac(switch, number)),
                black_box(mac(switch, number + 777)),
            )
        })
    };
    compare(
        &format!("insert-same and get, {HOSTS} hosts a thread"),
        threads,
        &[
            ("MacTable, thread's own", &|thread, count| {
                let mut table = lock(&local[thread]);
                let found = pairs(thread, count).filter(|&(source, destination)| {
                    table.learn(MacAddr::from_u64(source), PortNo(1), 1);
                    table.port_of(MacAddr::from_u64(destination), 1) == Some(PortNo(1))
                });
                assert_eq!(found.count() as u64, count);
            }),
            ("ours, shared", &|thread, count| {
                let found = pairs(thread, count).filter(|&(source, destination)| {
                    ours.insert(Mac(source), 1).expect("it is there");
                    ours.get(Mac(destination)) == Some(1)
                });
                assert_eq!(found.count() as u64, count);
            }),
            ("papaya", &|thread, count| {
                let found = pairs(thread, count).filter(|&(source, destination)| {
                    let papaya = papaya.pin();
                    if papaya.get(&source) != Some(&1) {
                        papaya.insert(source, 1);
                    }
                    papaya.get(&destination) == Some(&1)
                });
                assert_eq!(found.count() as u64, count);
            }),
            ("HashMap behind a mutex", &|thread, count| {
                let found = pairs(thread, count).filter(|&(source, destination)| {
                    let mut map = lock(&locked);
                    map.insert(source, 1);
                    map.get(&destination) == Some(&1)
                });
                assert_eq!(found.count() as u64, count);
            }),
        ],
    );
}

/// Makes each thread fill its part of an empty table.
fn insert_new(threads: usize) {
    let numbers =
        |thread, count| (0..count).map(move |number| (number % HOSTS, mac(thread, number)));
    compare(
        "insert-new into a table of its own that grows",
        threads,
        &[
            ("MacTable", &|thread, count| {
                let mut table = MacTable::new();
                for (number, mac) in numbers(thread, count) {
                    if number == 0 {
                        table = MacTable::new();
                    }
                    table.learn(MacAddr::from_u64(mac), PortNo(1), 1);
                }
            }),
            ("ours", &|thread, count| {
                let mut table = Table::<Mac, u32>::new();
                for (number, mac) in numbers(thread, count) {
                    if number == 0 {
                        table = Table::new();
                    }
                    table.insert(Mac(mac), 1).expect("there is room");
                }
            }),
            ("papaya", &|thread, count| {
                let mut table = Papaya::new();
                for (number, mac) in numbers(thread, count) {
                    if number == 0 {
                        table = Papaya::new();
                    }
                    table.pin().insert(mac, 1);
                }
            }),
        ],
    );
}

/// Makes all hosts move in each round.
fn insert_other(threads: usize) {
    let ours = Table::<Mac, u32>::new();
    let papaya = Papaya::new();
    let locked = Mutex::new(HashMap::new());
    let moves = |thread, count| {
        (0..count).map(move |number| (mac(thread, number), (number / HOSTS) as u32))
    };
    compare(
        &format!("insert another value, {HOSTS} hosts a thread, one table"),
        threads,
        &[
            ("ours", &|thread, count| {
                for (mac, port) in moves(thread, count) {
                    ours.insert(Mac(mac), port).expect("there is room");
                }
            }),
            ("papaya", &|thread, count| {
                for (mac, port) in moves(thread, count) {
                    papaya.pin().insert(mac, port);
                }
            }),
            ("HashMap behind a mutex", &|thread, count| {
                for (mac, port) in moves(thread, count) {
                    lock(&locked).insert(mac, port);
                }
            }),
        ],
    );
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn main() {
    for threads in [1, 2] {
        learn_and_find(threads);
        insert_other(threads);
    }
    insert_new(1);
}
