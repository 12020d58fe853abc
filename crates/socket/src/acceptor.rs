//! Accepting connections: listeners and TLS handshakes behind one descriptor.
//!
//! **Descriptors that run out.** A connection that cannot be accepted for lack of a descriptor stays in the queue, so its
//! listener stays readable, and a loop that waits for it would spin. So accepting pauses for [`EXHAUSTED_PAUSE`].
//!
//! **Certificates that change.** The files for TLS are checked once a second; later handshakes use the new files.

use crate::{Ended, EventFlags, Handshakes, Listener, Notice, Poller, Stream, Tls, TlsError};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// The time for which accepting pauses when the system has run out of a resource, usually file descriptors.
pub const EXHAUSTED_PAUSE: Duration = Duration::from_millis(200);

/// The interval at which files for TLS are checked for changes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of connections accepted from a listener in one call, during which the caller does nothing else.
const AT_ONCE: usize = 16;

/// The maximum number of descriptors served in one call.
const EVENTS: usize = 16;

/// The key of the handshakes, whose event has no listener's number.
const HANDSHAKES: u64 = u64::MAX;

/// Accepts connections at listeners, and runs the TLS handshakes of these and of connections that the caller makes.
///
/// Its descriptor is readable when work is due. Call [`Acceptor::poll`] then and at [`Acceptor::next_timeout`].
pub struct Acceptor {
    /// Watches the listeners, except during a pause, and the handshakes.
    poller: Poller,
    listeners: BTreeMap<ListenerId, Listener>,
    next_id: u64,
    handshakes: Option<Handshakes>,
    next_refresh: Instant,
    paused_until: Option<Instant>,
    /// Whether [`Accepted::Paused`] was returned since a connection was last accepted.
    has_reported: bool,
}

/// The number of a listener in an [`Acceptor`]; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u64);

/// An event of an [`Acceptor`]. The caller must handle each kind, so adding one would be a breaking change.
pub enum Accepted {
    /// A connection is ready.
    Connection {
        /// The connection, which is non-blocking.
        stream: Stream,
        /// The peer's name.
        peer: String,
        /// The tag given to [`Acceptor::connect`]; `None` for an accepted connection.
        tag: Option<usize>,
    },
    /// A TLS handshake failed.
    Refused {
        /// The peer's name.
        peer: String,
        /// As in [`Accepted::Connection`].
        tag: Option<usize>,
        /// The reason.
        reason: TlsError,
    },
    /// No connection can be accepted for now. Returned once, until a connection is accepted again.
    Paused(AcceptError),
    /// The files for TLS have changed, or an operator must check them.
    Notice(Notice),
}

/// The reason why no connection can be accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// This process, or the system, has no file descriptor left.
    #[error("no file descriptors are left ({0}); raise the limit of open files (`ulimit -n`)")]
    NoDescriptors(io::Error),
    /// Another system error.
    #[error("{0}")]
    Io(io::Error),
}

impl Acceptor {
    /// Creates an acceptor without listeners.
    ///
    /// # Errors
    /// If the system cannot create an epoll instance.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new()?,
            listeners: BTreeMap::new(),
            next_id: 0,
            handshakes: None,
            next_refresh: Instant::now(),
            paused_until: None,
            has_reported: false,
        })
    }

    /// Uses TLS at `pssl:` listeners, and with the peers of [`Acceptor::connect`]. Call it once.
    ///
    /// # Errors
    /// If the system cannot create or use an epoll instance.
    pub fn speak_tls(&mut self, tls: Tls) -> io::Result<()> {
        let handshakes = Handshakes::new(tls)?;
        self.watch(&handshakes, HANDSHAKES)?;
        self.handshakes = Some(handshakes);
        Ok(())
    }

    /// Returns `true` after [`Acceptor::speak_tls`]; until then, connections at `pssl:` are accepted without TLS.
    pub fn speaks_tls(&self) -> bool {
        self.handshakes.is_some()
    }

    /// Accepts connections at another listener.
    ///
    /// # Errors
    /// If the system cannot watch it.
    pub fn add(&mut self, listener: Listener) -> io::Result<ListenerId> {
        let id = ListenerId(self.next_id);
        if self.paused_until.is_none() {
            self.watch(&listener, id.0)?;
        }
        self.next_id += 1;
        self.listeners.insert(id, listener);
        Ok(id)
    }

    /// Stops accepting at a listener, and returns it.
    pub fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        let listener = self.listeners.remove(&id)?;
        self.poller.delete(&listener);
        Some(listener)
    }

    /// Stops accepting, and returns all listeners.
    pub fn take_listeners(&mut self) -> Vec<Listener> {
        let listeners = std::mem::take(&mut self.listeners);
        for listener in listeners.values() {
            self.poller.delete(listener);
        }
        listeners.into_values().collect()
    }

    /// Returns the listeners.
    pub fn listeners(&self) -> impl Iterator<Item = (ListenerId, &Listener)> {
        self.listeners.iter().map(|(&id, listener)| (id, listener))
    }

    /// Starts a handshake as the client on a connected, non-blocking socket. `tag` is returned with its outcome. Without
    /// [`Acceptor::speak_tls`], it returns the stream at once, without TLS.
    pub fn connect(
        &mut self,
        socket: OwnedFd,
        peer: String,
        tag: usize,
        now: Instant,
    ) -> Option<Accepted> {
        match &mut self.handshakes {
            Some(handshakes) => {
                handshakes.connect(socket, peer, tag, now);
                None
            }
            None => Some(Accepted::Connection {
                stream: socket.into(),
                peer,
                tag: Some(tag),
            }),
        }
    }

    /// Returns when to call [`Acceptor::poll`] even if the descriptor is not readable.
    pub fn next_timeout(&self) -> Option<Instant> {
        let handshakes = self.handshakes.as_ref();
        let refresh = handshakes.map(|_| self.next_refresh);
        let handshake = handshakes.and_then(Handshakes::next_timeout);
        let times = [self.paused_until, handshake, refresh];
        times.into_iter().flatten().min()
    }

    /// Accepts a limited number of the waiting connections, and continues handshakes.
    pub fn poll(&mut self, now: Instant) -> Vec<Accepted> {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.resume();
        }
        let mut accepted = Vec::new();
        for ready in self.ready() {
            if ready != HANDSHAKES {
                self.accept_some(ListenerId(ready), now, &mut accepted);
            }
        }
        self.continue_handshakes(now, &mut accepted);
        accepted
    }

    fn ready(&self) -> Vec<u64> {
        let mut events = Vec::with_capacity(EVENTS);
        // An error here would be a bug of ours.
        let _ = self.poller.wait(&mut events, Some(Duration::ZERO));
        events.iter().map(|event| event.data.u64()).collect()
    }

    fn accept_some(&mut self, id: ListenerId, now: Instant, accepted: &mut Vec<Accepted>) {
        for _ in 0..AT_ONCE {
            let Some(listener) = self.listeners.get(&id) else {
                return;
            };
            let is_tls = listener.address().is_tls();
            let (socket, peer) = match listener.accept() {
                Ok(connected) => connected,
                Err(error) => return accepted.extend(self.note_error(error, now)),
            };
            self.has_reported = false;
            match &mut self.handshakes {
                Some(handshakes) if is_tls => handshakes.accept(socket, peer, now),
                _ => accepted.push(Accepted::Connection {
                    stream: socket.into(),
                    peer,
                    tag: None,
                }),
            }
        }
    }

    fn continue_handshakes(&mut self, now: Instant, accepted: &mut Vec<Accepted>) {
        let Some(handshakes) = &mut self.handshakes else {
            return;
        };
        let ended = handshakes.poll(now).into_iter();
        accepted.extend(ended.map(|Ended { peer, tag, outcome }| match outcome {
            Ok(stream) => Accepted::Connection { stream, peer, tag },
            Err(reason) => Accepted::Refused { peer, tag, reason },
        }));
        if now >= self.next_refresh {
            self.next_refresh = now + REFRESH_INTERVAL;
            let notices = handshakes.refresh(SystemTime::now());
            accepted.extend(notices.into_iter().map(Accepted::Notice));
        }
    }

    /// Pauses after an error, unless it concerns a single connection. No error is a reason to stop listening.
    fn note_error(&mut self, error: io::Error, now: Instant) -> Option<Accepted> {
        let error = match Errno::from_io_error(&error) {
            // No connection waits, or the peer has disconnected.
            Some(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return None,
            Some(Errno::MFILE | Errno::NFILE) => AcceptError::NoDescriptors(error),
            _ => AcceptError::Io(error),
        };
        for listener in self.listeners.values() {
            self.poller.delete(listener);
        }
        self.paused_until = Some(now + EXHAUSTED_PAUSE);
        let has_reported = std::mem::replace(&mut self.has_reported, true);
        (!has_reported).then_some(Accepted::Paused(error))
    }

    fn resume(&mut self) {
        self.paused_until = None;
        for (&id, listener) in &self.listeners {
            // It was watched before, which needed as many resources.
            let _ = self.watch(listener, id.0);
        }
    }

    fn watch(&self, source: impl AsFd, number: u64) -> io::Result<()> {
        self.poller.add(source, number, EventFlags::IN)
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

#[cfg(test)]
mod tests;
