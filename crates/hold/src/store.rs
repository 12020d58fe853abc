//! Uses a service manager, systemd, instead of a holder: it keeps descriptors by name, and passes them to the next program when
//! it starts that program.
//!
//! **How.** Each descriptor has a unique name (`FDNAME` of sd_notify(3)) with the information that a holder receives in a
//! message: `urtica.KIND.ID.INDEX.COUNT.LABEL`. The next program finds them by `LISTEN_FDS` and `LISTEN_FDNAMES`
//! (sd_listen_fds(3)). Items that were stored incompletely when the program died are removed.
//!
//! Other descriptors that the manager passes, such as those of a socket unit, are left alone.

use crate::left::{Attachment, HeldCommon, HeldConnection, HeldListener};
use crate::message::{Id, MAX_FDS, Message};
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sendmsg_addr, socket_with,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The prefix of our names.
const PREFIX: &str = "urtica";

/// Maximum length of a name in systemd.
const MAX_NAME: usize = 255;

/// The first descriptor that is passed: `SD_LISTEN_FDS_START`.
const FIRST_FD: RawFd = 3;

/// The kinds of stored items, as in the names.
const LISTENER: char = 'L';
const CONNECTION: char = 'C';
const ATTACHMENT: char = 'T';
const COMMON: char = 'M';

/// The manager's store of descriptors.
#[derive(Debug)]
pub(crate) struct Store {
    socket: OwnedFd,
    manager: SocketAddrUnix,
    /// The names of the stored descriptors.
    names: Mutex<BTreeMap<Id, Vec<Name>>>,
}

/// The information in a descriptor's name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    kind: char,
    id: Id,
    /// Its index among `count` descriptors that belong together.
    index: usize,
    count: usize,
    label: String,
}

/// The items left by an earlier program.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub listeners: Vec<HeldListener>,
    pub connections: Vec<HeldConnection>,
    pub commons: Vec<HeldCommon>,
    /// The highest id used.
    pub last_id: Id,
}

impl Store {
    /// Opens the store of the manager with this socket, as in `NOTIFY_SOCKET`: a path, or an abstract name after `@`.
    pub fn at(manager: &str) -> Result<Self, Errno> {
        let manager = match manager.strip_prefix('@') {
            Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
            None => SocketAddrUnix::new(manager)?,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(Self {
            socket: socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?,
            manager,
            names: Mutex::default(),
        })
    }

    /// Groups the descriptors that the manager has passed into items. Incomplete items and those that refer to nothing are
    /// removed from the store.
    pub fn take(&self, passed: Vec<(String, OwnedFd)>) -> Left {
        let mut groups: BTreeMap<(Id, char), Group> = BTreeMap::new();
        for (text, fd) in passed {
            let Ok(name) = text.parse::<Name>() else {
                continue;
            };
            let group = groups.entry((name.id, name.kind)).or_default();
            // The labels differ if the program died while it replaced one.
            if group.fds.is_empty() || name.label < group.label {
                group.label.clone_from(&name.label);
            }
            group.count = name.count;
            group.fds.insert(name.index, fd);
            self.names.lock().entry(name.id).or_default().push(name);
        }
        let mut left = Left::default();
        // In the order of ids, and each connection before its attachment.
        for ((id, kind), group) in groups {
            left.last_id = left.last_id.max(id);
            if !left.add(id, kind, group) {
                // If this fails, the next program finds the descriptors again.
                let _ = self.remove(id, |name| name.kind == kind);
            }
        }
        left
    }

    /// Stores or removes descriptors as a holder would for this message. After an error it can be called again, and continues
    /// where it stopped.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if the manager does not read it now, other errors if the manager is gone.
    pub fn send(&self, message: &Message, fds: &[BorrowedFd]) -> Result<(), Errno> {
        match message {
            Message::Listener { id, label } => self.put(LISTENER, *id, label, fds),
            Message::Connection { id, label } => self.put(CONNECTION, *id, label, fds),
            Message::Attachment { id, label, .. } => {
                self.remove(*id, |name| name.kind == ATTACHMENT && name.label != *label)?;
                self.put(ATTACHMENT, *id, label, fds)
            }
            Message::Common { id, label, .. } => {
                self.put(COMMON, *id, label, fds)?;
                self.remove(*id, |name| name.kind == COMMON && name.label != *label)
            }
            Message::Detach { id } => self.remove(*id, |name| name.kind == ATTACHMENT),
            Message::Forget { id } => self.remove(*id, |_| true),
            Message::End => {
                let ids: Vec<_> = self.names.lock().keys().copied().collect();
                ids.into_iter().try_for_each(|id| self.remove(id, |_| true))
            }
            _ => Ok(()),
        }
    }

    fn put(&self, kind: char, id: Id, label: &str, fds: &[BorrowedFd]) -> Result<(), Errno> {
        let mut names = self.names.lock();
        for (index, fd) in fds.iter().enumerate() {
            let name = Name {
                kind,
                id,
                index,
                count: fds.len(),
                label: label.to_owned(),
            };
            // Not polled by the manager: when a connection has ended, the program removes it.
            self.notify(&format!("FDSTORE=1\nFDPOLL=0\nFDNAME={name}"), Some(*fd))?;
            let stored = names.entry(id).or_default();
            if !stored.contains(&name) {
                stored.push(name);
            }
        }
        Ok(())
    }

    /// Removes the selected descriptors of an id.
    fn remove(&self, id: Id, which: impl Fn(&Name) -> bool) -> Result<(), Errno> {
        let mut names = self.names.lock();
        let Some(stored) = names.get_mut(&id) else {
            return Ok(());
        };
        while let Some(index) = stored.iter().position(&which) {
            let name = &stored[index];
            self.notify(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), None)?;
            stored.swap_remove(index);
        }
        if stored.is_empty() {
            names.remove(&id);
        }
        Ok(())
    }

    fn notify(&self, state: &str, fd: Option<BorrowedFd>) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = fd.as_slice();
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::INVAL);
        }
        let bytes = [IoSlice::new(state.as_bytes())];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg_addr(&self.socket, &self.manager, &bytes, &mut control, flags).map(drop)
    }
}

impl AsFd for Store {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Descriptors that belong together.
#[derive(Default)]
struct Group {
    label: String,
    count: usize,
    fds: BTreeMap<usize, OwnedFd>,
}

impl Left {
    /// Adds a group; returns whether it is complete and refers to a known item.
    fn add(&mut self, id: Id, kind: char, group: Group) -> bool {
        if group.fds.len() != group.count {
            return false;
        }
        let label = group.label;
        let fds: Vec<_> = group.fds.into_values().collect();
        if kind == COMMON {
            let attachment = Attachment { label, fds };
            self.commons.push(HeldCommon { id, attachment });
            return true;
        }
        if kind == ATTACHMENT {
            let connection = self.connections.last_mut().filter(|last| last.id == id);
            let connection =
                connection.map(|last| last.attachment = Some(Attachment { label, fds }));
            return connection.is_some();
        }
        let mut fds = fds.into_iter();
        match (kind, fds.next(), fds.next(), fds.next()) {
            (LISTENER, Some(socket), None, None) => {
                self.listeners.push(HeldListener { id, label, socket });
                true
            }
            (CONNECTION, Some(socket), Some(journal), None) => {
                self.connections.push(HeldConnection {
                    id,
                    label,
                    socket,
                    journal,
                    attachment: None,
                });
                true
            }
            _ => false,
        }
    }
}

/// Returns the descriptors that the manager has passed to this process, with their names. Empty from the second call
/// on.
pub(crate) fn passed() -> Vec<(String, OwnedFd)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let variable = |name: &str| std::env::var(name).ok();
    let pid = variable("LISTEN_PID").and_then(|pid| pid.parse().ok());
    if pid != Some(std::process::id()) || TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let count = variable("LISTEN_FDS").and_then(|count| count.parse().ok());
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let named = names.split(':').take(count.unwrap_or(0));
    let named = (FIRST_FD..).zip(named);
    named
        .filter(|(_, name)| name.parse::<Name>().is_ok())
        .filter_map(|(fd, name)| Some((name.to_owned(), own(fd)?)))
        .collect()
}

/// Returns a descriptor that this process was started with; `None` if the number is not open.
fn own(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the number is not negative, and is only queried here; the parent process has opened it, for this process alone.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_getfd(borrowed).ok()?;
    fcntl_setfd(borrowed, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, and `passed` returns it once. By its name it is ours, and no other code in the process uses it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            id,
            index,
            count,
            label,
        } = self;
        let mut text = format!("{PREFIX}.{kind}.{id}.{index}.{count}.");
        for byte in label.bytes() {
            let mut escaped = String::new();
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => {
                    escaped.push(byte.into());
                }
                // Names must be printable, and colons separate them.
                _ => write!(escaped, "%{byte:02x}")?,
            }
            if text.len() + escaped.len() > MAX_NAME {
                break;
            }
            text.push_str(&escaped);
        }
        f.write_str(&text)
    }
}

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(6, '.');
        let mut next = || parts.next().ok_or(());
        let (prefix, kind) = (next()?, next()?);
        let (id, index, count) = (next()?, next()?, next()?);
        let kind = kind.parse().map_err(drop)?;
        let name = Self {
            kind,
            id: id.parse().map_err(drop)?,
            index: index.parse().map_err(drop)?,
            count: count.parse().map_err(drop)?,
            label: unescape(next()?).ok_or(())?,
        };
        let is_kind = [LISTENER, CONNECTION, ATTACHMENT, COMMON].contains(&kind);
        let is_sound = prefix == PREFIX && is_kind && name.index < name.count;
        match is_sound && name.count <= MAX_FDS {
            true => Ok(name),
            false => Err(()),
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    // A truncated label may end within a character.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
