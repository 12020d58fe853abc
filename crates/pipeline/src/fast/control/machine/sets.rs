//! Code for frames that bring an action set or a queue from earlier tables: a call of the interpreter, which executes the
//! entire entry.

use super::emit::Emitter;
use super::ends;
use super::operands::place;
use super::writer::param;
use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::execute;
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::table::FlowRecord;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Emits a jump for frames that bring an action set or a queue.
pub(super) fn check(emitter: &mut Emitter, carries: CodeLabel) -> Result<(), IcedError> {
    let asm = &mut emitter.asm;
    asm.test(dword_ptr(place!(frame.kinds)), Kinds::CARRIED.bits())?;
    asm.jne(carries)
}

/// Emits executing the entry in `rax` for such a frame, and continuing at the next table, if any. The stack is aligned to 16
/// for the call.
pub(super) fn emit(emitter: &mut Emitter, program: &ActionProgram) -> Result<(), IcedError> {
    let execute_set = execute::execute_set as *const () as u64;
    emitter.name_constant(execute_set, "execute::execute_set".to_owned());
    let address = offset_of!(FlowRecord, params) + program.set_params_at();
    let mut done = emitter.label();
    let asm = &mut emitter.asm;
    asm.mov(qword_ptr(place!(frame.header)), rcx)?;
    asm.push(rdi)?;
    asm.push(rsi)?;
    asm.sub(rsp, 8)?;
    asm.mov(rdx, rax)?;
    asm.mov(rcx, qword_ptr(param(address)))?;
    asm.mov(r11, execute_set)?;
    asm.call(r11)?;
    asm.add(rsp, 8)?;
    asm.pop(rsi)?;
    asm.pop(rdi)?;
    asm.test(rax, rax)?;
    asm.je(done)?;
    asm.mov(rcx, rax)?;
    asm.mov(rdx, qword_ptr(place!(header.body)))?;
    ends::enter(emitter)?;
    emitter.here(&mut done, "done")?;
    emitter.asm.ret()
}
