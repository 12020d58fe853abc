//! A hash table for keys of up to eight 64-bit words.
//!
//! **What.** The table maps keys to blocks of an arena, each of which starts with its key. One writer changes a [`HashTable`];
//! readers, including generated code, use its [`Slots`].
//!
//! **How.** Open addressing with linear probing. The array is a header of one cache line (`mask`, `seed0`, `seed1`, 8
//! bytes each) and then `mask + 1` slots of 8 bytes, a power of two. A slot is
//!
//! | content | means |
//! | --- | --- |
//! | 0 | free: a search ends here |
//! | 1 | deleted: a search continues |
//! | `tag << 32 \| ref` | the block `ref`; `tag` is the hash's upper 32 bits, the topmost of them set |
//!
//! A search starts at slot `hash & mask` and continues with the following ones, wrapping around, up to a free one. If the tag
//! is the key's, the key's words are compared with those at `base + ref * 64`. See [`hash`] for the hash function.
//!
//! At most half of the slots are in use or deleted, in small arrays an eighth. If another one would exceed this,
//! [`HashTable::insert`] builds a new array, at most half as full, and returns the old one. A deleted slot before a free one
//! becomes free immediately, since no search needs to pass it.
//!
//! **Cost.** A search usually reads one cache line of slots and the block. Slots need 16 to 32 bytes per key while the table
//! only grows. A change needs one search and one store, except for rebuilding, which is amortised over at least as many
//! changes as an eighth of the array's slots.
//!
//! **Hashing.** Keys come from a controller, which may copy them from packets. Random seeds per process prevent the
//! computation of keys that collide. The hash is fast, not cryptographic.
//!
//! **Thread-safety.** A change of the table is one `Release` store to one slot; readers load slots with `Acquire`, and so see
//! the key's words, which were written before. A key never moves within an array, so a key that stays is always found, and a
//! key being changed is found as before or as after the change. A deleted slot that becomes free hides no key: a key beyond it
//! would require that the following free slot is used. When `insert` has returned an old array, readers that still use it see
//! the table as it was: the caller must publish the new array ([`HashTable::slots_ptr`]) before it changes anything else or
//! retires anything, including the old array ([`super::epoch`]).

use super::arena::{Arena, Ref};
use super::zeroed::Zeroed;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The maximum number of words in a key.
pub(crate) const KEY_WORDS_MAX: usize = 8;

const FREE: u64 = 0;
const DELETED: u64 = 1;

/// A bit that is set in each tag, so that no slot with a block is `FREE` or `DELETED`.
pub(crate) const TAG_MARK: u64 = 1 << 63;

/// The upper half of a slot, which contains the tag.
const TAG: u64 = !0 << 32;

/// The minimum number of slots in an array: one cache line of them.
const SLOTS_MIN: usize = 8;

/// The maximum size of a small array, in slots. Small arrays have at least [`SPREAD_SMALL`] slots per key, so that nearly
/// every key is in its home slot, where the processor predicts that a search ends. Larger ones have two, to fit into caches.
const SLOTS_SMALL: usize = 512;
const SPREAD_SMALL: usize = 8;

/// Returns the minimum number of slots per key.
fn spread(slots: usize) -> usize {
    match slots {
        ..=SLOTS_SMALL => SPREAD_SMALL,
        _ => 2,
    }
}

/// Returns the hash of a key, which combines two words at a time:
///
/// ```text
/// h = fold(w0 ^ seed0, w1 ^ seed1)
/// h = fold(w2 ^ h,     w3 ^ seed1)
/// h = fold(w4 ^ h,     w5 ^ seed1)
/// h = fold(w6 ^ h,     w7 ^ seed1)
/// ```
///
/// for as many words as there are. If their number is odd, the missing word is 0. `fold(a, b)` multiplies both to 128 bits and
/// returns the lower 64 bits of the product XOR the upper 64 bits.
#[inline]
pub(crate) fn hash(words: &[u64], seed0: u64, seed1: u64) -> u64 {
    words.chunks(2).fold(seed0, |before, pair| {
        let second = pair.get(1).copied().unwrap_or(0);
        fold(pair[0] ^ before, second ^ seed1)
    })
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the process's random seeds, which come from the operating system.
pub(crate) fn random_seeds() -> (u64, u64) {
    let source = RandomState::new();
    (source.hash_one("seed0"), source.hash_one("seed1"))
}

/// Returns the content of a slot for this block, whose key has this hash.
#[inline]
fn slot_of(hash: u64, block: Ref) -> u64 {
    tag_of(hash) | u64::from(block.bits())
}

#[inline]
fn tag_of(hash: u64) -> u64 {
    (hash | TAG_MARK) & TAG
}

#[inline]
fn block_of(slot: u64) -> Option<Ref> {
    if slot & TAG == 0 {
        return None;
    }
    Ref::from_bits(slot as u32)
}

/// The header of an array, for readers; the slots follow.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Slots {
    pub mask: u64,
    pub seed0: u64,
    pub seed1: u64,
    slots: SlotsBegin,
}

/// The header's end: the slots start on the next cache line.
#[repr(C, align(64))]
#[derive(Debug)]
struct SlotsBegin([AtomicU64; 0]);

const _: () = assert!(size_of::<Slots>() == 64 && std::mem::offset_of!(Slots, slots) == 64);

impl Slots {
    /// Returns the block with these words as its key.
    ///
    /// # Safety
    /// The array is, or was at the last `begin` of this thread's participant, that of a [`HashTable`] with keys of this number
    /// of words, whose blocks are in the arena with this base; neither the array nor a block is freed before the next `begin`.
    #[inline]
    pub unsafe fn find(array: *const Self, arena_base: *const u8, words: &[u64]) -> Option<Ref> {
        // SAFETY: array and arena are alive, as this function requires.
        unsafe { Self::position(array, arena_base, words) }.map(|(_, block)| block)
    }

    /// Prefetches the first slots of a search for this key.
    ///
    /// # Safety
    /// As for `find`, for the array only.
    #[inline]
    pub unsafe fn prefetch(array: *const Self, words: &[u64]) {
        // SAFETY: the array is alive, and its header never changes.
        unsafe { Self::prefetch_hashed(array, hash(words, (*array).seed0, (*array).seed1)) }
    }

    /// Prefetches the first slots of a search for a key with this hash.
    ///
    /// # Safety
    /// As for `find`, for the array only.
    #[inline]
    pub unsafe fn prefetch_hashed(array: *const Self, hash: u64) {
        // SAFETY: the array is alive, and its header never changes; no slot's number exceeds the mask.
        let slot = unsafe { Self::slot(array, (hash & (*array).mask) as usize) };
        super::zeroed::prefetch(std::ptr::from_ref(slot).cast());
    }

    /// Returns the block with these words as its key, whose hash with the array's seeds is `hash`.
    ///
    /// # Safety
    /// As for `find`.
    #[inline]
    pub unsafe fn find_hashed(
        array: *const Self,
        arena_base: *const u8,
        hash: u64,
        words: &[u64],
    ) -> Option<Ref> {
        // SAFETY: array and arena are alive, as this function requires.
        let found = unsafe { Self::position_hashed(array, arena_base, hash, words) };
        found.map(|(_, block)| block)
    }

    /// Like `find`, but also returns the slot.
    ///
    /// # Safety
    /// As for `find`.
    #[inline]
    unsafe fn position(
        array: *const Self,
        arena_base: *const u8,
        words: &[u64],
    ) -> Option<(usize, Ref)> {
        // SAFETY: the array is alive, and its header never changes.
        let (seed0, seed1) = unsafe { ((*array).seed0, (*array).seed1) };
        let hash = hash(words, seed0, seed1);
        // SAFETY: array and arena are alive, as this function requires.
        unsafe { Self::position_hashed(array, arena_base, hash, words) }
    }

    /// Like `find`, for words with this hash.
    ///
    /// # Safety
    /// As for `find`.
    #[inline]
    unsafe fn position_hashed(
        array: *const Self,
        arena_base: *const u8,
        hash: u64,
        words: &[u64],
    ) -> Option<(usize, Ref)> {
        // SAFETY: the array is alive, and its header never changes.
        let mask = unsafe { (*array).mask };
        let tag = tag_of(hash);
        let mut at = hash & mask;
        loop {
            // SAFETY: no slot's number exceeds the mask.
            let slot = unsafe { Self::slot(array, at as usize) }.load(Acquire);
            if slot == FREE {
                return None;
            }
            if slot & TAG == tag {
                let block = Ref::from_bits(slot as u32)?;
                // SAFETY: the block is in the arena with this base, and starts with this number of words.
                if unsafe { begins_with(arena_base, block, words) } {
                    return Some((at as usize, block));
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// # Safety
    /// The array is alive while the slot is used, and has that many slots.
    #[inline]
    unsafe fn slot<'a>(array: *const Self, at: usize) -> &'a AtomicU64 {
        // SAFETY: the array has that many slots after its header, which are only accessed as atomics.
        unsafe { &*array.add(1).cast::<AtomicU64>().add(at) }
    }
}

/// Returns `true` if a block has this key.
///
/// # Safety
/// The arena with this base has this block, which is not freed, with a constant key of this number of words.
#[inline]
unsafe fn begins_with(arena_base: *const u8, block: Ref, words: &[u64]) -> bool {
    // SAFETY: the block is within the arena, and aligned to 64 bytes.
    let key = unsafe { arena_base.add(block.offset()) }.cast::<u64>();
    // SAFETY: the block starts with this number of words, which do not change.
    (words.iter().enumerate()).all(|(index, &word)| unsafe { *key.add(index) } == word)
}

/// An array of slots with its header, which its owner may free.
#[derive(Debug)]
pub(crate) struct SlotArray(Zeroed);

impl SlotArray {
    fn new(slots: usize, (seed0, seed1): (u64, u64)) -> Self {
        let memory = Zeroed::new(size_of::<Slots>() + slots * size_of::<AtomicU64>());
        let header = Slots {
            mask: slots as u64 - 1,
            seed0,
            seed1,
            slots: SlotsBegin([]),
        };
        // SAFETY: it is long enough, aligned to a cache line, and not shared yet. Zeros are free slots.
        unsafe { memory.pointer().cast::<Slots>().write(header) };
        Self(memory)
    }

    fn pointer(&self) -> *const Slots {
        self.0.pointer().cast()
    }

    fn count(&self) -> usize {
        // SAFETY: written in `new`, and never changed.
        unsafe { (*self.pointer()).mask as usize + 1 }
    }

    fn mask(&self) -> usize {
        self.count() - 1
    }

    fn seeds(&self) -> (u64, u64) {
        // SAFETY: written in `new`, and never changed.
        unsafe { ((*self.pointer()).seed0, (*self.pointer()).seed1) }
    }

    /// Returns the slot with this number, wrapping around.
    fn slot(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the array is ours and outlives the reference, and masked numbers are within it.
        unsafe { Slots::slot(self.pointer(), at & self.mask()) }
    }

    /// Returns the first slot without a block, starting at the key's home slot.
    fn vacancy(&self, hash: u64) -> usize {
        let home = hash as usize & self.mask();
        let mut order = (home..home + self.count()).map(|at| at & self.mask());
        let vacant = |&at: &usize| block_of(self.slot(at).load(Relaxed)).is_none();
        order.find(vacant).expect("half of the slots are free")
    }
}

/// A hash table, for its only writer.
#[derive(Debug)]
pub(crate) struct HashTable {
    array: SlotArray,
    key_words: usize,
    len: usize,
    deleted: usize,
}

impl HashTable {
    /// Creates an empty table for keys of `key_words` words.
    ///
    /// # Panics
    /// If `key_words` is 0 or more than [`KEY_WORDS_MAX`].
    pub fn new(key_words: usize) -> Self {
        Self::with_seeds(key_words, random_seeds())
    }

    fn with_seeds(key_words: usize, seeds: (u64, u64)) -> Self {
        assert!(
            (1..=KEY_WORDS_MAX).contains(&key_words),
            "keys of {key_words} words"
        );
        Self {
            array: SlotArray::new(SLOTS_MIN, seeds),
            key_words,
            len: 0,
            deleted: 0,
        }
    }

    /// Returns the block with these words as its key.
    pub fn find(&self, arena: &Arena, words: &[u64]) -> Option<Ref> {
        self.position(arena, words).map(|(_, block)| block)
    }

    /// Adds a new key with its block, which starts with it. If a new array was needed, returns the old one: the caller must
    /// first publish the new one, and then retire the old one.
    ///
    /// # Panics
    /// If the number of words is not that of the table's keys.
    #[must_use = "readers have to be shown the new array before the old one may be freed"]
    pub fn insert(&mut self, arena: &Arena, words: &[u64], block: Ref) -> Option<SlotArray> {
        debug_assert_eq!(self.find(arena, words), None, "the key is there already");
        debug_assert!((0..words.len()).all(|index| arena.word(block, index) == words[index]));
        let count = self.array.count();
        let crowded = (self.len + self.deleted + 1) * spread(count) > count;
        let old = crowded.then(|| self.rebuild(arena));
        let hash = self.hash(words);
        let slot = self.array.slot(self.array.vacancy(hash));
        self.deleted -= usize::from(slot.load(Relaxed) == DELETED);
        slot.store(slot_of(hash, block), Release);
        self.len += 1;
        old
    }

    /// Replaces the block of a key by another that starts with it, and returns the old one.
    ///
    /// # Panics
    /// If the number of words is not that of the table's keys.
    pub fn replace(&mut self, arena: &Arena, words: &[u64], block: Ref) -> Option<Ref> {
        let (at, old) = self.position(arena, words)?;
        let hash = self.hash(words);
        self.array.slot(at).store(slot_of(hash, block), Release);
        Some(old)
    }

    /// Removes a key, and returns its block.
    ///
    /// # Panics
    /// If the number of words is not that of the table's keys.
    pub fn remove(&mut self, arena: &Arena, words: &[u64]) -> Option<Ref> {
        let (at, block) = self.position(arena, words)?;
        self.vacate(at);
        self.len -= 1;
        Some(block)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the blocks of all keys, unordered.
    pub fn blocks(&self) -> impl Iterator<Item = Ref> {
        let slots = (0..self.array.count()).map(|at| self.array.slot(at));
        slots.filter_map(|slot| block_of(slot.load(Relaxed)))
    }

    /// Returns the array that readers should see, until `insert` returns one.
    pub fn slots_ptr(&self) -> *const Slots {
        self.array.pointer()
    }

    /// Returns the size of the array, in bytes.
    pub fn bytes(&self) -> usize {
        self.array.0.bytes()
    }

    fn position(&self, arena: &Arena, words: &[u64]) -> Option<(usize, Ref)> {
        // SAFETY: the array is ours, the number of words is checked, and its blocks were the arena's when they were inserted.
        // Even if one has been freed since, its start is committed memory.
        unsafe {
            self.check_key(words);
            Slots::position(self.array.pointer(), arena.base(), words)
        }
    }

    fn hash(&self, words: &[u64]) -> u64 {
        self.check_key(words);
        let (seed0, seed1) = self.array.seeds();
        hash(words, seed0, seed1)
    }

    fn check_key(&self, words: &[u64]) {
        assert_eq!(words.len(), self.key_words, "a key has as many words");
    }

    /// Marks a slot as deleted, or, if no search passes it, marks it and the deleted ones before it as free.
    fn vacate(&mut self, at: usize) {
        let array = &self.array;
        if array.slot(at + 1).load(Relaxed) != FREE {
            array.slot(at).store(DELETED, Release);
            self.deleted += 1;
            return;
        }
        array.slot(at).store(FREE, Release);
        let mut before = at.wrapping_sub(1);
        while array.slot(before).load(Relaxed) == DELETED {
            array.slot(before).store(FREE, Release);
            self.deleted -= 1;
            before = before.wrapping_sub(1);
        }
    }

    /// Switches to a new array, with space for twice as many keys, and returns the old one.
    fn rebuild(&mut self, arena: &Arena) -> SlotArray {
        let sparse = ((self.len + 1) * 2 * SPREAD_SMALL).next_power_of_two();
        let count = match sparse {
            ..=SLOTS_SMALL => sparse.max(SLOTS_MIN),
            _ => ((self.len + 1) * 4)
                .next_power_of_two()
                .max(2 * SLOTS_SMALL),
        };
        let array = SlotArray::new(count, self.array.seeds());
        for block in (0..self.array.count()).filter_map(|at| self.block(at)) {
            let hash = self.hash(&self.key(arena, block)[..self.key_words]);
            let slot = array.slot(array.vacancy(hash));
            slot.store(slot_of(hash, block), Relaxed);
        }
        self.deleted = 0;
        std::mem::replace(&mut self.array, array)
    }

    fn block(&self, at: usize) -> Option<Ref> {
        block_of(self.array.slot(at).load(Relaxed))
    }

    /// Returns a block's key, padded with zeros.
    fn key(&self, arena: &Arena, block: Ref) -> [u64; KEY_WORDS_MAX] {
        let mut key = [0; KEY_WORDS_MAX];
        for (index, word) in key[..self.key_words].iter_mut().enumerate() {
            *word = arena.word(block, index);
        }
        key
    }
}

#[cfg(test)]
mod tests;
