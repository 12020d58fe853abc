//! Buffers of frames, with space around them.

/// The length of the longest frame that fits into a burst: the longest IP packet after an Ethernet header and two tags.
/// Longer frames use the plain form.
pub const MAX_FRAME: usize = 65_535 + 22;

/// The length of the longest frame that is copied into a buffer of the burst. Longer ones get separate buffers.
pub(super) const MAX_SHORT: usize = 1920;

/// The space before a frame for pushed VLAN tags.
pub(super) const HEADROOM: usize = 64;

/// The number of bytes after a frame that may be read with it, since keys are read in words of 8 bytes.
pub(super) const READ_BEHIND: usize = 8;

/// The distance between buffers: not a power of two, so that the starts of frames are in different sets of the caches. The
/// longest short frame is followed by [`READ_BEHIND`] bytes.
const STRIDE: usize = 2112;
const _: () = assert!(STRIDE >= HEADROOM + MAX_SHORT + READ_BEHIND);

/// The length of the longest frame, including pushed tags, that may be copied into a buffer.
pub(crate) const MAX_COPIED: usize = STRIDE - HEADROOM - READ_BEHIND;

/// A buffer for one frame.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Buffer([u8; STRIDE]);

impl Buffer {
    pub fn new() -> Self {
        Self([0; STRIDE])
    }

    pub fn boxed() -> Box<Self> {
        Box::new(Self::new())
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    pub fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
