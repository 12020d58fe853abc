//! Reading the words that a table compares.

use super::emit::Emitter;
use super::operands::{place, pointer_to, within};
use crate::fast::datapath::key::{Base, Word};
use crate::fast::datapath::kinds::Kinds;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// Emits a jump for frames that do not have all of these headers.
pub(super) fn require(
    emitter: &mut Emitter,
    kinds: Kinds,
    otherwise: CodeLabel,
) -> Result<(), IcedError> {
    let asm = &mut emitter.asm;
    match kinds.bits() {
        0 => Ok(()),
        bit if bit.is_power_of_two() => {
            asm.test(dword_ptr(place!(frame.kinds)), bit)?;
            asm.je(otherwise)
        }
        bits => {
            asm.mov(eax, dword_ptr(place!(frame.kinds)))?;
            asm.and(eax, bits as i32)?;
            asm.cmp(eax, bits as i32)?;
            asm.jne(otherwise)
        }
    }
}

/// A register, as 64 and as 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Pair(pub AsmRegister64, pub AsmRegister32);

pub(super) const RAX: Pair = Pair(rax, eax);

pub(super) const RDX: Pair = Pair(rdx, edx);
pub(super) const R8: Pair = Pair(r8, r8d);
pub(super) const R9: Pair = Pair(r9, r9d);
pub(super) const R11: Pair = Pair(r11, r11d);

/// A reader of words, which tracks the base in its register.
#[derive(Clone, Copy)]
pub(super) struct WordReader {
    pointer: AsmRegister64,
    loaded: Option<Base>,
}

impl WordReader {
    pub fn new(pointer: AsmRegister64) -> Self {
        Self {
            pointer,
            loaded: None,
        }
    }

    /// Creates a reader whose base is already loaded.
    pub fn loaded(pointer: AsmRegister64, base: Base) -> Self {
        Self {
            pointer,
            loaded: Some(base),
        }
    }

    /// Emits reading a masked word into a register. A long mask needs an additional register.
    pub fn read(
        &mut self,
        emitter: &mut Emitter,
        word: &Word,
        to: Pair,
        spare: AsmRegister64,
    ) -> Result<(), IcedError> {
        let from = self.place(emitter, word.base, word.at)?;
        let asm = &mut emitter.asm;
        // A word of fewer bytes is read with that size: the other bytes are 0, and need no mask.
        match word.mask {
            u64::MAX => asm.mov(to.0, qword_ptr(from)),
            0xff => asm.movzx(to.1, byte_ptr(from)),
            0xffff => asm.movzx(to.1, word_ptr(from)),
            0xffff_ffff => asm.mov(to.1, dword_ptr(from)),
            mask => match (u32::try_from(mask), i32::try_from(mask as i64)) {
                (Ok(mask), _) => {
                    asm.mov(to.1, dword_ptr(from))?;
                    asm.and(to.1, mask as i32)
                }
                (_, Ok(mask)) => {
                    asm.mov(to.0, qword_ptr(from))?;
                    asm.and(to.0, mask)
                }
                _ => {
                    asm.mov(spare, mask)?;
                    asm.mov(to.0, qword_ptr(from))?;
                    asm.and(to.0, spare)
                }
            },
        }
    }

    /// Returns an operand relative to a base, and loads the base if necessary.
    pub fn place(
        &mut self,
        emitter: &mut Emitter,
        base: Base,
        at: i16,
    ) -> Result<AsmMemoryOperand, IcedError> {
        let needed = pointer_to(base).filter(|_| self.loaded != Some(base));
        if let Some(pointer) = needed {
            emitter.asm.mov(self.pointer, qword_ptr(pointer))?;
            self.loaded = Some(base);
        }
        Ok(within(base, self.pointer, at))
    }
}
