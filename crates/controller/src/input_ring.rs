//! Input rings: a shard's messages arrive in one ring instead of in its sockets.
//!
//! **What.** Each shard may have a ring ([`Controller::input_rings`](crate::Controller::input_rings)) that the kernel fills
//! with whole messages of all its switches. Other input is *passed*: the shard reads it from the socket as usual, and hands
//! the input back to the ring when all of it has been read. Replies are written as usual. Programs see no difference.
//!
//! **Order.** At any time, a connection's input belongs to the ring or to the shard. [`RingEntry::Passed`] marks in the
//! ring, after all earlier messages, the point from which it belongs to the shard.
//!
//! **Cost.** A shard without a ring checks an `Option` once per wait and once per batch.

use rustix::fd::BorrowedFd;
use std::io;
use urtica_wire::Version;

/// Creates rings. This crate defines the interface; `urtica-offload` implements it.
pub trait InputRings: Send + Sync {
    /// Opens a shard's ring. Each shard calls this once.
    ///
    /// # Errors
    /// If no ring can be opened; the shard then reads its sockets.
    fn open(&self) -> io::Result<Box<dyn InputRing>>;
}

/// One shard's ring.
pub trait InputRing: Send {
    /// Returns a descriptor that is readable while the ring is not empty.
    fn wakeup(&self) -> BorrowedFd<'_>;

    /// Attaches a connection, of which all input has been read. The shard keeps reading its socket until it hands the input
    /// over. Connection numbers are never reused.
    ///
    /// # Errors
    /// If it cannot be attached; its socket is read instead.
    fn attach(
        &mut self,
        connection: u64,
        socket: BorrowedFd,
        version: Version,
    ) -> io::Result<Box<dyn RingInput>>;

    /// Makes [`InputRing::next`] return all current entries, but none that arrive later.
    fn look(&mut self);

    /// Finds connections whose input belongs to the shard although no entry reports it: see [`RingInput::is_found_lost`].
    /// [`InputRing::next`] reports them.
    fn find_passed(&mut self);

    /// Returns the next entry, valid until the next call.
    fn next(&mut self) -> Option<RingEntry<'_>>;
}

/// An entry of a ring. Implementations of rings must know all kinds, so another kind would be a breaking change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingEntry<'r> {
    /// Whole messages of this connection, in order.
    Messages(u64, &'r [u8]),
    /// This connection's input may have been passed to the shard: see [`RingInput::take_back`].
    Passed(u64),
}

/// One connection's side of a ring.
pub trait RingInput: Send {
    /// Returns `true` if the input belongs to the ring, to the shard's knowledge.
    fn is_owned_by_ring(&self) -> bool;

    /// Notes that the shard has read `count` bytes from the socket.
    fn note_read(&mut self, count: usize);

    /// Hands the input over to the ring, with an incomplete message. Returns `false` if that is not possible now, for
    /// instance because more input was passed.
    fn hand_over(&mut self, fragment: &[u8]) -> bool;

    /// If input was passed, reclaims it for the shard and appends an incomplete message that the ring had kept to `input`.
    /// Returns whether input was passed.
    fn take_back(&mut self, input: &mut Vec<u8>) -> bool;

    /// Returns `true` if the ring has lost this socket, so that input may wait there unnoticed. Called a few times per
    /// second.
    fn is_found_lost(&mut self, socket: BorrowedFd) -> bool;

    /// Requests that further input be passed, after the current entries of the ring.
    fn ask_back(&self);

    /// Returns the counts since the last call.
    fn take_counts(&mut self) -> RingCounts;
}

/// The number of times that input bypassed the ring, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Input passed because it contained a message that cannot be sent through the ring, or because the switch did not read
    /// its replies.
    pub passed: u64,
    /// Input passed because the queue was long.
    pub fell_back: u64,
    /// Input passed because the ring was full.
    pub ring_full: u64,
}
