//! State of one switch's connection that the kernel and the program share: `struct session` of `bpf/session.h`, field by field.
//! The application's part follows it.

use crate::owner::Owner;
use crate::pool::Lease;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

/// Maximum length of the kept start of a message.
pub const CARRY_BYTES: usize = 2048;

/// The number of this layout of sessions, with the applications' parts, and of maps. It must be changed together with them. Up
/// to the end of `input`, a session is identical in all layouts, so that a program can release one of another version.
pub const LAYOUT: u32 = 5;

/// Number of starts of messages that the program can store in addition to the kernel's, and their offset, which is behind the
/// part of `input` that the kernel uses.
const STORED: usize = 2;
const STORED_AT: usize = 24576;

const INPUT_ROOM: usize = 32768;
const REPLY_ROOM: usize = 65536;
const SLACK: usize = CARRY_BYTES + 256;

/// The session without the application's part, which follows it.
#[repr(C)]
pub struct Shared {
    pub owner: Owner,
    pub slot: AtomicU32,
    pub version: AtomicU32,
    pub clock_ns: AtomicU64,
    pub max_input_bytes: AtomicU32,
    pub xid: AtomicU32,
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
    pub is_attached: AtomicU64,
    pub written: AtomicU64,
    pub unpassed: AtomicU64,
    pub counted: [AtomicU64; 5],
    input: [AtomicU8; INPUT_ROOM + SLACK],
    replies: [AtomicU8; REPLY_ROOM + SLACK],
    senders: AtomicU64,
}

/// Offset of the application's part.
const APPLICATION_AT: usize = size_of::<Shared>().next_multiple_of(ALIGNMENT);

const ALIGNMENT: usize = 64;

/// Returns the size of a session with an application's part of this size, which is that of the map's value.
pub const fn session_bytes(application_bytes: usize) -> usize {
    (APPLICATION_AT + application_bytes).next_multiple_of(ALIGNMENT)
}

impl Shared {
    /// Returns the number of bytes of replies in the session that have not been sent yet.
    pub fn unsent_bytes(&self) -> u32 {
        let span = self.span.load(Relaxed);
        ((span >> 32) as u32).saturating_sub(span as u32)
    }

    /// Stores the start of a message, which the kernel continues. Must be called while the program is the owner.
    pub fn set_fragment(&self, fragment: &[u8]) {
        for (byte, value) in self.input.iter().zip(fragment) {
            byte.store(*value, Relaxed);
        }
        self.carried.store(fragment.len() as u32, Relaxed);
    }

    /// Appends the start of a message that the kernel has kept. Must be called while the program is the owner.
    pub fn read_fragment(&self, to: &mut Vec<u8>) {
        let carried = self.carried.load(Relaxed) as usize;
        self.read_stored(0, carried, to);
    }

    /// Stores the start of a message in a slot; slot 0 is the kernel's. Must be called while the program is the owner.
    pub fn store(&self, place: usize, fragment: &[u8]) {
        let input = self.input.iter().skip(stored_at(place));
        for (byte, value) in input.zip(fragment) {
            byte.store(*value, Relaxed);
        }
    }

    /// Appends this number of bytes stored in a slot.
    pub fn read_stored(&self, place: usize, bytes: usize, to: &mut Vec<u8>) {
        let input = self.input.iter().skip(stored_at(place));
        let input = input.take(bytes.min(CARRY_BYTES));
        to.extend(input.map(|byte| byte.load(Relaxed)));
    }
}

/// Returns the slot for the next start of a message, which differs from the last one.
pub fn next_place(last: usize) -> usize {
    last % STORED + 1
}

/// Returns the offset of a slot in `input`.
fn stored_at(place: usize) -> usize {
    match place {
        1..=STORED => STORED_AT + (place - 1) * CARRY_BYTES,
        _ => 0,
    }
}

/// A session, mapped into the program's memory for as long as this lives.
pub struct Memory {
    mapping: MmapRaw,
    application_bytes: usize,
    /// The application's clock minus the program's, in seconds: the time that had passed when an earlier program ended.
    pub clock_ahead_s: AtomicU32,
    /// Whether the session belongs to the next program. At the end of this program's connections, forgetting then has no effect
    /// on it.
    pub is_left: AtomicBool,
    /// Keeps the session from other switches.
    _lease: Option<Arc<Lease>>,
}

impl Memory {
    /// Maps the only element of a map, with an application's part of this size.
    pub fn map(map: BorrowedFd, application_bytes: usize) -> io::Result<Self> {
        Self::map_bytes(map, session_bytes(application_bytes), application_bytes)
    }

    /// Maps the session of a lease, which is held as long as this lives.
    pub fn of_lease(lease: Arc<Lease>, application_bytes: usize) -> io::Result<Self> {
        let memory = Self::map(lease.session(), application_bytes)?;
        Ok(Self {
            _lease: Some(lease),
            ..memory
        })
    }

    /// Maps the session without the application's part, which is possible for any layout.
    pub fn map_front(map: BorrowedFd) -> io::Result<Self> {
        Self::map_bytes(map, size_of::<Shared>(), 0)
    }

    fn map_bytes(map: BorrowedFd, bytes: usize, application_bytes: usize) -> io::Result<Self> {
        let mapping = MmapOptions::new().len(bytes).map_raw(map.as_raw_fd())?;
        Ok(Self {
            mapping,
            application_bytes,
            clock_ahead_s: AtomicU32::new(0),
            is_left: AtomicBool::new(false),
            _lease: None,
        })
    }

    /// Returns the number of mapped bytes.
    pub fn bytes(&self) -> usize {
        self.mapping.len()
    }

    /// Returns the session without the application's part.
    pub fn shared(&self) -> &Shared {
        let shared = self.mapping.as_ptr().cast::<Shared>();
        // SAFETY: the mapping has at least a Shared's bytes, starts at a page, and lives as long as self. A Shared
        // consists of atomics, for which all bytes are valid and which the kernel may change at any time.
        unsafe { &*shared }
    }

    /// Returns a pointer to the application's part, which is aligned to 64 bytes and lives as long as self.
    ///
    /// # Panics
    /// If the application's part does not have the size of a `T`.
    pub fn application<T>(&self) -> *mut T {
        assert_eq!(size_of::<T>(), self.application_bytes);
        self.mapping
            .as_mut_ptr()
            .wrapping_add(APPLICATION_AT)
            .cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Application;
    use crate::maps::Maps;
    use std::mem::offset_of;

    /// A program of any layout finds these fields here, since it may have to release a session of another layout.
    #[test]
    fn the_front_of_a_session_is_the_same_in_all_layouts() {
        let offsets = [
            offset_of!(Shared, owner),
            offset_of!(Shared, slot),
            offset_of!(Shared, version),
            offset_of!(Shared, clock_ns),
            offset_of!(Shared, max_input_bytes),
            offset_of!(Shared, xid),
            offset_of!(Shared, carried),
            offset_of!(Shared, is_fresh),
            offset_of!(Shared, is_retired),
            offset_of!(Shared, write_seq),
            offset_of!(Shared, unwritten_base),
            offset_of!(Shared, span),
            offset_of!(Shared, reply_bytes),
            offset_of!(Shared, replies_sent),
            offset_of!(Shared, answered),
            offset_of!(Shared, taken_bytes),
            offset_of!(Shared, passed_other),
            offset_of!(Shared, passed_long),
            offset_of!(Shared, passed_full),
            offset_of!(Shared, is_attached),
            offset_of!(Shared, written),
            offset_of!(Shared, unpassed),
            offset_of!(Shared, counted),
            offset_of!(Shared, input),
            offset_of!(Shared, replies),
        ];
        let expected = [
            0, 8, 12, 16, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128,
            136, 144, 184, 35_256,
        ];
        assert_eq!(offsets, expected);
        assert_eq!((stored_at(1), stored_at(2)), (24_576, 26_624));
    }

    /// A change of the size of a session, or of the maps, needs another number of the layout, here and above.
    #[test]
    fn sizes_belong_to_a_layout() {
        let bytes = Application::HELD.map(|application| session_bytes(application.bytes()));
        let forms = Application::HELD.map(Application::form);
        assert_eq!(forms, ["l2.5", "l3.5", "services.5"]);
        assert_eq!(bytes, [236_288, 373_504, 177_152]);
        let names = [
            "slots", "sessions", "wakers", "switches", "keepers", "relays", "exits",
        ];
        assert_eq!(Maps::NAMES, names);
    }
}
