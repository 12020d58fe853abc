//! Substitutes for the program and its maps if they were not built; they are never instantiated.

use super::queue::Untold;
use crate::maps::Entries;
use crate::pool::Maker;
use std::convert::Infallible;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A type without values.
pub(crate) struct Programs(Infallible);

impl Programs {
    /// Fails, since the program was not built.
    pub fn load() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn untold(&self, _rings: usize) -> io::Result<Untold> {
        match self.0 {}
    }

    pub fn new_ring(&self, _number: u32, _bytes: u32) -> io::Result<OwnedFd> {
        match self.0 {}
    }

    pub fn forget_ring(&self, _number: u32) {
        match self.0 {}
    }

    pub fn sessions(&self) -> io::Result<(Entries, Maker)> {
        match self.0 {}
    }

    pub fn attach(&self, _slot: u32, _cookie: u64, _socket: BorrowedFd) -> io::Result<()> {
        match self.0 {}
    }

    pub fn forget_session(&self, _slot: u32, _cookie: u64) {
        match self.0 {}
    }
}
