//! Why a transaction does not commit.

/// Why a transaction does not commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It called `retry`.
    Retry,
    /// A value that it has read was changed.
    Conflict,
    /// It made too many reads and writes.
    TooLong,
}
