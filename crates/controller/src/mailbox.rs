//! A shard's mailbox for other threads: a queue of commands, with one eventfd write per batch to wake it.
//!
//! [`Backlog`](crate::backlog::Backlog) bounds the number of message bytes in it for each switch.

use crate::request::Asker;
use crate::role::RoleRequest;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Identifies a connection for the controller's lifetime, on any shard.
pub(crate) type Token = u64;

/// A command to a shard.
pub(crate) enum Command {
    /// Adopt the connections in the shard's queue: new ones, and connections handed over by another shard.
    Adopt,
    /// Hand a connection with about `share` (0 to 1) of the shard's load over to another shard.
    Give { to: usize, share: f64 },
    /// Send these bytes, `count` whole messages, to a switch; if a reply is expected, with an xid for it.
    Send {
        token: Token,
        bytes: Vec<u8>,
        count: u64,
        reply: Option<Asker>,
    },
    /// Send these bytes, `count` whole frames of a raw program, to a switch.
    SendFrames {
        token: Token,
        bytes: Vec<u8>,
        count: u64,
    },
    /// Request a role from a switch.
    AskForRole {
        token: Token,
        request: RoleRequest,
        asker: Asker,
    },
    /// Close a connection for this reason.
    Close { token: Token, reason: &'static str },
    /// Apply the list of programs in use to all switches.
    FollowPrograms,
    /// Flush and close all connections, and end.
    Stop,
    /// Leave all held connections to the next program, close the others, and end.
    Leave,
}

/// A shard's mailbox.
///
/// Thread-safety: any thread pushes; only the shard drains. The lock is held for a push or a swap, never over I/O.
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    wakeup: OwnedFd,
}

#[derive(Default)]
struct Queue {
    commands: Vec<Command>,
    /// Whether the shard has ended.
    closed: bool,
}

impl Command {
    fn is_for(&self, wanted: Token) -> bool {
        match self {
            Self::Send { token, .. }
            | Self::SendFrames { token, .. }
            | Self::AskForRole { token, .. }
            | Self::Close { token, .. } => *token == wanted,
            _ => false,
        }
    }
}

impl Mailbox {
    pub fn new() -> std::io::Result<Self> {
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            queue: Mutex::default(),
            wakeup,
        })
    }

    /// Returns a descriptor that becomes readable when commands arrive.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// Returns whether no commands wait.
    pub fn is_empty(&self) -> bool {
        self.lock().commands.is_empty()
    }

    /// Returns the number of commands that wait.
    pub fn len(&self) -> usize {
        self.lock().commands.len()
    }

    /// Pushes a command; returns it if the mailbox is closed.
    pub fn push(&self, command: Command) -> Result<(), Command> {
        let mut queue = self.lock();
        if queue.closed {
            return Err(command);
        }
        let was_empty = queue.commands.is_empty();
        queue.commands.push(command);
        drop(queue);
        if was_empty {
            self.wake();
        }
        Ok(())
    }

    /// Pushes commands that waited in another mailbox; returns them if this one is closed.
    pub fn push_moved(&self, mut commands: Vec<Command>) -> Result<(), Vec<Command>> {
        let mut queue = self.lock();
        if queue.closed {
            return Err(commands);
        }
        queue.commands.append(&mut commands);
        drop(queue);
        self.wake();
        Ok(())
    }

    /// Removes the commands for one connection and returns them in order.
    pub fn take_for(&self, token: Token) -> Vec<Command> {
        let mut queue = self.lock();
        let commands = std::mem::take(&mut queue.commands).into_iter();
        let (taken, left) = commands.partition(|command| command.is_for(token));
        queue.commands = left;
        taken
    }

    /// Closes the mailbox and returns the remaining commands, whose callers must not wait for a shard that has ended.
    pub fn close(&self) -> Vec<Command> {
        let mut queue = self.lock();
        queue.closed = true;
        std::mem::take(&mut queue.commands)
    }

    /// Swaps all commands with the empty vector `emptied`, so that two vectors are reused for ever.
    pub fn drain_into(&self, emptied: &mut Vec<Command>) {
        let _ = rustix::io::read(&self.wakeup, &mut [0; 8]);
        std::mem::swap(&mut self.lock().commands, emptied);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    fn wake(&self) {
        // Fails only if the counter is at its limit, when the shard is being woken already.
        let _ = rustix::io::write(&self.wakeup, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(token: Token, count: u64) -> Command {
        Command::Send {
            token,
            bytes: Vec::new(),
            count,
            reply: None,
        }
    }

    fn drain(mailbox: &Mailbox) -> Vec<Command> {
        let mut commands = Vec::new();
        mailbox.drain_into(&mut commands);
        commands
    }

    #[test]
    fn messages_of_a_connection_are_removed_in_order() {
        let mailbox = Mailbox::new().unwrap();
        for (token, count) in [(1, 4), (2, 3), (1, 2)] {
            assert!(mailbox.push(message(token, count)).is_ok());
        }
        let close = Command::Close {
            token: 1,
            reason: "",
        };
        assert!(mailbox.push(close).is_ok());
        let count = |command: &Command| match command {
            Command::Send { count, .. } => Some(*count),
            _ => None,
        };
        let counts: Vec<_> = mailbox.take_for(1).iter().map(count).collect();
        assert_eq!(counts, [Some(4), Some(2), None]);
        assert_eq!(drain(&mailbox).len(), 1);
    }

    #[test]
    fn closed_mailboxes_return_messages() {
        let mailbox = Mailbox::new().unwrap();
        assert!(mailbox.push(message(1, 1)).is_ok());
        assert_eq!(mailbox.close().len(), 1);
        assert!(mailbox.push(Command::Stop).is_err());
        assert!(mailbox.push_moved(vec![Command::Stop]).is_err());
        assert!(drain(&mailbox).is_empty());
    }
}
