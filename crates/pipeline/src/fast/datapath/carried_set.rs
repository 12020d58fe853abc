//! Execution of a frame's action set (1.3.5 section 5.10).

use super::action_set::{FrameSet, Slot};
use super::frame::Frame;
use super::group::GroupCell;
use super::operations::carry_out;

impl FrameSet {
    /// Returns the cell of its group, if it has one.
    pub fn group(&self) -> Option<*const GroupCell> {
        let address = u64::from_ne_bytes(self.read(Slot::Group)) as usize;
        let cell = std::ptr::with_exposed_provenance(address);
        self.has(Slot::Group).then_some(cell)
    }

    /// Executes all actions except the output and the group.
    ///
    /// # Safety
    /// The frame is parsed as deeply as the slots require, and has the space and the TTL that they need.
    pub unsafe fn change(&self, frame: &mut Frame) {
        for slot in Slot::ALL.into_iter().filter(|slot| self.has(*slot)) {
            let Some((kinds, op)) = self.op(slot) else {
                continue;
            };
            if frame.kinds.contains(kinds) {
                // SAFETY: as this function requires; the frame has the headers for which the operation was made.
                unsafe { carry_out(frame, op, self.params_of(slot).as_ptr()) };
            }
        }
    }
}
