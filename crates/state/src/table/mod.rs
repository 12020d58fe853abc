//! A concurrent map from word to word that many threads read and write often.
//!
//! **What.** A map for host locations (McNettle section 4.2, Primetime section IV.C): a look-up reads one cache line,
//! rarely two, and takes no lock; an insert that changes nothing is a look-up; writers of different keys rarely contend.
//!
//! **How.** [`slots`] has the layout. A change takes one of [`STRIPES`] locks, chosen by the key. When slots run out, all locks
//! are taken, and the entries are copied to other slots, which become the table's: the next *generation*. Readers are not
//! affected unless they read slots that are already reused: then the generation has changed, and they search again.
//!
//! **Why this is correct.** A reader reads the generation, the slots in use, and then key and value, all with `Acquire`, and
//! checks that the generation is unchanged. The slots that it found are cleared only at a later growth, after the generation
//! was raised with `Release`. So a reader that sees a store of the clearing, or of anything after it, also sees the raised
//! generation. Otherwise its reads returned values that were stored when it found the slots, or later.
//!
//! **Cost.** 16 bytes for each slot, and one byte for sixty-four of them. At most half of the slots are used while the table
//! can grow, and at most seven eighths afterwards. Outgrown slots are kept, since a reader may still use them, and reused if
//! their number fits, so memory is needed for at most three times the slots. Growing blocks writers, but not readers, for some
//! ten nanoseconds per entry. Runs of keys are stored together; if the slots of a run are occupied, the whole run is stored
//! elsewhere. If a third of the slots is used, a count gives 15 in 100 keys, ten of them in their second slot.
//! [`Table::prefetch`] also fetches the second slot if it may be needed.
//!
//! **In transactions**, a table may be read but not changed, since a change could not be rolled back. Replacing an entry
//! panics; reading, and inserting an entry that exists already, cost nothing extra.
//!
//! **Thread-safety.** All methods may be called from any thread, and are atomic, except `to_vec` and `for_each`: each entry
//! that they return existed at some time during the call, but not all at one time.

mod slots;

use crate::Word;
use crate::stm::in_transaction;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, MutexGuard, STRIPES, prefetch};
use slots::{Entry, FIRST_SLOTS, FREE, NOTHING, OwnLine, Slots};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, PoisonError};

/// The maximum number of entries by default.
const DEFAULT_MAX_ENTRIES: usize = 1 << 22;

/// More entries than any memory can hold.
const MOST_ENTRIES: usize = 1 << 48;

/// The reason why a [`Table`] refused an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// It is full.
    #[error(
        "the table is full: it holds {max_entries} entries; remove some, or allow more when creating it"
    )]
    Full {
        /// The maximum number of entries.
        max_entries: usize,
    },
    /// The key or the value is the word `u64::MAX`, which is reserved.
    #[error(
        "the word 0xffffffffffffffff is reserved by the table; expected a key and a value that convert to others"
    )]
    Reserved,
}

/// A concurrent map from small keys to small values.
///
/// Share it between threads in an `Arc`. Entries are ordered by their keys' words; nothing is random.
///
/// ```
/// use urtica_state::Table;
///
/// let ports: Table<u64, u32> = Table::with_max_entries(100_000);
/// assert_eq!(ports.insert(0x0200_0000_0001, 3)?, None);
/// assert_eq!(ports.insert(0x0200_0000_0001, 4)?, Some(3), "the host has moved");
/// assert_eq!(ports.get(0x0200_0000_0001), Some(4));
/// # Ok::<(), urtica_state::TableError>(())
/// ```
pub struct Table<K, V> {
    current: Current,
    len: OwnLine<AtomicUsize>,
    stripes: Box<[OwnLine<Mutex<()>>]>,
    /// All slots: those in use, and those that readers may still read. Locked before all stripes.
    all: Mutex<Vec<Arc<Slots>>>,
    max_entries: usize,
    max_slots: usize,
    /// Invariant in both types: another type may convert words differently.
    types: PhantomData<(Exactly<K>, Exactly<V>)>,
}

/// A type that is invariant in `T`.
type Exactly<T> = fn(T) -> T;

/// The slots in use. Read by all threads, and written only when the table grows.
#[repr(align(128))]
struct Current {
    slots: AtomicPtr<Slots>,
    generation: AtomicU64,
}

/// The outcome of an attempt to change an entry.
enum Exchange {
    /// The change was made; the old value was this.
    Done(u64),
    /// The value differs from the expected one.
    Changed,
    /// No slot is left for a new key.
    NoSlot,
}

impl<K: Word, V: Word> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Word, V: Word> Table<K, V> {
    /// Creates an empty table for four million (2^22) entries.
    pub fn new() -> Self {
        Self::with_max_entries(DEFAULT_MAX_ENTRIES)
    }

    /// Creates an empty table for at most `max_entries` entries. It allocates memory as it grows.
    pub fn with_max_entries(max_entries: usize) -> Self {
        let slots = Arc::new(Slots::new(FIRST_SLOTS));
        let max_slots = (max_entries.min(MOST_ENTRIES) / 3 * 4 + 4).next_power_of_two();
        Self {
            current: Current {
                slots: AtomicPtr::new(Arc::as_ptr(&slots).cast_mut()),
                generation: AtomicU64::new(0),
            },
            len: OwnLine(AtomicUsize::new(0)),
            stripes: (0..STRIPES).map(|_| OwnLine(Mutex::new(()))).collect(),
            all: Mutex::new(vec![slots]),
            max_entries,
            max_slots: max_slots.max(FIRST_SLOTS),
            types: PhantomData,
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len.0.load(Relaxed)
    }

    /// Returns `true` if the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key's value.
    #[inline(always)]
    pub fn get(&self, key: K) -> Option<V> {
        let value = self.find(key.to_word());
        (value != NOTHING).then(|| V::from_word(value))
    }

    /// Returns `true` if this is the key's value: cheaper than comparing it with the result of [`Table::get`].
    #[inline(always)]
    pub fn has(&self, key: K, value: V) -> bool {
        let word = value.to_word();
        self.find(key.to_word()) == word && word != NOTHING
    }

    /// A prefetch hint: fetches the key's slot from memory for a look-up that follows soon. Does nothing for a table that fits
    /// into the L1 and L2 caches.
    #[inline(always)]
    pub fn prefetch(&self, key: K) {
        let slots = self.slots();
        if !slots.are_few() {
            let first = K::first_slot(key.to_word());
            prefetch(slots.first(first));
            if slots.is_crowded(first) {
                prefetch(slots.second(first));
            }
        }
    }

    /// Sets the key's value, and returns the old one. If both are equal, no memory is written.
    ///
    /// # Errors
    /// [`TableError`] if the table is full, or the key or the value is the reserved word.
    ///
    /// # Panics
    /// In a transaction, if the value differs from the old one: see [`in_transaction`](crate::in_transaction).
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Result<Option<V>, TableError> {
        match self.has(key, value) {
            true => Ok(Some(value)),
            false => self.insert_other(key, value),
        }
    }

    #[inline(never)]
    fn insert_other(&self, key: K, value: V) -> Result<Option<V>, TableError> {
        let (key, new) = (key.to_word(), word_of(value)?);
        if key == FREE {
            return Err(TableError::Reserved);
        }
        loop {
            match self.exchange(key, None, new)? {
                Exchange::Done(old) => return Ok((old != NOTHING).then(|| V::from_word(old))),
                Exchange::NoSlot => self.make_room(),
                Exchange::Changed => unreachable!("no value was expected"),
            }
        }
    }

    /// Removes the key, and returns its value.
    ///
    /// # Panics
    /// In a transaction, if the key exists.
    pub fn remove(&self, key: K) -> Option<V> {
        // Removing needs no slot, and the reserved word is never a key.
        self.update(key, |_| None).ok().flatten()
    }

    /// Sets the key's value to the result of `change`, or removes the key if that is `None`, and returns the old value. If
    /// another thread changes the value during the call, `change` is called again.
    ///
    /// # Errors
    /// Like [`Table::insert`].
    ///
    /// # Panics
    /// Like [`Table::insert`].
    pub fn update(
        &self,
        key: K,
        change: impl Fn(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, TableError> {
        let key = key.to_word();
        if key == FREE {
            return change(None).map_or(Ok(None), |_| Err(TableError::Reserved));
        }
        loop {
            let word = self.find(key);
            let old = (word != NOTHING).then(|| V::from_word(word));
            let new = change(old).map_or(Ok(NOTHING), word_of)?;
            match self.exchange(key, Some(word), new)? {
                Exchange::Done(_) => return Ok(old),
                Exchange::Changed => {}
                Exchange::NoSlot => self.make_room(),
            }
        }
    }

    /// Calls `each` with all entries, in the order of their keys' words.
    pub fn for_each(&self, mut each: impl FnMut(K, V)) {
        let entries = self.to_vec();
        entries
            .into_iter()
            .for_each(|(key, value)| each(key, value));
    }

    /// Returns all entries, in the order of their keys' words. The table cannot grow during the call.
    pub fn to_vec(&self) -> Vec<(K, V)> {
        let _no_growth = lock(&self.all);
        let mut entries: Vec<_> = self.slots().entries().collect();
        entries.sort_unstable();
        let typed = |(key, value)| (K::from_word(key), V::from_word(value));
        entries.into_iter().map(typed).collect()
    }

    #[inline(always)]
    fn slots(&self) -> &Slots {
        // SAFETY: `current` points into an `Arc` of `all`, from which no slots are ever removed: they live as long as the
        // table.
        unsafe { &*self.current.slots.load(Acquire) }
    }

    /// Returns the key's value, or `NOTHING`.
    #[inline(always)]
    fn find(&self, key: u64) -> u64 {
        let first = K::first_slot(key);
        let generation = self.current.generation.load(Acquire);
        let slots = self.slots();
        let value_at = |entry: &Entry| {
            let value = entry.value();
            (self.current.generation.load(Relaxed) == generation).then_some(value)
        };
        let entry = slots.first(first);
        let found = entry.key();
        if found == key && key != FREE {
            return value_at(entry).unwrap_or_else(|| self.find_further(key));
        }
        // If the first slot is free, the table does not have the key, and no other line needs to be read.
        let entry = slots.second(first);
        if found != FREE && entry.key() == key && key != FREE {
            return value_at(entry).unwrap_or_else(|| self.find_further(key));
        }
        self.find_further(key)
    }

    #[cold]
    fn find_further(&self, key: u64) -> u64 {
        if key == FREE {
            return NOTHING; // What is free now may be another key's in a moment.
        }
        let first = K::first_slot(key);
        loop {
            let generation = self.current.generation.load(Acquire);
            let entry = self.slots().find(first, key);
            let value = entry.map_or(NOTHING, Entry::value);
            if self.current.generation.load(Relaxed) == generation {
                return value;
            }
        }
    }

    /// Sets a key's value, if the current value equals `expected` or that is `None`.
    fn exchange(&self, key: u64, expected: Option<u64>, new: u64) -> Result<Exchange, TableError> {
        if expected == Some(new) {
            return Ok(Exchange::Done(new));
        }
        assert!(
            !in_transaction(),
            "a table cannot be changed inside a transaction, which may run again or be aborted; have it return the \
             changes, and make them afterwards"
        );
        let first = K::first_slot(key);
        let _alone = lock(self.stripe(first));
        // The slots are not replaced while we hold a stripe.
        let slots = self.slots();
        let entry = slots.find(first, key);
        let old = entry.map_or(NOTHING, Entry::value);
        if expected.is_some_and(|expected| expected != old) {
            return Ok(Exchange::Changed);
        }
        if old == NOTHING {
            self.count_in()?;
        }
        let Some(entry) = entry.or_else(|| slots.claim(first, key, self.limit(slots))) else {
            self.len.0.fetch_sub(1, Relaxed);
            return Ok(Exchange::NoSlot);
        };
        entry.set(new);
        if new == NOTHING {
            self.len.0.fetch_sub(1, Relaxed);
        }
        Ok(Exchange::Done(old))
    }

    /// Counts a new entry, unless the table is full.
    fn count_in(&self) -> Result<(), TableError> {
        let more = |len| (len < self.max_entries).then_some(len + 1);
        let counted = self.len.0.fetch_update(Relaxed, Relaxed, more);
        counted.map_err(|_| TableError::Full {
            max_entries: self.max_entries,
        })?;
        Ok(())
    }

    /// Returns the number of slots that may be used.
    fn limit(&self, slots: &Slots) -> usize {
        match slots.count() {
            count if count < self.max_slots => count / 2,
            count => count * 7 / 8,
        }
    }

    fn stripe(&self, first: u64) -> &Mutex<()> {
        // Neighbours have different slots in a line, or different lines, so they can share a lock.
        &self.stripes[(first as usize / FIRST_SLOTS) % STRIPES].0
    }

    /// Copies the entries to twice as many slots, or to as many if many entries were removed or the table cannot grow further.
    #[cold]
    fn make_room(&self) {
        let mut all = lock(&self.all);
        let _alone: Vec<_> = self.stripes.iter().map(|stripe| lock(&stripe.0)).collect();
        let old = self.slots();
        if old.taken() < self.limit(old) {
            return; // Another thread has done it already.
        }
        let is_crowded = self.len() * 2 >= self.limit(old);
        let count = match is_crowded && old.count() < self.max_slots {
            true => old.count() * 2,
            false => old.count(),
        };
        let new = Self::spare(&mut all, old, count);
        for (key, value) in old.entries() {
            new.put_alone(K::first_slot(key), key, value);
        }
        self.current
            .slots
            .store(Arc::as_ptr(&new).cast_mut(), Release);
        self.current.generation.fetch_add(1, Release);
    }

    /// Returns `count` free slots other than those in use.
    fn spare(all: &mut Vec<Arc<Slots>>, used: &Slots, count: usize) -> Arc<Slots> {
        let is_spare =
            |slots: &&Arc<Slots>| slots.count() == count && !std::ptr::eq(&***slots, used);
        if let Some(spare) = all.iter().find(is_spare) {
            spare.clear();
            return Arc::clone(spare);
        }
        let new = Arc::new(Slots::new(count));
        all.push(Arc::clone(&new));
        new
    }
}

impl<K: Word + fmt::Debug, V: Word + fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.to_vec()).finish()
    }
}

/// Returns a value's word, unless it is the reserved one.
fn word_of<V: Word>(value: V) -> Result<u64, TableError> {
    match value.to_word() {
        NOTHING => Err(TableError::Reserved),
        word => Ok(word),
    }
}

/// Ignores poisoning: no code here panics while it holds the lock and the data is inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
