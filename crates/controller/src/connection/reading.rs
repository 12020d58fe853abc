//! The events that a connection waits for, and the read of a ready socket.

use super::{Close, Connection};
use crate::batch::BatchContext;
use crate::transport::Found;
use rustix::fd::BorrowedFd;

/// Space in front of a read for an incomplete frame of the previous read; no frame is longer.
const FRAGMENT_BYTES: usize = 64 << 10;

/// The maximum number of bytes read from one switch for one batch.
const READ_BYTES: usize = 256 << 10;

/// The length of the buffer that a shard lends its connections.
pub(crate) const BUFFER_BYTES: usize = FRAGMENT_BYTES + READ_BYTES;

/// A socket's readiness after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    /// Whether it has input.
    pub has_input: bool,
    /// Whether the peer sends no more, or the connection has failed.
    pub is_closed: bool,
}

/// The events to wait for on a connection's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub input: Awaited,
    /// Whether to wait until the socket accepts output.
    pub output: bool,
}

impl Interest {
    /// Waits for space for output only.
    pub const OUTPUT: Self = Self {
        input: Awaited::Nothing,
        output: true,
    };
}

/// The input to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// No input, since the switch does not read our replies (back-pressure).
    Nothing,
    /// Only the end: input is announced by the kernel half's wake-up, or by the ring.
    End,
    /// Input beyond what is queued: the rest of a message whose start stays in the queue.
    More,
    Any,
}

impl Connection {
    /// Returns the socket, to be watched.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.transport.socket()
    }

    /// Returns a descriptor that was watched in addition to the socket, and no longer needs to be.
    pub fn take_wakeup(&mut self) -> Option<BorrowedFd<'_>> {
        self.transport.take_wakeup()
    }

    /// Returns `true` if decrypted input is available, or the socket has input.
    pub fn has_input(&self) -> bool {
        self.transport.channel().has_input()
    }

    /// Returns the events to wait for.
    pub fn interest(&self) -> Interest {
        let transport = &self.transport;
        let is_others = transport.is_owned_by_kernel() || transport.is_owned_by_ring();
        let input = match () {
            _ if transport.is_stalled() => Awaited::Nothing,
            _ if is_others => Awaited::End,
            _ if transport.awaits_rest() || transport.awaits_passed() => Awaited::More,
            _ => Awaited::Any,
        };
        Interest {
            input,
            output: transport.is_waiting(),
        }
    }

    /// Serves a ready socket: sends waiting output, and then, if no replies remain, reads into `buffer`, which has
    /// [`BUFFER_BYTES`].
    pub fn serve(
        &mut self,
        ready: Ready,
        buffer: &mut [u8],
        batch: &mut BatchContext,
    ) -> Result<(), Close> {
        if self.is_waiting() {
            self.resume_output(batch)?;
        }
        // Input that the ring owns arrives there first.
        let has_input = ready.has_input && !self.transport.is_owned_by_ring();
        if !self.is_stalled() && (has_input || ready.is_closed) {
            self.read(buffer, batch)?;
            // The rest of the message will never arrive.
            let is_end = ready.is_closed && !self.transport.is_end_early();
            if self.transport.awaits_rest() && is_end {
                return Err(Close::ByPeer);
            }
        }
        Ok(())
    }

    /// Reads once, behind an incomplete frame that the last read may have left, and handles the input.
    fn read(&mut self, buffer: &mut [u8], batch: &mut BatchContext) -> Result<(), Close> {
        batch.network.shard(batch.shard).counters.reads.add(1);
        if self.transport.is_owned_by_ring() {
            // The switch has closed its end: the ring may have passed input earlier without an entry that says so.
            self.take_back_from_ring(batch);
        }
        let received = self.transport.receive(&mut buffer[FRAGMENT_BYTES..])?;
        let is_end = received == Some(0);
        if is_end && !self.transport.is_end_early() {
            return Err(Close::ByPeer);
        }
        let count = received.unwrap_or(0);
        self.transport.note_early_end(is_end);
        batch.note_read();
        let shard = &batch.network.shard(batch.shard).counters;
        let new = count.saturating_sub(self.transport.left());
        shard.received_bytes.add(new as u64);
        match self.transport.note_read(count, count < READ_BYTES) {
            Found::Answered => return Ok(()),
            Found::Passed => self.reclaim(batch),
            Found::Ours => {}
        }
        self.handle_events(batch);
        let start = FRAGMENT_BYTES - self.transport.input_len();
        self.transport
            .drain_input(&mut buffer[start..FRAGMENT_BYTES]);
        self.handle_input(&buffer[start..FRAGMENT_BYTES + count], batch)?;
        self.flush(batch)
    }

    /// Ends a stall: sends waiting output, then handles input that was received before the stall.
    fn resume_output(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        self.flush_backlog(batch)?;
        if self.is_stalled() {
            return Ok(());
        }
        // A held connection's unhandled input is in the socket's queue. Here is only the start of a message that continues
        // there.
        if !self.transport.is_held() && self.transport.input_len() > 0 {
            batch.note_read();
            self.handle_kept_input(batch)?;
        }
        self.flush(batch)
    }
}
