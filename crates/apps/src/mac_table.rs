//! A learning switch's table: the port of each host.
//!
//! **What.** A bounded map from MAC address to port that forgets silent hosts and never stalls: an insert moves no other
//! entry, reads at most [`PROBES`] cache lines, and allocates only while the table grows to its bound.
//!
//! **How.** Open addressing in buckets of four entries, one cache line each. The first bucket of an address is in a
//! neighbourhood shared by sixty-four addresses that differ only in the last bits of their last byte, or of their second.
//! So consecutive addresses, which virtual hosts (counting up in the last byte) and benchmarks (in the second) use, are
//! read like an array: the processor prefetches them, and one address translation serves them all. If that bucket is full,
//! the next one is in another neighbourhood; there are [`PROBES`] of them. Entries are never removed, only overwritten, so
//! a search can end at the first bucket with a free slot.
//!
//! **When the table is full.** A new address replaces the host in its buckets that was silent longest and was not a
//! destination recently: a host that forges source addresses does not evict hosts that receive traffic.
//!
//! **Cost.** 16 bytes per entry; at most half of the slots are used while the table can grow.

use std::ops::DerefMut;
use urtica_state::prefetch;
use urtica_wire::{MacAddr, PortNo};

/// The number of buckets that an address may be in.
const PROBES: usize = 3;

/// Slots per bucket: a cache line.
const BUCKET: usize = 4;

/// The initial number of slots: one neighbourhood.
const FIRST_SLOTS: usize = 64;

/// The slots of the largest table (64 KiB) that is likely to stay in the near caches.
const NEAR_SLOTS: usize = 1 << 12;

/// The growth factor of a full table.
const GROWTH: usize = 2;

/// The default maximum number of a table's slots.
const DEFAULT_MAX_ENTRIES: usize = 1 << 19;

/// The default ageing time of a host, from IEEE 802.1Q.
const DEFAULT_MAX_AGE_S: u32 = 300;

/// The result of [`MacTable::learn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learned {
    /// The host was unknown, or was forgotten and is still behind its old port.
    New,
    /// The host has not moved.
    Known,
    /// The host was last seen behind another port, even if it was forgotten after that: others may have been sending to the
    /// old port all the time.
    Moved,
    /// No host can have this address: it is a group address, or all zeros.
    Ignored,
}

/// A map from hosts to ports. Times are in seconds of the caller's clock, which must be monotonic.
///
/// Its slots are on the heap, or in the memory that `P` provides.
#[derive(Clone, Debug)]
pub struct MacTable<P = Vec<MacEntry>> {
    /// The number of slots is a power of two, or 0 until the first address is learnt.
    slots: P,
    len: usize,
    max_slots: usize,
    max_age_s: u32,
}

/// The memory of a table's slots.
pub trait Slots: DerefMut<Target = [MacEntry]> {
    /// Replaces the slots by `slots` free ones, and returns the old slots.
    fn renew(&mut self, slots: usize) -> Vec<MacEntry>;

    /// Converts the caller's time `now_s` to the time of the entries' clock.
    #[inline]
    fn clock_s(&self, now_s: u32) -> u32 {
        now_s
    }
}

impl Slots for Vec<MacEntry> {
    fn renew(&mut self, slots: usize) -> Vec<MacEntry> {
        std::mem::replace(self, vec![MacEntry::FREE; slots])
    }
}

/// A slot of a [`MacTable`]: an entry, or free.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // shared with the kernel if the table is in memory that it maps
pub struct MacEntry {
    /// The address as a number; [`NO_MAC`] in a free slot.
    mac: u64,
    port: u32,
    /// The time of the host's last packet; the top bit is set if it was looked up since slots were last short.
    seen: u32,
}

const LOOKED_UP: u32 = 1 << 31;

/// More than 48 bits, so not an address.
const NO_MAC: u64 = u64::MAX;

/// The result of a search of an address's buckets.
enum BucketSearch {
    /// The slot of the address.
    Found(usize),
    /// The address is not in the table; this is the best slot for it.
    Free(usize),
    /// The address is not in the table, and its buckets are full.
    Full(Victim),
}

/// The entry to replace: the longest silent one, preferably one that was not looked up.
struct Victim {
    seen: u32,
    slot: usize,
    /// Whether any entry in the searched buckets was looked up.
    others_looked_up: bool,
}

impl Default for MacTable<Vec<MacEntry>> {
    fn default() -> Self {
        Self::new()
    }
}

impl MacTable<Vec<MacEntry>> {
    /// Creates a table with up to 524,288 slots (8 MiB) that forgets a host after 300 seconds of silence.
    pub fn new() -> Self {
        Self::with_limits(DEFAULT_MAX_ENTRIES, DEFAULT_MAX_AGE_S)
    }

    /// Creates a table with at most `max_entries` slots, rounded up to a power of two and at least 64, that forgets a host
    /// after `max_age_s` seconds of silence.
    pub fn with_limits(max_entries: usize, max_age_s: u32) -> Self {
        let max_slots = max_entries.next_power_of_two().max(FIRST_SLOTS);
        Self {
            slots: Vec::new(),
            len: 0,
            max_slots,
            max_age_s,
        }
    }
}

impl<P: Slots> MacTable<P> {
    /// Creates a table in these slots, which are free or hold the entries of another table. Their number must be a power of
    /// two and at least 64. The table never grows, and forgets a host after 300 seconds of silence.
    pub fn in_slots(slots: P) -> Self {
        let used = slots.iter().filter(|entry| entry.mac != NO_MAC);
        Self {
            max_slots: slots.len(),
            len: used.count(),
            slots,
            max_age_s: DEFAULT_MAX_AGE_S,
        }
    }

    /// Copies the entries into a table in these free slots, whose number must be a power of two and at least 64. That table
    /// never grows. If it has too few slots, some entries replace others, as in any full table.
    pub fn moved_to<Q: Slots>(&self, slots: Q) -> MacTable<Q> {
        let mut table = MacTable::in_slots(slots);
        table.max_age_s = self.max_age_s;
        table.fill(&self.slots);
        table
    }

    /// Copies the entries into a table on the heap, which grows as that of [`MacTable::new`] does.
    pub fn to_growing(&self) -> MacTable {
        // The entries' clock is ahead of the caller's by this time.
        let ahead_s = self.slots.clock_s(0);
        let used = self.slots.iter().filter(|entry| entry.mac != NO_MAC);
        let entries: Vec<_> = used.map(|entry| entry.earlier_by(ahead_s)).collect();
        let mut table = MacTable::with_limits(DEFAULT_MAX_ENTRIES, self.max_age_s);
        let slots = self.slots.len() * GROWTH;
        table.slots.renew(slots);
        table.fill_growing(&entries, slots);
        table
    }

    /// Returns the number of used slots, including those of forgotten hosts until they are overwritten.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if no host was ever learnt.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Records that `mac` is behind `port` at `now_s`.
    #[inline]
    pub fn learn(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        let (now_s, max_age_s) = (self.slots.clock_s(now_s), self.max_age_s);
        match self.near(mac.to_u64()) {
            Some(entry) => entry.refresh(port, now_s, max_age_s),
            None => self.learn_further(mac, port, now_s),
        }
    }

    /// Returns the port that `mac` is behind; `None` if it is unknown at `now_s`.
    #[inline]
    pub fn port_of(&mut self, mac: MacAddr, now_s: u32) -> Option<PortNo> {
        let (now_s, max_age_s) = (self.slots.clock_s(now_s), self.max_age_s);
        match self.near(mac.to_u64()) {
            Some(entry) => entry.look_up(now_s, max_age_s),
            None => self.find_further(mac.to_u64())?.look_up(now_s, max_age_s),
        }
    }

    /// Returns `true` if the table is too large for the near caches, so that [`MacTable::prefetch`] is worth its cost.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.slots.len() > NEAR_SLOTS
    }

    /// Prefetches `mac`'s first bucket for a look-up soon after. Prefetches its other buckets, too, if the table is so full
    /// that a search is likely to need them.
    #[inline]
    pub fn prefetch(&self, mac: MacAddr) {
        self.prefetch_slot(first_slot(mac.to_u64()));
        if self.len * 2 > self.slots.len() {
            self.prefetch_further(mac.to_u64());
        }
    }

    #[cold]
    fn prefetch_further(&self, mac: u64) {
        for wish in &self.wishes(mac)[1..] {
            self.prefetch_slot(*wish);
        }
    }

    #[inline]
    fn prefetch_slot(&self, slot: usize) {
        if let Some(entry) = self.slots.get(slot & self.mask()) {
            prefetch(entry);
        }
    }

    /// Returns the address's entry if it is in its preferred slot, as nearly all are.
    #[inline]
    fn near(&mut self, mac: u64) -> Option<&mut MacEntry> {
        let slot = first_slot(mac) & self.mask();
        self.slots.get_mut(slot).filter(|entry| entry.mac == mac)
    }

    #[cold]
    fn find_further(&mut self, mac: u64) -> Option<&mut MacEntry> {
        match self.search(mac) {
            BucketSearch::Found(slot) => Some(&mut self.slots[slot]),
            _ => None,
        }
    }

    /// Searches all buckets of an address, in one pass.
    fn search(&self, mac: u64) -> BucketSearch {
        let mut victim = Victim {
            seen: u32::MAX,
            slot: 0,
            others_looked_up: false,
        };
        if self.slots.is_empty() {
            return BucketSearch::Full(victim);
        }
        for wish in self.wishes(mac) {
            let start = wish & !(BUCKET - 1);
            let bucket: Option<&[MacEntry; BUCKET]> = self.slots[start..].first_chunk();
            let bucket = bucket.expect("a table has whole buckets");
            if let Some(at) = bucket.iter().position(|entry| entry.mac == mac) {
                return BucketSearch::Found(start + at);
            }
            if let Some(at) = bucket.iter().position(|entry| entry.mac == NO_MAC) {
                let is_wish_free = bucket[wish % BUCKET].mac == NO_MAC;
                return BucketSearch::Free(if is_wish_free { wish } else { start + at });
            }
            for (at, entry) in bucket.iter().enumerate() {
                victim.others_looked_up |= entry.seen & LOOKED_UP != 0;
                if entry.seen < victim.seen {
                    (victim.seen, victim.slot) = (entry.seen, start + at);
                }
            }
        }
        BucketSearch::Full(victim)
    }

    /// Returns the preferred slot in each bucket of an address, in order of preference; any other slot of the bucket will
    /// do. The table must not be empty.
    fn wishes(&self, mac: u64) -> [usize; PROBES] {
        let mut slot = first_slot(mac);
        std::array::from_fn(|_| {
            let wish = slot & self.mask();
            slot = next_slot(mac, slot);
            wish
        })
    }

    /// Returns the mask that maps a hash to a slot.
    #[inline]
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    #[cold]
    fn learn_further(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return Learned::Ignored;
        }
        if self.len * 2 >= self.slots.len() && self.can_grow() {
            self.grow();
        }
        let new = MacEntry {
            mac: mac.to_u64(),
            port: port.0,
            seen: now_s,
        };
        loop {
            match self.search(new.mac) {
                BucketSearch::Found(slot) => {
                    return self.slots[slot].refresh(port, now_s, self.max_age_s);
                }
                BucketSearch::Full(_) if self.can_grow() => self.grow(),
                search => {
                    self.put(search, new);
                    return Learned::New;
                }
            }
        }
    }

    /// Inserts an entry at the slot that a search returned.
    ///
    /// If it replaces another entry, clears the look-up marks in the address's buckets: a host must be looked up again to be
    /// spared the next time.
    fn put(&mut self, search: BucketSearch, new: MacEntry) {
        match search {
            BucketSearch::Found(slot) => self.slots[slot] = new,
            BucketSearch::Free(slot) => {
                self.slots[slot] = new;
                self.len += 1;
            }
            BucketSearch::Full(victim) => {
                if victim.others_looked_up {
                    for slot in self.wishes(new.mac).into_iter().flat_map(bucket) {
                        self.slots[slot].seen &= !LOOKED_UP;
                    }
                }
                self.slots[victim.slot] = new;
            }
        }
    }

    /// Returns `true` if the table is below its bound.
    fn can_grow(&self) -> bool {
        self.slots.len() < self.max_slots
    }

    /// Grows the table so that no entry displaces another, up to its bound.
    fn grow(&mut self) {
        let slots = (self.slots.len() * GROWTH).clamp(FIRST_SLOTS, self.max_slots);
        let old = self.slots.renew(slots);
        self.fill_growing(&old, slots);
    }

    /// Moves the old entries into the `slots` free slots, growing the table further while they do not fit.
    fn fill_growing(&mut self, old: &[MacEntry], mut slots: usize) {
        while !self.fill(old) {
            slots *= GROWTH;
            self.slots.renew(slots);
        }
    }

    /// Moves the old entries into free slots. Returns `false` if the table must grow first.
    fn fill(&mut self, old: &[MacEntry]) -> bool {
        self.len = 0;
        let mut entries = old.iter().filter(|entry| entry.mac != NO_MAC);
        entries.all(|entry| match self.search(entry.mac) {
            BucketSearch::Full(_) if self.can_grow() => false,
            search => {
                self.put(search, *entry);
                true
            }
        })
    }
}

/// Returns the bucket that contains a slot.
fn bucket(slot: usize) -> std::ops::Range<usize> {
    let start = slot & !(BUCKET - 1);
    start..start + BUCKET
}

/// Returns the preferred slot of an address, before masking. Neighbours, which differ only in six bits of the last byte or
/// the second, have sixty-four distinct slots.
#[inline]
fn first_slot(mac: u64) -> usize {
    const LAST_BITS: u64 = 0x0000_0000_003f;
    const SECOND_BITS: u64 = LAST_BITS << 32;
    let neighbourhood = spread(mac & !(LAST_BITS | SECOND_BITS));
    (neighbourhood ^ (mac ^ mac >> 32) & LAST_BITS) as usize
}

/// Returns the next slot to try: in another neighbourhood, which the address's neighbours share.
#[inline]
fn next_slot(mac: u64, slot: usize) -> usize {
    const NEIGHBOURS: u64 = 0x3f;
    let elsewhere = spread(slot as u64 >> 6 ^ 0x5bd1_e995) & !NEIGHBOURS;
    (elsewhere | (mac ^ mac >> 32) & NEIGHBOURS) as usize
}

/// Fibonacci hashing: the upper bits of the product, each of which depends on all bits of an address.
#[inline]
fn spread(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

impl MacEntry {
    /// A free slot.
    pub const FREE: Self = Self {
        mac: NO_MAC,
        port: 0,
        seen: 0,
    };

    /// Returns the host's port; `None` for a free slot.
    pub fn port(&self) -> Option<PortNo> {
        (self.mac != NO_MAC).then_some(PortNo(self.port))
    }

    /// Returns the entry with its time set back by `seconds`.
    fn earlier_by(self, seconds: u32) -> Self {
        let seen_s = self.seen_s().saturating_sub(seconds);
        Self {
            seen: seen_s | self.seen & LOOKED_UP,
            ..self
        }
    }

    /// Records a packet from the host.
    #[inline]
    fn refresh(&mut self, port: PortNo, now_s: u32, max_age_s: u32) -> Learned {
        if self.seen_s() == now_s && self.port == port.0 {
            // Most packets are from hosts that already sent one in this second: do not dirty their cache lines.
            return Learned::Known;
        }
        self.renew(port, now_s, max_age_s)
    }

    /// Records a packet at another time, or from another port.
    #[cold]
    #[inline(never)] // keeps the frequent case to one jump
    fn renew(&mut self, port: PortNo, now_s: u32, max_age_s: u32) -> Learned {
        let before = *self;
        self.port = port.0;
        self.seen = now_s | (before.seen & LOOKED_UP);
        if before.port != port.0 {
            return Learned::Moved;
        }
        match before.is_current(now_s, max_age_s) {
            true => Learned::Known,
            false => Learned::New,
        }
    }

    /// Marks the host as looked up, and returns its port unless its entry has aged out.
    #[inline]
    fn look_up(&mut self, now_s: u32, max_age_s: u32) -> Option<PortNo> {
        if self.seen & LOOKED_UP == 0 {
            self.seen |= LOOKED_UP;
        }
        self.is_current(now_s, max_age_s)
            .then_some(PortNo(self.port))
    }

    #[inline]
    fn seen_s(&self) -> u32 {
        self.seen & !LOOKED_UP
    }

    #[inline]
    fn is_current(&self, now_s: u32, max_age_s: u32) -> bool {
        u64::from(now_s) <= u64::from(self.seen_s()) + u64::from(max_age_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn host(number: u64) -> MacAddr {
        MacAddr::from_u64(0x0200_0000_0000 + number)
    }

    #[test]
    fn learns_finds_and_notices_moves() {
        let mut table = MacTable::new();
        assert_eq!(table.port_of(host(1), 0), None);
        assert_eq!(table.learn(host(1), PortNo(1), 0), Learned::New);
        assert_eq!(table.learn(host(1), PortNo(1), 1), Learned::Known);
        assert_eq!(table.learn(host(1), PortNo(2), 1), Learned::Moved);
        assert_eq!(table.port_of(host(1), 1), Some(PortNo(2)));
    }

    #[test]
    fn moved_tables_keep_their_hosts() {
        let mut table = MacTable::new();
        for number in 0..500 {
            table.learn(host(number), PortNo(number as u32), 1);
        }
        let mut moved = table.moved_to(vec![MacEntry::FREE; 1024]);
        for number in 0..500 {
            assert_eq!(
                moved.port_of(host(number), 301),
                Some(PortNo(number as u32))
            );
            assert_eq!(moved.port_of(host(number), 302), None);
        }
        assert_eq!(moved.len(), 500);
    }

    #[test]
    fn forgets_silent_hosts() {
        let mut table = MacTable::with_limits(64, 10);
        table.learn(host(1), PortNo(1), 0);
        assert_eq!(table.port_of(host(1), 10), Some(PortNo(1)));
        assert_eq!(table.port_of(host(1), 11), None);
        assert_eq!(table.learn(host(1), PortNo(1), 11), Learned::New);
    }

    #[test]
    fn forgotten_hosts_at_other_ports_have_moved() {
        let mut table = MacTable::with_limits(64, 10);
        table.learn(host(1), PortNo(1), 0);
        assert_eq!(table.port_of(host(1), 1000), None);
        assert_eq!(table.learn(host(1), PortNo(2), 1000), Learned::Moved);
        assert_eq!(table.port_of(host(1), 1000), Some(PortNo(2)));
    }

    #[test]
    fn ignores_group_and_zero_addresses() {
        let mut table = MacTable::new();
        assert_eq!(
            table.learn(MacAddr::BROADCAST, PortNo(1), 0),
            Learned::Ignored
        );
        assert_eq!(table.learn(MacAddr::ZERO, PortNo(1), 0), Learned::Ignored);
        table.learn(host(1), PortNo(1), 0);
        assert_eq!(table.port_of(MacAddr::BROADCAST, 0), None);
        assert_eq!(table.port_of(MacAddr::ZERO, 0), None);
    }

    #[test]
    fn stays_within_its_bound_and_keeps_recent_hosts() {
        let mut table = MacTable::with_limits(1024, 300);
        for number in 0..100_000_u64 {
            table.learn(host(number * 5), PortNo(7), (number / 1000) as u32);
            assert_eq!(
                table.port_of(host(number * 5), (number / 1000) as u32),
                Some(PortNo(7))
            );
        }
        assert!(table.len() <= 1024);
    }

    #[test]
    fn forged_sources_do_not_evict_destinations() {
        let mut table = MacTable::with_limits(64, 300);
        table.learn(host(1), PortNo(1), 0);
        for number in 2..10_000 {
            assert_eq!(
                table.port_of(host(1), 10),
                Some(PortNo(1)),
                "after {number} sources"
            );
            table.learn(host(number * 77), PortNo(2), 10);
        }
    }

    #[test]
    fn loses_few_of_many_consecutive_addresses() {
        let mut table = MacTable::new();
        for number in 0..100_000 {
            table.learn(host(number), PortNo(1), 0);
        }
        let lost = (0..100_000)
            .filter(|&number| table.port_of(host(number), 0).is_none())
            .count();
        assert!(lost <= 100_000 / 200, "{lost} of 100,000 were lost");
    }

    #[test]
    fn growing_keeps_all_hosts() {
        let mut table = MacTable::new();
        let hosts = [
            0, 1, 15, 35, 2, 7, 16, 30, 8, 145, 9, 172, 144, 28, 17, 3, 29, 69, 10, 44, 11, 4, 45,
            84, 12, 18, 19, 46, 20, 31, 32,
        ];
        for (index, number) in hosts.into_iter().enumerate() {
            table.learn(host(number), PortNo(1), 0);
            let known = |number: &&u64| table.port_of(host(**number), 0).is_some();
            assert_eq!(hosts[..=index].iter().filter(known).count(), index + 1);
        }
    }

    proptest! {
        /// The reference model is a hash map: within the bound, the table agrees with it.
        #[test]
        fn agrees_with_a_hash_map(steps in prop::collection::vec((0..200_u64, 1..5_u32, 0..4_u32), 0..400)) {
            let mut table = MacTable::with_limits(4096, 20);
            let mut naive: HashMap<u64, (u32, u32)> = HashMap::new();
            let mut now_s = 0;
            for (number, port, pause_s) in steps {
                now_s += pause_s;
                let known = naive.get(&number).filter(|(_, seen_s)| now_s - seen_s <= 20);
                let expected = match naive.get(&number) {
                    Some((before, _)) if *before != port => Learned::Moved,
                    _ if known.is_some() => Learned::Known,
                    _ => Learned::New,
                };
                prop_assert_eq!(table.port_of(host(number), now_s), known.map(|(port, _)| PortNo(*port)));
                prop_assert_eq!(table.learn(host(number), PortNo(port), now_s), expected);
                naive.insert(number, (port, now_s));
            }
        }
    }
}
