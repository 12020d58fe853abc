//! A tuple space in which entries with different bits share hash tables, for readers.
//!
//! **What.** Each [`Tuple`] is a hash table of entries by bits that all of them have. Their other bits are compared entry by
//! entry: entries with equal keys form a chain of [`Candidate`]s, ordered by rank.
//!
//! **How.** [`Tuples`] are ordered by their best ranks, and each has the best rank of itself and all later ones: a search ends
//! when no later one can have a better entry. Tuples that were added later follow unsorted. A few tuples are searched
//! together: their slots are prefetched before the first is probed, so that they wait for far memory only once.
//!
//! **Thread-safety.** Candidates change like the slots of a [`HashTable`](crate::fast::memory::hash_table::HashTable): by
//! one `Release` store, to a slot or to the previous candidate's [`Candidate::next`]. A tuple's noted best rank may be better
//! than those of its entries, but never worse: it is noted before the entry can be found.

use super::context::Context;
use super::frame::Frame;
use super::key::{Base, KeyMask, MAX_WORDS, Word};
use super::kinds::Kinds;
use super::table::{Body, FlowRecord};
use crate::fast::memory::arena::{Ref, UNIT_BYTES};
use crate::fast::memory::hash_table::{Slots, hash};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

/// The number of tuples that are searched together.
const BATCH: usize = 4;

/// A bound that is worse than every rank.
const NO_RANK: u64 = u64::MAX;

/// All tuples of a table.
#[derive(Debug)]
pub(crate) struct Tuples {
    /// Slots for tuples, of which the first [`Tuples::len`] are set.
    pub places: Box<[AtomicPtr<Tuple>]>,
    pub len: AtomicUsize,
    /// The number of tuples at the start that are sorted.
    pub ordered: usize,
}

/// Entries, by bits that all of them have.
#[derive(Debug)]
pub(crate) struct Tuple {
    pub require: Kinds,
    pub words_len: usize,
    /// The words; only the first `words_len` are used.
    pub words: [Word; MAX_WORDS],
    pub slots: AtomicPtr<Slots>,
    /// A bound on the ranks: no entry has a better one.
    pub best: AtomicU64,
    /// A bound on the ranks: no entry of this or a later sorted tuple has a better one.
    pub best_from_here: AtomicU64,
}

/// An entry of a tuple: in the arena, after the words of its key in the tuple.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Candidate {
    pub rank: u64,
    /// The complete mask of the entry.
    pub mask: *const KeyMask,
    /// The flow record's offset from the arena's base, in words.
    pub record: u32,
    /// The block of the next candidate with this key, or 0.
    pub next: AtomicU32,
    /// The start of the values, as many as the mask has words.
    pub values: [u64; 0],
}

impl Tuple {
    /// Creates a tuple without entries.
    pub fn new(mask: &KeyMask, slots: *const Slots) -> Self {
        let mut words = [Word::NOTHING; MAX_WORDS];
        words[..mask.words.len()].copy_from_slice(&mask.words);
        Self {
            require: mask.require,
            words_len: mask.words.len(),
            words,
            slots: AtomicPtr::new(slots.cast_mut()),
            best: AtomicU64::new(NO_RANK),
            best_from_here: AtomicU64::new(NO_RANK),
        }
    }
}

impl Tuples {
    /// Creates a list of these tuples, the first `ordered` of which are sorted, with space for more. The tuples must live as
    /// long as packets can see them.
    pub fn new(tuples: &[Arc<Tuple>], ordered: usize, room: usize) -> Self {
        let mut best = NO_RANK;
        for tuple in tuples[..ordered].iter().rev() {
            best = best.min(tuple.best.load(Relaxed));
            tuple.best_from_here.store(best, Relaxed);
        }
        let shown = Self {
            places: (0..room).map(|_| AtomicPtr::default()).collect(),
            len: AtomicUsize::new(0),
            ordered,
        };
        tuples.iter().for_each(|tuple| shown.show(tuple));
        shown
    }

    /// Returns `true` if there is space for another tuple.
    pub fn has_room(&self) -> bool {
        self.len.load(Relaxed) < self.places.len()
    }

    /// Publishes another tuple.
    ///
    /// # Panics
    /// If there is no space.
    pub fn show(&self, tuple: &Arc<Tuple>) {
        let len = self.len.load(Relaxed);
        self.places[len].store(Arc::as_ptr(tuple).cast_mut(), Release);
        self.len.store(len + 1, Release);
    }
}

/// Returns the size of a candidate in units of the arena, including the words of its key and its values.
pub(crate) fn candidate_units(words: usize, values: usize) -> usize {
    let bytes = 8 * words + std::mem::offset_of!(Candidate, values) + 8 * values;
    bytes.div_ceil(UNIT_BYTES)
}

/// Returns the candidate of a block.
///
/// # Safety
/// `block` is one of the arena at `arena`, of a tuple whose keys have `words` words.
#[inline]
pub(crate) unsafe fn candidate_at(arena: *const u8, block: Ref, words: usize) -> *const Candidate {
    // SAFETY: the block is in the arena, and the candidate follows this number of words.
    unsafe { arena.add(block.offset() + 8 * words).cast() }
}

/// The address of each [`Base`] in a frame.
struct Bases([*const u8; 4]);

impl Bases {
    #[inline]
    fn new(frame: &Frame) -> Self {
        let mut bases = [std::ptr::from_ref(frame).cast(); 4];
        bases[Base::Data as usize] = frame.data.cast_const();
        bases[Base::Network as usize] = frame.network;
        bases[Base::Transport as usize] = frame.transport;
        Self(bases)
    }

    /// # Safety
    /// The frame has the header that contains the word.
    #[inline]
    unsafe fn read(&self, word: &Word) -> u64 {
        // SAFETY: the word is within the frame's buffer, or within the frame itself; 8 bytes after the longest frame are still in
        // its buffer.
        let bytes = unsafe {
            let place = self.0[word.base as usize].offset(word.at.into());
            place.cast::<u64>().read_unaligned()
        };
        bytes & word.mask
    }

    /// # Safety
    /// The candidate is alive.
    #[inline]
    unsafe fn match_candidate(&self, kinds: Kinds, candidate: *const Candidate) -> bool {
        // SAFETY: the candidate and its mask are alive; words are only read from frames that have the required headers.
        unsafe {
            let mask = &*(*candidate).mask;
            let values = (&raw const (*candidate).values).cast::<u64>();
            kinds.contains(mask.require) && { mask.words.iter().enumerate() }
                .all(|(index, word)| self.read(word) == *values.add(index))
        }
    }
}

/// A tuple that will be probed.
#[derive(Clone, Copy)]
struct Probe<'a> {
    tuple: &'a Tuple,
    slots: *const Slots,
    key: [u64; MAX_WORDS],
    hash: u64,
}

/// The best entry so far.
struct Best {
    rank: u64,
    record: *const FlowRecord,
}

/// Returns the flow record of the frame's entry in a table of merged tuples; null if no entry matches.
///
/// # Safety
/// The frame is parsed as deeply as the table needs; context and body belong to one pipeline, the body's first part
/// refers to [`Tuples`], and none of this is freed before the burst ends.
pub(crate) unsafe extern "sysv64" fn find(
    frame: *mut Frame,
    context: *const Context,
    body: *const Body,
) -> *const FlowRecord {
    // SAFETY: all are alive, as this function requires.
    let (frame, arena, tuples) = unsafe {
        let tuples = (*body).parts[0].load(Acquire).cast::<Tuples>();
        (&*frame, (*context).arena.cast_const(), &*tuples)
    };
    let bases = Bases::new(frame);
    let mut best = Best {
        rank: NO_RANK,
        record: std::ptr::null(),
    };
    let len = tuples.len.load(Acquire);
    let mut at = 0;
    loop {
        let mut probes = [const { None }; BATCH];
        let mut count = 0;
        while at < len && count < BATCH {
            // SAFETY: the first `len` places refer to tuples, which are alive until the burst ends.
            let tuple = unsafe { &*tuples.places[at].load(Acquire) };
            if at < tuples.ordered && tuple.best_from_here.load(Relaxed) >= best.rank {
                at = tuples.ordered;
                continue;
            }
            at += 1;
            if tuple.best.load(Relaxed) < best.rank && frame.kinds.contains(tuple.require) {
                // SAFETY: the frame has the required headers.
                probes[count] = Some(unsafe { Probe::new(tuple, &bases) });
                count += 1;
            }
        }
        for probe in probes[..count].iter().flatten() {
            // SAFETY: tuple, blocks and masks are alive until the burst ends.
            unsafe { probe.find(&mut best, &bases, frame.kinds, arena) };
        }
        if count == 0 {
            return best.record;
        }
    }
}

impl<'a> Probe<'a> {
    /// # Safety
    /// The frame has the headers that the tuple requires, and its slots are alive.
    #[inline]
    unsafe fn new(tuple: &'a Tuple, bases: &Bases) -> Self {
        let slots = tuple.slots.load(Acquire).cast_const();
        let mut key = [0; MAX_WORDS];
        for (place, word) in key.iter_mut().zip(&tuple.words[..tuple.words_len]) {
            // SAFETY: the frame has the header that contains the word.
            *place = unsafe { bases.read(word) };
        }
        // SAFETY: the slots are alive, and their header never changes.
        let (seed0, seed1) = unsafe { ((*slots).seed0, (*slots).seed1) };
        let hash = hash(&key[..tuple.words_len], seed0, seed1);
        // SAFETY: the slots are alive.
        unsafe { Slots::prefetch_hashed(slots, hash) };
        Self {
            tuple,
            slots,
            key,
            hash,
        }
    }

    /// Looks for an entry that is better than the best so far.
    ///
    /// # Safety
    /// Slots, candidates and masks are alive, and the arena is theirs.
    #[inline]
    unsafe fn find(&self, best: &mut Best, bases: &Bases, kinds: Kinds, arena: *const u8) {
        let words = self.tuple.words_len;
        if self.tuple.best.load(Relaxed) >= best.rank {
            return;
        }
        // SAFETY: the blocks in the slots, and blocks linked from them, are candidates after keys of this number of words,
        // in this arena. A flow record is this number of words from its base.
        unsafe {
            let mut block = Slots::find_hashed(self.slots, arena, self.hash, &self.key[..words]);
            while let Some(found) = block {
                let candidate = candidate_at(arena, found, words);
                if (*candidate).rank >= best.rank {
                    return;
                }
                if bases.match_candidate(kinds, candidate) {
                    best.rank = (*candidate).rank;
                    best.record = arena.add(8 * (*candidate).record as usize).cast();
                    return;
                }
                block = Ref::from_bits((*candidate).next.load(Acquire));
            }
        }
    }
}
