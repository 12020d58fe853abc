//! Errors of code generation.

use iced_x86::IcedError;
use std::io;

/// An error of code generation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// All machine code together has reached its maximum size.
    #[error("machine code has reached its limit of {limit_bytes} bytes")]
    NoRoom {
        /// The maximum size of all code, in bytes.
        limit_bytes: usize,
    },
    /// The system refuses executable memory.
    #[error("the system refused executable memory: {0}")]
    Refused(io::Error),
    /// The template has an element that no table has.
    #[error("cannot generate machine code for {0}")]
    Unsupported(&'static str),
    /// An instruction that does not exist: a bug in the generator.
    #[error("cannot encode machine code: {0}")]
    Encode(#[from] IcedError),
}
