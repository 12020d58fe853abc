//! Searching merged tuples: a call of what the interpreter calls, too.
//!
//! A search of very many tuples is a loop over them, which is not the place for code that knows what it looks for.

use super::emit::Emitter;
use super::ends;
use super::operands::place;
use crate::fast::datapath::merged;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// Three registers are kept on the stack, which is thereby aligned to 16 bytes, as a call wants it: code is called, and
/// what it jumps to is where the return address is still the topmost.
pub(super) fn emit(emitter: &mut Emitter) -> Result<(), IcedError> {
    let mut none = emitter.label();
    let find = merged::find as *const () as u64;
    emitter.name_constant(find, "merged::find".to_owned());
    let asm = &mut emitter.asm;
    asm.mov(qword_ptr(place!(frame.body)), rdx)?;
    for register in [rdi, rsi, rcx] {
        asm.push(register)?;
    }
    asm.mov(rax, find)?;
    asm.call(rax)?;
    for register in [rcx, rsi, rdi] {
        asm.pop(register)?;
    }
    asm.test(rax, rax)?;
    asm.je(none)?;
    ends::act(emitter)?;
    emitter.here(&mut none, "nothing found")?;
    emitter.asm.mov(rdx, qword_ptr(place!(frame.body)))?;
    ends::miss(emitter)
}
