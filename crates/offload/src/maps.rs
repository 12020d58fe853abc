//! The maps that all sessions share, represented by their descriptors, so that they can be used even if another process has
//! loaded them, or this one could not load any.

use crate::socket::Way;
use crate::waker::Waker;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Maximum number of sessions at a time: `MAX_SESSIONS` of `bpf/sessions.h`.
pub(crate) const MAX_SESSIONS: u32 = 4096;

/// Number of maps.
const COUNT: usize = 7;

/// The maps and tables of an earlier program.
pub(crate) struct Earlier {
    pub maps: Maps,
    /// The tables of its application, in the order of [`Application::tables`](crate::application::Application::tables).
    pub tables: Vec<OwnedFd>,
    /// Identifies the programs that were loaded for them.
    pub code: u64,
}

/// The maps of `bpf/answering.h`.
pub(crate) struct Maps {
    slots: OwnedFd,
    sessions: OwnedFd,
    wakers: OwnedFd,
    switches: OwnedFd,
    keepers: OwnedFd,
    relays: OwnedFd,
    exits: OwnedFd,
}

impl Maps {
    /// The maps' names, in the order of their descriptors.
    pub const NAMES: [&'static str; COUNT] = [
        "slots", "sessions", "wakers", "switches", "keepers", "relays", "exits",
    ];

    /// Wraps descriptors, in the order of the names; returns `None` if there are too few. Other layouts may have further ones
    /// after these, which are not needed to release the maps.
    pub fn from_fds(mut fds: Vec<OwnedFd>) -> Option<Self> {
        fds.truncate(COUNT);
        let [slots, sessions, wakers, switches, keepers, relays, exits]: [OwnedFd; COUNT] =
            fds.try_into().ok()?;
        Some(Self {
            slots,
            sessions,
            wakers,
            switches,
            keepers,
            relays,
            exits,
        })
    }

    /// Returns the descriptors, in the order of the names.
    pub fn fds(&self) -> [BorrowedFd<'_>; COUNT] {
        [
            &self.slots,
            &self.sessions,
            &self.wakers,
            &self.switches,
            &self.keepers,
            &self.relays,
            &self.exits,
        ]
        .map(AsFd::as_fd)
    }

    /// Returns the maps of maps.
    pub fn entries(&self) -> io::Result<Entries> {
        Ok(Entries {
            sessions: self.sessions.try_clone()?,
            wakers: Some(self.wakers.try_clone()?),
        })
    }

    /// Puts the sockets into the maps, so that input of the switch's socket passes through the programs.
    pub fn attach(&self, slot: u32, way: &Way) -> io::Result<()> {
        self.attach_way(slot, way)?;
        // The last step, because it redirects the switch's input.
        self.step_in(slot, way.switch)
    }

    /// Attaches without the last step, for sockets that may be in the maps already: a socket must not enter a slot twice.
    pub fn attach_way(&self, slot: u32, way: &Way) -> io::Result<()> {
        for cookie in [way.switch_cookie, way.relay_cookie] {
            update(&self.slots, &cookie.to_ne_bytes(), &slot.to_ne_bytes())?;
        }
        let places = [
            (&self.exits, way.exit),
            (&self.relays, way.relay),
            (&self.keepers, way.switch),
        ];
        for (map, socket) in places {
            if cookie_at(map, slot) != Some(crate::socket::cookie(socket)?) {
                enter(map, slot, socket)?;
            }
        }
        Ok(())
    }

    /// Returns whether input of the switch's socket passes through the programs.
    pub fn is_in(&self, slot: u32, switch_cookie: u64) -> bool {
        cookie_at(&self.switches, slot) == Some(switch_cookie)
    }

    /// Passes input of a switch's socket through the programs again.
    pub fn step_in(&self, slot: u32, switch: BorrowedFd) -> io::Result<()> {
        enter(&self.switches, slot, switch)
    }

    /// Removes the switch's socket from the map: its input goes directly to the program.
    pub fn step_aside(&self, slot: u32) -> io::Result<()> {
        delete(&self.switches, &slot.to_ne_bytes())
    }

    /// Removes a session's sockets from the maps, if they are there.
    pub fn forget(&self, slot: u32, cookies: &[u64]) {
        for cookie in cookies {
            let _ = delete(&self.slots, &cookie.to_ne_bytes());
        }
        let maps = [&self.switches, &self.keepers, &self.relays, &self.exits];
        for map in maps {
            let _ = delete(map, &slot.to_ne_bytes());
        }
    }

    /// Drops the signals of a session from now on.
    #[cfg(test)]
    pub fn empty_relay(&self, slot: u32) -> io::Result<()> {
        delete(&self.relays, &slot.to_ne_bytes())
    }

    /// Removes all entries that belong to none of these slots, which are sorted: those of connections that ended while no
    /// program was running, and of sessions without connections.
    pub fn forget_others(&self, used: &[u32]) -> io::Result<()> {
        let is_used = |slot: &u32| used.binary_search(slot).is_ok();
        for cookie in self.cookies() {
            let slot = lookup::<4>(&self.slots, &cookie).map(u32::from_ne_bytes);
            if slot.is_some_and(|slot| !is_used(&slot)) {
                let _ = delete(&self.slots, &cookie);
            }
        }
        let mut others = self.entries()?.slots();
        others.retain(|slot| !is_used(slot));
        for slot in &others {
            self.forget(*slot, &[]);
        }
        self.entries()?.remove(&others);
        Ok(())
    }

    /// Returns the cookies of all sockets that have a slot.
    fn cookies(&self) -> Vec<[u8; 8]> {
        let mut cookies = Vec::new();
        while let Some(next) = next_key(&self.slots, cookies.last()) {
            cookies.push(next);
        }
        cookies
    }
}

/// A session in the kernel.
pub(crate) struct Made {
    pub slot: u32,
    pub session: OwnedFd,
    pub waker: Option<Arc<Waker>>,
}

/// The maps of maps that contain the sessions. Each change waits until no program uses the previous entry: 10 to 20 ms. So once
/// switches are served, only the [`Pool`](crate::pool::Pool)'s thread uses these.
pub(crate) struct Entries {
    pub sessions: OwnedFd,
    pub wakers: Option<OwnedFd>,
}

impl Entries {
    /// Enters sessions and their programs' wakers, and replaces earlier ones in their slots.
    pub fn enter<'a>(&self, made: impl Iterator<Item = &'a Made>) -> io::Result<()> {
        let (mut slots, mut sessions, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        for made in made {
            slots.push(made.slot);
            sessions.push(made.session.as_raw_fd());
            let waker = made.waker.as_ref();
            wakers.extend(waker.map(|waker| waker.as_fd().as_raw_fd()));
        }
        update_all(&self.sessions, &slots, &sessions)?;
        match &self.wakers {
            Some(map) => update_all(map, &slots, &wakers),
            None => Ok(()),
        }
    }

    /// Removes the sessions in these slots. Each slot must have one.
    pub fn remove(&self, slots: &[u32]) {
        for map in std::iter::once(&self.sessions).chain(&self.wakers) {
            let _ = delete_all(map, slots);
        }
    }

    /// Returns the slots that have sessions, in order.
    fn slots(&self) -> Vec<u32> {
        let has_one = |slot: &u32| lookup::<4>(&self.sessions, &slot.to_ne_bytes()).is_some();
        (0..MAX_SESSIONS).filter(has_one).collect()
    }
}

/// Returns whether a socket could not enter a map because its peer has closed its side. No more input arrives then.
pub(crate) fn is_closed_by_peer(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

/// Puts a socket into a map.
fn enter(map: &OwnedFd, slot: u32, socket: BorrowedFd) -> io::Result<()> {
    let value = (socket.as_raw_fd() as u64).to_ne_bytes();
    update(map, &slot.to_ne_bytes(), &value)
}

/// Returns the cookie of the socket in this slot of a map of sockets.
fn cookie_at(map: &OwnedFd, slot: u32) -> Option<u64> {
    lookup::<8>(map, &slot.to_ne_bytes()).map(u64::from_ne_bytes)
}

/// Commands of bpf(2).
const LOOKUP_ELEM: libc::c_int = 1;
const UPDATE_ELEM: libc::c_int = 2;
const DELETE_ELEM: libc::c_int = 3;
const GET_NEXT_KEY: libc::c_int = 4;
const UPDATE_BATCH: libc::c_int = 26;
const DELETE_BATCH: libc::c_int = 27;

/// `union bpf_attr` of linux/bpf.h for these commands.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr` of linux/bpf.h for commands with many elements.
#[repr(C)]
struct Elements {
    first: u64,
    last: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// Puts the maps with these descriptors into these slots of a map of maps, in one call that waits only once.
fn update_all(map: &OwnedFd, slots: &[u32], fds: &[i32]) -> io::Result<()> {
    if slots.len() != fds.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    call_all(UPDATE_BATCH, map, slots, fds.as_ptr() as u64)
}

fn delete_all(map: &OwnedFd, slots: &[u32]) -> io::Result<()> {
    call_all(DELETE_BATCH, map, slots, 0)
}

/// Calls bpf(2) for slots of a map of maps, with one descriptor per slot at `values` if the command uses them.
fn call_all(command: libc::c_int, map: &OwnedFd, slots: &[u32], values: u64) -> io::Result<()> {
    if slots.is_empty() {
        return Ok(());
    }
    let mut elements = Elements {
        first: 0,
        last: 0,
        keys: slots.as_ptr() as u64,
        values,
        count: slots.len() as u32,
        map: map.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `count` keys and values of 4 bytes each at addresses that are valid during this call, and writes
    // their number to `elements`.
    unsafe {
        bpf(
            command,
            map,
            std::ptr::from_mut(&mut elements).cast(),
            size_of::<Elements>(),
        )
    }
}

/// Calls bpf(2) for a map.
///
/// # Safety
/// `attributes` must point to this number of bytes, in the command's format.
unsafe fn bpf(
    command: libc::c_int,
    map: &OwnedFd,
    attributes: *const libc::c_void,
    bytes: usize,
) -> io::Result<()> {
    #[cfg(test)]
    tests::note(command, map);
    #[cfg(not(test))]
    let _ = map;
    // SAFETY: promised by the caller.
    match unsafe { libc::syscall(libc::SYS_bpf, command, attributes, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn update(map: &OwnedFd, key: &[u8], value: &[u8]) -> io::Result<()> {
    call(UPDATE_ELEM, map, key.as_ptr(), value.as_ptr().cast_mut())
}

fn delete(map: &OwnedFd, key: &[u8]) -> io::Result<()> {
    call(DELETE_ELEM, map, key.as_ptr(), std::ptr::null_mut())
}

fn lookup<const BYTES: usize>(map: &OwnedFd, key: &[u8]) -> Option<[u8; BYTES]> {
    let mut value = [0; BYTES];
    call(LOOKUP_ELEM, map, key.as_ptr(), value.as_mut_ptr()).ok()?;
    Some(value)
}

/// Returns the key after this one, or the first.
fn next_key(map: &OwnedFd, key: Option<&[u8; 8]>) -> Option<[u8; 8]> {
    let mut next = [0; 8];
    let key = key.map_or(std::ptr::null(), |key| key.as_ptr());
    call(GET_NEXT_KEY, map, key, next.as_mut_ptr()).ok()?;
    Some(next)
}

/// Calls bpf(2) for an element. The callers' keys and values have the map's sizes.
fn call(command: libc::c_int, map: &OwnedFd, key: *const u8, value: *mut u8) -> io::Result<()> {
    let element = Element {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key as u64,
        value: value as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads `element`, and reads or writes a key and a value of the map's sizes at addresses that are valid
    // during this call.
    unsafe {
        bpf(
            command,
            map,
            std::ptr::from_ref(&element).cast(),
            size_of::<Element>(),
        )
    }
}

#[cfg(test)]
mod tests;
