//! Frames that go from port to port in the memory that they came in, without a copy.
//!
//! **What.** A back end that shares memory with the kernel hands over a [`LentFrame`] instead of bytes. It is processed where it
//! is, and then goes to a port that shares the same memory ([`PortIo::send_lent`](super::PortIo::send_lent)), or back to where
//! it came from ([`PortIo::take_back`](super::PortIo::take_back)).
//!
//! **Safety.** There is one [`LentFrame`] for a piece of memory, and who has it, has that memory to himself. The memory is there
//! as long as a port that shares it.

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What a port has received.
#[derive(Debug)]
pub enum Received<'a> {
    /// A frame to copy.
    Bytes(&'a [u8]),
    /// A frame to pass on or give back.
    Lent(LentFrame),
}

/// A frame in memory that ports share. One that is neither sent nor given back keeps its memory from its port for good.
#[derive(Debug)]
pub struct LentFrame {
    memory: MemoryId,
    /// Where the room for it begins, and how long that is.
    room: NonNull<u8>,
    room_bytes: usize,
    /// Where the frame is in it.
    start: usize,
    len: usize,
}

/// Tells memories that ports share apart: no two have the same in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryId(NonZeroU64);

// SAFETY: it has its memory to itself, which belongs to no thread.
unsafe impl Send for LentFrame {}

impl MemoryId {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NonZeroU64::new(NEXT.fetch_add(1, Relaxed));
        Self(number.expect("nobody counts to 2^64"))
    }
}

impl LentFrame {
    /// The frame at `start` in this room.
    ///
    /// # Panics
    /// Where it does not end in the room.
    pub(super) fn new(memory: MemoryId, room: NonNull<[u8]>, start: usize, len: usize) -> Self {
        assert!(
            start <= room.len() && len <= room.len() - start,
            "a frame is in its room"
        );
        Self {
            memory,
            room: room.cast(),
            room_bytes: room.len(),
            start,
            len,
        }
    }

    /// Its length in bytes.
    #[allow(clippy::len_without_is_empty)] // There is no port that receives nothing.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The memory that it is in.
    pub(super) fn memory(&self) -> MemoryId {
        self.memory
    }

    /// All the memory that belongs to it.
    pub(crate) fn room(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.room, self.room_bytes)
    }

    /// Where it begins in its room.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Its bytes.
    ///
    /// # Safety
    /// A port that shares its memory exists, and nothing else accesses the memory while the bytes are used.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: within the room, as was checked; the caller promises the rest.
        unsafe { std::slice::from_raw_parts(self.room.as_ptr().add(self.start), self.len) }
    }

    /// Notes where the frame is since it was processed.
    ///
    /// # Panics
    /// Where these bytes are not in its room.
    pub(crate) fn set_bytes(&mut self, bytes: *const [u8]) {
        let start = bytes.addr().wrapping_sub(self.room.addr().get());
        *self = Self::new(self.memory, self.room(), start, bytes.len());
    }

    /// Makes it at least so long, by zeros.
    ///
    /// # Panics
    /// Where there is no room.
    ///
    /// # Safety
    /// As for [`LentFrame::bytes`].
    pub(crate) unsafe fn pad(&mut self, len: usize) {
        let Some(missing) = len.checked_sub(self.len) else {
            return;
        };
        assert!(
            missing <= self.room_bytes - self.start - self.len,
            "frames are padded in their rooms"
        );
        // SAFETY: within the room, as just asserted; the caller promises the rest.
        unsafe {
            let end = self.room.as_ptr().add(self.start + self.len);
            end.write_bytes(0, missing);
        }
        self.len = len;
    }
}

impl Received<'_> {
    /// The frame's length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Lent(frame) => frame.len(),
        }
    }

    /// Whether there is nothing of it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(room: &mut [u8], start: usize, len: usize) -> LentFrame {
        LentFrame::new(MemoryId::new(), NonNull::from(room), start, len)
    }

    #[test]
    fn a_frame_moves_and_grows_in_its_room() {
        let mut room = [7; 100];
        let mut frame = lent(&mut room, 30, 20);
        let begins = frame.room.as_ptr();
        frame.set_bytes(std::ptr::slice_from_raw_parts(begins.wrapping_add(26), 24));
        assert_eq!((frame.start(), frame.len()), (26, 24));
        // SAFETY: the room is there, and nobody else uses it.
        let padded = unsafe {
            frame.pad(60);
            frame.pad(3);
            frame.bytes()
        };
        assert_eq!(padded[..24], [7; 24]);
        assert_eq!(padded[24..], [0; 36]);
    }

    #[test]
    #[should_panic = "in its room"]
    fn no_frame_is_beyond_its_room() {
        let mut room = [0; 100];
        let mut frame = lent(&mut room, 0, 60);
        let begins = frame.room.as_ptr();
        frame.set_bytes(std::ptr::slice_from_raw_parts(begins.wrapping_sub(4), 64));
    }

    #[test]
    fn memories_are_told_apart() {
        assert_ne!(MemoryId::new(), MemoryId::new());
    }
}
