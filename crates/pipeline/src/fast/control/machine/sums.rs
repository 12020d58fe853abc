//! Checksums: operations add up their changes, and checksums are updated at the end.
//!
//! In RFC 1624 the new checksum is `~(~sum + ~old + new)` in ones' complement, for each changed word. Additions can be
//! deferred and combined with the plain form's result: the sum modulo 0xffff does not depend on the order, and of the two
//! zeros, 0 is the result only if only zeros are added. Any byte order works (RFC 1071 section 2), so words are added in
//! memory order, 32 bits at once.

use super::writer::{Pointer, Writer, param};
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::offset;
use crate::fast::datapath::op::Op;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// The offsets of the checksums of the IPv4 header, of TCP and of UDP.
const IPV4_SUM: i32 = offset::IPV4_CHECKSUM as i32;
const TCP_SUM: i32 = offset::TCP_CHECKSUM as i32;
const UDP_SUM: i32 = offset::UDP_CHECKSUM as i32;

/// The number to add to the complement of the sum for a decremented TTL: `~old + new` with `new = old - 1`, in this
/// machine's byte order, in which the TTL is the lower byte of its word.
const TTL_LESS: i32 = 0xfffe;

/// The sums so far.
pub(super) struct Sums {
    /// Whether `r10` holds the changes of IPv4 addresses.
    has_addresses: bool,
    /// Whether `r11` holds the changes of ports.
    has_ports: bool,
    /// The number of TTL decrements that the checksum does not include yet.
    ttl_decrements: i32,
    /// Whether the TTL's changes are combined with those of addresses.
    ttl_waits: bool,
}

impl Sums {
    /// Creates the sums for operations up to the next copy, which needs its checksums.
    pub fn of(ops: &[Op]) -> Self {
        let is_address = |op: &Op| matches!(op, Op::SetIpv4Src | Op::SetIpv4Dst);
        let mut ops = ops.iter().take_while(|op| **op != Op::Send);
        Self {
            has_addresses: false,
            has_ports: false,
            ttl_decrements: 0,
            ttl_waits: ops.any(is_address),
        }
    }

    pub fn set_address(
        &mut self,
        writer: &mut Writer,
        at: usize,
        params: usize,
    ) -> Result<(), IcedError> {
        writer.point_to_network()?;
        let asm = &mut writer.emitter.asm;
        asm.mov(edx, dword_ptr(r9 + at as i32))?;
        asm.not(edx)?;
        if std::mem::replace(&mut self.has_addresses, true) {
            asm.add(r10, rdx)?;
        } else {
            asm.mov(r10, rdx)?;
        }
        asm.mov(edx, dword_ptr(param(params)))?;
        asm.mov(dword_ptr(r9 + at as i32), edx)?;
        asm.add(r10, rdx)
    }

    pub fn set_port(
        &mut self,
        writer: &mut Writer,
        at: usize,
        params: usize,
    ) -> Result<(), IcedError> {
        writer.point_to(Pointer::Transport)?;
        writer.emitter.asm.movzx(edx, word_ptr(r8 + at as i32))?;
        writer.emitter.asm.xor(edx, 0xffff)?;
        self.add_port(writer)?;
        let asm = &mut writer.emitter.asm;
        asm.movzx(edx, word_ptr(param(params)))?;
        asm.mov(word_ptr(r8 + at as i32), dx)?;
        asm.add(r11, rdx)
    }

    /// Emits setting both ports, which are adjacent in the frame and in the flow record.
    pub fn set_both_ports(&mut self, writer: &mut Writer, params: usize) -> Result<(), IcedError> {
        writer.point_to(Pointer::Transport)?;
        writer.emitter.asm.mov(edx, dword_ptr(r8))?;
        writer.emitter.asm.not(edx)?;
        self.add_port(writer)?;
        let asm = &mut writer.emitter.asm;
        asm.mov(edx, dword_ptr(param(params)))?;
        asm.mov(dword_ptr(r8), edx)?;
        asm.add(r11, rdx)
    }

    /// Emits adding `rdx` to the changes of ports.
    fn add_port(&mut self, writer: &mut Writer) -> Result<(), IcedError> {
        if std::mem::replace(&mut self.has_ports, true) {
            writer.emitter.asm.add(r11, rdx)
        } else {
            writer.emitter.asm.mov(r11, rdx)
        }
    }

    /// Emits the update of IPv4's checksum for the TTL, immediately if nothing else in its header changes: the sum itself
    /// decreases by [`TTL_LESS`].
    pub fn ttl_decremented(&mut self, writer: &mut Writer) -> Result<(), IcedError> {
        if self.ttl_waits {
            self.ttl_decrements += 1;
            return Ok(());
        }
        let asm = &mut writer.emitter.asm;
        asm.movzx(edx, word_ptr(r9 + IPV4_SUM))?;
        asm.sub(dx, TTL_LESS as i16 as i32)?;
        asm.sbb(dx, 0)?;
        asm.mov(word_ptr(r9 + IPV4_SUM), dx)
    }

    /// Emits the update of all checksums over changed words.
    pub fn finish(&mut self, writer: &mut Writer) -> Result<(), IcedError> {
        if self.has_addresses {
            self.finish_ipv4(writer)?;
        }
        if self.has_addresses || self.has_ports {
            self.finish_transport(writer)?;
        }
        Ok(())
    }

    fn finish_ipv4(&mut self, writer: &mut Writer) -> Result<(), IcedError> {
        writer.point_to_network()?;
        writer.pointer = None;
        writer.emitter.asm.movzx(edx, word_ptr(r9 + IPV4_SUM))?;
        writer.emitter.asm.xor(edx, 0xffff)?;
        writer.emitter.asm.add(rdx, r10)?;
        if self.ttl_decrements > 0 {
            writer
                .emitter
                .asm
                .add(rdx, self.ttl_decrements * TTL_LESS)?;
        }
        fold(writer, R8)?;
        writer.emitter.asm.mov(word_ptr(r9 + IPV4_SUM), dx)
    }

    fn finish_transport(&mut self, writer: &mut Writer) -> Result<(), IcedError> {
        let sum = match (self.has_addresses, self.has_ports) {
            (true, true) => {
                writer.emitter.asm.add(r11, r10)?;
                r11
            }
            (true, false) => r10,
            _ => r11,
        };
        writer.point_to(Pointer::Transport)?;
        writer.has_network = false;
        if writer.known.contains(Kinds::TCP) {
            return finish_tcp(writer, sum);
        }
        let mut done = writer.emitter.label();
        if !writer.known.contains(Kinds::UDP) {
            let mut not_tcp = writer.emitter.label();
            writer.unless(Kinds::TCP, not_tcp)?;
            finish_tcp(writer, sum)?;
            writer.emitter.asm.jmp(done)?;
            writer.here(&mut not_tcp, "not TCP")?;
            writer.unless(Kinds::UDP, done)?;
        }
        finish_udp(writer, sum, done)?;
        writer.here(&mut done, "checksums done")
    }
}

fn finish_tcp(writer: &mut Writer, sum: AsmRegister64) -> Result<(), IcedError> {
    let at = r8 + TCP_SUM;
    writer.emitter.asm.movzx(edx, word_ptr(at))?;
    writer.emitter.asm.xor(edx, 0xffff)?;
    writer.emitter.asm.add(rdx, sum)?;
    fold(writer, R9)?;
    writer.emitter.asm.mov(word_ptr(at), dx)
}

/// Emits the last step for UDP, where 0 means no checksum, and stays; a sum of 0 is written as 0xffff (RFC 768).
fn finish_udp(writer: &mut Writer, sum: AsmRegister64, done: CodeLabel) -> Result<(), IcedError> {
    let at = r8 + UDP_SUM;
    writer.emitter.asm.movzx(edx, word_ptr(at))?;
    writer.emitter.asm.test(edx, edx)?;
    writer.emitter.asm.je(done)?;
    writer.emitter.asm.xor(edx, 0xffff)?;
    writer.emitter.asm.add(rdx, sum)?;
    fold(writer, R9)?;
    let asm = &mut writer.emitter.asm;
    asm.mov(r9d, 0xffff)?;
    asm.test(dx, dx)?;
    asm.cmove(edx, r9d)?;
    asm.mov(word_ptr(at), dx)
}

/// Emits converting the sum in `rdx`, including carries, to the checksum in `dx`.
fn fold(writer: &mut Writer, spare: Spare) -> Result<(), IcedError> {
    let asm = &mut writer.emitter.asm;
    asm.mov(spare.0, rdx)?;
    asm.shr(spare.0, 32)?;
    asm.add(edx, spare.1)?;
    asm.adc(edx, 0)?;
    asm.mov(spare.1, edx)?;
    asm.shr(spare.1, 16)?;
    asm.add(dx, spare.2)?;
    asm.adc(dx, 0)?;
    asm.not(edx)
}

/// A free register, as 64, 32 and 16 bits.
#[derive(Clone, Copy)]
struct Spare(AsmRegister64, AsmRegister32, AsmRegister16);

const R8: Spare = Spare(r8, r8d, r8w);
const R9: Spare = Spare(r9, r9d, r9w);
