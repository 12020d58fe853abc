use super::super::epoch::{Epochs, Retired};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::thread;

fn arena() -> Arena {
    Arena::new(64 << 20).unwrap()
}

/// Creates a block that starts with these words.
fn block(arena: &mut Arena, words: &[u64]) -> Ref {
    let block = arena.allocate(units(words)).unwrap();
    let key = arena.pointer(block).cast::<u64>();
    for (index, &word) in words.iter().enumerate() {
        // SAFETY: the block is as large as the words, and not shared yet.
        unsafe { key.add(index).write(word) };
    }
    block
}

fn units(words: &[u64]) -> usize {
    (words.len() * 8).div_ceil(64)
}

/// Keys with few different numbers, which differ in their last word.
fn key(number: u64, words: usize) -> Vec<u64> {
    let mut key = vec![0x0123_4567; words];
    key[words - 1] = number;
    key
}

#[test]
fn hashes_equal_their_description() {
    let (s0, s1) = (0x1111_2222_3333_4444, 0x9999_aaaa_bbbb_cccc);
    let one = fold(5 ^ s0, s1);
    let two = fold(5 ^ s0, 6 ^ s1);
    let three = fold(7 ^ two, s1);
    assert_eq!(hash(&[5], s0, s1), one);
    assert_eq!(hash(&[5, 6], s0, s1), two);
    assert_eq!(hash(&[5, 6, 7], s0, s1), three);
    assert_eq!(hash(&[5, 6, 7, 8], s0, s1), fold(7 ^ two, 8 ^ s1));
    assert_eq!(fold(1 << 63, 6), 3, "the upper half alone");
    assert_eq!(fold(u64::MAX, u64::MAX), 1 ^ (u64::MAX - 1));
}

#[test]
fn bytes_equal_their_description() {
    let mut arena = arena();
    let mut table = HashTable::with_seeds(2, (7, 9));
    let words = [0xaa, 0xbb];
    let block = block(&mut arena, &words);
    assert!(table.insert(&arena, &words, block).is_none());
    let array = table.slots_ptr().cast::<u64>();
    // SAFETY: an array of a header of 8 words and 8 slots.
    let words_of = unsafe { std::slice::from_raw_parts(array, 16) };
    assert_eq!(words_of[..3], [7, 7, 9]);
    let hash = hash(&words, 7, 9);
    let slot = (hash >> 32 | 1 << 31) << 32 | u64::from(block.bits());
    assert_eq!(words_of[8 + (hash & 7) as usize], slot);
    assert_eq!(words_of[8..].iter().filter(|&&slot| slot != 0).count(), 1);
    assert_eq!(table.bytes(), 128);
    assert!(table.slots_ptr().addr() % 64 == 0);
}

#[test]
fn replacing_entries_does_not_grow_the_table() {
    let mut arena = arena();
    let mut table = HashTable::new(1);
    for number in 0..10_000_u64 {
        let block = block(&mut arena, &[number]);
        drop(table.insert(&arena, &[number], block));
        if let Some(old) = number.checked_sub(50) {
            let block = table.remove(&arena, &[old]).unwrap();
            arena.free(block, 1);
        }
    }
    assert_eq!(table.len(), 50);
    assert!(table.array.count() <= 1024);
}

#[derive(Clone, Debug)]
enum Change {
    Put(u64),
    Remove(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..200_u64).prop_map(Change::Put),
        2 => (0..200_u64).prop_map(Change::Remove),
    ]
}

/// Applies a change to the table and its model, and returns the table's result.
fn apply(
    table: &mut HashTable,
    model: &mut HashMap<u64, Ref>,
    arena: &mut Arena,
    change: &Change,
) -> Result<(), TestCaseError> {
    let words = table.key_words;
    match *change {
        Change::Put(number) => {
            let key = key(number, words);
            let block = block(arena, &key);
            let old = model.insert(number, block);
            if old.is_some() {
                prop_assert_eq!(table.replace(arena, &key, block), old);
            } else {
                drop(table.insert(arena, &key, block));
            }
        }
        Change::Remove(number) => {
            let removed = table.remove(arena, &key(number, words));
            prop_assert_eq!(removed, model.remove(&number));
        }
    }
    Ok(())
}

fn check_counts(table: &HashTable) -> Result<(), TestCaseError> {
    let slots = (0..table.array.count()).map(|at| table.array.slot(at).load(Relaxed));
    let (mut blocks, mut deleted) = (0, 0);
    for slot in slots {
        blocks += usize::from(slot >> 63 == 1);
        deleted += usize::from(slot == DELETED);
    }
    prop_assert_eq!((blocks, deleted), (table.len(), table.deleted));
    prop_assert!((blocks + deleted) * 2 <= table.array.count());
    Ok(())
}

proptest! {
    /// Whatever the changes, and whether hashes collide or not, it agrees with a map of the standard library.
    #[test]
    fn agrees_with_a_map(
        changes in vec(change(), 0..600),
        words in 1..=KEY_WORDS_MAX,
        colliding: bool,
    ) {
        let seeds = if colliding { (0, 0) } else { random_seeds() };
        let mut arena = arena();
        let mut table = HashTable::with_seeds(words, seeds);
        let mut model = HashMap::new();
        for change in &changes {
            apply(&mut table, &mut model, &mut arena, change)?;
            check_counts(&table)?;
        }
        prop_assert_eq!(table.len(), model.len());
        for number in 0..200 {
            let found = table.find(&arena, &key(number, words));
            prop_assert_eq!(found, model.get(&number).copied());
        }
    }
}

enum Garbage {
    Block(Ref),
    Array(SlotArray),
}

/// Keys that are always present are always found, whatever happens to other keys and the array. Freed memory is
/// overwritten, so that a late reader would notice.
#[test]
fn keys_that_stay_are_found_during_changes() {
    const STAYING: u64 = 100;
    const ROUNDS: u64 = 20_000;
    let mut arena = arena();
    let mut table = HashTable::new(1);
    let stay: Vec<_> = (0..STAYING)
        .map(|number| block(&mut arena, &[number]))
        .collect();
    for (number, &block) in (0..).zip(&stay) {
        drop(table.insert(&arena, &[number], block));
    }
    let shown = AtomicPtr::new(table.slots_ptr().cast_mut());
    let base = arena.base().expose_provenance();
    let epochs = Epochs::new();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut participant = epochs.join();
            let (shown, ended, stay) = (&shown, &ended, &stay);
            scope.spawn(move || {
                let base = std::ptr::with_exposed_provenance(base);
                while !ended.load(Relaxed) {
                    participant.begin();
                    let array = shown.load(Acquire);
                    for number in 0..STAYING {
                        // SAFETY: published since the last `begin`; freed data passes through the epochs.
                        let found = unsafe { Slots::find(array, base, &[number]) };
                        assert_eq!(found, Some(stay[number as usize]));
                    }
                }
            });
        }
        let mut retired = Retired::new(&epochs);
        for round in 0..ROUNDS {
            // Up to 2,000 and down again in another order, so that arrays grow, shrink and fill with deleted slots.
            let number = STAYING + round * 7919 % 2_000;
            if let Some(block) = table.remove(&arena, &[number]) {
                retired.retire(Garbage::Block(block));
            } else {
                let block = block(&mut arena, &[number]);
                if let Some(old) = table.insert(&arena, &[number], block) {
                    shown.store(table.slots_ptr().cast_mut(), Release);
                    retired.retire(Garbage::Array(old));
                }
            }
            retired.collect(|garbage| match garbage {
                Garbage::Block(block) => {
                    // SAFETY: no reader can see the block.
                    unsafe { arena.pointer(block).write_bytes(0xff, 64) };
                    arena.free(block, 1);
                }
                Garbage::Array(old) => {
                    (0..old.count()).for_each(|at| old.slot(at).store(FREE, Relaxed))
                }
            });
        }
        ended.store(true, Relaxed);
    });
    assert!(table.len() >= STAYING as usize);
}
