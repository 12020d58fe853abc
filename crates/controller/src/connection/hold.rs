//! The part of a connection that outlives its program: see [`urtica_hold`].
//!
//! Input is peeked at, and stays in the socket's queue until it has been handled and the journal has the replies; then it is
//! discarded. So an incomplete message needs no storage of its own.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::io;
use std::sync::Arc;
use urtica_hold::{Id, Journal, Link, Note, discard};

/// How much is discarded per system call.
const DISCARD_BYTES: usize = 256 << 10;

/// A connection's journal, and its id at the holder.
pub(crate) struct Hold {
    journal: Journal,
    link: Arc<Link>,
    id: Id,
    /// Bytes that were peeked at but not handled; they are at the front of the socket's queue.
    left: usize,
    /// Bytes that were handled but not discarded; they precede those.
    handled: usize,
    /// Whether the last peek saw everything that was in the queue.
    is_drained: bool,
    /// How many bytes at the end of the output are not in the journal yet.
    unnoted: usize,
}

impl Hold {
    /// Gives a newly accepted connection to the holder.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn begin(link: &Arc<Link>, socket: BorrowedFd, peer: &str) -> io::Result<Self> {
        // Out-of-band data would be skipped, and not be counted.
        set_socket_oobinline(socket, true)?;
        let journal = Journal::create(socket)?;
        let id = link.keep_connection(peer.to_owned(), socket, &journal)?;
        Ok(Self::resume(journal, Arc::clone(link), id, 0))
    }

    /// Continues a connection of an earlier program. The journal lacks the last `unnoted` bytes of the output.
    pub fn resume(journal: Journal, link: Arc<Link>, id: Id, unnoted: usize) -> Self {
        Self {
            journal,
            link,
            id,
            left: 0,
            handled: 0,
            is_drained: false,
            unnoted,
        }
    }

    /// Peeks at the socket's queue. Returns the number of bytes seen.
    pub fn look(socket: BorrowedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        recv(socket, buffer, RecvFlags::PEEK).map(|(count, _)| count)
    }

    /// How many of the bytes that the next peek returns were seen before.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Starts to handle `count` peeked bytes; `is_drained` if they were all that was in the queue.
    pub fn begin_input(&mut self, count: usize, is_drained: bool) {
        self.left = count;
        self.is_drained = is_drained;
    }

    /// All but so many of the peeked bytes are handled.
    pub fn note_left(&mut self, left: usize) {
        self.handled += self.left.saturating_sub(left);
        self.left = left;
    }

    /// Whether a message is incomplete, so that there is nothing to do until more arrives.
    pub fn awaits_rest(&self) -> bool {
        self.is_drained && self.left > 0
    }

    /// So many bytes were added to the output.
    pub fn note_added(&mut self, count: usize) {
        self.unnoted += count;
    }

    /// Stores the switch's features reply.
    pub fn note_features(&mut self, frame: &[u8]) -> Result<(), Errno> {
        self.journal.set_record(frame)
    }

    /// Writes the output that the journal lacks.
    pub fn note_output(&mut self, output: &[u8], word: u64) -> Result<(), Errno> {
        let (unsent, output) = output.split_at(output.len() - self.unnoted);
        self.unnoted = 0;
        self.journal.note(Note {
            input: 0,
            unsent,
            output,
            word,
        })
    }

    /// Commits what was handled: `replies`, which follow the output, are noted, then the handled input is discarded.
    pub fn commit(
        &mut self,
        socket: BorrowedFd,
        output: &[u8],
        replies: &[u8],
        word: u64,
        room: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        if self.unnoted > 0 {
            self.note_output(output, word)?;
        }
        let input = std::mem::take(&mut self.handled);
        self.journal.note(Note {
            input,
            unsent: output,
            output: replies,
            word,
        })?;
        room.resize(DISCARD_BYTES, 0);
        discard(socket, input, room)
    }

    /// The connection ends. The holder's copy of the socket does not keep it open.
    pub fn end(self, socket: BorrowedFd) {
        // Fails only if the peer has closed it already.
        let _ = shutdown(socket, Shutdown::Both);
        self.link.forget(self.id);
    }
}
