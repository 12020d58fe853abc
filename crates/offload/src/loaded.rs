//! The programs and maps of `bpf/`, by way of libbpf.

use crate::kernel::{Application, Way};
use crate::session::{Memory, session_bytes};
use crate::waker::{Waker, ring_bytes};
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// An application's programs, as clang has compiled them.
fn object_of(application: Application) -> &'static [u8] {
    match application {
        Application::LearningSwitch => {
            include_bytes!(concat!(env!("OUT_DIR"), "/learning_switch.o"))
        }
        Application::L3 => include_bytes!(concat!(env!("OUT_DIR"), "/l3.o")),
        Application::Services { .. } => include_bytes!(concat!(env!("OUT_DIR"), "/services.o")),
    }
}

/// The programs, loaded, and their maps.
pub(crate) struct Loaded {
    /// Keeps the programs in the kernel.
    object: Object,
    application: Application,
    slots: MapHandle,
    sessions: MapHandle,
    wakers: MapHandle,
    switches: MapHandle,
    keepers: MapHandle,
    relays: MapHandle,
    exits: MapHandle,
}

// SAFETY: what is in here are file descriptors and memory of libbpf's, which is used under the mutex alone, and bound to no
// thread.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Loads an application's programs and attaches them to their maps.
    pub fn load(application: Application) -> io::Result<Self> {
        Self::try_load(application).map_err(to_io)
    }

    fn try_load(application: Application) -> libbpf_rs::Result<Self> {
        // What it says of programs that are refused is pages long, and goes to standard error otherwise.
        libbpf_rs::set_print(Some((PrintLevel::Debug, |_, text| {
            tracing::debug!("libbpf: {}", text.trim_end());
        })));
        let mut builder = ObjectBuilder::default();
        let mut object = builder.open_memory(object_of(application))?;
        if let Application::Services { hosts } = application {
            size_tables(&mut object, hosts)?;
        }
        let object = object.load()?;
        let map = |name: &str| find_map(&object, name);
        let (slots, sessions, wakers) = (map("slots")?, map("sessions")?, map("wakers")?);
        let (switches, keepers) = (map("switches")?, map("keepers")?);
        let (relays, exits) = (map("relays")?, map("exits")?);
        for (name, map) in [("from_switch", &switches), ("to_switch", &exits)] {
            let program = object.progs_mut().find(|program| program.name() == name);
            program
                .expect("the programs have this one")
                .attach_sockmap(map.as_fd().as_raw_fd())?;
        }
        Ok(Self {
            object,
            application,
            slots,
            sessions,
            wakers,
            switches,
            keepers,
            relays,
            exits,
        })
    }

    /// A table of the application's own.
    pub fn table(&self, name: &str) -> io::Result<MapHandle> {
        find_map(&self.object, name).map_err(to_io)
    }

    /// Puts the sockets into the maps, so that what comes from the switch's goes through the programs.
    pub fn attach(&self, slot: u32, way: &Way) -> io::Result<()> {
        self.try_attach(slot, way).map_err(to_io)
    }

    fn try_attach(&self, slot: u32, way: &Way) -> libbpf_rs::Result<()> {
        for cookie in [way.switch_cookie, way.relay_cookie] {
            let (key, value) = (cookie.to_ne_bytes(), slot.to_ne_bytes());
            self.slots.update(&key, &value, MapFlags::ANY)?;
        }
        enter(&self.exits, slot, way.exit)?;
        enter(&self.relays, slot, way.relay)?;
        enter(&self.keepers, slot, way.switch)?;
        // Last: from here on the switch's input takes this way.
        enter(&self.switches, slot, way.switch)
    }

    /// Has what comes from a switch's socket go through the programs again.
    pub fn step_in(&self, slot: u32, switch: BorrowedFd) -> io::Result<()> {
        enter(&self.switches, slot, switch).map_err(to_io)
    }

    /// Has what comes from a switch's socket go straight to the program.
    pub fn step_aside(&self, slot: u32) -> io::Result<()> {
        self.switches.delete(&slot.to_ne_bytes()).map_err(to_io)
    }

    /// Takes a session and its sockets out of the maps. What is not there any more is as it should be.
    pub fn forget(&self, slot: u32, cookies: &[u64]) {
        for cookie in cookies {
            let _ = self.slots.delete(&cookie.to_ne_bytes());
        }
        let maps = [
            &self.switches,
            &self.keepers,
            &self.relays,
            &self.exits,
            &self.sessions,
            &self.wakers,
        ];
        for map in maps {
            let _ = map.delete(&slot.to_ne_bytes());
        }
    }

    /// A session with memory of its own, for this slot, and what wakes its program.
    pub fn new_session(&self, slot: u32) -> io::Result<(Memory, Waker)> {
        let application_bytes = self.application.bytes();
        let session = Kind {
            value_bytes: session_bytes(application_bytes) as u32,
            ..SESSION
        };
        let session = self.new_map(slot, &session).map_err(to_io)?;
        let waker = Kind {
            entries: ring_bytes() as u32,
            ..WAKER
        };
        let waker = self.new_map(slot, &waker).map_err(to_io)?;
        let memory = Memory::map(session.as_fd(), application_bytes)?;
        Ok((memory, Waker::map(waker.as_fd().try_clone_to_owned()?)?))
    }

    /// A map of this kind, for this slot.
    fn new_map(&self, slot: u32, kind: &Kind) -> libbpf_rs::Result<MapHandle> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: kind.flags,
            ..Default::default()
        };
        let map = MapHandle::create(
            kind.map_type,
            Some(kind.name),
            kind.key_bytes,
            kind.value_bytes,
            kind.entries,
            &options,
        )?;
        let value = map.as_fd().as_raw_fd().to_ne_bytes();
        let all = match kind.map_type {
            MapType::RingBuf => &self.wakers,
            _ => &self.sessions,
        };
        all.update(&slot.to_ne_bytes(), &value, MapFlags::ANY)?;
        Ok(map)
    }
}

/// Gives the services' tables room for so many hosts, each with two addresses.
fn size_tables(object: &mut OpenObject, hosts: u32) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some("hosts" | "heard") => map.set_max_entries(hosts)?,
            Some("addresses") => map.set_max_entries(hosts.saturating_mul(2))?,
            _ => {}
        }
    }
    Ok(())
}

/// The map of this name.
fn find_map(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name);
    MapHandle::try_from(&map.expect("the programs have this map"))
}

/// Puts a socket into a map.
fn enter(map: &MapHandle, slot: u32, socket: BorrowedFd) -> libbpf_rs::Result<()> {
    let value = (socket.as_raw_fd() as u64).to_ne_bytes();
    map.update(&slot.to_ne_bytes(), &value, MapFlags::ANY)
}

/// A kind of map that each session has one of.
struct Kind {
    map_type: MapType,
    name: &'static str,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

const SESSION: Kind = Kind {
    map_type: MapType::Array,
    name: "session",
    key_bytes: size_of::<u32>() as u32,
    value_bytes: 0, // as many as the application's sessions have
    entries: 1,
    flags: BPF_F_MMAPABLE,
};

const WAKER: Kind = Kind {
    map_type: MapType::RingBuf,
    name: "waker",
    key_bytes: 0,
    value_bytes: 0,
    entries: 0, // as many bytes as a page has
    flags: 0,
};

/// An error of libbpf's, with all that it tells.
pub(crate) fn to_io(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}
