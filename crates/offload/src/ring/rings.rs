//! Rings that share listeners, and the distribution of connections to them.

use super::kernel::RingKernel;
use crate::kernel::Unavailable;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use urtica_controller::{Address, ListenError, SessionConfig};
use urtica_socket::Listener;

/// Errors of rings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The kernel half is unavailable.
    #[error("there are no rings, since {0}")]
    Unavailable(#[from] Unavailable),
    /// Listening at an address failed.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The settings of sessions are invalid.
    #[error(transparent)]
    Session(#[from] urtica_controller::Error),
    /// There is no ring with this number.
    #[error("there is no ring {number}; expected a number below {count}")]
    NoSuchRing {
        /// The number.
        number: usize,
        /// The number of rings.
        count: usize,
    },
    /// The ring has a registration already.
    #[error(
        "ring {0} is registered already; expected one registration per ring, which threads may share with a lock"
    )]
    Registered(usize),
    /// The type of messages has a consumer already.
    #[error("messages of this type have a subscriber already; expected one for each type")]
    Subscribed,
    /// An operation of the system failed.
    #[error("cannot {what}: {error}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl RingError {
    /// Returns a conversion for the error of an operation.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

/// Settings of [`Rings`].
#[derive(Clone, Debug)]
pub struct RingSettings {
    /// Number of rings: the paper's number of kernel threads. 1 to 1,024.
    pub rings: usize,
    /// Number of bytes of messages and records that each ring holds; rounded up to a power of two.
    pub ring_bytes: usize,
    /// Versions, time-outs and keep-alive of the sessions with switches.
    pub session: SessionConfig,
}

impl Default for RingSettings {
    /// Returns the settings of one ring of 4 MiB.
    fn default() -> Self {
        Self {
            rings: 1,
            ring_bytes: 4 << 20,
            session: SessionConfig::default(),
        }
    }
}

/// Rings that share listeners. Connections are distributed round-robin.
///
/// Thread-safety: any thread may register; a [`Ring`](super::Ring) then belongs to that thread.
pub struct Rings(Arc<Shared>);

/// State that the rings share.
pub(crate) struct Shared {
    pub kernel: RingKernel,
    pub settings: RingSettings,
    pub listeners: Vec<Listener>,
    inboxes: Vec<Inbox>,
    accepted: AtomicUsize,
}

/// New connections for a ring.
struct Inbox {
    connections: Mutex<Vec<NewConnection>>,
    wakeup: OwnedFd,
    is_registered: AtomicBool,
}

/// A connection that has just been accepted.
pub(crate) struct NewConnection {
    pub socket: OwnedFd,
    pub peer: String,
}

impl Rings {
    /// Loads the kernel's half and listens. Switches are served once rings are registered.
    ///
    /// # Errors
    /// [`RingError`] if the kernel half is unavailable, or an address is in use.
    pub fn start(addresses: &[Address], settings: RingSettings) -> Result<Self, RingError> {
        let kernel = RingKernel::start()?;
        let listeners = addresses.iter().map(Listener::bind);
        let inboxes = (0..settings.rings.clamp(1, 1024)).map(|_| Inbox::new());
        Ok(Self(Arc::new(Shared {
            kernel,
            listeners: listeners.collect::<Result<_, _>>()?,
            inboxes: inboxes
                .collect::<io::Result<_>>()
                .map_err(RingError::io("create an event"))?,
            settings,
            accepted: AtomicUsize::new(0),
        })))
    }

    /// Returns the listening addresses, with the ports that the system chose.
    pub fn addresses(&self) -> Vec<Address> {
        let listeners = self.0.listeners.iter();
        listeners
            .map(|listener| listener.address().clone())
            .collect()
    }

    /// Returns the number of rings.
    pub fn count(&self) -> usize {
        self.0.inboxes.len()
    }

    /// Reserves a ring.
    ///
    /// # Errors
    /// [`RingError`] if there is no such ring, or it has a registration already.
    pub(crate) fn reserve(&self, number: usize) -> Result<Registration, RingError> {
        let count = self.count();
        let inbox = self.0.inboxes.get(number);
        let inbox = inbox.ok_or(RingError::NoSuchRing { number, count })?;
        if inbox.is_registered.swap(true, AcqRel) {
            return Err(RingError::Registered(number));
        }
        Ok(Registration {
            shared: Arc::clone(&self.0),
            number,
        })
    }
}

impl Inbox {
    fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            connections: Mutex::default(),
            wakeup: eventfd(0, flags)?,
            is_registered: AtomicBool::new(false),
        })
    }
}

/// The reservation of a ring, until it is dropped.
pub(crate) struct Registration {
    shared: Arc<Shared>,
    number: usize,
}

impl Registration {
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns a descriptor that is readable when new connections wait.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.inbox().wakeup.as_fd()
    }

    /// Returns the new connections for this ring.
    pub fn take_connections(&self) -> Vec<NewConnection> {
        let mut count = [0; 8];
        // Empty if another thread was faster.
        let _ = rustix::io::read(&self.inbox().wakeup, &mut count);
        std::mem::take(&mut *self.inbox().connections.lock())
    }

    /// Accepts all waiting connections, and distributes them to the rings.
    pub fn accept_all(&self) {
        for listener in &self.shared.listeners {
            while let Ok((socket, peer)) = listener.accept() {
                self.shared.put(NewConnection { socket, peer });
            }
        }
    }

    fn inbox(&self) -> &Inbox {
        &self.shared.inboxes[self.number]
    }
}

impl Shared {
    fn put(&self, connection: NewConnection) {
        let next = self.accepted.fetch_add(1, Relaxed) % self.inboxes.len();
        let inbox = &self.inboxes[next];
        inbox.connections.lock().push(connection);
        // Fails only if 2^64 - 1 connections wait.
        let _ = rustix::io::write(&inbox.wakeup, &1_u64.to_ne_bytes());
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.inbox().is_registered.store(false, Release);
    }
}
