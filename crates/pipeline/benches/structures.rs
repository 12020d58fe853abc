//! The cost of the parts of a compiled flow table: finding a key or the longest prefix, changes, starting a burst.
//!
//! `cargo bench -p urtica-pipeline --bench structures` measures, and prints the memory of tries; under `cargo test`
//! each runs once. 10,000 prefixes have the lengths of Internet routes, at random addresses; 65,536 addresses
//! within them are looked up one after another. In bursts of 32, the first accesses of all searches are prefetched
//! before the first search, or not. No other data competes for the caches here: with a packet between two searches
//! all figures are higher.
//!
//! These parts are private to the crate, so their files are compiled into this program.

#![allow(missing_docs, reason = "criterion_group! makes a public function")]

#[path = "../src/fast/memory"]
#[allow(dead_code, unused_imports)]
mod memory {
    pub mod arena;
    pub mod epoch;
    pub mod hash_table;
    pub mod lpm;
    pub mod zeroed;

    mod sync {
        pub use std::sync::atomic::{AtomicU64, fence};
        pub use std::sync::{Mutex, MutexGuard};
    }
}

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memory::arena::{Arena, NODE_UNITS, Ref};
use memory::epoch::{Epochs, Retired};
use memory::hash_table::{HashTable, Slots};
use memory::lpm::{Prefix, Trie};
use std::collections::HashSet;
use std::hint::black_box;
use urtica_wire::{MIX_STEP, mix};

const PREFIXES: usize = 10_000;
const ADDRESSES: usize = 65_536;
const BURST: usize = 32;

/// Percentage of the prefixes of each length.
const LENGTHS: [(u32, usize); 11] = [
    (24, 57),
    (22, 11),
    (23, 9),
    (21, 5),
    (20, 5),
    (16, 5),
    (19, 3),
    (18, 2),
    (17, 1),
    (15, 1),
    (14, 1),
];

/// Steele, Lea and Flood's SplitMix64, with equal numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(MIX_STEP);
        number
    }
}

/// Returns random unicast addresses, with lengths in the order of `LENGTHS`.
fn routes(random: &mut Random) -> Vec<(u32, u32)> {
    let of_length =
        |&(len, percent): &(u32, usize)| std::iter::repeat_n(len, PREFIXES / 100 * percent);
    let mut seen = HashSet::new();
    let mut routes = Vec::new();
    for len in LENGTHS.iter().flat_map(of_length) {
        loop {
            let address = (1 << 24 | (random.next() as u32 % (223 << 24))) & u32::MAX << (32 - len);
            if seen.insert((address, len)) {
                routes.push((address, len));
                break;
            }
        }
    }
    routes
}

fn prefix((address, len): (u32, u32)) -> Prefix {
    Prefix::new(&address.to_be_bytes(), len)
}

struct Filled {
    arena: Arena,
    trie: Trie,
    routes: Vec<(u32, u32)>,
    addresses: Vec<[u8; 4]>,
}

fn fill(root_bits: u32) -> Filled {
    let mut random = Random(1);
    let routes = routes(&mut random);
    let mut arena = Arena::new(1 << 30).expect("addresses for an arena");
    let mut trie = Trie::new(4, root_bits);
    for &route in &routes {
        let block = arena.allocate(1).expect("room for a block");
        trie.insert(&mut arena, prefix(route), block)
            .expect("room for nodes");
    }
    let mut address = || {
        let (address, len) = routes[random.next() as usize % routes.len()];
        (address | random.next() as u32 & !(u32::MAX << (32 - len))).to_be_bytes()
    };
    let addresses = (0..ADDRESSES).map(|_| address()).collect();
    Filled {
        arena,
        trie,
        routes,
        addresses,
    }
}

fn find_prefix(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("find among 10,000 routes, bursts of 32");
    group.throughput(Throughput::Elements(BURST as u64));
    for root_bits in [16, 24] {
        let filled = fill(root_bits);
        println!(
            "a root of {root_bits} bits: {} KiB in all",
            filled.trie.bytes() / 1024
        );
        let (root, base) = (filled.trie.root(), filled.arena.base().cast_const());
        // SAFETY: the trie does not change.
        let find = |key: &[u8; 4]| unsafe { root.find(base, key) };
        assert!(filled.addresses.iter().all(|key| find(key).is_some()));
        let mut bursts = filled.addresses.chunks_exact(BURST).cycle();
        group.bench_function(BenchmarkId::new("plain", root_bits), |bencher| {
            bencher.iter(|| burst(black_box(bursts.next()), find));
        });
        group.bench_function(BenchmarkId::new("prefetch", root_bits), |bencher| {
            bencher.iter(|| {
                let keys = black_box(bursts.next());
                keys.into_iter()
                    .flatten()
                    .for_each(|key| root.prefetch(key));
                burst(keys, find)
            });
        });
        // Each search depends on the previous one: this measures the latency.
        let mut key = filled.addresses.iter().cycle();
        group.bench_function(
            BenchmarkId::new("each after the other", root_bits),
            |bencher| {
                let mut last = 0;
                bencher.iter(|| {
                    for _ in 0..BURST {
                        let key = u32::from_be_bytes(*key.next().expect("they are cycled"));
                        let found = find(&(key ^ last).to_be_bytes());
                        // Always 0, since numbers of blocks have 28 bits, but the compiler does not know.
                        last = found.map_or(0, Ref::bits) >> 28;
                    }
                    last
                });
            },
        );
    }
}

fn burst(keys: Option<&[[u8; 4]]>, find: impl Fn(&[u8; 4]) -> Option<Ref>) -> u32 {
    let found = keys.into_iter().flatten().filter_map(find);
    found.fold(0, |sum, block| sum ^ block.bits())
}

fn change_prefix(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("take one of 10,000 routes out and add it again");
    for root_bits in [16, 24] {
        let mut filled = fill(root_bits);
        let mut random = Random(2);
        group.bench_function(BenchmarkId::new("route", root_bits), |bencher| {
            bencher.iter(|| {
                let route = filled.routes[random.next() as usize % PREFIXES];
                take_and_add(&mut filled, route);
            });
        });
        group.bench_function(BenchmarkId::new("default route", root_bits), |bencher| {
            let block = filled.arena.allocate(1).expect("room for a block");
            let default = prefix((0, 0));
            filled
                .trie
                .insert(&mut filled.arena, default, block)
                .expect("no node is needed");
            bencher.iter(|| take_and_add(&mut filled, (0, 0)));
            drop(filled.trie.remove(&filled.arena, default));
        });
    }
}

fn take_and_add(filled: &mut Filled, route: (u32, u32)) {
    let removed = filled
        .trie
        .remove(&filled.arena, prefix(route))
        .expect("it is there");
    removed
        .nodes
        .iter()
        .for_each(|&node| filled.arena.free(node, NODE_UNITS));
    let added = filled
        .trie
        .insert(&mut filled.arena, prefix(route), removed.block);
    added.expect("room for nodes");
}

fn find_key(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("find among keys of one word, bursts of 32");
    group.throughput(Throughput::Elements(BURST as u64));
    for count in [1_000, 100_000] {
        let (arena, table) = fill_keys(count);
        let (slots, base) = (table.slots_ptr(), arena.base().cast_const());
        // SAFETY: the table does not change.
        let find = |&key: &u64| unsafe { Slots::find(slots, base, &[key]) };
        let mut random = Random(3);
        let mut burst = |first: u64| [(); BURST].map(|()| first + random.next() % count);
        group.bench_function(BenchmarkId::new("there", count), |bencher| {
            bencher.iter(|| {
                burst(0)
                    .iter()
                    .filter_map(find)
                    .fold(0, |sum, block| sum ^ block.bits())
            });
        });
        group.bench_function(BenchmarkId::new("not there", count), |bencher| {
            bencher.iter(|| burst(count).iter().filter_map(find).count());
        });
    }
}

fn fill_keys(count: u64) -> (Arena, HashTable) {
    let mut arena = Arena::new(1 << 30).expect("addresses for an arena");
    let mut table = HashTable::new(1);
    for key in 0..count {
        let block = arena.allocate(1).expect("room for a block");
        // SAFETY: a block of 8 words, which is not shared yet.
        unsafe { arena.pointer(block).cast::<u64>().write(key) };
        drop(table.insert(&arena, &[key], block));
    }
    (arena, table)
}

fn change_key(criterion: &mut Criterion) {
    let (arena, mut table) = fill_keys(100_000);
    let mut random = Random(4);
    criterion.bench_function("take one of 100,000 keys out and add it again", |bencher| {
        bencher.iter(|| {
            let key = [random.next() % 100_000];
            let block = table.remove(&arena, &key).expect("it is there");
            drop(table.insert(&arena, &key, block));
        });
    });
}

fn begin_burst(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epochs");
    let epochs = Epochs::new();
    let (mut participant, mut retired) = (epochs.join(), Retired::new(&epochs));
    group.bench_function("begin, nothing changed", |bencher| {
        bencher.iter(|| participant.begin())
    });
    group.bench_function("rest and begin", |bencher| {
        bencher.iter(|| {
            participant.rest();
            participant.begin();
        });
    });
    group.bench_function("retire, begin, collect", |bencher| {
        bencher.iter(|| {
            retired.retire(1);
            participant.begin();
            retired.collect(|item| _ = black_box(item))
        });
    });
}

criterion_group!(
    benches,
    find_prefix,
    change_prefix,
    find_key,
    change_key,
    begin_burst
);
criterion_main!(benches);
