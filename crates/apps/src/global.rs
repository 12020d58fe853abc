//! Global learning (McNettle section 4.2): one table says where all hosts are, and every switch reads and writes it.
//!
//! **What.** What one switch has learnt, all know. A packet to a host behind the same switch gets an entry. A packet to
//! a host behind another switch is flooded, as in the paper, or sent to the next hop where a topology is known
//! ([`Global::with_topology`]).
//!
//! **How.** The program is written once, for any [`HostTable`]. The paper compares three ways to share such a table
//! (its section 6.7 and Figure 20), and here they are: without locks ([`LockFree`]), with a mutex around each part
//! ([`Locked`]), and with a transactional variable for each part ([`Transactional`]).
//!
//! **Cost.** Nearly all packets come from hosts that are where they were, so the table is read twice and not written.
//! 16 bytes a host, lock-free. Nothing is forgotten: a host stays where it was heard last.
//!
//! **Thread-safety.** A handler has no state of its own but its switch's number. The tables may be used by any number
//! of threads. Of two switches that hear one host at the same time, either may be believed.

use crate::mac_table::prefetch;
use crate::registry::Setup;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use urtica_controller::services::{Discovery, Routes};
use urtica_controller::{IDLE_5S, Program, Switch, SwitchHandler, SwitchInfo};
use urtica_state::{Abort, Limits, TVar, Table, Transaction, Word, neighbourly, try_atomically};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr, Match, PacketIn, PortNo};

/// Where a host is: behind this port of the switch with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The switch's number: 0 for the first that ever joined, 1 for the second.
    pub switch: u32,
    /// The port.
    pub port: PortNo,
}

/// What a table says when a packet comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Where the packet's source was until now, if that is somewhere else.
    pub moved_from: Option<Place>,
    /// Where its destination is.
    pub dst: Option<Place>,
}

/// Where all hosts are.
pub trait HostTable: Default + Send + Sync + 'static {
    /// Notes that `src` is at `place`, and looks `dst` up.
    fn hear(&self, src: MacAddr, place: Place, dst: MacAddr) -> Heard;

    /// Looks a host up.
    fn find(&self, host: MacAddr) -> Option<Place>;

    /// Has a host's entry fetched from memory, for a look that comes soon.
    fn prefetch(&self, _host: MacAddr) {}
}

/// The program, with this table.
#[derive(Default)]
pub struct Global<T>(Arc<Shared<T>>);

/// What the handlers of all switches have in common.
#[derive(Default)]
struct Shared<T> {
    hosts: T,
    numbers: Mutex<Numbers>,
    topology: Option<(Discovery, Routes)>,
}

impl<T: HostTable> Global<T> {
    /// With an empty table, and without a topology.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for networks whose topology is known: hosts are where edge ports are, and packets to hosts behind other
    /// switches go to the next hop.
    pub fn with_topology(discovery: &Discovery, routes: &Routes) -> Self {
        let topology = Some((discovery.clone(), routes.clone()));
        Self(Arc::new(Shared {
            topology,
            ..Shared::default()
        }))
    }
}

/// How `urtica run` adds it: with a topology where one is asked for.
pub(crate) fn add<T: HostTable>(setup: &mut Setup) -> Result<(), String> {
    let global = if setup.is_named("discovery") {
        Global::<T>::with_topology(&setup.discovery(), &setup.routes())
    } else {
        Global::<T>::new()
    };
    setup.add(global);
    Ok(())
}

impl<T: HostTable> Program for Global<T> {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        let number = self.0.numbers().of(info.datapath_id);
        let shared = Arc::clone(&self.0);
        match shared.topology {
            None => Box::new(GlobalHandler::<T, false> { number, shared }),
            Some(_) => Box::new(GlobalHandler::<T, true> { number, shared }),
        }
    }
}

impl<T> Shared<T> {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers for switches, which take less room in a table than datapath ids.
#[derive(Default)]
struct Numbers {
    numbers: BTreeMap<DatapathId, u32>,
    /// The other way round.
    switches: Vec<DatapathId>,
}

impl Numbers {
    /// The switch's number, the same each time it joins.
    fn of(&mut self, switch: DatapathId) -> u32 {
        let next = self.switches.len() as u32;
        let number = *self.numbers.entry(switch).or_insert(next);
        if number == next {
            self.switches.push(switch);
        }
        number
    }
}

/// One switch's part of the program. Whether a topology is known is asked once, and not for each packet-in.
struct GlobalHandler<T, const KNOWS_TOPOLOGY: bool> {
    number: u32,
    shared: Arc<Shared<T>>,
}

impl<T: HostTable, const KNOWS_TOPOLOGY: bool> SwitchHandler for GlobalHandler<T, KNOWS_TOPOLOGY> {
    fn expect(&self, packet: &PacketIn) {
        self.shared.hosts.prefetch(packet.eth_src());
    }

    #[inline(always)] // into the loop over packet-ins, as in `l2`
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let (src, dst, in_port) = (packet.eth_src(), packet.eth_dst(), packet.in_port());
        // Spanning tree, LLDP and their like end at the first bridge (IEEE 802.1Q section 8.6.3).
        if dst.is_link_local() {
            return;
        }
        let here = Place {
            switch: self.number,
            port: in_port,
        };
        let heard = self.hear(switch, src, here, dst);
        if let Some(was) = heard.moved_from {
            self.delete_entries_towards(switch, src, was);
        }
        match heard.dst.map(|place| self.port_towards(switch, place)) {
            None | Some(None) => switch.forward(packet, PortNo::FLOOD),
            // Both hosts are behind this port and have heard each other already.
            Some(Some(port)) if port == in_port => {}
            Some(Some(port)) => {
                switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S)
            }
        }
    }
}

impl<T: HostTable, const KNOWS_TOPOLOGY: bool> GlobalHandler<T, KNOWS_TOPOLOGY> {
    #[inline(always)]
    fn topology(&self) -> Option<&(Discovery, Routes)> {
        KNOWS_TOPOLOGY
            .then_some(self.shared.topology.as_ref())
            .flatten()
    }

    #[inline(always)]
    fn hear(&self, switch: &Switch, src: MacAddr, here: Place, dst: MacAddr) -> Heard {
        match self.topology() {
            // Who is heard behind a link to another switch is elsewhere.
            Some((discovery, _)) if discovery.is_link_port(here.port_id(switch)) => Heard {
                moved_from: None,
                dst: self.shared.hosts.find(dst),
            },
            _ => self.shared.hosts.hear(src, here, dst),
        }
    }

    /// The port that leads to a place, if that is known.
    #[inline(always)]
    fn port_towards(&self, switch: &Switch, place: Place) -> Option<PortNo> {
        if place.switch == self.number {
            return Some(place.port);
        }
        let (_, routes) = self.topology()?;
        let there = *self.shared.numbers().switches.get(place.switch as usize)?;
        let next_hops = routes.next_hops().load();
        let link = next_hops.next_hops(switch.datapath_id(), there).next()?;
        Some(link.from.port_no)
    }

    /// A host has moved. Entries towards where it was would live on for as long as they are used.
    #[cold]
    fn delete_entries_towards(&self, switch: &mut Switch, host: MacAddr, was: Place) {
        // A match on an address alone can be expressed in every version.
        let entries = || Match::any().eth_dst(host);
        if KNOWS_TOPOLOGY {
            let network = switch.network();
            for switch in network.switches() {
                let _ = network.delete(switch, entries());
            }
        } else if was.switch == self.number {
            let _ = switch.delete(entries());
        }
    }
}

impl Place {
    fn port_id(self, switch: &Switch) -> PortId {
        PortId::new(switch.datapath_id(), self.port)
    }
}

/// A host as a key of tables: its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Host(u64);

impl Host {
    /// Nothing for addresses that no host has: a group's, or all zeros.
    #[inline]
    fn of(mac: MacAddr) -> Option<Self> {
        (!mac.is_multicast() && mac != MacAddr::ZERO).then_some(Self(mac.to_u64()))
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

    /// Runs of addresses are neighbours. Those that virtual hosts have, which are locally administered (IEEE 802's U/L
    /// bit), count up in the last byte; of the others, those of benchmarks do in the second.
    ///
    /// [`MacTable`](crate::MacTable) takes either for either. One table for all switches cannot: cbench's addresses have
    /// the switch's number in the last byte, and all switches would be crowded together.
    #[inline]
    fn first_place(word: u64) -> u64 {
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

/// Shared without locks: words that are read and replaced atomically.
#[derive(Default)]
pub struct LockFree(Table<Host, Place>);

impl HostTable for LockFree {
    #[inline(always)] // into the loop over packet-ins
    fn hear(&self, src: MacAddr, place: Place, dst: MacAddr) -> Heard {
        // What is in the table is a host.
        let moved_from = match self.0.has(Host(src.to_u64()), place) {
            true => None,
            false => Some(self.put(src, place)).filter(|was| *was != place),
        };
        let dst = self.find(dst);
        Heard { moved_from, dst }
    }

    #[inline]
    fn find(&self, host: MacAddr) -> Option<Place> {
        self.0.get(Host(host.to_u64()))
    }

    #[inline]
    fn prefetch(&self, host: MacAddr) {
        self.0.prefetch(Host(host.to_u64()));
    }
}

impl LockFree {
    /// Puts a host at a place, and returns where it was; the same place if nowhere.
    #[cold]
    fn put(&self, host: MacAddr, place: Place) -> Place {
        // Where the table is full, the host stays unknown, and packets to it are flooded.
        let was = Host::of(host).and_then(|host| self.0.insert(host, place).ok().flatten());
        was.unwrap_or(place)
    }
}

/// How many lists the two tables below consist of; few in tests, so that hosts share them.
const LISTS: usize = if cfg!(test) { 1 << 3 } else { 1 << 16 };

/// How many hosts a list may have; four million in all, as in a [`Table`].
const MAX_LIST: usize = 64;

/// The hosts of a list, in the order in which they were heard first. Most lists have no more than one, beside which
/// there is nothing to look at.
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

    /// Moves a host, or adds it unless the list is full.
    fn put(&mut self, host: Host, place: Place) {
        let mut entries = self.first.iter_mut().chain(&mut self.others);
        if let Some((_, known)) = entries.find(|(known, _)| *known == host) {
            *known = place;
        } else if self.first.is_none() {
            self.first = Some((host, place));
        } else if self.others.len() < MAX_LIST - 1 {
            self.others.push((host, place));
        }
    }
}

/// Which list a host is in.
#[inline]
fn list_of(host: Host) -> usize {
    Host::first_place(host.0) as usize % LISTS
}

/// Shared with mutexes: one for each list of a hash table, taken for reading and writing alike (the paper's `MVar`s).
pub struct Locked(Box<[Mutex<List>]>);

impl Default for Locked {
    fn default() -> Self {
        Self((0..LISTS).map(|_| Mutex::default()).collect())
    }
}

impl HostTable for Locked {
    #[inline]
    fn hear(&self, src: MacAddr, place: Place, dst: MacAddr) -> Heard {
        let moved_from = Host::of(src).and_then(|host| self.note(host, place));
        Heard {
            moved_from,
            dst: self.find(dst),
        }
    }

    #[inline]
    fn find(&self, host: MacAddr) -> Option<Place> {
        let host = Host(host.to_u64());
        self.lock(host).find(host)
    }

    #[inline]
    fn prefetch(&self, host: MacAddr) {
        prefetch(&self.0[list_of(Host(host.to_u64()))]);
    }
}

impl Locked {
    #[inline]
    fn note(&self, host: Host, place: Place) -> Option<Place> {
        let mut list = self.lock(host);
        let was = list.find(host);
        if was != Some(place) {
            list.put(host, place);
        }
        was.filter(|was| *was != place)
    }

    /// Never two at once.
    #[inline]
    fn lock(&self, host: Host) -> MutexGuard<'_, List> {
        let list = &self.0[list_of(host)];
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shared by transactions: each list of a hash table is a transactional variable. What a packet notes and finds is of
/// one moment.
pub struct Transactional(Box<[TVar<List>]>);

impl Default for Transactional {
    fn default() -> Self {
        Self((0..LISTS).map(|_| TVar::default()).collect())
    }
}

impl HostTable for Transactional {
    #[inline]
    fn hear(&self, src: MacAddr, place: Place, dst: MacAddr) -> Heard {
        let heard = try_atomically(Limits::DEFAULT, |transaction| {
            let moved_from = match Host::of(src) {
                Some(host) => self.note(transaction, host, place)?,
                None => None,
            };
            let dst = Host(dst.to_u64());
            let dst = self.find_in_transaction(transaction, dst)?;
            Ok(Heard { moved_from, dst })
        });
        // Where others get in the way again and again: as if nothing were known, which floods.
        heard.unwrap_or(Heard {
            moved_from: None,
            dst: None,
        })
    }

    #[inline]
    fn find(&self, host: MacAddr) -> Option<Place> {
        let host = Host(host.to_u64());
        self.list(host).load_with(|list| list.find(host))
    }

    #[inline]
    fn prefetch(&self, host: MacAddr) {
        self.list(Host(host.to_u64())).prefetch();
    }
}

impl Transactional {
    #[inline]
    fn note(
        &self,
        transaction: &mut Transaction,
        host: Host,
        place: Place,
    ) -> Result<Option<Place>, Abort> {
        let was = self.find_in_transaction(transaction, host)?;
        if was != Some(place) {
            self.put(transaction, host, place)?;
        }
        Ok(was.filter(|was| *was != place))
    }

    #[cold]
    fn put(&self, transaction: &mut Transaction, host: Host, place: Place) -> Result<(), Abort> {
        let mut list = self.list(host).read(transaction)?;
        list.put(host, place);
        self.list(host).write(transaction, list)
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

    /// The judge: what a table is meant to do, by the plainest means.
    #[derive(Default)]
    struct Plain(HashMap<MacAddr, Place>);

    impl Plain {
        fn hear(&mut self, src: MacAddr, place: Place, dst: MacAddr) -> Heard {
            let is_host = !src.is_multicast() && src != MacAddr::ZERO;
            let was = is_host.then(|| self.0.insert(src, place)).flatten();
            let dst = self.0.get(&dst).copied();
            let moved_from = was.filter(|was| *was != place);
            Heard { moved_from, dst }
        }
    }

    /// Few enough that they are heard again, and some that no host has.
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

    fn agrees_with_judge<T: HostTable>(packets: &[(MacAddr, Place, MacAddr)]) {
        let (table, mut judge) = (T::default(), Plain::default());
        for &(src, place, dst) in packets {
            table.prefetch(src);
            assert_eq!(table.hear(src, place, dst), judge.hear(src, place, dst));
        }
        for &(src, _, dst) in packets {
            assert_eq!(table.find(src), judge.0.get(&src).copied());
            assert_eq!(table.find(dst), judge.0.get(&dst).copied());
        }
    }

    proptest! {
        #[test]
        fn all_tables_do_what_a_plain_map_does(
            packets in prop::collection::vec((address(), place(), address()), 0..120),
        ) {
            agrees_with_judge::<LockFree>(&packets);
            agrees_with_judge::<Locked>(&packets);
            agrees_with_judge::<Transactional>(&packets);
        }
    }

    #[test]
    fn runs_of_addresses_are_neighbours_and_switches_do_not_crowd_together() {
        let places = |addresses: &mut dyn Iterator<Item = u64>| -> BTreeSet<u64> {
            addresses.map(Host::first_place).collect()
        };
        let is_neighbourhood = |places: &BTreeSet<u64>| {
            places.len() == 64
                && places.first().map(|at| at / 64) == places.last().map(|at| at / 64)
        };
        let virtual_hosts = places(&mut (0..64_u64).map(|number| 0x0242_ac11_0000 + number));
        assert!(is_neighbourhood(&virtual_hosts));
        // As `urtica bench` has them: the number in the second byte, the switch's in the last.
        let of_switch =
            |switch: u64| places(&mut (0..64_u64).map(|number| (number << 32) + switch));
        assert!((1..=16).all(|switch| is_neighbourhood(&of_switch(switch))));
        let of_all: BTreeSet<_> = (1..=16).flat_map(of_switch).collect();
        assert_eq!(of_all.len(), 16 * 64);
    }

    /// Threads that move hosts to and fro: what is found is always a place where somebody has put the host.
    fn never_invents_places<T: HostTable>() {
        const HOSTS: u64 = 50;
        let host = |number: u64| MacAddr::from_u64(0x0200_0000_0000 + number % HOSTS);
        let table = T::default();
        thread::scope(|scope| {
            for switch in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..2000_u64 {
                        let port = PortNo(1000 + (number % HOSTS) as u32);
                        let place = Place { switch, port };
                        let heard = table.hear(host(number), place, host(number + 1));
                        let expected = 1000 + ((number + 1) % HOSTS) as u32;
                        assert!(
                            heard
                                .dst
                                .is_none_or(|dst| dst.port.0 == expected && dst.switch < 4)
                        );
                        assert!(heard.moved_from.is_none_or(|was| was.port == port));
                    }
                });
            }
        });
        assert!((0..HOSTS).all(|number| table.find(host(number)).is_some()));
    }

    #[test]
    fn threads_share_all_tables() {
        never_invents_places::<LockFree>();
        never_invents_places::<Locked>();
        never_invents_places::<Transactional>();
    }
}
