//! The holder: a process that keeps sockets open for a program, and passes them to the next.
//!
//! ```text
//!            ┌── attach ──► Attached ──┐ the program dies, or releases them
//!  nobody ───┤                         ├──► nobody: closes all after the time that the program named
//!            └── time-out ───► end   └──► attach by another, which waits until the previous one releases
//! ```
//! It neither reads from the sockets that it keeps nor writes to them.

use crate::message::{self, Id, LAYOUT, Message, raise_open_files};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with, sockopt::socket_peercred,
};
use rustix::process::geteuid;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for which the holder waits for the first program, and for the first message of a peer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time in which a program must release the sockets when another one replaces it.
const LET_GO: Duration = Duration::from_secs(5);

/// Maximum number of peers at a time: the attached program, its successor, and a few that are refused.
const MAX_PEERS: usize = 16;

/// A holder that listens for programs.
#[derive(Debug)]
pub struct Holder {
    listener: OwnedFd,
    path: PathBuf,
    kept: BTreeMap<Id, HeldItem>,
    peers: Vec<Peer>,
    /// The time at which everything is closed unless a program attaches.
    until: Option<Instant>,
}

/// A socket, with its journal if it is a connection, or descriptors that connections share.
#[derive(Debug)]
struct HeldItem {
    message: Message,
    fds: Vec<OwnedFd>,
    /// Further descriptors of a connection, in addition to its socket and its journal.
    attachment: Option<(Message, Vec<OwnedFd>)>,
}

/// A process connected to the holder.
#[derive(Debug)]
struct Peer {
    socket: OwnedFd,
    pid: i32,
    role: Role,
    keep: Duration,
    outgoing: VecDeque<Outgoing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It has not sent its first message, or was refused; it is disconnected at this time.
    New(Instant),
    /// It waits until the attached program releases the sockets, or until this time.
    Following(Instant),
    Attached,
    Refused,
}

#[derive(Debug)]
enum Outgoing {
    /// The socket with this id, if it is still kept.
    Item(Id),
    /// The attachment of the connection with this id, if it is still kept.
    Attachment(Id),
    Message(Message),
}

/// The result of serving a peer.
#[derive(PartialEq, Eq)]
enum Turn {
    Stays,
    Gone,
    /// The holder must stop.
    End,
}

impl Holder {
    /// Listens at a Unix socket that only this process's user may use. A stale socket file is replaced.
    ///
    /// # Errors
    /// If that fails, for instance because another holder is listening there.
    pub fn bind(path: &Path) -> io::Result<Self> {
        raise_open_files();
        let address = SocketAddrUnix::new(path)?;
        match std::fs::symlink_metadata(path) {
            Ok(file) if !file.file_type().is_socket() => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "a file with this name exists, and it is not a socket",
                ));
            }
            Ok(_) if connect(new_socket()?, &address) == Err(Errno::CONNREFUSED) => {
                std::fs::remove_file(path)?;
            }
            _ => {}
        }
        let listener = new_socket()?;
        bind(&listener, &address)?;
        // Up to this point, the system refuses all connections. From here on, their credentials decide.
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        listen(&listener, MAX_PEERS as i32)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            kept: BTreeMap::new(),
            peers: Vec::new(),
            until: Some(Instant::now() + PATIENCE),
        })
    }

    /// Keeps programs' sockets until a program stops it, or no program attaches in time. Returns the number of listening
    /// sockets and connections that it closed at the end.
    ///
    /// # Errors
    /// If waiting for events fails.
    pub fn run(mut self) -> io::Result<usize> {
        loop {
            self.wait()?;
            self.accept();
            if self.serve_peers() || self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(self.sockets());
            }
        }
    }

    fn sockets(&self) -> usize {
        let is_socket = |kept: &&HeldItem| !matches!(kept.message, Message::Common { .. });
        self.kept.values().filter(is_socket).count()
    }

    fn wait(&self) -> io::Result<()> {
        let next = self.peers.iter().filter_map(Peer::deadline);
        let next = next.chain(self.until).min();
        let timeout = next.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.peers.iter().map(|peer| {
            let out = match peer.outgoing.is_empty() {
                true => PollFlags::empty(),
                false => PollFlags::OUT,
            };
            PollFd::new(&peer.socket, PollFlags::IN | out)
        }));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts connections from processes of this process's user and of root.
    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            let Ok(peer) = socket_peercred(&socket) else {
                continue;
            };
            if (peer.uid == geteuid() || peer.uid.is_root()) && self.peers.len() < MAX_PEERS {
                self.peers.push(Peer {
                    socket,
                    pid: peer.pid.as_raw_nonzero().get(),
                    role: Role::New(Instant::now() + PATIENCE),
                    keep: PATIENCE,
                    outgoing: VecDeque::new(),
                });
            }
        }
    }

    /// Serves each peer. Returns whether the holder must stop.
    fn serve_peers(&mut self) -> bool {
        let mut index = 0;
        while index < self.peers.len() {
            match self.serve(index) {
                Turn::Stays => index += 1,
                Turn::Gone => self.remove(index),
                Turn::End => return true,
            }
        }
        false
    }

    fn serve(&mut self, index: usize) -> Turn {
        loop {
            match message::receive(&self.peers[index].socket) {
                Ok(Some((message, fds))) => {
                    if self.handle(index, message, fds) == Turn::End {
                        return Turn::End;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Ok(None) | Err(_) => return Turn::Gone,
            }
        }
        if self.peers[index]
            .deadline()
            .is_some_and(|at| Instant::now() >= at)
        {
            self.refuse_late(index);
        }
        self.send(index)
    }

    fn handle(&mut self, index: usize, message: Message, fds: Vec<OwnedFd>) -> Turn {
        let is_attached = self.peers[index].role == Role::Attached;
        match message {
            Message::Attach {
                layout,
                keep_seconds,
            } => {
                self.peers[index].keep = Duration::from_secs(keep_seconds.into());
                self.attach(index, layout);
            }
            Message::Listener { id, .. }
            | Message::Connection { id, .. }
            | Message::Attachment { id, .. }
            | Message::Common { id, .. }
                if is_attached && fds.is_empty() =>
            {
                // A connection is useless without its attachment.
                self.kept.remove(&id);
                self.say(index, Message::Unkept { id });
            }
            Message::Attachment { id, .. } if is_attached => {
                if let Some(kept) = self.kept.get_mut(&id) {
                    kept.attachment = Some((message, fds));
                }
            }
            Message::Detach { id } if is_attached => {
                if let Some(kept) = self.kept.get_mut(&id) {
                    kept.attachment = None;
                }
            }
            Message::Listener { id, .. }
            | Message::Connection { id, .. }
            | Message::Common { id, .. }
                if is_attached =>
            {
                let attachment = None;
                self.kept.insert(
                    id,
                    HeldItem {
                        message,
                        fds,
                        attachment,
                    },
                );
            }
            Message::Forget { id } if is_attached => {
                self.kept.remove(&id);
            }
            // A peer that ends the holder while no program is attached cannot use the kept sockets, and wants to listen itself.
            Message::End if is_attached || self.attached().is_none() => return Turn::End,
            _ => {}
        }
        Turn::Stays
    }

    fn attach(&mut self, index: usize, layout: u32) {
        if layout != LAYOUT {
            let reason = format!("its protocol version is {LAYOUT}, the program's is {layout}");
            return self.refuse(index, reason);
        }
        let is_followed = |peer: &Peer| matches!(peer.role, Role::Following(_));
        match self.attached() {
            None => self.hand_over(index),
            Some(_) if self.peers.iter().any(is_followed) => {
                self.refuse(index, "another program is about to take over".into());
            }
            Some(attached) => {
                self.say(attached, Message::LetGo);
                // Sent before the answer is awaited.
                if self.send(attached) != Turn::Stays {
                    self.peers[attached].outgoing.clear();
                }
                self.peers[index].role = Role::Following(Instant::now() + LET_GO);
            }
        }
    }

    /// Passes all kept items to this program.
    fn hand_over(&mut self, index: usize) {
        self.until = None;
        let peer = &mut self.peers[index];
        peer.role = Role::Attached;
        let all = self.kept.keys();
        peer.outgoing
            .extend(all.flat_map(|&id| [Outgoing::Item(id), Outgoing::Attachment(id)]));
        self.say(index, Message::Attached);
    }

    fn refuse_late(&mut self, index: usize) {
        let pid = self
            .attached()
            .map_or(0, |attached| self.peers[attached].pid);
        match self.peers[index].role {
            Role::Following(_) => self.refuse(
                index,
                format!(
                    "the program that has the connections, process {pid}, does not release them within {LET_GO:?}; to \
                     replace it, end it with `kill -9 {pid}`, which loses nothing, and start again"
                ),
            ),
            _ => self.refuse(index, "the program sent no request".into()),
        }
    }

    fn refuse(&mut self, index: usize, reason: String) {
        self.peers[index].role = Role::Refused;
        let layout = LAYOUT;
        self.say(index, Message::Refused { layout, reason });
    }

    /// Removes a peer that has disconnected. If it was the attached program, its successor attaches; without a successor, the
    /// time until everything is closed starts.
    fn remove(&mut self, index: usize) {
        let peer = self.peers.remove(index);
        if peer.role != Role::Attached {
            return;
        }
        let mut peers = self.peers.iter();
        match peers.position(|peer| matches!(peer.role, Role::Following(_))) {
            Some(next) => self.hand_over(next),
            None => self.until = Instant::now().checked_add(peer.keep),
        }
    }

    fn attached(&self) -> Option<usize> {
        let mut peers = self.peers.iter();
        peers.position(|peer| peer.role == Role::Attached)
    }

    fn say(&mut self, index: usize, message: Message) {
        let outgoing = &mut self.peers[index].outgoing;
        outgoing.push_back(Outgoing::Message(message));
    }

    /// Sends a peer as many messages as it can receive now.
    fn send(&mut self, index: usize) -> Turn {
        let peer = &mut self.peers[index];
        while let Some(next) = peer.outgoing.front() {
            let sent = match next {
                Outgoing::Message(message) => message::send(&peer.socket, message, &[]),
                Outgoing::Item(id) => self.kept.get(id).map_or(Ok(()), |kept| {
                    send_kept(&peer.socket, &kept.message, &kept.fds)
                }),
                Outgoing::Attachment(id) => {
                    let kept = self.kept.get(id).and_then(|kept| kept.attachment.as_ref());
                    kept.map_or(Ok(()), |(message, fds)| {
                        send_kept(&peer.socket, message, fds)
                    })
                }
            };
            match sent {
                Ok(()) => drop(peer.outgoing.pop_front()),
                Err(Errno::AGAIN) => return Turn::Stays,
                Err(Errno::INTR) => {}
                Err(_) => return Turn::Gone,
            }
        }
        Turn::Stays
    }
}

impl Peer {
    /// Returns the time at which the peer's next step is overdue.
    fn deadline(&self) -> Option<Instant> {
        match self.role {
            Role::New(until) | Role::Following(until) => Some(until),
            Role::Attached | Role::Refused => None,
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The file may have been removed already.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn send_kept(socket: &OwnedFd, message: &Message, fds: &[OwnedFd]) -> Result<(), Errno> {
    let fds: Vec<BorrowedFd> = fds.iter().map(AsFd::as_fd).collect();
    message::send(socket, message, &fds)
}

/// Creates a socket for the connection between programs and holders.
pub(crate) fn new_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}
