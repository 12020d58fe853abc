//! The part of a connection that outlives its program: see [`urtica_hold`].
//!
//! Input is peeked at, and stays in the socket's queue until it has been handled and the journal has the replies; then it is
//! discarded. So an incomplete message needs no storage of its own, except in front of a kernel half: there it is stored in memory
//! that the next program finds ([`HeldHalf`](crate::HeldHalf)), so that the queue can be handed over empty.

use crate::kernel_half::Keeper;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::io;
use std::sync::Arc;
use urtica_hold::{Id, Journal, Link, Note, Progress, Words, discard};

/// How much is discarded per system call.
const DISCARD_BYTES: usize = 256 << 10;

/// The journal's mark of a connection that has a kernel half.
const HAS_HALF: u64 = 1;

/// What the kernel half has done, and the beginning of a message that is stored there, as the journal has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// How many bytes of input it had answered.
    pub taken: u64,
    /// Names the beginning of a message; 0 where there is none.
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
    /// Bytes that were peeked at but not handled; they are at the front of the socket's queue.
    left: usize,
    /// Bytes that were handled but not discarded; they precede those.
    handled: usize,
    /// Whether the last peek saw everything that was in the queue.
    is_drained: bool,
    /// How many bytes at the end of the output are not in the journal yet.
    unnoted: usize,
    /// The length of the beginning of a message that precedes the queue, and is stored with the kernel half.
    fragment: usize,
    /// What is stored there, and what was before what is handled but not discarded.
    stored: Stored,
    stored_before: Stored,
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
            fragment: 0,
            stored: Stored::default(),
            stored_before: Stored::default(),
        }
    }

    /// Whether the connection that this journal is of has a kernel half.
    pub fn has_half(mark: u64) -> bool {
        mark == HAS_HALF
    }

    /// Where the kernel half leaves what the next program needs.
    pub fn keeper(&self) -> Keeper<'_> {
        Keeper::new(&self.link, self.id)
    }

    /// The id at the holder.
    pub fn id(&self) -> Id {
        self.id
    }

    /// There is a kernel half from now on. All that was noted has been discarded.
    pub fn begin_half(&mut self) -> Result<(), Errno> {
        self.journal.set_mark(HAS_HALF, Progress::default())
    }

    /// There is none any more; it has taken and written so much.
    pub fn end_half(&mut self, progress: Progress, output: &[u8], word: u64) -> Result<(), Errno> {
        self.journal.set_mark(0, progress)?;
        self.link.detach(self.id);
        // Another one that is started later has done nothing in the beginning.
        self.reclaim(0, Stored::default());
        self.note_output(output, word)
    }

    /// The program owns the connection again. So many bytes of the beginning of a message precede the queue.
    pub fn reclaim(&mut self, fragment: usize, stored: Stored) {
        self.fragment = fragment;
        (self.stored, self.stored_before) = (stored, stored);
    }

    /// The kernel half has the beginning of a message from now on.
    pub fn hand_over(&mut self) {
        self.fragment = 0;
    }

    /// How many bytes of the beginning of a message precede the queue.
    pub fn fragment(&self) -> usize {
        self.fragment
    }

    /// What was left is stored with the kernel half, under this word, and counts as handled.
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

    /// How many of the bytes that the next peek returns were seen before.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Starts to handle `count` peeked bytes; `is_drained` if they were all that was in the queue.
    pub fn begin_input(&mut self, count: usize, is_drained: bool) {
        self.left = count;
        self.is_drained = is_drained;
    }

    /// All but so many are handled of the peeked bytes and what precedes them.
    pub fn note_left(&mut self, left: usize) {
        let handled = (self.fragment + self.left).saturating_sub(left);
        if handled == 0 {
            return;
        }
        // A message that begins before the queue ends in it.
        self.handled += handled.saturating_sub(self.fragment);
        self.left = left;
        (self.fragment, self.stored.word) = (0, 0);
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
            words: self.stored_before.words(word),
        })
    }

    /// Commits what was handled: `replies`, which follow the output, are noted, then the handled input is discarded. Returns
    /// how many bytes these were.
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

    /// The connection ends. The holder's copy of the socket does not keep it open.
    pub fn end(self, socket: BorrowedFd) {
        // Fails only if the peer has closed it already.
        let _ = shutdown(socket, Shutdown::Both);
        self.link.forget(self.id);
    }
}
