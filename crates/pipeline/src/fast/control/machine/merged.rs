//! Search of merged tuples, by a call of the interpreter's function.
//!
//! A search of many tuples is a loop over data, which specialised code would not make faster.

use super::emit::Emitter;
use super::ends;
use super::operands::place;
use crate::fast::datapath::merged;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// Emits the call. Saving three registers aligns the stack to 16 bytes.
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
