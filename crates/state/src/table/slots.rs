//! The slots of a table: open addressing by cache lines.
//!
//! **How.** Four entries, each a key next to its value, share a cache line. A key is in the first line of its *path* that had a
//! free slot when it was inserted. The path starts at [`Word::first_slot`](crate::Word::first_slot), continues to the
//! corresponding lines of other neighbourhoods of sixty-four slots, in steps that depend on the key (double hashing), and
//! eventually visits all lines.
//!
//! A key never moves while these slots are in use; when it is removed, its value becomes [`NOTHING`]. So a search may end
//! at the first line that has a free slot, and the value next to a key always belongs to it.
//!
//! **Thread-safety.** Any number of threads search while others claim and write, provided that each key has at most one writer
//! at a time.

use crate::sync::{AtomicU64, AtomicUsize, NEIGHBOURHOOD};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Entries in a cache line.
const LINE: usize = 4;

/// The minimum number of slots: one neighbourhood.
pub(super) const FIRST_SLOTS: usize = LINE * NEIGHBOURHOOD;

/// The number of slots (64 KiB) up to which a table in use is assumed to be in the processor's L1 or L2 cache.
const NEAR_SLOTS: usize = 1 << 12;

/// The value of an absent key, and the reserved word that no value may be.
pub(super) const NOTHING: u64 = u64::MAX;

/// The key of a free slot, and the reserved word that no key may be.
pub(super) const FREE: u64 = u64::MAX;

/// Gives a value its own two cache lines, since processors fetch lines in pairs.
#[repr(align(128))]
pub(super) struct OwnLine<T>(pub T);

/// The slots; their number is a power of two.
pub(super) struct Slots {
    lines: Box<[Line]>,
    /// Maps a number to a slot.
    mask: usize,
    /// For each neighbourhood, whether some keys whose search starts there are stored elsewhere. Only a hint: correctness does
    /// not depend on it.
    crowded: Box<[AtomicBool]>,
    /// The number of slots that are not free. On its own cache lines, since each new key writes it.
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
    /// Creates `count` free slots, a power of two and at least [`FIRST_SLOTS`].
    pub fn new(count: usize) -> Self {
        let line = || Line(std::array::from_fn(|_| Entry::free()));
        Self {
            lines: (0..count / LINE).map(|_| line()).collect(),
            mask: count - 1,
            crowded: (0..count / FIRST_SLOTS).map(|_| false.into()).collect(),
            taken: OwnLine(AtomicUsize::new(0)),
        }
    }

    /// Returns the number of slots.
    #[inline]
    pub fn count(&self) -> usize {
        self.mask + 1
    }

    /// Returns `true` if all slots fit into the L1 or L2 cache.
    #[inline(always)]
    pub fn are_few(&self) -> bool {
        self.mask < NEAR_SLOTS
    }

    /// Returns the number of slots that have or had a key.
    pub fn taken(&self) -> usize {
        self.taken.0.load(Relaxed)
    }

    /// Returns the first slot in the probe sequence of a key whose search starts at `first`. Most keys are there.
    #[inline(always)]
    pub fn first(&self, first: u64) -> &Entry {
        let slot = first as usize & self.mask;
        const { assert!(size_of::<Line>() == LINE * size_of::<Entry>()) };
        // SAFETY: the number of entries is a power of two, so the masked index is below it, and lines consist of consecutive
        // entries.
        unsafe { &*self.lines.as_ptr().cast::<Entry>().add(slot) }
    }

    /// Returns the slot that is probed next, in the second line of the path.
    #[inline(always)]
    pub fn second(&self, first: u64) -> &Entry {
        self.first(first.wrapping_add(step(first) * FIRST_SLOTS as u64))
    }

    /// Returns `true` if keys whose search starts near `first` may be stored elsewhere.
    #[inline(always)]
    pub fn is_crowded(&self, first: u64) -> bool {
        // SAFETY: `crowded` has a flag for each neighbourhood, and the mask keeps a slot's index below their number.
        unsafe { self.crowded.get_unchecked(self.neighbourhood(first)) }.load(Relaxed)
    }

    #[inline(always)]
    fn neighbourhood(&self, first: u64) -> usize {
        (first as usize & self.mask) / FIRST_SLOTS
    }

    /// Returns the slot with this key, whose search starts at `first`.
    pub fn find(&self, first: u64, key: u64) -> Option<&Entry> {
        // The key would have claimed that slot, and no slot becomes free again.
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

    /// Claims a slot for a key that is not in the table; `None` if `limit` slots are used.
    pub fn claim(&self, first: u64, key: u64, limit: usize) -> Option<&Entry> {
        if self.taken.0.fetch_add(1, Relaxed) >= limit {
            self.taken.0.fetch_sub(1, Relaxed);
            return None;
        }
        self.probes(first).find(|entry| entry.claim(key))
    }

    /// Claims a slot for a key and sets its value, without synchronisation: no other thread may write, and there must be more
    /// slots than keys.
    pub fn put_alone(&self, first: u64, key: u64, value: u64) {
        let entry = self.probes(first).find(|entry| entry.key() == FREE);
        let entry = entry.expect("there are more slots than keys");
        entry.key.store(key, Release);
        entry.set(value);
        self.taken.0.store(self.taken() + 1, Relaxed);
    }

    /// Returns the probe sequence: all slots, in the order in which a key whose search starts at `first` tries them. If it
    /// continues to the second line because the first is full, the neighbourhood is marked as crowded.
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

    /// Returns all lines, in the order of a search that starts at `first`.
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

    /// Returns all keys that have a value, each with its value, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let entries = self.lines.iter().flat_map(|line| &line.0);
        let pairs = entries.map(|entry| (entry.key(), entry.value()));
        pairs.filter(|&(key, value)| key != FREE && value != NOTHING)
    }

    /// Frees all slots. A search that is still running here may return anything, and is repeated.
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

/// Returns the number of neighbourhoods that a search advances by. It is odd, so the search reaches all of them, whose number
/// is a power of two.
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

    /// Returns the key, or [`FREE`].
    #[inline(always)]
    pub fn key(&self) -> u64 {
        self.key.load(Acquire)
    }

    /// Returns the key's value, or [`NOTHING`].
    #[inline(always)]
    pub fn value(&self) -> u64 {
        self.value.load(Acquire)
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.value.store(value, Release);
    }

    /// Claims the slot for a key, unless another key has it. The value is not set yet.
    fn claim(&self, key: u64) -> bool {
        self.key.load(Relaxed) == FREE
            && (self.key)
                .compare_exchange(FREE, key, AcqRel, Relaxed)
                .is_ok()
    }
}
