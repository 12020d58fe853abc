//! State of one switch's connection that the kernel and the program share: `struct session` of `bpf/ring_session.h`,
//! field by field.

use crate::owner::Owner;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The kernel keeps fewer bytes than this of the start of a message.
pub const CARRY_BYTES: usize = 16384;

const INPUT_ROOM: usize = 32768;
const SLACK: usize = 64;
const MAX_RECORDS: usize = 512;
const RECORD_BYTES: usize = 32;

/// One connection's session.
#[repr(C)]
pub struct Shared {
    pub owner: Owner,
    pub connection: AtomicU64,
    pub ring: AtomicU32,
    pub version: AtomicU32,
    pub wants_records: AtomicU32,
    pub is_wanted: AtomicU32,
    pub types: AtomicU64,
    carried: AtomicU32,
    padding: AtomicU32,
    pub delivered: AtomicU64,
    pub passed_other: AtomicU64,
    pub passed_long: AtomicU64,
    pub passed_full: AtomicU64,
    records: [[AtomicU8; RECORD_BYTES]; MAX_RECORDS],
    input: [AtomicU8; INPUT_ROOM + SLACK],
}

/// Size of the map's value.
pub const SESSION_BYTES: usize = size_of::<Shared>();

impl Shared {
    /// Stores the start of a message, which the kernel continues. Must be called while the program is the owner.
    pub fn set_fragment(&self, fragment: &[u8]) {
        for (byte, value) in self.input.iter().zip(fragment) {
            byte.store(*value, Relaxed);
        }
        self.carried.store(fragment.len() as u32, Relaxed);
    }

    /// Appends the start of a message that the kernel has kept. Must be called while the program is the owner.
    pub fn take_fragment(&self, to: &mut Vec<u8>) {
        let carried = self.carried.swap(0, Relaxed) as usize;
        let bytes = self.input.iter().take(carried);
        to.extend(bytes.map(|byte| byte.load(Relaxed)));
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

    /// Returns the session.
    pub fn shared(&self) -> &Shared {
        let shared = self.0.as_ptr().cast::<Shared>();
        // SAFETY: the mapping has SESSION_BYTES, starts at a page, and lives as long as self. A Shared consists of
        // atomics, for which all bytes are valid and which the kernel may change at any time.
        unsafe { &*shared }
    }
}
