//! Whether all of an input made sense.

/// What came of reading an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it made sense.
    AllRead,
    /// Some of it did not, or was missing, and was told.
    SomeUnreadable,
}

impl Outcome {
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::AllRead => other,
            Self::SomeUnreadable => self,
        }
    }
}
