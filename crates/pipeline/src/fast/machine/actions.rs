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
use super::{sums::Sums, vlan};
use crate::fast::actions::{ActionShape, End, Step};
use crate::fast::frame::DROP;
use crate::fast::kinds::Kinds;
use crate::fast::table::{Cell, TableCounts};
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
    let mut writer = Writer::new(emitter, shape);
    writer.check(to_plain)?;
    writer.count(is_shared)?;
    writer.steps()?;
    writer.end()?;
    if shape.ttl_steps() > 0 || shape.headroom() > 0 {
        emitter.here(&mut to_plain, "punt")?;
        ends::punt(emitter)?;
    }
    Ok(())
}

/// Code of actions, with what is known at this place of it.
pub(super) struct Writer<'a> {
    pub emitter: &'a mut Emitter,
    shape: &'a ActionShape,
    /// The headers that the frame has for sure.
    pub known: Kinds,
    /// What is in `r8`.
    pub pointer: Option<Pointer>,
    /// Whether `network` is in `r9`.
    pub has_network: bool,
    pub sums: Sums,
}

/// What `r8` may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Data,
    Transport,
}

impl<'a> Writer<'a> {
    fn new(emitter: &'a mut Emitter, shape: &'a ActionShape) -> Self {
        Self {
            emitter,
            shape,
            known: shape.require,
            pointer: None,
            has_network: false,
            sums: Sums::of(&shape.steps),
        }
    }

    /// What must not happen after the frame was counted.
    fn check(&mut self, to_plain: CodeLabel) -> Result<(), IcedError> {
        let headroom = self.shape.headroom() as i32;
        if headroom > 0 {
            self.point_to(Pointer::Data)?;
            let asm = &mut self.emitter.asm;
            asm.mov(rdx, r8)?;
            asm.sub(rdx, qword_ptr(place!(frame.floor)))?;
            asm.cmp(rdx, headroom)?;
            asm.jb(to_plain)?;
        }
        let steps = u32::from(self.shape.ttl_steps());
        if steps > 0 {
            self.of_ip("ttl is high enough", |writer, ttl, _| {
                writer.emitter.asm.cmp(byte_ptr(r9 + ttl), steps)?;
                writer.emitter.asm.jbe(to_plain)
            })?;
        }
        Ok(())
    }

    /// Counts the frame for the entry and for the table.
    fn count(&mut self, is_shared: bool) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
        asm.mov(edx, dword_ptr(place!(frame.len)))?;
        if is_shared {
            asm.lock().inc(qword_ptr(place!(cell.packets)))?;
            asm.lock().add(qword_ptr(place!(cell.bytes)), rdx)?;
        } else {
            asm.inc(qword_ptr(place!(cell.packets)))?;
            asm.add(qword_ptr(place!(cell.bytes)), rdx)?;
        }
        asm.mov(rdx, qword_ptr(place!(context.now_ns)))?;
        asm.mov(qword_ptr(place!(cell.last_used_ns)), rdx)?;
        ends::count(self.emitter, offset_of!(TableCounts, matches))
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
                    self.set_both_ports(params)?;
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
        self.finish_sums()
    }

    /// One step, whose parameters are so far behind the beginning of the cell.
    fn step(&mut self, step: Step, params: usize) -> Result<(), IcedError> {
        match step {
            Step::SetEthDst => self.set_eth(0, params),
            Step::SetEthSrc => self.set_eth(6, params),
            Step::SetVlanVid => vlan::set_vid(self, params),
            Step::SetVlanPcp => vlan::set_pcp(self, params),
            Step::SetIpv4Src => self.set_address(12, params),
            Step::SetIpv4Dst => self.set_address(16, params),
            Step::SetTransportSrc => self.set_port(0, params),
            Step::SetTransportDst => self.set_port(2, params),
            Step::DecNwTtl => self.dec_ttl(),
            Step::PushVlan(ether_type) => vlan::push(self, ether_type),
            Step::PopVlan => vlan::pop(self),
            Step::WriteMetadata => self.write_metadata(params),
        }
    }

    fn set_eth(&mut self, at: i32, params: usize) -> Result<(), IcedError> {
        self.point_to(Pointer::Data)?;
        let asm = &mut self.emitter.asm;
        asm.mov(edx, dword_ptr(param(params)))?;
        asm.mov(dword_ptr(r8 + at), edx)?;
        asm.movzx(edx, word_ptr(param(params + 4)))?;
        asm.mov(word_ptr(r8 + at + 4), dx)
    }

    /// Both addresses lie behind each other, in the frame as in the cell.
    fn set_both_eth(&mut self, params: usize) -> Result<(), IcedError> {
        self.point_to(Pointer::Data)?;
        let asm = &mut self.emitter.asm;
        asm.mov(rdx, qword_ptr(param(params)))?;
        asm.mov(qword_ptr(r8), rdx)?;
        asm.mov(edx, dword_ptr(param(params + 8)))?;
        asm.mov(dword_ptr(r8 + 8), edx)
    }

    fn dec_ttl(&mut self) -> Result<(), IcedError> {
        self.of_ip("ttl decremented", |writer, ttl, is_v4| {
            writer.emitter.asm.dec(byte_ptr(r9 + ttl))?;
            if is_v4 {
                writer.ttl_decremented()
            } else {
                Ok(())
            }
        })
    }

    fn write_metadata(&mut self, params: usize) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
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
        self.point_to_network()?;
        if self.known.contains(Kinds::IPV4) {
            return code(self, IPV4_TTL, true);
        }
        if self.known.contains(Kinds::IPV6) {
            return code(self, IPV6_HOP_LIMIT, false);
        }
        let (mut not_v4, mut done) = (self.emitter.label(), self.emitter.label());
        self.unless(Kinds::IPV4, not_v4)?;
        code(self, IPV4_TTL, true)?;
        self.emitter.asm.jmp(done)?;
        self.emitter.here(&mut not_v4, "not IPv4")?;
        self.unless(Kinds::IPV6, done)?;
        code(self, IPV6_HOP_LIMIT, false)?;
        self.here(&mut done, behind)
    }

    fn end(&mut self) -> Result<(), IcedError> {
        let asm = &mut self.emitter.asm;
        match self.shape.end {
            End::Output => {
                asm.mov(edx, dword_ptr(place!(cell.target)))?;
                asm.mov(r8d, DROP)?;
                asm.cmp(edx, dword_ptr(place!(frame.in_port)))?;
                asm.cmove(edx, r8d)?;
            }
            End::InPort => asm.mov(edx, dword_ptr(place!(frame.in_port)))?,
            End::Goto => return ends::goto(self.emitter),
            End::Drop => return ends::verdict(self.emitter, DROP),
            End::Punt => return ends::punt(self.emitter),
        }
        asm.mov(dword_ptr(place!(frame.out_port)), edx)?;
        asm.ret()
    }

    /// Goes elsewhere with frames that have not this one header.
    pub fn unless(&mut self, kind: Kinds, otherwise: CodeLabel) -> Result<(), IcedError> {
        super::words::require(self.emitter, kind, otherwise)
    }

    /// A place where ways meet.
    pub fn here(&mut self, label: &mut CodeLabel, name: &str) -> Result<(), IcedError> {
        self.emitter.here(label, name)
    }

    /// Puts a pointer into `r8`, unless it is there.
    pub fn point_to(&mut self, pointer: Pointer) -> Result<(), IcedError> {
        if self.pointer == Some(pointer) {
            return Ok(());
        }
        self.pointer = Some(pointer);
        let place = match pointer {
            Pointer::Data => place!(frame.data),
            Pointer::Transport => place!(frame.transport),
        };
        self.emitter.asm.mov(r8, qword_ptr(place))
    }

    /// Puts the pointer to the network header into `r9`, unless it is there.
    pub fn point_to_network(&mut self) -> Result<(), IcedError> {
        if self.has_network {
            return Ok(());
        }
        self.has_network = true;
        self.emitter.asm.mov(r9, qword_ptr(place!(frame.network)))
    }
}

/// A parameter, so far behind the beginning of the cell.
pub(super) fn param(offset: usize) -> AsmMemoryOperand {
    rax + offset as i32
}
