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

/// The number of this layout of sessions and maps: to be changed with them. Up to the end of `input` a session is the same in all
/// layouts, so that a program can let go what another one left.
pub const LAYOUT: u32 = 1;

/// How many beginnings of messages can be stored beside the one that the kernel goes on with, where the program alone writes, and
/// where they begin: behind all that the kernel uses of `input`.
const STORED: usize = 2;
const STORED_AT: usize = 24576;

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
    pub xid: AtomicU32,
    pub places_taken: AtomicU32,
    carried: AtomicU32,
    pub is_fresh: AtomicU32,
    pub is_retired: AtomicU32,
    write_seq: AtomicU32,
    unwritten_base: AtomicU32,
    padding: AtomicU32,
    span: AtomicU64,
    pub reply_bytes: AtomicU64,
    pub replies_sent: AtomicU64,
    pub answered: AtomicU64,
    pub taken_bytes: AtomicU64,
    pub passed_other: AtomicU64,
    pub passed_long: AtomicU64,
    pub passed_full: AtomicU64,
    pub is_attached: AtomicU64,
    pub written: AtomicU64,
    pub unpassed: AtomicU64,
    pub counted: [AtomicU64; 5],
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
    pub fn read_fragment(&self, to: &mut Vec<u8>) {
        let carried = self.carried.load(Relaxed) as usize;
        self.read_stored(0, carried, to);
    }

    /// Stores the beginning of a message at a place of its own: 0 is the kernel's. While the program is the owner.
    pub fn store(&self, place: usize, fragment: &[u8]) {
        let input = self.input.iter().skip(stored_at(place));
        for (byte, value) in input.zip(fragment) {
            byte.store(*value, Relaxed);
        }
    }

    /// Appends so many bytes of what is stored there.
    pub fn read_stored(&self, place: usize, bytes: usize, to: &mut Vec<u8>) {
        let input = self.input.iter().skip(stored_at(place));
        let input = input.take(bytes.min(CARRY_BYTES));
        to.extend(input.map(|byte| byte.load(Relaxed)));
    }
}

/// The place for the next beginning of a message, which is not that of the last.
pub fn next_place(last: usize) -> usize {
    last % STORED + 1
}

/// Where in `input` a place is.
fn stored_at(place: usize) -> usize {
    match place {
        1..=STORED => STORED_AT + (place - 1) * CARRY_BYTES,
        _ => 0,
    }
}

/// A session, mapped into the program's memory for as long as this lives.
pub struct Memory {
    mapping: MmapRaw,
    /// The table's clock less the program's, in seconds: what had passed when an earlier program ended.
    pub clock_ahead_s: AtomicU32,
}

impl Memory {
    /// Maps the only element of a map.
    pub fn map(map: BorrowedFd) -> io::Result<Self> {
        Self::map_bytes(map, SESSION_BYTES)
    }

    /// The same without the table, for a session of any layout. The table of such a one must not be used.
    pub fn map_front(map: BorrowedFd) -> io::Result<Self> {
        Self::map_bytes(map, size_of::<Shared>())
    }

    fn map_bytes(map: BorrowedFd, bytes: usize) -> io::Result<Self> {
        let mapping = MmapOptions::new().len(bytes).map_raw(map.as_raw_fd())?;
        Ok(Self {
            mapping,
            clock_ahead_s: AtomicU32::new(0),
        })
    }

    /// All but the table.
    pub fn shared(&self) -> &Shared {
        let shared = self.mapping.as_ptr().cast::<Shared>();
        // SAFETY: the mapping has at least a Shared's bytes, begins at a page, and lives as long as self. A Shared is made
        // of atomics alone, for which any bytes are values and which the kernel may change meanwhile.
        unsafe { &*shared }
    }

    /// Where the table begins.
    fn places(&self) -> *mut MacEntry {
        self.mapping.as_mut_ptr().wrapping_add(PLACES_AT).cast()
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

    /// The places of a session that an earlier program left, which is mapped with its table. `None` where they make no sense. To be
    /// made once for each, with when the program's clock was 0 on the kernel's.
    pub fn resume(memory: Arc<Memory>, started_ns: u64) -> Option<Self> {
        let shared = memory.shared();
        let count = shared.place_mask.load(Relaxed) as usize + 1;
        if !count.is_power_of_two() || !(64..=MAX_PLACES).contains(&count) {
            return None;
        }
        let clock_ns = shared.clock_ns.load(Relaxed);
        if clock_ns == 0 {
            // It was never handed over, and nobody knows the clock of what is in there.
            return Some(Self::new(memory, count));
        }
        let ahead_s = started_ns.saturating_sub(clock_ns) / 1_000_000_000;
        let ahead_s = u32::try_from(ahead_s).unwrap_or(u32::MAX >> 2);
        memory.clock_ahead_s.store(ahead_s, Relaxed);
        Some(Self { memory, count })
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

    fn clock_s(&self, now_s: u32) -> u32 {
        now_s.saturating_add(self.memory.clock_ahead_s.load(Relaxed))
    }
}
