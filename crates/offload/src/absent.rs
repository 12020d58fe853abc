//! What stands in for the programs and maps where they were not built: there is never one.

use crate::kernel::{Application, Way};
use crate::session::Memory;
use crate::waker::Waker;
use std::convert::Infallible;
use std::io;
use std::os::fd::BorrowedFd;

/// Nothing.
pub(crate) struct Loaded(Infallible);

impl Loaded {
    /// There is nothing to load.
    pub fn load(_application: Application) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn attach(&self, _slot: u32, _way: &Way) -> io::Result<()> {
        match self.0 {}
    }

    pub fn step_in(&self, _slot: u32, _switch: BorrowedFd) -> io::Result<()> {
        match self.0 {}
    }

    pub fn step_aside(&self, _slot: u32) -> io::Result<()> {
        match self.0 {}
    }

    pub fn forget(&self, _slot: u32, _cookies: &[u64]) {
        match self.0 {}
    }

    pub fn new_session(&self, _slot: u32) -> io::Result<(Memory, Waker)> {
        match self.0 {}
    }
}
