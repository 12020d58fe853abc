//! Transport: the bytes of a connection, in both directions.
//!
//! ```text
//!           ┌──────────────── Transport ────────────────┐
//! switch ───┼─► Channel ─► Front ──────────────► input ─┼─► Connection: session, handlers
//!        ◄──┼── Channel ◄─ Output ◄─ Hold's journal ◄───┼── replies, messages from the mailbox
//!           └───────────────────────────────────────────┘
//! ```
//! The *channel* is a socket, with or without TLS, or memory. In *front* of the program, a kernel half may answer input, or a
//! ring may carry it; the states of each are in a file of this folder. If a *holder* keeps the connection, a journal contains
//! all output before it is sent.

mod channel;
mod held;
mod hold;
mod kernel_half;
mod output;
mod ring;

use crate::backlog::Backlog;
use crate::input_ring::RingInput;
use crate::kernel_half::Resumed;
use crate::{ShardCounters, SwitchCounters};
pub(crate) use channel::Channel;
pub(crate) use hold::{Hold, Stored};
use kernel_half::Half;
use output::Output;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use urtica_socket::{Stream, is_try_again};

/// The reason why a connection cannot continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("cannot store its state for the next program: {0}")]
    Unkeepable(#[from] Errno),
}

/// A connection's bytes, and the parts that move them.
// Its methods are divided into a file for each part: the kernel half, the ring, the holder.
pub(crate) struct Transport<C> {
    channel: C,
    front: Front,
    /// The state that outlives the program, if a holder keeps the connection.
    hold: Option<Box<Hold>>,
    /// Bytes received but not handled: an incomplete frame, or more if the switch does not read.
    input: Vec<u8>,
    /// Whether the last read emptied the socket.
    is_drained: bool,
    /// Whether the last read found the end of the stream ahead of input that the kernel half has passed.
    found_early_end: bool,
    output: Output,
    /// Whether the last write to the socket was incomplete.
    was_full: bool,
}

/// The layer between the channel and the program.
enum Front {
    /// No layer.
    Program,
    /// No layer, since the shard's ring has refused the connection.
    RefusedByRing,
    Ring(Box<dyn RingInput>),
    KernelHalf(Half),
}

impl Front {
    fn kernel_half(&mut self) -> Option<&mut Half> {
        match self {
            Self::KernelHalf(half) => Some(half),
            _ => None,
        }
    }
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The program owns the connection, and handles the input, if any.
    Ours,
    /// The kernel half has passed something to the program, which must reclaim the connection first.
    Passed,
    /// No input: the kernel half owns the connection, and has answered the input that woke the shard.
    Answered,
}

/// The counters of writes.
#[derive(Clone, Copy)]
pub(crate) struct WriteCounters<'a> {
    pub shard: &'a ShardCounters,
    pub switch: &'a SwitchCounters,
}

impl Transport<Stream> {
    /// Returns the socket, to be watched.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Reads input. On a held connection it only peeks, so that the input stays in the queue until it is handled. Returns
    /// `None` if nothing was received.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.is_held() {
            return held::peek(self.socket(), buffer);
        }
        match self.channel.read(buffer) {
            Err(error) if is_try_again(&error) => Ok(None),
            read => read.map(Some),
        }
    }
}

impl<C: Channel> Transport<C> {
    pub fn new(channel: C) -> Self {
        Self {
            channel,
            front: Front::Program,
            hold: None,
            input: Vec::new(),
            is_drained: false,
            found_early_end: false,
            output: Output::default(),
            was_full: false,
        }
    }

    /// Continues a connection of an earlier program with the remaining output, an incomplete message that precedes the queue,
    /// and the kernel half, if any.
    pub fn resume(
        &mut self,
        hold: Hold,
        output: Vec<u8>,
        fragment: Vec<u8>,
        half: Option<Resumed>,
    ) {
        self.output.resume(output);
        self.hold = Some(Box::new(hold));
        self.input = fragment;
        if let Some(half) = half {
            self.front = Front::KernelHalf(Half::resumed(half));
        }
    }

    /// Returns the channel.
    pub fn channel(&self) -> &C {
        &self.channel
    }

    /// Returns the channel, from which the caller removes bytes.
    pub fn channel_mut(&mut self) -> &mut C {
        &mut self.channel
    }

    /// Returns whether the channel has yet to accept some output.
    pub fn is_waiting(&self) -> bool {
        !self.output.is_empty() || self.channel.has_unsent()
    }

    /// Returns whether the channel has yet to accept some replies: then no input is read (back-pressure). Messages from the
    /// mailbox, in any number, do not stop reading.
    pub fn is_stalled(&self) -> bool {
        self.output.replies() > 0
    }

    /// Returns the number of bytes of replies that the channel has not accepted.
    pub fn waiting_replies(&self) -> usize {
        self.output.replies()
    }

    /// Returns the number of bytes that the channel has not accepted.
    pub fn waiting_bytes(&self) -> usize {
        self.output.bytes().len()
    }

    /// Returns the count of bytes that were sent through the mailbox and are not written.
    pub fn backlog(&self) -> &Arc<Backlog> {
        self.output.backlog()
    }

    /// Notes that a read returned `count` bytes, and whether it emptied the socket.
    pub fn note_read(&mut self, count: usize, is_drained: bool) -> Found {
        self.is_drained = is_drained;
        if let Some(hold) = &mut self.hold {
            hold.begin_input(count);
        }
        match &mut self.front {
            Front::Program | Front::RefusedByRing => Found::Ours,
            Front::Ring(ring) => {
                ring.note_read(count);
                Found::Ours
            }
            Front::KernelHalf(half) => {
                // A read from a held connection's queue has not removed anything yet.
                if self.hold.is_none() {
                    half.note_read(count);
                }
                match half.is_owner() {
                    true if count == 0 && !half.has_passed() => Found::Answered,
                    true => Found::Passed,
                    false => Found::Ours,
                }
            }
        }
    }

    /// Removes and returns the bytes that were received but not handled.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Appends to the bytes that were received but not handled.
    pub fn keep_input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Returns the number of bytes that were received but not handled.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Moves the bytes that were received but not handled to `to`, which has their length.
    pub fn drain_input(&mut self, to: &mut [u8]) {
        to.copy_from_slice(&self.input);
        self.input.clear();
    }

    /// Keeps the end of the input that was just handled: an incomplete message, or more if the switch does not read our
    /// replies.
    pub fn keep_rest(&mut self, rest: &[u8]) {
        match self.is_held() {
            false => self.input.extend_from_slice(rest),
            true => self.keep_in_queue(rest),
        }
    }

    /// Appends messages from the mailbox, of which the backlog has counted `counted` bytes.
    pub fn queue(&mut self, messages: &[u8], counted: usize) {
        self.output.add_counted(messages, counted);
        if let Some(hold) = &mut self.hold {
            hold.note_added(messages.len());
        }
    }

    /// Sends replies behind waiting output. Bytes that the channel does not accept wait here.
    pub fn send(&mut self, replies: &[u8], counters: WriteCounters) -> Result<(), TransportError> {
        if self.is_waiting() || !self.may_write() {
            self.output.add(replies);
            return Ok(());
        }
        let sent = write(&mut self.channel, replies, counters)?;
        self.note_written(sent);
        if sent < replies.len() {
            counters.switch.stalls.add(1);
            self.was_full = true;
            self.output.add(&replies[sent..]);
        }
        Ok(())
    }

    /// Sends waiting output. Returns whether the switch has read from a full socket, which is a sign of life; earlier free
    /// space is not.
    pub fn flush(&mut self, counters: WriteCounters) -> Result<bool, TransportError> {
        let has_moved = self.channel.flush()?;
        let mut sent = 0;
        while sent < self.output.bytes().len() {
            match write(&mut self.channel, &self.output.bytes()[sent..], counters)? {
                0 => break,
                count => sent += count,
            }
        }
        let has_moved = has_moved || sent > 0;
        if has_moved {
            self.note_written(sent);
            self.output.remove(sent);
        }
        let is_alive = has_moved && self.was_full;
        self.was_full = self.is_waiting();
        self.output.subtract_written();
        Ok(is_alive)
    }

    /// Returns `true` if the program may write to the socket now: not before the kernel half's replies are written.
    pub fn may_write(&mut self) -> bool {
        match (&mut self.front, self.channel.socket()) {
            (Front::KernelHalf(half), Some(socket)) => half.may_write(socket),
            _ => true,
        }
    }

    /// Frees buffers that an idle switch does not need.
    pub fn shrink(&mut self) {
        if self.input.is_empty() {
            self.input.shrink_to(0);
        }
        self.output.shrink();
    }

    fn note_written(&mut self, count: usize) {
        if let Some(half) = self.front.kernel_half() {
            half.note_written(count);
        }
    }
}

/// Writes to a channel once, and counts the write.
fn write<C: Channel>(
    channel: &mut C,
    bytes: &[u8],
    counters: WriteCounters,
) -> Result<usize, TransportError> {
    counters.shard.writes.add(1);
    let sent = channel.send(bytes)?;
    counters.shard.sent_bytes.add(sent as u64);
    counters.switch.sent_bytes.add(sent as u64);
    Ok(sent)
}
