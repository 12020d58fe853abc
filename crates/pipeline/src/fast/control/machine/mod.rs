//! A generator of x86-64 machine code for templates and action programs.
//!
//! **What.** [`Assembler`] generates [`Code`]. A table's code is called as
//! [`TableCode`](crate::fast::datapath::backend::TableCode). If [`Frame::resume`](crate::fast::datapath::frame::Frame::resume)
//! is still 0 when it returns, it is done with the frame; otherwise it waits for memory, and is called again as
//! [`ResumeCode`](crate::fast::datapath::backend::ResumeCode). Code of tables jumps to code of actions, with the flow record
//! in `rax` and the other registers unchanged.
//!
//! **Why.** A specialised search has no loop over fields, no unnecessary tests, and no interpreter's jumps; see ESWITCH
//! (SIGCOMM 2016) section 3. Code does not contain addresses of a table: ten tables with equal templates share it, and the
//! processor's branch predictions. The exception is [`Assembler::direct`], whose code contains one table's values.
//!
//! **How.** `iced-x86` encodes the instructions that are chosen here. Only caller-saved registers are used:
//!
//! | register | holds |
//! | --- | --- |
//! | `rdi` | the [`Frame`](crate::fast::datapath::frame::Frame) |
//! | `rsi` | the [`Context`](crate::fast::datapath::context::Context) |
//! | `rcx` | the [`Header`](crate::fast::datapath::table::Header) of the table |
//! | `rdx` | the [`Body`](crate::fast::datapath::table::Body), at the start of a table; then it is free |
//! | `rax` | the [`FlowRecord`](crate::fast::datapath::table::FlowRecord), once found |
//! | `r8` to `r11` | temporary values |
//!
//! **Cost.** Generating code needs some ten microseconds, and a page of memory.
//!
//! **Thread-safety.** Code never changes. Counters of flow records are updated without locks unless threads share them.

mod actions;
mod cache;
mod code;
mod direct;
mod emit;
mod ends;
mod error;
mod hash;
mod listing;
mod lpm;
mod memory;
mod merged;
mod operands;
mod sets;
mod sums;
#[cfg(test)]
mod tests;
mod vlan;
mod words;
mod writer;

pub(crate) use cache::{CodeCache, CodeKey};
pub(crate) use code::Code;
pub(crate) use error::CodeError;

use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::table::{HashPart, LpmPart, Rule};
use emit::Emitter;
use memory::Room;
use std::sync::Arc;

/// A generator of machine code.
#[derive(Debug)]
pub(crate) struct Assembler {
    room: Arc<Room>,
    is_shared: bool,
}

impl Assembler {
    /// Creates an assembler with at most `limit_bytes` of code, in whole pages. `is_shared` means that several threads count in
    /// the same flow records.
    pub fn new(limit_bytes: usize, is_shared: bool) -> Self {
        Self {
            room: Arc::new(Room::new(limit_bytes)),
            is_shared,
        }
    }

    /// Returns the size of existing code, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.room.used_bytes()
    }

    /// Generates the code of a [`Template::Hash`](crate::fast::datapath::table::Template::Hash).
    ///
    /// # Errors
    /// If there is no space, or a part is not a hash table.
    pub fn hash(&self, parts: &[HashPart]) -> Result<Code, CodeError> {
        self.make(|emitter| hash::emit(emitter, parts))
    }

    /// Generates the code of a [`Template::Lpm`](crate::fast::datapath::table::Template::Lpm).
    ///
    /// # Errors
    /// If there is no space, or the root is longer than the field.
    pub fn lpm(&self, part: &LpmPart) -> Result<Code, CodeError> {
        self.make(|emitter| lpm::emit(emitter, part))
    }

    /// Generates the code of a [`Template::Cut`](crate::fast::datapath::table::Template::Cut).
    ///
    /// # Errors
    /// If there is no space, or the key has no words or too many.
    pub fn cut(&self, mask: &KeyMask) -> Result<Code, CodeError> {
        self.make(|emitter| hash::emit_cut(emitter, mask))
    }

    /// Generates the code of a [`Template::Merged`](crate::fast::datapath::table::Template::Merged).
    ///
    /// # Errors
    /// If there is no space.
    pub fn merged(&self) -> Result<Code, CodeError> {
        self.make(|emitter| Ok(merged::emit(emitter)?))
    }

    /// Generates the code of a [`Template::Direct`](crate::fast::datapath::table::Template::Direct), each rule with its action
    /// program. The code contains the addresses of the flow records, and is valid while they are.
    ///
    /// # Errors
    /// If there is no space.
    pub fn direct(&self, rules: &[(&Rule, &ActionProgram)]) -> Result<Code, CodeError> {
        self.make(|emitter| direct::emit(emitter, rules, self.is_shared))
    }

    /// Generates the code of a [`Template::Plain`](crate::fast::datapath::table::Template::Plain).
    ///
    /// # Errors
    /// If there is no space.
    pub fn plain(&self) -> Result<Code, CodeError> {
        self.make(|emitter| Ok(ends::punt(emitter)?))
    }

    /// Generates [`FlowRecord::code`](crate::fast::datapath::table::FlowRecord::code) for entries with this action
    /// program.
    ///
    /// # Errors
    /// If there is no space.
    pub fn actions(&self, program: &ActionProgram) -> Result<Code, CodeError> {
        self.make(|emitter| Ok(actions::emit(emitter, program, self.is_shared)?))
    }

    fn make(
        &self,
        emit: impl FnOnce(&mut Emitter) -> Result<(), CodeError>,
    ) -> Result<Code, CodeError> {
        let mut emitter = Emitter::new()?;
        emit(&mut emitter)?;
        emitter.finish(&self.room)
    }
}
