//! What a connection has that outlives its program: see [`urtica_hold`].
//!
//! Input stays in the socket's queue until it is handled: it is looked at, and discarded once the journal has the replies. So what
//! came of a message that is not whole needs no place of its own.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::io;
use std::sync::Arc;
use urtica_hold::{Id, Journal, Link, Note, discard};

/// How much is discarded at once.
const DISCARD_BYTES: usize = 256 << 10;

/// A connection's journal, and its name at the holder.
pub(crate) struct Hold {
    journal: Journal,
    link: Arc<Link>,
    id: Id,
    /// Bytes that were looked at and not handled; they are at the front of the socket's queue.
    left: usize,
    /// Bytes that were handled and not discarded; they are before those.
    handled: usize,
    /// Whether the last look saw all that there was.
    is_drained: bool,
    /// How many bytes at the end of the output the journal does not have yet.
    unnoted: usize,
}

impl Hold {
    /// Has the holder keep a connection that was just accepted.
    ///
    /// # Errors
    /// Where it cannot be kept.
    pub fn begin(link: &Arc<Link>, socket: BorrowedFd, peer: &str) -> io::Result<Self> {
        // What is sent out of band would be skipped, and not be counted.
        set_socket_oobinline(socket, true)?;
        let journal = Journal::create(socket)?;
        let id = link.keep_connection(peer.to_owned(), socket, &journal)?;
        Ok(Self::resume(journal, Arc::clone(link), id, 0))
    }

    /// Goes on with a connection of an earlier program. The journal does not have the last `unnoted` bytes of the output.
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

    /// Looks at what is in the socket's queue. Returns how many bytes that is.
    pub fn look(socket: BorrowedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        recv(socket, buffer, RecvFlags::PEEK).map(|(count, _)| count)
    }

    /// How many of the bytes that a look brings were seen before.
    pub fn left(&self) -> usize {
        self.left
    }

    /// What was looked at is handled from here on: so many bytes, which were all that there was where `is_drained`.
    pub fn begin_input(&mut self, count: usize, is_drained: bool) {
        self.left = count;
        self.is_drained = is_drained;
    }

    /// All but so many bytes of what was looked at are handled.
    pub fn note_left(&mut self, left: usize) {
        self.handled += self.left.saturating_sub(left);
        self.left = left;
    }

    /// Whether the rest of a message is missing and has not come, so that there is nothing to do until more comes.
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

    /// Writes to the journal what it does not have of the output.
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

    /// What was handled counts as handled from now on, and `replies` as owed, which come after the output.
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
        // Fails only where the peer was faster.
        let _ = shutdown(socket, Shutdown::Both);
        self.link.forget(self.id);
    }
}
