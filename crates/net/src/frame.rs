//! Frames in flight: reusable buffers, and the tags by which invariants follow them.
//!
//! A host appends a *trailer* to each frame that it sends, in the place where Ethernet allows padding: four magic bytes, and
//! the frame's tag. Switches forward the trailer unchanged even if they rewrite the frame, copies of the frame keep it, and no
//! checksum covers it. Frames made by a controller have no trailer.

use std::fmt;
use urtica_wire::packet::ethernet::MIN_FRAME_LEN;

/// A frame in flight.
pub(crate) type Frame = Vec<u8>;

/// The magic bytes of a trailer.
const MARK: [u8; 4] = [0xf4, 0x0d, 0x75, 0x72];

/// The length of the trailer.
pub(crate) const TRAILER_LEN: usize = MARK.len() + size_of::<u64>();

/// Identifies a frame that a host sent, and all copies of it; unique within a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

impl Tag {
    /// Returns the tag of a frame, if it has one.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let (rest, tag) = frame.split_last_chunk()?;
        rest.ends_with(&MARK)
            .then(|| Self(u64::from_be_bytes(*tag)))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}", self.0)
    }
}

/// Appends the trailer to a frame, and pads the frame to Ethernet's minimum length.
pub(crate) fn seal(frame: &mut Frame, tag: Tag) {
    let length = frame.len().max(MIN_FRAME_LEN - TRAILER_LEN);
    frame.resize(length, 0);
    frame.extend_from_slice(&MARK);
    frame.extend_from_slice(&tag.0.to_be_bytes());
}

/// The maximum number of spare buffers: enough for a few floods of a large switch. Without a limit, each larger flood would
/// leave more of them.
const MOST_SPARE: usize = 4096;

/// A pool of frame buffers, up to a limit.
#[derive(Default)]
pub(crate) struct Spare(Vec<Frame>);

impl Spare {
    /// Returns an empty buffer.
    #[inline]
    pub fn take(&mut self) -> Frame {
        let mut frame = self.0.pop().unwrap_or_default();
        frame.clear();
        frame
    }

    /// Returns a buffer with these bytes.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) -> Frame {
        let mut frame = self.take();
        frame.extend_from_slice(bytes);
        frame
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        if self.0.len() < MOST_SPARE {
            self.0.push(frame);
        }
    }

    /// Moves buffers to `other` if it has fewer than `count`, or from it if it has more. Each switch has its own buffers, which
    /// run short or accumulate if the switch sends more or fewer frames than it receives.
    pub fn level(&mut self, other: &mut Self, count: usize) {
        if self.0.len() > count {
            let room = MOST_SPARE.saturating_sub(other.0.len());
            other.0.extend(self.0.drain(count..).take(room));
        } else {
            let lacking = count - self.0.len();
            let from = other.0.len().saturating_sub(lacking);
            self.0.extend(other.0.drain(from..));
        }
    }

    /// Returns all of these to the pool.
    pub fn append(&mut self, frames: &mut Vec<Frame>) {
        let room = MOST_SPARE.saturating_sub(self.0.len());
        self.0.extend(frames.drain(..).take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_tag_of_a_sealed_frame() {
        for length in [0, 14, 60, 1514] {
            let mut frame = vec![7; length];
            seal(&mut frame, Tag(0x0123_4567_89ab_cdef));
            assert_eq!(Tag::of(&frame), Some(Tag(0x0123_4567_89ab_cdef)));
            assert!(frame.len() >= MIN_FRAME_LEN);
        }
    }

    #[test]
    fn keeps_a_limited_number_of_buffers() {
        let (mut spare, mut other) = (Spare::default(), Spare::default());
        for _ in 0..3 {
            spare.append(&mut vec![Frame::new(); MOST_SPARE]);
            spare.put(Frame::new());
            spare.level(&mut other, 10);
        }
        assert_eq!((spare.0.len(), other.0.len()), (10, MOST_SPARE));
    }

    #[test]
    fn other_frames_have_none() {
        for frame in [&[][..], &[0; 8], &[0xff; 60], &MARK] {
            assert_eq!(Tag::of(frame), None);
        }
    }
}
