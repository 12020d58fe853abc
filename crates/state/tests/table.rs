//! Tests of a table's guarantees, one by one, and by comparison with a map of the standard library.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;
use urtica_state::{Table, TableError, Word};

/// A key of two parts: (switch, port).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Port(u32, u16);

impl Word for Port {
    fn to_word(self) -> u64 {
        u64::from(self.0) << 16 | u64::from(self.1)
    }

    fn from_word(word: u64) -> Self {
        Self((word >> 16) as u32, word as u16)
    }
}

/// A key whose search starts at one of a few slots, so that nearly all keys are displaced.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crowding(u64);

impl Word for Crowding {
    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Self(word)
    }

    fn first_slot(word: u64) -> u64 {
        word & 0xf
    }
}

#[test]
fn inserts_return_the_old_value() {
    let table = Table::new();
    assert_eq!(table.insert(Port(1, 2), 3_u8), Ok(None));
    assert_eq!(table.insert(Port(1, 2), 3), Ok(Some(3)));
    assert_eq!(table.insert(Port(1, 2), 4), Ok(Some(3)));
    assert_eq!(table.insert(Port(2, 1), 5), Ok(None));
    assert_eq!(
        (table.get(Port(1, 2)), table.get(Port(3, 3))),
        (Some(4), None)
    );
    assert!(table.has(Port(1, 2), 4) && !table.has(Port(1, 2), 3) && !table.has(Port(3, 3), 3));
    assert_eq!(table.len(), 2);
    assert_eq!(table.remove(Port(1, 2)), Some(4));
    assert_eq!(table.remove(Port(1, 2)), None);
    assert_eq!(table.to_vec(), [(Port(2, 1), 5)]);
    assert_eq!(format!("{table:?}"), "{Port(2, 1): 5}");
}

#[test]
fn a_full_table_refuses_new_keys() {
    let table = Table::with_max_entries(100);
    for key in 0..100_u64 {
        assert_eq!(table.insert(key, 1_u32), Ok(None));
    }
    let full = TableError::Full { max_entries: 100 };
    assert_eq!(table.insert(1000, 1), Err(full));
    assert_eq!(
        full.to_string(),
        "the table is full: it holds 100 entries; remove some, or allow more when creating it"
    );
    assert_eq!(table.insert(50, 2), Ok(Some(1)), "a change is no new entry");
    assert_eq!(table.remove(7), Some(1));
    assert_eq!(table.insert(1000, 1), Ok(None));
    assert_eq!(table.len(), 100);
    assert_eq!(
        Table::with_max_entries(0).insert(1_u64, 1_u64),
        Err(TableError::Full { max_entries: 0 })
    );
    assert_eq!(
        Table::with_max_entries(usize::MAX).insert(1_u64, 1_u64),
        Ok(None)
    );
}

#[test]
fn one_word_is_reserved() {
    let table = Table::new();
    assert_eq!(table.insert(u64::MAX, 1_u64), Err(TableError::Reserved));
    assert_eq!(table.insert(1_u64, u64::MAX), Err(TableError::Reserved));
    assert_eq!(table.insert(u64::MAX, u64::MAX), Err(TableError::Reserved));
    assert_eq!((table.get(u64::MAX), table.remove(u64::MAX)), (None, None));
    assert!(!table.has(u64::MAX, 1) && !table.has(1, u64::MAX) && !table.has(u64::MAX, u64::MAX));
    assert_eq!(table.insert(u64::MAX - 1, u64::MAX - 1), Ok(None));
    assert_eq!(table.to_vec(), [(u64::MAX - 1, u64::MAX - 1)]);
}

#[test]
fn update_changes_adds_and_removes() {
    let table = Table::<u64, u32>::new();
    let count = |old: Option<u32>| Some(old.unwrap_or(0) + 1);
    assert_eq!(table.update(9, count), Ok(None));
    assert_eq!(table.update(9, count), Ok(Some(1)));
    assert_eq!(table.get(9), Some(2));
    assert!(!table.is_empty());
    assert_eq!(table.update(9, |_| None), Ok(Some(2)));
    assert_eq!(table.update(8, |_| None), Ok(None));
    assert!(table.is_empty());
}

/// Keys that are inserted and removed endlessly need only as many slots as keys are present at once.
#[test]
fn removed_keys_free_their_slots() {
    let table = Table::with_max_entries(64);
    for key in 0..50_000_u64 {
        assert_eq!(table.insert(key * 77, key), Ok(None));
        if key >= 64 - 1 {
            assert_eq!(table.remove((key - 63) * 77), Some(key - 63));
        }
    }
    assert_eq!(table.len(), 63);
}

/// Runs of keys may differ in any bits. With a bad hash, this test would not finish.
#[test]
fn keys_may_differ_in_any_bits() {
    for shift in (0..48).step_by(3) {
        let table = Table::new();
        for number in 0..10_000_u64 {
            assert_eq!(table.insert(number.rotate_left(shift), number), Ok(None));
        }
        for number in 0..10_000_u64 {
            assert_eq!(table.get(number.rotate_left(shift)), Some(number));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u32),
    Remove(u64),
    Add(u64, u32),
    Get(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = prop_oneof![
        0..100_u64,
        (0..100_u64).prop_map(|key| key << 32),
        Just(u64::MAX)
    ];
    prop_oneof![
        (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
        key.clone().prop_map(Step::Remove),
        (key.clone(), 0..4_u32).prop_map(|(key, add)| Step::Add(key, add)),
        key.prop_map(Step::Get),
    ]
}

/// The model: a map, a maximum number of entries, and a reserved key.
struct Model(BTreeMap<u64, u32>, usize);

impl Model {
    fn insert(&mut self, key: u64, value: u32) -> Result<Option<u32>, TableError> {
        match self.0.len() {
            _ if key == u64::MAX => Err(TableError::Reserved),
            len if len == self.1 && !self.0.contains_key(&key) => Err(TableError::Full {
                max_entries: self.1,
            }),
            _ => Ok(self.0.insert(key, value)),
        }
    }
}

/// Applies the steps to a table and to the model, converting the model's keys.
fn agrees_with_a_map<K: Word + Debug + PartialEq>(
    max_entries: usize,
    steps: Vec<Step>,
    key_of: fn(u64) -> K,
) -> Result<(), TestCaseError> {
    let table = Table::with_max_entries(max_entries);
    let mut model = Model(BTreeMap::new(), max_entries);
    for step in steps {
        match step {
            Step::Insert(key, value) => {
                let was = table.insert(key_of(key), value);
                prop_assert_eq!(was, model.insert(key, value));
            }
            Step::Remove(key) => prop_assert_eq!(table.remove(key_of(key)), model.0.remove(&key)),
            Step::Get(key) => {
                let value = model.0.get(&key).copied();
                table.prefetch(key_of(key));
                prop_assert_eq!(table.get(key_of(key)), value);
                prop_assert!(value.is_none_or(|value| table.has(key_of(key), value)));
                prop_assert!(!table.has(key_of(key), value.map_or(0, |value| !value)));
            }
            Step::Add(key, add) => {
                let added = |old: Option<u32>| old.unwrap_or(0).wrapping_add(add);
                let value = added(model.0.get(&key).copied());
                let updated = table.update(key_of(key), |old| Some(added(old)));
                prop_assert_eq!(updated, model.insert(key, value));
            }
        }
        prop_assert_eq!(table.len(), model.0.len());
    }
    let entries: Vec<_> = model.0.into_iter().collect();
    let entries: Vec<_> = (entries.into_iter())
        .map(|(key, value)| (key_of(key), value))
        .collect();
    prop_assert_eq!(&table.to_vec(), &entries);
    let mut visited = Vec::new();
    table.for_each(|key, value| visited.push((key, value)));
    prop_assert_eq!(visited, entries);
    Ok(())
}

proptest! {
    #[test]
    fn behaves_like_a_map(
        max_entries in prop_oneof![Just(20_usize), Just(90), Just(1000)],
        steps in prop::collection::vec(step(), 0..500),
    ) {
        agrees_with_a_map(max_entries, steps.clone(), |key| key)?;
        agrees_with_a_map(max_entries, steps, Crowding)?;
    }
}

/// A table larger than the L1 and L2 caches, so that it is prefetched as well.
#[test]
fn a_large_table_finds_all_keys() {
    let table = Table::new();
    let keys = || (0..4000_u64).map(|number| Crowding(number * 3));
    for key in keys() {
        assert_eq!(table.insert(key, key.0), Ok(None));
    }
    for key in keys() {
        table.prefetch(key);
        assert_eq!(table.get(key), Some(key.0));
        assert_eq!(table.get(Crowding(key.0 + 1)), None);
    }
}
