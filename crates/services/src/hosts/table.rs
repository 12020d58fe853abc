//! The table of known hosts. It has no network and no clock; times are arguments.
//!
//! **How.** Two concurrent maps, from MAC and from IP addresses to hosts, are read without a lock. Changes take the writer's
//! lock, which guards all state that only changes need: the hosts of each port, the claims, and the timers.
//!
//! A sighting without news, as nearly all are, only updates the host's time.

mod addresses;
mod space;

use super::frame::Neighbour;
use super::host::{Host, HostId};
use super::{ConflictPolicy, EVENT_INTERVAL, HostEvent, HostsConfig, LeftReason};
use crate::offload::{KeptHost, Offload};
use crate::timers::Timers;
use papaya::HashMap;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr};

/// Number of times that a silent host is probed before it is removed.
const AGE_PROBES: u8 = 3;

/// A frame that arrived at a port that may have hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    pub port: PortId,
    pub mac: MacAddr,
    pub vlan: Option<u16>,
    /// The frame's information on addresses.
    pub neighbour: Option<Neighbour>,
    /// The source address of its IP packet, if that may be learnt.
    pub ip_src: Option<IpAddr>,
}

/// The consequences of an event.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub events: Vec<HostEvent>,
    pub probes: Vec<HostProbe>,
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.probes.is_empty()
    }
}

/// A probe of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostProbe {
    pub port: PortId,
    pub vlan: Option<u16>,
    pub mac: MacAddr,
    pub address: IpAddr,
}

/// Hosts under one key, by VLAN. Usually one.
type Shelf = Arc<[Arc<Host>]>;

pub(super) struct HostTable {
    config: HostsConfig,
    by_mac: HashMap<MacAddr, Shelf>,
    by_address: HashMap<IpAddr, Shelf>,
    writer: Mutex<Writer>,
    /// Sightings with news that were not examined.
    unread: AtomicU64,
    /// The offload that settles packets of known hosts, if any. Its content equals that of the maps.
    offload: Offload,
}

/// State that only changes need.
#[derive(Default)]
struct Writer {
    at_port: BTreeMap<PortId, BTreeSet<HostId>>,
    count: usize,
    timers: Timers<Timer>,
    /// Hosts that are seen at another port, by the port where they are attached.
    moves: BTreeMap<HostId, Claim<PortId>>,
    /// Addresses that are claimed by a host other than their owner.
    claims: BTreeMap<(Option<u16>, IpAddr), Claim<HostId>>,
    /// Number of times that silent hosts have been probed.
    asked: BTreeMap<HostId, u8>,
    /// The times of hosts' recent moves.
    moved: BTreeMap<HostId, VecDeque<Instant>>,
    /// Hosts that moved too often, and until when they are held.
    held: BTreeMap<HostId, Instant>,
    /// The times when rate-limited events were last published.
    told: BTreeMap<Subject, Instant>,
    refused: u64,
}

/// A claim to a location or address of another host.
#[derive(Clone, Copy)]
struct Claim<T> {
    by: T,
    /// The time at which the claim is decided.
    due: Instant,
    /// The number of times that the host had been heard when the claim was made.
    heard: u64,
}

/// A check that becomes due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Age(HostId),
    Move(HostId),
    Claim(Option<u16>, IpAddr),
}

/// The subject of a rate-limited event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Conflict(Option<u16>, IpAddr),
    Contested(HostId),
    Refused(PortId),
}

impl HostTable {
    pub fn new(config: HostsConfig) -> Self {
        Self {
            config,
            by_mac: HashMap::new(),
            by_address: HashMap::new(),
            writer: Mutex::default(),
            unread: AtomicU64::new(0),
            offload: Offload::new(),
        }
    }

    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    pub fn config(&self) -> &HostsConfig {
        &self.config
    }

    pub fn find(&self, mac: MacAddr) -> Option<Arc<Host>> {
        first(&self.by_mac, &mac)
    }

    pub fn find_in(&self, vlan: Option<u16>, mac: MacAddr) -> Option<Arc<Host>> {
        within(&self.by_mac, &mac, vlan)
    }

    pub fn find_address(&self, address: IpAddr) -> Option<Arc<Host>> {
        first(&self.by_address, &address)
    }

    pub fn find_address_in(&self, vlan: Option<u16>, address: IpAddr) -> Option<Arc<Host>> {
        within(&self.by_address, &address, vlan)
    }

    /// Returns all hosts, by MAC address and VLAN.
    pub fn all(&self) -> Vec<Arc<Host>> {
        let by_mac = self.by_mac.pin();
        let mut hosts: Vec<_> = by_mac
            .values()
            .flat_map(|shelf| shelf.iter().cloned())
            .collect();
        hosts.sort_unstable_by_key(|host| (host.mac, host.vlan));
        hosts
    }

    pub fn count(&self) -> usize {
        self.lock().count
    }

    pub fn refused(&self) -> u64 {
        self.lock().refused + self.unread.load(Ordering::Relaxed)
    }

    /// Returns `true` if a sighting has news, for [`HostTable::see`]. A sighting without news shows that its host is alive, and
    /// needs no lock.
    pub fn is_news(&self, sighting: &Sighting, now: Instant) -> bool {
        if sighting.mac.is_multicast() || sighting.mac == MacAddr::ZERO {
            return false;
        }
        match self.find_in(sighting.vlan, sighting.mac) {
            Some(host) if tells_nothing_new(&host, sighting) => {
                // The timer checks whether the host is heard before a claim on it is decided.
                host.touch(now);
                false
            }
            _ => true,
        }
    }

    /// Handles a sighting with news.
    pub fn see(&self, sighting: &Sighting, now: Instant) -> Effects {
        self.change(now, |change| change.see(sighting))
    }

    /// Restores a host that was known before: see [`Hosts::restore`](super::Hosts::restore).
    pub fn restore(&self, id: HostId, port: PortId, address: IpAddr, now: Instant) -> Effects {
        self.change(now, |change| change.restore(id, port, address))
    }

    /// Restores a host of an earlier program.
    pub fn restore_kept(&self, kept: &KeptHost, now: Instant) -> Effects {
        self.change(now, |change| change.restore_kept(kept))
    }

    /// Notes that a sighting was ignored because its port exceeded the limit.
    pub fn refuse_unread(&self) {
        self.unread.fetch_add(1, Ordering::Relaxed);
    }

    /// Does all due work.
    pub fn handle_timeout(&self, now: Instant) -> Effects {
        self.change(now, |change| change.handle_timeout())
    }

    /// Returns the time of the next timeout.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.lock().timers.next()
    }

    /// Removes the hosts of a port that went down or was removed.
    pub fn port_down(&self, port: PortId, now: Instant) -> Effects {
        self.change(now, |change| change.clear(port, LeftReason::PortDown))
    }

    /// Returns the ports of a switch that have hosts.
    pub fn ports_of(&self, switch: DatapathId) -> Vec<PortId> {
        let writer = self.lock();
        let ports = writer.at_port.keys();
        ports
            .filter(|port| port.switch == switch)
            .copied()
            .collect()
    }

    /// Removes the hosts of a switch that disconnected.
    pub fn switch_left(&self, switch: DatapathId, now: Instant) -> Effects {
        self.change(now, |change| {
            for port in change.ports() {
                if port.switch == switch {
                    change.clear(port, LeftReason::SwitchLeft);
                }
            }
        })
    }

    /// Corrects locations at ports that turned out to be link ports, after a change of the topology. A host returns to its
    /// previous location, if it had one.
    pub fn correct(&self, is_link_port: impl Fn(PortId) -> bool, now: Instant) -> Effects {
        self.change(now, |change| {
            for port in change.ports() {
                if is_link_port(port) {
                    change.correct(port, &is_link_port);
                }
            }
            change
                .writer
                .moves
                .retain(|_, claim| !is_link_port(claim.by));
        })
    }

    fn change(&self, now: Instant, work: impl FnOnce(&mut Change)) -> Effects {
        let mut change = Change {
            table: self,
            writer: self.lock(),
            now,
            effects: Effects::default(),
        };
        work(&mut change);
        change.effects
    }

    /// The guarded state is consistent between any two calls of [`HostTable::change`], and nothing panics in between.
    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }
}

fn tells_nothing_new(host: &Host, sighting: &Sighting) -> bool {
    let claim = sighting.neighbour.and_then(|neighbour| neighbour.claim());
    let is_router = sighting
        .neighbour
        .and_then(|neighbour| neighbour.is_router());
    host.attached == sighting.port
        && claim.is_none_or(|address| host.has(address))
        && sighting.ip_src.is_none_or(|address| host.has(address))
        && is_router.is_none_or(|is_router| host.is_router == is_router)
}

/// A change under the writer's lock.
struct Change<'t> {
    table: &'t HostTable,
    writer: MutexGuard<'t, Writer>,
    now: Instant,
    effects: Effects,
}

impl Change<'_> {
    fn see(&mut self, sighting: &Sighting) {
        let id = (sighting.vlan, sighting.mac);
        match self.find(id) {
            None => {
                if !self.join(id, sighting.port) {
                    return;
                }
            }
            Some(host) if host.attached != sighting.port => {
                if !self.claim_place(&host, sighting.port) {
                    return;
                }
            }
            Some(host) => host.touch(self.now),
        }
        self.learn_addresses(id, sighting);
    }

    /// Restores a host, unless newer information exists.
    fn restore(&mut self, id: HostId, port: PortId, address: IpAddr) {
        if self.owner(id.0, address).is_some() {
            return;
        }
        let is_there = match self.find(id) {
            Some(host) => host.attached == port,
            None => self.join(id, port),
        };
        if is_there {
            self.add_address(id, address);
        }
    }

    /// Restores a host with its addresses, unless newer information exists.
    fn restore_kept(&mut self, kept: &KeptHost) {
        let id = (kept.vlan, kept.mac);
        if self.find(id).is_some() || !self.join(id, kept.attached) {
            return;
        }
        for address in &kept.addresses {
            if self.owner(kept.vlan, *address).is_none() {
                self.add_address(id, *address);
            }
        }
        self.set_router(id, kept.is_router);
    }

    /// Handles a host that is seen at another port. Returns whether it has moved there.
    fn claim_place(&mut self, host: &Arc<Host>, port: PortId) -> bool {
        let id = host.id();
        if self
            .writer
            .held
            .get(&id)
            .is_some_and(|until| self.now < *until)
        {
            return false;
        }
        if !self.has_room(port) {
            self.refuse(port);
            return false;
        }
        if self.table.config.on_conflict == ConflictPolicy::NewestWins {
            self.move_to(host, port);
            return true;
        }
        if self.writer.moves.contains_key(&id) {
            return false;
        }
        let claim = self.claim(port, host);
        self.writer.moves.insert(id, claim);
        self.writer.timers.set(Timer::Move(id), claim.due);
        self.probe(host);
        false
    }

    fn claim<T>(&self, by: T, host: &Host) -> Claim<T> {
        self.note_settled(host);
        Claim {
            by,
            due: self.now + self.table.config.probe_timeout,
            heard: host.heard(),
        }
    }

    fn set_router(&mut self, id: HostId, is_router: bool) {
        if let Some(host) = self.find(id) {
            if host.is_router != is_router {
                let host = self.update(&host, |host| host.is_router = is_router);
                self.tell(HostEvent::Changed(host));
            }
        }
    }

    fn handle_timeout(&mut self) {
        while let Some(timer) = self.writer.timers.pop_due(self.now) {
            match timer {
                Timer::Age(id) => self.age(id),
                Timer::Move(id) => self.decide_move(id),
                Timer::Claim(vlan, address) => self.decide_claim(vlan, address),
            }
        }
        let now = self.now;
        self.writer
            .told
            .retain(|_, told| now < *told + EVENT_INTERVAL);
        self.writer.held.retain(|_, until| now < *until);
    }

    /// Probes a host that has been silent for too long, and removes it if it stays silent.
    fn age(&mut self, id: HostId) {
        let Some(host) = self.find(id) else {
            return;
        };
        self.note_settled(&host);
        let due = host.last_seen() + self.table.config.max_age;
        if due > self.now {
            self.writer.asked.remove(&id);
            return self.set_age(id, due);
        }
        let asked = self.writer.asked.entry(id).or_default();
        *asked += 1;
        let is_given_up = *asked > AGE_PROBES;
        if is_given_up || host.addresses().next().is_none() {
            return self.remove(&host, LeftReason::Silent);
        }
        self.set_age(id, self.now + self.table.config.probe_timeout);
        self.probe(&host);
    }

    /// Notes packets of a host that were settled by the offload.
    fn note_settled(&self, host: &Host) {
        let settled = self.table.offload.get();
        if let Some((count, last)) =
            settled.and_then(|offload| offload.settled_of(host.vlan, host.mac))
        {
            host.note_settled(count, last);
        }
    }

    fn set_age(&mut self, id: HostId, due: Instant) {
        self.writer.timers.set(Timer::Age(id), due);
    }

    /// Decides a move after the time in which the host could answer at its own port.
    fn decide_move(&mut self, id: HostId) {
        let (Some(claim), Some(host)) = (self.writer.moves.get(&id).copied(), self.find(id)) else {
            return;
        };
        if claim.due > self.now {
            return;
        }
        self.writer.moves.remove(&id);
        let port = claim.by;
        self.note_settled(&host);
        if host.heard() == claim.heard {
            return match self.has_room(port) {
                true => self.move_to(&host, port),
                false => self.refuse(port),
            };
        }
        if self.is_worth_telling(Subject::Contested(id)) {
            self.tell(HostEvent::Contested { host, port });
        }
    }

    fn move_to(&mut self, host: &Arc<Host>, port: PortId) {
        let (id, from, now) = (host.id(), host.attached, self.now);
        self.leave_port(id, from);
        self.writer.at_port.entry(port).or_default().insert(id);
        let host = self.update(host, |host| {
            host.attached = port;
            host.came_from = Some(from);
            host.touch(now);
        });
        self.tell(HostEvent::Moved {
            host: Arc::clone(&host),
            from,
        });
        self.hold_if_flapping(&host);
    }

    fn hold_if_flapping(&mut self, host: &Arc<Host>) {
        let (id, now) = (host.id(), self.now);
        let config = &self.table.config;
        let moved = self.writer.moved.entry(id).or_default();
        moved.retain(|at| now < *at + config.flap_window);
        moved.push_back(now);
        if moved.len() > config.max_moves {
            moved.clear();
            let until = now + config.hold;
            self.writer.held.insert(id, until);
            self.tell(HostEvent::Flapping {
                host: Arc::clone(host),
                until,
            });
        }
    }

    /// Removes all hosts of a port.
    fn clear(&mut self, port: PortId, reason: LeftReason) {
        for id in self.writer.at_port.get(&port).cloned().unwrap_or_default() {
            if let Some(host) = self.find(id) {
                self.remove(&host, reason);
            }
        }
    }

    /// A port turned out to be a link port: its hosts return to their previous locations, or are removed.
    fn correct(&mut self, port: PortId, is_link_port: &impl Fn(PortId) -> bool) {
        for id in self.writer.at_port.get(&port).cloned().unwrap_or_default() {
            let Some(host) = self.find(id) else {
                continue;
            };
            match host.came_from {
                Some(before) if !is_link_port(before) && self.has_room(before) => {
                    self.move_back(&host, before);
                }
                _ => self.remove(&host, LeftReason::NotAnEdge),
            }
        }
    }

    fn move_back(&mut self, host: &Arc<Host>, before: PortId) {
        let (id, from) = (host.id(), host.attached);
        self.leave_port(id, from);
        self.writer.at_port.entry(before).or_default().insert(id);
        let host = self.update(host, |host| {
            host.attached = before;
            host.came_from = None;
        });
        self.tell(HostEvent::Moved { host, from });
    }

    fn remove(&mut self, host: &Arc<Host>, reason: LeftReason) {
        let id = host.id();
        for address in host.addresses() {
            self.take_address(id, address);
        }
        take_off(&self.table.by_mac, &host.mac, id);
        if let Some(offload) = self.table.offload.get() {
            offload.remove_host(host.vlan, host.mac);
        }
        self.leave_port(id, host.attached);
        self.writer.count -= 1;
        self.writer.timers.cancel(Timer::Age(id));
        self.writer.timers.cancel(Timer::Move(id));
        self.writer.moves.remove(&id);
        self.writer.asked.remove(&id);
        self.writer.moved.remove(&id);
        self.writer.held.remove(&id);
        self.tell(HostEvent::Left {
            host: Arc::clone(host),
            reason,
        });
    }

    fn leave_port(&mut self, id: HostId, port: PortId) {
        if let Some(hosts) = self.writer.at_port.get_mut(&port) {
            hosts.remove(&id);
            if hosts.is_empty() {
                self.writer.at_port.remove(&port);
            }
        }
    }

    fn ports(&self) -> Vec<PortId> {
        self.writer.at_port.keys().copied().collect()
    }

    fn find(&self, (vlan, mac): HostId) -> Option<Arc<Host>> {
        self.table.find_in(vlan, mac)
    }

    fn owner(&self, vlan: Option<u16>, address: IpAddr) -> Option<Arc<Host>> {
        self.table.find_address_in(vlan, address)
    }

    /// Replaces a host by its changed version.
    fn update(&self, host: &Host, change: impl FnOnce(&mut Host)) -> Arc<Host> {
        let mut host = host.clone();
        change(&mut host);
        let host = Arc::new(host);
        self.put(Arc::clone(&host));
        host
    }

    fn put(&self, host: Arc<Host>) {
        put_on(&self.table.by_mac, host.mac, &host);
        for address in host.addresses() {
            put_on(&self.table.by_address, address, &host);
        }
        if let Some(offload) = self.table.offload.get() {
            offload.set_host(&host);
        }
    }

    fn take_address(&self, id: HostId, address: IpAddr) {
        take_off(&self.table.by_address, &address, id);
        if let Some(offload) = self.table.offload.get() {
            offload.remove_address(id.0, address);
        }
    }

    fn probe(&mut self, host: &Host) {
        if let Some(address) = host.addresses().next() {
            self.probe_for(host, address);
        }
    }

    fn probe_for(&mut self, host: &Host, address: IpAddr) {
        self.effects.probes.push(HostProbe {
            port: host.attached,
            vlan: host.vlan,
            mac: host.mac,
            address,
        });
    }

    fn tell(&mut self, event: HostEvent) {
        self.effects.events.push(event);
    }

    fn is_worth_telling(&mut self, subject: Subject) -> bool {
        let now = self.now;
        let told = self.writer.told.get(&subject);
        if told.is_some_and(|told| now < *told + EVENT_INTERVAL) {
            return false;
        }
        self.writer.told.insert(subject, now);
        true
    }
}

/// Returns the first host of a shelf: the untagged one, or the one in the lowest VLAN.
fn first<K: Hash + Eq>(map: &HashMap<K, Shelf>, key: &K) -> Option<Arc<Host>> {
    map.pin().get(key)?.first().cloned()
}

fn within<K: Hash + Eq>(map: &HashMap<K, Shelf>, key: &K, vlan: Option<u16>) -> Option<Arc<Host>> {
    let map = map.pin();
    map.get(key)?.iter().find(|host| host.vlan == vlan).cloned()
}

/// Adds a host to a shelf, replacing the one of its VLAN. For writers.
fn put_on<K: Hash + Eq>(map: &HashMap<K, Shelf>, key: K, host: &Arc<Host>) {
    let map = map.pin();
    let shelf = map.get(&key).map_or(&[][..], |shelf| shelf);
    let others = shelf.iter().filter(|other| other.vlan != host.vlan);
    let mut hosts: Vec<_> = others.chain([host]).cloned().collect();
    hosts.sort_unstable_by_key(|host| host.vlan);
    map.insert(key, hosts.into());
}

/// Removes a host from a shelf. For writers.
fn take_off<K: Hash + Eq + Copy>(map: &HashMap<K, Shelf>, key: &K, id: HostId) {
    let map = map.pin();
    let Some(shelf) = map.get(key) else {
        return;
    };
    let hosts: Vec<_> = shelf
        .iter()
        .filter(|host| host.id() != id)
        .cloned()
        .collect();
    if hosts.is_empty() {
        map.remove(key);
    } else {
        map.insert(*key, hosts.into());
    }
}

#[cfg(test)]
mod tests;
