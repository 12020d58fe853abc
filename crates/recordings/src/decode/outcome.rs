//! The validity of the input.

/// The result of reading an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Everything was valid.
    AllRead,
    /// Some input was invalid or missing, and was reported.
    SomeUnreadable,
}

impl Outcome {
    /// Combines the results of two inputs.
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::AllRead => other,
            Self::SomeUnreadable => self,
        }
    }
}
