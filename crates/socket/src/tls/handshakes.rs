//! Handshakes in progress.
//!
//! **Why.** Until its handshake has finished, a peer is not authenticated. The code that serves switches should not handle such
//! connections: they share one epoll instance here, which is readable only when work is due.
//!
//! **Limits.** [`MAX_HALF_OPEN`] connections, each for [`HANDSHAKE_TIMEOUT`]. If one more arrives, the oldest is closed,
//! because it has had the most time. So silent connections cannot lock out other peers.

use super::error::TlsError;
use super::session::Session;
use super::{Notice, Tls};
use crate::{EventFlags, Poller, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// The time limit of a peer's handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of handshakes in progress.
pub const MAX_HALF_OPEN: usize = 2048;

/// The maximum number of connections served in one call. Each may use a millisecond of computing, during which the owner does
/// nothing else.
const AT_ONCE: usize = 4;

/// The handshakes in progress.
///
/// Its descriptor is readable when work is due. Call [`Handshakes::poll`] then and at [`Handshakes::next_timeout`].
pub struct Handshakes {
    tls: Tls,
    poller: Poller,
    /// By age, the oldest first.
    half_open: BTreeMap<u64, HalfOpen>,
    next_number: u64,
    max_half_open: usize,
    /// Handshakes that we have ended, not the peer.
    ended: Vec<Ended>,
}

struct HalfOpen {
    socket: OwnedFd,
    session: Session,
    peer: String,
    tag: Option<usize>,
    deadline: Instant,
    interest: EventFlags,
}

/// A finished handshake.
pub struct Ended {
    /// The peer's name.
    pub peer: String,
    /// The tag given to [`Handshakes::connect`]; `None` for an accepted connection.
    pub tag: Option<usize>,
    /// The connection, or the error.
    pub outcome: Result<Stream, TlsError>,
}

impl Handshakes {
    /// Creates an empty set.
    ///
    /// # Errors
    /// If the system cannot create an epoll instance.
    pub fn new(tls: Tls) -> io::Result<Self> {
        Ok(Self {
            tls,
            poller: Poller::new()?,
            half_open: BTreeMap::new(),
            next_number: 0,
            max_half_open: MAX_HALF_OPEN,
            ended: Vec::new(),
        })
    }

    /// Reloads changed files for later handshakes: see [`Tls::refresh`].
    pub fn refresh(&mut self, now: SystemTime) -> Vec<Notice> {
        self.tls.refresh(now)
    }

    /// Starts a handshake as the server on this non-blocking socket.
    pub fn accept(&mut self, socket: OwnedFd, peer: String, now: Instant) {
        let session = Session::server(&self.tls);
        self.begin(socket, session, peer, None, now);
    }

    /// Starts a handshake as the client on this non-blocking socket. `tag` is returned with the outcome.
    pub fn connect(&mut self, socket: OwnedFd, peer: String, tag: usize, now: Instant) {
        let session = Session::client(&self.tls);
        self.begin(socket, session, peer, Some(tag), now);
    }

    /// Returns the time of the next deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.half_open.values().next().map(|oldest| oldest.deadline)
    }

    fn begin(
        &mut self,
        socket: OwnedFd,
        session: Result<Session, TlsError>,
        peer: String,
        tag: Option<usize>,
        now: Instant,
    ) {
        let number = self.next_number;
        self.next_number += 1;
        // A new socket is writable, so an event follows at once and the client's first step runs.
        let interest = EventFlags::IN | EventFlags::OUT;
        let watched = self.poller.add(&socket, number, interest);
        let session = session.and_then(|session| {
            watched?;
            Ok(session)
        });
        match session {
            Ok(session) => {
                let deadline = now + HANDSHAKE_TIMEOUT;
                let begun = HalfOpen {
                    socket,
                    session,
                    peer,
                    tag,
                    deadline,
                    interest,
                };
                self.half_open.insert(number, begun);
            }
            Err(error) => self.ended.push(Ended {
                peer,
                tag,
                outcome: Err(error),
            }),
        }
        if self.half_open.len() > self.max_half_open {
            self.give_up_oldest(TlsError::TooMany(self.max_half_open));
        }
    }

    fn give_up_oldest(&mut self, reason: TlsError) {
        if let Some((_, oldest)) = self.half_open.pop_first() {
            self.ended.push(oldest.end(Err(reason)));
        }
    }

    /// Continues a limited number of ready handshakes; returns those that have finished or failed.
    pub fn poll(&mut self, now: Instant) -> Vec<Ended> {
        let mut events = Vec::with_capacity(AT_ONCE);
        // An error here would be a bug of ours; the handshakes would time out.
        let _ = self.poller.wait(&mut events, Some(Duration::ZERO));
        for event in &events {
            self.serve(event.data.u64());
        }
        while self.next_timeout().is_some_and(|deadline| deadline <= now) {
            self.give_up_oldest(TlsError::Timeout(HANDSHAKE_TIMEOUT));
        }
        std::mem::take(&mut self.ended)
    }

    fn serve(&mut self, number: u64) {
        let Some(one) = self.half_open.get_mut(&number) else {
            return;
        };
        let outcome = one
            .session
            .handshake(&one.socket)
            .and_then(|is_over| match is_over {
                true => Ok(true),
                false => one.watch(&self.poller, number).map(|()| false),
            });
        let outcome = match outcome {
            Ok(false) => return,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(over) = self.half_open.remove(&number) {
            self.poller.delete(&over.socket);
            self.ended.push(over.end(outcome));
        }
    }
}

impl AsFd for Handshakes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl HalfOpen {
    /// Waits for input, and for writability if output waits.
    fn watch(&mut self, poller: &Poller, number: u64) -> Result<(), TlsError> {
        let mut interest = EventFlags::IN;
        interest.set(EventFlags::OUT, self.session.has_unsent());
        if interest == self.interest {
            return Ok(());
        }
        self.interest = interest;
        Ok(poller.modify(&self.socket, number, interest)?)
    }

    fn end(self, outcome: Result<(), TlsError>) -> Ended {
        let stream = Stream::with_tls(self.socket, self.session);
        Ended {
            peer: self.peer,
            tag: self.tag,
            outcome: outcome.map(|()| stream),
        }
    }
}

impl Stream {
    /// Runs a handshake with the peer of this socket; returns when it has finished. Whether the socket is blocking does not
    /// matter, and does not change.
    ///
    /// # Errors
    /// [`TlsError`]; [`TlsError::Timeout`] if it needs longer than `timeout`.
    pub fn connect_tls(socket: OwnedFd, tls: &Tls, timeout: Duration) -> Result<Self, TlsError> {
        let flags = rustix::fs::fcntl_getfl(&socket).map_err(io::Error::from)?;
        let set = |flags| rustix::fs::fcntl_setfl(&socket, flags).map_err(io::Error::from);
        set(flags | rustix::fs::OFlags::NONBLOCK)?;
        let mut session = Session::client(tls)?;
        let deadline = Instant::now() + timeout;
        while !session.handshake(&socket)? {
            wait(&socket, session.has_unsent(), deadline, timeout)?;
        }
        set(flags)?;
        Ok(Self::with_tls(socket, session))
    }
}

/// Waits until the socket is readable, or writable if that is requested.
fn wait(
    socket: &OwnedFd,
    wants_write: bool,
    deadline: Instant,
    timeout: Duration,
) -> Result<(), TlsError> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    };
    let mut flags = PollFlags::IN;
    flags.set(PollFlags::OUT, wants_write);
    match poll(&mut [PollFd::new(socket, flags)], Some(&left)) {
        Ok(0) => Err(TlsError::Timeout(timeout)),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

#[cfg(test)]
mod tests;
