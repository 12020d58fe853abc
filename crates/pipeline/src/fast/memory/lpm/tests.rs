use super::super::epoch::{Epochs, Retired};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::thread;

fn arena() -> Arena {
    Arena::new(256 << 20).unwrap()
}

fn ipv4(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    let address: std::net::Ipv4Addr = address.parse().unwrap();
    Prefix::new(&address.octets(), len.parse().unwrap())
}

fn address(text: &str) -> [u8; 4] {
    text.parse::<std::net::Ipv4Addr>().unwrap().octets()
}

/// A model that checks one prefix after the other.
#[derive(Default)]
struct Naive(HashMap<Prefix, Ref>);

impl Naive {
    fn find(&self, key: &[u8]) -> Option<Ref> {
        let covering = self.0.iter().filter(|(prefix, _)| covers(**prefix, key));
        covering
            .max_by_key(|(prefix, _)| prefix.len)
            .map(|(_, &block)| block)
    }
}

fn covers(prefix: Prefix, key: &[u8]) -> bool {
    Prefix::new(key, prefix.len) == prefix
}

#[test]
fn the_longest_of_nested_prefixes_is_found() {
    for root_bits in [16, 24] {
        let mut arena = arena();
        let mut trie = Trie::new(4, root_bits);
        let prefixes = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.0/24",
            "10.1.2.3/32",
            "10.1.2.0/23",
        ];
        let blocks = prefixes.map(|prefix| {
            let block = arena.allocate(1).unwrap();
            trie.insert(&mut arena, ipv4(prefix), block).unwrap();
            block
        });
        let expected = [
            ("9.9.9.9", 0),
            ("10.2.0.0", 1),
            ("10.1.9.9", 2),
            ("10.1.2.4", 3),
            ("10.1.2.3", 4),
            ("10.1.3.3", 5),
        ];
        for (text, number) in expected {
            assert_eq!(
                trie.find(&arena, &address(text)),
                Some(blocks[number]),
                "{text}"
            );
        }
        let new = arena.allocate(1).unwrap();
        assert_eq!(
            trie.replace(&arena, ipv4("10.1.2.0/24"), new),
            Some(blocks[3])
        );
        assert_eq!(trie.find(&arena, &address("10.1.2.4")), Some(new));
        let removed = trie.remove(&arena, ipv4("10.1.2.0/24")).unwrap();
        assert_eq!(
            (removed.block, removed.nodes),
            (new, vec![]),
            "the /32 needs all of them"
        );
        assert_eq!(trie.find(&arena, &address("10.1.2.4")), Some(blocks[5]));
        assert_eq!(trie.find(&arena, &address("10.1.2.3")), Some(blocks[4]));
    }
}

#[test]
fn entries_equal_their_description() {
    let mut arena = arena();
    let mut trie = Trie::new(4, 16);
    let (wide, narrow) = (arena.allocate(1).unwrap(), arena.allocate(1).unwrap());
    trie.insert(&mut arena, ipv4("10.0.0.0/15"), wide).unwrap();
    trie.insert(&mut arena, ipv4("10.1.128.0/17"), narrow)
        .unwrap();
    // SAFETY: the root has 65,536 entries.
    let root = unsafe { std::slice::from_raw_parts(trie.root().entries(), 1 << 16) };
    let entry = |index: usize| root[index].load(Relaxed);
    assert_eq!(
        (entry(0x09ff), entry(0x0a00), entry(0x0a02)),
        (0, wide.bits(), 0)
    );
    assert_eq!(entry(0x0a01) & NODE, NODE);
    let node = Ref::from_bits(entry(0x0a01) & !NODE).unwrap();
    // SAFETY: a node has 256 entries.
    let node = unsafe { std::slice::from_raw_parts(arena.pointer(node).cast::<u32>(), 256) };
    assert_eq!(
        (node[127], node[128], node[255]),
        (wide.bits(), narrow.bits(), narrow.bits())
    );
}

#[test]
fn unused_nodes_are_returned() {
    let mut arena = arena();
    let mut trie = Trie::new(16, 24);
    let blocks = [(); 3].map(|()| arena.allocate(1).unwrap());
    let used = arena.used_bytes();
    let key = [0xfd; 16];
    trie.insert(&mut arena, Prefix::new(&key, 0), blocks[0])
        .unwrap();
    trie.insert(&mut arena, Prefix::new(&key, 128), blocks[1])
        .unwrap();
    trie.insert(&mut arena, Prefix::new(&key, 64), blocks[2])
        .unwrap();
    assert_eq!(arena.used_bytes() - used, 13 * 1024);
    let removed = trie.remove(&arena, Prefix::new(&key, 128)).unwrap();
    assert_eq!(removed.nodes.len(), 8, "down to that of the /64");
    let removed = trie.remove(&arena, Prefix::new(&key, 64)).unwrap();
    assert_eq!(removed.nodes.len(), 5);
    assert_eq!(trie.find(&arena, &key), Some(blocks[0]));
    assert!(trie.remove(&arena, Prefix::new(&key, 64)).is_none());
}

#[test]
fn a_full_arena_leaves_the_trie_unchanged() {
    let mut arena = Arena::new(4 * 1024).unwrap();
    let mut trie = Trie::new(16, 16);
    let blocks = [(); 2].map(|()| arena.allocate(1).unwrap());
    let used = arena.used_bytes();
    let key = [1; 16];
    assert_eq!(
        trie.insert(&mut arena, Prefix::new(&key, 128), blocks[0]),
        Err(Full)
    );
    assert_eq!((arena.used_bytes(), trie.len()), (used, 0));
    assert_eq!(trie.find(&arena, &key), None);
    assert_eq!(
        trie.insert(&mut arena, Prefix::new(&key, 40), blocks[1]),
        Ok(())
    );
    assert_eq!(trie.find(&arena, &key), Some(blocks[1]));
}

#[test]
fn a_freed_trie_leaves_no_memory() {
    let mut arena = arena();
    let mut trie = Trie::new(6, 16);
    let mut blocks = Vec::new();
    for number in 0..200_u8 {
        let block = arena.allocate(1).unwrap();
        let key = [2, number % 3, number, number, 0, number];
        trie.insert(&mut arena, Prefix::new(&key, 48), block)
            .unwrap();
        blocks.push(block);
    }
    trie.free(&mut arena);
    assert_eq!(arena.used_bytes(), blocks.len() * 64);
}

/// For 100,000 prefixes, like the figure in the module's documentation.
#[test]
fn the_writer_knows_prefixes_in_at_most_40_bytes() {
    let mut prefixes = Prefixes::new();
    for number in 0..100_000_u32 {
        let block = Ref::from_bits(number + 1).unwrap();
        prefixes.insert(Prefix::new(&number.to_be_bytes(), 32), block);
    }
    assert!(prefixes.known.allocation_size() <= 100_000 * 40);
}

/// Keys that share enough bits for nested prefixes.
fn key(bytes: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(
        prop_oneof![4 => Just(0xa5), 1 => Just(0xa4), 1 => Just(0x25), 1 => any::<u8>()],
        bytes,
    )
}

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, u32),
    Remove(prop::sample::Index),
}

fn changes(bytes: usize) -> impl Strategy<Value = Vec<Change>> {
    // Short prefixes write many entries, which is slow without optimisation, so there are only a few of them.
    let len = prop_oneof![1 => 0..=32_u32, 9 => 12..=bytes as u32 * 8];
    let len = len.prop_map(move |len| len.min(bytes as u32 * 8));
    vec(
        prop_oneof![
            3 => (key(bytes), len).prop_map(|(key, len)| Change::Put(key, len)),
            2 => any::<prop::sample::Index>().prop_map(Change::Remove),
        ],
        1..60,
    )
}

fn apply(
    trie: &mut Trie,
    naive: &mut Naive,
    arena: &mut Arena,
    change: &Change,
) -> Result<(), TestCaseError> {
    match change {
        Change::Put(key, len) => {
            let prefix = Prefix::new(key, *len);
            let block = arena.allocate(1).unwrap();
            let old = naive.0.insert(prefix, block);
            if old.is_some() {
                prop_assert_eq!(trie.replace(arena, prefix, block), old);
                prop_assert_eq!(trie.replace(arena, prefix, block), Some(block));
            } else {
                prop_assert_eq!(trie.insert(arena, prefix, block), Ok(()));
            }
        }
        Change::Remove(which) if !naive.0.is_empty() => {
            let mut prefixes: Vec<_> = naive.0.keys().copied().collect();
            prefixes.sort_by_key(|prefix| (prefix.len, prefix.bits));
            let prefix = *which.get(&prefixes);
            let removed = trie.remove(arena, prefix).unwrap();
            prop_assert_eq!(Some(removed.block), naive.0.remove(&prefix));
            removed
                .nodes
                .iter()
                .for_each(|&node| arena.free(node, NODE_UNITS));
        }
        Change::Remove(_) => {}
    }
    Ok(())
}

/// Returns the first and the last address of each prefix, and the adjacent ones, since results change there.
fn borders(naive: &Naive, bytes: usize) -> Vec<Vec<u8>> {
    let of = |prefix: &Prefix| {
        let last = prefix.bits | u128::MAX.checked_shr(prefix.len).unwrap_or(0);
        let step = 1 << (128 - bytes * 8);
        [
            prefix.bits,
            last,
            prefix.bits.wrapping_sub(step),
            last.wrapping_add(step),
        ]
    };
    let bits = naive.0.keys().flat_map(of);
    bits.map(|bits| bits.to_be_bytes()[..bytes].to_vec())
        .collect()
}

fn finds_what_the_naive_form_finds(
    bytes: usize,
    root_bits: u32,
    changes: &[Change],
) -> Result<(), TestCaseError> {
    let mut arena = arena();
    let mut trie = Trie::new(bytes, root_bits);
    let mut naive = Naive::default();
    for change in changes {
        let before = borders(&naive, bytes);
        apply(&mut trie, &mut naive, &mut arena, change)?;
        for key in before.iter().chain(&borders(&naive, bytes)) {
            prop_assert_eq!(trie.find(&arena, key), naive.find(key), "{:x?}", key);
        }
    }
    prop_assert_eq!(trie.len(), naive.0.len());
    // In any order: an empty trie has no nodes.
    for &prefix in naive.0.keys() {
        let removed = trie.remove(&arena, prefix).unwrap();
        removed
            .nodes
            .iter()
            .for_each(|&node| arena.free(node, NODE_UNITS));
    }
    prop_assert_eq!(trie.nodes, 0);
    prop_assert!(
        trie.root_level()
            .entries
            .iter()
            .all(|entry| entry.load(Relaxed) == 0)
    );
    Ok(())
}

fn key_bytes_and_changes() -> impl Strategy<Value = (usize, Vec<Change>)> {
    prop::sample::select(vec![4, 6, 16]).prop_flat_map(|bytes| (Just(bytes), changes(bytes)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn agrees_with_the_naive_form_from_16_bits((bytes, changes) in key_bytes_and_changes()) {
        finds_what_the_naive_form_finds(bytes, 16, &changes)?;
    }
}

proptest! {
    // Each case needs a root of 64 MiB.
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn agrees_with_the_naive_form_from_24_bits((bytes, changes) in key_bytes_and_changes()) {
        finds_what_the_naive_form_finds(bytes, 24, &changes)?;
    }
}

enum Garbage {
    Block(Ref),
    Node(Ref),
}

/// Creates a block for a prefix that contains the prefix.
fn block_of(arena: &mut Arena, prefix: Prefix) -> Ref {
    let block = arena.allocate(1).unwrap();
    let words = arena.pointer(block).cast::<u64>();
    // SAFETY: a block of 8 words, which is not shared yet.
    unsafe {
        words.write((prefix.bits >> 96) as u64);
        words.add(1).write(prefix.len.into());
    }
    block
}

/// While nested prefixes are added and removed, an address always has the block of a prefix that covers it. Freed blocks are
/// overwritten, so that a reader that still used them would notice.
#[test]
fn addresses_always_have_a_route_during_changes() {
    const TURNS: u32 = 20_000;
    let mut arena = arena();
    let mut trie = Trie::new(4, 16);
    let all = ipv4("10.0.0.0/12");
    let block = block_of(&mut arena, all);
    trie.insert(&mut arena, all, block).unwrap();
    let (root, base) = (trie.root(), arena.base().expose_provenance());
    let epochs = Epochs::new();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..2_u32 {
            let mut participant = epochs.join();
            let ended = &ended;
            scope.spawn(move || {
                let base = std::ptr::with_exposed_provenance::<u8>(base);
                let mut number = reader;
                while !ended.load(Relaxed) {
                    participant.begin();
                    for _ in 0..32 {
                        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let address = 0x0a00_0000 | number >> 12;
                        // SAFETY: freed nodes pass through the epochs.
                        let found = unsafe { root.find(base, &address.to_be_bytes()) };
                        // SAFETY: as above; the block is one of those created by `block_of`.
                        let (bits, len) = unsafe {
                            let words = base.add(found.unwrap().offset()).cast::<u64>();
                            (words.read() as u32, words.add(1).read() as u32)
                        };
                        assert!((12..=32).contains(&len), "{len}");
                        let mask = u32::MAX << (32 - len);
                        assert_eq!(address & mask, bits, "of length {len}");
                    }
                }
            });
        }
        let mut retired = Retired::new(&epochs);
        let mut blocks: HashMap<Prefix, Ref> = HashMap::new();
        let mut number = 1_u32;
        for _ in 0..TURNS {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let address = 0x0a00_0000 | (number >> 12 & 0x0003_0f07);
            let prefix = Prefix::new(&address.to_be_bytes(), 13 + (number >> 8) % 20);
            if let Some(old) = blocks.remove(&prefix) {
                let removed = trie.remove(&arena, prefix).unwrap();
                assert_eq!(removed.block, old);
                retired.retire(Garbage::Block(old));
                removed
                    .nodes
                    .into_iter()
                    .for_each(|node| retired.retire(Garbage::Node(node)));
            } else {
                let block = block_of(&mut arena, prefix);
                trie.insert(&mut arena, prefix, block).unwrap();
                blocks.insert(prefix, block);
            }
            retired.collect(|garbage| {
                let (block, units) = match garbage {
                    Garbage::Block(block) => (block, 1),
                    Garbage::Node(node) => (node, NODE_UNITS),
                };
                // SAFETY: no reader can see them. Such nodes refer to no block, and such blocks belong to no prefix.
                unsafe {
                    arena
                        .pointer(block)
                        .write_bytes(if units == 1 { 0xff } else { 0 }, units * 64)
                };
                arena.free(block, units);
            });
        }
        ended.store(true, Relaxed);
    });
    assert!(trie.len() > 1);
}
