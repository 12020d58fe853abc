//! Keys: masked words of a frame.
//!
//! A match is compiled to the headers that it requires, and masked words of 8 bytes.

use super::kinds::{Depth, Kinds};

/// The maximum number of words in a key: IPv6 addresses, ports and more. Entries that need more are not compiled.
pub(crate) const MAX_WORDS: usize = 8;

/// The base of a word's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Base {
    /// The [`Frame`](super::frame::Frame) itself, for pipeline fields.
    Frame,
    /// `Frame::data`.
    Data,
    /// `Frame::network`.
    Network,
    /// `Frame::transport`.
    Transport,
}

/// Eight bytes of a frame under a mask, in memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    pub base: Base,
    /// The offset, which may be negative: the Ethernet type is before [`Base::Network`].
    pub at: i16,
    pub mask: u64,
}

impl Word {
    /// A word that is equal in all frames, for entries that only require headers, since a key has at least one word.
    pub const NOTHING: Self = Self {
        base: Base::Frame,
        at: 0,
        mask: 0,
    };
}

/// The mask that entries with equal bits share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct KeyMask {
    /// The headers that a frame must have.
    pub require: Kinds,
    /// The words to compare.
    pub words: Vec<Word>,
    /// The depth to which frames must be parsed for the words.
    pub depth: Depth,
}

impl KeyMask {
    /// Returns `true` if all frames match.
    pub fn is_everything(&self) -> bool {
        self.require.is_empty() && self.words.is_empty()
    }
}
