//! What stands for TLS in a program that is built without it: types that have no values.

use crate::{Stream, TlsConfig};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// A certificate: see the feature `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {}

impl Certificate {
    /// Whether the holder is called so.
    pub fn is_called(&self, _: &str) -> bool {
        match *self {}
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// What TLS needs: see the feature `tls`.
#[derive(Clone, Debug)]
pub enum Tls {}

impl Tls {
    /// There is none.
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

/// What there is to tell about certificates: see the feature `tls`.
#[derive(Debug, thiserror::Error)]
pub enum Notice {}

impl Notice {
    /// Whether an operator has something to do.
    pub fn is_warning(&self) -> bool {
        match *self {}
    }
}

/// TLS cannot be spoken, for it is not in this program.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program is built without TLS; expected the feature `tls` of the package `urtica` or `urtica-socket`"
)]
pub struct TlsError;

impl TlsError {
    /// Whether this is the background noise of an open port.
    pub fn is_noise(&self) -> bool {
        false
    }

    /// Whether somebody has to look at what it tells.
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

/// Connections whose handshake is under way: see the feature `tls`.
pub enum Handshakes {}

/// A handshake that is over: see the feature `tls`.
pub struct Ended {
    /// The peer's name.
    pub peer: String,
    /// What the handshake was begun with.
    pub tag: Option<usize>,
    /// The connection, or why there is none.
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
    /// With what TLS needs.
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
