//! Substitutes for the programs and maps if they were not built; they are never instantiated.

use crate::application::Application;
use crate::maps::{Earlier, Maps};
use crate::pool::Maker;
use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;

/// A type without values.
pub(crate) struct Loaded(Infallible);

/// Identifies a build of the programs.
pub(crate) fn code(_application: Application) -> u64 {
    0
}

impl Loaded {
    /// Fails, since the programs were not built.
    pub fn load(_application: Application, _earlier: Option<Earlier>) -> io::Result<(Self, Maps)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fails, since the programs were not built.
    pub fn earlier(_application: Application, _earlier: &Earlier) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn tables(&self) -> io::Result<Vec<OwnedFd>> {
        match self.0 {}
    }

    pub fn application_bytes(&self) -> usize {
        match self.0 {}
    }

    pub fn maker(&self) -> Maker {
        match self.0 {}
    }
}
