//! Buffers of frames, with space around them.

/// The longest frame that fits into a burst: the longest packet of IP after an Ethernet header and two tags. Longer
/// ones use the plain form.
pub const MAX_FRAME: usize = 65_535 + 22;

/// The longest frame that is copied into a buffer of the burst; longer ones get separate buffers.
pub(super) const MAX_SHORT: usize = 1920;

/// Space before a frame for VLAN tags that are pushed.
pub(super) const HEADROOM: usize = 64;

/// Bytes behind a frame that are read with it, since keys are read in words of 8.
pub(super) const READ_BEHIND: usize = 8;

/// Bytes from one buffer to the next: not a power of two, so that the starts of frames are in different sets of the
/// caches. The longest short frame is followed by [`READ_BEHIND`].
const STRIDE: usize = 2112;
const _: () = assert!(STRIDE >= HEADROOM + MAX_SHORT + READ_BEHIND);

/// The longest frame, tags that were pushed included, that may be copied into a buffer.
pub(crate) const MAX_COPIED: usize = STRIDE - HEADROOM - READ_BEHIND;

/// Bytes for one frame.
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
