//! The instructions of flow entries.

use crate::{Action, List};

/// An instruction of a flow entry (1.3.5 section 7.2.4).
///
/// 1.0 has none: an entry's action list is read and written as a single [`Instruction::ApplyActions`], and an empty list as
/// no instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction<'a> {
    /// Continues in a later table.
    GotoTable(u8),
    /// Changes the metadata bits in `mask`.
    WriteMetadata {
        /// The new values of the bits.
        metadata: u64,
        /// The bits to change.
        mask: u64,
    },
    /// Merges the actions into the action set.
    WriteActions(List<'a, Action<'a>>),
    /// Executes the actions immediately, in order.
    ApplyActions(List<'a, Action<'a>>),
    /// Empties the action set.
    ClearActions,
    /// Passes the packet through a meter.
    Meter(u32),
    /// An experimenter's instruction.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the experimenter id.
        data: &'a [u8],
    },
}

impl<'a> Instruction<'a> {
    /// Creates an instruction that applies these actions: a `Vec` of them, or a reference to an array or slice.
    #[inline]
    pub fn apply(actions: impl Into<List<'a, Action<'a>>>) -> Self {
        Self::ApplyActions(actions.into())
    }
}
