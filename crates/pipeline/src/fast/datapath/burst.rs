//! Bursts of frames.

use super::buffer::{Buffer, HEADROOM, MAX_FRAME, MAX_SHORT, READ_BEHIND};
use super::frame::{DROP, Frame, PUNT};
use super::kinds::Kinds;
use super::sent::{AllSent, SentFrame};
use crate::ActionSet;
use std::ptr::NonNull;
use urtica_wire::PortNo;

/// The maximum number of frames in a burst.
pub const BURST: usize = 32;

/// Up to [`BURST`] frames and their bytes.
///
/// [`Burst::push`] and [`Burst::push_in_place`] add frames, [`Reader::process`](super::compiled::Reader::process) processes
/// them, [`Burst::iter`] returns the results, and [`Burst::clear`] removes the frames.
pub struct Burst {
    frames: Box<[Frame]>,
    len: usize,
    /// The start of each frame's buffer.
    floors: [*mut u8; BURST],
    /// The additional outputs of frames.
    sent: AllSent,
    /// The buffers to which `floors` point.
    _buffers: Box<[Buffer]>,
    /// Buffers for long frames, which are kept for later ones, and the number of used buffers.
    long_buffers: Vec<Vec<u8>>,
    long: usize,
}

/// The result of processing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it to this port, if a port with this number exists and may send.
    Output(PortNo),
    /// Drop it.
    Drop,
    /// Continue in the plain form, which supports the rest: see [`Pipeline::resume`](crate::Pipeline::resume).
    Punt,
}

/// A processed frame.
#[derive(Clone, Copy)]
pub struct Processed<'a> {
    frame: &'a Frame,
    sent: &'a AllSent,
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}

impl Burst {
    /// Creates an empty burst. Needs 66 KiB, and a buffer for each long frame that is copied into it.
    pub fn new() -> Self {
        let mut buffers = vec![Buffer::new(); BURST].into_boxed_slice();
        let frames = buffers
            .iter_mut()
            .map(|buffer| Frame::empty(buffer.bytes_mut()));
        let frames: Box<[Frame]> = frames.collect();
        Self {
            floors: std::array::from_fn(|at| frames[at].floor),
            frames,
            len: 0,
            sent: AllSent::default(),
            _buffers: buffers,
            long_buffers: Vec::new(),
            long: 0,
        }
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a frame by copying it. Returns `false` if there are already [`BURST`] frames, or the frame is longer than
    /// [`MAX_FRAME`] or shorter than an Ethernet header.
    #[inline]
    pub fn push(&mut self, in_port: PortNo, bytes: &[u8]) -> bool {
        if self.len == BURST || !(14..=MAX_SHORT).contains(&bytes.len()) {
            return self.push_long(in_port, bytes);
        }
        // SAFETY: the buffer has space for HEADROOM and MAX_SHORT bytes.
        unsafe { self.push_to(self.floors[self.len], in_port, bytes) };
        true
    }

    /// Adds a frame that is longer than [`MAX_SHORT`], and otherwise like [`Burst::push`].
    #[cold]
    fn push_long(&mut self, in_port: PortNo, bytes: &[u8]) -> bool {
        if self.len == BURST || !(MAX_SHORT..=MAX_FRAME).contains(&bytes.len()) {
            return false;
        }
        if self.long_buffers.len() == self.long {
            self.long_buffers.push(Vec::new());
        }
        let buffer = &mut self.long_buffers[self.long];
        let room = HEADROOM + bytes.len() + READ_BEHIND;
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let floor = buffer.as_mut_ptr();
        self.long += 1;
        // SAFETY: the buffer is long enough, and is not changed before the burst is cleared.
        unsafe { self.push_to(floor, in_port, bytes) };
        true
    }

    /// Copies a frame to a buffer, and adds it.
    ///
    /// # Safety
    /// At `floor` there are HEADROOM bytes, space for the frame, and [`READ_BEHIND`] bytes, which belong to no other frame.
    #[inline]
    unsafe fn push_to(&mut self, floor: *mut u8, in_port: PortNo, bytes: &[u8]) {
        let frame = &mut self.frames[self.len];
        frame.floor = floor;
        // SAFETY: as this function requires; `bytes` is not in the buffer, since references into the buffer cannot exist while
        // `self` is borrowed mutably.
        unsafe {
            frame.data = frame.floor.add(HEADROOM);
            frame
                .data
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        frame.len = bytes.len() as u32;
        frame.in_port = in_port.0;
        self.len += 1;
    }

    /// Adds a frame without copying it: the `len` bytes at `start` in `room`. Returns `false` in the cases of [`Burst::push`],
    /// and if `room` ends less than 8 bytes after the frame. Pushed tags use the space before it.
    ///
    /// # Panics
    /// If the frame does not end within `room`.
    ///
    /// # Safety
    /// Until the burst is cleared, `room` can be read and written, and is only accessed through this burst. Alternatively, it
    /// need not be valid after processing, if the frame's bytes are then not requested from the burst.
    #[inline]
    pub unsafe fn push_in_place(
        &mut self,
        in_port: PortNo,
        room: NonNull<[u8]>,
        start: usize,
        len: usize,
    ) -> bool {
        let behind = room.len().checked_sub(start + len);
        let behind = behind.expect("a frame ends in its room");
        if self.len == BURST || !(14..=MAX_FRAME).contains(&len) || behind < READ_BEHIND {
            return false;
        }
        let frame = &mut self.frames[self.len];
        frame.floor = room.cast().as_ptr();
        // SAFETY: this is within `room`, as checked.
        frame.data = unsafe { frame.floor.add(start) };
        frame.len = len as u32;
        frame.in_port = in_port.0;
        self.len += 1;
        true
    }

    /// Removes all frames.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.long = 0;
        self.sent.clear();
    }

    /// Returns the frames, in the order in which they were added.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Processed<'_>> {
        let sent = &self.sent;
        let frames = self.frames[..self.len].iter();
        frames.map(move |frame| Processed { frame, sent })
    }

    /// Returns the frames to process, and the list of additional outputs.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut [Frame], &mut AllSent) {
        (&mut self.frames[..self.len], &mut self.sent)
    }
}

// SAFETY: the frames' pointers point into buffers that the burst owns, or are set by each `process`.
unsafe impl Send for Burst {}

impl Processed<'_> {
    /// Returns the verdict.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        match self.frame.out_port {
            DROP => Verdict::Drop,
            PUNT => Verdict::Punt,
            port => Verdict::Output(PortNo(port)),
        }
    }

    /// Returns the bytes as they are now.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Returns the additional outputs, in order, which precede the verdict. Most frames have none.
    #[inline]
    pub fn sent(&self) -> impl ExactSizeIterator<Item = SentFrame<'_>> {
        self.sent.of(self.frame)
    }

    /// Returns `true` if it has additional outputs.
    #[inline]
    pub fn is_sent_besides(&self) -> bool {
        self.frame.sent.count > 0
    }

    /// Returns the input port.
    #[inline]
    pub fn in_port(&self) -> PortNo {
        PortNo(self.frame.in_port)
    }

    /// Returns the metadata that the tables have written so far.
    pub(crate) fn metadata(&self) -> u64 {
        self.frame.metadata
    }

    /// Returns the action set that the tables have written so far. A frame that was left to the plain form before the first
    /// table may not have been parsed, and then has none.
    pub(crate) fn action_set(&self) -> ActionSet {
        let has_set = self.table_id() > 0 && self.frame.kinds.contains(Kinds::ACTION_SET);
        match has_set {
            true => self.frame.action_set.to_action_set(),
            false => ActionSet::default(),
        }
    }

    /// Returns the queue that the tables have chosen so far, or 0. As for [`Processed::action_set`], the frame may not have been
    /// parsed.
    pub(crate) fn queue_id(&self) -> u32 {
        match self.table_id() {
            0 => 0,
            _ => self.frame.carried_queue().into(),
        }
    }

    /// Returns the table at which the plain form starts.
    pub(crate) fn table_id(&self) -> u8 {
        self.frame.table_id as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_copied_or_stay_in_place() {
        let mut burst = Burst::new();
        let mut room = [3; 200];
        let begins = NonNull::from(&mut room[..]);
        // SAFETY: the memory has no other use while frames are in it.
        unsafe {
            assert!(burst.push_in_place(PortNo(1), begins, 100, 60));
            assert!(
                !burst.push_in_place(PortNo(1), begins, 133, 60),
                "no room behind"
            );
            assert!(
                !burst.push_in_place(PortNo(1), begins, 0, 13),
                "no Ethernet header"
            );
        }
        assert!(burst.push(PortNo(2), &[4; 70]));
        let frames: Vec<_> = burst.iter().map(|frame| frame.bytes().to_vec()).collect();
        assert_eq!(frames, [vec![3; 60], vec![4; 70]]);
        let in_place = burst.iter().next().map(|frame| frame.bytes().as_ptr());
        assert_eq!(in_place, Some(room[100..].as_ptr()));
        burst.clear();
        assert!(burst.push(PortNo(1), &[5; 80]), "in its own buffer again");
        assert_eq!(burst.iter().next().unwrap().bytes(), [5; 80]);
        assert_eq!(room, [3; 200]);
    }

    #[test]
    #[should_panic = "ends in its room"]
    fn frames_beyond_their_memory_are_refused() {
        let mut room = [0; 100];
        // SAFETY: the memory has no other use.
        unsafe { Burst::new().push_in_place(PortNo(1), NonNull::from(&mut room[..]), 90, 14) };
    }
}
