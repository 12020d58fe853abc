//! Action programs, executed operation by operation by the interpreter. Machine code is the other reader
//! (`control/machine/actions.rs`), and both are compared with the plain form in tests.
//!
//! **Safety.** Functions here use the pointers of a [`Frame`] without checking its length. Callers ensure that the frame is
//! parsed as deeply as its program requires ([`ActionProgram::depth`]): then `data`, `network` and `transport` point into
//! its buffer, and each header in `kinds` or the program's `require` is complete.

use super::action_program::{ActionProgram, CELL_LEN, End, Op};
use super::buffer::MAX_COPIED;
use super::context::Context;
use super::counting::{add, counters_of};
use super::frame::{DROP, Frame, PUNT};
use super::group::{GroupCell, can_hand_over, hand_over};
use super::meter_cell::MeterCell;
use super::operations::{carry_out, raise_drop_precedence, ttl};
use super::sent::Place;
use super::table::{FlowRecord, Header, program_of};
use super::way::{ORIGIN_LEN, Origin, WAY_LEN, Way};
use crate::MeterVerdict;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Counts a frame and executes its entry; returns the next table.
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
        // SAFETY: the frame has been parsed for this program, and is short enough to be copied if it sends copies; the flow
        // record was made with parameters for all of its operations, one after the other.
        unsafe {
            match op {
                Op::Send => send_copy(frame, context, params),
                _ => carry_out(frame, op, params),
            }
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
    if program.sends_copies() && frame.len as usize + headroom > MAX_COPIED {
        return false;
    }
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

/// Returns the cell whose address is the parameter of [`Op::Meter`].
unsafe fn cell_at(params: *const u8) -> *const MeterCell {
    // SAFETY: callers give the parameter of such an operation, which is so long.
    unsafe { params.cast::<*const MeterCell>().read_unaligned() }
}

/// Passes a frame through a meter, for both readers; returns `true` if the meter drops it.
///
/// # Safety
/// The frame is parsed up to the network header. The cell has a meter, which is not freed before the burst ends.
pub(crate) unsafe extern "sysv64" fn is_dropped(
    frame: *mut Frame,
    context: *const Context,
    cell: *const MeterCell,
) -> bool {
    // SAFETY: all are alive, as this function requires, and the frame is not shared.
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

/// Notes the outputs of a frame that no longer changes, for both readers: an [`Origin`] and `count` consecutive [`Way`]s,
/// except for the input port.
///
/// # Safety
/// Context and frame are of the burst that is processed; the parameters are there.
pub(crate) unsafe extern "sysv64" fn send(
    frame: *mut Frame,
    context: *const Context,
    params: *const u8,
    count: u32,
) {
    // SAFETY: all are alive, as this function requires, and neither frame nor outputs are shared.
    let (frame, sent, origin) = unsafe {
        let sent = &mut *(*context).sent;
        (&mut *frame, sent, Origin::at(params))
    };
    let mut list = frame.sent;
    for at in 0..count as usize {
        // SAFETY: the ways are behind the origin, one after the other.
        let way = unsafe { Way::at(params.add(ORIGIN_LEN + at * WAY_LEN)) };
        if way.port != frame.in_port {
            sent.note(&mut list, frame, Place::Own, way, origin);
        }
    }
    frame.sent = list;
}

/// Sends a copy of a frame as it is, for both readers: an [`Origin`] and a [`Way`], unless that is the input port.
///
/// # Safety
/// As for [`send`]; the frame is not longer than [`MAX_COPIED`].
pub(crate) unsafe extern "sysv64" fn send_copy(
    frame: *mut Frame,
    context: *const Context,
    params: *const u8,
) {
    // SAFETY: all are alive, as this function requires, and neither frame nor outputs are shared.
    let (frame, sent, origin, way) = unsafe {
        let sent = &mut *(*context).sent;
        let way = Way::at(params.add(ORIGIN_LEN));
        (&mut *frame, sent, Origin::at(params), way)
    };
    if way.port != frame.in_port {
        let mut list = frame.sent;
        // SAFETY: the frame is one of the burst, and short enough.
        let (copy, place) = unsafe { sent.copy(frame) };
        sent.note(&mut list, &copy, place, way, origin);
        frame.sent = list;
    }
}
