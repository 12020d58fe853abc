//! A minimal service manager: it keeps descriptors by name, and passes them to the next program, as systemd does.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{dup2, fcntl_dupfd_cloexec};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The first descriptor that is passed.
const FIRST_FD: RawFd = 3;

/// A service manager, which closes its descriptors and ends when dropped.
pub struct Manager {
    place: PathBuf,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    socket: UnixDatagram,
    store: Mutex<Vec<(String, OwnedFd)>>,
    is_over: AtomicBool,
}

impl Manager {
    /// Starts a service manager with its socket at `place`.
    pub fn start(place: &Path) -> Self {
        let socket = UnixDatagram::bind(place).unwrap();
        let shared = Arc::new(Shared {
            socket,
            store: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let reader = thread::spawn(move || {
            while !own.is_over.load(Ordering::Relaxed) {
                own.wait();
                own.read();
            }
        });
        Self {
            place: place.to_owned(),
            shared,
            reader: Some(reader),
        }
    }

    /// Returns the number of descriptors kept.
    pub fn stored(&self) -> usize {
        self.shared.read();
        self.shared.store.lock().unwrap().len()
    }

    /// Replaces a part of the names of all descriptors that contain it; returns their number.
    pub fn rename(&self, from: &str, to: &str) -> usize {
        self.shared.read();
        let mut store = self.shared.store.lock().unwrap();
        let named = store.iter_mut().filter(|(name, _)| name.contains(from));
        named
            .map(|(name, _)| *name = name.replace(from, to))
            .count()
    }

    /// Returns a command that runs a program with all stored descriptors.
    pub fn command(&self, program: &Path) -> Command {
        // Process the earlier program's messages first.
        self.shared.read();
        let store = self.shared.store.lock().unwrap();
        let names: Vec<_> = store.iter().map(|(name, _)| name.as_str()).collect();
        // Above the numbers that the program gets.
        let from = FIRST_FD + store.len() as RawFd;
        let copies = store.iter().map(|(_, fd)| fcntl_dupfd_cloexec(fd, from));
        let copies: Vec<_> = copies.collect::<Result<_, _>>().unwrap();
        let mut command = Command::new("sh");
        // The shell becomes the program by exec, so its process id is the program's.
        command
            .args(["-c", "export LISTEN_PID=$$; exec \"$@\"", "sh"])
            .arg(program)
            .env("NOTIFY_SOCKET", &self.place)
            .env("LISTEN_FDS", names.len().to_string())
            .env("LISTEN_FDNAMES", names.join(":"));
        // SAFETY: between fork and exec this only makes system calls.
        unsafe { command.pre_exec(move || place(&copies)) };
        command
    }
}

/// Gives descriptors the numbers from `FIRST_FD` on.
fn place(fds: &[OwnedFd]) -> io::Result<()> {
    for (number, fd) in (FIRST_FD..).zip(fds) {
        // SAFETY: a descriptor with this number is replaced by a copy, in a process that is about to run another
        // program; it is not closed.
        let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
        dup2(fd, &mut target)?;
        assert_eq!(target.as_raw_fd(), number);
    }
    Ok(())
}

impl Shared {
    /// Waits until a message can be read, at most for the time that dropping may need.
    fn wait(&self) {
        let timeout = Timespec::try_from(Duration::from_millis(50)).unwrap();
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        // A signal may end the wait early, which does no harm.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Reads all waiting messages.
    fn read(&self) {
        let mut store = self.store.lock().unwrap();
        while let Some((said, fds)) = self.receive() {
            let of = |key: &str| {
                let mut lines = said.lines();
                lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            };
            match (of("FDNAME"), of("FDSTORE"), of("FDSTOREREMOVE")) {
                (Some(name), Some("1"), None) => {
                    assert!(name.len() <= 255 && !name.contains(':'), "{name}");
                    store.extend(fds.into_iter().map(|fd| (name.to_owned(), fd)));
                }
                (Some(name), None, Some("1")) => store.retain(|(stored, _)| stored != name),
                _ => assert!(fds.is_empty(), "{said}"),
            }
        }
    }

    fn receive(&self) -> Option<(String, Vec<OwnedFd>)> {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut room = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(self.socket.as_fd(), &mut room, &mut control, flags).ok()?;
        assert!(!received.flags.contains(ReturnFlags::CTRUNC));
        let mut fds = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                fds.extend(received);
            }
        }
        let said = String::from_utf8(bytes[..received.bytes].to_vec()).unwrap();
        Some((said, fds))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
