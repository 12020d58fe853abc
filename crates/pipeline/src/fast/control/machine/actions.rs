//! What entries do to frames, by the shape of their actions.
//!
//! ```text
//!  checks that change nothing ──► the plain way
//!  count
//!  steps, which add up what checksums have to follow
//!  checksums
//!  end
//! ```

use super::emit::Emitter;
use super::ends;
use super::operands::place;
use super::sums::Sums;
use super::vlan;
use super::writer::{Pointer, Writer, param};
use crate::fast::datapath::action_program::{ActionShape, End, Step};
use crate::fast::datapath::frame::DROP;
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::table::{Cell, TableCounts};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Where the TTL of IPv4 and the hop limit of IPv6 are.
const IPV4_TTL: i32 = 8;
const IPV6_HOP_LIMIT: i32 = 7;

/// `rax` holds the cell. `rdx` is for whatever is at hand, `r8` for the pointer to `data` or `transport`, `r9` for
/// `network`; `r10` and `r11` are those of [`Sums`].
pub(super) fn emit(
    emitter: &mut Emitter,
    shape: &ActionShape,
    is_shared: bool,
) -> Result<(), IcedError> {
    if shape.end == End::Punt {
        return ends::punt(emitter);
    }
    let mut to_plain = emitter.label();
    let mut actions = Actions::new(emitter, shape);
    actions.check(to_plain)?;
    actions.count(is_shared)?;
    actions.steps()?;
    actions.end()?;
    if shape.ttl_steps() > 0 || shape.headroom() > 0 {
        emitter.here(&mut to_plain, "punt")?;
        ends::punt(emitter)?;
    }
    Ok(())
}

/// Code for the actions of one shape.
struct Actions<'a> {
    writer: Writer<'a>,
    shape: &'a ActionShape,
    sums: Sums,
}

impl<'a> Actions<'a> {
    fn new(emitter: &'a mut Emitter, shape: &'a ActionShape) -> Self {
        Self {
            writer: Writer::new(emitter, shape.require),
            shape,
            sums: Sums::of(&shape.steps),
        }
    }

    /// What must not happen after the frame was counted.
    fn check(&mut self, to_plain: CodeLabel) -> Result<(), IcedError> {
        let headroom = self.shape.headroom() as i32;
        if headroom > 0 {
            self.writer.point_to(Pointer::Data)?;
            let asm = &mut self.writer.emitter.asm;
            asm.mov(rdx, r8)?;
            asm.sub(rdx, qword_ptr(place!(frame.floor)))?;
            asm.cmp(rdx, headroom)?;
            asm.jb(to_plain)?;
        }
        let steps = u32::from(self.shape.ttl_steps());
        if steps > 0 {
            self.of_ip("ttl is high enough", |actions, ttl, _| {
                actions.writer.emitter.asm.cmp(byte_ptr(r9 + ttl), steps)?;
                actions.writer.emitter.asm.jbe(to_plain)
            })?;
        }
        Ok(())
    }

    /// Counts the frame for the entry and for the table.
    fn count(&mut self, is_shared: bool) -> Result<(), IcedError> {
        let asm = &mut self.writer.emitter.asm;
        asm.mov(edx, dword_ptr(place!(frame.len)))?;
        if is_shared {
            asm.lock().inc(qword_ptr(place!(cell.counters.packets)))?;
            asm.lock()
                .add(qword_ptr(place!(cell.counters.bytes)), rdx)?;
        } else {
            asm.inc(qword_ptr(place!(cell.counters.packets)))?;
            asm.add(qword_ptr(place!(cell.counters.bytes)), rdx)?;
        }
        asm.mov(rdx, qword_ptr(place!(context.now_ns)))?;
        asm.mov(qword_ptr(place!(cell.counters.last_used_ns)), rdx)?;
        ends::count(self.writer.emitter, offset_of!(TableCounts, matches))
    }

    fn steps(&mut self) -> Result<(), IcedError> {
        let mut rest = self.shape.steps.as_slice();
        let mut params = offset_of!(Cell, params);
        while !rest.is_empty() {
            let taken = match rest {
                [Step::SetEthDst, Step::SetEthSrc, ..] => {
                    self.set_both_eth(params)?;
                    2
                }
                [Step::SetTransportSrc, Step::SetTransportDst, ..] => {
                    self.sums.set_both_ports(&mut self.writer, params)?;
                    2
                }
                _ => {
                    self.step(rest[0], params)?;
                    1
                }
            };
            let (done, others) = rest.split_at(taken);
            params += done.iter().map(|step| step.params_len()).sum::<usize>();
            rest = others;
        }
        self.sums.finish(&mut self.writer)
    }

    /// One step, whose parameters are so far behind the beginning of the cell.
    fn step(&mut self, step: Step, params: usize) -> Result<(), IcedError> {
        match step {
            Step::SetEthDst => self.set_eth(0, params),
            Step::SetEthSrc => self.set_eth(6, params),
            Step::SetVlanVid => vlan::set_vid(&mut self.writer, params),
            Step::SetVlanPcp => vlan::set_pcp(&mut self.writer, params),
            Step::SetIpv4Src => self.sums.set_address(&mut self.writer, 12, params),
            Step::SetIpv4Dst => self.sums.set_address(&mut self.writer, 16, params),
            Step::SetTransportSrc => self.sums.set_port(&mut self.writer, 0, params),
            Step::SetTransportDst => self.sums.set_port(&mut self.writer, 2, params),
            Step::DecNwTtl => self.dec_ttl(),
            Step::PushVlan(ether_type) => vlan::push(&mut self.writer, ether_type),
            Step::PopVlan => vlan::pop(&mut self.writer),
            Step::WriteMetadata => self.write_metadata(params),
        }
    }

    fn set_eth(&mut self, at: i32, params: usize) -> Result<(), IcedError> {
        self.writer.point_to(Pointer::Data)?;
        let asm = &mut self.writer.emitter.asm;
        asm.mov(edx, dword_ptr(param(params)))?;
        asm.mov(dword_ptr(r8 + at), edx)?;
        asm.movzx(edx, word_ptr(param(params + 4)))?;
        asm.mov(word_ptr(r8 + at + 4), dx)
    }

    /// Both addresses lie behind each other, in the frame as in the cell.
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

    fn write_metadata(&mut self, params: usize) -> Result<(), IcedError> {
        let asm = &mut self.writer.emitter.asm;
        asm.mov(rdx, qword_ptr(place!(frame.metadata)))?;
        asm.and(rdx, qword_ptr(param(params + 8)))?;
        asm.or(rdx, qword_ptr(param(params)))?;
        asm.mov(qword_ptr(place!(frame.metadata)), rdx)
    }

    /// Code for IPv4 or IPv6, whichever the frame is of, with the place of the TTL behind `r9`, and whether it is IPv4's.
    fn of_ip(
        &mut self,
        behind: &str,
        mut code: impl FnMut(&mut Self, i32, bool) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        self.writer.point_to_network()?;
        if self.writer.known.contains(Kinds::IPV4) {
            return code(self, IPV4_TTL, true);
        }
        if self.writer.known.contains(Kinds::IPV6) {
            return code(self, IPV6_HOP_LIMIT, false);
        }
        let (mut not_v4, mut done) = (self.writer.emitter.label(), self.writer.emitter.label());
        self.writer.unless(Kinds::IPV4, not_v4)?;
        code(self, IPV4_TTL, true)?;
        self.writer.emitter.asm.jmp(done)?;
        self.writer.emitter.here(&mut not_v4, "not IPv4")?;
        self.writer.unless(Kinds::IPV6, done)?;
        code(self, IPV6_HOP_LIMIT, false)?;
        self.writer.here(&mut done, behind)
    }

    fn end(&mut self) -> Result<(), IcedError> {
        let asm = &mut self.writer.emitter.asm;
        match self.shape.end {
            End::Output => {
                asm.mov(edx, dword_ptr(place!(cell.target)))?;
                asm.mov(r8d, DROP)?;
                asm.cmp(edx, dword_ptr(place!(frame.in_port)))?;
                asm.cmove(edx, r8d)?;
            }
            End::InPort => asm.mov(edx, dword_ptr(place!(frame.in_port)))?,
            End::Goto => return ends::goto(self.writer.emitter),
            End::Drop => return ends::verdict(self.writer.emitter, DROP),
            End::Punt => return ends::punt(self.writer.emitter),
        }
        asm.mov(dword_ptr(place!(frame.out_port)), edx)?;
        asm.ret()
    }
}
