//! TLS on one socket: decrypts input and encrypts output.
//!
//! **Invariants.** All received bytes are decrypted and returned before the socket is waited for again, except for an
//! incomplete record, so a socket without events has no input. Encrypted bytes are sent before more are encrypted, so the
//! session buffers no more than one call of [`Session::write`] accepts.

use super::bootstrap;
use super::config::Loaded;
use super::error::TlsError;
use super::verify::{ANYBODY, PeerVerifier};
use super::{Certificate, Tls};
use crate::is_try_again;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::IoSlice;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

/// The maximum number of bytes encrypted before they must be sent.
const WRITE_BYTES: usize = 256 << 10;

/// Space for a record whose first bytes arrived earlier: more than any record needs.
const RECORD_BYTES: usize = 20 << 10;

/// A TLS connection, without its socket.
pub(crate) struct Session {
    tls: Connection,
    verifier: Arc<PeerVerifier>,
    /// Whether the peer has sent anything.
    has_heard: bool,
    /// Whether some plaintext has not been read.
    has_input: bool,
}

impl Session {
    /// Creates the server side.
    pub fn server(tls: &Tls) -> Result<Self, TlsError> {
        Self::new(&tls.loaded, |loaded, verifier| {
            let config = loaded.server(verifier)?;
            ServerConnection::new(config).map(Connection::Server)
        })
    }

    /// Creates the client side.
    pub fn client(tls: &Tls) -> Result<Self, TlsError> {
        Self::new(&tls.loaded, |loaded, verifier| {
            let config = loaded.client(verifier)?;
            let name = ServerName::try_from(ANYBODY)
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            ClientConnection::new(config, name).map(Connection::Client)
        })
    }

    fn new(
        loaded: &Loaded,
        connect: impl FnOnce(&Loaded, Arc<PeerVerifier>) -> Result<Connection, rustls::Error>,
    ) -> Result<Self, TlsError> {
        let verifier = loaded.verifier();
        let mut tls = connect(loaded, verifier.clone())
            .map_err(|error| TlsError::Protocol(error.to_string()))?;
        tls.set_buffer_limit(None);
        Ok(Self {
            tls,
            verifier,
            has_heard: false,
            has_input: false,
        })
    }

    /// Returns the peer's certificate, once it is accepted.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.verifier.certificate()
    }

    /// Continues the handshake until the socket would block; returns `true` if it has finished.
    pub fn handshake(&mut self, socket: &OwnedFd) -> Result<bool, TlsError> {
        self.flush(socket)?;
        while self.tls.is_handshaking() {
            match self.tls.read_tls(&mut Wire(socket.as_fd())) {
                Ok(0) => {
                    return Err(TlsError::Closed {
                        spoke: self.has_heard,
                    });
                }
                Ok(_) => self.process(socket)?,
                Err(error) if is_try_again(&error) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Err(TlsError::Closed {
                        spoke: self.has_heard,
                    });
                }
                Err(error) => return Err(error.into()),
            }
            self.flush(socket)?;
        }
        let is_over = !self.tls.is_handshaking() && !self.has_unsent();
        match self.verifier.introduction() {
            Some((path, authority)) if is_over => Err(bootstrap::save(path, authority)),
            _ => Ok(is_over),
        }
    }

    /// Processes received records. After an error, sends the peer an alert if the socket accepts it.
    fn process(&mut self, socket: &OwnedFd) -> Result<(), TlsError> {
        let is_first = !std::mem::replace(&mut self.has_heard, true);
        match self.tls.process_new_packets() {
            Ok(state) => {
                self.has_input |= state.plaintext_bytes_to_read() > 0;
                Ok(())
            }
            Err(error) => {
                let _ = self.flush(socket);
                Err(match &error {
                    rustls::Error::InvalidMessage(_) if is_first => TlsError::NotTls,
                    _ => TlsError::explain(&error, &self.verifier),
                })
            }
        }
    }

    /// See [`Stream::read`](crate::Stream::read).
    pub fn read(&mut self, socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_input {
            let taken = self.take_plaintext(buffer)?;
            if taken > 0 {
                return Ok(taken);
            }
        }
        // Input is read into the buffer and decrypted to its front. Plaintext never overwrites unread input: it is shorter than
        // its record, and the space at the front is for bytes that arrived before.
        let room = RECORD_BYTES.min(buffer.len() / 2);
        let (received, _) = recv(socket, &mut buffer[room..], RecvFlags::empty())?;
        if received == 0 {
            return Ok(0);
        }
        let (mut at, mut plain) = (room, 0);
        while at < room + received {
            let mut rest = &buffer[at..room + received];
            let before = rest.len();
            self.tls.read_tls(&mut rest)?;
            at += before - rest.len();
            self.process(socket).map_err(to_io)?;
            if self.has_input {
                plain += self.take_plaintext(&mut buffer[plain..at])?;
            }
        }
        self.flush(socket)?;
        match plain {
            0 if self.is_closed() => Ok(0),
            0 => Err(ErrorKind::WouldBlock.into()),
            _ => Ok(plain),
        }
    }

    /// Returns `true` if the peer has sent a close notification.
    fn is_closed(&mut self) -> bool {
        matches!(self.tls.reader().read(&mut [0; 1]), Ok(0))
    }

    fn take_plaintext(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < buffer.len() {
            match self.tls.reader().read(&mut buffer[taken..]) {
                Ok(0) => break,
                Ok(count) => taken += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        // A full buffer may have left some; the next call will find out.
        self.has_input = taken == buffer.len();
        Ok(taken)
    }

    /// See [`Stream::write`](crate::Stream::write).
    pub fn write(&mut self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        self.flush(socket)?;
        if self.has_unsent() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = self
            .tls
            .writer()
            .write(&bytes[..bytes.len().min(WRITE_BYTES)])?;
        self.flush(socket)?;
        Ok(count)
    }

    /// See [`Stream::flush`](crate::Stream::flush).
    pub fn flush(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        let mut has_sent = false;
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Wire(socket.as_fd())) {
                Ok(_) => has_sent = true,
                Err(error) if is_try_again(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(has_sent)
    }

    /// See [`Stream::has_unsent`](crate::Stream::has_unsent).
    pub fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// See [`Stream::has_input`](crate::Stream::has_input).
    pub fn has_input(&self) -> bool {
        self.has_input
    }

    /// Sends a close notification, if the socket accepts it.
    pub fn close(&mut self, socket: &OwnedFd) {
        self.tls.send_close_notify();
        let _ = self.flush(socket);
    }
}

fn to_io(error: TlsError) -> io::Error {
    match error {
        TlsError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// The socket as `rustls` reads and writes it.
struct Wire<'s>(BorrowedFd<'s>);

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (count, _) = recv(self.0, buffer, RecvFlags::empty())?;
        Ok(count)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(sendmsg(self.0, parts, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
