//! The way into a shard from other threads: a bounded queue of commands, woken by one eventfd write per batch.

use crate::connection::Connection;
use crate::request::ReplySender;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Names a connection for as long as the controller runs, whichever shard has it.
pub(crate) type Token = u64;

/// What a shard can be asked to do.
pub(crate) enum Command {
    /// Take on a connection: a new one, or one that another shard gave away.
    Adopt(Box<Connection>),
    /// Give connections that make up about `load` messages a second to another shard.
    Give { to: usize, load: u64 },
    /// Send these bytes, a whole message, to a switch; where a reply is awaited, give the message an xid for it.
    Send {
        token: Token,
        bytes: Vec<u8>,
        reply: Option<ReplySender>,
    },
    /// Close a connection, because of `reason`.
    Close { token: Token, reason: &'static str },
    /// Flush all connections, close them, and end.
    Stop,
}

/// How many bytes may wait in one mailbox. Beyond that, senders are refused.
const CAPACITY_BYTES: usize = 64 << 20;

/// A shard's mailbox.
///
/// Thread-safety: any thread pushes; the shard alone drains. The lock is held for a push or a swap, never over I/O.
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    wakeup: OwnedFd,
}

#[derive(Default)]
struct Queue {
    commands: Vec<Command>,
    bytes: usize,
}

impl Mailbox {
    pub fn new() -> std::io::Result<Self> {
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            queue: Mutex::default(),
            wakeup,
        })
    }

    /// Becomes readable when there is something to drain.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// Puts a command in; gives it back where a message finds the mailbox full.
    pub fn push(&self, command: Command) -> Result<(), Command> {
        let size = match &command {
            Command::Send { bytes, .. } => bytes.len(),
            _ => 0,
        };
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if size > 0 && queue.bytes + size > CAPACITY_BYTES {
            return Err(command);
        }
        queue.bytes += size;
        let was_empty = queue.commands.is_empty();
        queue.commands.push(command);
        drop(queue);
        if was_empty {
            // Cannot fail but for a counter at its limit, in which case the shard is being woken already.
            let _ = rustix::io::write(&self.wakeup, &1_u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Takes out all commands, leaving `emptied` for the next ones, so that two vectors serve for life.
    pub fn drain_into(&self, emptied: &mut Vec<Command>) {
        let _ = rustix::io::read(&self.wakeup, &mut [0; 8]);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.bytes = 0;
        std::mem::swap(&mut queue.commands, emptied);
    }
}
