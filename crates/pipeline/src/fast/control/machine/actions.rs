//! The code of action programs.
//!
//! ```text
//!  checks that change nothing ──► the plain form
//!  count
//!  operations, which add up the changes for checksums
//!  checksums
//!  end
//! ```

use super::emit::Emitter;
use super::ends;
use super::operands::place;
use super::sets;
use super::sums::Sums;
use super::vlan;
use super::writer::{Pointer, Writer, param};
use crate::counters::EntryCounters;
use crate::fast::datapath::action_program::{ActionProgram, End};
use crate::fast::datapath::buffer::MAX_COPIED;
use crate::fast::datapath::execute;
use crate::fast::datapath::frame::DROP;
use crate::fast::datapath::group;
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::meter_cell::MeterCell;
use crate::fast::datapath::offset;
use crate::fast::datapath::op::{CELL_LEN, Op};
use crate::fast::datapath::table::{FlowRecord, TableCounts};
use crate::fast::memory::arena::UNIT_BYTES;
use crate::thread_counts::PLACE_BYTES;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// The offset of a flow record's counters in a thread's area.
const COUNTED_PACKETS: i32 = offset_of!(EntryCounters, packets) as i32;
const COUNTED_BYTES: i32 = offset_of!(EntryCounters, bytes) as i32;
const COUNTED_LAST_USED: i32 = offset_of!(EntryCounters, last_used_ns) as i32;

/// Emits an action program. `rax` holds the flow record. `rdx` holds temporary values, `r8` the pointer to `data` or
/// `transport`, `r9` the pointer to `network`; `r10` and `r11` belong to [`Sums`].
pub(super) fn emit(
    emitter: &mut Emitter,
    program: &ActionProgram,
    is_shared: bool,
) -> Result<(), IcedError> {
    if program.end == End::Punt {
        return ends::punt(emitter);
    }
    if program.always_steps() {
        return sets::emit(emitter, program);
    }
    let mut carries = emitter.label();
    if program.set.is_some() {
        sets::check(emitter, carries)?;
    }
    let mut to_plain = emitter.label();
    let mut actions = Actions::new(emitter, program);
    actions.check(to_plain)?;
    actions.count(is_shared)?;
    actions.ops()?;
    actions.end()?;
    if program.can_punt() {
        emitter.here(&mut to_plain, "punt")?;
        ends::punt(emitter)?;
    }
    if program.set.is_some() {
        emitter.here(&mut carries, "carries an action set or a queue")?;
        sets::emit(emitter, program)?;
    }
    Ok(())
}

/// The code of one action program.
struct Actions<'a> {
    writer: Writer<'a>,
    program: &'a ActionProgram,
    sums: Sums,
}

impl<'a> Actions<'a> {
    fn new(emitter: &'a mut Emitter, program: &'a ActionProgram) -> Self {
        Self {
            writer: Writer::new(emitter, program.require),
            program,
            sums: Sums::of(&program.ops),
        }
    }

    /// Emits a check that must precede counting the frame.
    fn check(&mut self, to_plain: CodeLabel) -> Result<(), IcedError> {
        if self.program.end == End::Group {
            self.check_group(to_plain)?;
        } else {
            self.check_headroom(to_plain)?;
        }
        if self.program.is_metered() {
            let asm = &mut self.writer.emitter.asm;
            asm.mov(rdx, qword_ptr(param(offset_of!(FlowRecord, params))))?;
            asm.cmp(qword_ptr(rdx + offset_of!(MeterCell, meter) as i32), 0)?;
            asm.je(to_plain)?;
            asm.cmp(dword_ptr(place!(context.has_left)), 0)?;
            asm.jne(to_plain)?;
        }
        if self.program.sends_copies() {
            let longest = (MAX_COPIED - self.program.headroom()) as u32;
            let asm = &mut self.writer.emitter.asm;
            asm.cmp(dword_ptr(place!(frame.len)), longest)?;
            asm.ja(to_plain)?;
        }
        let ops = u32::from(self.program.ttl_decrements());
        if ops > 0 && self.program.end != End::Group {
            self.of_ip("ttl is high enough", |actions, ttl, _| {
                actions.writer.emitter.asm.cmp(byte_ptr(r9 + ttl), ops)?;
                actions.writer.emitter.asm.jbe(to_plain)
            })?;
        }
        Ok(())
    }

    fn check_headroom(&mut self, to_plain: CodeLabel) -> Result<(), IcedError> {
        let headroom = self.program.headroom() as i32;
        if headroom > 0 {
            self.writer.point_to(Pointer::Data)?;
            let asm = &mut self.writer.emitter.asm;
            asm.mov(rdx, r8)?;
            asm.sub(rdx, qword_ptr(place!(frame.floor)))?;
            asm.cmp(rdx, headroom)?;
            asm.jb(to_plain)?;
        }
        Ok(())
    }

    /// Checks the group's requirements, in addition to the program's.
    fn check_group(&mut self, to_plain: CodeLabel) -> Result<(), IcedError> {
        let headroom = self.program.headroom() as u32;
        let ttl_decrements = u32::from(self.program.ttl_decrements());
        let cell = offset_of!(FlowRecord, params) + self.program.ops_params_len();
        let can_hand_over = group::can_hand_over as *const () as u64;
        self.call(can_hand_over, "group::can_hand_over", |asm| {
            asm.mov(rsi, qword_ptr(param(cell)))?;
            asm.mov(edx, headroom)?;
            asm.mov(ecx, ttl_decrements)
        })?;
        let asm = &mut self.writer.emitter.asm;
        asm.test(dl, dl)?;
        asm.je(to_plain)
    }

    /// Emits a call of a function with the frame and the context, unless `arguments` has others; its result is in `edx`. The
    /// registers that all code of actions relies on are saved on the stack, with 8 more bytes to align it to 16 for the call.
    /// Other registers are lost.
    fn call(
        &mut self,
        function: u64,
        name: &str,
        arguments: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        self.writer.emitter.name_constant(function, name.to_owned());
        (self.writer.pointer, self.writer.has_network) = (None, false);
        let asm = &mut self.writer.emitter.asm;
        for register in [rdi, rsi, rcx, rax] {
            asm.push(register)?;
        }
        asm.sub(rsp, 8)?;
        arguments(asm)?;
        asm.mov(r11, function)?;
        asm.call(r11)?;
        asm.add(rsp, 8)?;
        asm.mov(edx, eax)?;
        for register in [rax, rcx, rsi, rdi] {
            asm.pop(register)?;
        }
        Ok(())
    }

    /// Emits counting the frame for the entry and for the table.
    fn count(&mut self, is_shared: bool) -> Result<(), IcedError> {
        let asm = &mut self.writer.emitter.asm;
        asm.mov(edx, dword_ptr(place!(frame.len)))?;
        if is_shared {
            // The address of the record's counters in the thread's area: see `thread_counts`.
            asm.lea(r11, qword_ptr(place!(record.counters)))?;
            asm.sub(r11, qword_ptr(place!(context.arena)))?;
            asm.and(r11, -(UNIT_BYTES as i32))?;
            asm.shr(r11, (UNIT_BYTES / PLACE_BYTES).ilog2())?;
            asm.add(r11, qword_ptr(place!(context.entry_counts)))?;
            asm.inc(qword_ptr(r11 + COUNTED_PACKETS))?;
            asm.add(qword_ptr(r11 + COUNTED_BYTES), rdx)?;
            asm.mov(rdx, qword_ptr(place!(context.now_ns)))?;
            asm.mov(qword_ptr(r11 + COUNTED_LAST_USED), rdx)?;
        } else {
            asm.inc(qword_ptr(place!(record.counters.packets)))?;
            asm.add(qword_ptr(place!(record.counters.bytes)), rdx)?;
            asm.mov(rdx, qword_ptr(place!(context.now_ns)))?;
            asm.mov(qword_ptr(place!(record.counters.last_used_ns)), rdx)?;
        }
        ends::count(self.writer.emitter, offset_of!(TableCounts, matches))
    }

    fn ops(&mut self) -> Result<(), IcedError> {
        let mut rest = self.program.ops.as_slice();
        let mut params = offset_of!(FlowRecord, params);
        while !rest.is_empty() {
            let taken = match rest {
                [Op::SetEthDst, Op::SetEthSrc, ..] => {
                    self.set_both_eth(params)?;
                    2
                }
                [Op::SetTransportSrc, Op::SetTransportDst, ..] => {
                    self.sums.set_both_ports(&mut self.writer, params)?;
                    2
                }
                _ => {
                    self.op(rest[0], params)?;
                    1
                }
            };
            let (done, others) = rest.split_at(taken);
            if done == [Op::Send] {
                self.sums = Sums::of(others);
            }
            params += done.iter().map(|op| op.params_len()).sum::<usize>();
            rest = others;
        }
        self.sums.finish(&mut self.writer)
    }

    /// Emits one operation, whose parameters are at offset `params` in the flow record.
    fn op(&mut self, op: Op, params: usize) -> Result<(), IcedError> {
        match op {
            Op::SetEthDst => self.set_eth(offset::ETH_DST, params),
            Op::SetEthSrc => self.set_eth(offset::ETH_SRC, params),
            Op::SetVlanVid => vlan::set_vid(&mut self.writer, params),
            Op::SetVlanPcp => vlan::set_pcp(&mut self.writer, params),
            Op::SetIpv4Src => self
                .sums
                .set_address(&mut self.writer, offset::IPV4_SRC, params),
            Op::SetIpv4Dst => self
                .sums
                .set_address(&mut self.writer, offset::IPV4_DST, params),
            Op::SetTransportSrc => self
                .sums
                .set_port(&mut self.writer, offset::SRC_PORT, params),
            Op::SetTransportDst => self
                .sums
                .set_port(&mut self.writer, offset::DST_PORT, params),
            Op::DecNwTtl => self.dec_ttl(),
            Op::PushVlan(ether_type) => vlan::push(&mut self.writer, ether_type),
            Op::PopVlan => vlan::pop(&mut self.writer),
            Op::WriteMetadata => self.write_metadata(params),
            Op::Meter => self.pass_meter(params),
            Op::Send => self.send_copy(params),
        }
    }

    fn set_eth(&mut self, at: usize, params: usize) -> Result<(), IcedError> {
        self.writer.point_to(Pointer::Data)?;
        let asm = &mut self.writer.emitter.asm;
        asm.mov(edx, dword_ptr(param(params)))?;
        asm.mov(dword_ptr(r8 + at as i32), edx)?;
        asm.movzx(edx, word_ptr(param(params + 4)))?;
        asm.mov(word_ptr(r8 + at as i32 + 4), dx)
    }

    /// Emits setting both Ethernet addresses, which are adjacent in the frame and in the flow record.
    fn set_both_eth(&mut self, params: usize) -> Result<(), IcedError> {
        self.writer.point_to(Pointer::Data)?;
        let asm = &mut self.writer.emitter.asm;
        asm.mov(rdx, qword_ptr(param(params)))?;
        asm.mov(qword_ptr(r8), rdx)?;
        asm.mov(edx, dword_ptr(param(params + 8)))?;
        asm.mov(dword_ptr(r8 + 8), edx)
    }

    fn dec_ttl(&mut self) -> Result<(), IcedError> {
        self.of_ip("ttl decremented", |actions, ttl, is_v4| {
            actions.writer.emitter.asm.dec(byte_ptr(r9 + ttl))?;
            if is_v4 {
                actions.sums.ttl_decremented(&mut actions.writer)
            } else {
                Ok(())
            }
        })
    }

    fn pass_meter(&mut self, params: usize) -> Result<(), IcedError> {
        let mut passed = self.writer.emitter.label();
        let is_dropped = execute::is_dropped as *const () as u64;
        self.call(is_dropped, "execute::is_dropped", |asm| {
            asm.mov(rdx, qword_ptr(param(params)))
        })?;
        let asm = &mut self.writer.emitter.asm;
        asm.test(dl, dl)?;
        asm.je(passed)?;
        ends::verdict(self.writer.emitter, DROP)?;
        self.writer.here(&mut passed, "passed")
    }

    fn write_metadata(&mut self, params: usize) -> Result<(), IcedError> {
        let asm = &mut self.writer.emitter.asm;
        asm.mov(rdx, qword_ptr(place!(frame.metadata)))?;
        asm.and(rdx, qword_ptr(param(params + 8)))?;
        asm.or(rdx, qword_ptr(param(params)))?;
        asm.mov(qword_ptr(place!(frame.metadata)), rdx)
    }

    /// Emits code for IPv4 or IPv6, depending on the frame, with the TTL's offset from `r9`, and whether it is IPv4's TTL.
    fn of_ip(
        &mut self,
        behind: &str,
        mut code: impl FnMut(&mut Self, i32, bool) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        self.writer.point_to_network()?;
        if self.writer.known.contains(Kinds::IPV4) {
            return code(self, offset::IPV4_TTL as i32, true);
        }
        if self.writer.known.contains(Kinds::IPV6) {
            return code(self, offset::IPV6_HOP_LIMIT as i32, false);
        }
        let (mut not_v4, mut done) = (self.writer.emitter.label(), self.writer.emitter.label());
        self.writer.unless(Kinds::IPV4, not_v4)?;
        code(self, offset::IPV4_TTL as i32, true)?;
        self.writer.emitter.asm.jmp(done)?;
        self.writer.emitter.here(&mut not_v4, "not IPv4")?;
        self.writer.unless(Kinds::IPV6, done)?;
        code(self, offset::IPV6_HOP_LIMIT as i32, false)?;
        self.writer.here(&mut done, behind)
    }

    /// Emits a jump to a function that returns to this code's caller. Its arguments, the frame and the context, are already in
    /// registers.
    fn hand_over(&mut self) -> Result<(), IcedError> {
        let hand_over = group::hand_over as *const () as u64;
        let origin = offset_of!(FlowRecord, params) + self.program.ops_params_len() + CELL_LEN;
        let emitter = &mut *self.writer.emitter;
        emitter.name_constant(hand_over, "group::hand_over".to_owned());
        emitter.asm.lea(rdx, qword_ptr(param(origin)))?;
        emitter.asm.mov(r11, hand_over)?;
        emitter.asm.jmp(r11)
    }

    /// Emits noting the additional outputs, which precede the end.
    fn send(&mut self) -> Result<(), IcedError> {
        let params = offset_of!(FlowRecord, params) + self.program.ops_params_len();
        let count = u32::from(self.program.sent);
        self.call(execute::send as *const () as u64, "execute::send", |asm| {
            asm.lea(rdx, qword_ptr(param(params)))?;
            asm.mov(ecx, count)
        })
    }

    /// Emits sending a copy of the current frame, with checksums that include all changes.
    fn send_copy(&mut self, params: usize) -> Result<(), IcedError> {
        self.sums.finish(&mut self.writer)?;
        let send_copy = execute::send_copy as *const () as u64;
        self.call(send_copy, "execute::send_copy", |asm| {
            asm.lea(rdx, qword_ptr(param(params)))
        })
    }

    fn end(&mut self) -> Result<(), IcedError> {
        if self.program.sent > 0 {
            self.send()?;
        }
        let asm = &mut self.writer.emitter.asm;
        match self.program.end {
            End::Output => {
                asm.mov(edx, dword_ptr(place!(record.target)))?;
                asm.mov(r8d, DROP)?;
                asm.cmp(edx, dword_ptr(place!(frame.in_port)))?;
                asm.cmove(edx, r8d)?;
            }
            End::InPort => asm.mov(edx, dword_ptr(place!(frame.in_port)))?,
            End::Goto => return ends::goto(self.writer.emitter),
            End::Drop => return ends::verdict(self.writer.emitter, DROP),
            End::Group => return self.hand_over(),
            End::Punt => return ends::punt(self.writer.emitter),
        }
        asm.mov(dword_ptr(place!(frame.out_port)), edx)?;
        asm.ret()
    }
}
