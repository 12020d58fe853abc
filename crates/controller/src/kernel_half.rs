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
//! **Held connections.** A kernel half may outlive its program ([`HeldHalf`]): it goes on answering while nobody is there, and the
//! next program takes it over ([`HeldHalves`]).
//!
//! **Cost.** A connection without one pays a look at an `Option` for each batch.

use crate::SwitchInfo;
use rustix::fd::BorrowedFd;
use std::io;
use std::time::Instant;
use urtica_hold::{Attachment, Id, Link, Progress};

/// Makes the kernel halves of connections, whatever programs there are: see
/// [`Controller::kernel_halves`](crate::Controller::kernel_halves). This crate states what it needs; `urtica-offload` has one.
pub trait KernelHalves: Send + Sync {
    /// The kernel half of a switch that is up; `None` if it has none now, and the programs do everything. Called again after each batch
    /// of the switch's messages until it returns one.
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

    /// Its counts, for a log line about a switch that is not heard any more. The default has none.
    fn describe(&self, _socket: BorrowedFd) -> String {
        String::new()
    }

    /// Its part that outlives the program. Without one, which is the default, it does not answer for connections that are held.
    fn held(&mut self) -> Option<&mut dyn HeldHalf> {
        None
    }
}

/// The part of a kernel half that outlives its program, where a holder keeps the connection.
///
/// Of a held connection, [`KernelHalf::note_read`] tells what the program has taken off the queue for good, and
/// [`KernelHalf::attach`] may return [`io::ErrorKind::WouldBlock`] to be called again later. What it has in memory that the next
/// program finds is as the program's notes say: they name the input that was answered in the kernel before, and the beginning of a
/// message by a word.
pub trait HeldHalf {
    /// Has the holder keep what the next program needs to go on with it. Called once, before it is attached.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where it is to be called again later; others where it cannot be kept, and is to be dropped.
    fn keep(&mut self, keeper: &Keeper) -> io::Result<()>;

    /// How many bytes of input it has answered. While the program owns the connection.
    fn taken(&self) -> u64;

    /// The word for the beginning of a message, of so many bytes, that was reclaimed last.
    fn fragment_word(&self, bytes: usize) -> u64;

    /// Stores the beginning of a message without touching the one stored before. Returns the word for it.
    fn store_fragment(&mut self, fragment: &[u8]) -> u64;

    /// The beginning of a message with this word, which an earlier program stored.
    fn load_fragment(&mut self, word: u64) -> Vec<u8>;

    /// Is left to the next program as it is: dropping it changes nothing.
    fn leave(&mut self);

    /// Leaves the connection to the program for good, if all that was passed was read; all that it has answered is written. Returns
    /// what it has taken and written in all once it has.
    ///
    /// # Errors
    /// Where the connection cannot go on and is to be closed.
    fn let_go(&mut self, socket: BorrowedFd) -> io::Result<Option<Progress>>;
}

/// Where a kernel half leaves what the next program needs of it.
#[derive(Debug)]
pub struct Keeper<'a> {
    link: &'a Link,
    id: Id,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(link: &'a Link, id: Id) -> Self {
        Self { link, id }
    }

    /// The connection's id at the holder.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Has the holder keep these descriptors with the connection: see [`Link::attach`].
    ///
    /// # Errors
    /// As [`Link::attach`].
    pub fn keep(&self, label: String, fds: &[BorrowedFd]) -> io::Result<()> {
        self.link.attach(self.id, label, fds)
    }
}

/// What goes on with the kernel halves of an earlier program: see
/// [`Controller::held_halves`](crate::Controller::held_halves).
pub trait HeldHalves: Send + Sync {
    /// Takes back the connection with this id from its kernel half.
    ///
    /// # Errors
    /// Where that is not possible; the connection is closed.
    fn resume(&self, id: Id, kept: &Attachment, socket: BorrowedFd) -> io::Result<Resumed>;
}

/// A kernel half of an earlier program. The program owns the connection.
#[non_exhaustive]
pub struct Resumed {
    /// The kernel half.
    pub half: Box<dyn KernelHalf>,
    /// How far the programs have got with the connection: the kernel's counts without what the kernel half has done.
    pub progress: Progress,
    /// What was answered since the earlier program looked last.
    pub reclaimed: Reclaimed,
    /// The beginning of a message that it had received.
    pub fragment: Vec<u8>,
    /// Whether it was between the socket and the program.
    pub is_attached: bool,
    /// Whether this program can only let it go.
    pub is_let_go: bool,
}

impl Resumed {
    /// A kernel half that goes on.
    pub fn new(
        half: Box<dyn KernelHalf>,
        progress: Progress,
        reclaimed: Reclaimed,
        fragment: Vec<u8>,
    ) -> Self {
        Self {
            half,
            progress,
            reclaimed,
            fragment,
            is_attached: true,
            is_let_go: false,
        }
    }
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
    /// Whether the holder has what the next program needs of it, where the connection is held.
    is_kept: bool,
    /// Whether the program goes on without it as soon as that can be.
    is_let_go: bool,
    /// What an earlier program did not count.
    uncounted: Option<Reclaimed>,
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
            is_kept: false,
            is_let_go: false,
            uncounted: None,
        }
    }

    /// An earlier program's; this program owns the connection.
    pub fn resumed(resumed: Resumed) -> Self {
        Self {
            is_attached: resumed.is_attached,
            is_kept: true,
            is_let_go: resumed.is_let_go,
            uncounted: Some(resumed.reclaimed),
            ..Self::new(resumed.half)
        }
    }

    /// What an earlier program did not count, once.
    pub fn take_uncounted(&mut self) -> Option<Reclaimed> {
        self.uncounted.take()
    }

    /// How many answers an earlier program did not count.
    pub fn uncounted_answers(&self) -> u64 {
        self.uncounted
            .as_ref()
            .map_or(0, |uncounted| uncounted.answered)
    }

    /// Whether the program goes on without it as soon as that can be.
    pub fn is_let_go(&self) -> bool {
        self.is_let_go
    }

    /// The program goes on without it as soon as that can be.
    pub fn set_let_go(&mut self) {
        self.is_let_go = true;
    }

    /// Its part that outlives the program, where the holder has what the next one needs.
    pub fn kept(&mut self) -> Option<&mut dyn HeldHalf> {
        match self.is_kept {
            true => self.half.held(),
            false => None,
        }
    }

    /// Has the holder keep what the next program needs, where it does not yet. Returns whether it has just begun to.
    ///
    /// # Errors
    /// Where it cannot; it is to be dropped then.
    pub fn keep(&mut self, keeper: &Keeper) -> io::Result<bool> {
        if self.is_kept {
            return Ok(false);
        }
        let held = self.half.held().ok_or(io::ErrorKind::Unsupported)?;
        match held.keep(keeper) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            kept => kept?,
        }
        self.is_kept = true;
        Ok(true)
    }

    /// Whether the holder has what the next program needs.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The longest beginning of a message that it can take over.
    pub fn max_fragment(&self) -> usize {
        self.half.max_fragment()
    }

    /// A look at the queue saw all that there was, or not.
    pub fn note_looked(&mut self, is_drained: bool) {
        self.is_drained = is_drained;
    }

    /// The program has taken so many bytes off the queue.
    pub fn note_discarded(&mut self, count: usize) {
        if self.is_attached && count > 0 {
            self.half.note_read(count);
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
        if self.is_attached || !self.is_drained || self.is_let_go {
            return Ok(());
        }
        match self.half.attach(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            attached => attached?,
        }
        self.is_attached = true;
        Ok(())
    }

    /// What is to be watched and is not yet; it counts as watched from now on.
    pub fn unwatched(&mut self) -> Option<BorrowedFd<'_>> {
        if !self.is_attached || self.is_watched || self.is_let_go {
            return None;
        }
        self.is_watched = true;
        Some(self.half.wakeup())
    }

    /// What is watched; it counts as unwatched from now on.
    pub fn watched(&mut self) -> Option<BorrowedFd<'_>> {
        std::mem::take(&mut self.is_watched).then(|| self.half.wakeup())
    }

    /// Its state, for the log.
    pub fn describe(&self, socket: BorrowedFd) -> String {
        format!(
            "attached={} watched={} drained={} programs={} kept={} let_go={} {}",
            self.is_attached,
            self.is_watched,
            self.is_drained,
            self.is_programs,
            self.is_kept,
            self.is_let_go,
            self.half.describe(socket),
        )
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
