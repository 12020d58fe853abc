//! The learning switch's part of a session: `struct application` of `bpf/mac_table.h`, field by field.

use crate::session::Memory;
use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use urtica_apps::{MacEntry, Places};

/// The most places that a table of hosts has.
pub const MAX_PLACES: usize = 1 << 13;

/// The settings of a table, and its places.
#[repr(C)]
pub struct Table {
    max_age_s: AtomicU32,
    place_mask: AtomicU32,
    places_taken: AtomicU32,
    max_taken: AtomicU32,
    padding: [AtomicU32; 12],
    places: [UnsafeCell<MacEntry>; MAX_PLACES],
}

impl Table {
    /// That of a session.
    fn of(memory: &Memory) -> &Self {
        // SAFETY: the mapping lives as long as `memory`. A Table is made of atomics and cells alone, for which any bytes are values.
        unsafe { &*memory.application::<Self>() }
    }
}

/// The settings of a table, which stay for the time of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// A power of two.
    pub places: usize,
    /// How many of them may be taken; with more, the program answers alone, by a table of its own that grows.
    pub max_taken: usize,
}

impl Size {
    /// As many places as there can be, until three quarters of them are taken.
    pub const GROWING: Self = Self {
        places: MAX_PLACES,
        max_taken: MAX_PLACES / 4 * 3,
    };

    /// So many places, which new hosts share with others when they are all taken.
    pub fn fixed(places: usize) -> Self {
        let places = places.clamp(64, MAX_PLACES).next_power_of_two();
        Self {
            places,
            max_taken: places,
        }
    }
}

/// The settings, which stay for the time of a session.
pub fn set_up(memory: &Memory, size: Size, max_age_s: u32) {
    let table = Table::of(memory);
    table.max_age_s.store(max_age_s, Relaxed);
    table.place_mask.store(size.places as u32 - 1, Relaxed);
    table.max_taken.store(size.max_taken as u32, Relaxed);
}

/// Notes that so many more places are taken. While the program is the owner.
pub fn note_taken(memory: &Memory, count: usize) {
    let table = Table::of(memory);
    let taken = table.places_taken.load(Relaxed);
    table.places_taken.store(taken + count as u32, Relaxed);
}

/// Whether more places are taken than the kernel answers with. While the program is the owner.
pub fn is_crowded(memory: &Memory) -> bool {
    let table = Table::of(memory);
    table.places_taken.load(Relaxed) > table.max_taken.load(Relaxed)
}

/// Has no place taken any more. While the program is the owner, and nothing else has the places.
pub fn clear(memory: Arc<Memory>) {
    let places = Table::of(&memory).place_mask.load(Relaxed) as usize + 1;
    // Last: a program that dies before leaves a table that is crowded still, and is left by the next.
    drop(SharedPlaces::new(
        Arc::clone(&memory),
        places.min(MAX_PLACES),
    ));
    Table::of(&memory).places_taken.store(0, Relaxed);
}

/// The places of a table that the kernel sees as well. It is used only while the program is the owner.
pub struct SharedPlaces {
    memory: Arc<Memory>,
    count: usize,
}

impl SharedPlaces {
    /// So many places, all free, of this session, to which the kernel has not been let yet. To be made once for each.
    pub fn new(memory: Arc<Memory>, count: usize) -> Self {
        assert!(count <= MAX_PLACES);
        let mut places = Self { memory, count };
        places.fill(MacEntry::FREE);
        places
    }

    /// The places of a session that an earlier program left, which is mapped with its table. `None` where they make no sense. To be
    /// made once for each, with when the program's clock was 0 on the kernel's.
    pub fn resume(memory: Arc<Memory>, started_ns: u64) -> Option<Self> {
        let count = Table::of(&memory).place_mask.load(Relaxed) as usize;
        let count = count.checked_add(1)?;
        if !count.is_power_of_two() || !(64..=MAX_PLACES).contains(&count) {
            return None;
        }
        let clock_ns = memory.shared().clock_ns.load(Relaxed);
        if clock_ns == 0 {
            // It was never handed over, and nobody knows the clock of what is in there.
            return Some(Self::new(memory, count));
        }
        let ahead_s = started_ns.saturating_sub(clock_ns) / 1_000_000_000;
        let ahead_s = u32::try_from(ahead_s).unwrap_or(u32::MAX >> 2);
        memory.clock_ahead_s.store(ahead_s, Relaxed);
        Some(Self { memory, count })
    }

    /// Where they begin.
    fn first(&self) -> *mut MacEntry {
        let table = self.memory.application::<Table>();
        table.wrapping_byte_add(offset_of!(Table, places)).cast()
    }
}

impl Deref for SharedPlaces {
    type Target = [MacEntry];

    fn deref(&self) -> &[MacEntry] {
        // SAFETY: the mapping has MAX_PLACES from here on, aligned to 64 bytes, and lives as long as self; `count` is not more.
        // Any bytes are a MacEntry. The kernel writes there only while it is the owner, and a handler, which is all that
        // holds this, runs only while the program is: the exchange of the owner orders the one after the other.
        unsafe { std::slice::from_raw_parts(self.first(), self.count) }
    }
}

impl DerefMut for SharedPlaces {
    fn deref_mut(&mut self) -> &mut [MacEntry] {
        // SAFETY: as above; and there is one SharedPlaces for a session, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.count) }
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
