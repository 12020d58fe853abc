//! Tables, flow records and the context, as laid out for machine code.
//!
//! ```text
//!  Header of table 60 ──► Body ──► code (or template, for the interpreter)
//!                          │ parts: slots of a hash table | root of a trie | SubTablePointers to the Bodies of sub-tables
//!                          ▼
//!                         FlowRecord (behind its key in a block of the arena) ──► code of its actions (or their program)
//!                          │ target
//!                          ▼
//!                         Header of the next table
//! ```
//!
//! A table changes by a new body: one pointer is stored, and later frames use consistent code and data. The old body is
//! freed when no thread can use it ([`crate::fast::memory::epoch`]).

use super::action_program::{ActionProgram, MAX_PARAMS};
use super::key::{KeyMask, Word};
use super::kinds::{Depth, Kinds};
use crate::EntryCounters;
use crate::fast::memory::arena::Ref;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// The maximum number of parts of a body; with more sets of bits, entries share hash tables.
pub(crate) const MAX_PARTS: usize = 31;

/// The number of headers: one for each possible table of a pipeline.
pub(crate) const MAX_HEADERS: usize = 256;

/// One table. Its address is stable while the pipeline exists.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Header {
    pub body: AtomicPtr<Body>,
    /// Its index among the headers, and among a context's counts.
    pub index: u32,
    /// The table, as the controller knows it.
    pub table_id: u32,
}

/// A table's current search. It never changes, except for the data of its parts.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Body {
    /// The address of the table's machine code; 0 for the interpreter.
    pub code: u64,
    /// The flow record of frames that no part matches: that of the last entry, if it matches everything. Null if there is
    /// none.
    pub default: *const FlowRecord,
    /// For each part of the template: [`Slots`](crate::fast::memory::hash_table::Slots), or the root of a trie. A hash
    /// table that grows has new slots: they are swapped in here. Of a table that was cut the first are the slots of its
    /// [`SubTablePointer`]s, the second is that to the rest; of merged tuples the first are the
    /// [`Tuples`](super::merged::Tuples).
    pub parts: [AtomicPtr<u8>; MAX_PARTS],
    /// The template, for the interpreter and for listings.
    pub template: Template,
}

// SAFETY: the pointers' data is changed by atomics, and freed only when no thread can use it.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

/// The way in which a table is searched (ESWITCH section 3.1: table templates). The cheapest suitable one is used.
#[derive(Debug)]
pub(crate) enum Template {
    /// Entry after entry, compared with constants: for a few entries.
    Direct(Vec<Rule>),
    /// One hash table for each set of bits, best ranks first. With one part it is ESWITCH's compound hash; with several,
    /// tuple space search.
    Hash(Vec<HashPart>),
    /// A trie of prefixes, longest first.
    Lpm(LpmPart),
    /// One hash table of [`SubTablePointer`]s to sub-tables, by one field. Other frames use the rest.
    Cut(KeyMask),
    /// Hash tables shared by entries with different bits: [`Tuples`](super::merged::Tuples), for this parsing depth and any
    /// number of sets of bits.
    Merged(Depth),
    /// Not searched here: frames are left to the plain form.
    Plain,
}

/// One entry of [`Template::Direct`], in their order.
#[derive(Debug)]
pub(crate) struct Rule {
    pub mask: KeyMask,
    pub values: Vec<u64>,
    pub record: *const FlowRecord,
}

/// Entries with one set of bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HashPart {
    pub mask: KeyMask,
    /// The number of words in a block before the flow record: those of the key, and more in sub-tables, which share flow
    /// records.
    pub room: usize,
    /// Whether the data is so far in memory that prefetching with a pause is faster.
    pub is_far: bool,
    /// Whether a match here is final: no part that follows has an entry of a higher rank than any here.
    pub is_final: bool,
}

/// Prefixes of one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LpmPart {
    pub require: Kinds,
    pub depth: Depth,
    /// The field's position, as in [`Word`], whose mask is not used here.
    pub field: Word,
    /// Bytes of the field.
    pub len: u8,
    /// Bits that index the root, 16 or 24; nodes use 8 each.
    pub root_bits: u8,
    /// The number of words in a block before the flow record: some in sub-tables, which share flow records.
    pub room: usize,
    /// As in [`HashPart`].
    pub is_far: bool,
}

/// A pointer to a sub-table, in the arena after the words of its key, instead of a flow record.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SubTablePointer {
    /// The sub-table's body. A sub-table changes like a table: one pointer is stored.
    pub body: AtomicPtr<Body>,
}

/// An entry's data for packets, in the arena, after the words of the key in hash tables.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FlowRecord {
    /// The address of the machine code of its action program; for the interpreter, that of the [`ActionProgram`]
    /// itself.
    pub code: u64,
    /// The lowest rank wins: priority from the highest down, then age.
    pub rank: u64,
    /// Of frames matched since its creation, by one thread; with several, each has its own counters (`thread_counts`).
    pub counters: EntryCounters,
    /// A port, or the index of a header.
    pub target: u32,
    /// Parameters of the actions.
    pub params: [u8; MAX_PARAMS],
}

/// A thread's counters of a table. Only the thread writes, by plain loads and stores; others read.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct TableCounts {
    /// Frames that an entry matched.
    pub matches: AtomicU64,
    /// Frames without an entry that were dropped, without those left to the plain form, which has its own counts.
    pub misses: AtomicU64,
}

/// Returns the offset of the flow record in a block whose key has `words` words.
pub(crate) fn record_offset(words: usize) -> usize {
    8 * words
}

/// Returns the size of an entry in units of the arena, for its words of key and bytes of parameters.
pub(crate) fn block_units(words: usize, params: usize) -> usize {
    let bytes = record_offset(words) + std::mem::offset_of!(FlowRecord, params) + params;
    bytes.div_ceil(crate::fast::memory::arena::UNIT_BYTES)
}

/// Returns the size of a sub-table pointer in units of the arena, with its words of key.
pub(crate) fn sub_pointer_units(words: usize) -> usize {
    (record_offset(words) + size_of::<SubTablePointer>())
        .div_ceil(crate::fast::memory::arena::UNIT_BYTES)
}

/// Returns the flow record of a block.
///
/// # Safety
/// `block` is one of the arena at `arena`, of a table whose keys have `words` words.
#[inline]
pub(crate) unsafe fn record_at(arena: *mut u8, block: Ref, words: usize) -> *mut FlowRecord {
    // SAFETY: the block is in the arena, and its flow record follows this number of words.
    unsafe { arena.add(block.offset() + record_offset(words)).cast() }
}

/// Returns the sub-table pointer of a block.
///
/// # Safety
/// `block` is one of the arena at `arena`, of a sub-table pointer with this number of words before it.
#[inline]
pub(crate) unsafe fn sub_pointer_at<'a>(
    arena: *mut u8,
    block: Ref,
    words: usize,
) -> &'a SubTablePointer {
    // SAFETY: the block is in the arena, with a sub-table pointer after this number of words, which is changed only by
    // atomics.
    unsafe { &*arena.add(block.offset() + record_offset(words)).cast() }
}

impl Body {
    /// Returns the depth to which frames must have been parsed here.
    pub fn depth(&self) -> Depth {
        match &self.template {
            Template::Direct(rules) => rules.iter().map(|rule| rule.mask.depth).max(),
            Template::Hash(parts) => parts.iter().map(|part| part.mask.depth).max(),
            Template::Lpm(part) => Some(part.depth),
            Template::Cut(mask) => Some(mask.depth),
            Template::Merged(depth) => Some(*depth),
            Template::Plain => None,
        }
        .unwrap_or_default()
    }
}

/// The program that a flow record names, for the interpreter: see [`FlowRecord::code`].
///
/// # Safety
/// `flow record` is of a pipeline for the interpreter, and not freed.
pub(crate) unsafe fn program_of<'a>(record: *const FlowRecord) -> &'a ActionProgram {
    // SAFETY: the flow record is alive, and for the interpreter: it names a program, which lives as long as the records
    // that name it.
    unsafe { &*((*record).code as *const ActionProgram) }
}
