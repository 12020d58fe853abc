//! Which port a host is behind: the table of a learning switch.
//!
//! **What.** A map from MAC address to port that is bounded, forgets hosts that were silent for long, and never
//! stalls: an insert moves nothing, looks at no more than [`PROBES`] cache lines, and allocates only while the table
//! grows to its bound.
//!
//! **How.** Open addressing in buckets of four entries, one cache line each. Addresses that differ in their last two
//! bits share a bucket, so that the runs of consecutive addresses that virtual hosts and benchmarks have cost one
//! cache miss for four packets. An entry lies in its home bucket or one of the next few; nothing is ever removed, only
//! overwritten, so a search may end at the first bucket with a free place. When all places that an address may have
//! are taken, the entry that was silent longest gives way, unless the table may still grow.
//!
//! **Cost.** 16 bytes an entry; at most half of the places are taken while the table can grow.

use urtica_wire::{MacAddr, PortNo};

/// How many buckets an address may be in: its home and those after it.
const PROBES: usize = 4;

const FIRST_BUCKETS: usize = 16;

/// How much a full table grows.
const GROWTH: usize = 4;

/// How many entries the table of a switch can hold unless it is told otherwise.
const DEFAULT_MAX_ENTRIES: usize = 1 << 18;

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
    seen_s: u32,
}

impl Default for MacTable {
    fn default() -> Self {
        Self::new()
    }
}

impl MacTable {
    /// A table for up to 262,144 hosts that forgets a host after 300 seconds of silence.
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
        let Some((bucket, place)) = self.locate(mac) else {
            return self.insert(mac, port, now_s);
        };
        let max_age_s = self.max_age_s;
        let entry = &mut self.buckets[bucket].0[place];
        if entry.seen_s == now_s && entry.port == port.0 {
            // Most packets come from hosts that were heard this very second: don't dirty their cache lines.
            return Learned::Known;
        }
        let known = Entry {
            port: port.0,
            seen_s: now_s,
            ..*entry
        };
        let before = std::mem::replace(entry, known);
        match before.age_s(now_s) <= max_age_s {
            false => Learned::New,
            true if before.port == port.0 => Learned::Known,
            true => Learned::Moved,
        }
    }

    /// The port that `mac` is behind, unless it is not known at `now_s`.
    #[inline]
    pub fn port_of(&self, mac: MacAddr, now_s: u32) -> Option<PortNo> {
        let (bucket, place) = self.locate(mac)?;
        let entry = &self.buckets[bucket].0[place];
        (entry.age_s(now_s) <= self.max_age_s).then_some(PortNo(entry.port))
    }

    /// Where the address's entry is.
    #[inline]
    fn locate(&self, mac: MacAddr) -> Option<(usize, usize)> {
        let mac = mac.to_u64();
        for bucket in self.candidates(mac) {
            let entries = &self.buckets[bucket].0;
            if let Some(place) = entries.iter().position(|entry| entry.mac == mac) {
                return (mac != 0).then_some((bucket, place));
            }
            if entries[3].mac == 0 {
                return None;
            }
        }
        None
    }

    /// The buckets that an address may be in, nearest first. None while the table is empty.
    #[inline]
    fn candidates(&self, mac: u64) -> impl Iterator<Item = usize> + use<> {
        // Fibonacci hashing of all but the last two bits: the product's high half depends on every bit below it.
        let hash = (mac >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mask = self.buckets.len().wrapping_sub(1);
        let probes = if self.buckets.is_empty() { 0 } else { PROBES };
        (0..probes).map(move |probe| (hash as usize + probe) & mask)
    }

    #[cold]
    fn insert(&mut self, mac: MacAddr, port: PortNo, now_s: u32) -> Learned {
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return Learned::Ignored;
        }
        if self.len * 2 >= self.buckets.len() * 4 && self.buckets.len() < self.max_buckets {
            self.grow();
        }
        self.place(Entry {
            mac: mac.to_u64(),
            port: port.0,
            seen_s: now_s,
        });
        Learned::New
    }

    /// Puts in an address that is not there: in the first free place that it may have, or in that of the entry that
    /// was silent longest. Places in a bucket fill in order, so the last one being free means the bucket has room.
    fn place(&mut self, new: Entry) {
        let mut oldest: Option<(usize, usize)> = None;
        for bucket in self.candidates(new.mac) {
            for (place, entry) in self.buckets[bucket].0.iter().enumerate() {
                if entry.mac == 0 {
                    self.buckets[bucket].0[place] = new;
                    self.len += 1;
                    return;
                }
                if oldest.is_none_or(|(b, p)| entry.seen_s < self.buckets[b].0[p].seen_s) {
                    oldest = Some((bucket, place));
                }
            }
        }
        if let Some((bucket, place)) = oldest {
            self.buckets[bucket].0[place] = new;
        }
    }

    /// Makes room; what does not find a place in the larger table gives way to what is heard more recently.
    fn grow(&mut self) {
        let buckets = (self.buckets.len() * GROWTH).clamp(FIRST_BUCKETS, self.max_buckets);
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.len = 0;
        for entry in old
            .iter()
            .flat_map(|bucket| bucket.0)
            .filter(|entry| entry.mac != 0)
        {
            self.place(entry);
        }
    }
}

impl Entry {
    #[inline]
    fn age_s(&self, now_s: u32) -> u32 {
        now_s.saturating_sub(self.seen_s)
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
