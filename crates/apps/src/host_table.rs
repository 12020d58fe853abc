//! Tables of hosts that all switches share.
//!
//! **What.** The paper compares three ways to share such a table (section 6.7 and Figure 20). Here they implement one trait,
//! [`HostTable`]: without locks ([`LockFree`]), with a mutex per list ([`Locked`]), and with a transactional variable per
//! list ([`Transactional`]).
//!
//! **Cost.** The lock-free table needs 16 bytes per host. Hosts are forgotten only by removal.
//!
//! **Thread-safety.** Any number of threads may use the tables. If two switches receive packets of one host at the same
//! time, either of them is recorded.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use urtica_state::{
    Abort, Limits, TVar, Table, Transaction, Word, atomically, neighbourly, prefetch,
    try_atomically,
};
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// The place of a host: a port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The switch's number: 0 for the first switch that joined, 1 for the second.
    pub switch: u32,
    /// The port.
    pub port: PortNo,
}

/// The answer of a table to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The known place of the packet's source, if it differs from the packet's.
    pub elsewhere: Option<Place>,
    /// The place of its destination.
    pub dst: Option<Place>,
}

/// A table of the places of all hosts.
pub trait HostTable: Default + Send + Sync + 'static {
    /// Records that `src` is at `place` unless another place of it is known, and looks up `dst`.
    fn hear(&self, src: Host, place: Place, dst: Host) -> Heard;

    /// Records that `src` is at `place`, replacing any other place, and looks up `dst`. Writes even if nothing changes.
    fn write_and_find(&self, src: Host, place: Place, dst: Host) -> Heard;

    /// Looks up a host.
    fn find(&self, host: Host) -> Option<Place>;

    /// Records that a host is at `place`, replacing any other place. Returns `false` if the table is full, or no host can
    /// have the address.
    fn put(&self, host: Host, place: Place) -> bool;

    /// Forgets a host.
    fn remove(&self, host: Host);

    /// Prefetches a host's entry for a look-up soon after.
    fn prefetch(&self, _host: Host) {}
}

/// A table that is written for each packet, even if its source is known, as in McNettle's Figure 5: to measure the cost of
/// writes.
#[derive(Default)]
pub struct WrittenEachTime<T>(T);

impl<T: HostTable> HostTable for WrittenEachTime<T> {
    #[inline]
    fn hear(&self, src: Host, place: Place, dst: Host) -> Heard {
        self.0.write_and_find(src, place, dst)
    }

    #[inline]
    fn write_and_find(&self, src: Host, place: Place, dst: Host) -> Heard {
        self.0.write_and_find(src, place, dst)
    }

    #[inline]
    fn find(&self, host: Host) -> Option<Place> {
        self.0.find(host)
    }

    fn put(&self, host: Host, place: Place) -> bool {
        self.0.put(host, place)
    }

    fn remove(&self, host: Host) {
        self.0.remove(host);
    }

    #[inline]
    fn prefetch(&self, host: Host) {
        self.0.prefetch(host);
    }
}

/// Numbers of switches, which need less space in a table than datapath ids.
#[derive(Default)]
pub(crate) struct Numbers {
    numbers: BTreeMap<DatapathId, u32>,
    /// The reverse map.
    switches: Vec<DatapathId>,
}

impl Numbers {
    /// Returns the switch's number, which it keeps when it joins again.
    pub fn of(&mut self, switch: DatapathId) -> u32 {
        let next = self.switches.len() as u32;
        let number = *self.numbers.entry(switch).or_insert(next);
        if number == next {
            self.switches.push(switch);
        }
        number
    }

    /// Returns the switch with this number.
    pub fn switch(&self, number: u32) -> Option<DatapathId> {
        self.switches.get(number as usize).copied()
    }
}

/// A host as a key of tables: its address, or its address at one switch ([`Host::at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(u64);

/// The number of bits of an address.
const MAC_BITS: u32 = 48;

impl Host {
    /// Creates the key of the host with this address.
    #[inline]
    pub fn new(mac: MacAddr) -> Self {
        Self(mac.to_u64())
    }

    /// Returns the host's key at the switch with this number, which has its own place; `None` for numbers beyond 16 bits.
    #[inline]
    pub fn at(self, switch: u32) -> Option<Self> {
        let number = u16::try_from(switch.checked_add(1)?).ok()?;
        Some(Self(self.mac().to_u64() | u64::from(number) << MAC_BITS))
    }

    /// Returns the host's address.
    #[inline]
    pub fn mac(self) -> MacAddr {
        MacAddr::from_u64(self.0 & ((1 << MAC_BITS) - 1))
    }

    /// Returns `true` if a host can have the address: it is neither a group address nor all zeros.
    #[inline]
    fn is_one(self) -> bool {
        let mac = self.mac();
        !mac.is_multicast() && mac != MacAddr::ZERO
    }
}

impl Word for Host {
    #[inline]
    fn to_word(self) -> u64 {
        self.0
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Maps consecutive addresses to neighbouring slots. The addresses of virtual hosts, which are locally administered
    /// (IEEE 802's U/L bit), count up in the last byte; those of benchmarks in the second.
    ///
    /// [`MacTable`](crate::MacTable) handles both alike. One table for all switches cannot: cbench's addresses have the
    /// switch's number in the last byte, so all switches would share the same neighbourhoods.
    #[inline]
    fn first_slot(word: u64) -> u64 {
        const LOCAL: u64 = 0x0200_0000_0000;
        const SECOND_BYTE: u32 = 32;
        let from_counting = match word & LOCAL {
            0 => word.rotate_right(SECOND_BYTE),
            _ => word,
        };
        neighbourly(from_counting >> 6, from_counting)
    }
}

impl Word for Place {
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self.switch) << 32 | u64::from(self.port.0)
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self {
            switch: (word >> 32) as u32,
            port: PortNo(word as u32),
        }
    }
}

/// A table without locks, of words that are read and replaced atomically.
#[derive(Default)]
pub struct LockFree(Table<Host, Place>);

impl HostTable for LockFree {
    #[inline(always)] // into the loop over packet-ins
    fn hear(&self, src: Host, place: Place, dst: Host) -> Heard {
        // Only hosts' addresses are in the table.
        let elsewhere = match self.0.has(src, place) {
            true => None,
            false => self.find_or_put(src, place),
        };
        let dst = self.find(dst);
        Heard { elsewhere, dst }
    }

    #[inline]
    fn write_and_find(&self, src: Host, place: Place, dst: Host) -> Heard {
        let is = self.find(src);
        self.put(src, place);
        Heard {
            elsewhere: is.filter(|is| *is != place),
            dst: self.find(dst),
        }
    }

    #[inline]
    fn find(&self, host: Host) -> Option<Place> {
        self.0.get(host)
    }

    #[cold]
    fn put(&self, host: Host, place: Place) -> bool {
        host.is_one() && self.0.insert(host, place).is_ok()
    }

    #[cold]
    fn remove(&self, host: Host) {
        self.0.remove(host);
    }

    #[inline]
    fn prefetch(&self, host: Host) {
        self.0.prefetch(host);
    }
}

impl LockFree {
    /// Adds a host at this place unless it is known. Returns its known place if it differs.
    #[inline(never)]
    fn find_or_put(&self, host: Host, place: Place) -> Option<Place> {
        let elsewhere = self.find(host);
        if elsewhere.is_none() {
            // If the table is full, the host stays unknown, and packets to it are flooded.
            self.put(host, place);
        }
        elsewhere
    }
}

/// The number of lists in the two tables below; small in tests, so that hosts share lists.
const LISTS: usize = if cfg!(test) { 1 << 3 } else { 1 << 16 };

/// The maximum length of a list; four million hosts in total, as in a [`Table`].
const MAX_LIST: usize = 64;

/// The hosts of a list, in the order in which they were added. Most lists have at most one.
#[derive(Clone, Default)]
struct List {
    first: Option<(Host, Place)>,
    others: Vec<(Host, Place)>,
}

impl List {
    #[inline]
    fn find(&self, wanted: Host) -> Option<Place> {
        match self.first? {
            (host, place) if host == wanted => Some(place),
            _ => self.find_other(wanted),
        }
    }

    #[inline(never)]
    fn find_other(&self, wanted: Host) -> Option<Place> {
        let entry = self.others.iter().find(|(host, _)| *host == wanted);
        entry.map(|(_, place)| *place)
    }

    /// Moves a host, or adds it unless the list is full. Returns `true` if the host is in the list now.
    fn put(&mut self, host: Host, place: Place) -> bool {
        let mut entries = self.first.iter_mut().chain(&mut self.others);
        if let Some((_, known)) = entries.find(|(known, _)| *known == host) {
            *known = place;
        } else if self.first.is_none() {
            self.first = Some((host, place));
        } else if self.others.len() < MAX_LIST - 1 {
            self.others.push((host, place));
        } else {
            return false;
        }
        true
    }

    fn remove(&mut self, host: Host) {
        self.others.retain(|(known, _)| *known != host);
        if self.first.is_some_and(|(known, _)| known == host) {
            self.first = self.others.pop();
        }
    }
}

/// Returns the index of a host's list.
#[inline]
fn list_of(host: Host) -> usize {
    Host::first_slot(host.0) as usize % LISTS
}

/// A hash table with a mutex per list, which readers and writers lock (the paper's `MVar`s).
pub struct Locked(Box<[Mutex<List>]>);

impl Default for Locked {
    fn default() -> Self {
        Self((0..LISTS).map(|_| Mutex::default()).collect())
    }
}

impl HostTable for Locked {
    #[inline]
    fn hear(&self, src: Host, place: Place, dst: Host) -> Heard {
        Heard {
            elsewhere: self.find_or_put(src, place),
            dst: self.find(dst),
        }
    }

    #[inline]
    fn write_and_find(&self, src: Host, place: Place, dst: Host) -> Heard {
        let mut list = self.lock(src);
        let is = list.find(src);
        if src.is_one() {
            list.put(src, place);
        }
        drop(list);
        Heard {
            elsewhere: is.filter(|is| *is != place),
            dst: self.find(dst),
        }
    }

    #[inline]
    fn find(&self, host: Host) -> Option<Place> {
        self.lock(host).find(host)
    }

    fn put(&self, host: Host, place: Place) -> bool {
        host.is_one() && self.lock(host).put(host, place)
    }

    fn remove(&self, host: Host) {
        self.lock(host).remove(host);
    }

    #[inline]
    fn prefetch(&self, host: Host) {
        prefetch(&self.0[list_of(host)]);
    }
}

impl Locked {
    #[inline]
    fn find_or_put(&self, host: Host, place: Place) -> Option<Place> {
        let mut list = self.lock(host);
        let is = list.find(host);
        if is.is_none() && host.is_one() {
            list.put(host, place);
        }
        is.filter(|is| *is != place)
    }

    /// Locks a host's list. Callers lock one list at a time.
    #[inline]
    fn lock(&self, host: Host) -> MutexGuard<'_, List> {
        let list = &self.0[list_of(host)];
        list.lock()
    }
}

/// A hash table with a transactional variable per list. A packet's write and look-up are one transaction.
pub struct Transactional(Box<[TVar<List>]>);

impl Default for Transactional {
    fn default() -> Self {
        Self((0..LISTS).map(|_| TVar::default()).collect())
    }
}

impl HostTable for Transactional {
    #[inline]
    fn hear(&self, src: Host, place: Place, dst: Host) -> Heard {
        self.hear_where(src, place, dst, |is| is.is_none())
    }

    #[inline]
    fn write_and_find(&self, src: Host, place: Place, dst: Host) -> Heard {
        self.hear_where(src, place, dst, |_| true)
    }

    #[inline]
    fn find(&self, host: Host) -> Option<Place> {
        self.list(host).load_with(|list| list.find(host))
    }

    fn put(&self, host: Host, place: Place) -> bool {
        let put = || atomically(|tx| self.change(tx, host, |list| list.put(host, place)));
        host.is_one() && put()
    }

    fn remove(&self, host: Host) {
        atomically(|tx| self.change(tx, host, |list| list.remove(host)));
    }

    #[inline]
    fn prefetch(&self, host: Host) {
        self.list(host).prefetch();
    }
}

impl Transactional {
    /// Looks up both hosts, and records the place of the source if `is_written` returns `true` for its known place.
    #[inline]
    fn hear_where(
        &self,
        src: Host,
        place: Place,
        dst: Host,
        is_written: impl Fn(Option<Place>) -> bool,
    ) -> Heard {
        let heard = try_atomically(Limits::DEFAULT, |transaction| {
            let is = self.find_in_transaction(transaction, src)?;
            if is_written(is) && src.is_one() {
                self.change(transaction, src, |list| list.put(src, place))?;
            }
            let dst = self.find_in_transaction(transaction, dst)?;
            let elsewhere = is.filter(|is| *is != place);
            Ok(Heard { elsewhere, dst })
        });
        // After repeated conflicts, no host counts as known, so that the packet is flooded.
        heard.unwrap_or(Heard {
            elsewhere: None,
            dst: None,
        })
    }

    #[cold]
    fn change<R>(
        &self,
        transaction: &mut Transaction,
        host: Host,
        change: impl Fn(&mut List) -> R,
    ) -> Result<R, Abort> {
        let mut list = self.list(host).read(transaction)?;
        let result = change(&mut list);
        self.list(host).write(transaction, list)?;
        Ok(result)
    }

    #[inline]
    fn find_in_transaction(
        &self,
        transaction: &mut Transaction,
        host: Host,
    ) -> Result<Option<Place>, Abort> {
        let list = self.list(host);
        list.read_with(transaction, |list| list.find(host))
    }

    fn list(&self, host: Host) -> &TVar<List> {
        &self.0[list_of(host)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashMap};
    use std::thread;

    /// The reference model of a table.
    #[derive(Default)]
    struct Plain(HashMap<Host, Place>);

    impl Plain {
        fn hear(&mut self, src: Host, place: Place, dst: Host) -> Heard {
            let is = self.0.get(&src).copied();
            if is.is_none() {
                self.put(src, place);
            }
            let dst = self.0.get(&dst).copied();
            let elsewhere = is.filter(|is| *is != place);
            Heard { elsewhere, dst }
        }

        fn write_and_find(&mut self, src: Host, place: Place, dst: Host) -> Heard {
            let elsewhere = self.0.get(&src).copied().filter(|is| *is != place);
            self.put(src, place);
            let dst = self.0.get(&dst).copied();
            Heard { elsewhere, dst }
        }

        fn put(&mut self, host: Host, place: Place) -> bool {
            let mac = host.mac();
            let is_host = !mac.is_multicast() && mac != MacAddr::ZERO;
            if is_host {
                self.0.insert(host, place);
            }
            is_host
        }
    }

    /// The use of a table.
    #[derive(Clone, Debug)]
    enum Use {
        Hear(Host, Place, Host),
        Write(Host, Place, Host),
        Put(Host, Place),
        Remove(Host),
    }

    fn used() -> impl Strategy<Value = Use> {
        prop_oneof![
            3 => (host(), place(), host()).prop_map(|(src, place, dst)| Use::Hear(src, place, dst)),
            1 => (host(), place(), host()).prop_map(|(src, place, dst)| Use::Write(src, place, dst)),
            1 => (host(), place()).prop_map(|(host, place)| Use::Put(host, place)),
            1 => host().prop_map(Use::Remove),
        ]
    }

    fn host() -> impl Strategy<Value = Host> {
        (address(), prop::option::of(0..3_u32)).prop_map(|(mac, switch)| {
            let host = Host::new(mac);
            switch.and_then(|switch| host.at(switch)).unwrap_or(host)
        })
    }

    /// Addresses, so few that they repeat, and some that no host can have.
    fn address() -> impl Strategy<Value = MacAddr> {
        prop_oneof![
            (0..40_u64).prop_map(|number| MacAddr::from_u64(0x0200_0000_0000 + number)),
            (0..40_u64).prop_map(|number| MacAddr::from_u64(0x0200_0000_0001 + (number << 32))),
            Just(MacAddr::ZERO),
            Just(MacAddr::BROADCAST),
            any::<u64>().prop_map(|bits| MacAddr::from_u64(bits >> 16)),
        ]
    }

    fn place() -> impl Strategy<Value = Place> {
        let port = prop_oneof![(1..5_u32), Just(PortNo::MAX.0), Just(PortNo::ANY.0)];
        (0..3_u32, port).prop_map(|(switch, port)| Place {
            switch,
            port: PortNo(port),
        })
    }

    fn agrees_with_reference<T: HostTable>(uses: &[Use]) {
        let (table, mut model) = (T::default(), Plain::default());
        let mut seen = BTreeSet::new();
        for used in uses {
            match *used {
                Use::Hear(src, place, dst) => {
                    table.prefetch(src);
                    assert_eq!(table.hear(src, place, dst), model.hear(src, place, dst));
                    seen.extend([src, dst]);
                }
                Use::Write(src, place, dst) => {
                    let (ours, expected) = (
                        table.write_and_find(src, place, dst),
                        model.write_and_find(src, place, dst),
                    );
                    assert_eq!(ours, expected);
                    seen.extend([src, dst]);
                }
                Use::Put(host, place) => {
                    assert_eq!(table.put(host, place), model.put(host, place));
                    seen.insert(host);
                }
                Use::Remove(host) => {
                    table.remove(host);
                    model.0.remove(&host);
                }
            }
        }
        for host in seen {
            assert_eq!(table.find(host), model.0.get(&host).copied());
        }
    }

    proptest! {
        #[test]
        fn all_tables_agree_with_a_plain_map(
            uses in prop::collection::vec(used(), 0..120),
        ) {
            agrees_with_reference::<LockFree>(&uses);
            agrees_with_reference::<Locked>(&uses);
            agrees_with_reference::<Transactional>(&uses);
        }
    }

    #[test]
    fn hosts_have_a_key_per_switch() {
        let host = Host::new(MacAddr::from_u64(0x0200_0000_0001));
        let keys: BTreeSet<_> = (0..0xffff).filter_map(|switch| host.at(switch)).collect();
        assert_eq!(keys.len(), 0xffff);
        assert!(!keys.contains(&host));
        assert!(keys.iter().all(|key| key.mac() == host.mac()));
        assert_eq!(host.at(0xffff), None);
    }

    #[test]
    fn consecutive_addresses_are_neighbours_and_switches_spread() {
        let places = |addresses: &mut dyn Iterator<Item = u64>| -> BTreeSet<u64> {
            addresses.map(Host::first_slot).collect()
        };
        let is_neighbourhood = |places: &BTreeSet<u64>| {
            places.len() == 64
                && places.first().map(|at| at / 64) == places.last().map(|at| at / 64)
        };
        let virtual_hosts = places(&mut (0..64_u64).map(|number| 0x0242_ac11_0000 + number));
        assert!(is_neighbourhood(&virtual_hosts));
        // The addresses of `urtica bench`: the host's number in the second byte, the switch's in the last.
        let of_switch =
            |switch: u64| places(&mut (0..64_u64).map(|number| (number << 32) + switch));
        assert!((1..=16).all(|switch| is_neighbourhood(&of_switch(switch))));
        let of_all: BTreeSet<_> = (1..=16).flat_map(of_switch).collect();
        assert_eq!(of_all.len(), 16 * 64);
    }

    /// Threads move hosts repeatedly. Each look-up must return a place that a thread has recorded for the host.
    fn never_invents_places<T: HostTable>() {
        const HOSTS: u64 = 50;
        let host = |number: u64| Host::new(MacAddr::from_u64(0x0200_0000_0000 + number % HOSTS));
        let table = T::default();
        thread::scope(|scope| {
            for switch in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..2000_u64 {
                        let port = PortNo(1000 + (number % HOSTS) as u32);
                        let place = Place { switch, port };
                        let heard = table.hear(host(number), place, host(number + 1));
                        if heard.elsewhere.is_some() {
                            assert!(table.put(host(number), place));
                        }
                        let expected = 1000 + ((number + 1) % HOSTS) as u32;
                        assert!(
                            heard
                                .dst
                                .is_none_or(|dst| dst.port.0 == expected && dst.switch < 4)
                        );
                        assert!(heard.elsewhere.is_none_or(|other| other.port == port));
                    }
                });
            }
        });
        assert!((0..HOSTS).all(|number| table.find(host(number)).is_some()));
    }

    #[test]
    fn concurrent_lookups_return_recorded_values() {
        never_invents_places::<LockFree>();
        never_invents_places::<Locked>();
        never_invents_places::<Transactional>();
    }
}
