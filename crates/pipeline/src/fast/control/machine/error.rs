//! Why there is no machine code.

use iced_x86::IcedError;
use std::io;

/// Why code could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// The maximum of code is reached.
    #[error("machine code takes all of the {limit_bytes} bytes that it may take")]
    NoRoom {
        /// The maximum bytes of all code.
        limit_bytes: usize,
    },
    /// The system gives no memory that code can run in.
    #[error("the system gives no memory that can be executed: {0}")]
    Refused(io::Error),
    /// Something that no table has.
    #[error("there is no machine code for {0}")]
    Unsupported(&'static str),
    /// An instruction that does not exist; a mistake of ours.
    #[error("machine code cannot be encoded: {0}")]
    Encode(#[from] IcedError),
}
