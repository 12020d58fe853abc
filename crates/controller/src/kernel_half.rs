//! Where a connection meets the part of its program that runs in the kernel.
//!
//! **What.** A handler may have a *kernel half*: something that answers messages before they reach the program
//! ([`SwitchHandler::kernel_half`]). It and the program take turns on a connection: whoever has the turn answers what comes,
//! writes to the socket, and counts xids. The program gives its turn away when nothing is left for it to do, and takes it
//! back before it does anything with the connection. What the kernel half does not answer comes to the program as ordinary
//! input, and the turn with it.
//!
//! **Cost.** A connection without one pays a look at an `Option` for each batch.

use rustix::fd::BorrowedFd;
use std::io;
use std::time::Instant;

/// The part of a handler that answers in the kernel. This crate states what it needs; `urtica-offload` has one.
pub trait KernelHalf: Send {
    /// Puts itself between this socket and the program, whose turn it is. All that has come so far has been read.
    ///
    /// # Errors
    /// Where it cannot; the program goes on alone then.
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()>;

    /// Becomes readable when its turn ends since something is passed to the program; an edge for each time. The socket need not
    /// be watched for input while it has the turn.
    fn wakeup(&self) -> BorrowedFd<'_>;

    /// Whether its turn has ended since something is passed to the program, which may not have come yet.
    fn has_passed(&self) -> bool;

    /// Gives it the turn, unless it cannot have it now, be it that more has come for the program. Returns whether it has it.
    fn give(&mut self, hand: Hand) -> bool;

    /// Takes the turn back. Puts the beginning of a message that it had received to `input`, which is empty.
    fn take(&mut self, input: &mut Vec<u8>) -> Taken;

    /// Whether what it has answered has all been written, so that the program may write. Asked in the program's turn.
    fn may_write(&mut self, socket: BorrowedFd) -> bool;

    /// The program has read so many bytes.
    fn note_read(&mut self, count: usize);

    /// The program has written so many bytes.
    fn note_written(&mut self, count: usize);

    /// The longest beginning of a message that it can be given with its turn.
    fn max_fragment(&self) -> usize;
}

/// What the program gives away with its turn.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hand<'a> {
    /// The beginning of a message that has not come as a whole.
    pub fragment: &'a [u8],
    /// The counter of the last xid that was used.
    pub xid: u32,
    /// When the clock of [`Switch::now_s`](crate::Switch::now_s) was 0.
    pub started: Instant,
}

/// What the program gets back with its turn, and what was done in the kernel since it had it last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// The counter of the last xid that was used.
    pub xid: u32,
    /// Packet-ins that were answered, be it that nothing was to be sent.
    pub answered: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// How often input was passed to the program since it held something that is not answered in the kernel.
    pub passed: u64,
    /// How often since the queue was long, or the switch did not read its replies as fast as they came.
    pub fell_back: u64,
}

/// A connection's kernel half, and whose turn it is.
pub(crate) struct Turns {
    half: Box<dyn KernelHalf>,
    is_attached: bool,
    /// Whether a shard watches what wakes it.
    is_watched: bool,
    /// Whether the last read brought all that there was.
    is_drained: bool,
    is_ours: bool,
}

impl Turns {
    pub fn new(half: Box<dyn KernelHalf>) -> Self {
        Self {
            half,
            is_attached: false,
            is_watched: false,
            is_drained: false,
            is_ours: true,
        }
    }

    /// Whether it is the program's turn.
    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// A read brought so many bytes, less than it could have where `is_drained`.
    pub fn note_read(&mut self, count: usize, is_drained: bool) {
        self.is_drained = is_drained;
        if self.is_attached {
            self.half.note_read(count);
        }
    }

    /// So many bytes were written.
    pub fn note_written(&mut self, count: usize) {
        if self.is_attached {
            self.half.note_written(count);
        }
    }

    /// Whether the program may write to the socket now.
    pub fn may_write(&mut self, socket: BorrowedFd) -> bool {
        !self.is_attached || self.is_ours && self.half.may_write(socket)
    }

    /// Takes the turn, where it is the kernel's.
    pub fn take(&mut self, input: &mut Vec<u8>) -> Option<Taken> {
        if self.is_ours {
            return None;
        }
        self.is_ours = true;
        Some(self.half.take(input))
    }

    /// Whether the turn is there to be taken, as something is on its way to the program.
    pub fn has_passed(&self) -> bool {
        !self.is_ours && self.half.has_passed()
    }

    /// Attaches it to the socket, if that can be now and has not been done.
    ///
    /// # Errors
    /// Where it cannot be; it is to be dropped then.
    pub fn attach(&mut self, socket: BorrowedFd) -> io::Result<()> {
        if !self.is_attached && self.is_drained {
            self.half.attach(socket)?;
            self.is_attached = true;
        }
        Ok(())
    }

    /// What is to be watched and is not yet; it counts as watched from now on.
    pub fn unwatched(&mut self) -> Option<BorrowedFd<'_>> {
        if !self.is_attached || self.is_watched {
            return None;
        }
        self.is_watched = true;
        Some(self.half.wakeup())
    }

    /// What is watched; it counts as unwatched from now on.
    pub fn watched(&mut self) -> Option<BorrowedFd<'_>> {
        std::mem::take(&mut self.is_watched).then(|| self.half.wakeup())
    }

    /// Gives the turn away where that can be. Returns whether it was.
    pub fn give(&mut self, socket: BorrowedFd, hand: Hand) -> bool {
        let can_be =
            self.is_ours && self.is_watched && hand.fragment.len() <= self.half.max_fragment();
        let is_given = can_be && self.half.may_write(socket) && self.half.give(hand);
        if is_given {
            self.is_ours = false;
        }
        is_given
    }
}
