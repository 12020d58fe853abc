//! Where a connection meets the part of its program that runs in the kernel.
//!
//! **What.** A handler may have a *kernel half*: something that answers messages before they reach the program
//! ([`SwitchHandler::kernel_half`](crate::SwitchHandler::kernel_half)). Either the kernel half or the program owns the
//! connection at a time: the owner answers what comes, writes to the socket, and counts xids. The program hands the connection
//! over when nothing is left for it to do, and reclaims it before it does anything with it. What the kernel half does not answer
//! reaches the program as ordinary input, and the ownership with it.
//!
//! **In front of several programs.** A handler's kernel half answers for its program alone. [`KernelHalves`] answer for what several
//! programs build on, such as services. A packet-in that is settled and tells something new is an *event*: handlers get it by
//! [`SwitchHandler::settled`](crate::SwitchHandler::settled), before whatever was passed after it.
//!
//! **Cost.** A connection without one pays a look at an `Option` for each batch.

use crate::SwitchInfo;
use rustix::fd::BorrowedFd;
use std::io;
use std::time::Instant;

/// Makes the kernel halves of connections, whatever programs there are: see
/// [`Controller::kernel_halves`](crate::Controller::kernel_halves). This crate states what it needs; `urtica-offload` has one.
pub trait KernelHalves: Send + Sync {
    /// The kernel half of a switch that has just come up; `None` where it cannot have one, and the programs do everything.
    fn open(&self, info: &SwitchInfo) -> Option<Box<dyn KernelHalf>>;
}

/// The part of a handler that answers in the kernel. This crate states what it needs; `urtica-offload` has one.
pub trait KernelHalf: Send {
    /// Puts itself between this socket and the program, which owns the connection. All that has come so far has been read.
    ///
    /// # Errors
    /// Where it cannot; the program goes on alone then.
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()>;

    /// Becomes readable, once each time, when something is passed to the program and the kernel half's ownership ends by that. The
    /// socket need not be watched for input while the kernel half owns the connection.
    fn wakeup(&self) -> BorrowedFd<'_>;

    /// Whether its ownership has ended because something is passed to the program, which may not have arrived yet.
    fn has_passed(&self) -> bool;

    /// Hands the connection over to it, if it takes it. Called after everything that was done with the connection.
    ///
    /// # Errors
    /// Where the connection cannot go on and is to be closed.
    fn hand_over(&mut self, socket: BorrowedFd, handover: Handover) -> io::Result<Taken>;

    /// Takes the connection back. Appends the beginning of a message that it had received to `input`, which is empty.
    fn reclaim(&mut self, input: &mut Vec<u8>) -> Reclaimed;

    /// Whether all that it has answered has been written, so that the program may write. Called while the program owns the
    /// connection.
    fn may_write(&mut self, socket: BorrowedFd) -> bool;

    /// The program has read so many bytes.
    fn note_read(&mut self, count: usize);

    /// The program has written so many bytes.
    fn note_written(&mut self, count: usize);

    /// The longest beginning of a message, in bytes, that it can take over.
    fn max_fragment(&self) -> usize;

    /// Whether there are events for the program, of which [`KernelHalf::wakeup`] has told.
    fn has_events(&self) -> bool {
        false
    }

    /// Tells of the packet-ins that were settled and say something new, in order and once: whole messages of the session's
    /// version. Called after [`KernelHalf::reclaim`], before anything that was passed is handled.
    fn take_events(&mut self, _tell: &mut dyn FnMut(&[u8])) {}
}

/// What the program hands over with a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Handover<'a> {
    /// The beginning of a message that has not come as a whole.
    pub fragment: &'a [u8],
    /// The counter of the last xid that was used.
    pub xid: u32,
    /// When the clock of [`Switch::now_s`](crate::Switch::now_s) was 0.
    pub started: Instant,
    /// Whether the last read brought all that there was.
    pub is_drained: bool,
}

impl<'a> Handover<'a> {
    /// Of a connection that has read all that came.
    pub fn new(fragment: &'a [u8], xid: u32, started: Instant) -> Self {
        Self {
            fragment,
            xid,
            started,
            is_drained: true,
        }
    }
}

/// Whether a kernel half has taken a connection over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It owns the connection from now on.
    Yes,
    /// Not now, for instance because more has come for the program.
    NotYet,
    /// Not while the connection is as busy as it is: from now on input reaches the program without it. It may take the connection
    /// later.
    SteppedAside,
}

/// What the program gets back with a connection, and what was done in the kernel since the program owned it last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reclaimed {
    /// The counter of the last xid that was used.
    pub xid: u32,
    /// Packet-ins that were answered, also those for which nothing was to be sent.
    pub answered: u64,
    /// Other messages that were dealt with: echo requests and replies.
    pub others: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// How many times input was passed to the program because it held something that is not answered in the kernel.
    pub passed: u64,
    /// How many times input was passed because the queue was long, or the switch did not read its replies as fast as they came.
    pub fell_back: u64,
}

/// A connection's kernel half, and which of the two owns the connection.
pub(crate) struct Ownership {
    half: Box<dyn KernelHalf>,
    is_attached: bool,
    /// Whether a shard watches what wakes it.
    is_watched: bool,
    /// Whether the last read brought all that there was.
    is_drained: bool,
    is_programs: bool,
}

impl Ownership {
    /// The program's, until it hands the connection over.
    pub fn new(half: Box<dyn KernelHalf>) -> Self {
        Self {
            half,
            is_attached: false,
            is_watched: false,
            is_drained: false,
            is_programs: true,
        }
    }

    /// Whether the program owns the connection.
    pub fn is_programs(&self) -> bool {
        self.is_programs
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
        !self.is_attached || self.is_programs && self.half.may_write(socket)
    }

    /// Takes the connection back, where the kernel half owns it.
    pub fn reclaim(&mut self, input: &mut Vec<u8>) -> Option<Reclaimed> {
        if self.is_programs {
            return None;
        }
        self.is_programs = true;
        Some(self.half.reclaim(input))
    }

    /// Whether the program is to take the connection back, since something is on its way to it.
    pub fn has_passed(&self) -> bool {
        !self.is_programs && (self.half.has_passed() || self.half.has_events())
    }

    /// Tells of the events, where the program owns the connection.
    pub fn take_events(&mut self, tell: &mut dyn FnMut(&[u8])) {
        if self.is_programs && self.is_attached && self.half.has_events() {
            self.half.take_events(tell);
        }
    }

    /// Attaches the kernel half to the socket, if that can be now and has not been done.
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

    /// Hands the connection over to the kernel half where that can be.
    ///
    /// # Errors
    /// Where the connection is to be closed.
    pub fn hand_over(&mut self, socket: BorrowedFd, handover: Handover) -> io::Result<Taken> {
        let can_be = self.is_programs
            && self.is_watched
            && handover.fragment.len() <= self.half.max_fragment()
            && self.half.may_write(socket);
        if !can_be {
            return Ok(Taken::NotYet);
        }
        let handover = Handover {
            is_drained: self.is_drained,
            ..handover
        };
        let taken = self.half.hand_over(socket, handover)?;
        self.is_programs = taken != Taken::Yes;
        Ok(taken)
    }
}
