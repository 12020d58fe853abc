//! The table of learnt addresses, which maps an address in a VLAN to its port, for forwarding without OpenFlow
//! ([`urtica_wire::PortNo::NORMAL`], and while no controller is connected).
//!
//! Each address belongs to one bucket of four slots. If the bucket is full, the address that has been silent longest is
//! replaced, so that learning needs constant time even under a flood of forged addresses.
//!
//! The bucket is chosen by a hash with secret keys. With known keys, an attacker could choose four addresses of a victim's
//! bucket, send from them, and have the victim's traffic flooded.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::time::Duration;
use urtica_wire::packet::{EthernetView, VlanTags};
use urtica_wire::{MacAddr, PortNo};

/// The age at which a silent host is removed: IEEE 802.1Q's default.
const MAX_AGE: Duration = Duration::from_secs(300);
/// Number of buckets, as a power of two.
const BUCKET_BITS: u32 = 11;
/// Number of slots per bucket.
const BUCKET: usize = 4;

/// A table of 8,192 addresses.
#[derive(Debug)]
pub(crate) struct MacTable {
    buckets: Vec<[Option<Host>; BUCKET]>,
    keys: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
struct Host {
    vid: u16,
    mac: MacAddr,
    port: PortNo,
    seen: Duration,
}

impl Host {
    fn is(&self, vid: u16, mac: MacAddr) -> bool {
        self.vid == vid && self.mac == mac
    }

    fn is_fresh(&self, now: Duration) -> bool {
        now.saturating_sub(self.seen) < MAX_AGE
    }
}

impl MacTable {
    /// Creates an empty table. Its hash is determined by `seed`; without one, it is unpredictable.
    pub fn new(seed: Option<u64>) -> Self {
        let keys = match seed {
            Some(seed) => [0, 1].map(|number| {
                BuildHasherDefault::<DefaultHasher>::default().hash_one((seed, number))
            }),
            None => [0, 1].map(|number| RandomState::new().hash_one(number)),
        };
        Self {
            buckets: vec![[None; BUCKET]; 1 << BUCKET_BITS],
            keys,
        }
    }

    /// Notes that a host is behind a port. Addresses that no host can have are ignored.
    pub fn learn(&mut self, vid: u16, mac: MacAddr, port: PortNo, now: Duration) {
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return;
        }
        let at = self.bucket_of(vid, mac);
        let bucket = &mut self.buckets[at];
        let known = bucket
            .iter()
            .position(|place| place.is_some_and(|host| host.is(vid, mac)));
        let at = known.unwrap_or_else(|| oldest(bucket));
        bucket[at] = Some(Host {
            vid,
            mac,
            port,
            seen: now,
        });
    }

    /// Returns the port that a host is behind, unless the host is unknown or has been silent for too long.
    pub fn port_of(&self, vid: u16, mac: MacAddr, now: Duration) -> Option<PortNo> {
        let bucket = &self.buckets[self.bucket_of(vid, mac)];
        let mut hosts = bucket.iter().flatten();
        hosts
            .find(|host| host.is(vid, mac) && host.is_fresh(now))
            .map(|host| host.port)
    }

    /// Removes the hosts behind a port.
    pub fn forget_port(&mut self, port: PortNo) {
        for place in self.buckets.iter_mut().flatten() {
            if place.is_some_and(|host| host.port == port) {
                *place = None;
            }
        }
    }

    /// Returns an address's bucket, by folded multiplication: the upper half of the product, which depends on the lower bits of
    /// both factors, is combined with the lower half.
    fn bucket_of(&self, vid: u16, mac: MacAddr) -> usize {
        let address = mac.to_u64() ^ u64::from(vid) << 48;
        let [addend, factor] = self.keys;
        let product = u128::from(address ^ addend) * u128::from(factor | 1);
        let hash = product as u64 ^ (product >> 64) as u64;
        (hash >> (u64::BITS - BUCKET_BITS)) as usize
    }
}

/// Returns a free slot, or that of the host that has been silent longest. `None` is less than any time.
fn oldest(bucket: &[Option<Host>; BUCKET]) -> usize {
    let seen = |at: &usize| bucket[*at].map(|host| host.seen);
    (0..BUCKET).min_by_key(seen).unwrap_or(0)
}

/// Returns a frame's VLAN; 0 if it has no tag.
pub(crate) fn vlan_of(frame: &[u8]) -> u16 {
    let Ok(ethernet) = EthernetView::new(frame) else {
        return 0;
    };
    let mut tags = VlanTags::new(ethernet.ether_type(), ethernet.payload());
    tags.next().map_or(0, |(_, outermost)| outermost.vid())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_host_is_known_on_its_vlan_alone() {
        let mut table = MacTable::new(None);
        table.learn(7, HOST, PortNo(1), Duration::ZERO);
        assert_eq!(table.port_of(7, HOST, Duration::ZERO), Some(PortNo(1)));
        assert_eq!(table.port_of(8, HOST, Duration::ZERO), None);
    }

    #[test]
    fn a_moved_host_is_found_at_its_new_port() {
        let mut table = MacTable::new(None);
        table.learn(0, HOST, PortNo(1), Duration::ZERO);
        table.learn(0, HOST, PortNo(2), Duration::from_secs(1));
        assert_eq!(
            table.port_of(0, HOST, Duration::from_secs(1)),
            Some(PortNo(2))
        );
    }

    #[test]
    fn silent_hosts_are_forgotten() {
        let mut table = MacTable::new(None);
        table.learn(0, HOST, PortNo(1), Duration::ZERO);
        let before = MAX_AGE - Duration::from_nanos(1);
        assert_eq!(table.port_of(0, HOST, before), Some(PortNo(1)));
        assert_eq!(table.port_of(0, HOST, MAX_AGE), None);
    }

    #[test]
    fn hosts_of_a_removed_port_are_forgotten() {
        let mut table = MacTable::new(None);
        for (vid, port) in [(0, 1), (7, 1), (4095, 1), (8, 2)] {
            table.learn(vid, HOST, PortNo(port), Duration::ZERO);
        }
        table.forget_port(PortNo(1));
        for vid in [0, 7, 4095] {
            assert_eq!(table.port_of(vid, HOST, Duration::ZERO), None, "VLAN {vid}");
        }
        assert_eq!(table.port_of(8, HOST, Duration::ZERO), Some(PortNo(2)));
    }

    #[test]
    fn groups_are_not_learnt() {
        let mut table = MacTable::new(None);
        table.learn(0, MacAddr::BROADCAST, PortNo(1), Duration::ZERO);
        assert_eq!(table.port_of(0, MacAddr::BROADCAST, Duration::ZERO), None);
    }

    /// The addresses collide under the unkeyed hash of an earlier version of this file.
    #[test]
    fn addresses_of_one_bucket_cannot_be_chosen() {
        let bucket_of = |mac: MacAddr| mac.to_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53;
        let made_up = (2..).map(|number| MacAddr::from_u64(0x0200_0000_0000 | number));
        let chosen = made_up.filter(|&mac| bucket_of(mac) == bucket_of(HOST));
        let mut table = MacTable::new(None);
        table.learn(0, HOST, PortNo(1), Duration::ZERO);
        for mac in chosen.take(2 * BUCKET) {
            table.learn(0, mac, PortNo(2), Duration::from_secs(1));
        }
        let later = Duration::from_secs(1);
        assert_eq!(table.port_of(0, HOST, later), Some(PortNo(1)));
    }

    #[test]
    fn equal_seeds_make_equal_tables() {
        let buckets = |seed| {
            let table = MacTable::new(seed);
            let hosts = (0..100).map(|number| table.bucket_of(7, MacAddr::from_u64(number)));
            hosts.collect::<Vec<_>>()
        };
        assert_eq!(buckets(Some(3)), buckets(Some(3)));
        assert_ne!(buckets(Some(3)), buckets(Some(4)));
        assert_ne!(buckets(None), buckets(None));
    }

    #[test]
    fn invented_addresses_replace_the_oldest() {
        let mut table = MacTable::new(None);
        for number in 0..100_000_u64 {
            let mac = MacAddr::from_u64(0x0200_0000_0000 | number);
            table.learn(0, mac, PortNo(1), Duration::from_millis(number));
        }
        let last = MacAddr::from_u64(0x0200_0000_0000 | 99_999);
        assert_eq!(
            table.port_of(0, last, Duration::from_secs(100)),
            Some(PortNo(1))
        );
        assert_eq!(
            table.buckets.iter().flatten().count(),
            BUCKET << BUCKET_BITS
        );
    }

    #[test]
    fn vlans_of_frames() {
        let mut frame = [0; 60];
        assert_eq!(vlan_of(&frame), 0);
        frame[12..16].copy_from_slice(&[0x81, 0x00, 0xe0, 0x07]);
        assert_eq!(vlan_of(&frame), 7);
        assert_eq!(vlan_of(&frame[..15]), 0);
    }
}
