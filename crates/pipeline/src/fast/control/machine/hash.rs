//! Search of hash tables, one for each set of bits.
//!
//! ```text
//!  for each part:                         no such header ──► next part
//!    words ──► hash ──► slot              [far: fetch the slot, pause]
//!    probe: free slot ──► next part; other tag ──► next slot
//!           tag ──► block                 [far: fetch the block, pause]
//!           other words ──► next slot
//!    found: keep the flow record of the lower rank; execute its actions at once if no later part can have a better one
//!  execute the actions of the flow record kept, else of the default, else count a miss
//! ```
//!
//! A cut table has one part, whose blocks have sub-table pointers instead of flow records: the search continues in the found
//! sub-table's body, or in that of the rest, with the same header in `rcx`.

use super::emit::Emitter;
use super::ends;
use super::error::CodeError;
use super::operands::{Kept, key_word, place};
use super::words::{self, Pair, R9, R11, RAX, RDX, WordReader};
use crate::fast::datapath::key::{KeyMask, MAX_WORDS, Word};
use crate::fast::datapath::table::{
    Body, FlowRecord, HashPart, MAX_PARTS, SubTablePointer, record_offset,
};
use crate::fast::memory::arena::UNIT_BYTES;
use crate::fast::memory::hash_table::{Slots, TAG_MARK};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Emits the search. Within a part, `r8` holds the slots, `r9` the first word of the key, `r10` the slot's number, `r11`
/// the slot and then its block, `eax` the tag.
pub(super) fn emit(emitter: &mut Emitter, parts: &[HashPart]) -> Result<(), CodeError> {
    if !(1..=MAX_PARTS).contains(&parts.len()) {
        return Err(CodeError::Unsupported(
            "a hash template of no parts or too many",
        ));
    }
    let mut words = parts.iter().map(|part| part.mask.words.len());
    if !words.all(|words| (1..=MAX_WORDS).contains(&words)) {
        return Err(CodeError::Unsupported(
            "a hash table whose key has no words or too many",
        ));
    }
    Ok(Search::new(emitter, parts, Finds::Records).emit()?)
}

/// Emits the search for a cut table's sub-table pointers, by keys under this mask.
pub(super) fn emit_cut(emitter: &mut Emitter, mask: &KeyMask) -> Result<(), CodeError> {
    if !(1..=MAX_WORDS).contains(&mask.words.len()) {
        return Err(CodeError::Unsupported("a cut by no words or too many"));
    }
    let part = HashPart {
        mask: mask.clone(),
        room: mask.words.len(),
        is_far: false,
        is_final: true,
    };
    Ok(Search::new(emitter, &[part], Finds::SubTables).emit()?)
}

/// What follows a key in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finds {
    Records,
    SubTables,
}

/// Returns a field of the slots' header, to which `r8` points.
macro_rules! slots {
    ($field:ident) => {
        r8 + offset_of!(Slots, $field) as i32
    };
}

struct Search<'a> {
    emitter: &'a mut Emitter,
    parts: &'a [HashPart],
    finds: Finds,
    /// The end, after all parts that must be searched.
    end: CodeLabel,
}

impl<'a> Search<'a> {
    fn new(emitter: &'a mut Emitter, parts: &'a [HashPart], finds: Finds) -> Self {
        let end = emitter.label();
        Self {
            emitter,
            parts,
            finds,
            end,
        }
    }

    fn emit(mut self) -> Result<(), IcedError> {
        self.begin()?;
        let last = self.parts.len() - 1;
        for index in 0..last {
            let mut next = self.emitter.label();
            self.part(index, next)?;
            self.emitter
                .here(&mut next, format!("part {}", index + 1))?;
            self.emitter.asm.mov(rdx, qword_ptr(place!(frame.body)))?;
        }
        self.part(last, self.end)?;
        self.finish()
    }

    fn begin(&mut self) -> Result<(), IcedError> {
        let keeps_best = self.keeps_best();
        let asm = &mut self.emitter.asm;
        asm.mov(qword_ptr(place!(frame.body)), rdx)?;
        if self.parts.iter().any(|part| part.is_far) {
            asm.mov(qword_ptr(place!(frame.header)), rcx)?;
        }
        if keeps_best {
            asm.mov(qword_ptr(Kept::Best.place()), 0)?;
        }
        Ok(())
    }

    /// Emits the end, which uses the entry found in any part, or the default, or counts a miss.
    fn finish(mut self) -> Result<(), IcedError> {
        self.emitter.here(&mut self.end, "end")?;
        if self.keeps_best() {
            let mut none = self.emitter.label();
            self.emitter.asm.mov(rax, qword_ptr(Kept::Best.place()))?;
            self.emitter.asm.test(rax, rax)?;
            self.emitter.asm.je(none)?;
            ends::act(self.emitter)?;
            self.emitter.here(&mut none, "default")?;
        }
        self.emitter.asm.mov(rdx, qword_ptr(place!(frame.body)))?;
        if self.finds == Finds::SubTables {
            let rest = offset_of!(Body, parts) + 8;
            let sub_pointer = offset_of!(SubTablePointer, body);
            self.emitter.asm.mov(r8, qword_ptr(rdx + rest as i32))?;
            self.emitter
                .asm
                .mov(rdx, qword_ptr(r8 + sub_pointer as i32))?;
            return ends::enter(self.emitter);
        }
        ends::miss(self.emitter)
    }

    /// Returns `true` if a part's entry is compared with those of other parts.
    fn keeps_best(&self) -> bool {
        let (_, before) = self.parts.split_last().expect("there are parts");
        before.iter().any(|part| !part.is_final)
    }

    /// Returns `true` if an earlier part may have found an entry before this one is searched.
    fn has_rival(&self, index: usize) -> bool {
        self.parts[..index].iter().any(|part| !part.is_final)
    }

    /// Emits the search of a part. `rdx` holds the body.
    fn part(&mut self, index: usize, next: CodeLabel) -> Result<(), IcedError> {
        let part = &self.parts[index];
        let slots = offset_of!(Body, parts) + 8 * index;
        words::require(self.emitter, part.mask.require, next)?;
        self.emitter.asm.mov(r8, qword_ptr(rdx + slots as i32))?;
        self.hash(&part.mask.words)?;
        self.find_home()?;
        if part.is_far {
            self.fetch_slot(index)?;
        }
        self.probe(index, next)
    }

    /// Emits the hash into `rax`, and the words to where [`Self::compare`] expects them: a single one in `r9`, several in the
    /// frame. See [`crate::fast::memory::hash_table::hash`].
    fn hash(&mut self, key: &[Word]) -> Result<(), IcedError> {
        let mut reader = WordReader::new(r10);
        let has_several = key.len() > 1;
        if has_several {
            self.keep(&mut reader, key, 0, RAX)?;
            self.keep(&mut reader, key, 1, RDX)?;
        } else {
            reader.read(self.emitter, &key[0], R9, rax)?;
            self.emitter.asm.mov(rax, r9)?;
        }
        self.emitter.asm.xor(rax, qword_ptr(slots!(seed0)))?;
        self.fold(has_several)?;
        for first in (2..key.len()).step_by(2) {
            self.keep(&mut reader, key, first, R11)?;
            self.emitter.asm.xor(rax, r11)?;
            let has_second = first + 1 < key.len();
            if has_second {
                self.keep(&mut reader, key, first + 1, RDX)?;
            }
            self.fold(has_second)?;
        }
        Ok(())
    }

    /// Emits reading one of several words, and keeping it in the frame.
    fn keep(
        &mut self,
        reader: &mut WordReader,
        key: &[Word],
        index: usize,
        to: Pair,
    ) -> Result<(), IcedError> {
        reader.read(self.emitter, &key[index], to, r9)?;
        self.emitter.asm.mov(qword_ptr(key_word(index)), to.0)
    }

    /// Emits multiplying `rax` by the second word of a pair, which is in `rdx` or 0, and folding the product.
    fn fold(&mut self, has_second: bool) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
        if has_second {
            asm.xor(rdx, qword_ptr(slots!(seed1)))?;
            asm.mul(rdx)?;
        } else {
            asm.mul(qword_ptr(slots!(seed1)))?;
        }
        asm.xor(rax, rdx)
    }

    /// Emits converting the hash in `rax` to the slot's number in `r10` and the tag in `eax`.
    fn find_home(&mut self) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
        asm.mov(r10, rax)?;
        asm.and(r10, qword_ptr(slots!(mask)))?;
        asm.shr(rax, 32)?;
        asm.or(eax, (TAG_MARK >> 32) as i32)
    }

    /// Emits a pause until the slot has been fetched. The state of the search is saved in the frame.
    fn fetch_slot(&mut self, index: usize) -> Result<(), IcedError> {
        let has_several = self.has_several(index);
        let asm = &mut self.emitter.asm;
        asm.prefetcht0(byte_ptr(slot()))?;
        asm.mov(qword_ptr(Kept::At.place()), r10)?;
        asm.mov(qword_ptr(Kept::Tag.place()), rax)?;
        asm.mov(qword_ptr(Kept::Slots.place()), r8)?;
        if !has_several {
            asm.mov(qword_ptr(key_word(0)), r9)?;
        }
        self.emitter.pause(format!("slot {index}"))?;
        self.restore(index)
    }

    /// Emits a pause until the block in `r11` has been fetched.
    fn fetch_block(&mut self, index: usize) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
        asm.prefetcht0(byte_ptr(r11))?;
        asm.mov(qword_ptr(Kept::At.place()), r10)?;
        asm.mov(qword_ptr(Kept::Block.place()), r11)?;
        self.emitter.pause(format!("block {index}"))?;
        self.emitter.asm.mov(r11, qword_ptr(Kept::Block.place()))?;
        self.restore(index)
    }

    fn restore(&mut self, index: usize) -> Result<(), IcedError> {
        let has_several = self.has_several(index);
        let asm = &mut self.emitter.asm;
        asm.mov(r10, qword_ptr(Kept::At.place()))?;
        asm.mov(rax, qword_ptr(Kept::Tag.place()))?;
        asm.mov(r8, qword_ptr(Kept::Slots.place()))?;
        asm.mov(rcx, qword_ptr(place!(frame.header)))?;
        if !has_several {
            asm.mov(r9, qword_ptr(key_word(0)))?;
        }
        Ok(())
    }

    fn has_several(&self, index: usize) -> bool {
        self.parts[index].mask.words.len() > 1
    }

    /// Emits probing slots from `r10` on.
    fn probe(&mut self, index: usize, next: CodeLabel) -> Result<(), IcedError> {
        let (mut probe, mut other, mut advance) = (
            self.emitter.label(),
            self.emitter.label(),
            self.emitter.label(),
        );
        self.emitter.here(&mut probe, format!("probe {index}"))?;
        let asm = &mut self.emitter.asm;
        // One load, since slots may change at any time.
        asm.mov(r11, qword_ptr(slot()))?;
        asm.mov(rdx, r11)?;
        asm.shr(rdx, 32)?;
        asm.cmp(edx, eax)?;
        asm.jne(other)?;
        asm.mov(r11d, r11d)?;
        asm.shl(r11, UNIT_BYTES.ilog2())?;
        asm.add(r11, qword_ptr(place!(context.arena)))?;
        if self.parts[index].is_far {
            self.fetch_block(index)?;
        }
        self.compare(index, advance)?;
        self.found(index, next)?;

        self.emitter.here(&mut other, format!("other {index}"))?;
        self.emitter.asm.test(r11, r11)?;
        self.emitter.asm.je(next)?;
        self.emitter
            .here(&mut advance, format!("advance {index}"))?;
        self.emitter.asm.inc(r10)?;
        self.emitter.asm.and(r10, qword_ptr(slots!(mask)))?;
        self.emitter.asm.jmp(probe)
    }

    /// Emits a comparison of the key with the one at the start of the block in `r11`.
    fn compare(&mut self, index: usize, unequal: CodeLabel) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
        let words = self.parts[index].mask.words.len();
        if words == 1 {
            asm.cmp(qword_ptr(r11), r9)?;
            return asm.jne(unequal);
        }
        for word in 0..words {
            asm.mov(rdx, qword_ptr(key_word(word)))?;
            asm.cmp(qword_ptr(r11 + 8 * word as i32), rdx)?;
            asm.jne(unequal)?;
        }
        Ok(())
    }

    /// Emits handling the block in `r11`: executes its flow record's actions, keeps it if it is better than the one kept, or
    /// follows its sub-table pointer.
    fn found(&mut self, index: usize, next: CodeLabel) -> Result<(), IcedError> {
        let behind = record_offset(self.parts[index].room);
        if self.finds == Finds::SubTables {
            let body = behind + offset_of!(SubTablePointer, body);
            self.emitter.asm.mov(rdx, qword_ptr(r11 + body as i32))?;
            return ends::enter(self.emitter);
        }
        let is_last = index + 1 == self.parts.len() || self.parts[index].is_final;
        self.emitter.asm.lea(rax, ptr(r11 + behind as i32))?;
        if is_last && !self.has_rival(index) {
            return ends::act(self.emitter);
        }
        let mut keep = self.emitter.label();
        if self.has_rival(index) {
            let asm = &mut self.emitter.asm;
            asm.mov(r11, qword_ptr(Kept::Best.place()))?;
            asm.test(r11, r11)?;
            asm.je(keep)?;
            asm.mov(rdx, qword_ptr(r11 + offset_of!(FlowRecord, rank) as i32))?;
            asm.cmp(rdx, qword_ptr(place!(record.rank)))?;
            asm.jb(if is_last { self.end } else { next })?;
        }
        self.emitter.here(&mut keep, format!("keep {index}"))?;
        if is_last {
            return ends::act(self.emitter);
        }
        self.emitter.asm.mov(qword_ptr(Kept::Best.place()), rax)?;
        self.emitter.asm.jmp(next)
    }
}

/// Returns the slot with the number in `r10`.
fn slot() -> AsmMemoryOperand {
    r8 + r10 * size_of::<u64>() as i32 + size_of::<Slots>() as i32
}
