//! The maps that all sessions have in common, by their descriptors: also where another process loaded them, and where this one
//! could not load any.

use crate::kernel::Way;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// How many there are.
const COUNT: usize = 7;

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
    /// Their names, in the order of their descriptors.
    pub const NAMES: [&'static str; COUNT] = [
        "slots", "sessions", "wakers", "switches", "keepers", "relays", "exits",
    ];

    /// Of their descriptors in the order of their names; `None` where these are more or less.
    pub fn from_fds(fds: Vec<OwnedFd>) -> Option<Self> {
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

    /// Their descriptors, in the order of their names.
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

    /// Gives a slot its session and what wakes its program.
    pub fn enter_session(
        &self,
        slot: u32,
        session: BorrowedFd,
        waker: BorrowedFd,
    ) -> io::Result<()> {
        for (map, value) in [(&self.sessions, session), (&self.wakers, waker)] {
            update(map, &slot.to_ne_bytes(), &value.as_raw_fd().to_ne_bytes())?;
        }
        Ok(())
    }

    /// Puts the sockets into the maps, so that what comes from the switch's goes through the programs.
    pub fn attach(&self, slot: u32, way: &Way) -> io::Result<()> {
        self.attach_way(slot, way)?;
        // Last: from here on the switch's input takes this way.
        self.step_in(slot, way.switch)
    }

    /// The same without the last step, for sockets that may be there already: a socket must not enter the same place twice.
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

    /// Whether what comes from the switch's socket goes through the programs.
    pub fn is_in(&self, slot: u32, switch_cookie: u64) -> bool {
        cookie_at(&self.switches, slot) == Some(switch_cookie)
    }

    /// Has what comes from a switch's socket go through the programs again.
    pub fn step_in(&self, slot: u32, switch: BorrowedFd) -> io::Result<()> {
        enter(&self.switches, slot, switch)
    }

    /// Has what comes from a switch's socket go straight to the program.
    pub fn step_aside(&self, slot: u32) -> io::Result<()> {
        delete(&self.switches, &slot.to_ne_bytes())
    }

    /// Takes a session and its sockets out of the maps. What is not there any more is as it should be.
    pub fn forget(&self, slot: u32, cookies: &[u64]) {
        for cookie in cookies {
            let _ = delete(&self.slots, &cookie.to_ne_bytes());
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
            let _ = delete(map, &slot.to_ne_bytes());
        }
    }

    /// Takes out of the maps what belongs to none of these slots, which are in order: it is of connections that ended while nobody
    /// was there.
    pub fn forget_others(&self, used: &[u32], slots: u32) {
        for cookie in self.cookies() {
            let slot = lookup::<4>(&self.slots, &cookie).map(u32::from_ne_bytes);
            if slot.is_some_and(|slot| used.binary_search(&slot).is_err()) {
                let _ = delete(&self.slots, &cookie);
            }
        }
        for slot in (0..slots).filter(|slot| used.binary_search(slot).is_err()) {
            if delete(&self.sessions, &slot.to_ne_bytes()).is_ok() {
                self.forget(slot, &[]);
            }
        }
    }

    /// The cookies of all sockets that have a slot.
    fn cookies(&self) -> Vec<[u8; 8]> {
        let mut cookies = Vec::new();
        while let Some(next) = next_key(&self.slots, cookies.last()) {
            cookies.push(next);
        }
        cookies
    }
}

/// Puts a socket into a map.
fn enter(map: &OwnedFd, slot: u32, socket: BorrowedFd) -> io::Result<()> {
    let value = (socket.as_raw_fd() as u64).to_ne_bytes();
    update(map, &slot.to_ne_bytes(), &value)
}

/// The cookie of the socket at this place of a map of sockets.
fn cookie_at(map: &OwnedFd, slot: u32) -> Option<u64> {
    lookup::<8>(map, &slot.to_ne_bytes()).map(u64::from_ne_bytes)
}

/// Commands of bpf(2).
const LOOKUP_ELEM: libc::c_int = 1;
const UPDATE_ELEM: libc::c_int = 2;
const DELETE_ELEM: libc::c_int = 3;
const GET_NEXT_KEY: libc::c_int = 4;

/// `union bpf_attr` of linux/bpf.h for these commands.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
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

/// The key after this one, or the first.
fn next_key(map: &OwnedFd, key: Option<&[u8; 8]>) -> Option<[u8; 8]> {
    let mut next = [0; 8];
    let key = key.map_or(std::ptr::null(), |key| key.as_ptr());
    call(GET_NEXT_KEY, map, key, next.as_mut_ptr()).ok()?;
    Some(next)
}

/// Calls bpf(2) for an element. The callers' keys and values have the sizes that their map has.
fn call(command: libc::c_int, map: &OwnedFd, key: *const u8, value: *mut u8) -> io::Result<()> {
    let element = Element {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key as u64,
        value: value as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads `element`, and reads or writes a key and a value of the map's sizes at addresses that are valid for
    // as long as this call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(&element),
            size_of::<Element>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
