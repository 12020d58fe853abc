//! An entry's actions, as a program that many entries share and the entry's parameters. The compiled form has no other form
//! of actions. `control/translate.rs` creates programs; the interpreter executes them (`execute.rs`), and the code generator
//! compiles them (`control/machine/actions.rs`). The plain form does not use them, and so can be the reference model.
//!
//! ESWITCH calls these action templates (section 3.1): all routes of a table rewrite the same fields, each to its own
//! values. Machine code is generated for the program; the values are in the entry's
//! [`FlowRecord`](super::table::FlowRecord).

use super::action_set::{SetStep, Slot};
use super::kinds::{Depth, Kinds};
use super::op::{CELL_LEN, Op};
use super::way::{ORIGIN_LEN, WAY_LEN};

/// The maximum size of a flow record's parameters, in bytes.
pub(crate) const MAX_PARAMS: usize = 120;

/// The maximum number of operations in an action program. Longer lists are left to the plain form.
pub(crate) const MAX_OPS: usize = 64;

/// The size of [`End::Group`]'s parameters in bytes: the address of a [`GroupCell`](super::group::GroupCell), and an
/// [`Origin`](super::way::Origin).
pub(crate) const GROUP_PARAM_LEN: usize = CELL_LEN + ORIGIN_LEN;

/// The destination of a frame after the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// The port in the flow record's target, unless that is the input port.
    Output,
    /// The input port.
    InPort,
    /// The table that is the flow record's target.
    Goto,
    /// A group. Its parameters follow those of the operations.
    Group,
    /// No destination: the frame is dropped.
    Drop,
    /// The plain form, from the start of this table, without counting: only that supports the entry's actions.
    Punt,
}

/// The part of entries' actions that does not contain their values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ActionProgram {
    /// The headers that every frame has here, because the entry requires them.
    pub require: Kinds,
    pub ops: Vec<Op>,
    /// The number of additional outputs. Their parameters follow those of the operations: an [`Origin`](super::way::Origin),
    /// then one [`Way`](super::way::Way) for each.
    pub sent: u8,
    pub end: End,
    /// The effect on action sets and queues; `None` if frames bring none, or keep theirs for the next table. Its parameters are
    /// the last.
    pub set: Option<SetStep>,
}

impl ActionProgram {
    /// Returns the number of TTL decrements. An IP frame whose TTL is not higher than this is left to the plain form, which
    /// notifies the controller (1.3.5 section 5.12).
    pub fn ttl_decrements(&self) -> u8 {
        let ops = self.ops.iter();
        const { assert!(MAX_OPS <= u8::MAX as usize) };
        ops.filter(|&&op| op == Op::DecNwTtl).count() as u8
    }

    /// Returns `true` if frames pass a meter. Until the compiled form has the meter, they are left to the plain form.
    pub fn is_metered(&self) -> bool {
        self.ops.first() == Some(&Op::Meter)
    }

    /// Returns `true` if it sends copies of a frame before the end. Frames that are too long to be copied are left to the plain
    /// form.
    pub fn sends_copies(&self) -> bool {
        self.ops.contains(&Op::Send)
    }

    /// Returns `true` if some frames may be left to the plain form.
    pub fn can_punt(&self) -> bool {
        matches!(self.end, End::Group | End::Punt)
            || self.is_metered()
            || self.sends_copies()
            || self.set.is_some()
            || self.headroom() > 0
            || self.ttl_decrements() > 0
    }

    /// Returns `true` if its [`SetStep`] applies to all frames, not only to frames with an action set or a queue.
    pub fn always_steps(&self) -> bool {
        let hands_on = matches!(self.end, End::Goto | End::Group);
        let step = self.set.as_ref();
        step.is_some_and(|step| step.writes() || step.chooses_queue && hands_on)
    }

    /// Returns the space before the frame that the operations need. Frames with less space are left to the plain form.
    pub fn headroom(&self) -> usize {
        let ops = self.ops.iter();
        4 * ops.filter(|op| matches!(op, Op::PushVlan(_))).count()
    }

    /// Returns the depth to which frames must have been parsed.
    pub fn depth(&self) -> Depth {
        if self.end == End::Group {
            // A group may select by flow, and change any header.
            return Depth::Transport;
        }
        let written = self.set.iter().flat_map(|step| &step.written);
        let depths = self.ops.iter().map(|op| op.depth());
        let depths = depths.chain(written.map(|slot| slot.depth()));
        depths.max().unwrap_or_default()
    }

    /// Returns the size of the operations' parameters, in bytes; others follow them.
    pub fn ops_params_len(&self) -> usize {
        self.ops.iter().map(|op| op.params_len()).sum()
    }

    /// Returns the offset of the parameters of `set`.
    pub fn set_params_at(&self) -> usize {
        let others = match (self.end, usize::from(self.sent)) {
            (End::Group, _) => GROUP_PARAM_LEN,
            (_, 0) => 0,
            (_, sent) => ORIGIN_LEN + sent * WAY_LEN,
        };
        self.ops_params_len() + others
    }

    /// Returns the offset among the parameters of the address of a group's cell; `None` if there is no group.
    pub fn cell_at(&self) -> Option<usize> {
        if self.end == End::Group {
            return Some(self.ops_params_len());
        }
        let step = self.set.as_ref()?;
        let group = step.written.iter().position(|slot| *slot == Slot::Group)?;
        let before = step.written[..group].iter().map(|slot| slot.len());
        Some(self.set_params_at() + step.slots_at() + before.sum::<usize>())
    }

    /// Returns the size of all parameters, in bytes.
    pub fn params_len(&self) -> usize {
        let set = self.set.as_ref().map_or(0, SetStep::params_len);
        self.set_params_at() + set
    }
}
