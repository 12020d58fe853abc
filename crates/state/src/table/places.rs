//! The places of a table: open addressing by cache lines.
//!
//! **How.** Four entries, key and value beside each other, share a cache line. A key is in the first line of its *path* that
//! had a free place when it came. The path begins at [`Word::first_place`](crate::Word::first_place), goes on to the same
//! line of other neighbourhoods of sixty-four places, in steps that depend on the key (double hashing), and goes through all
//! lines in the end.
//!
//! A key stays where it is for as long as these places are used; where it is removed, its value becomes [`NOTHING`]. So a
//! search may end at the first line that has a free place, and what is found beside a key is always its own.
//!
//! **Thread-safety.** Any number of threads search while others claim and write, provided that of those who write the same
//! key, one does at a time.

use super::OwnLine;
use crate::sync::{AtomicU64, AtomicUsize, NEIGHBOURHOOD};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Entries in a cache line.
const LINE: usize = 4;

/// How many places there are at least: one neighbourhood.
pub(super) const FIRST_PLACES: usize = LINE * NEIGHBOURHOOD;

/// What a key has that is not there; and the one word that no value may be.
pub(super) const NOTHING: u64 = u64::MAX;

/// The key of a free place; and the one word that no key may be.
pub(super) const FREE: u64 = u64::MAX;

/// Some places, a power of two.
pub(super) struct Places {
    lines: Box<[Line]>,
    /// How many are not free. Apart from what all read: each new key writes it.
    taken: OwnLine<AtomicUsize>,
}

#[repr(align(64))]
struct Line([Entry; LINE]);

/// A place.
pub(super) struct Entry {
    key: AtomicU64,
    value: AtomicU64,
}

impl Places {
    /// Free places, a power of two of them and at least [`FIRST_PLACES`].
    pub fn new(count: usize) -> Self {
        let line = || Line(std::array::from_fn(|_| Entry::free()));
        Self {
            lines: (0..count / LINE).map(|_| line()).collect(),
            taken: OwnLine(AtomicUsize::new(0)),
        }
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.lines.len() * LINE
    }

    /// How many have or had a key.
    pub fn taken(&self) -> usize {
        self.taken.0.load(Relaxed)
    }

    /// Where a search that begins at `first` looks first: most keys are there.
    #[inline(always)]
    pub fn first(&self, first: u64) -> &Entry {
        let line = (first as usize / LINE) & (self.lines.len() - 1);
        // SAFETY: there is a power of two of lines, so that the mask leaves less than there are.
        let line = unsafe { self.lines.get_unchecked(line) };
        &line.0[first as usize % LINE]
    }

    /// The place with this key, which begins its search at `first`.
    pub fn find(&self, first: u64, key: u64) -> Option<&Entry> {
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

    /// Takes a place for a key that has none; nothing if `limit` places are taken.
    pub fn claim(&self, first: u64, key: u64, limit: usize) -> Option<&Entry> {
        if self.taken.0.fetch_add(1, Relaxed) >= limit {
            self.taken.0.fetch_sub(1, Relaxed);
            return None;
        }
        let wish = first as usize % LINE;
        self.path(first).find_map(|line| {
            let by_wish = (0..LINE).map(|at| &line.0[at ^ wish]);
            by_wish.into_iter().find(|entry| entry.claim(key))
        })
    }

    /// All lines, in the order in which a search that begins at `first` looks at them.
    #[inline]
    fn path(&self, first: u64) -> impl Iterator<Item = &Line> {
        let neighbourhoods = self.lines.len() / NEIGHBOURHOOD;
        let (start, offset) = (first as usize / FIRST_PLACES, first as usize / LINE);
        // An odd step comes through all neighbourhoods, as they are a power of two.
        let step = (first >> 40) as usize | 1;
        let turns_in_round = neighbourhoods.trailing_zeros();
        (0..self.lines.len()).map(move |turn| {
            let neighbourhood = start.wrapping_add(turn.wrapping_mul(step)) & (neighbourhoods - 1);
            let offset = offset.wrapping_add(turn >> turns_in_round) & (NEIGHBOURHOOD - 1);
            &self.lines[neighbourhood * NEIGHBOURHOOD + offset]
        })
    }

    /// All keys that have a value, with it, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let entries = self.lines.iter().flat_map(|line| &line.0);
        let pairs = entries.map(|entry| (entry.key(), entry.value()));
        pairs.filter(|&(key, value)| key != FREE && value != NOTHING)
    }

    /// Frees all places. Whoever still searches here finds one thing or another.
    pub fn clear(&self) {
        for entry in self.lines.iter().flat_map(|line| &line.0) {
            entry.key.store(FREE, Release);
            entry.value.store(NOTHING, Release);
        }
        self.taken.0.store(0, Relaxed);
    }
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

    /// Makes the place that of a key, unless it is another's. There is no value yet.
    fn claim(&self, key: u64) -> bool {
        self.key.load(Relaxed) == FREE
            && (self.key)
                .compare_exchange(FREE, key, AcqRel, Relaxed)
                .is_ok()
    }
}
