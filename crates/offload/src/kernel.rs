//! The programs in the kernel: whether it takes them, and what of it connections share.

use crate::session::{Memory, SESSION_BYTES};
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The programs, as clang has compiled them.
#[cfg(not(without_programs))]
const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/programs.o"));

/// How many connections can have a kernel half at a time: `MAX_SESSIONS` of `bpf/learning_switch.bpf.c`.
const MAX_SESSIONS: u32 = 4096;

/// The oldest kernel whose sockmaps pass, redirect and count as the programs need it.
const OLDEST: (u32, u32) = (6, 6);

/// Why there is no kernel half.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// It was not built.
    #[error("it was built without the kernel's programs: {0}; install clang and build anew")]
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
    #[error("the process may not load programs: expected CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, or root")]
    NotPermitted,
    /// The kernel refuses the programs.
    #[error("the kernel refuses its programs: {0}")]
    Refused(String),
}

/// The programs, loaded, and the tables that they share. They are in the kernel until this is dropped or the process ends.
#[derive(Clone)]
pub struct Kernel {
    loaded: Arc<Mutex<Loaded>>,
}

struct Loaded {
    /// Keeps the programs in the kernel.
    _object: Object,
    slots: MapHandle,
    sessions: MapHandle,
    switches: MapHandle,
    relays: MapHandle,
    exits: MapHandle,
    /// Slots that were used and are free again.
    free: Vec<u32>,
    /// Slots from here on were never used.
    unused: u32,
}

// SAFETY: what is in here are file descriptors and memory of libbpf's, which is used under the mutex alone, and bound to no
// thread.
unsafe impl Send for Loaded {}

impl Kernel {
    /// Loads the programs.
    ///
    /// # Errors
    /// [`Unavailable`] where there are none, or the kernel does not take them.
    pub fn start() -> Result<Self, Unavailable> {
        check_kernel()?;
        let loaded = Loaded::load().map_err(|error| match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Unavailable::NotPermitted,
            _ => Unavailable::Refused(format!("{error:#}")),
        })?;
        Ok(Self {
            loaded: Arc::new(Mutex::new(loaded)),
        })
    }

    /// A session with memory of its own; `None` where there are too many.
    pub(crate) fn open_session(&self) -> Option<(u32, Memory)> {
        let mut loaded = self.lock();
        let slot = match loaded.free.pop() {
            Some(slot) => slot,
            None if loaded.unused < MAX_SESSIONS => {
                loaded.unused += 1;
                loaded.unused - 1
            }
            None => return None,
        };
        match loaded.new_session(slot) {
            Ok(memory) => Some((slot, memory)),
            Err(error) => {
                loaded.free.push(slot);
                tracing::warn!(%error, "the kernel half cannot take one more switch; the program answers it alone");
                None
            }
        }
    }

    /// Has what comes from a switch's socket go through the programs.
    pub(crate) fn attach(&self, slot: u32, way: &Way) -> libbpf_rs::Result<()> {
        let loaded = self.lock();
        for cookie in [way.switch_cookie, way.relay_cookie] {
            let (key, value) = (cookie.to_ne_bytes(), slot.to_ne_bytes());
            loaded.slots.update(&key, &value, MapFlags::ANY)?;
        }
        let enter = |map: &MapHandle, socket: BorrowedFd| {
            let value = (socket.as_raw_fd() as u64).to_ne_bytes();
            map.update(&slot.to_ne_bytes(), &value, MapFlags::ANY)
        };
        enter(&loaded.exits, way.exit)?;
        enter(&loaded.relays, way.relay)?;
        // Last: from here on the switch's input takes this way.
        enter(&loaded.switches, way.switch)
    }

    /// Gives a session back. Its sockets have left the maps, or do so when they are closed.
    pub(crate) fn close_session(&self, slot: u32, cookies: &[u64]) {
        let mut loaded = self.lock();
        for cookie in cookies {
            // Fails only where it is not there, which is what is wanted.
            let _ = loaded.slots.delete(&cookie.to_ne_bytes());
        }
        for map in [&loaded.switches, &loaded.relays, &loaded.exits] {
            let _ = map.delete(&slot.to_ne_bytes());
        }
        let _ = loaded.sessions.delete(&slot.to_ne_bytes());
        loaded.free.push(slot);
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        // What it guards is whole between any two statements.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

impl Loaded {
    fn load() -> libbpf_rs::Result<Self> {
        let mut builder = ObjectBuilder::default();
        let object = builder.open_memory(PROGRAMS)?.load()?;
        let map = |name: &str| {
            let map = object.maps().find(|map| map.name() == name);
            MapHandle::try_from(&map.expect("the programs have this map"))
        };
        let (slots, sessions) = (map("slots")?, map("sessions")?);
        let (switches, relays, exits) = (map("switches")?, map("relays")?, map("exits")?);
        for (name, map) in [("from_switch", &switches), ("to_switch", &exits)] {
            let program = object.progs_mut().find(|program| program.name() == name);
            program
                .expect("the programs have this one")
                .attach_sockmap(map.as_fd().as_raw_fd())?;
        }
        Ok(Self {
            _object: object,
            slots,
            sessions,
            switches,
            relays,
            exits,
            free: Vec::new(),
            unused: 0,
        })
    }

    fn new_session(&self, slot: u32) -> libbpf_rs::Result<Memory> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: BPF_F_MMAPABLE,
            ..Default::default()
        };
        let map = MapHandle::create(
            MapType::Array,
            Some("session"),
            size_of::<u32>() as u32,
            SESSION_BYTES as u32,
            1,
            &options,
        )?;
        let value = map.as_fd().as_raw_fd().to_ne_bytes();
        self.sessions
            .update(&slot.to_ne_bytes(), &value, MapFlags::ANY)?;
        Ok(Memory::map(map.as_fd())?)
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
    Err(Unavailable::NotBuilt(env!("URTICA_WITHOUT_PROGRAMS")))
}

#[cfg(without_programs)]
const PROGRAMS: &[u8] = &[];

/// The first two numbers of a release such as `6.18.44-amd64`.
#[cfg_attr(without_programs, expect(dead_code, reason = "nothing is loaded"))]
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
