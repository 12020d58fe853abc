//! The programs in the kernel: whether it takes them, and what of it connections share.

use crate::loaded::Loaded;
use crate::session::Memory;
use crate::waker::Waker;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// How many connections can have a kernel half at a time: `MAX_SESSIONS` of `bpf/learning_switch.bpf.c`.
const MAX_SESSIONS: u32 = 4096;

/// The oldest kernel whose sockmaps pass, redirect and count as the programs need it.
const OLDEST: (u32, u32) = (6, 6);

/// Why there is no kernel half.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// It was not built.
    #[error("it was built without the kernel's programs, since {0}")]
    NotBuilt(&'static str),
    /// The system is too old.
    #[error("Linux {found} is too old: expected {}.{} or later", OLDEST.0, OLDEST.1)]
    TooOld {
        /// The kernel's release.
        found: String,
    },
    /// The kernel would interpret programs, if it runs any.
    #[error("the kernel's JIT compiler is off: type `sysctl net.core.bpf_jit_enable=1`")]
    NoJit,
    /// The process may not.
    #[error(
        "the process may not load programs: expected root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"
    )]
    NotPermitted,
    /// The kernel refuses the programs.
    #[error("the kernel refuses its programs: {0}")]
    Refused(io::Error),
}

/// The programs, loaded, and the tables that they share. They are in the kernel until the last copy of this is dropped or the
/// process ends.
#[derive(Clone)]
pub struct Kernel {
    shared: Arc<Mutex<Slots>>,
}

/// The programs, and which slots are in use.
struct Slots {
    loaded: Loaded,
    /// Slots that were used and are free again.
    free: Vec<u32>,
    /// Slots from here on were never used.
    unused: u32,
}

/// The sockets that a switch's bytes go through, and the cookies by which programs know whose input they see: data between
/// Unix sockets belongs to the one that sent it.
pub(crate) struct Way<'a> {
    pub switch: BorrowedFd<'a>,
    pub switch_cookie: u64,
    pub relay: BorrowedFd<'a>,
    pub exit: BorrowedFd<'a>,
    pub relay_cookie: u64,
}

/// A session that has just been made.
pub(crate) struct Opened {
    pub slot: u32,
    pub memory: Arc<Memory>,
    pub waker: Waker,
}

impl Kernel {
    /// Why the programs were left out of this build; `None` if it has them.
    pub fn not_built() -> Option<&'static str> {
        option_env!("URTICA_WITHOUT_PROGRAMS")
    }

    /// Loads the programs.
    ///
    /// # Errors
    /// [`Unavailable`] where there are none, or the kernel does not take them.
    pub fn start() -> Result<Self, Unavailable> {
        check_kernel()?;
        let loaded = Loaded::load().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Unavailable::NotPermitted,
            _ => Unavailable::Refused(error),
        })?;
        let slots = Slots {
            loaded,
            free: Vec::new(),
            unused: 0,
        };
        Ok(Self {
            shared: Arc::new(Mutex::new(slots)),
        })
    }

    /// A session with memory of its own, and what wakes its program; `None` where there are too many.
    pub(crate) fn open_session(&self) -> Option<Opened> {
        let mut slots = self.lock();
        let slot = slots.take()?;
        match slots.loaded.new_session(slot) {
            Ok((memory, waker)) => Some(Opened {
                slot,
                memory: Arc::new(memory),
                waker,
            }),
            Err(error) => {
                slots.free.push(slot);
                tracing::warn!(%error, "the kernel half cannot take one more switch; the program answers it alone");
                None
            }
        }
    }

    /// Has what comes from a switch's socket go through the programs.
    pub(crate) fn attach(&self, slot: u32, way: &Way) -> io::Result<()> {
        self.lock().loaded.attach(slot, way)
    }

    /// Gives a session back. Its sockets leave the maps now, and the switch's is about to be closed.
    pub(crate) fn close_session(&self, slot: u32, cookies: &[u64]) {
        let mut slots = self.lock();
        slots.loaded.forget(slot, cookies);
        slots.free.push(slot);
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // What it guards is whole between any two statements.
        self.shared.lock()
    }
}

impl Slots {
    /// A slot that nobody has.
    fn take(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.unused;
        (slot < MAX_SESSIONS).then(|| {
            self.unused += 1;
            slot
        })
    }
}

/// What is clear before anything is loaded.
#[cfg(not(without_programs))]
fn check_kernel() -> Result<(), Unavailable> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim().to_owned();
    if version_of(&release).is_some_and(|version| version < OLDEST) {
        return Err(Unavailable::TooOld { found: release });
    }
    match std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable") {
        Ok(enabled) if enabled.trim() == "0" => Err(Unavailable::NoJit),
        _ => Ok(()),
    }
}

#[cfg(without_programs)]
fn check_kernel() -> Result<(), Unavailable> {
    Kernel::not_built().map_or(Ok(()), |reason| Err(Unavailable::NotBuilt(reason)))
}

/// The first two numbers of a release such as `6.18.44-amd64`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_its_version() {
        assert_eq!(version_of("6.18.44-amd64"), Some((6, 18)));
        assert_eq!(version_of("6.6"), Some((6, 6)));
        assert_eq!(version_of("unknown"), None);
        assert!(version_of("5.15.0").is_some_and(|version| version < OLDEST));
        assert!(version_of("6.10.1").is_some_and(|version| version > OLDEST));
    }
}
