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
//! A table changes by a new body: one pointer is stored, and later frames use consistent code and data. The old body is freed
//! when no thread can use it ([`crate::fast::memory::epoch`]).

use super::action_program::{ActionProgram, MAX_PARAMS};
use super::key::{KeyMask, Word};
use super::kinds::{Depth, Kinds};
use crate::EntryCounters;
use crate::fast::memory::arena::Ref;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// The maximum number of parts in a body. Entries with more sets of bits share hash tables.
pub(crate) const MAX_PARTS: usize = 31;

/// The number of headers: one for each table that a pipeline may have.
pub(crate) const MAX_HEADERS: usize = 256;

/// A table. Its address is stable while the pipeline exists.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Header {
    pub body: AtomicPtr<Body>,
    /// The index in the headers, and in a context's counts.
    pub index: u32,
    /// The number of the table.
    pub table_id: u32,
}

/// A table's current search structure. It never changes, except for the data of its parts.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Body {
    /// The address of the table's machine code; 0 for the interpreter.
    pub code: u64,
    /// The flow record for frames that no part matches, if the last entry matches everything; otherwise null.
    pub default: *const FlowRecord,
    /// For each part of the template: [`Slots`](crate::fast::memory::hash_table::Slots), or the root of a trie. When a hash
    /// table grows, its new slots are swapped in here. In a cut table, the first are the slots of its [`SubTablePointer`]s, and
    /// the second is the pointer to the rest; in a table of merged tuples, the first are the
    /// [`Tuples`](super::merged::Tuples).
    pub parts: [AtomicPtr<u8>; MAX_PARTS],
    /// The template, for the interpreter and for listings.
    pub template: Template,
}

// SAFETY: the pointers' data is changed by atomics, and freed only when no thread can use it.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

/// How a table is searched (ESWITCH section 3.1: table templates). The cheapest suitable template is used.
#[derive(Debug)]
pub(crate) enum Template {
    /// Entry by entry, each compared with constants; for a few entries.
    Direct(Vec<Rule>),
    /// With one hash table for each set of bits, best ranks first. With one part, it is ESWITCH's compound hash; with several,
    /// a tuple space search.
    Hash(Vec<HashPart>),
    /// With a trie of prefixes, which finds the longest one.
    Lpm(LpmPart),
    /// With one hash table of [`SubTablePointer`]s, by one field. Frames without a sub-table use the rest.
    Cut(KeyMask),
    /// With hash tables that entries with different bits share, [`Tuples`](super::merged::Tuples). It has this parsing depth, and
    /// any number of sets of bits.
    Merged(Depth),
    /// Not searched in the compiled form: frames are left to the plain form.
    Plain,
}

/// An entry of [`Template::Direct`], which are in order.
#[derive(Debug)]
pub(crate) struct Rule {
    pub mask: KeyMask,
    pub values: Vec<u64>,
    pub record: *const FlowRecord,
}

/// The entries with one set of bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HashPart {
    pub mask: KeyMask,
    /// The number of words before the flow record in a block: those of the key, and more in sub-tables, which share flow
    /// records.
    pub room: usize,
    /// Whether the data is so far away in memory that prefetching it during a pause is faster.
    pub is_far: bool,
    /// Whether a match in this part is final, because no later part has an entry that precedes any of these.
    pub is_final: bool,
}

/// The prefixes of one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LpmPart {
    pub require: Kinds,
    pub depth: Depth,
    /// The field's position, as in [`Word`], whose mask is not used here.
    pub field: Word,
    /// The size of the field, in bytes.
    pub len: u8,
    /// The number of bits that index the root, 16 or 24; each node uses 8.
    pub root_bits: u8,
    /// The number of words before the flow record in a block, which is not 0 in sub-tables, since they share flow records.
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

/// An entry's data for packet processing, in the arena, after the words of the key in hash tables.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FlowRecord {
    /// The address of the machine code of its action program, or of the [`ActionProgram`] itself for the interpreter.
    pub code: u64,
    /// The rank; the lowest one wins: highest priority first, then oldest.
    pub rank: u64,
    /// Counts of frames since its creation, if there is one thread. With several, each has its own counters (`thread_counts`).
    pub counters: EntryCounters,
    /// The output port, or the index of the next table's header.
    pub target: u32,
    /// The parameters of the actions.
    pub params: [u8; MAX_PARAMS],
}

/// A thread's counters of a table. Only the thread writes them, with plain loads and stores; others read.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct TableCounts {
    /// The number of frames that matched an entry.
    pub matches: AtomicU64,
    /// The number of frames without an entry that were dropped. The plain form counts those that were left to it.
    pub misses: AtomicU64,
}

/// Returns the offset of the flow record in a block whose key has `words` words.
pub(crate) fn record_offset(words: usize) -> usize {
    8 * words
}

/// Returns the size of an entry in units of the arena, with this number of key words and bytes of parameters.
pub(crate) fn block_units(words: usize, params: usize) -> usize {
    let bytes = record_offset(words) + std::mem::offset_of!(FlowRecord, params) + params;
    bytes.div_ceil(crate::fast::memory::arena::UNIT_BYTES)
}

/// Returns the size of a sub-table pointer in units of the arena, with this number of key words.
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
    // SAFETY: the block is in the arena, with a sub-table pointer after this number of words, which is only changed by
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

/// Returns the program that a flow record refers to, for the interpreter: see [`FlowRecord::code`].
///
/// # Safety
/// The flow record belongs to a pipeline for the interpreter, and is not freed.
pub(crate) unsafe fn program_of<'a>(record: *const FlowRecord) -> &'a ActionProgram {
    // SAFETY: the flow record is alive, and for the interpreter: it refers to a program, which lives as long as the records
    // that refer to it.
    unsafe { &*((*record).code as *const ActionProgram) }
}
