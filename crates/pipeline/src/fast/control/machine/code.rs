//! Finished machine code.

use super::error::CodeError;
use super::listing::{self, Names};
use super::memory::{Executable, Room};
use std::sync::Arc;

/// Executable code, whose entry point is its first byte, and which is freed on drop.
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

    /// Returns its address, for [`Body::code`](crate::fast::datapath::table::Body::code) or
    /// [`FlowRecord::code`](crate::fast::datapath::table::FlowRecord::code).
    pub fn address(&self) -> u64 {
        self.bytes().as_ptr().addr() as u64
    }

    /// Returns the machine code.
    pub fn bytes(&self) -> &[u8] {
        self.executable.bytes()
    }

    /// Returns its instructions, one per line, without absolute addresses: locations in the code and in structures have names,
    /// and flow records are numbered.
    pub fn listing(&self) -> String {
        listing::of(self.bytes(), &self.names)
    }
}
