//! The part of a connection that outlives its program, if a holder keeps it: see [`urtica_hold`].
//!
//! Input is peeked at. It stays in the socket's queue until it has been handled and the replies are in the journal; then it
//! is discarded. So an incomplete message needs no storage, except with a kernel half: then it is stored in memory that the
//! next program finds ([`HeldHalf`](crate::HeldHalf)), so that the queue is empty when it is handed over.

use crate::kernel_half::Keeper;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::io;
use std::sync::Arc;
use urtica_hold::{Id, Journal, Link, Note, Progress, Words, discard, widen_queue};

/// The number of bytes discarded per system call.
const DISCARD_BYTES: usize = 256 << 10;

/// The journal's mark of a connection that has a kernel half.
const HAS_HALF: u64 = 1;

/// The kernel half's progress and the incomplete message stored with it, as recorded in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The number of input bytes that it had answered.
    pub taken: u64,
    /// Identifies an incomplete message; 0 for none.
    pub word: u64,
}

impl Stored {
    fn words(self, word: u64) -> Words {
        [word, self.taken, self.word]
    }
}

/// A connection's journal, and its id at the holder.
pub(crate) struct Hold {
    journal: Journal,
    link: Arc<Link>,
    id: Id,
    /// The number of bytes at the front of the socket's queue that were peeked at but not handled.
    left: usize,
    /// The number of handled bytes that were not discarded; they precede the unhandled ones.
    handled: usize,
    /// The number of bytes at the end of the output that the journal lacks.
    unnoted: usize,
    /// The length of an incomplete message that precedes the queue, and is stored with the kernel half.
    fragment: usize,
    /// The current state of the kernel half, and the state before the input that is handled but not discarded.
    stored: Stored,
    stored_before: Stored,
}

impl Hold {
    /// Adds a newly accepted connection to the holder.
    ///
    /// # Errors
    /// If the holder cannot keep it.
    pub fn begin(link: &Arc<Link>, socket: BorrowedFd, peer: &str) -> io::Result<Self> {
        // Otherwise out-of-band data would be skipped, and not be counted.
        set_socket_oobinline(socket, true)?;
        widen_queue(socket)?;
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
            unnoted,
            fragment: 0,
            stored: Stored::default(),
            stored_before: Stored::default(),
        }
    }

    /// Returns `true` if the journal's connection has a kernel half.
    pub fn has_half(mark: u64) -> bool {
        mark == HAS_HALF
    }

    /// Returns the keeper, which stores the kernel half's state for the next program.
    pub fn keeper(&self) -> Keeper<'_> {
        Keeper::new(&self.link, self.id)
    }

    /// Returns the id at the holder.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Notes that a kernel half starts. All noted input has been discarded.
    pub fn begin_half(&mut self) -> Result<(), Errno> {
        self.journal.set_mark(HAS_HALF, Progress::default())
    }

    /// Notes that the kernel half has ended, with its final progress.
    pub fn end_half(&mut self, progress: Progress, output: &[u8], word: u64) -> Result<(), Errno> {
        self.journal.set_mark(0, progress)?;
        self.link.detach(self.id);
        // A kernel half that starts later has no progress.
        self.reclaim(0, Stored::default());
        self.note_output(output, word)
    }

    /// Notes that the program owns the connection again. `fragment` bytes of an incomplete message precede the queue.
    pub fn reclaim(&mut self, fragment: usize, stored: Stored) {
        self.fragment = fragment;
        (self.stored, self.stored_before) = (stored, stored);
    }

    /// Notes that the kernel half now has the incomplete message.
    pub fn hand_over(&mut self) {
        self.fragment = 0;
    }

    /// Returns the number of bytes of an incomplete message that precede the queue.
    pub fn fragment(&self) -> usize {
        self.fragment
    }

    /// Notes that the rest is stored with the kernel half, under this word, and counts as handled.
    pub fn store(&mut self, word: u64) {
        self.fragment += self.left;
        self.handled += self.left;
        self.left = 0;
        self.stored.word = word;
    }

    /// Peeks at the socket's queue. Returns the number of bytes seen.
    pub fn look(socket: BorrowedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        recv(socket, buffer, RecvFlags::PEEK).map(|(count, _)| count)
    }

    /// Returns the number of bytes of the next peek that were seen before.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Starts to handle `count` peeked bytes.
    pub fn begin_input(&mut self, count: usize) {
        self.left = count;
    }

    /// Notes that all peeked bytes except `left`, and the bytes before them, are handled.
    pub fn note_left(&mut self, left: usize) {
        let handled = (self.fragment + self.left).saturating_sub(left);
        if handled == 0 {
            return;
        }
        // A message that starts before the queue ends in it.
        self.handled += handled.saturating_sub(self.fragment);
        self.left = left;
        (self.fragment, self.stored.word) = (0, 0);
    }

    /// Notes that `count` bytes were appended to the output.
    pub fn note_added(&mut self, count: usize) {
        self.unnoted += count;
    }

    /// Stores the switch's features reply.
    pub fn note_features(&mut self, frame: &[u8]) -> Result<(), Errno> {
        self.journal.set_record(frame)
    }

    /// Writes output that the journal lacks.
    pub fn note_output(&mut self, output: &[u8], word: u64) -> Result<(), Errno> {
        let (unsent, output) = output.split_at(output.len() - self.unnoted);
        self.unnoted = 0;
        self.journal.note(Note {
            input: 0,
            unsent,
            output,
            words: self.stored_before.words(word),
        })
    }

    /// Commits handled input: records `replies`, which follow the output, then discards the input. Returns the number of
    /// discarded bytes.
    pub fn commit(
        &mut self,
        socket: BorrowedFd,
        output: &[u8],
        replies: &[u8],
        word: u64,
        room: &mut Vec<u8>,
    ) -> Result<usize, Errno> {
        if self.unnoted > 0 {
            self.note_output(output, word)?;
        }
        let input = std::mem::take(&mut self.handled);
        self.journal.note(Note {
            input,
            unsent: output,
            output: replies,
            words: self.stored.words(word),
        })?;
        room.resize(DISCARD_BYTES, 0);
        discard(socket, input, room)?;
        self.stored_before = self.stored;
        Ok(input)
    }

    /// Ends the connection, which the holder's copy of the socket would otherwise keep open.
    pub fn end(self, socket: BorrowedFd) {
        // Fails only if the peer has closed it first.
        let _ = shutdown(socket, Shutdown::Both);
        self.link.forget(self.id);
    }
}
