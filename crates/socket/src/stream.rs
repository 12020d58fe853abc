//! A connection's byte stream, with or without TLS.

use crate::tls::{Certificate, Session};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{SendFlags, send};
use std::io;

/// A connected socket, with its TLS session, if any.
///
/// **Cost.** Without TLS, one comparison per system call.
pub struct Stream {
    socket: OwnedFd,
    tls: Option<Box<Session>>,
}

/// Creates a stream without TLS.
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

    /// Returns the socket if it carries plaintext; `None` with TLS.
    pub fn plain_socket(&self) -> Option<BorrowedFd<'_>> {
        match self.tls {
            None => Some(self.socket.as_fd()),
            Some(_) => None,
        }
    }

    /// Returns the certificate by which the peer has authenticated; `None` without TLS.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.tls.as_ref()?.certificate()
    }

    /// Reads once; returns the number of bytes read. 0 means that the peer has closed the connection. All received bytes are
    /// returned, so the socket becomes readable when more arrive. With TLS, `buffer` should have 64 KiB or more.
    ///
    /// # Errors
    /// The errors of `read(2)`; [`io::ErrorKind::WouldBlock`] also if only a part of a record has arrived. If the peer
    /// violates TLS or refuses us, the error's text is a message for the operator.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => Ok(rustix::io::read(&self.socket, buffer)?),
            Some(tls) => tls.read(&self.socket, buffer),
        }
    }

    /// Sends as many of `bytes`, from the front, as the socket accepts; returns their number. With TLS, some accepted bytes may
    /// not be sent yet: see [`Stream::has_unsent`].
    ///
    /// # Errors
    /// The errors of `send(2)`, including [`io::ErrorKind::WouldBlock`].
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => Ok(send(&self.socket, bytes, SendFlags::NOSIGNAL)?),
            Some(tls) => tls.write(&self.socket, bytes),
        }
    }

    /// Sends bytes that [`Stream::write`] accepted and the socket did not; returns `true` if the socket now accepted some.
    ///
    /// # Errors
    /// The errors of `send(2)` except [`io::ErrorKind::WouldBlock`].
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(false),
            Some(tls) => tls.flush(&self.socket),
        }
    }

    /// Returns `true` if some bytes that [`Stream::write`] accepted have not been sent yet. Call [`Stream::flush`] when the
    /// socket is writable.
    pub fn has_unsent(&self) -> bool {
        match &self.tls {
            None => false,
            Some(tls) => tls.has_unsent(),
        }
    }

    /// Returns `true` if there is input that the socket does not report: data that arrived with the end of the handshake.
    pub fn has_input(&self) -> bool {
        match &self.tls {
            None => false,
            Some(tls) => tls.has_input(),
        }
    }
}

/// Sends the peer a TLS close notification, if there is a session.
impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&self.socket);
        }
    }
}

/// Returns `true` if the bytes start a TLS record that a peer sends first, or in reply to another protocol: a handshake or an
/// alert.
pub fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 3, ..])
}
