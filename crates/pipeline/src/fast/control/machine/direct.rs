//! Direct code, which compares frames with entries one by one: the table's values are constants in the code.
//!
//! For consecutive entries with equal bits, headers are checked once, and the first word is read once.

use super::actions;
use super::emit::Emitter;
use super::ends;
use super::error::CodeError;
use super::operands::{place, pointer_to};
use super::words::{self, Pair, R8, RAX, WordReader};
use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::key::{Base, KeyMask, Word};
use crate::fast::datapath::table::Rule;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// An entry and its action program.
type Entry<'a> = (&'a Rule, &'a ActionProgram);

/// The bases that have their own register, with the register.
const POINTERS: [(Base, AsmRegister64); 3] = [
    (Base::Data, r9),
    (Base::Network, r10),
    (Base::Transport, r11),
];

/// Emits a table. `r8` holds the first word to compare, `rdx` and `rax` further ones.
pub(super) fn emit(
    emitter: &mut Emitter,
    rules: &[Entry],
    is_shared: bool,
) -> Result<(), CodeError> {
    let fits = |(rule, _): &Entry| rule.values.len() == rule.mask.words.len();
    if !rules.iter().all(fits) {
        return Err(CodeError::Unsupported(
            "a rule without a value for each word",
        ));
    }
    emitter.asm.mov(qword_ptr(place!(frame.body)), rdx)?;
    let mut first = 0;
    for group in rules.chunk_by(|(one, _), (other, _)| one.mask == other.mask) {
        emit_group(emitter, group, first, is_shared)?;
        first += group.len();
    }
    emitter.asm.mov(rdx, qword_ptr(place!(frame.body)))?;
    Ok(ends::miss(emitter)?)
}

/// Emits entries with equal bits, numbered from `first`.
fn emit_group(
    emitter: &mut Emitter,
    group: &[Entry],
    first: usize,
    is_shared: bool,
) -> Result<(), IcedError> {
    let mut end = emitter.label();
    begin_group(emitter, &group[0].0.mask, end)?;
    for (index, (rule, program)) in group.iter().enumerate() {
        let is_last = index + 1 == group.len();
        let mut next = if is_last { end } else { emitter.label() };
        compare_all(emitter, rule, next)?;
        let record = rule.record.addr() as u64;
        emitter.name_constant(record, format!("record {}", first + index));
        emitter.asm.mov(rax, record)?;
        actions::emit(emitter, program, is_shared)?;
        let name = format!("behind {}", first + index);
        emitter.here(if is_last { &mut end } else { &mut next }, name)?;
    }
    Ok(())
}

/// Checks the headers, and reads the group's common words.
fn begin_group(emitter: &mut Emitter, mask: &KeyMask, next: CodeLabel) -> Result<(), IcedError> {
    words::require(emitter, mask.require, next)?;
    for (base, register) in POINTERS {
        let is_used = mask.words.iter().any(|word| word.base == base);
        if let Some(pointer) = pointer_to(base).filter(|_| is_used) {
            emitter.asm.mov(register, qword_ptr(pointer))?;
        }
    }
    match mask.words.first() {
        Some(word) => read(emitter, word, R8),
        None => Ok(()),
    }
}

/// Emits a jump for frames that do not match. The first word has been read.
fn compare_all(emitter: &mut Emitter, rule: &Rule, otherwise: CodeLabel) -> Result<(), IcedError> {
    let pairs = rule.mask.words.iter().zip(&rule.values);
    for (index, (word, &value)) in pairs.enumerate() {
        if index == 0 {
            compare(emitter, R8, value)?;
        } else {
            read(emitter, word, RAX)?;
            compare(emitter, RAX, value)?;
        }
        emitter.asm.jne(otherwise)?;
    }
    Ok(())
}

fn read(emitter: &mut Emitter, word: &Word, to: Pair) -> Result<(), IcedError> {
    let mut pointers = POINTERS.iter();
    let pointer = pointers.find(|(base, _)| *base == word.base);
    let register = pointer.map_or(rdi, |(_, register)| *register);
    WordReader::loaded(register, word.base).read(emitter, word, to, rdx)
}

/// Emits a comparison of a word with a constant, with the shortest possible instruction.
fn compare(emitter: &mut Emitter, word: Pair, value: u64) -> Result<(), IcedError> {
    let asm = &mut emitter.asm;
    if let Ok(value) = i32::try_from(value as i64) {
        return asm.cmp(word.0, value);
    }
    asm.mov(rdx, value)?;
    asm.cmp(word.0, rdx)
}
