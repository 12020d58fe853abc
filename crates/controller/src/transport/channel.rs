//! The channel of a connection's bytes: a socket, or memory.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use std::io;
use urtica_socket::{Stream, is_try_again};

/// The output of a connection to its peer.
pub(crate) trait Channel {
    /// Sends as many bytes from the front as are accepted, and returns their number; 0 if the caller must wait.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends bytes that an earlier call accepted but kept; returns whether any were sent.
    fn flush(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Returns `true` if the channel holds bytes that it has not sent.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Returns `true` if the peer can still receive output.
    fn is_open(&self) -> bool {
        false
    }

    /// Returns the socket on which a kernel half can answer, if any.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Channel for Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.write(bytes) {
            Err(error) if is_try_again(&error) => Ok(0),
            sent => sent,
        }
    }

    fn flush(&mut self) -> io::Result<bool> {
        Stream::flush(self)
    }

    fn has_unsent(&self) -> bool {
        Stream::has_unsent(self)
    }

    fn is_open(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::empty())];
        // Poll always reports a failed connection, and one that both ends have closed.
        let polled = poll(&mut fds, Some(&Timespec::default()));
        polled.is_ok() && fds[0].revents().is_empty()
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.plain_socket()
    }
}
