//! Why a transaction does not end well.

/// Why a transaction does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It called `retry`.
    Retry,
    /// Something it has read was changed.
    Conflict,
    /// It made too many reads and writes.
    TooLong,
}
