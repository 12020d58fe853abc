//! The programs in the kernel: the check whether it accepts them, and the state that connections share.

use crate::application::Application;
use crate::link::LateTurns;
use crate::loaded::{Loaded, code};
use crate::maps::{Earlier, Made, Maps};
use crate::pool::{Lease, Pool};
use crate::session::Memory;
use crate::socket::Way;
use crate::waker::Waker;
use parking_lot::{Mutex, MutexGuard};
use rustix::thread::CapabilitySet;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use urtica_controller::hold::Id;

/// The oldest kernel whose sockmaps pass, redirect and count as the programs require.
const OLDEST: (u32, u32) = (6, 6);

/// The reason why there is no kernel half.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The programs were not built.
    #[error("it was built without the kernel's programs, since {0}")]
    NotBuilt(&'static str),
    /// The kernel is too old.
    #[error("Linux {found} is too old: expected {}.{} or later", OLDEST.0, OLDEST.1)]
    TooOld {
        /// The kernel's release.
        found: String,
    },
    /// The kernel would interpret programs, or runs none.
    #[error("the kernel's JIT compiler is off: type `sysctl net.core.bpf_jit_enable=1`")]
    NoJit,
    /// The kernel has no BPF at all.
    #[error("the kernel was built without BPF: expected CONFIG_BPF_SYSCALL=y")]
    NoBpf,
    /// The process lacks the privileges.
    #[error(
        "the process may not load programs: expected root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"
    )]
    NotPermitted,
    /// The process has the privileges, but its environment forbids loading.
    #[error(
        "the system forbids the process to load programs, in spite of its privileges: expected no container or user namespace \
         around it, or one that allows the system call bpf()"
    )]
    Confined,
    /// The kernel rejects the programs.
    #[error("the kernel refuses its programs: {0}")]
    Refused(io::Error),
}

impl Unavailable {
    /// Converts an error of loading, for a process that has the necessary privileges.
    pub(crate) fn because(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied if is_forbidden(&error) => Self::Confined,
            io::ErrorKind::Unsupported => Self::NoBpf,
            _ => Self::Refused(error),
        }
    }
}

/// Returns whether loading is forbidden in general (EPERM), and not only for these programs (EACCES). libbpf keeps only the
/// text of the error.
fn is_forbidden(error: &io::Error) -> bool {
    error.to_string().contains("os error 1)")
}

/// Returns whether this thread has the necessary privileges.
fn is_privileged() -> bool {
    let enough = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
    rustix::thread::capabilities(None).is_ok_and(|sets| {
        sets.effective.contains(CapabilitySet::SYS_ADMIN) || sets.effective.contains(enough)
    })
}

/// The loaded programs, and the tables that they share. They stay in the kernel until the last clone of this is dropped or the
/// process ends.
#[derive(Clone)]
pub struct Kernel {
    shared: Arc<Mutex<Slots>>,
    sessions: Pool,
    /// Size of the application's part of a session.
    application_bytes: usize,
    /// Whether connections have been left to the next program.
    is_left: Arc<AtomicBool>,
}

/// The maps, and the state of their sessions.
struct Slots {
    /// Keeps the programs in the kernel; `None` for maps of an earlier program that must be released.
    loaded: Option<Loaded>,
    maps: Maps,
    /// The label of sessions at a holder that keeps the maps.
    label: Option<String>,
    /// The sessions of an earlier program whose handlers have not been created yet, by their connections' ids at the holder.
    resumed: HashMap<Id, ResumedSession>,
}

/// A session of an earlier program, which its new handler continues.
pub(crate) struct ResumedSession {
    pub memory: Arc<Memory>,
    /// Receives the handler's actions for changes of the owner.
    pub turns: LateTurns,
}

/// A session for a new switch.
pub(crate) struct Opened {
    pub lease: Arc<Lease>,
    pub memory: Arc<Memory>,
    pub waker: Arc<Waker>,
}

impl Kernel {
    /// Returns the reason why this build has no programs; `None` if it has them.
    pub fn not_built() -> Option<&'static str> {
        option_env!("URTICA_WITHOUT_PROGRAMS")
    }

    /// Makes all checks that are possible before the programs are loaded, which needs much time.
    ///
    /// # Errors
    /// [`Unavailable`] if this build has no programs, or the system does not allow them.
    pub fn check() -> Result<(), Unavailable> {
        check_system()
    }

    /// Loads the programs.
    ///
    /// # Errors
    /// [`Unavailable`] if this build has no programs, or the kernel does not accept them.
    pub fn start() -> Result<Self, Unavailable> {
        Self::load(Application::LearningSwitch)
    }

    pub(crate) fn load(application: Application) -> Result<Self, Unavailable> {
        check_system()?;
        let (loaded, maps) = Loaded::load(application, None).map_err(Unavailable::because)?;
        Self::with(Some(loaded), maps, &[], None).map_err(Unavailable::because)
    }

    /// Continues this application with these maps of an earlier program, in which these slots are used. Loads the programs,
    /// unless the loaded ones are identical, since the kernel's checks need much time.
    pub(crate) fn start_again(
        application: Application,
        earlier: Earlier,
        used: &[u32],
        label: String,
    ) -> Result<Self, Unavailable> {
        check_system()?;
        let loaded = match earlier.code == code(application) {
            true => Loaded::earlier(application, &earlier).map(|loaded| (loaded, earlier.maps)),
            false => Loaded::load(application, Some(earlier)),
        };
        let (loaded, maps) = loaded.map_err(Unavailable::because)?;
        maps.forget_others(used)
            .and_then(|()| Self::with(Some(loaded), maps, used, Some(label)))
            .map_err(Unavailable::because)
    }

    /// Wraps maps of an earlier program with these slots. No new sessions are created in them.
    pub(crate) fn of_earlier(maps: Maps, used: &[u32]) -> io::Result<Self> {
        Self::with(None, maps, used, None)
    }

    fn with(
        loaded: Option<Loaded>,
        maps: Maps,
        used: &[u32],
        label: Option<String>,
    ) -> io::Result<Self> {
        let maker = loaded.as_ref().map(Loaded::maker);
        Ok(Self {
            sessions: Pool::start(maps.entries()?, maker, used)?,
            application_bytes: loaded.as_ref().map_or(0, Loaded::application_bytes),
            is_left: Arc::default(),
            shared: Arc::new(Mutex::new(Slots {
                loaded,
                maps,
                label,
                resumed: HashMap::new(),
            })),
        })
    }

    /// Returns the label of sessions at a holder that keeps the maps; `None` without a holder.
    pub(crate) fn label(&self) -> Option<String> {
        self.lock().label.clone()
    }

    /// Notes that a connection is left to the next program, to which the tables belong from now on.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Relaxed);
    }

    /// Returns whether the tables belong to the next program.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Relaxed)
    }

    /// Returns whether a holder keeps the maps.
    pub(crate) fn is_held(&self) -> bool {
        self.lock().label.is_some()
    }

    /// Passes the descriptors of the maps to a function.
    pub(crate) fn with_maps(&self, use_fds: impl FnOnce(&[BorrowedFd])) {
        use_fds(&self.lock().maps.fds());
    }

    /// Makes a holder keep the maps and the application's tables, by a function that receives their descriptors and returns the
    /// label of sessions.
    pub(crate) fn hold(
        &self,
        keep: impl FnOnce(&[BorrowedFd], &[BorrowedFd]) -> io::Result<String>,
    ) -> io::Result<()> {
        let mut slots = self.lock();
        let tables = slots.loaded.as_ref().map(Loaded::tables).transpose()?;
        let tables: Vec<_> = tables.iter().flatten().map(AsFd::as_fd).collect();
        let label = keep(&slots.maps.fds(), &tables)?;
        slots.label = Some(label);
        Ok(())
    }

    /// Stores a session of an earlier program until its handler is created.
    pub(crate) fn put_resumed(&self, connection: Id, session: ResumedSession) {
        self.lock().resumed.insert(connection, session);
    }

    /// Returns a session of an earlier program, for its new handler.
    pub(crate) fn take_resumed(&self, connection: Id) -> Option<ResumedSession> {
        self.lock().resumed.remove(&connection)
    }

    /// Limits the number of connections at a time: up to 4,096, and [`DEFAULT_MAX_SWITCHES`](crate::DEFAULT_MAX_SWITCHES) by
    /// default. Each needs about 0.25 MB of the kernel's memory, or 0.4 MB for the router. The program serves further
    /// connections without the kernel.
    pub fn max_switches(self, count: u32) -> Self {
        self.limit(count);
        self
    }

    pub(crate) fn limit(&self, count: u32) {
        self.sessions.limit(count);
    }

    /// Returns an unused session; `None` if none is ready, or the limit is reached.
    pub(crate) fn open_session(&self) -> Option<Opened> {
        let lease = Arc::new(self.sessions.take()?);
        let waker = lease.waker()?;
        match Memory::of_lease(Arc::clone(&lease), self.application_bytes) {
            Ok(memory) => Some(Opened {
                lease,
                memory: Arc::new(memory),
                waker,
            }),
            Err(error) => {
                tracing::warn!(%error, "cannot add a switch to the kernel half; the program answers it alone");
                None
            }
        }
    }

    /// Resumes the session that an earlier program left in this slot, with its map and the program's waker.
    pub(crate) fn resume_session(&self, slot: u32, session: OwnedFd, waker: Arc<Waker>) -> Lease {
        let waker = Some(waker);
        self.sessions.resume(Made {
            slot,
            session,
            waker,
        })
    }

    /// Returns a table of the application.
    #[cfg(not(without_programs))]
    pub(crate) fn table(&self, name: &str) -> io::Result<libbpf_rs::MapHandle> {
        let slots = self.lock();
        slots
            .loaded
            .as_ref()
            .ok_or(io::ErrorKind::Unsupported)?
            .table(name)
    }

    /// Passes input of a switch's socket to the programs from now on.
    pub(crate) fn attach(&self, slot: u32, way: &Way) -> io::Result<()> {
        self.lock().maps.attach(slot, way)
    }

    /// Enters the sockets of an earlier program's session into the maps, except for the switch's socket itself. Returns whether
    /// that one is in its map.
    pub(crate) fn attach_rest(&self, slot: u32, way: &Way) -> io::Result<bool> {
        let slots = self.lock();
        slots.maps.attach_way(slot, way)?;
        Ok(slots.maps.is_in(slot, way.switch_cookie))
    }

    /// Passes input of a switch's socket to the programs again.
    pub(crate) fn step_in(&self, slot: u32, switch: BorrowedFd) -> io::Result<()> {
        self.lock().maps.step_in(slot, switch)
    }

    /// Passes input of a switch's socket directly to the program.
    pub(crate) fn step_aside(&self, slot: u32) -> io::Result<()> {
        self.lock().maps.step_aside(slot)
    }

    /// Drops the signals of a session from now on.
    #[cfg(test)]
    pub(crate) fn empty_relay(&self, slot: u32) -> io::Result<()> {
        self.lock().maps.empty_relay(slot)
    }

    /// Removes a session's sockets from the maps. The caller is about to close the switch's socket.
    pub(crate) fn close_session(&self, slot: u32, cookies: &[u64]) {
        self.lock().maps.forget(slot, cookies);
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // The guarded state is consistent after every statement.
        self.shared.lock()
    }
}

/// Makes the checks that need no loading: a service manager's system call filter may kill a process that tries to load.
pub(crate) fn check_system() -> Result<(), Unavailable> {
    check_kernel(Path::new("/proc/sys"))?;
    match is_privileged() {
        true => Ok(()),
        false => Err(Unavailable::NotPermitted),
    }
}

/// Checks the system's settings in this folder.
#[cfg(not(without_programs))]
fn check_kernel(settings: &Path) -> Result<(), Unavailable> {
    let release = std::fs::read_to_string(settings.join("kernel/osrelease")).unwrap_or_default();
    let release = release.trim().to_owned();
    if version_of(&release).is_some_and(|version| version < OLDEST) {
        return Err(Unavailable::TooOld { found: release });
    }
    match std::fs::read_to_string(settings.join("net/core/bpf_jit_enable")) {
        Ok(enabled) if enabled.trim() == "0" => Err(Unavailable::NoJit),
        _ => Ok(()),
    }
}

#[cfg(without_programs)]
fn check_kernel(_: &Path) -> Result<(), Unavailable> {
    Kernel::not_built().map_or(Ok(()), |reason| Err(Unavailable::NotBuilt(reason)))
}

/// Returns the first two numbers of a release such as `6.18.44-amd64`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
