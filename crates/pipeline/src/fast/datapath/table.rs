//! Tables, flow records and the context as machine code sees them: what is where, and what a table is searched by.
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
//! A table changes by a new body: one pointer is stored, and frames that come to the table from then on meet code and
//! data that belong together. The old body is freed when no thread can be in it any more ([`crate::fast::memory::epoch`]).

use super::action_program::{ActionProgram, MAX_PARAMS};
use super::key::{KeyMask, Word};
use super::kinds::{Depth, Kinds};
use crate::EntryCounters;
use crate::fast::memory::arena::Ref;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// How many parts a body has at most; entries of more sorts share hash tables.
pub(crate) const MAX_PARTS: usize = 31;

/// How many headers there are: one for each table that a pipeline can have.
pub(crate) const MAX_HEADERS: usize = 256;

/// One table. It stays where it is as long as the pipeline is.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Header {
    pub body: AtomicPtr<Body>,
    /// Its place among the headers, and among a context's counts.
    pub index: u32,
    /// The table, as the controller knows it.
    pub table_id: u32,
}

/// What a table is searched by, as of now. Never changes, but for what its parts point to.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Body {
    /// Where machine code goes on with a frame that comes to the table; 0 for the interpreter.
    pub code: u64,
    /// The flow record of frames that no part matches: of the entry of the lowest rank, where that matches everything. Null
    /// where there is none.
    pub default: *const FlowRecord,
    /// For each part of the template: [`Slots`](crate::fast::memory::hash_table::Slots), or the root of a trie. A hash
    /// table that grows has new slots: they are swapped in here. Of a table that was cut the first are the slots of its
    /// [`SubTablePointer`]s, the second is that to the rest; of merged tuples the first are the
    /// [`Tuples`](super::merged::Tuples).
    pub parts: [AtomicPtr<u8>; MAX_PARTS],
    /// What it is, for the interpreter and for people.
    pub template: Template,
}

// SAFETY: what the pointers lead to is changed by atomics, and freed only when no thread can be in it.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

/// How a table is searched (ESWITCH section 3.1: table templates). The cheapest that can do it is taken.
#[derive(Debug)]
pub(crate) enum Template {
    /// Entry after entry, compared with constants: for a few entries.
    Direct(Vec<Rule>),
    /// One hash table for each sort of match, from the highest rank down. With one part it is what ESWITCH calls a
    /// compound hash; with several, tuple space search.
    Hash(Vec<HashPart>),
    /// A trie of prefixes, longest first.
    Lpm(LpmPart),
    /// One hash table of [`SubTablePointer`]s to sub-tables, by the one field that it looks at. Frames that find none
    /// there go on in the rest.
    Cut(KeyMask),
    /// Hash tables that entries share which look at different bits: [`Tuples`](super::merged::Tuples), of entries which
    /// look so deep. For any number of sorts of match.
    Merged(Depth),
    /// Not searched here: frames go on the plain way.
    Plain,
}

/// One entry of [`Template::Direct`], in their order.
#[derive(Debug)]
pub(crate) struct Rule {
    pub mask: KeyMask,
    pub values: Vec<u64>,
    pub record: *const FlowRecord,
}

/// Entries with the same set of bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HashPart {
    pub mask: KeyMask,
    /// How many words there are in a block before the flow record: those of the key, and more in sub-tables of a table,
    /// which share flow records.
    pub room: usize,
    /// Whether what is looked at lies so far out in memory that it pays to fetch it ahead and pause.
    pub is_far: bool,
    /// Whether a match here is final: no part that follows has an entry of a higher rank than any here.
    pub is_final: bool,
}

/// Prefixes of one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LpmPart {
    pub require: Kinds,
    pub depth: Depth,
    /// Where the field is: as in [`Word`], whose mask is not used here.
    pub field: Word,
    /// Bytes of the field.
    pub len: u8,
    /// Bits that index the root, 16 or 24; nodes take 8 each.
    pub root_bits: u8,
    /// How many words there are in a block before the flow record: some in sub-tables of a table, which share flow records.
    pub room: usize,
    /// As in [`HashPart`].
    pub is_far: bool,
}

/// What leads on to a sub-table of a table. In the arena, behind the words of its key, in place of a flow record.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SubTablePointer {
    /// What the sub-table is searched by. A sub-table changes as a table does: one pointer is stored.
    pub body: AtomicPtr<Body>,
}

/// An entry as far as packets need it. In the arena, behind the words of the key where the table is a hash table.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FlowRecord {
    /// Where the machine code of its action program is; for the interpreter, the address of the [`ActionProgram`] itself.
    pub code: u64,
    /// Lower goes first: priority from the highest down, then age.
    pub rank: u64,
    /// Of frames matched since it was made. One thread adds; where there may be several, none does, and each has counters of
    /// its own (`thread_counts`).
    pub counters: EntryCounters,
    /// A port, or the index of a header.
    pub target: u32,
    /// Parameters of the actions.
    pub params: [u8; MAX_PARAMS],
}

/// What a thread has counted for a table. The thread alone writes, by plain loads and stores; others read.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct TableCounts {
    /// Frames that an entry matched.
    pub matches: AtomicU64,
    /// Frames that none matched and that went no further. Not those that went the plain way, which counts itself.
    pub misses: AtomicU64,
}

/// Where the parts of a block are, for a table whose keys have so many words.
pub(crate) fn record_offset(words: usize) -> usize {
    8 * words
}

/// How many units of the arena an entry takes with a key of so many words and so many bytes of parameters.
pub(crate) fn block_units(words: usize, params: usize) -> usize {
    let bytes = record_offset(words) + std::mem::offset_of!(FlowRecord, params) + params;
    bytes.div_ceil(crate::fast::memory::arena::UNIT_BYTES)
}

/// How many units of the arena a sub-table pointer takes behind a key of so many words.
pub(crate) fn sub_pointer_units(words: usize) -> usize {
    (record_offset(words) + size_of::<SubTablePointer>())
        .div_ceil(crate::fast::memory::arena::UNIT_BYTES)
}

/// The flow record of a block.
///
/// # Safety
/// `block` is one of the arena at `arena`, of a table whose keys have so many words.
#[inline]
pub(crate) unsafe fn record_at(arena: *mut u8, block: Ref, words: usize) -> *mut FlowRecord {
    // SAFETY: the block is in the arena, and its flow record begins behind so many words.
    unsafe { arena.add(block.offset() + record_offset(words)).cast() }
}

/// The sub-table pointer of a block.
///
/// # Safety
/// `block` is one of the arena at `arena`, of a sub-table pointer with so many words before it.
#[inline]
pub(crate) unsafe fn sub_pointer_at<'a>(
    arena: *mut u8,
    block: Ref,
    words: usize,
) -> &'a SubTablePointer {
    // SAFETY: the block is in the arena, with a sub-table pointer behind so many words, which is changed by atomics only.
    unsafe { &*arena.add(block.offset() + record_offset(words)).cast() }
}

impl Body {
    /// How deep frames must have been parsed that come here.
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
