//! A connection's entries in the maps of sockets.

use super::SIGNAL_AFTER;
use crate::socket::{Way, cookie};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// A pair of Unix sockets, through which replies are sent.
pub(super) struct Relay {
    pub(super) relay: OwnedFd,
    pub(super) exit: OwnedFd,
}

impl Relay {
    pub(super) fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (relay, exit) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok(Self { relay, exit })
    }

    /// Returns the path of a switch's bytes through this pair.
    pub(super) fn way<'a>(&'a self, switch: BorrowedFd<'a>) -> io::Result<Way<'a>> {
        Ok(Way {
            switch,
            switch_cookie: cookie(switch)?,
            relay: self.relay.as_fd(),
            exit: self.exit.as_fd(),
            relay_cookie: cookie(self.relay.as_fd())?,
        })
    }
}

/// State while the switch's socket is attached.
pub(super) struct Attached {
    /// Keeps the path of the replies open.
    pub(super) relay: Relay,
    pub(super) cookies: [u64; 2],
    /// Whether input passes through the kernel's programs instead of directly to the program.
    pub(super) is_in: bool,
    /// Whether the kernel's part is lost, since another process has removed the socket from the maps.
    pub(super) is_gone: bool,
    /// Number of bytes read before the socket was attached.
    pub(super) before: u64,
    /// Number of bytes that the program has received directly and read since then.
    pub(super) read_aside: u64,
    /// Number of passed bytes that the program has read.
    pub(super) read: u64,
    /// Number of bytes written before, plus those that the program has written since.
    pub(super) written: u64,
    /// Number of bytes of the kernel's replies that are known to be written.
    pub(super) drained: u64,
    /// The time since when these replies have waited in the session, and the number of bytes that left it before them.
    pub(super) unsent_since: Option<(Instant, u64)>,
}

impl Attached {
    /// Signals replies to the kernel's programs again if they do not leave the session. They are normally signalled by the
    /// answered input, which the kernel drops, for instance, if memory is short. Called while the program owns the connection:
    /// no reply is added then, so two concurrent signals find one set of replies and cannot reorder them.
    pub(super) fn signal_if_late(&mut self, replied: u64, unsent: u32) {
        if unsent == 0 {
            self.unsent_since = None;
            return;
        }
        let left = replied.saturating_sub(unsent.into());
        match self.unsent_since {
            Some((since, before)) if before == left => {
                if since.elapsed() >= SIGNAL_AFTER {
                    self.unsent_since = None;
                    // Fails if the relay is already full of signals.
                    let _ = send(&self.relay.relay, &[0], SendFlags::DONTWAIT);
                }
            }
            _ => self.unsent_since = Some((Instant::now(), left)),
        }
    }
}
