//! What a table compares: some words of a frame under masks.
//!
//! A match becomes the headers that a frame must have, and words of 8 bytes, each read from one place and masked.

use super::kinds::{Depth, Kinds};

/// How many words a key has at most: IPv6 addresses, ports and more. Entries that look at more are not compiled.
pub(crate) const MAX_WORDS: usize = 8;

/// What offsets are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Base {
    /// The [`Frame`](super::frame::Frame) itself: what the pipeline knows beyond the bytes.
    Frame,
    /// `Frame::data`.
    Data,
    /// `Frame::network`.
    Network,
    /// `Frame::transport`.
    Transport,
}

/// 8 bytes of a frame, of which a mask tells those that matter. The mask is as the bytes lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    pub base: Base,
    /// May be negative: the Ethernet type is before [`Base::Network`].
    pub at: i16,
    pub mask: u64,
}

impl Word {
    /// A word that is the same in all frames, for entries that ask for nothing but headers: a key has one at least.
    pub const NOTHING: Self = Self {
        base: Base::Frame,
        at: 0,
        mask: 0,
    };
}

/// What entries have in common that look at the same bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct KeyMask {
    /// The headers that a frame must have.
    pub require: Kinds,
    /// What is compared besides.
    pub words: Vec<Word>,
    /// How deep frames are to be parsed for that.
    pub depth: Depth,
}

impl KeyMask {
    /// Whether all frames match.
    pub fn is_everything(&self) -> bool {
        self.require.is_empty() && self.words.is_empty()
    }
}
