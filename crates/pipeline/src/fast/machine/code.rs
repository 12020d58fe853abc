//! Code that is finished, and why there is none.

use super::listing::{self, Names};
use super::memory::{Executable, Room};
use iced_x86::IcedError;
use std::io;
use std::sync::Arc;

/// Why code could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// All that code may take is taken.
    #[error("machine code takes all of the {limit_bytes} bytes that it may take")]
    NoRoom {
        /// What all code together may take.
        limit_bytes: usize,
    },
    /// The system gives no memory that code can run in.
    #[error("the system gives no memory that can be executed: {0}")]
    Refused(io::Error),
    /// A shape that no table has.
    #[error("there is no machine code for {0}")]
    Shape(&'static str),
    /// An instruction that does not exist; a mistake of ours.
    #[error("machine code cannot be encoded: {0}")]
    Encode(#[from] IcedError),
}

/// A piece of code, which runs from its first byte and goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Code {
    executable: Executable,
    names: Names,
}

impl Code {
    pub(super) fn new(bytes: &[u8], names: Names, room: &Arc<Room>) -> Result<Self, CodeError> {
        let executable = Executable::new(bytes, room)?;
        Ok(Self { executable, names })
    }

    /// Where it begins, for [`Body::code`](crate::fast::table::Body::code) or
    /// [`Cell::run`](crate::fast::table::Cell::run).
    pub fn address(&self) -> u64 {
        self.bytes().as_ptr().addr() as u64
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.executable.bytes()
    }

    /// Its instructions, one a line. No absolute address is in it: places in the code and in structures have names, and
    /// cells are numbered.
    pub fn listing(&self) -> String {
        listing::of(self.bytes(), &self.names)
    }
}
