//! The programs and maps of `bpf/`, by way of libbpf.

use crate::kernel::Way;
use crate::session::{Memory, SESSION_BYTES};
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The programs, as clang has compiled them.
const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/programs.o"));

/// The programs, loaded, and their maps.
pub(crate) struct Loaded {
    /// Keeps the programs in the kernel.
    _object: Object,
    slots: MapHandle,
    sessions: MapHandle,
    switches: MapHandle,
    relays: MapHandle,
    exits: MapHandle,
}

// SAFETY: what is in here are file descriptors and memory of libbpf's, which is used under the mutex alone, and bound to no
// thread.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Loads the programs and attaches them to their maps.
    pub fn load() -> io::Result<Self> {
        Self::try_load().map_err(to_io)
    }

    fn try_load() -> libbpf_rs::Result<Self> {
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
        })
    }

    /// Has what comes from a switch's socket go through the programs.
    pub fn attach(&self, slot: u32, way: &Way) -> io::Result<()> {
        self.try_attach(slot, way).map_err(to_io)
    }

    fn try_attach(&self, slot: u32, way: &Way) -> libbpf_rs::Result<()> {
        for cookie in [way.switch_cookie, way.relay_cookie] {
            let (key, value) = (cookie.to_ne_bytes(), slot.to_ne_bytes());
            self.slots.update(&key, &value, MapFlags::ANY)?;
        }
        let enter = |map: &MapHandle, socket: BorrowedFd| {
            let value = (socket.as_raw_fd() as u64).to_ne_bytes();
            map.update(&slot.to_ne_bytes(), &value, MapFlags::ANY)
        };
        enter(&self.exits, way.exit)?;
        enter(&self.relays, way.relay)?;
        // Last: from here on the switch's input takes this way.
        enter(&self.switches, way.switch)
    }

    /// Takes a session and its sockets out of the maps. What is not there any more is as it should be.
    pub fn forget(&self, slot: u32, cookies: &[u64]) {
        for cookie in cookies {
            let _ = self.slots.delete(&cookie.to_ne_bytes());
        }
        for map in [&self.switches, &self.relays, &self.exits, &self.sessions] {
            let _ = map.delete(&slot.to_ne_bytes());
        }
    }

    /// A session with memory of its own, for this slot.
    pub fn new_session(&self, slot: u32) -> io::Result<Memory> {
        let map = self.new_map(slot).map_err(to_io)?;
        Memory::map(map.as_fd())
    }

    fn new_map(&self, slot: u32) -> libbpf_rs::Result<MapHandle> {
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
        Ok(map)
    }
}

/// An error of libbpf's, with all that it tells.
fn to_io(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}
