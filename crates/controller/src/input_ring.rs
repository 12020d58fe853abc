//! Where a shard's input comes from a ring instead of its sockets.
//!
//! **What.** Each shard may have a ring ([`Controller::input_rings`](crate::Controller::input_rings)), into which something in front of the
//! program puts the messages of all its switches, cut at message boundaries. What it does not put there it *passes*: the shard reads
//! it from the socket, as without a ring, and hands the input over again when nothing is left to be read. Replies are written as
//! without a ring. Programs do not notice.
//!
//! **Order.** A connection's input is either the ring's or the shard's. [`RingEntry::Passed`] says in the ring itself, behind all that was put
//! there before, that it is the shard's from now on.
//!
//! **Cost.** A shard without a ring pays a look at an `Option` for each wait, and one for each batch.

use rustix::fd::BorrowedFd;
use std::io;
use urtica_wire::Version;

/// What makes rings. This crate states what it needs; `urtica-offload` has one.
pub trait InputRings: Send + Sync {
    /// A ring for one shard. Called once by each.
    ///
    /// # Errors
    /// Where there can be none; the shard reads its sockets then.
    fn open(&self) -> io::Result<Box<dyn InputRing>>;
}

/// One shard's ring.
pub trait InputRing: Send {
    /// Readable while there is something in the ring.
    fn wakeup(&self) -> BorrowedFd<'_>;

    /// Prepares a connection's way into the ring; the shard goes on reading its socket until it hands over. All that has come so far has
    /// been read. No other connection has or had this number.
    ///
    /// # Errors
    /// Where it cannot; the socket is read then.
    fn attach(
        &mut self,
        connection: u64,
        socket: BorrowedFd,
        version: Version,
    ) -> io::Result<Box<dyn RingInput>>;

    /// Has [`InputRing::next`] go on to what there is now, and not further.
    fn look(&mut self);

    /// Finds connections whose input is the shard's though no entry says so: see [`RingInput::is_found_lost`]. [`InputRing::next`] tells them.
    fn find_passed(&mut self);

    /// What comes next. Lives until the next call.
    fn next(&mut self) -> Option<RingEntry<'_>>;
}

/// What is in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingEntry<'r> {
    /// Whole messages, one after the other, of this connection.
    Messages(u64, &'r [u8]),
    /// The input of this connection may have been passed to the shard: see [`RingInput::take_back`].
    Passed(u64),
}

/// One connection's way into a ring.
pub trait RingInput: Send {
    /// Whether the input comes through the ring, as far as the shard has been told.
    fn is_rings(&self) -> bool;

    /// The shard has read so many bytes from the socket.
    fn note_read(&mut self, count: usize);

    /// Has what comes next come through the ring, behind the beginning of a message that has not come as a whole. Returns `false` where
    /// that cannot be now, for instance because more has been passed.
    fn hand_over(&mut self, fragment: &[u8]) -> bool;

    /// Where input was passed, makes it the shard's: appends the beginning of a message that was kept to `input`. Returns whether it was.
    fn take_back(&mut self, input: &mut Vec<u8>) -> bool;

    /// Whether the ring has lost this socket, so that something waits in there that nobody tells of. Asked a few times a second.
    fn is_found_lost(&mut self, socket: BorrowedFd) -> bool;

    /// Asks for what comes next to be passed, behind what is in the ring.
    fn ask_back(&self);

    /// What was done since the last call.
    fn take_counts(&mut self) -> RingCounts;
}

/// What was done in front of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// How many times input was passed because it held something that does not go through the ring, or because the switch did not
    /// read its replies.
    pub passed: u64,
    /// How many times input was passed because the queue was long.
    pub fell_back: u64,
    /// How many times input was passed because the ring was full.
    pub ring_full: u64,
}

/// A connection's way into its shard's ring.
#[derive(Default)]
pub(crate) enum RingState {
    /// There is none yet.
    #[default]
    Without,
    /// There can be none.
    Refused,
    Attached(Box<dyn RingInput>),
}

impl RingState {
    /// What is attached.
    pub fn input(&mut self) -> Option<&mut dyn RingInput> {
        match self {
            Self::Attached(input) => Some(&mut **input),
            Self::Without | Self::Refused => None,
        }
    }

    /// Whether the connection's input comes through a ring.
    pub fn is_rings(&self) -> bool {
        matches!(self, Self::Attached(input) if input.is_rings())
    }
}
