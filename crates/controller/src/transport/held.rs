//! A connection that a holder keeps: see `hold.rs`.
//!
//! A handler's replies to a message are in the journal before the message counts as handled: see [`urtica_hold`].

use super::hold::{Hold, Stored};
use super::{Channel, Front, Transport, TransportError};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use urtica_hold::{Id, Link};

impl<C: Channel> Transport<C> {
    /// Adds a newly accepted connection to the holder.
    ///
    /// # Errors
    /// If the holder cannot keep it; the connection works without.
    pub fn hold(&mut self, link: &Arc<Link>, peer: &str) -> io::Result<()> {
        let socket = self.channel.socket().ok_or(io::ErrorKind::Unsupported)?;
        self.hold = Some(Box::new(Hold::begin(link, socket, peer)?));
        Ok(())
    }

    /// Returns `true` if a holder keeps it.
    pub fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// Returns its id at the holder, if that keeps the connection and an earlier program's kernel half that this program can
    /// continue.
    pub fn resumable_half(&self) -> Option<Id> {
        match (&self.front, &self.hold) {
            (Front::KernelHalf(half), Some(hold)) if !half.is_let_go() => Some(hold.id()),
            _ => None,
        }
    }

    /// Returns the number of bytes of the next read that were seen before.
    pub fn left(&self) -> usize {
        self.hold.as_ref().map_or(0, |hold| hold.left())
    }

    /// Returns whether the queue contains only an incomplete message, so that more input must arrive first.
    pub fn awaits_rest(&self) -> bool {
        self.is_drained && self.left() > 0 && !self.is_stalled()
    }

    /// Notes that all input of this read is handled, except the last `left` bytes.
    pub fn note_left(&mut self, left: usize) {
        if let Some(hold) = &mut self.hold {
            hold.note_left(left);
        }
    }

    /// Stores the switch's features reply.
    pub fn note_features(&mut self, frame: &[u8]) -> Result<(), TransportError> {
        match &mut self.hold {
            Some(hold) => Ok(hold.note_features(frame)?),
            None => Ok(()),
        }
    }

    /// Keeps the rest of the handled input: an incomplete message, or more if the switch does not read our replies. It stays
    /// in the queue; with a kernel half, an incomplete message is stored there.
    #[cold] // so that connections that nobody keeps pay a comparison
    pub(super) fn keep_in_queue(&mut self, rest: &[u8]) {
        let is_stalled = self.is_stalled();
        let Some(hold) = &mut self.hold else {
            return;
        };
        hold.note_left(rest.len());
        if let Front::KernelHalf(half) = &mut self.front {
            let may_store = !is_stalled && !half.is_let_go() && hold.left() > 0;
            if may_store && rest.len() <= half.max_fragment() {
                if let Some(kept) = half.kept() {
                    hold.store(kept.store_fragment(rest));
                }
            }
        }
        self.input.extend_from_slice(&rest[..hold.fragment()]);
    }

    /// Writes all output to the journal before it is sent: the output from the mailbox, and these replies together with the
    /// input that they answer. `word` is the session's state, `space` memory for discarded input.
    #[cold]
    pub fn commit(
        &mut self,
        replies: &[u8],
        word: u64,
        space: &mut Vec<u8>,
    ) -> Result<(), TransportError> {
        let (Some(hold), Some(socket)) = (&mut self.hold, self.channel.socket()) else {
            return Ok(());
        };
        match self.front.kernel_half() {
            Some(half) if half.is_owner() => {}
            half => {
                let output = self.output.bytes();
                let discarded = hold.commit(socket, output, replies, word, space)?;
                if let (Some(half), 1..) = (half, discarded) {
                    half.note_read(discarded);
                }
            }
        }
        Ok(())
    }

    /// Like [`Transport::commit`], for the output from the mailbox only.
    #[cold]
    pub fn commit_output(&mut self, word: u64) -> Result<(), TransportError> {
        let is_owned_by_kernel = self.is_owned_by_kernel();
        match &mut self.hold {
            Some(hold) if !is_owned_by_kernel => Ok(hold.note_output(self.output.bytes(), word)?),
            _ => Ok(()),
        }
    }

    /// Notes that the program owns the connection again, and that the message before its queue is stored with the kernel
    /// half.
    pub(super) fn note_reclaimed(&mut self) {
        let (Some(hold), Some(half)) = (&mut self.hold, self.front.kernel_half()) else {
            return;
        };
        if let Some(kept) = half.kept() {
            let bytes = self.input.len();
            let stored = Stored {
                taken: kept.taken(),
                word: kept.fragment_word(bytes),
            };
            hold.reclaim(bytes, stored);
        }
    }

    /// Makes the holder, if any, keep the kernel half's state for the next program. Returns `true` if it had not kept it
    /// before.
    pub(super) fn keep_half(&mut self) -> Result<bool, TransportError> {
        let (Some(hold), Some(half)) = (&mut self.hold, self.front.kernel_half()) else {
            return Ok(false);
        };
        let is_new = half.keep(&hold.keeper())?;
        if is_new {
            hold.begin_half()?;
        }
        Ok(is_new)
    }

    /// Ends an earlier program's kernel half, once all input that it passed is handled and all its answers are written.
    /// `word` is the session's state. Returns whether it has ended.
    #[cold]
    pub fn end_half(&mut self, word: u64) -> Result<bool, TransportError> {
        let (Some(hold), Some(half), Some(socket)) = (
            &mut self.hold,
            self.front.kernel_half(),
            self.channel.socket(),
        ) else {
            return Ok(false);
        };
        if hold.fragment() > 0 || half.has_events() || !half.may_write(socket) {
            return Ok(false);
        }
        let Some(kept) = half.kept() else {
            return Ok(false);
        };
        let Some(progress) = kept.let_go(socket)? else {
            return Ok(false);
        };
        hold.end_half(progress, self.output.bytes(), word)?;
        self.front = Front::Program;
        Ok(true)
    }

    /// Leaves the connection to the next program, with its kernel half, which keeps running.
    pub fn leave(&mut self) {
        if let (Some(_), Some(half)) = (self.hold.take(), self.front.kernel_half()) {
            if let Some(kept) = half.kept() {
                kept.leave();
            }
        }
    }

    /// Makes the holder forget a connection that ends.
    pub fn end_hold(&mut self) {
        if let (Some(hold), Some(socket)) = (self.hold.take(), self.channel.socket()) {
            hold.end(socket);
        }
    }
}

/// Peeks at a held connection's queue, so that input stays there until it is handled. Returns `None` if the queue is empty.
pub(super) fn peek(socket: rustix::fd::BorrowedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match Hold::look(socket, buffer) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        seen => Ok(seen.map(Some)?),
    }
}
