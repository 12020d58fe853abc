//! The interpreter of action programs, which executes one operation after the other. Machine code does the same
//! (`control/machine/actions.rs`); tests compare both with the plain form.
//!
//! **Safety.** Functions here use the pointers of a [`Frame`] without checking its length. Callers ensure that the frame is
//! parsed as deeply as its program requires ([`ActionProgram::depth`]). Then `data`, `network` and `transport` point into
//! its buffer, and each header in `kinds` or the program's `require` is complete.

use super::action_program::{ActionProgram, End};
use super::action_set::{FrameSet, PROGRAM_LEN, QUEUE_LEN, SetStep};
use super::buffer::MAX_COPIED;
use super::context::Context;
use super::counting::{add, counters_of};
use super::frame::{DROP, Frame, PUNT};
use super::group::{GroupCell, can_hand_over, hand_over};
use super::kinds::Kinds;
use super::meter_cell::MeterCell;
use super::op::{CELL_LEN, Op};
use super::operations::{carry_out, raise_drop_precedence, ttl};
use super::sent::FrameLocation;
use super::table::{FlowRecord, Header, program_of};
use super::way::{ORIGIN_LEN, Origin, WAY_LEN, Way};
use crate::MeterVerdict;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use urtica_wire::PortNo;

/// Counts a frame and executes its entry. Returns the next table.
///
/// # Safety
/// The frame is as the module requires, and in the table that its `header` points to. Context and flow record belong to
/// one pipeline for the interpreter, and are not freed during the call.
#[inline]
pub(super) unsafe fn execute(
    frame: &mut Frame,
    context: &Context,
    record: *const FlowRecord,
) -> Option<*const Header> {
    // SAFETY: the flow record is alive, and belongs to a pipeline for the interpreter, so it refers to a program.
    let (program, record) = unsafe { (program_of(record), &*record) };
    if let Some(step) = &program.set {
        if program.always_steps() || frame.kinds.intersects(Kinds::CARRIED) {
            // SAFETY: as this function requires.
            return unsafe { execute_with_set(frame, context, record, program, step) };
        }
    }
    // SAFETY: the frame has been parsed for this program, as its table's body requires.
    if !unsafe { can_execute(frame, context, program, record) } {
        // SAFETY: the frame is in the table of its header.
        unsafe { punt(frame, context) };
        return None;
    }
    // SAFETY: the context is that of the frame's table's pipeline; the flow record has the program's parameters.
    let params = unsafe {
        count(frame, context, record);
        carry_out_all(frame, context, program, record, |way| way)?
    };
    if program.sent > 0 {
        // SAFETY: the parameters for `send` follow those of the operations.
        unsafe { send(frame, context, params, program.sent.into()) };
    }
    frame.out_port = match program.end {
        // SAFETY: the target of such a program is the index of a header, and the context has all headers.
        End::Goto => return Some(unsafe { context.headers.add(record.target as usize) }),
        End::Output if record.target == frame.in_port => DROP,
        End::Output => record.target,
        End::InPort => frame.in_port,
        End::Drop | End::Punt => DROP,
        End::Group => {
            // SAFETY: `can_execute` has checked that the group can handle the frame, which is parsed up to its
            // transport. The origin follows the address of the cell.
            unsafe { hand_over(frame, context, params.add(CELL_LEN)) };
            return None;
        }
    };
    None
}

/// Executes the operations. Returns the parameters after theirs, or `None` if a meter drops the frame. `direct` converts the
/// way of a copy before it is sent.
///
/// # Safety
/// As for [`execute`], after [`can_execute`] has returned `true`.
unsafe fn carry_out_all(
    frame: &mut Frame,
    context: &Context,
    program: &ActionProgram,
    record: &FlowRecord,
    mut direct: impl FnMut(Way) -> Way,
) -> Option<*const u8> {
    let mut params = record.params.as_ptr();
    for &op in &program.ops {
        // SAFETY: the parameter of such an operation is the address of a cell, and `can_execute` has checked that it has a meter.
        if op == Op::Meter && unsafe { is_dropped(frame, context, cell_at(params)) } {
            frame.out_port = DROP;
            return None;
        }
        // SAFETY: the frame has been parsed for this program, and is short enough to be copied if it sends copies; the flow
        // record was created with parameters for all of its operations, one after the other.
        unsafe {
            match op {
                Op::Send => {
                    let way = direct(Way::at(params.add(ORIGIN_LEN)));
                    send_copy_by(frame, context, params, way);
                }
                _ => carry_out(frame, op, params),
            }
            params = params.add(op.params_len());
        }
    }
    Some(params)
}

/// Executes an entry for a frame with an action set or a queue, or an entry that changes them, on behalf of machine code.
/// Returns the next table, or null.
///
/// # Safety
/// As for [`execute`], but the pipeline may have any backend; the flow record has this program, which has a
/// [`SetStep`](super::action_set::SetStep).
pub(crate) unsafe extern "sysv64" fn execute_set(
    frame: *mut Frame,
    context: *const Context,
    record: *const FlowRecord,
    program: *const ActionProgram,
) -> *const Header {
    // SAFETY: all are alive, as this function requires, and the frame is not shared.
    unsafe {
        let (frame, context, record, program) = (&mut *frame, &*context, &*record, &*program);
        let step = program.set.as_ref();
        let next = step.and_then(|step| execute_with_set(frame, context, record, program, step));
        next.unwrap_or(std::ptr::null())
    }
}

/// Like [`execute`], for a frame with an action set or a queue, or an entry that changes them.
///
/// # Safety
/// As for [`execute_set`].
unsafe fn execute_with_set(
    frame: &mut Frame,
    context: &Context,
    record: &FlowRecord,
    program: &ActionProgram,
    step: &SetStep,
) -> Option<*const Header> {
    let is_last = program.end != End::Goto;
    // SAFETY: the flow record has the parameters of the program. The set's group has a cell that lives as long as the flow
    // record that wrote it, at least until the burst ends; the frame is parsed for the written actions. Counters belong to
    // the context.
    unsafe {
        let origin = record
            .params
            .as_ptr()
            .add(program.set_params_at() + PROGRAM_LEN);
        let mut inherited = Inherited::of(frame, step);
        let (queue_id, slots) = queue_after(frame, step, origin.add(ORIGIN_LEN));
        let set = set_after(frame, step, slots);
        if !can_execute(frame, context, program, record)
            || is_last && !set.is_empty() && !can_finish(frame, program, &set)
        {
            punt(frame, context);
            return None;
        }
        count(frame, context, record);
        let params = carry_out_all(frame, context, program, record, |way| inherited.direct(way))?;
        frame.carry_queue(queue_id);
        if !is_last {
            frame.carry(set);
            return Some(context.headers.add(record.target as usize));
        }
        if program.end == End::Group {
            hand_over(frame, context, params.add(CELL_LEN));
            return None;
        }
        let outputs = Outputs::of(frame, program, record, params, inherited);
        match set.changes() || set.group().is_some() {
            true => outputs.send_copies(frame, context, origin),
            false => outputs.send(frame, context, origin, FrameLocation::Own),
        }
        set.change(frame);
        finish(frame, context, &set, origin);
    }
    None
}

/// The queue that earlier tables have chosen for a frame, and the outputs of an entry that use it.
#[derive(Clone, Copy)]
struct Inherited {
    queue_id: u16,
    /// A bit for each following output, starting with the lowest: whether it uses the queue.
    outputs: u32,
}

impl Inherited {
    fn of(frame: &Frame, step: &SetStep) -> Self {
        Self {
            queue_id: frame.carried_queue(),
            outputs: step.inherits,
        }
    }

    /// Returns the way of the next output, for which the entry specifies `way`.
    fn direct(&mut self, way: Way) -> Way {
        let inherits = self.outputs & 1 != 0;
        self.outputs >>= 1;
        match inherits {
            true => way.through(self.queue_id),
            false => way,
        }
    }
}

/// Returns the queue of a frame after an entry's applied actions, and the parameters after that of the queue.
unsafe fn queue_after(frame: &Frame, step: &SetStep, params: *const u8) -> (u16, *const u8) {
    if !step.chooses_queue {
        return (frame.carried_queue(), params);
    }
    // SAFETY: callers pass the parameters after the origin, the first of which is the queue.
    unsafe {
        let queue_id = params.cast::<[u8; QUEUE_LEN]>().read();
        (u16::from_be_bytes(queue_id), params.add(QUEUE_LEN))
    }
}

/// Returns the action set of a frame after an entry.
unsafe fn set_after(frame: &Frame, step: &SetStep, params: *const u8) -> FrameSet {
    let keeps = frame.kinds.contains(Kinds::ACTION_SET) && !step.clears;
    let mut set = match keeps {
        true => frame.action_set,
        false => FrameSet::EMPTY,
    };
    let mut params = params;
    for &slot in &step.written {
        // SAFETY: callers pass the parameters of all slots, one after the other.
        unsafe {
            set.write(slot, params);
            params = params.add(slot.len());
        }
    }
    set
}

/// Returns whether an action set can be executed after a program that can be executed; if not, the frame is unchanged.
unsafe fn can_finish(frame: &mut Frame, program: &ActionProgram, set: &FrameSet) -> bool {
    if program.end == End::Group {
        return false;
    }
    let headroom = program.headroom() + set.headroom();
    let ttl_decrements = program.ttl_decrements() + set.ttl_decrements();
    let room = frame.data as usize - frame.floor as usize;
    let copies = (set.changes() || set.group().is_some())
        && (program.sent > 0 || matches!(program.end, End::Output | End::InPort));
    // SAFETY: if an entry or a set decrements the TTL, its frames are parsed up to the network header, and if it has a group,
    // up to the transport header.
    unsafe {
        let ttl_is_enough = || ttl(frame).is_none_or(|(ttl, _)| *ttl > ttl_decrements);
        room >= headroom
            && (!copies || frame.len as usize + headroom <= MAX_COPIED)
            && (ttl_decrements == 0 || ttl_is_enough())
            && set.group().is_none_or(|cell| {
                can_hand_over(frame, cell, headroom as u32, ttl_decrements.into())
            })
    }
}

/// The outputs of a frame after its operations, before its action set is executed.
struct Outputs {
    /// The ways of additional outputs.
    ways: *const u8,
    count: usize,
    last: Option<u32>,
    inherited: Inherited,
}

impl Outputs {
    fn of(
        frame: &Frame,
        program: &ActionProgram,
        record: &FlowRecord,
        params: *const u8,
        inherited: Inherited,
    ) -> Self {
        Self {
            ways: params.wrapping_add(ORIGIN_LEN),
            count: program.sent.into(),
            last: match program.end {
                End::Output if record.target != frame.in_port => Some(record.target),
                End::InPort => Some(PortNo::IN_PORT.0),
                _ => None,
            },
            inherited,
        }
    }

    /// Sends a copy of the frame to each output.
    unsafe fn send_copies(&self, frame: &mut Frame, context: &Context, origin: *const u8) {
        if self.count == 0 && self.last.is_none() {
            return;
        }
        // SAFETY: as in `send`; `can_finish` has checked that the frame is short enough.
        unsafe {
            let (mut copy, place) = (*context.sent).copy(frame);
            self.send(&mut copy, context, origin, place);
            frame.sent = copy.sent;
        }
    }

    unsafe fn send(
        &self,
        frame: &mut Frame,
        context: &Context,
        origin: *const u8,
        place: FrameLocation,
    ) {
        // SAFETY: the outputs are those of the burst; the ways are consecutive.
        unsafe {
            let mut inherited = self.inherited;
            let ways = (0..self.count).map(|at| Way::at(self.ways.add(at * WAY_LEN)));
            let last = self.last.map(|port| Way::new(PortNo(port), 0, 0));
            for way in ways.chain(last) {
                note(frame, context, place, inherited.direct(way), origin);
            }
        }
    }
}

/// Sends a frame according to its action set.
unsafe fn finish(frame: &mut Frame, context: &Context, set: &FrameSet, origin: *const u8) {
    frame.out_port = DROP;
    let queue_id = set.queue_id().unwrap_or(frame.carried_queue());
    frame.carry_queue(queue_id);
    if set.group().is_some() {
        // SAFETY: `can_finish` has checked that the group can handle the frame.
        return unsafe { hand_over(frame, context, origin) };
    }
    let Some(way) = set.output() else { return };
    match PortNo(way.port) {
        _ if stands_for_others(way.port) || queue_id != 0 => {
            // SAFETY: the context is that of the burst.
            unsafe {
                note(
                    frame,
                    context,
                    FrameLocation::Own,
                    way.through(queue_id),
                    origin,
                )
            }
        }
        PortNo::IN_PORT => frame.out_port = frame.in_port,
        PortNo(port) if port != frame.in_port => frame.out_port = port,
        _ => {}
    }
}

/// Returns whether a port number stands for other ports, or for no port.
fn stands_for_others(port: u32) -> bool {
    let port = PortNo(port);
    port.is_reserved() && port != PortNo::LOCAL && port != PortNo::IN_PORT
}

/// Notes an output of a frame, unless it is the input port.
unsafe fn note(
    frame: &mut Frame,
    context: &Context,
    place: FrameLocation,
    way: Way,
    origin: *const u8,
) {
    if way.port == frame.in_port {
        return;
    }
    let mut list = frame.sent;
    // SAFETY: callers pass the context of the burst, and an origin.
    unsafe { (*context.sent).note(&mut list, frame, place, way, Origin::at(origin)) };
    frame.sent = list;
}

/// Leaves a frame to the plain form, starting at its current table.
///
/// # Safety
/// The frame's `header` is a table's, and alive.
#[inline]
pub(super) unsafe fn punt(frame: &mut Frame, context: &Context) {
    // SAFETY: the header is alive.
    frame.table_id = unsafe { (*frame.header).table_id as u16 };
    frame.out_port = PUNT;
    context.has_left.set(1);
}

/// Returns whether all operations can be executed on this frame; if not, the frame is unchanged.
unsafe fn can_execute(
    frame: &mut Frame,
    context: &Context,
    program: &ActionProgram,
    record: &FlowRecord,
) -> bool {
    // SAFETY: the first parameter of a metered program is the address of a cell, which lives as long as the flow record.
    let meter_is_known = || unsafe {
        let cell = cell_at(record.params.as_ptr());
        !(*cell).meter.load(Acquire).is_null()
    };
    let is_behind_plain = context.has_left.get() != 0;
    if program.end == End::Punt || program.is_metered() && (is_behind_plain || !meter_is_known()) {
        return false;
    }
    let (headroom, ttl_decrements) = (program.headroom(), program.ttl_decrements());
    if program.sends_copies() && frame.len as usize + headroom > MAX_COPIED {
        return false;
    }
    if program.end == End::Group {
        // SAFETY: frames of such a program are parsed up to the transport header. The address of a cell follows the parameters
        // of its operations; the cell lives as long as the flow record.
        return unsafe {
            let cell = record.params.as_ptr().add(program.ops_params_len());
            let cell = cell.cast::<*const GroupCell>().read_unaligned();
            can_hand_over(frame, cell, headroom as u32, ttl_decrements.into())
        };
    }
    // SAFETY: frames of a program that decrements the TTL are parsed up to the network header.
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
    // SAFETY: callers pass the parameter of such an operation, which has this length.
    unsafe { params.cast::<*const MeterCell>().read_unaligned() }
}

/// Passes a frame through a meter, for both backends. Returns `true` if the meter drops it.
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

/// Notes the outputs of a frame that no longer changes, for both backends, except to its input port. The parameters are an
/// [`Origin`] and `count` consecutive [`Way`]s.
///
/// # Safety
/// Context and frame belong to the current burst; the parameters exist.
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
        // SAFETY: the ways follow the origin, one after the other.
        let way = unsafe { Way::at(params.add(ORIGIN_LEN + at * WAY_LEN)) };
        if way.port != frame.in_port {
            sent.note(&mut list, frame, FrameLocation::Own, way, origin);
        }
    }
    frame.sent = list;
}

/// Sends a copy of the current frame, for both backends, unless to its input port. The parameters are an [`Origin`] and a
/// [`Way`].
///
/// # Safety
/// As for [`send`]; the frame is not longer than [`MAX_COPIED`].
pub(crate) unsafe extern "sysv64" fn send_copy(
    frame: *mut Frame,
    context: *const Context,
    params: *const u8,
) {
    // SAFETY: all are alive, as this function requires, and the frame is not shared.
    unsafe {
        let way = Way::at(params.add(ORIGIN_LEN));
        send_copy_by(&mut *frame, &*context, params, way);
    }
}

/// Sends a copy of a frame by this way, unless it is the input port. `origin` points to an [`Origin`].
///
/// # Safety
/// As for [`send_copy`].
unsafe fn send_copy_by(frame: &mut Frame, context: &Context, origin: *const u8, way: Way) {
    if way.port == frame.in_port {
        return;
    }
    let mut list = frame.sent;
    // SAFETY: the outputs are not shared; the frame is one of the burst, and short enough.
    unsafe {
        let sent = &mut *context.sent;
        let (copy, place) = sent.copy(frame);
        sent.note(&mut list, &copy, place, way, Origin::at(origin));
    }
    frame.sent = list;
}
