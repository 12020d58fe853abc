//! VLAN tags: setting, pushing and popping them, and the frame's fields for them.
//!
//! Only the outermost tag matters. It is right after the Ethernet addresses, 12 bytes from the start: its type, and then
//! its TCI of 3 bits priority, 1 bit CFI, 12 bits id.

use super::operands::place;
use super::writer::{Pointer, Writer, param};
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::offset;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use urtica_wire::VLAN_PRESENT;
use urtica_wire::packet::ethernet;

/// As in the interpreter.
const ADDRESSES_LEN: i32 = offset::ADDRESSES_LEN as i32;
const TAG_LEN: i32 = offset::TAG_LEN as i32;
const TCI: i32 = offset::TCI as i32;

/// The bits of a TCI that are the id.
const VLAN_ID: i32 = 0xfff;

pub(super) fn set_vid(writer: &mut Writer, params: usize) -> Result<(), IcedError> {
    if_tagged(writer, |writer, _| {
        let asm = &mut writer.emitter.asm;
        // In memory order, so priority and CFI are bits 4 to 7.
        asm.movzx(edx, word_ptr(r8 + TCI))?;
        asm.and(edx, 0xf0)?;
        asm.or(dx, word_ptr(param(params)))?;
        asm.mov(word_ptr(r8 + TCI), dx)?;
        asm.movzx(edx, word_ptr(param(params)))?;
        asm.rol(dx, 8)?;
        asm.or(edx, i32::from(VLAN_PRESENT))?;
        asm.mov(word_ptr(place!(frame.vlan_vid)), dx)
    })
}

pub(super) fn set_pcp(writer: &mut Writer, params: usize) -> Result<(), IcedError> {
    if_tagged(writer, |writer, _| {
        let asm = &mut writer.emitter.asm;
        asm.movzx(edx, byte_ptr(param(params)))?;
        asm.mov(word_ptr(place!(frame.vlan_pcp)), dx)?;
        asm.shl(edx, 5)?;
        asm.and(byte_ptr(r8 + TCI), 0x1f)?;
        asm.or(byte_ptr(r8 + TCI), dl)
    })
}

/// Emits pushing a tag. Its values are those of the frame's fields, which are 0 without a tag; the CFI is not copied.
pub(super) fn push(writer: &mut Writer, ether_type: u16) -> Result<(), IcedError> {
    writer.point_to(Pointer::Data)?;
    writer.has_network = false;
    let asm = &mut writer.emitter.asm;
    asm.mov(rdx, qword_ptr(r8))?;
    asm.mov(qword_ptr(r8 - TAG_LEN), rdx)?;
    asm.mov(edx, dword_ptr(r8 + 8))?;
    asm.mov(dword_ptr(r8 + 8 - TAG_LEN), edx)?;
    asm.movzx(edx, word_ptr(place!(frame.vlan_vid)))?;
    asm.and(edx, VLAN_ID)?;
    asm.movzx(r9d, word_ptr(place!(frame.vlan_pcp)))?;
    asm.shl(r9d, 13)?;
    asm.or(edx, r9d)?;
    asm.or(edx, i32::from(ether_type) << 16)?;
    asm.bswap(edx)?;
    asm.mov(dword_ptr(r8 + ADDRESSES_LEN - TAG_LEN), edx)?;
    asm.sub(r8, TAG_LEN)?;
    asm.mov(qword_ptr(place!(frame.data)), r8)?;
    asm.add(dword_ptr(place!(frame.len)), TAG_LEN)?;
    asm.or(
        byte_ptr(place!(frame.vlan_vid) + 1),
        i32::from(VLAN_PRESENT) >> 8,
    )?;
    asm.or(dword_ptr(place!(frame.kinds)), Kinds::VLAN.bits() as i32)?;
    writer.known |= Kinds::VLAN;
    Ok(())
}

/// Emits popping a tag. An inner tag, if any, becomes the outermost; then the type before `network` is not the first one.
pub(super) fn pop(writer: &mut Writer) -> Result<(), IcedError> {
    if_tagged(writer, |writer, done| {
        let mut inner = writer.emitter.label();
        let asm = &mut writer.emitter.asm;
        asm.mov(edx, dword_ptr(r8 + 8))?;
        asm.mov(dword_ptr(r8 + 8 + TAG_LEN), edx)?;
        asm.mov(rdx, qword_ptr(r8))?;
        asm.mov(qword_ptr(r8 + TAG_LEN), rdx)?;
        asm.add(r8, TAG_LEN)?;
        asm.mov(qword_ptr(place!(frame.data)), r8)?;
        asm.sub(dword_ptr(place!(frame.len)), TAG_LEN)?;
        asm.mov(rdx, qword_ptr(place!(frame.network)))?;
        asm.sub(rdx, r8)?;
        asm.cmp(rdx, ethernet::HEADER_LEN as i32)?;
        asm.ja(inner)?;
        asm.xor(edx, edx)?;
        asm.mov(word_ptr(place!(frame.vlan_vid)), dx)?;
        asm.mov(word_ptr(place!(frame.vlan_pcp)), dx)?;
        asm.and(dword_ptr(place!(frame.kinds)), !Kinds::VLAN.bits() as i32)?;
        asm.jmp(done)?;
        writer.here(&mut inner, "inner tag")?;
        let asm = &mut writer.emitter.asm;
        asm.movzx(edx, word_ptr(r8 + TCI))?;
        asm.rol(dx, 8)?;
        asm.mov(r9d, edx)?;
        asm.and(edx, VLAN_ID)?;
        asm.or(edx, i32::from(VLAN_PRESENT))?;
        asm.mov(word_ptr(place!(frame.vlan_vid)), dx)?;
        asm.shr(r9d, 13)?;
        asm.mov(word_ptr(place!(frame.vlan_pcp)), r9w)
    })?;
    writer.has_network = false;
    writer.known -= Kinds::VLAN;
    Ok(())
}

/// Emits code for frames with a tag, which may jump to the label after it. `data` is in `r8`.
fn if_tagged(
    writer: &mut Writer,
    code: impl FnOnce(&mut Writer, CodeLabel) -> Result<(), IcedError>,
) -> Result<(), IcedError> {
    writer.point_to(Pointer::Data)?;
    let mut done = writer.emitter.label();
    if !writer.known.contains(Kinds::VLAN) {
        writer.unless(Kinds::VLAN, done)?;
    }
    code(writer, done)?;
    writer.here(&mut done, "tag done")
}
