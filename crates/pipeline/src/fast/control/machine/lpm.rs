//! Search of a trie of prefixes.
//!
//! ```text
//!  first bits of the field ──► entry of the root      [far, and a root of 24 bits: fetch it, pause]
//!  while the entry is a node: next byte ──► its entry  [far: fetch it, pause]
//!  0 ──► default, or a miss; else the actions of the flow record      [far: fetch it, pause]
//! ```

use super::emit::Emitter;
use super::ends;
use super::error::CodeError;
use super::operands::{Kept, place};
use super::words::{self, WordReader};
use crate::fast::datapath::table::{LpmPart, record_offset};
use crate::fast::memory::arena::UNIT_BYTES;
use crate::fast::memory::lpm::{KEY_BYTES_MAX, NODE};
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// Emits the search. `r11` holds the entry of the next level, `r10` the address of the field's base.
pub(super) fn emit(emitter: &mut Emitter, part: &LpmPart) -> Result<(), CodeError> {
    let len = usize::from(part.len);
    if !matches!(part.root_bits, 16 | 24) || !(root_bytes(part)..=KEY_BYTES_MAX).contains(&len) {
        return Err(CodeError::Unsupported("a trie of such a field and root"));
    }
    let missed = emitter.label();
    Ok(Search {
        emitter,
        part,
        reader: WordReader::new(r10),
        missed,
    }
    .emit()?)
}

fn root_bytes(part: &LpmPart) -> usize {
    usize::from(part.root_bits / 8)
}

struct Search<'a> {
    emitter: &'a mut Emitter,
    part: &'a LpmPart,
    reader: WordReader,
    missed: CodeLabel,
}

impl Search<'_> {
    fn emit(mut self) -> Result<(), IcedError> {
        if self.part.is_far {
            self.emitter.asm.mov(qword_ptr(place!(frame.header)), rcx)?;
            self.emitter.asm.mov(qword_ptr(place!(frame.body)), rdx)?;
        }
        words::require(self.emitter, self.part.require, self.missed)?;
        self.emitter.asm.mov(r8, qword_ptr(place!(body.parts)))?;
        self.root_index()?;
        // A root of 16 bits has 256 KiB, which fits into the second-level cache: a pause would cost more than waiting.
        let is_root_far = self.part.is_far && self.part.root_bits > 16;
        self.entry(r8, r11, is_root_far, "root")?;
        let mut leaf = self.emitter.label();
        for byte in root_bytes(self.part)..usize::from(self.part.len) {
            self.emitter.asm.test(r11d, r11d)?;
            self.emitter.asm.jns(leaf)?;
            self.node(byte)?;
        }
        self.emitter.here(&mut leaf, "leaf")?;
        self.act()?;
        self.emitter.here(&mut self.missed, "missed")?;
        ends::miss(self.emitter)
    }

    /// Emits loading the first bits of the field into `r11`.
    fn root_index(&mut self) -> Result<(), IcedError> {
        let field = self.part.field;
        let from = self.reader.place(self.emitter, field.base, field.at)?;
        let asm = &mut self.emitter.asm;
        if self.part.root_bits == 16 {
            asm.movzx(r11d, word_ptr(from))?;
            return asm.rol(r11w, 8);
        }
        // This reads one byte more than necessary; frames are followed by space for it.
        asm.mov(r11d, dword_ptr(from))?;
        asm.bswap(r11d)?;
        asm.shr(r11d, 8)
    }

    /// Emits replacing the entry in `r11d`, which is a node, by that node's entry for the next byte of the field.
    fn node(&mut self, byte: usize) -> Result<(), IcedError> {
        let field = self.part.field;
        self.emitter.asm.and(r11d, !NODE as i32)?;
        self.follow()?;
        let from = self
            .reader
            .place(self.emitter, field.base, field.at + byte as i16)?;
        self.emitter.asm.movzx(r8d, byte_ptr(from))?;
        self.entry(r11, r8, self.part.is_far, &format!("byte {byte}"))
    }

    /// Emits loading an entry into `r11d`; a far one is fetched first.
    fn entry(
        &mut self,
        base: AsmRegister64,
        index: AsmRegister64,
        is_far: bool,
        name: &str,
    ) -> Result<(), IcedError> {
        let place = base + index * size_of::<u32>() as i32;
        if !is_far {
            return self.emitter.asm.mov(r11d, dword_ptr(place));
        }
        self.emitter.asm.lea(r11, ptr(place))?;
        self.fetch(name)?;
        self.emitter.asm.mov(r11d, dword_ptr(r11))
    }

    /// Emits executing the actions of the flow record that the entry in `r11d` refers to, if any.
    fn act(&mut self) -> Result<(), IcedError> {
        self.emitter.asm.test(r11d, r11d)?;
        self.emitter.asm.je(self.missed)?;
        self.follow()?;
        if self.part.is_far {
            self.fetch("record")?;
        }
        match self.part.room {
            0 => self.emitter.asm.mov(rax, r11)?,
            room => {
                let offset = record_offset(room) as i32;
                self.emitter.asm.lea(rax, ptr(r11 + offset))?;
            }
        }
        ends::act(self.emitter)
    }

    /// Emits converting the number of a block in `r11` to its address.
    fn follow(&mut self) -> Result<(), IcedError> {
        self.emitter.asm.shl(r11, UNIT_BYTES.ilog2())?;
        self.emitter.asm.add(r11, qword_ptr(place!(context.arena)))
    }

    /// Emits a pause until the data at `r11` is in the cache.
    fn fetch(&mut self, name: &str) -> Result<(), IcedError> {
        self.emitter.asm.prefetcht0(byte_ptr(r11))?;
        self.emitter.asm.mov(qword_ptr(Kept::At.place()), r11)?;
        self.emitter.pause(name)?;
        self.reader = WordReader::new(r10);
        let asm = &mut self.emitter.asm;
        asm.mov(r11, qword_ptr(Kept::At.place()))?;
        asm.mov(rcx, qword_ptr(place!(frame.header)))?;
        asm.mov(rdx, qword_ptr(place!(frame.body)))
    }
}
