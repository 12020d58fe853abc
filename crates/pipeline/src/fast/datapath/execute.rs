//! Action programs, carried out operation by operation: the interpreter's reading of them. Machine code is the other one
//! (`control/machine/actions.rs`), and both are compared with the plain form in tests.
//!
//! **Safety.** Functions here follow the pointers of a [`Frame`] without a look at its length. Callers have made sure that
//! the frame is parsed as deep as its program asks for ([`ActionProgram::depth`]): then `data`, `network` and `transport`
//! point into its buffer, and each header that `kinds` or the program's `require` names is there in full.

use super::action_program::{ActionProgram, CELL_LEN, End, Op};
use super::frame::{DROP, Frame, PUNT};
use super::group::{GroupCell, can_hand_over, hand_over};
use super::kinds::Kinds;
use super::meter_cell::MeterCell;
use super::offset;
use super::sent::send;
use super::table::{Context, FlowRecord, Header, program_of};
use crate::MeterVerdict;
use crate::counters::EntryCounters;
use crate::fast::memory::thread_counts::place;
use crate::meter::raised_drop_precedence;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use urtica_wire::VLAN_PRESENT;

/// Counts a frame and does what its entry says; returns the table that follows.
///
/// # Safety
/// The frame is as the module says, and in the table that its `header` points to. Context and flow record belong to one
/// pipeline for the interpreter, and are not freed meanwhile.
#[inline]
pub(super) unsafe fn execute(
    frame: &mut Frame,
    context: &Context,
    record: *const FlowRecord,
) -> Option<*const Header> {
    // SAFETY: the flow record is alive, and one of a pipeline for the interpreter, so that it names a program.
    let (program, record) = unsafe { (program_of(record), &*record) };
    // SAFETY: the frame has been parsed for this program, which its table's body saw to.
    if !unsafe { can_execute(frame, program, record) } {
        // SAFETY: the frame is in the table of its header.
        unsafe { punt(frame) };
        return None;
    }
    // SAFETY: the context is that of the pipeline whose table the frame is in.
    unsafe { count(frame, context, record) };
    let mut params = record.params.as_ptr();
    for &op in &program.ops {
        // SAFETY: the parameter of such an operation is the address of a cell that has a meter, as `can_execute` has seen.
        if op == Op::Meter && unsafe { is_dropped(frame, context, cell_at(params)) } {
            frame.out_port = DROP;
            return None;
        }
        // SAFETY: the frame has been parsed for this program; the flow record was made with parameters for all of its
        // operations, one after the other.
        unsafe {
            carry_out(frame, op, params);
            params = params.add(op.params_len());
        }
    }
    if program.sent > 0 {
        // SAFETY: the parameters of this follow those of the operations.
        unsafe { send(frame, context, params, program.sent.into()) };
    }
    frame.out_port = match program.end {
        // SAFETY: the target of such a program is the index of a header, of which the context has all.
        End::Goto => return Some(unsafe { context.headers.add(record.target as usize) }),
        End::Output if record.target == frame.in_port => DROP,
        End::Output => record.target,
        End::InPort => frame.in_port,
        End::Drop | End::Punt => DROP,
        End::Group => {
            // SAFETY: `can_execute` has asked whether the group can take the frame, which is parsed up to its transport. The
            // origin follows the address of the cell.
            unsafe { hand_over(frame, context, params.add(CELL_LEN)) };
            return None;
        }
    };
    None
}

/// Leaves a frame to the plain form, from the table on that it is in.
///
/// # Safety
/// The frame's `header` is that of a table, and alive.
#[inline]
pub(super) unsafe fn punt(frame: &mut Frame) {
    // SAFETY: the header is alive.
    frame.table_id = unsafe { (*frame.header).table_id };
    frame.out_port = PUNT;
}

/// Adds to a number that only this thread changes.
#[inline]
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Whether all operations can be carried out on this frame; if not, nothing has been done yet.
unsafe fn can_execute(frame: &mut Frame, program: &ActionProgram, record: &FlowRecord) -> bool {
    // SAFETY: the first parameter of a metered program is the address of a cell, which lives as long as the flow record.
    let meter_is_known = || unsafe {
        let cell = cell_at(record.params.as_ptr());
        !(*cell).meter.load(Acquire).is_null()
    };
    if program.end == End::Punt || program.is_metered() && !meter_is_known() {
        return false;
    }
    let (headroom, ttl_decrements) = (program.headroom(), program.ttl_decrements());
    if program.end == End::Group {
        // SAFETY: such a program has its frames parsed up to the transport header, and the address of a cell behind the
        // parameters of its operations, which lives as long as the flow record.
        return unsafe {
            let cell = record.params.as_ptr().add(program.ops_params_len());
            let cell = cell.cast::<*const GroupCell>().read_unaligned();
            can_hand_over(frame, cell, headroom as u32, ttl_decrements.into())
        };
    }
    // SAFETY: a program that decrements the TTL has its frames parsed up to the network header.
    let ttl_is_enough = || unsafe { ttl(frame).is_none_or(|(ttl, _)| *ttl > ttl_decrements) };
    let room = frame.data as usize - frame.floor as usize;
    room >= headroom && (ttl_decrements == 0 || ttl_is_enough())
}

/// Where a thread counts for something whose own counters are at this address.
///
/// # Safety
/// The counters are in the arena of the context's pipeline, and not freed meanwhile.
#[inline]
pub(super) unsafe fn counters_of<'a>(
    context: &Context,
    counters: *const EntryCounters,
) -> &'a EntryCounters {
    // SAFETY: the counters are alive, and the thread's area belongs to the arena that they are in.
    unsafe {
        match context.entry_counts.is_null() {
            true => &*counters,
            false => place(context.entry_counts, context.arena.addr(), counters.addr()),
        }
    }
}

unsafe fn count(frame: &Frame, context: &Context, record: &FlowRecord) {
    // SAFETY: the context has counts for each header, and `header` is one of them.
    let counts = unsafe { &*context.counts.add((*frame.header).index as usize) };
    add(&counts.matches, 1);
    // SAFETY: the record is in the arena.
    let counters = unsafe { counters_of(context, &raw const record.counters) };
    add(&counters.packets, 1);
    add(&counters.bytes, frame.len.into());
    counters.last_used_ns.store(context.now_ns, Relaxed);
}

/// Carries out one operation.
///
/// # Safety
/// The frame is parsed as deep as the operation asks for, and has the headers that it is for; `params` has its parameters.
pub(super) unsafe fn carry_out(frame: &mut Frame, op: Op, params: *const u8) {
    // SAFETY: the frame is parsed as deep as the operation asks for, and has the headers that the entry requires or that
    // are looked for here; `params` has as many bytes as the operation takes (`Op::params_len`).
    unsafe {
        match op {
            Op::SetEthDst => set_eth(frame, offset::ETH_DST, params),
            Op::SetEthSrc => set_eth(frame, offset::ETH_SRC, params),
            Op::SetVlanVid if frame.kinds.contains(Kinds::VLAN) => {
                let vid = u16::from_be_bytes(params.cast::<[u8; 2]>().read());
                set_tci(frame, tci(frame) & 0xf000 | vid);
            }
            Op::SetVlanPcp if frame.kinds.contains(Kinds::VLAN) => {
                set_tci(frame, tci(frame) & 0x1fff | u16::from(*params) << 13);
            }
            Op::SetIpv4Src => set_ipv4_address(frame, offset::IPV4_SRC, params),
            Op::SetIpv4Dst => set_ipv4_address(frame, offset::IPV4_DST, params),
            Op::SetTransportSrc => set_port(frame, offset::SRC_PORT, params),
            Op::SetTransportDst => set_port(frame, offset::DST_PORT, params),
            Op::DecNwTtl => dec_ttl(frame),
            Op::PushVlan(ether_type) => push_vlan(frame, ether_type),
            Op::PopVlan if frame.kinds.contains(Kinds::VLAN) => pop_vlan(frame),
            Op::WriteMetadata => {
                let [value, kept] = params.cast::<[u64; 2]>().read_unaligned();
                frame.metadata = frame.metadata & kept | value;
            }
            Op::SetVlanVid | Op::SetVlanPcp | Op::PopVlan | Op::Meter => {}
        }
    }
}

/// The cell whose address is the parameter of [`Op::Meter`].
unsafe fn cell_at(params: *const u8) -> *const MeterCell {
    // SAFETY: callers give the parameter of such an operation, which is so long.
    unsafe { params.cast::<*const MeterCell>().read_unaligned() }
}

/// Takes a frame through a meter, for both readers; returns whether the meter drops it.
///
/// # Safety
/// The frame is parsed up to the network header. The cell has a meter, which is not freed before the burst ends.
pub(crate) unsafe extern "sysv64" fn is_dropped(
    frame: *mut Frame,
    context: *const Context,
    cell: *const MeterCell,
) -> bool {
    // SAFETY: all are alive, as this function asks for, and nobody else has the frame.
    let (frame, now_ns, meter) = unsafe {
        let meter = (*cell).meter.load(Acquire);
        (&mut *frame, (*context).now_ns, &*meter)
    };
    match meter.measure_at(frame.len as usize, now_ns) {
        MeterVerdict::Pass => false,
        MeterVerdict::Drop => true,
        MeterVerdict::Remark(levels) => {
            // SAFETY: the frame is parsed up to the network header.
            unsafe { raise_drop_precedence(frame, levels) };
            false
        }
    }
}

/// Raises the drop precedence of IPv4 and IPv6; the checksum of IPv4 follows.
unsafe fn raise_drop_precedence(frame: &mut Frame, levels: u8) {
    let is_v4 = frame.kinds.contains(Kinds::IPV4);
    if !is_v4 && !frame.kinds.contains(Kinds::IPV6) {
        return;
    }
    // SAFETY: `kinds` says that the network header is there in full; the DSCP is in its first two bytes.
    unsafe {
        let old = word_at(frame.network);
        let shift = if is_v4 { 2 } else { 6 };
        let dscp = (old >> shift & 0x3f) as u8;
        let raised = u32::from(raised_drop_precedence(dscp, levels));
        let new = old & !(0x3f << shift) | raised << shift;
        let place = frame.network.cast::<[u8; 2]>();
        place.write((new as u16).to_be_bytes());
        if is_v4 && new != old {
            Change::of_word(old, new).update(frame.network.add(offset::IPV4_CHECKSUM));
        }
    }
}

unsafe fn set_eth(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: every frame has both addresses, and `params` has 6 bytes, which are not in the frame.
    unsafe { frame.data.add(at).copy_from_nonoverlapping(params, 6) }
}

/// The TTL of IPv4 or the hop limit of IPv6, and where the checksum over it is; `None` for other frames.
///
/// # Safety
/// The frame is parsed up to the network header.
pub(super) unsafe fn ttl(frame: &Frame) -> Option<(*mut u8, Option<*mut u8>)> {
    // SAFETY: the frame is parsed up to the network header, and `kinds` says that it is there in full.
    unsafe {
        if frame.kinds.contains(Kinds::IPV4) {
            let sum = frame.network.add(offset::IPV4_CHECKSUM);
            return Some((frame.network.add(offset::IPV4_TTL), Some(sum)));
        }
        let is_v6 = frame.kinds.contains(Kinds::IPV6);
        is_v6.then(|| (frame.network.add(offset::IPV6_HOP_LIMIT), None))
    }
}

unsafe fn dec_ttl(frame: &mut Frame) {
    // SAFETY: the frame is parsed up to the network header; `ttl` gives places in it.
    unsafe {
        let Some((ttl, sum)) = ttl(frame) else { return };
        let word = |ttl: u8| u32::from(ttl) << 8;
        if let Some(sum) = sum {
            Change::of_word(word(*ttl), word(*ttl - 1)).update(sum);
        }
        *ttl -= 1;
    }
}

unsafe fn set_ipv4_address(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: such an operation is only in programs that require IPv4, whose header is there in full; `params` has 4 bytes.
    unsafe {
        let place = frame.network.add(at);
        let change = Change {
            gone: (word_at(place) ^ 0xffff) + (word_at(place.add(2)) ^ 0xffff),
            come: word_at(params) + word_at(params.add(2)),
        };
        place.copy_from_nonoverlapping(params, 4);
        change.update(frame.network.add(offset::IPV4_CHECKSUM));
        change.update_transport(frame);
    }
}

unsafe fn set_port(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: such an operation is only in programs that require TCP or UDP, whose header is there in full; `params` has 2
    // bytes.
    unsafe {
        let place = frame.transport.add(at);
        let change = Change::of_word(word_at(place), word_at(params));
        place.copy_from_nonoverlapping(params, 2);
        change.update_transport(frame);
    }
}

/// What changes under a checksum.
#[derive(Clone, Copy)]
struct Change {
    /// The sum of the complements of the words that were.
    gone: u32,
    /// The sum of the words that are.
    come: u32,
}

impl Change {
    fn of_word(old: u32, new: u32) -> Self {
        Self {
            gone: old ^ 0xffff,
            come: new,
        }
    }

    /// Takes a checksum along (RFC 1624, equation 3).
    ///
    /// # Safety
    /// There are two bytes at `at`, which nobody else has.
    unsafe fn update(self, at: *mut u8) {
        // SAFETY: `at` has the two bytes that are read and written.
        unsafe {
            let mut total = (word_at(at) ^ 0xffff) + self.gone + self.come;
            total = (total & 0xffff) + (total >> 16);
            total = (total & 0xffff) + (total >> 16);
            at.cast::<[u8; 2]>().write((!(total as u16)).to_be_bytes());
        }
    }

    /// Takes the checksum of TCP or UDP along; of UDP 0 means none (RFC 768).
    ///
    /// # Safety
    /// The frame is parsed up to the transport header.
    unsafe fn update_transport(self, frame: &Frame) {
        // SAFETY: `kinds` tells which transport header is there in full, checksum included.
        unsafe {
            let udp_sum = frame.transport.wrapping_add(offset::UDP_CHECKSUM);
            if frame.kinds.contains(Kinds::TCP) {
                self.update(frame.transport.add(offset::TCP_CHECKSUM));
            } else if frame.kinds.contains(Kinds::UDP) && word_at(udp_sum) != 0 {
                self.update(udp_sum);
                if word_at(udp_sum) == 0 {
                    udp_sum.cast::<[u8; 2]>().write([0xff; 2]);
                }
            }
        }
    }
}

unsafe fn word_at(at: *const u8) -> u32 {
    // SAFETY: callers give places in a header that is there, or in a flow record's parameters.
    u16::from_be_bytes(unsafe { at.cast::<[u8; 2]>().read() }).into()
}

/// The outermost tag, without the type before it.
unsafe fn tci(frame: &Frame) -> u16 {
    // SAFETY: `kinds` has said that there is a tag; the outermost is right behind the addresses.
    unsafe { word_at(frame.data.add(offset::TCI)) as u16 }
}

unsafe fn set_tci(frame: &mut Frame, tci: u16) {
    // SAFETY: as in `tci`, or `push_vlan` has just made room for the tag.
    unsafe {
        let place = frame.data.add(offset::TCI).cast::<[u8; 2]>();
        place.write(tci.to_be_bytes());
    }
    note_tci(frame, tci);
}

/// Notes what keys look at of the outermost tag.
fn note_tci(frame: &mut Frame, tci: u16) {
    frame.set_tag(VLAN_PRESENT | tci & 0xfff, tci >> 13);
}

/// A new tag begins with the values of the outermost there is, but for the drop indicator.
unsafe fn push_vlan(frame: &mut Frame, ether_type: u16) {
    let outer = frame.vlan_pcp << 13 | frame.vlan_vid & 0xfff;
    // SAFETY: `can_execute` has seen that the program's tags fit between `floor` and `data`; the addresses are 12 bytes.
    unsafe {
        let addresses = frame.data;
        frame.data = addresses.sub(offset::TAG_LEN);
        addresses.copy_to(frame.data, offset::ADDRESSES_LEN);
        let place = frame.data.add(offset::ADDRESSES_LEN).cast::<[u8; 2]>();
        place.write(ether_type.to_be_bytes());
        frame.len += offset::TAG_LEN as u32;
        frame.kinds |= Kinds::VLAN;
        set_tci(frame, outer);
    }
}

/// An inner tag, if there is one, becomes the outermost: the type that `network` stands behind is then not the first.
unsafe fn pop_vlan(frame: &mut Frame) {
    // SAFETY: `kinds` has said that there is a tag, so the frame has 4 bytes behind its addresses that go, and is parsed as
    // far as the type.
    unsafe {
        let addresses = frame.data;
        frame.data = addresses.add(offset::TAG_LEN);
        addresses.copy_to(frame.data, offset::ADDRESSES_LEN);
        frame.len -= offset::TAG_LEN as u32;
        if frame.network as usize - frame.data as usize > offset::ADDRESSES_LEN + 2 {
            note_tci(frame, tci(frame));
        } else {
            frame.kinds -= Kinds::VLAN;
            frame.set_tag(0, 0);
        }
    }
}
