//! One switch's connection in a program with a ring.

use super::link::Link;
use super::record::RingSwitch;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use urtica_controller::ConnectionId;
use urtica_socket::EventFlags;

/// Maximum number of bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection. Its input arrives through the ring while the kernel reads it (`link`), and from the socket otherwise.
pub(crate) struct Peer {
    /// The connection's number in the ring. No other connection has or had it.
    pub number: u64,
    socket: OwnedFd,
    pub session: ConnectionId,
    /// The switch, once it is identified.
    pub joined: Option<RingSwitch>,
    /// The switch, once it is up.
    pub switch: Option<RingSwitch>,
    pub link: Option<Link>,
    /// Whether the kernel has rejected it, so that it is always read from its socket.
    pub is_refused: bool,
    /// Input that was received but not handled: the start of a message, or more if `has_kept`.
    pub input: Vec<u8>,
    pub has_kept: bool,
    /// Number of bytes of the message at the front of `input` that the session has seen already. The session sees them early
    /// because the peer may not be a switch.
    pub told: usize,
    /// Replies that have not been sent.
    pub output: Vec<u8>,
    /// Whether the socket has not accepted all replies. No message is handled until it has.
    pub is_stalled: bool,
    /// Whether it is in the list of connections with replies to flush.
    pub is_unflushed: bool,
    /// Whether it is in the list of connections to read.
    pub is_ready: bool,
    /// Whether the switch has closed its side.
    pub is_closing: bool,
    /// The events that the socket is watched for.
    pub watched: EventFlags,
}

/// The result of a read.
pub(crate) enum Read {
    /// Some bytes, or none for now. If `is_drained`, no more were available.
    Bytes { is_drained: bool },
    /// The end of the stream, or of the connection.
    End,
}

impl Peer {
    pub fn new(number: u64, socket: OwnedFd, session: ConnectionId) -> Self {
        Self {
            number,
            socket,
            session,
            joined: None,
            switch: None,
            link: None,
            is_refused: false,
            input: Vec::new(),
            has_kept: false,
            told: 0,
            output: Vec::new(),
            is_stalled: false,
            is_unflushed: false,
            is_ready: false,
            is_closing: false,
            watched: EventFlags::IN,
        }
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns whether its input arrives through the ring.
    pub fn is_read_by_kernel(&self) -> bool {
        self.link.as_ref().is_some_and(Link::is_read_by_kernel)
    }

    /// Returns whether the kernel has lost its socket: see [`Link::is_found_lost`].
    pub fn is_found_lost(&mut self) -> bool {
        let (link, socket) = (&mut self.link, self.socket.as_fd());
        link.as_mut().is_some_and(|link| link.is_found_lost(socket))
    }

    /// Returns whether messages from the ring can be handled now, without waiting behind others.
    pub fn takes_messages(&self) -> bool {
        !self.is_stalled && !self.has_kept
    }

    /// Returns the events to watch the socket for. The kernel also wakes readers for input that it has put into the ring.
    pub fn interest(&self) -> EventFlags {
        if self.is_stalled {
            EventFlags::OUT
        } else if self.is_read_by_kernel() {
            EventFlags::RDHUP
        } else {
            EventFlags::IN
        }
    }

    /// Moves the start of an earlier message to `to`, and appends received bytes.
    pub fn read(&mut self, to: &mut Vec<u8>) -> Read {
        if let Some(link) = &mut self.link {
            // If the switch has closed its side, the program may not have noticed yet that the kernel has passed input.
            link.take_back(&mut self.input);
        }
        to.append(&mut self.input);
        let before = to.len();
        to.resize(before + READ_BYTES, 0);
        let read = rustix::io::read(&self.socket, &mut to[before..]);
        to.truncate(before + read.unwrap_or(0));
        let count = match read {
            Ok(0) => return Read::End,
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return Read::End,
        };
        if let Some(link) = &mut self.link {
            link.note_read(count);
        }
        Read::Bytes {
            is_drained: count < READ_BYTES,
        }
    }

    /// Keeps messages until earlier ones have been handled.
    pub fn keep(&mut self, messages: &[u8]) {
        self.input.extend_from_slice(messages);
        self.has_kept |= !messages.is_empty();
    }

    /// Sends as many replies as the socket accepts.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn flush(&mut self) -> Result<(), Errno> {
        let mut sent = 0;
        let result = loop {
            if sent == self.output.len() {
                break Ok(());
            }
            match send(&self.socket, &self.output[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.output.drain(..sent);
        self.is_stalled = !self.output.is_empty();
        if let (true, Some(link)) = (self.is_stalled, &self.link) {
            link.request_back();
        }
        result
    }
}
