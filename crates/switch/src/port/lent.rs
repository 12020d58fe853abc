//! Frames that are forwarded between ports in the memory in which they were received, without a copy.
//!
//! **What.** A back end that shares memory with the kernel returns a [`LentFrame`] instead of bytes. The frame is processed in
//! place, and then sent by a port that shares the memory ([`PortIo::send_lent`](super::PortIo::send_lent)), or returned to
//! its port ([`PortIo::take_back`](super::PortIo::take_back)).
//!
//! **Safety.** Each piece of memory has one [`LentFrame`], whose owner has exclusive access. The memory exists as long as a
//! port that shares it.

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A received frame.
#[derive(Debug)]
pub enum Received<'a> {
    /// A frame to copy.
    Bytes(&'a [u8]),
    /// A frame to forward or return.
    Lent(LentFrame),
}

/// A frame in memory that ports share. A frame that is neither sent nor returned is lost to its port permanently.
#[derive(Debug)]
pub struct LentFrame {
    memory: MemoryId,
    /// The start and length of the frame's memory.
    room: NonNull<u8>,
    room_bytes: usize,
    /// The offset of the frame in its memory.
    start: usize,
    len: usize,
}

/// Identifies memory that ports share; unique in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryId(NonZeroU64);

// SAFETY: it has exclusive access to its memory, which belongs to no thread.
unsafe impl Send for LentFrame {}

impl MemoryId {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NonZeroU64::new(NEXT.fetch_add(1, Relaxed));
        Self(number.expect("nobody counts to 2^64"))
    }
}

impl LentFrame {
    /// Creates the frame at `start` in this memory.
    ///
    /// # Panics
    /// If the frame does not end within it.
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

    /// Returns the frame's length in bytes.
    #[allow(clippy::len_without_is_empty)] // Ports do not receive empty frames.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory that contains the frame.
    pub(super) fn memory(&self) -> MemoryId {
        self.memory
    }

    /// Returns all memory of the frame.
    pub(crate) fn room(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.room, self.room_bytes)
    }

    /// Returns the frame's offset in its memory.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Returns the frame's bytes.
    ///
    /// # Safety
    /// A port that shares its memory exists, and nothing else accesses the memory while the bytes are used.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: this is within the frame's memory, as was checked; the caller promises the rest.
        unsafe { std::slice::from_raw_parts(self.room.as_ptr().add(self.start), self.len) }
    }

    /// Notes the frame's bytes after processing.
    ///
    /// # Panics
    /// If these bytes are not in its memory.
    pub(crate) fn set_bytes(&mut self, bytes: *const [u8]) {
        let start = bytes.addr().wrapping_sub(self.room.addr().get());
        *self = Self::new(self.memory, self.room(), start, bytes.len());
    }

    /// Pads the frame with zeros to at least `len` bytes.
    ///
    /// # Panics
    /// If its memory has no space.
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
        // SAFETY: this is within the frame's memory, as just asserted; the caller promises the rest.
        unsafe {
            let end = self.room.as_ptr().add(self.start + self.len);
            end.write_bytes(0, missing);
        }
        self.len = len;
    }
}

impl Received<'_> {
    /// Returns the frame's length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Lent(frame) => frame.len(),
        }
    }

    /// Returns whether the frame is empty.
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
    fn a_frame_moves_and_grows_in_its_memory() {
        let mut room = [7; 100];
        let mut frame = lent(&mut room, 30, 20);
        let begins = frame.room.as_ptr();
        frame.set_bytes(std::ptr::slice_from_raw_parts(begins.wrapping_add(26), 24));
        assert_eq!((frame.start(), frame.len()), (26, 24));
        // SAFETY: the memory exists, and has no other use.
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
    fn frames_beyond_their_memory_are_refused() {
        let mut room = [0; 100];
        let mut frame = lent(&mut room, 0, 60);
        let begins = frame.room.as_ptr();
        frame.set_bytes(std::ptr::slice_from_raw_parts(begins.wrapping_sub(4), 64));
    }

    #[test]
    fn memory_ids_differ() {
        assert_ne!(MemoryId::new(), MemoryId::new());
    }
}
