//! The learning switch's part of a session: `struct application` of `bpf/mac_table.h`, field by field.

use crate::session::Memory;
use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use urtica_apps::{FloodLimit, MacEntry, Slots};

/// Maximum number of slots of a table of hosts.
pub const MAX_PLACES: usize = 1 << 13;

/// Number of token buckets for flooded packets.
const FLOOD_BUDGETS: usize = 256;

/// The settings of a table, and its slots.
#[repr(C)]
pub struct Table {
    max_age_s: AtomicU32,
    place_mask: AtomicU32,
    places_taken: AtomicU32,
    max_taken: AtomicU32,
    full_until_ns: AtomicU64,
    flood_interval_ns: AtomicU64,
    flood_burst_ns: AtomicU64,
    floods_dropped: AtomicU64,
    padding: [AtomicU32; 4],
    places: [UnsafeCell<MacEntry>; MAX_PLACES],
    flood_full_at_ns: [AtomicU64; FLOOD_BUDGETS],
}

impl Table {
    /// Returns the table of a session.
    fn of(memory: &Memory) -> &Self {
        // SAFETY: the mapping lives as long as `memory`. A Table consists of atomics and cells, for which all bytes are
        // valid.
        unsafe { &*memory.application::<Self>() }
    }
}

/// Settings of a table that are constant during a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of slots; a power of two.
    pub places: usize,
    /// Maximum number of used slots. Beyond it, the program answers alone, with its own table, which grows.
    pub max_taken: usize,
}

impl Size {
    /// The maximum number of slots, of which three quarters may be used.
    pub const GROWING: Self = Self {
        places: MAX_PLACES,
        max_taken: MAX_PLACES / 4 * 3,
    };

    /// Returns a fixed number of slots. When all are used, new hosts displace others.
    pub fn fixed(places: usize) -> Self {
        let places = places.clamp(64, MAX_PLACES).next_power_of_two();
        Self {
            places,
            max_taken: places,
        }
    }
}

/// Writes the settings, which are constant during a session.
pub fn set_up(memory: &Memory, size: Size, max_age_s: u32) {
    let table = Table::of(memory);
    table.max_age_s.store(max_age_s, Relaxed);
    table.place_mask.store(size.places as u32 - 1, Relaxed);
    table.max_taken.store(size.max_taken as u32, Relaxed);
}

/// Limits the packets to unknown hosts that the kernel floods from each port. Must be called while the program is the owner.
pub fn limit_floods(memory: &Memory, limit: FloodLimit) {
    let (interval_ns, burst_ns) = match limit.burst_and_interval() {
        None => (0, 0),
        Some((burst, interval)) => {
            // Not 0, which would mean no limit, and small enough that a time plus a whole burst fits.
            let longest = (1 << 62) / u64::from(burst.max(1));
            let interval_ns = (interval.as_nanos() as u64).clamp(1, longest);
            (interval_ns, interval_ns * u64::from(burst))
        }
    };
    let table = Table::of(memory);
    table.flood_interval_ns.store(interval_ns, Relaxed);
    table.flood_burst_ns.store(burst_ns, Relaxed);
}

/// Makes the kernel add no entries until this time of its clock. Must be called while the program is the owner.
pub fn pause_entries(memory: &Memory, until_ns: u64) {
    Table::of(memory).full_until_ns.store(until_ns, Relaxed);
}

/// Returns the number of packets to unknown hosts that exceeded the kernel's limit.
pub fn floods_dropped(memory: &Memory) -> u64 {
    Table::of(memory).floods_dropped.load(Relaxed)
}

/// Notes that `count` more slots are used. Must be called while the program is the owner.
pub fn note_taken(memory: &Memory, count: usize) {
    let table = Table::of(memory);
    let taken = table.places_taken.load(Relaxed);
    table.places_taken.store(taken + count as u32, Relaxed);
}

/// Returns whether more slots are used than the kernel's limit. Must be called while the program is the owner.
pub fn is_crowded(memory: &Memory) -> bool {
    let table = Table::of(memory);
    table.places_taken.load(Relaxed) > table.max_taken.load(Relaxed)
}

/// Frees all slots. Must be called while the program is the owner and no other code uses the slots.
pub fn clear(memory: Arc<Memory>) {
    let places = Table::of(&memory).place_mask.load(Relaxed) as usize + 1;
    // The last step: a program that dies before leaves a crowded table, which the next program also stops using.
    drop(SharedPlaces::new(
        Arc::clone(&memory),
        places.min(MAX_PLACES),
    ));
    Table::of(&memory).places_taken.store(0, Relaxed);
}

/// The slots of a table that the kernel also uses. To be used only while the program is the owner.
pub struct SharedPlaces {
    memory: Arc<Memory>,
    count: usize,
}

impl SharedPlaces {
    /// Creates `count` free slots of a session that was never handed over. Must be called once per session.
    pub fn new(memory: Arc<Memory>, count: usize) -> Self {
        assert!(count <= MAX_PLACES);
        let mut places = Self { memory, count };
        places.fill(MacEntry::FREE);
        places
    }

    /// Resumes the slots of a session that an earlier program left, whose table is mapped. Returns `None` if they are invalid.
    /// Must be called once per session, with the kernel's time when the program's clock was 0.
    pub fn resume(memory: Arc<Memory>, started_ns: u64) -> Option<Self> {
        let count = Table::of(&memory).place_mask.load(Relaxed) as usize;
        let count = count.checked_add(1)?;
        if !count.is_power_of_two() || !(64..=MAX_PLACES).contains(&count) {
            return None;
        }
        let clock_ns = memory.shared().clock_ns.load(Relaxed);
        if clock_ns == 0 {
            // The session was never handed over, so the clock of its contents is unknown.
            return Some(Self::new(memory, count));
        }
        let ahead_s = started_ns.saturating_sub(clock_ns) / 1_000_000_000;
        let ahead_s = u32::try_from(ahead_s).unwrap_or(u32::MAX >> 2);
        memory.clock_ahead_s.store(ahead_s, Relaxed);
        Some(Self { memory, count })
    }

    /// Returns the first slot.
    fn first(&self) -> *mut MacEntry {
        let table = self.memory.application::<Table>();
        table.wrapping_byte_add(offset_of!(Table, places)).cast()
    }
}

impl Deref for SharedPlaces {
    type Target = [MacEntry];

    fn deref(&self) -> &[MacEntry] {
        // SAFETY: the mapping has MAX_PLACES slots from here on, aligned to 64 bytes, and lives as long as self; `count` is not
        // more. All bytes are valid for a MacEntry. The kernel writes there only while it is the owner, and a handler, which
        // alone holds this, runs only while the program is the owner: the exchange of the owner orders the accesses.
        unsafe { std::slice::from_raw_parts(self.first(), self.count) }
    }
}

impl DerefMut for SharedPlaces {
    fn deref_mut(&mut self) -> &mut [MacEntry] {
        // SAFETY: as above. A session has one SharedPlaces, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.count) }
    }
}

impl Slots for SharedPlaces {
    /// Frees all slots; the memory has a fixed size.
    fn renew(&mut self, _places: usize) -> Vec<MacEntry> {
        let before = self.to_vec();
        self.fill(MacEntry::FREE);
        before
    }

    fn clock_s(&self, now_s: u32) -> u32 {
        now_s.saturating_add(self.memory.clock_ahead_s.load(Relaxed))
    }
}
