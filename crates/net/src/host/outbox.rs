//! The send queue of hosts.

use crate::frame::{Frame, Spare, Tag, seal};

/// Frames that a host sends, in order, each with its own tag.
#[derive(Default)]
pub(crate) struct Outbox {
    frames: Vec<Frame>,
    /// Buffers to write frames into.
    pub spare: Spare,
    tags: u64,
}

impl Outbox {
    /// Sends the frame that `write` appends to an empty buffer.
    pub fn send(&mut self, write: impl FnOnce(&mut Frame)) {
        let mut frame = self.spare.take();
        write(&mut frame);
        seal(&mut frame, Tag(self.tags));
        self.tags += 1;
        self.frames.push(frame);
    }

    /// Removes and returns the sent frames.
    pub fn take(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }

    /// Returns `true` if nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
