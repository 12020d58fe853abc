//! The interface between a connection and the part of its program that runs in the kernel.
//!
//! **What.** A handler may have a *kernel half*, which answers messages before they reach the program
//! ([`SwitchHandler::kernel_half`](crate::SwitchHandler::kernel_half)). At any time, either the kernel half or the program
//! owns the connection: the owner answers input, writes to the socket, and counts xids. The program hands the connection over
//! when it has no work left, and reclaims it before it uses it. Messages that the kernel half does not answer reach the
//! program as ordinary input, and the ownership passes with them.
//!
//! **Several programs.** A handler's kernel half answers for its program only. [`KernelHalves`] answer for the basis of
//! several programs, such as services. A packet-in that is settled and contains news is an *event*: handlers receive it in
//! [`SwitchHandler::settled`](crate::SwitchHandler::settled), before any input that was passed after it.
//!
//! **Held connections.** A kernel half may outlive its program ([`HeldHalf`]): it keeps answering while no program runs, and the
//! next program takes it over ([`HeldHalves`]).
//!
//! **Cost.** A connection without a kernel half checks an `Option` for each batch.

use crate::SwitchInfo;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use urtica_hold::{Attachment, Id, Link, Progress};

/// Creates the kernel halves of connections, independently of their programs: see
/// [`Controller::kernel_halves`](crate::Controller::kernel_halves). This crate defines the interface; `urtica-offload` implements
/// it.
pub trait KernelHalves: Send + Sync {
    /// Returns the kernel half of a switch that is up; `None` if it has none now, so that the programs answer all messages.
    /// Called after each batch of the switch's messages until it returns one.
    fn open(&self, info: &SwitchInfo) -> Option<Box<dyn KernelHalf>>;

    /// Returns `true` if it continues the kernel half that an earlier program left for this connection, by its id at the holder
    /// ([`HeldHalves::resume`] has reclaimed it). Otherwise the kernel half is released, which is the default. Called before
    /// the switch's handlers are created.
    fn resume(&self, _info: &SwitchInfo, _held: Id) -> bool {
        false
    }
}

/// The part of a handler that answers in the kernel. This crate defines the interface; `urtica-offload` implements it.
pub trait KernelHalf: Send {
    /// Attaches itself between this socket and the program, which owns the connection. All input so far has been read.
    ///
    /// # Errors
    /// If it cannot be attached; the program then continues alone.
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()>;

    /// Returns a descriptor that becomes readable, once each time, when the kernel half's ownership ends because it passes
    /// something to the program. The socket need not be watched for input while the kernel half owns the connection.
    fn wakeup(&self) -> BorrowedFd<'_>;

    /// Returns `true` if its ownership has ended because it passes input to the program, which may not have received it yet.
    fn has_passed(&self) -> bool;

    /// Hands the connection over to the kernel half, if that accepts it. Called after each use of the connection.
    ///
    /// # Errors
    /// If the connection must be closed.
    fn hand_over(&mut self, socket: BorrowedFd, handover: Handover) -> io::Result<Taken>;

    /// Reclaims the connection. Appends an incomplete message that the kernel half had received to `input`, which is empty.
    fn reclaim(&mut self, input: &mut Vec<u8>) -> Reclaimed;

    /// Returns `true` if all its answers have been written, so that the program may write. Called while the program owns the
    /// connection.
    fn may_write(&mut self, socket: BorrowedFd) -> bool;

    /// Notes that the program has read `count` bytes.
    fn note_read(&mut self, count: usize);

    /// Returns the number of passed bytes that the program has not read, according to its notes. A socket may report the end
    /// of the stream before them. Called while the program owns the connection. The default is 0.
    fn unread(&self) -> u64 {
        0
    }

    /// Notes that the program has written `count` bytes.
    fn note_written(&mut self, count: usize);

    /// Returns the length in bytes of the longest incomplete message that can be handed over.
    fn max_fragment(&self) -> usize;

    /// Returns whether it has events for the program, as announced by [`KernelHalf::wakeup`].
    fn has_events(&self) -> bool {
        false
    }

    /// Passes its events to `tell`: settled packet-ins that contain news, in order and once each, as whole messages of the
    /// session's version. Called after [`KernelHalf::reclaim`], before passed input is handled.
    fn take_events(&mut self, _tell: &mut dyn FnMut(&[u8])) {}

    /// Returns the memory of the system that it needs, in bytes. The default is 0.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Returns its counts, for a log line about a silent switch. The default is an empty text.
    fn describe(&self, _socket: BorrowedFd) -> String {
        String::new()
    }

    /// Returns the part that outlives the program. Without one, which is the default, it does not answer for held
    /// connections.
    fn held(&mut self) -> Option<&mut dyn HeldHalf> {
        None
    }
}

/// The part of a kernel half that outlives its program, if a holder keeps the connection.
///
/// For a held connection, [`KernelHalf::note_read`] reports the bytes that the program has discarded from the queue, and
/// [`KernelHalf::attach`] may return [`io::ErrorKind::WouldBlock`] to be called again later. The next program finds its state
/// in memory, which agrees with the program's notes: they contain the number of input bytes that the kernel had answered
/// before, and a word that identifies an incomplete message.
pub trait HeldHalf {
    /// Gives the holder the state that the next program needs to continue. Called once, before it is attached.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it must be called again later; any other if the state cannot be kept, and the kernel
    /// half must be dropped.
    fn keep(&mut self, keeper: &Keeper) -> io::Result<()>;

    /// Returns the number of input bytes that it has answered. Called while the program owns the connection.
    fn taken(&self) -> u64;

    /// Returns the word for the incomplete message, of `bytes` bytes, that was reclaimed last.
    fn fragment_word(&self, bytes: usize) -> u64;

    /// Stores an incomplete message, and keeps the one stored before. Returns its word.
    fn store_fragment(&mut self, fragment: &[u8]) -> u64;

    /// Returns the incomplete message with this word, which an earlier program stored.
    fn load_fragment(&mut self, word: u64) -> Vec<u8>;

    /// Leaves it to the next program: dropping it then changes nothing.
    fn leave(&mut self);

    /// Releases the connection to the program permanently, if all passed input was read and all answers are written. Returns
    /// its total progress once it has done so.
    ///
    /// # Errors
    /// If the connection must be closed.
    fn let_go(&mut self, socket: BorrowedFd) -> io::Result<Option<Progress>>;
}

/// Stores the state of a kernel half for the next program.
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

    /// Makes the holder keep these descriptors with the connection: see [`Link::attach`].
    ///
    /// # Errors
    /// Like [`Link::attach`].
    pub fn keep(&self, label: String, fds: &[BorrowedFd]) -> io::Result<()> {
        self.link.attach(self.id, label, fds)
    }
}

/// Continues the kernel halves of an earlier program: see
/// [`Controller::held_halves`](crate::Controller::held_halves).
pub trait HeldHalves: Send + Sync {
    /// Reclaims the connection with this id from its kernel half.
    ///
    /// # Errors
    /// If that is not possible; the connection is closed.
    fn resume(&self, id: Id, kept: &Attachment, socket: BorrowedFd) -> io::Result<Resumed>;
}

/// A kernel half of an earlier program. The program owns the connection.
#[non_exhaustive]
pub struct Resumed {
    /// The kernel half.
    pub half: Box<dyn KernelHalf>,
    /// The programs' progress on the connection: the kernel's counts minus the kernel half's.
    pub progress: Progress,
    /// The answers since the earlier program last read the counts.
    pub reclaimed: Reclaimed,
    /// The incomplete message that it had received.
    pub fragment: Vec<u8>,
    /// Whether it is attached between the socket and the program.
    pub is_attached: bool,
    /// Whether this program can only release it.
    pub is_let_go: bool,
}

impl Resumed {
    /// Creates the value for a kernel half that continues.
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

/// The state that the program hands over with a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Handover<'a> {
    /// An incomplete message.
    pub fragment: &'a [u8],
    /// The counter of the last used xid.
    pub xid: u32,
    /// The time when the clock of [`Switch::now_s`](crate::Switch::now_s) was 0.
    pub started: Instant,
    /// Whether the last read emptied the socket.
    pub is_drained: bool,
}

impl<'a> Handover<'a> {
    /// Creates the state of a connection that has read all input.
    pub fn new(fragment: &'a [u8], xid: u32, started: Instant) -> Self {
        Self {
            fragment,
            xid,
            started,
            is_drained: true,
        }
    }
}

/// The answer of a kernel half to a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It owns the connection from now on.
    Yes,
    /// It does not accept the connection now, for instance because the program has more input.
    NotYet,
    /// It does not accept the connection while it is this busy: from now on input reaches the program directly. It may accept
    /// the connection later.
    SteppedAside,
}

/// The state that is returned to the program with a connection, and the kernel's counts since the program last owned it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reclaimed {
    /// The counter of the last used xid.
    pub xid: u32,
    /// Packet-ins that were answered, including those that need no reply.
    pub answered: u64,
    /// Other messages that were handled: echo requests and replies.
    pub others: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// The bytes of these messages.
    pub sent_bytes: u64,
    /// The number of times that input was passed to the program because of a message that the kernel does not answer.
    pub passed: u64,
    /// The number of times that input was passed because the queue was long, or the switch read its replies too slowly.
    pub fell_back: u64,
}

/// The conditions for a switch to get a kernel half, which needs memory of the system: a peer that only connects with forged
/// datapath ids gets no kernel half. The default has no conditions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Threshold {
    /// The time that the switch must have been up.
    pub uptime: Duration,
    /// The number of packet-ins that it must have sent.
    pub packet_ins: u64,
}

impl Threshold {
    /// The threshold of a controller that sets no other.
    pub const OF_CONTROLLER: Self = Self {
        uptime: Duration::from_secs(1),
        packet_ins: 16,
    };

    /// Returns whether a switch that has been up for `uptime`, and has sent `packet_ins`, may have a kernel half.
    pub fn is_reached(self, uptime: Duration, packet_ins: u64) -> bool {
        uptime >= self.uptime && packet_ins >= self.packet_ins
    }
}

/// The number of switches that have a kernel half, and the memory of the kernel halves.
#[derive(Debug, Default)]
pub struct KernelHalfTotals {
    switches: AtomicU64,
    bytes: AtomicU64,
}

impl KernelHalfTotals {
    /// Returns the number of switches that have a kernel half.
    pub fn switches(&self) -> u64 {
        self.switches.load(Relaxed)
    }

    /// Returns the memory of their kernel halves in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

/// One kernel half's part in the totals, for the lifetime of this value.
pub(crate) struct Counted {
    totals: Arc<KernelHalfTotals>,
    bytes: u64,
}

impl Counted {
    pub fn new(totals: &Arc<KernelHalfTotals>, bytes: u64) -> Self {
        totals.switches.fetch_add(1, Relaxed);
        totals.bytes.fetch_add(bytes, Relaxed);
        Self {
            totals: Arc::clone(totals),
            bytes,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.totals.switches.fetch_sub(1, Relaxed);
        self.totals.bytes.fetch_sub(self.bytes, Relaxed);
    }
}
