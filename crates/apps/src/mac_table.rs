//! A learning switch's table: which port a host is behind.
//!
//! **What.** A map from MAC address to port that is bounded, forgets hosts that were silent for long, and never stalls: an
//! insert moves nothing, looks at no more than [`PROBES`] cache lines, and allocates only while the table grows to its
//! bound.
//!
//! **How.** Open addressing in buckets of four entries, one cache line each. The first bucket of an address is in the
//! neighbourhood that it shares with sixty-four addresses which differ only in the last bits of their last byte, or of their
//! second. Consecutive addresses, as virtual hosts (counting up in the last byte) and benchmarks (in the second) have them,
//! are therefore read like an array: the processor prefetches, and one address translation serves them all. If that bucket
//! is full, the next is in another neighbourhood, and so on for a few. Entries are never removed, only overwritten, so a
//! search may end at the first bucket with a free place.
//!
//! **When it is full.** Among the places that a new address may have, it replaces the host that was silent longest and was
//! not a destination recently: a host that forges source addresses does not push out hosts that others talk to.
//!
//! **Cost.** 16 bytes per entry; at most half of the places are used while the table can grow.

use std::ops::DerefMut;
use urtica_state::prefetch;
use urtica_wire::{MacAddr, PortNo};

/// The number of buckets that an address may be in.
const PROBES: usize = 3;

/// Places per bucket: a cache line.
const BUCKET: usize = 4;

/// The initial number of places: one neighbourhood.
const FIRST_PLACES: usize = 64;

/// The largest table (64 KiB) that can be expected to stay in the near caches while it is used.
const NEAR_PLACES: usize = 1 << 12;

/// The growth factor of a full table.
const GROWTH: usize = 2;

/// The default bound of a switch's table.
const DEFAULT_MAX_ENTRIES: usize = 1 << 19;

/// The default time of silence after which a host is forgotten: IEEE 802.1Q's.
const DEFAULT_MAX_AGE_S: u32 = 300;

/// The result of [`MacTable::learn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learned {
    /// The host was unknown, or is where it was before it was forgotten.
    New,
    /// The host has not moved.
    Known,
    /// The host was behind another port when it was last heard, even if that was so long ago that it was forgotten: others
    /// may have been sending to it all that time.
    Moved,
    /// Not an address that a host can have: a group address, or all zeros.
    Ignored,
}

/// Which port each host is behind. Times are in seconds of a clock of the caller's, which never goes back.
///
/// Its places are on the heap, or wherever `P` puts them.
#[derive(Clone, Debug)]
pub struct MacTable<P = Vec<MacEntry>> {
    /// A power of two of them; empty until the first address is learnt.
    places: P,
    len: usize,
    max_places: usize,
    max_age_s: u32,
}

/// The memory of a table's places.
pub trait Places: DerefMut<Target = [MacEntry]> {
    /// Provides so many free places instead of the previous ones, which it returns.
    fn renew(&mut self, places: usize) -> Vec<MacEntry>;

    /// Returns the time of the entries' clock at `now_s` of the caller's clock.
    #[inline]
    fn clock_s(&self, now_s: u32) -> u32 {
        now_s
    }
}

impl Places for Vec<MacEntry> {
    fn renew(&mut self, places: usize) -> Vec<MacEntry> {
        std::mem::replace(self, vec![MacEntry::FREE; places])
    }
}

/// An entry of a [`MacTable`], or a free place for one.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // shared with the kernel, where a table lies in memory that it sees
pub struct MacEntry {
    /// The address as a number; [`NO_MAC`] marks a free place.
    mac: u64,
    port: u32,
    /// When the host last sent something; the top bit says whether it was looked up since places were last short.
    seen: u32,
}

const LOOKED_UP: u32 = 1 << 31;

/// More than 48 bits, so not an address.
const NO_MAC: u64 = u64::MAX;

/// The result of a search through all places of an address.
enum Search {
    /// The address is here.
    Found(usize),
    /// Not found; this place is the best for it.
    Free(usize),
    /// Not found, and no place is free.
    Full(Victim),
}

/// The entry to replace: the one silent longest, preferably among those that were not looked up.
struct Victim {
    seen: u32,
    place: usize,
    /// Whether any entry that the new one might displace was looked up.
    others_looked_up: bool,
}

impl Default for MacTable<Vec<MacEntry>> {
    fn default() -> Self {
        Self::new()
    }
}

impl MacTable<Vec<MacEntry>> {
    /// A table with up to 524,288 places (8 MiB) that forgets a host after 300 seconds of silence.
    pub fn new() -> Self {
        Self::with_limits(DEFAULT_MAX_ENTRIES, DEFAULT_MAX_AGE_S)
    }

    /// A table with places for `max_entries`, rounded up to a power of two and at least 64, that forgets a host after
    /// `max_age_s` seconds of silence.
    pub fn with_limits(max_entries: usize, max_age_s: u32) -> Self {
        let max_places = max_entries.next_power_of_two().max(FIRST_PLACES);
        Self {
            places: Vec::new(),
            len: 0,
            max_places,
            max_age_s,
        }
    }
}

impl<P: Places> MacTable<P> {
    /// A table in these places, free or left by another table; a power of two of them and at least 64. It never grows, and
    /// forgets a host after 300 seconds of silence.
    pub fn in_places(places: P) -> Self {
        let used = places.iter().filter(|entry| entry.mac != NO_MAC);
        Self {
            max_places: places.len(),
            len: used.count(),
            places,
            max_age_s: DEFAULT_MAX_AGE_S,
        }
    }

    /// A table with these entries in other places, which are free: a power of two of them and at least 64. It never grows. If there
    /// are more entries than places, some replace others, as when a table is full.
    pub fn moved_to<Q: Places>(&self, places: Q) -> MacTable<Q> {
        let mut table = MacTable::in_places(places);
        table.max_age_s = self.max_age_s;
        table.fill(&self.places);
        table
    }

    /// A table on the heap with these entries, which grows as that of [`MacTable::new`] does.
    pub fn to_growing(&self) -> MacTable {
        // By so much the clock of these entries is ahead of the caller's.
        let ahead_s = self.places.clock_s(0);
        let used = self.places.iter().filter(|entry| entry.mac != NO_MAC);
        let entries: Vec<_> = used.map(|entry| entry.earlier_by(ahead_s)).collect();
        let mut table = MacTable::with_limits(DEFAULT_MAX_ENTRIES, self.max_age_s);
        let places = self.places.len() * GROWTH;
        table.places.renew(places);
        table.fill_growing(&entries, places);
        table
    }

    /// The number of used places, including those of forgotten hosts that are not overwritten yet.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was ever learnt.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Records that `mac` is behind `port` at `now_s`.
    #[inline]
    pub fn learn(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        let (now_s, max_age_s) = (self.places.clock_s(now_s), self.max_age_s);
        match self.near(mac.to_u64()) {
            Some(entry) => entry.refresh(port, now_s, max_age_s),
            None => self.learn_further(mac, port, now_s),
        }
    }

    /// The port that `mac` is behind; `None` if it is unknown at `now_s`.
    #[inline]
    pub fn port_of(&mut self, mac: MacAddr, now_s: u32) -> Option<PortNo> {
        let (now_s, max_age_s) = (self.places.clock_s(now_s), self.max_age_s);
        match self.near(mac.to_u64()) {
            Some(entry) => entry.look_up(now_s, max_age_s),
            None => self.find_further(mac.to_u64())?.look_up(now_s, max_age_s),
        }
    }

    /// Whether the table is too large for the near caches, so that [`MacTable::prefetch`] is worth its cost.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.places.len() > NEAR_PLACES
    }

    /// Prefetches the places where `mac`'s entry may be, for a look-up that comes soon: only the first, unless the table is
    /// so full that the others are likely to be searched.
    #[inline]
    pub fn prefetch(&self, mac: MacAddr) {
        self.prefetch_place(first_place(mac.to_u64()));
        if self.len * 2 > self.places.len() {
            self.prefetch_further(mac.to_u64());
        }
    }

    #[cold]
    fn prefetch_further(&self, mac: u64) {
        for wish in &self.wishes(mac)[1..] {
            self.prefetch_place(*wish);
        }
    }

    #[inline]
    fn prefetch_place(&self, place: usize) {
        if let Some(entry) = self.places.get(place & self.mask()) {
            prefetch(entry);
        }
    }

    /// The address's entry, if it is in its first choice, as nearly all are.
    #[inline]
    fn near(&mut self, mac: u64) -> Option<&mut MacEntry> {
        let place = first_place(mac) & self.mask();
        self.places.get_mut(place).filter(|entry| entry.mac == mac)
    }

    #[cold]
    fn find_further(&mut self, mac: u64) -> Option<&mut MacEntry> {
        match self.search(mac) {
            Search::Found(place) => Some(&mut self.places[place]),
            _ => None,
        }
    }

    /// Searches all places that an address may have, in one pass.
    fn search(&self, mac: u64) -> Search {
        let mut victim = Victim {
            seen: u32::MAX,
            place: 0,
            others_looked_up: false,
        };
        if self.places.is_empty() {
            return Search::Full(victim);
        }
        for wish in self.wishes(mac) {
            let start = wish & !(BUCKET - 1);
            let bucket: Option<&[MacEntry; BUCKET]> = self.places[start..].first_chunk();
            let bucket = bucket.expect("a table has whole buckets");
            if let Some(at) = bucket.iter().position(|entry| entry.mac == mac) {
                return Search::Found(start + at);
            }
            if let Some(at) = bucket.iter().position(|entry| entry.mac == NO_MAC) {
                let is_wish_free = bucket[wish % BUCKET].mac == NO_MAC;
                return Search::Free(if is_wish_free { wish } else { start + at });
            }
            for (at, entry) in bucket.iter().enumerate() {
                victim.others_looked_up |= entry.seen & LOOKED_UP != 0;
                if entry.seen < victim.seen {
                    (victim.seen, victim.place) = (entry.seen, start + at);
                }
            }
        }
        Search::Full(victim)
    }

    /// The places of an address in order of preference; any other in the same bucket will do. Not for an empty table.
    fn wishes(&self, mac: u64) -> [usize; PROBES] {
        let mut place = first_place(mac);
        std::array::from_fn(|_| {
            let wish = place & self.mask();
            place = next_place(mac, place);
            wish
        })
    }

    /// Maps a hash to a place.
    #[inline]
    fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }

    #[cold]
    fn learn_further(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return Learned::Ignored;
        }
        if self.len * 2 >= self.places.len() && self.can_grow() {
            self.grow();
        }
        let new = MacEntry {
            mac: mac.to_u64(),
            port: port.0,
            seen: now_s,
        };
        loop {
            match self.search(new.mac) {
                Search::Found(place) => {
                    return self.places[place].refresh(port, now_s, self.max_age_s);
                }
                Search::Full(_) if self.can_grow() => self.grow(),
                search => {
                    self.put(search, new);
                    return Learned::New;
                }
            }
        }
    }

    /// Inserts an address that a search did not find.
    ///
    /// If it replaces another, the look-up marks of the other candidates are cleared: they must be looked up again before
    /// places are short the next time.
    fn put(&mut self, search: Search, new: MacEntry) {
        match search {
            Search::Found(place) => self.places[place] = new,
            Search::Free(place) => {
                self.places[place] = new;
                self.len += 1;
            }
            Search::Full(victim) => {
                if victim.others_looked_up {
                    for place in self.wishes(new.mac).into_iter().flat_map(bucket) {
                        self.places[place].seen &= !LOOKED_UP;
                    }
                }
                self.places[victim.place] = new;
            }
        }
    }

    /// Whether the table is still below its bound.
    fn can_grow(&self) -> bool {
        self.places.len() < self.max_places
    }

    /// Makes room, as much as needed for no entry to displace another.
    fn grow(&mut self) {
        let places = (self.places.len() * GROWTH).clamp(FIRST_PLACES, self.max_places);
        let old = self.places.renew(places);
        self.fill_growing(&old, places);
    }

    /// Moves the previous entries into free places, of which there are so many now, and more if they need more.
    fn fill_growing(&mut self, old: &[MacEntry], mut places: usize) {
        while !self.fill(old) {
            places *= GROWTH;
            self.places.renew(places);
        }
    }

    /// Moves the previous entries into free places. Returns whether all of them found one.
    fn fill(&mut self, old: &[MacEntry]) -> bool {
        self.len = 0;
        let mut entries = old.iter().filter(|entry| entry.mac != NO_MAC);
        entries.all(|entry| match self.search(entry.mac) {
            Search::Full(_) if self.can_grow() => false,
            search => {
                self.put(search, *entry);
                true
            }
        })
    }
}

/// The bucket that a place is in.
fn bucket(place: usize) -> std::ops::Range<usize> {
    let start = place & !(BUCKET - 1);
    start..start + BUCKET
}

/// The first choice of an address, as a number to be reduced to a place. Neighbours, which differ only in six bits of the
/// last byte or the second, have sixty-four places of their own.
#[inline]
fn first_place(mac: u64) -> usize {
    const LAST_BITS: u64 = 0x0000_0000_003f;
    const SECOND_BITS: u64 = LAST_BITS << 32;
    let neighbourhood = spread(mac & !(LAST_BITS | SECOND_BITS));
    (neighbourhood ^ (mac ^ mac >> 32) & LAST_BITS) as usize
}

/// The next choice: together with its neighbours, elsewhere.
#[inline]
fn next_place(mac: u64, place: usize) -> usize {
    const NEIGHBOURS: u64 = 0x3f;
    let elsewhere = spread(place as u64 >> 6 ^ 0x5bd1_e995) & !NEIGHBOURS;
    (elsewhere | (mac ^ mac >> 32) & NEIGHBOURS) as usize
}

/// Fibonacci hashing: the upper bits of the product, each of which depends on all bits of an address.
#[inline]
fn spread(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

impl MacEntry {
    /// A free place.
    pub const FREE: Self = Self {
        mac: NO_MAC,
        port: 0,
        seen: 0,
    };

    /// The port of the host whose place it is.
    pub fn port(&self) -> Option<PortNo> {
        (self.mac != NO_MAC).then_some(PortNo(self.port))
    }

    /// The entry by a clock that is behind by so many seconds.
    fn earlier_by(self, seconds: u32) -> Self {
        let seen_s = self.seen_s().saturating_sub(seconds);
        Self {
            seen: seen_s | self.seen & LOOKED_UP,
            ..self
        }
    }

    /// Records that the host was heard.
    #[inline]
    fn refresh(&mut self, port: PortNo, now_s: u32, max_age_s: u32) -> Learned {
        if self.seen_s() == now_s && self.port == port.0 {
            // Most packets come from hosts that were heard this very second: do not dirty their cache lines.
            return Learned::Known;
        }
        self.renew(port, now_s, max_age_s)
    }

    /// Records that the host was heard at another time, or behind another port.
    #[cold]
    #[inline(never)] // one jump out of the way of hosts that were
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

    /// Records that the host was looked up, and returns its port.
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
    fn a_host_that_was_forgotten_and_is_elsewhere_has_moved() {
        let mut table = MacTable::with_limits(64, 10);
        table.learn(host(1), PortNo(1), 0);
        assert_eq!(table.port_of(host(1), 1000), None);
        assert_eq!(table.learn(host(1), PortNo(2), 1000), Learned::Moved);
        assert_eq!(table.port_of(host(1), 1000), Some(PortNo(2)));
    }

    #[test]
    fn ignores_addresses_that_no_host_has() {
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
    fn stays_within_its_bound_and_keeps_the_recent() {
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
    fn made_up_sources_do_not_push_out_a_host_that_others_send_to() {
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
    fn holds_consecutive_addresses_with_hardly_a_loss() {
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
