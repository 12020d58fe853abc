//! Connections whose handshake is under way.
//!
//! **Why apart.** Until a handshake is over nobody knows who is there, and it may be nobody. Whoever serves switches should not
//! meet such connections: here they share one epoll instance, which says nothing unless there is something to do.
//!
//! **Bounds.** [`MAX_HALF_OPEN`] connections, each for [`HANDSHAKE_TIMEOUT`]. Where one more comes, the oldest gives way, which has
//! had the most time: so those that say nothing keep nobody out.

use super::error::TlsError;
use super::session::Session;
use super::{Notice, Tls};
use crate::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// How long a peer has for its handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many connections may be in their handshake at once.
pub const MAX_HALF_OPEN: usize = 2048;

/// How many are served in one call. Each may take a millisecond of computing, for which its owner does nothing else.
const AT_ONCE: usize = 4;

/// The handshakes under way, and what they need.
///
/// Its descriptor is readable when there is something to do: then, and at [`Handshakes::next_timeout`], [`Handshakes::poll`] is
/// to be called.
pub struct Handshakes {
    tls: Tls,
    epoll: OwnedFd,
    /// By their age, the oldest first.
    half_open: BTreeMap<u64, HalfOpen>,
    next_number: u64,
    max_half_open: usize,
    /// What has ended otherwise than by its peer.
    ended: Vec<Ended>,
}

struct HalfOpen {
    socket: OwnedFd,
    session: Session,
    peer: String,
    tag: Option<usize>,
    deadline: Instant,
    interest: epoll::EventFlags,
}

/// A handshake that is over.
pub struct Ended {
    /// The peer's name.
    pub peer: String,
    /// What [`Handshakes::connect`] was given; `None` for a connection that was accepted.
    pub tag: Option<usize>,
    /// The connection, or why there is none.
    pub outcome: Result<Stream, TlsError>,
}

impl Handshakes {
    /// With nothing under way.
    ///
    /// # Errors
    /// Where the system has no room for an epoll instance.
    pub fn new(tls: Tls) -> io::Result<Self> {
        Ok(Self {
            tls,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            half_open: BTreeMap::new(),
            next_number: 0,
            max_half_open: MAX_HALF_OPEN,
            ended: Vec::new(),
        })
    }

    /// Has handshakes that begin from now on use the files as they are now: see [`Tls::refresh`].
    pub fn refresh(&mut self, now: SystemTime) -> Vec<Notice> {
        self.tls.refresh(now)
    }

    /// A peer has connected by this non-blocking socket, and will begin.
    pub fn accept(&mut self, socket: OwnedFd, peer: String, now: Instant) {
        let session = Session::server(&self.tls);
        self.begin(socket, session, peer, None, now);
    }

    /// We have connected by this non-blocking socket, and begin. `tag` comes back with the outcome.
    pub fn connect(&mut self, socket: OwnedFd, peer: String, tag: usize, now: Instant) {
        let session = Session::client(&self.tls);
        self.begin(socket, session, peer, Some(tag), now);
    }

    /// When there is something to do where nobody says anything.
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
        // An edge at the start, so that who connects has its first turn.
        let interest = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        let data = epoll::EventData::new_u64(number);
        let watched = epoll::add(&self.epoll, &socket, data, interest);
        let session = session.and_then(|session| {
            watched.map_err(io::Error::from)?;
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

    /// Goes on with those that are ready, some at a time; returns those that are over, well or not.
    pub fn poll(&mut self, now: Instant) -> Vec<Ended> {
        let mut events = Vec::with_capacity(AT_ONCE);
        let room = rustix::buffer::spare_capacity(&mut events);
        // A failure is one of ours, and shows at the deadlines.
        let _ = epoll::wait(&self.epoll, room, Some(&Timespec::default()));
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
                false => one.watch(&self.epoll, number).map(|()| false),
            });
        let outcome = match outcome {
            Ok(false) => return,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(over) = self.half_open.remove(&number) {
            // It fails only for what is not watched, which is what is wanted.
            let _ = epoll::delete(&self.epoll, &over.socket);
            self.ended.push(over.end(outcome));
        }
    }
}

impl AsFd for Handshakes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl HalfOpen {
    /// Waits for the peer to speak, and for room where something is to be said.
    fn watch(&mut self, epoll: &OwnedFd, number: u64) -> Result<(), TlsError> {
        let mut interest = epoll::EventFlags::IN;
        interest.set(epoll::EventFlags::OUT, self.session.has_unsent());
        if interest == self.interest {
            return Ok(());
        }
        self.interest = interest;
        let data = epoll::EventData::new_u64(number);
        epoll::modify(epoll, &self.socket, data, interest).map_err(io::Error::from)?;
        Ok(())
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
    /// Shakes hands with whom this socket is connected to, and returns when that is over. The socket may block or not, and
    /// stays as it is.
    ///
    /// # Errors
    /// [`TlsError`]; [`TlsError::Timeout`] where it takes longer than `timeout`.
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

/// Waits until the socket can be read, or written to where that is wanted.
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
