//! Tests that compare machine code with plain models, and tests of its listings and its cost.

mod actions;
mod cycles;
mod listings;
mod tables;

use super::Code;
use crate::EntryCounters;
use crate::fast::datapath::action_program::{ActionProgram, End, MAX_PARAMS};
use crate::fast::datapath::backend::{ResumeCode, TableCode};
use crate::fast::datapath::context::Context;
use crate::fast::datapath::frame::Frame;
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::op::Op;
use crate::fast::datapath::table::{
    Body, FlowRecord, Header, MAX_PARTS, TableCounts, Template, block_units, record_offset,
};
use crate::fast::memory::arena::{Arena, Ref};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The environment in which code runs: two tables, and memory for flow records.
struct World {
    arena: Arena,
    headers: Box<[Header]>,
    counts: Box<[TableCounts]>,
    context: Box<Context>,
}

/// The index of the table that frames are in, and of the table to which they are sent.
const HERE: usize = 3;
const THERE: usize = 5;
const NOW_NS: u64 = 123_456_789;

impl World {
    fn new() -> Self {
        let arena = Arena::new(1 << 30).expect("the system has addresses");
        let headers: Box<[Header]> = (0..8)
            .map(|index| Header {
                body: AtomicPtr::new(null_mut()),
                index,
                table_id: 100 + index,
            })
            .collect();
        let mut counts: Box<[TableCounts]> = (0..8).map(|_| TableCounts::default()).collect();
        let context = Box::new(Context {
            now_ns: NOW_NS,
            arena: arena.base(),
            headers: headers.as_ptr(),
            counts: counts.as_mut_ptr(),
            misses_punt: 0,
            has_left: std::cell::Cell::new(0),
            entry_counts: null_mut(),
            sent: null_mut(),
        });
        Self {
            arena,
            headers,
            counts,
            context,
        }
    }

    /// Creates a block with this key and this flow record.
    fn block(&mut self, key: &[u64], record: &FlowRecord) -> Ref {
        self.block_for(key, record, MAX_PARAMS)
    }

    /// Allocates a block with space for `params` bytes of parameters.
    fn block_for(&mut self, key: &[u64], record: &FlowRecord, params: usize) -> Ref {
        let block = self.arena.allocate(block_units(key.len(), params));
        let block = block.expect("the arena has room");
        let pointer = self.arena.pointer(block);
        let record_bytes = offset_of!(FlowRecord, params) + params;
        // SAFETY: the block is new, and long enough for the key and this much of the flow record.
        unsafe {
            pointer
                .cast::<u64>()
                .copy_from_nonoverlapping(key.as_ptr(), key.len());
            let to = pointer.add(record_offset(key.len()));
            to.copy_from_nonoverlapping((&raw const *record).cast(), record_bytes);
        }
        block
    }

    /// Returns the flow record of a block whose key has `words` words.
    fn record(&self, block: Ref, words: usize) -> *mut FlowRecord {
        self.arena
            .pointer(block)
            .wrapping_add(record_offset(words))
            .cast()
    }

    fn count(&self, index: usize) -> (u64, u64) {
        let counts = &self.counts[index];
        (counts.matches.load(Relaxed), counts.misses.load(Relaxed))
    }

    /// Sends a frame through the table with this body, including all pauses. Returns the number of pauses.
    fn run(&self, frame: &mut Frame, body: &Body) -> usize {
        frame.resume = 0;
        // SAFETY: `code` is a table's, and everything that the body refers to is alive.
        unsafe {
            let code: TableCode = std::mem::transmute(body.code);
            code(frame, &*self.context, body, &self.headers[HERE]);
        }
        let mut pauses = 0;
        while frame.resume != 0 {
            let resume = std::mem::replace(&mut frame.resume, 0);
            // Calls during a pause must not affect the result through registers and memory.
            frame.out_port = 0xdead;
            // SAFETY: the code itself has set the address.
            unsafe {
                let code: ResumeCode = std::mem::transmute(resume);
                code(frame, &*self.context);
            }
            pauses += 1;
        }
        pauses
    }
}

/// Creates a body with this code and without parts.
fn body(code: &Code) -> Body {
    Body {
        code: code.address(),
        default: std::ptr::null(),
        parts: [const { AtomicPtr::new(null_mut()) }; MAX_PARTS],
        template: Template::Plain,
    }
}

/// Creates a flow record whose actions are this code.
fn record(code: &Code, rank: u64, target: u32, params: &[u8]) -> FlowRecord {
    let mut bytes = [0; MAX_PARAMS];
    bytes[..params.len()].copy_from_slice(params);
    FlowRecord {
        code: code.address(),
        rank,
        counters: EntryCounters::default(),
        target,
        params: bytes,
    }
}

fn program(require: Kinds, ops: &[Op], end: End) -> ActionProgram {
    ActionProgram {
        require,
        ops: ops.to_vec(),
        sent: 0,
        end,
        set: None,
    }
}
