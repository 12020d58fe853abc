//! What the kernel and the program share of one switch's connection: `struct session` of `bpf/session.h`, field by field.

use crate::owner::Owner;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use urtica_apps::{MacEntry, Places};

/// The longest beginning of a message that is carried over.
pub const CARRY_BYTES: usize = 2048;

/// The most places that a table of hosts has.
pub const MAX_PLACES: usize = 1 << 16;

const INPUT_ROOM: usize = 32768;
const REPLY_ROOM: usize = 65536;
const SLACK: usize = CARRY_BYTES + 256;

/// All but the table, which is behind it.
#[repr(C)]
pub struct Shared {
    pub owner: Owner,
    pub slot: AtomicU32,
    pub version: AtomicU32,
    pub clock_ns: AtomicU64,
    pub max_age_s: AtomicU32,
    pub place_mask: AtomicU32,
    pub max_input_bytes: AtomicU32,
    pub xid: AtomicU32,
    pub places_taken: AtomicU32,
    carried: AtomicU32,
    pub is_fresh: AtomicU32,
    pub is_retired: AtomicU32,
    write_seq: AtomicU32,
    unwritten_base: AtomicU32,
    span: AtomicU64,
    pub reply_bytes: AtomicU64,
    pub replies_sent: AtomicU64,
    pub answered: AtomicU64,
    pub taken_bytes: AtomicU64,
    pub passed_other: AtomicU64,
    pub passed_long: AtomicU64,
    pub passed_full: AtomicU64,
    input: [AtomicU8; INPUT_ROOM + SLACK],
    replies: [AtomicU8; REPLY_ROOM + SLACK],
}

/// Where the table begins.
const PLACES_AT: usize = size_of::<Shared>().next_multiple_of(64);

/// The size of it all, which is that of the map's value.
pub const SESSION_BYTES: usize = PLACES_AT + MAX_PLACES * size_of::<MacEntry>();

impl Shared {
    /// Puts the beginning of a message where the kernel goes on with it. While the program is the owner.
    pub fn set_fragment(&self, fragment: &[u8]) {
        for (byte, value) in self.input.iter().zip(fragment) {
            byte.store(*value, Relaxed);
        }
        self.carried.store(fragment.len() as u32, Relaxed);
    }

    /// Appends the beginning of a message that the kernel has kept. While the program is the owner.
    pub fn take_fragment(&self, to: &mut Vec<u8>) {
        let carried = self.carried.swap(0, Relaxed) as usize;
        to.extend(
            self.input
                .iter()
                .take(carried)
                .map(|byte| byte.load(Relaxed)),
        );
    }
}

/// A session, mapped into the program's memory for as long as this lives.
pub struct Memory(MmapRaw);

impl Memory {
    /// Maps the only element of a map.
    pub fn map(map: BorrowedFd) -> io::Result<Self> {
        let memory = MmapOptions::new()
            .len(SESSION_BYTES)
            .map_raw(map.as_raw_fd())?;
        Ok(Self(memory))
    }

    /// All but the table.
    pub fn shared(&self) -> &Shared {
        let shared = self.0.as_ptr().cast::<Shared>();
        // SAFETY: the mapping has SESSION_BYTES, more than a Shared, begins at a page, and lives as long as self. A Shared is made
        // of atomics alone, for which any bytes are values and which the kernel may change meanwhile.
        unsafe { &*shared }
    }

    /// Where the table begins.
    fn places(&self) -> *mut MacEntry {
        self.0.as_mut_ptr().wrapping_add(PLACES_AT).cast()
    }
}

/// The places of a table that the kernel sees as well. It is used only while the program is the owner.
pub struct SharedPlaces {
    memory: Arc<Memory>,
    count: usize,
}

impl SharedPlaces {
    /// So many places, all free, of this session, to which the kernel has not been let yet. To be made once for each.
    pub fn new(memory: Arc<Memory>, count: usize) -> Self {
        let mut places = Self { memory, count };
        places.fill(MacEntry::FREE);
        places
    }
}

impl Deref for SharedPlaces {
    type Target = [MacEntry];

    fn deref(&self) -> &[MacEntry] {
        // SAFETY: the mapping has MAX_PLACES from here on, aligned to 64 bytes, and lives as long as self; `count` is not more.
        // Any bytes are a MacEntry. The kernel writes there only while it is the owner, and a handler, which is all that
        // holds this, runs only while the program is: the exchange of the owner orders the one after the other.
        unsafe { std::slice::from_raw_parts(self.memory.places(), self.count) }
    }
}

impl DerefMut for SharedPlaces {
    fn deref_mut(&mut self) -> &mut [MacEntry] {
        // SAFETY: as above; and there is one SharedPlaces for a session, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.places(), self.count) }
    }
}

impl Places for SharedPlaces {
    /// The memory has one size: all of its places are free afterwards.
    fn renew(&mut self, _places: usize) -> Vec<MacEntry> {
        let before = self.to_vec();
        self.fill(MacEntry::FREE);
        before
    }
}
