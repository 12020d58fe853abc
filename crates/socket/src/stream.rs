//! A connection's bytes, whether or not TLS is spoken on it.

use crate::tls::{Certificate, Session};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{SendFlags, send};
use std::io;

/// A connected socket, and the TLS that is spoken on it, if any.
///
/// **Cost.** Without TLS, a comparison for each system call.
pub struct Stream {
    socket: OwnedFd,
    tls: Option<Box<Session>>,
}

/// Without TLS.
impl From<OwnedFd> for Stream {
    fn from(socket: OwnedFd) -> Self {
        Self { socket, tls: None }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Stream {
    #[cfg(feature = "tls")]
    pub(crate) fn with_tls(socket: OwnedFd, session: Session) -> Self {
        Self {
            socket,
            tls: Some(Box::new(session)),
        }
    }

    /// The socket, where what it carries is what the peers say: under TLS it is not.
    pub fn plain_socket(&self) -> Option<BorrowedFd<'_>> {
        match self.tls {
            None => Some(self.socket.as_fd()),
            Some(_) => None,
        }
    }

    /// The certificate by which the peer has proved who it is; `None` without TLS.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.tls.as_ref()?.certificate()
    }

    /// Reads once; returns how many bytes came. 0 means that the peer has closed the connection. All that has come is
    /// returned, so that the socket says when there is more. Under TLS, `buffer` should be of 64 KiB or more.
    ///
    /// # Errors
    /// Those of `read(2)`; [`io::ErrorKind::WouldBlock`] also where what came is not a whole record. Where TLS was violated or
    /// the peer refuses us, the error is a sentence.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => Ok(rustix::io::read(&self.socket, buffer)?),
            Some(tls) => tls.read(&self.socket, buffer),
        }
    }

    /// Sends as many bytes off the front as there is room for; returns how many. What it takes under TLS is on its way, but may
    /// not have left: see [`Stream::has_unsent`].
    ///
    /// # Errors
    /// Those of `send(2)`, [`io::ErrorKind::WouldBlock`] among them.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => Ok(send(&self.socket, bytes, SendFlags::NOSIGNAL)?),
            Some(tls) => tls.write(&self.socket, bytes),
        }
    }

    /// Sends what [`Stream::write`] took and the socket did not; returns whether it took some now.
    ///
    /// # Errors
    /// Those of `send(2)` but [`io::ErrorKind::WouldBlock`].
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(false),
            Some(tls) => tls.flush(&self.socket),
        }
    }

    /// Whether there are bytes that [`Stream::write`] took and the socket did not: then [`Stream::flush`] is to be called when the
    /// socket has room.
    pub fn has_unsent(&self) -> bool {
        match &self.tls {
            None => false,
            Some(tls) => tls.has_unsent(),
        }
    }

    /// Whether there is something to read that the socket does not tell of: what came together with the end of the handshake.
    pub fn has_input(&self) -> bool {
        match &self.tls {
            None => false,
            Some(tls) => tls.has_input(),
        }
    }
}

/// Tells the peer that no more comes, where that can be told.
impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&self.socket);
        }
    }
}

/// Whether bytes are the beginning of what a TLS peer says first, or answers to what is no TLS: a handshake or an alert.
pub fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 3, ..])
}
