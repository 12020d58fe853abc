//! The program's side of the connection to the holder.

use crate::holder::new_socket;
use crate::journal::Journal;
use crate::left::{Attachment, HeldCommon, HeldConnection, HeldListener};
use crate::message::{self, Id, LAYOUT, MAX_FDS, Message, raise_open_files, whole_seconds};
use crate::store::{Store, passed};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, connect, sockopt::socket_peercred};
use rustix::process::{Uid, geteuid};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time in which the holder must answer; longer than the time in which the previous program must release the sockets.
const ANSWER: Duration = Duration::from_secs(10);

/// Maximum number of messages queued for a holder that does not read. Sockets of further messages are not kept.
const MAX_WAITING: usize = 1 << 16;

/// Time for which a program that ends keeps sending queued messages.
const FAREWELL: Duration = Duration::from_secs(5);

/// The interval between these attempts.
const RETRY: Duration = Duration::from_millis(1);

/// The reason why a program has no holder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// No holder is listening at the path.
    #[error("cannot connect to a holder at {path}: {error}; `urtica hold {path}` starts one", path = .path.display())]
    Absent {
        /// The holder's socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The holder belongs to another user, who could take over the connections.
    #[error("the holder at {path} belongs to user {theirs} and this program to user {ours}; expected a holder of the same user or of root; choose another path", path = .path.display())]
    OfOther {
        /// The holder's socket.
        path: PathBuf,
        /// The holder's user.
        theirs: u32,
        /// This program's user.
        ours: u32,
    },
    /// The holder's version is incompatible. It has been requested to close everything and to stop.
    #[error("the holder at {path} has another version: {reason}; it closes its connections, and switches must reconnect", path = .path.display())]
    OtherVersion {
        /// The holder's socket.
        path: PathBuf,
        /// The incompatibility.
        reason: String,
    },
    /// No service manager keeps descriptors for this program.
    #[error(
        "no service manager keeps the sockets: {reason}; expected a systemd unit with Type=notify and FileDescriptorStoreMax="
    )]
    NoManager {
        /// The missing part.
        reason: String,
    },
    /// The holder refuses this program.
    #[error("the holder at {path} refused this program: {reason}", path = .path.display())]
    Refused {
        /// The holder's socket.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The holder does not answer, or its answer is malformed.
    #[error("the holder at {path} does not answer as expected: {error}; stop it, and start it again", path = .path.display())]
    Silent {
        /// The holder's socket.
        path: PathBuf,
        /// The problem.
        error: io::Error,
    },
}

/// A program's initial state with a holder: see [`attach`].
#[derive(Debug)]
pub struct Held {
    /// The connection to the holder.
    pub link: Link,
    /// Listening sockets of an earlier program.
    pub listeners: Vec<HeldListener>,
    /// Connections of an earlier program.
    pub connections: Vec<HeldConnection>,
    /// Descriptors that connections of an earlier program shared.
    pub commons: Vec<HeldCommon>,
}

/// A notice from the holder to the attached program. The program must handle each kind, so adding one would be a breaking
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another program takes over: this one must stop using everything that the holder keeps, and then drop its [`Link`].
    LetGo,
    /// The holder has no file descriptor left for a socket, so the socket closes when this program ends.
    Unkept,
    /// The holder has stopped. The sockets that it kept now belong to this program alone.
    Gone,
}

/// A connection to the holder. Dropping it sends the queued messages, for up to 5 s, and then reports to the holder that the
/// program has ended.
///
/// Thread-safety: any thread may use it; only the thread that drops it waits for the holder.
#[derive(Debug)]
pub struct Link {
    backend: Backend,
    last_id: AtomicU64,
    /// Messages that the holder has not read yet.
    waiting: Mutex<VecDeque<(Message, Vec<OwnedFd>)>>,
}

/// The process that keeps the sockets.
#[derive(Debug)]
enum Backend {
    /// A holder, by the connection to it.
    Holder(OwnedFd),
    Manager(Store),
}

impl Backend {
    fn send(&self, message: &Message, fds: &[BorrowedFd]) -> Result<(), Errno> {
        match self {
            Self::Holder(socket) => message::send(socket, message, fds),
            Self::Manager(store) => store.send(message, fds),
        }
    }
}

/// Uses the service manager that has started this program, systemd, instead of a holder, and takes over the sockets that it
/// keeps of an earlier program. The manager keeps them until the unit is stopped without a restart.
///
/// The manager passes its descriptors to each program only at the start, so this must be called once.
/// # Errors
/// [`HoldError::NoManager`] if this program was not started by one.
pub fn attach_to_manager() -> Result<Held, HoldError> {
    let no_manager = |reason: String| HoldError::NoManager { reason };
    let socket = std::env::var("NOTIFY_SOCKET");
    let socket = socket.map_err(|_| no_manager("NOTIFY_SOCKET is not set".into()))?;
    let store = Store::at(&socket).map_err(|error| no_manager(format!("{socket}: {error}")))?;
    raise_open_files();
    let left = store.take(passed());
    Ok(Held {
        link: Link {
            backend: Backend::Manager(store),
            last_id: AtomicU64::new(left.last_id),
            waiting: Mutex::default(),
        },
        listeners: left.listeners,
        connections: left.connections,
        commons: left.commons,
    })
}

/// Attaches this program to the holder at a Unix socket, and takes over the sockets of an earlier program. If that program is
/// still running, the holder requests it to release them. When this program has ended, the holder keeps its sockets for the
/// time `keep`.
/// # Errors
/// [`HoldError`] if there is no holder for this program.
pub fn attach(path: &Path, keep: Duration) -> Result<Held, HoldError> {
    raise_open_files();
    let socket = connect_to(path)?;
    let silent = |error: io::Error| HoldError::Silent {
        path: path.to_owned(),
        error,
    };
    let hello = Message::Attach {
        layout: LAYOUT,
        keep_seconds: whole_seconds(keep),
    };
    message::send(&socket, &hello, &[]).map_err(|error| silent(error.into()))?;
    let mut listeners = Vec::new();
    let mut connections: Vec<HeldConnection> = Vec::new();
    let mut commons = Vec::new();
    let mut last_id = 0;
    let deadline = Instant::now() + ANSWER;
    loop {
        let (message, fds) = receive_by(&socket, deadline).map_err(silent)?;
        if message.fds() != fds.len() {
            return Err(silent(Errno::MFILE.into()));
        }
        if let Message::Attachment { id, label, .. } = message {
            let connection = connections.last_mut().filter(|last| last.id == id);
            let connection = connection.ok_or_else(|| silent(Errno::PROTO.into()))?;
            connection.attachment = Some(Attachment { label, fds });
            continue;
        }
        if let Message::Common { id, label, .. } = message {
            last_id = last_id.max(id);
            let attachment = Attachment { label, fds };
            commons.push(HeldCommon { id, attachment });
            continue;
        }
        let mut fds = fds.into_iter();
        match (message, fds.next(), fds.next()) {
            (Message::Listener { id, label }, Some(socket), None) => {
                last_id = last_id.max(id);
                listeners.push(HeldListener { id, label, socket });
            }
            (Message::Connection { id, label }, Some(socket), Some(journal)) => {
                last_id = last_id.max(id);
                connections.push(HeldConnection {
                    id,
                    label,
                    socket,
                    journal,
                    attachment: None,
                });
            }
            (Message::Attached, ..) => break,
            (Message::Refused { layout, reason }, ..) => {
                return Err(refusal(path, &socket, layout, reason));
            }
            _ => return Err(silent(Errno::PROTO.into())),
        }
    }
    let link = Link {
        backend: Backend::Holder(socket),
        last_id: AtomicU64::new(last_id),
        waiting: Mutex::default(),
    };
    Ok(Held {
        link,
        listeners,
        connections,
        commons,
    })
}

fn refusal(path: &Path, socket: &OwnedFd, layout: u32, reason: String) -> HoldError {
    let path = path.to_owned();
    if layout == LAYOUT {
        return HoldError::Refused { path, reason };
    }
    // A holder that does not read this stops after a while without it.
    let _ = message::send(socket, &Message::End, &[]);
    HoldError::OtherVersion { path, reason }
}

fn connect_to(path: &Path) -> Result<OwnedFd, HoldError> {
    let absent = |error: Errno| HoldError::Absent {
        path: path.to_owned(),
        error: error.into(),
    };
    let socket = new_socket().map_err(absent)?;
    let address = SocketAddrUnix::new(path).map_err(absent)?;
    connect(&socket, &address).map_err(absent)?;
    let theirs = socket_peercred(&socket).map_err(absent)?.uid;
    match is_trusted(theirs, geteuid()) {
        true => Ok(socket),
        false => Err(HoldError::OfOther {
            path: path.to_owned(),
            theirs: theirs.as_raw(),
            ours: geteuid().as_raw(),
        }),
    }
}

/// Returns whether a holder of this user may receive our connections.
fn is_trusted(theirs: Uid, ours: Uid) -> bool {
    theirs == ours || theirs.is_root()
}

fn receive_by(socket: &OwnedFd, deadline: Instant) -> io::Result<(Message, Vec<OwnedFd>)> {
    loop {
        match message::receive(socket) {
            Ok(Some(received)) => return Ok(received),
            Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Link {
    /// Passes a listening socket to the holder. Returns its id there.
    ///
    /// # Errors
    /// If no file descriptor is left for it.
    pub fn keep_listener(&self, label: String, socket: BorrowedFd) -> io::Result<Id> {
        let id = self.next_id();
        self.say(Message::Listener { id, label }, &[socket])?;
        Ok(id)
    }

    /// Passes a connection to the holder. Returns its id there.
    ///
    /// # Errors
    /// If no file descriptor is left for it.
    pub fn keep_connection(
        &self,
        label: String,
        socket: BorrowedFd,
        journal: &Journal,
    ) -> io::Result<Id> {
        let id = self.next_id();
        let message = Message::Connection { id, label };
        self.say(message, &[socket, journal.as_fd()])?;
        Ok(id)
    }

    /// Passes these descriptors, 8 at most, to the holder, which keeps them as long as the connection with this id: the next
    /// program receives them with it. They replace earlier ones of the connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the holder has not read earlier messages. Nothing is sent then.
    pub fn attach(&self, id: Id, label: String, fds: &[BorrowedFd]) -> io::Result<()> {
        let fds_count = count(fds)?;
        let message = Message::Attachment {
            id,
            fds: fds_count,
            label,
        };
        self.flush();
        let waiting = self.waiting.lock();
        if !waiting.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Not queued, so that the holder has it even if the program dies right afterwards.
        match self.backend.send(&message, fds) {
            Err(Errno::AGAIN | Errno::TOOMANYREFS) => Err(io::ErrorKind::WouldBlock.into()),
            sent => Ok(sent?),
        }
    }

    /// Notes that the connection with this id no longer needs its attachment.
    pub fn detach(&self, id: Id) {
        let _ = self.say(Message::Detach { id }, &[]);
    }

    /// Passes these descriptors, 8 at most, to the holder, which keeps them until they are [forgotten](Link::forget). Returns
    /// their id there.
    ///
    /// # Errors
    /// If no file descriptor is left for them.
    pub fn keep_common(&self, label: String, fds: &[BorrowedFd]) -> io::Result<Id> {
        let id = self.next_id();
        let fds_count = count(fds)?;
        let message = Message::Common {
            id,
            fds: fds_count,
            label,
        };
        self.say(message, fds)?;
        Ok(id)
    }

    /// Replaces the descriptors with this id at the holder, and their label. The program may die during the replacement: the
    /// next one then finds either label, or with a service manager the lesser one.
    ///
    /// # Errors
    /// If no file descriptor is left for them.
    pub fn replace_common(&self, id: Id, label: String, fds: &[BorrowedFd]) -> io::Result<()> {
        let fds_count = count(fds)?;
        let message = Message::Common {
            id,
            fds: fds_count,
            label,
        };
        self.say(message, fds)
    }

    /// Notes that the program has closed, or shut down, the socket with this id.
    pub fn forget(&self, id: Id) {
        let _ = self.say(Message::Forget { id }, &[]);
    }

    /// Requests the holder to close everything and to stop.
    pub fn end(&self) {
        let _ = self.say(Message::End, &[]);
    }

    /// Returns the next notice from the holder, if any. Call this when the link becomes readable, until it returns `None`.
    pub fn next_notice(&self) -> Option<Notice> {
        let Backend::Holder(socket) = &self.backend else {
            return None;
        };
        loop {
            match message::receive(socket) {
                Ok(Some((Message::LetGo, _))) => return Some(Notice::LetGo),
                Ok(Some((Message::Unkept { .. }, _))) => return Some(Notice::Unkept),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Ok(None) | Err(_) => return Some(Notice::Gone),
            }
        }
    }

    /// Returns whether messages wait that the holder has not read yet: see [`Link::flush`].
    pub fn has_waiting(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// Tries to send the waiting messages. Call this from time to time.
    pub fn flush(&self) {
        let mut waiting = self.waiting.lock();
        while let Some((message, fds)) = waiting.front() {
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            match self.backend.send(message, &fds) {
                Err(Errno::AGAIN | Errno::TOOMANYREFS) => return,
                // The holder has stopped, so the message is no longer needed.
                _ => drop(waiting.pop_front()),
            }
        }
    }

    /// Tries to send waiting messages until all are sent, for at most this time.
    fn flush_for(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        self.flush();
        while self.has_waiting() && Instant::now() < deadline {
            thread::sleep(RETRY);
            self.flush();
        }
    }

    fn say(&self, message: Message, fds: &[BorrowedFd]) -> io::Result<()> {
        self.flush();
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() && self.backend.send(&message, fds).is_ok() {
            return Ok(());
        }
        if waiting.len() >= MAX_WAITING {
            return Err(Errno::NOBUFS.into());
        }
        let fds = fds.iter().map(BorrowedFd::try_clone_to_owned);
        let fds = fds.collect::<io::Result<_>>()?;
        waiting.push_back((message, fds));
        Ok(())
    }

    fn next_id(&self) -> Id {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.flush_for(FAREWELL);
    }
}

/// Returns the number of descriptors, as encoded in messages.
fn count(fds: &[BorrowedFd]) -> io::Result<u8> {
    match u8::try_from(fds.len()) {
        Ok(count @ 1..) if fds.len() <= MAX_FDS => Ok(count),
        _ => Err(Errno::INVAL.into()),
    }
}

/// Readable when a notice from the holder has arrived; never readable with a service manager.
impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.backend {
            Backend::Holder(socket) => socket.as_fd(),
            Backend::Manager(store) => store.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests;
