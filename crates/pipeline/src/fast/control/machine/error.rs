//! Why there is no machine code.

use iced_x86::IcedError;
use std::io;

/// The reason why code could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// The maximum of code is reached.
    #[error("machine code has reached its limit of {limit_bytes} bytes")]
    NoRoom {
        /// The maximum bytes of all code.
        limit_bytes: usize,
    },
    /// The system gives no memory that code can run in.
    #[error("the system refused executable memory: {0}")]
    Refused(io::Error),
    /// Something that no table has.
    #[error("cannot generate machine code for {0}")]
    Unsupported(&'static str),
    /// An instruction that does not exist; a mistake of ours.
    #[error("cannot encode machine code: {0}")]
    Encode(#[from] IcedError),
}
