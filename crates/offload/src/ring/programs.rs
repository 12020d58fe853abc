//! The program and maps of `bpf/ring.bpf.c`, loaded by libbpf.

use super::queue::Untold;
use super::session::SESSION_BYTES;
use crate::loaded::{new_session, to_io};
use crate::maps::Entries;
use crate::pool::Maker;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The program, as compiled by clang.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ring.o"));

/// The loaded program, and its maps.
pub(crate) struct Programs {
    /// Keeps the program in the kernel.
    _object: Object,
    slots: MapHandle,
    sessions: MapHandle,
    rings: MapHandle,
    untold: MapHandle,
    switches: MapHandle,
}

// SAFETY: this contains file descriptors and memory of libbpf, which are used only under the mutex, and not bound to a thread.
unsafe impl Send for Programs {}

impl Programs {
    /// Loads the program and attaches it to its map.
    pub fn load() -> io::Result<Self> {
        Self::try_load().map_err(to_io)
    }

    fn try_load() -> libbpf_rs::Result<Self> {
        let mut builder = ObjectBuilder::default();
        let object = builder.open_memory(PROGRAM)?.load()?;
        let map = |name: &str| {
            let map = object.maps().find(|map| map.name() == name);
            MapHandle::try_from(&map.expect("the program has this map"))
        };
        let (slots, sessions, rings) = (map("slots")?, map("sessions")?, map("rings")?);
        let (untold, switches) = (map("untold")?, map("switches")?);
        let program = object
            .progs_mut()
            .find(|program| program.name() == "to_ring");
        program
            .expect("there is this one")
            .attach_sockmap(switches.as_fd().as_raw_fd())?;
        Ok(Self {
            _object: object,
            slots,
            sessions,
            rings,
            untold,
            switches,
        })
    }

    /// Returns the words that report passed input for which a ring had no space.
    pub fn untold(&self, rings: usize) -> io::Result<Untold> {
        Untold::map(self.untold.as_fd(), rings)
    }

    /// Creates a ring of this number of bytes, a power of two and at least a page.
    pub fn new_ring(&self, number: u32, bytes: u32) -> io::Result<OwnedFd> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let ring = MapHandle::create(MapType::RingBuf, Some("ring"), 0, 0, bytes, &options);
        let ring = ring.map_err(to_io)?;
        enter(&self.rings, number, ring.as_fd())?;
        ring.as_fd().try_clone_to_owned()
    }

    /// Removes a ring from the map.
    pub fn forget_ring(&self, number: u32) {
        let _ = self.rings.delete(&number.to_ne_bytes());
    }

    /// Returns the map of maps of sessions, and the sessions' constructor.
    pub fn sessions(&self) -> io::Result<(Entries, Maker)> {
        let entries = Entries {
            sessions: self.sessions.as_fd().try_clone_to_owned()?,
            wakers: None,
        };
        let maker = Maker {
            make: Box::new(|| Ok((new_session(SESSION_BYTES)?, None))),
            bytes: SESSION_BYTES,
        };
        Ok((entries, maker))
    }

    /// Passes input of a switch's socket through the program from now on.
    pub fn attach(&self, slot: u32, cookie: u64, socket: BorrowedFd) -> io::Result<()> {
        let (key, value) = (cookie.to_ne_bytes(), slot.to_ne_bytes());
        self.slots
            .update(&key, &value, MapFlags::ANY)
            .map_err(to_io)?;
        let value = (socket.as_raw_fd() as u64).to_ne_bytes();
        let entered = self
            .switches
            .update(&slot.to_ne_bytes(), &value, MapFlags::ANY);
        entered.map_err(to_io)
    }

    /// Removes a session's socket from the maps, if it is there.
    pub fn forget_session(&self, slot: u32, cookie: u64) {
        let _ = self.slots.delete(&cookie.to_ne_bytes());
        let _ = self.switches.delete(&slot.to_ne_bytes());
    }
}

/// Puts a map into a map of maps.
fn enter(all: &MapHandle, at: u32, map: BorrowedFd) -> io::Result<()> {
    let value = map.as_raw_fd().to_ne_bytes();
    all.update(&at.to_ne_bytes(), &value, MapFlags::ANY)
        .map_err(to_io)
}
