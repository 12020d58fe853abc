//! How code ends: in a flow record's actions, in the next table, or with a verdict.

use super::emit::Emitter;
use super::operands::place;
use crate::fast::datapath::frame::{DROP, PUNT};
use crate::fast::datapath::table::{Header, TableCounts};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Emits a jump to the actions of the flow record in `rax`.
pub(super) fn act(emitter: &mut Emitter) -> Result<(), IcedError> {
    emitter.asm.jmp(qword_ptr(place!(record.code)))
}

/// Emits the end of a search without an entry, which uses the one that matches everything, if any. `rdx` holds the body.
pub(super) fn miss(emitter: &mut Emitter) -> Result<(), IcedError> {
    let (mut none, mut to_plain) = (emitter.label(), emitter.label());
    emitter.asm.mov(rax, qword_ptr(place!(body.default)))?;
    emitter.asm.test(rax, rax)?;
    emitter.asm.je(none)?;
    act(emitter)?;
    emitter.here(&mut none, "none")?;
    emitter.asm.cmp(dword_ptr(place!(context.misses_punt)), 0)?;
    emitter.asm.jne(to_plain)?;
    count(emitter, offset_of!(TableCounts, misses))?;
    verdict(emitter, DROP)?;
    emitter.here(&mut to_plain, "punt")?;
    punt(emitter)
}

/// Emits leaving the frame to the plain form, from this table on.
pub(super) fn punt(emitter: &mut Emitter) -> Result<(), IcedError> {
    emitter.asm.mov(edx, dword_ptr(place!(header.table_id)))?;
    emitter.asm.mov(word_ptr(place!(frame.table_id)), dx)?;
    emitter.asm.mov(dword_ptr(place!(context.has_left)), 1)?;
    verdict(emitter, PUNT)
}

/// Emits an end with a constant output.
pub(super) fn verdict(emitter: &mut Emitter, out_port: u32) -> Result<(), IcedError> {
    emitter
        .asm
        .mov(dword_ptr(place!(frame.out_port)), out_port)?;
    emitter.asm.ret()
}

/// Emits a jump to the table that is the flow record's target.
pub(super) fn goto(emitter: &mut Emitter) -> Result<(), IcedError> {
    let asm = &mut emitter.asm;
    asm.mov(ecx, dword_ptr(place!(record.target)))?;
    asm.shl(rcx, size_of::<Header>().ilog2())?;
    asm.add(rcx, qword_ptr(place!(context.headers)))?;
    asm.mov(rdx, qword_ptr(place!(header.body)))?;
    enter(emitter)
}

/// Emits a jump to the sub-table whose body is in `rdx`.
pub(super) fn enter(emitter: &mut Emitter) -> Result<(), IcedError> {
    emitter.asm.jmp(qword_ptr(place!(body.code)))
}

/// Emits an increment of one of the table's counts. Uses `r11`.
pub(super) fn count(emitter: &mut Emitter, offset: usize) -> Result<(), IcedError> {
    let asm = &mut emitter.asm;
    asm.mov(r11d, dword_ptr(place!(header.index)))?;
    asm.shl(r11, size_of::<TableCounts>().ilog2())?;
    asm.add(r11, qword_ptr(place!(context.counts)))?;
    asm.inc(qword_ptr(r11 + offset as i32))
}

/// Indexes are scaled by shifting, so these sizes must be powers of two.
const _: () =
    assert!(size_of::<Header>().is_power_of_two() && size_of::<TableCounts>().is_power_of_two());
