//! Buffers of frames, with space around them.

/// The longest frame that fits into a burst: the longest packet of IP behind an Ethernet header and two tags. Longer ones go
/// the plain way.
pub const MAX_FRAME: usize = 65_535 + 22;

/// The longest frame that is copied into a buffer of its place in the burst; longer ones get buffers when they come.
pub(super) const MAX_SHORT: usize = 1920;

/// Room before a frame for VLAN tags that are pushed.
pub(super) const HEADROOM: usize = 64;

/// Bytes behind a frame that are read with it, since keys are read in words of 8.
pub(super) const READ_BEHIND: usize = 8;

/// Bytes from one buffer to the next: not a power of two, so that the beginnings of frames do not all fall into the same
/// sets of the caches. Behind the longest short frame there are [`READ_BEHIND`].
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
