//! Stand-ins for TLS in a program built without it: types that have no values.

use crate::{Stream, TlsConfig};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// A certificate: see the feature `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {}

impl Certificate {
    /// Checks the holder's name: see the feature `tls`.
    pub fn is_called(&self, _: &str) -> bool {
        match *self {}
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// The files for TLS: see the feature `tls`.
#[derive(Clone, Debug)]
pub enum Tls {}

impl Tls {
    /// Fails: TLS is not built in.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: TlsConfig) -> Result<Self, TlsError> {
        Err(TlsError)
    }

    /// See the feature `tls`.
    pub fn refresh(&mut self, _: SystemTime) -> Vec<Notice> {
        match *self {}
    }
}

/// A notice about certificates: see the feature `tls`.
#[derive(Debug, thiserror::Error)]
pub enum Notice {}

impl Notice {
    /// Returns `true` if an operator has to act.
    pub fn is_warning(&self) -> bool {
        match *self {}
    }
}

/// The error that TLS is not built into this program.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program is built without TLS; expected the feature `tls` of the package `urtica` or `urtica-socket`"
)]
pub struct TlsError;

impl TlsError {
    /// Returns `true` for background noise of an open port.
    pub fn is_noise(&self) -> bool {
        false
    }

    /// Returns `true` if an operator must check the error.
    pub fn is_warning(&self) -> bool {
        false
    }
}

/// A TLS connection.
pub(crate) enum Session {}

impl Session {
    pub fn certificate(&self) -> Option<&Certificate> {
        match *self {}
    }

    pub fn read(&mut self, _: &OwnedFd, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn write(&mut self, _: &OwnedFd, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn flush(&mut self, _: &OwnedFd) -> io::Result<bool> {
        match *self {}
    }

    pub fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub fn has_input(&self) -> bool {
        match *self {}
    }

    pub fn close(&mut self, _: &OwnedFd) {
        match *self {}
    }
}

/// Handshakes in progress: see the feature `tls`.
pub enum Handshakes {}

/// A finished handshake: see the feature `tls`.
pub struct Ended {
    /// The peer's name.
    pub peer: String,
    /// The tag given to `connect`.
    pub tag: Option<usize>,
    /// The connection, or the error.
    pub outcome: Result<Stream, TlsError>,
}

impl Stream {
    /// See the feature `tls`.
    ///
    /// # Errors
    /// None.
    pub fn connect_tls(_: OwnedFd, tls: &Tls, _: Duration) -> Result<Self, TlsError> {
        match *tls {}
    }
}

impl Handshakes {
    /// Creates an empty set.
    ///
    /// # Errors
    /// None.
    pub fn new(tls: Tls) -> io::Result<Self> {
        match tls {}
    }

    /// See the feature `tls`.
    pub fn refresh(&mut self, _: SystemTime) -> Vec<Notice> {
        match *self {}
    }

    /// See the feature `tls`.
    pub fn accept(&mut self, _: OwnedFd, _: String, _: Instant) {
        match *self {}
    }

    /// See the feature `tls`.
    pub fn connect(&mut self, _: OwnedFd, _: String, _: usize, _: Instant) {
        match *self {}
    }

    /// See the feature `tls`.
    pub fn next_timeout(&self) -> Option<Instant> {
        match *self {}
    }

    /// See the feature `tls`.
    pub fn poll(&mut self, _: Instant) -> Vec<Ended> {
        match *self {}
    }
}

impl AsFd for Handshakes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
