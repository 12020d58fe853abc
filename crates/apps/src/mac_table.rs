//! Which port a host is behind: the table of a learning switch.
//!
//! **What.** A map from MAC address to port that is bounded, forgets hosts that were silent for long, and never
//! stalls: an insert moves nothing, looks at no more than [`PROBES`] cache lines, and allocates only while the table
//! grows to its bound.
//!
//! **How.** Open addressing in buckets of four entries, one cache line each. Sixty-four consecutive addresses have
//! neighbouring buckets, so that the runs of addresses that virtual hosts and benchmarks have are read like an array:
//! the processor fetches ahead, and one address translation serves them all. Where a bucket is full, a second hash
//! leads to another, and so on a few times. Nothing is ever removed, only overwritten, so a search may end at the
//! first bucket with a free place.
//!
//! **When it is full.** Of the places that a new address may have, the one gives way that was silent longest and that
//! nobody sent to of late: a host that makes up source addresses does not push out those that others talk to.
//!
//! **Cost.** 16 bytes an entry; at most half of the places are taken while the table can grow.

use urtica_wire::{MacAddr, PortNo};

/// How many buckets an address may be in.
const PROBES: usize = 4;

/// Addresses that differ in these low bits alone share the neighbourhood of a bucket...
const NEIGHBOUR_BITS: u32 = 6;

/// ...and those that differ in these alone, the bucket.
const BUCKET_BITS: u32 = 2;

const FIRST_BUCKETS: usize = 16;

/// How much a full table grows.
const GROWTH: usize = 4;

/// How many entries the table of a switch can hold unless it is told otherwise.
const DEFAULT_MAX_ENTRIES: usize = 1 << 19;

/// After how long a silence a host is forgotten unless the table is told otherwise: IEEE 802.1Q's default.
const DEFAULT_MAX_AGE_S: u32 = 300;

/// What [`MacTable::learn`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The host was not known, or forgotten.
    New,
    /// The host is where it was.
    Known,
    /// The host was behind another port.
    Moved,
    /// Not an address that a host can have: a group's, or all zeros.
    Ignored,
}

/// Which port each host is behind. Times are in seconds of one clock of the caller's, which never goes back.
#[derive(Clone, Debug)]
pub struct MacTable {
    /// A power of two of them; empty until the first address is learnt.
    buckets: Vec<Bucket>,
    len: usize,
    max_buckets: usize,
    max_age_s: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket([Entry; 4]);

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The address as a number; 0, which no host has, marks a free place.
    mac: u64,
    port: u32,
    /// When the host last sent something; in the top bit, whether somebody looked it up since places were last short.
    seen: u32,
}

const LOOKED_UP: u32 = 1 << 31;

impl Default for MacTable {
    fn default() -> Self {
        Self::new()
    }
}

impl MacTable {
    /// A table with 524,288 places (8 MiB when it has grown to that) that forgets a host after 300 seconds of silence.
    pub fn new() -> Self {
        Self::with_limits(DEFAULT_MAX_ENTRIES, DEFAULT_MAX_AGE_S)
    }

    /// A table with places for `max_entries`, rounded up to a power of two and at least 64, that forgets a host after
    /// `max_age_s` seconds of silence.
    pub fn with_limits(max_entries: usize, max_age_s: u32) -> Self {
        let max_buckets = max_entries
            .div_ceil(4)
            .next_power_of_two()
            .max(FIRST_BUCKETS);
        Self {
            buckets: Vec::new(),
            len: 0,
            max_buckets,
            max_age_s,
        }
    }

    /// How many places are taken, those of hosts that are forgotten but not yet overwritten included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was ever learnt.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Notes that `mac` is behind `port` at `now_s`.
    #[inline]
    pub fn learn(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        let max_age_s = self.max_age_s;
        let Some(entry) = self.find(mac.to_u64()) else {
            return self.insert(mac, port, now_s);
        };
        if entry.seen_s() == now_s && entry.port == port.0 {
            // Most packets come from hosts that were heard this very second: don't dirty their cache lines.
            return Learned::Known;
        }
        let before = *entry;
        entry.port = port.0;
        entry.seen = now_s | (before.seen & LOOKED_UP);
        match before.age_s(now_s) <= max_age_s {
            false => Learned::New,
            true if before.port == port.0 => Learned::Known,
            true => Learned::Moved,
        }
    }

    /// The port that `mac` is behind, unless it is not known at `now_s`.
    #[inline]
    pub fn port_of(&mut self, mac: MacAddr, now_s: u32) -> Option<PortNo> {
        let max_age_s = self.max_age_s;
        let entry = self.find(mac.to_u64())?;
        if entry.seen & LOOKED_UP == 0 {
            entry.seen |= LOOKED_UP;
        }
        (entry.age_s(now_s) <= max_age_s).then_some(PortNo(entry.port))
    }

    /// The address's entry.
    #[inline]
    fn find(&mut self, mac: u64) -> Option<&mut Entry> {
        let mut probe = Probe::new(mac, self.buckets.len());
        for _ in 0..PROBES {
            let index = probe.next_bucket();
            let entries = &self.buckets.get(index)?.0;
            if let Some(place) = (0..4).find(|&place| entries[place].mac == mac) {
                return self.buckets[index]
                    .0
                    .get_mut(place)
                    .filter(|entry| entry.mac != 0);
            }
            // Places in a bucket fill in order.
            if entries[3].mac == 0 {
                return None;
            }
        }
        None
    }

    #[cold]
    fn insert(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return Learned::Ignored;
        }
        if self.len * 2 >= self.buckets.len() * 4 {
            self.grow();
        }
        let new = Entry {
            mac: mac.to_u64(),
            port: port.0,
            seen: now_s,
        };
        while !self.place(new) {
            if !self.grow() {
                self.replace(new);
                break;
            }
        }
        Learned::New
    }

    /// Puts an address that is not there into the first free place that it may have, if there is one.
    fn place(&mut self, new: Entry) -> bool {
        let mut probe = Probe::new(new.mac, self.buckets.len());
        for _ in 0..PROBES {
            let entries = &mut self.buckets[probe.next_bucket()].0;
            if let Some(free) = entries.iter_mut().find(|entry| entry.mac == 0) {
                *free = new;
                self.len += 1;
                return true;
            }
        }
        false
    }

    /// Puts an address that is not there in place of another one.
    fn replace(&mut self, new: Entry) {
        let mut probe = Probe::new(new.mac, self.buckets.len());
        let candidates: [usize; PROBES] = std::array::from_fn(|_| probe.next_bucket());
        let places = candidates
            .iter()
            .flat_map(|&index| (0..4).map(move |place| (index, place)));
        let victim = places.min_by_key(|&(index, place)| self.buckets[index].0[place].seen);
        for index in candidates {
            for entry in &mut self.buckets[index].0 {
                entry.seen &= !LOOKED_UP;
            }
        }
        if let Some((index, place)) = victim {
            self.buckets[index].0[place] = new;
        }
    }

    /// Makes room; tells whether the table was still below its bound.
    fn grow(&mut self) -> bool {
        if self.buckets.len() >= self.max_buckets {
            return false;
        }
        let buckets = (self.buckets.len() * GROWTH).clamp(FIRST_BUCKETS, self.max_buckets);
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.len = 0;
        for entry in old
            .iter()
            .flat_map(|bucket| bucket.0)
            .filter(|entry| entry.mac != 0)
        {
            if !self.place(entry) {
                self.replace(entry);
            }
        }
        true
    }
}

/// The buckets that an address may be in, one after the other.
struct Probe {
    hash: u64,
    neighbour: usize,
    mask: usize,
}

/// A neighbourhood's buckets, less one.
const NEIGHBOURHOOD: usize = (1 << (NEIGHBOUR_BITS - BUCKET_BITS)) - 1;

impl Probe {
    #[inline]
    fn new(mac: u64, buckets: usize) -> Self {
        let neighbour = (mac >> BUCKET_BITS) as usize;
        Self {
            hash: spread(mac >> NEIGHBOUR_BITS),
            neighbour,
            mask: buckets.wrapping_sub(1),
        }
    }

    /// The hash chooses the neighbourhood, and where in it the run of addresses begins.
    #[inline]
    fn next_bucket(&mut self) -> usize {
        let hash = (self.hash >> 32) as usize;
        self.hash = spread(self.hash);
        let bucket = (hash + self.neighbour) & NEIGHBOURHOOD;
        ((hash & !NEIGHBOURHOOD) | bucket) & self.mask
    }
}

/// Fibonacci hashing: every bit of the product's high half depends on all bits below it.
#[inline]
fn spread(hash: u64) -> u64 {
    let product = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

impl Entry {
    #[inline]
    fn seen_s(&self) -> u32 {
        self.seen & !LOOKED_UP
    }

    #[inline]
    fn age_s(&self, now_s: u32) -> u32 {
        now_s.saturating_sub(self.seen_s())
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
    fn forgets_silent_hosts() {
        let mut table = MacTable::with_limits(64, 10);
        table.learn(host(1), PortNo(1), 0);
        assert_eq!(table.port_of(host(1), 10), Some(PortNo(1)));
        assert_eq!(table.port_of(host(1), 11), None);
        assert_eq!(table.learn(host(1), PortNo(2), 11), Learned::New);
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
    fn holds_consecutive_addresses_without_loss() {
        let mut table = MacTable::new();
        for number in 0..100_000 {
            table.learn(host(number), PortNo(1), 0);
        }
        let lost = (0..100_000)
            .filter(|&number| table.port_of(host(number), 0).is_none())
            .count();
        assert_eq!(lost, 0);
    }

    proptest! {
        /// The judge is a hash map: within the bound, the table agrees with it.
        #[test]
        fn agrees_with_a_hash_map(steps in prop::collection::vec((0..200_u64, 1..5_u32, 0..4_u32), 0..400)) {
            let mut table = MacTable::with_limits(4096, 20);
            let mut naive: HashMap<u64, (u32, u32)> = HashMap::new();
            let mut now_s = 0;
            for (number, port, pause_s) in steps {
                now_s += pause_s;
                let known = naive.get(&number).filter(|(_, seen_s)| now_s - seen_s <= 20);
                let expected = match known {
                    None => Learned::New,
                    Some((known, _)) if *known == port => Learned::Known,
                    Some(_) => Learned::Moved,
                };
                prop_assert_eq!(table.port_of(host(number), now_s), known.map(|(port, _)| PortNo(*port)));
                prop_assert_eq!(table.learn(host(number), PortNo(port), now_s), expected);
                naive.insert(number, (port, now_s));
            }
        }
    }
}
