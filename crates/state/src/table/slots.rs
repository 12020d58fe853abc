//! The slots of a table: open addressing by cache lines.
//!
//! **How.** Four entries, key and value beside each other, share a cache line. A key is in the first line of its *path* that
//! had a free slot when it came. The path begins at [`Word::first_slot`](crate::Word::first_slot), goes on to the same
//! line of other neighbourhoods of sixty-four slots, in steps that depend on the key (double hashing), and goes through all
//! lines in the end.
//!
//! A key stays where it is for as long as these slots are used; where it is removed, its value becomes [`NOTHING`]. So a
//! search may end at the first line that has a free slot, and what is found beside a key is always its own.
//!
//! **Thread-safety.** Any number of threads search while others claim and write, provided that of those who write the same
//! key, one does at a time.

use crate::sync::{AtomicU64, AtomicUsize, NEIGHBOURHOOD};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Entries in a cache line.
const LINE: usize = 4;

/// How many slots there are at least: one neighbourhood.
pub(super) const FIRST_SLOTS: usize = LINE * NEIGHBOURHOOD;

/// Up to how many slots (64 KiB) a table in use is assumed to be in the processor's near caches.
const NEAR_SLOTS: usize = 1 << 12;

/// The value of an absent key; and the one word that no value may be.
pub(super) const NOTHING: u64 = u64::MAX;

/// The key of a free slot; and the one word that no key may be.
pub(super) const FREE: u64 = u64::MAX;

/// Something with cache lines of its own; two of them, as processors fetch lines in pairs.
#[repr(align(128))]
pub(super) struct OwnLine<T>(pub T);

/// Some slots, a power of two.
pub(super) struct Slots {
    lines: Box<[Line]>,
    /// Maps a number to a slot.
    mask: usize,
    /// Of each neighbourhood, whether keys that begin their search there were put elsewhere. A hint, on which nothing depends.
    crowded: Box<[AtomicBool]>,
    /// How many are not free. Apart from what all read: each new key writes it.
    taken: OwnLine<AtomicUsize>,
}

#[repr(align(64))]
struct Line([Entry; LINE]);

/// A slot.
pub(super) struct Entry {
    key: AtomicU64,
    value: AtomicU64,
}

impl Slots {
    /// Free slots, a power of two of them and at least [`FIRST_SLOTS`].
    pub fn new(count: usize) -> Self {
        let line = || Line(std::array::from_fn(|_| Entry::free()));
        Self {
            lines: (0..count / LINE).map(|_| line()).collect(),
            mask: count - 1,
            crowded: (0..count / FIRST_SLOTS).map(|_| false.into()).collect(),
            taken: OwnLine(AtomicUsize::new(0)),
        }
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.mask + 1
    }

    /// Whether the near caches have them all anyway.
    #[inline(always)]
    pub fn are_few(&self) -> bool {
        self.mask < NEAR_SLOTS
    }

    /// How many have or had a key.
    pub fn taken(&self) -> usize {
        self.taken.0.load(Relaxed)
    }

    /// The first slot on the probe sequence of a key that begins its search at `first`: most keys are there.
    #[inline(always)]
    pub fn first(&self, first: u64) -> &Entry {
        let slot = first as usize & self.mask;
        const { assert!(size_of::<Line>() == LINE * size_of::<Entry>()) };
        // SAFETY: there is a power of two of entries, so that the mask leaves less than there are, and lines are nothing but
        // entries one after the other.
        unsafe { &*self.lines.as_ptr().cast::<Entry>().add(slot) }
    }

    /// The slot that is probed next, in the second line of the path.
    #[inline(always)]
    pub fn second(&self, first: u64) -> &Entry {
        self.first(first.wrapping_add(step(first) * FIRST_SLOTS as u64))
    }

    /// Whether keys that begin their search beside `first` may be found elsewhere.
    #[inline(always)]
    pub fn is_crowded(&self, first: u64) -> bool {
        // SAFETY: `crowded` has one for each neighbourhood of the slots, and the mask leaves a slot below their number.
        unsafe { self.crowded.get_unchecked(self.neighbourhood(first)) }.load(Relaxed)
    }

    #[inline(always)]
    fn neighbourhood(&self, first: u64) -> usize {
        (first as usize & self.mask) / FIRST_SLOTS
    }

    /// The slot with this key, which begins its search at `first`.
    pub fn find(&self, first: u64, key: u64) -> Option<&Entry> {
        // The key would have taken that slot, and no slot becomes free again.
        if self.first(first).key() == FREE {
            return None;
        }
        for line in self.path(first) {
            let mut has_free = false;
            for entry in &line.0 {
                match entry.key() {
                    found if found == key => return Some(entry),
                    found => has_free |= found == FREE,
                }
            }
            if has_free {
                return None;
            }
        }
        None
    }

    /// Takes a slot for a key that has none; nothing if `limit` slots are taken.
    pub fn claim(&self, first: u64, key: u64, limit: usize) -> Option<&Entry> {
        if self.taken.0.fetch_add(1, Relaxed) >= limit {
            self.taken.0.fetch_sub(1, Relaxed);
            return None;
        }
        self.probes(first).find(|entry| entry.claim(key))
    }

    /// The same for a key with its value, without synchronisation: while nobody else writes, and there are more slots than keys.
    pub fn put_alone(&self, first: u64, key: u64, value: u64) {
        let entry = self.probes(first).find(|entry| entry.key() == FREE);
        let entry = entry.expect("there are more slots than keys");
        entry.key.store(key, Release);
        entry.set(value);
        self.taken.0.store(self.taken() + 1, Relaxed);
    }

    /// The probe sequence: all slots, in the order in which a key that begins its search at `first` takes them. It goes on to
    /// the second line only if the first has none, which is noted.
    fn probes(&self, first: u64) -> impl Iterator<Item = &Entry> {
        let preferred = first as usize % LINE;
        let lines = self.path(first).enumerate();
        lines.flat_map(move |(probe, line)| {
            if probe == 1 {
                self.crowded[self.neighbourhood(first)].store(true, Relaxed);
            }
            (0..LINE).map(move |at| &line.0[at ^ preferred])
        })
    }

    /// All lines, in the order in which a search that begins at `first` looks at them.
    #[inline]
    fn path(&self, first: u64) -> impl Iterator<Item = &Line> {
        let neighbourhoods = self.lines.len() / NEIGHBOURHOOD;
        let (start, offset) = (first as usize / FIRST_SLOTS, first as usize / LINE);
        let step = step(first) as usize;
        let probes_in_round = neighbourhoods.trailing_zeros();
        (0..self.lines.len()).map(move |probe| {
            let neighbourhood = start.wrapping_add(probe.wrapping_mul(step)) & (neighbourhoods - 1);
            let offset = offset.wrapping_add(probe >> probes_in_round) & (NEIGHBOURHOOD - 1);
            &self.lines[neighbourhood * NEIGHBOURHOOD + offset]
        })
    }

    /// All keys that have a value, with it, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let entries = self.lines.iter().flat_map(|line| &line.0);
        let pairs = entries.map(|entry| (entry.key(), entry.value()));
        pairs.filter(|&(key, value)| key != FREE && value != NOTHING)
    }

    /// Frees all slots. A search that is still running here may find anything, and is repeated.
    pub fn clear(&self) {
        for entry in self.lines.iter().flat_map(|line| &line.0) {
            entry.key.store(FREE, Release);
            entry.value.store(NOTHING, Release);
        }
        for crowded in &self.crowded {
            crowded.store(false, Relaxed);
        }
        self.taken.0.store(0, Relaxed);
    }
}

/// How many neighbourhoods a search goes on by: odd, to come through all, as they are a power of two.
#[inline(always)]
fn step(first: u64) -> u64 {
    first >> 40 | 1
}

impl Entry {
    fn free() -> Self {
        Self {
            key: AtomicU64::new(FREE),
            value: AtomicU64::new(NOTHING),
        }
    }

    /// The key, or [`FREE`].
    #[inline(always)]
    pub fn key(&self) -> u64 {
        self.key.load(Acquire)
    }

    /// The key's value, or [`NOTHING`].
    #[inline(always)]
    pub fn value(&self) -> u64 {
        self.value.load(Acquire)
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.value.store(value, Release);
    }

    /// Makes the slot that of a key, unless it is another's. There is no value yet.
    fn claim(&self, key: u64) -> bool {
        self.key.load(Relaxed) == FREE
            && (self.key)
                .compare_exchange(FREE, key, AcqRel, Relaxed)
                .is_ok()
    }
}
