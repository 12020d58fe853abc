//! The bandwidth of links, and its reservations.

use super::BandwidthError;
use super::demand::FlowKey;
use super::quotas::{Charges, Quotas};
use super::reserve::{release_path, reserve_any};
use crate::paths::{Paths, is_in};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use urtica_services::{Flow, Provisioner};
use urtica_state::{Limits, Snapshot, TVar, atomically, try_atomically};
use urtica_topology::{Hop, Path, PortId, Topology};
use urtica_wire::MacAddr;

/// The link at a port.
#[derive(Clone, Debug)]
struct Link {
    /// Distinguishes a link from an earlier one at the same port.
    id: u64,
    capacity_bps: u64,
    free_bps: TVar<u64>,
}

/// The links at all ports that are up. A link that was down, or changes its bandwidth, is a new link.
#[derive(Clone, Debug, Default)]
struct Links {
    by_port: BTreeMap<PortId, Link>,
    next_id: u64,
}

/// One reservation.
struct Reservation {
    bps: u64,
    /// The link of each hop.
    links: Vec<Link>,
    /// The port that is charged for the reservation, unless a program made it.
    charged: Option<PortId>,
}

/// The error of a link on which reserved and free bandwidth do not add up to its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the link of port {port} has {capacity_bps} b/s; {reserved_bps} b/s are reserved, and {free_bps} free"
)]
#[non_exhaustive]
pub struct Unbalanced {
    /// The port that sends into the link.
    pub port: PortId,
    /// The link's capacity in bits per second.
    pub capacity_bps: u64,
    /// The reserved bandwidth in bits per second.
    pub reserved_bps: u64,
    /// The free bandwidth in bits per second.
    pub free_bps: u64,
}

/// The state of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Bits per second.
    pub bps: u64,
    /// The path of the packets.
    pub path: Path,
    /// Whether all switches have confirmed their entries.
    pub is_provisioned: bool,
}

/// Links and reservations.
///
/// Thread-safety: links are read without a lock, and bandwidth is reserved and released in transactions. The lock guards the
/// list of reservations; it is taken before the locks of the provisioner and of the network.
pub(super) struct Book {
    links: Snapshot<Links>,
    list: Mutex<List>,
}

struct List {
    reservations: BTreeMap<FlowKey, Reservation>,
    /// One path per key.
    paths: Paths<FlowKey>,
    charges: Charges,
}

impl Book {
    /// Creates a book without links and reservations.
    pub fn new(provisioner: &Provisioner) -> Self {
        let list = List {
            reservations: BTreeMap::new(),
            paths: Paths::new(provisioner),
            charges: Charges::default(),
        };
        Self {
            links: Snapshot::new(Links::default()),
            list: Mutex::new(list),
        }
    }

    /// Checks that the quotas permit another flow with this bandwidth. A port is charged for it unless a program reserves.
    pub fn permits(
        &self,
        charged: Option<PortId>,
        bps: u64,
        quotas: &Quotas,
    ) -> Result<(), BandwidthError> {
        self.list()
            .permits(charged, bps, &self.links.load(), quotas)
    }

    /// Reserves on the first path with enough free bandwidth, starts to provision it, and returns it.
    pub fn reserve(
        &self,
        key: FlowKey,
        bps: u64,
        paths: Vec<Path>,
        quotas: &Quotas,
        topology: &Snapshot<Topology>,
        flow: impl FnOnce(&Path) -> Flow,
    ) -> Result<Path, BandwidthError> {
        let links = self.links.load();
        let mut candidates: Vec<_> = paths
            .into_iter()
            .filter_map(|path| Some((links.of_path(&path)?, path)))
            .collect();
        let free: Vec<_> = candidates
            .iter()
            .map(|(links, _)| variables(links))
            .collect();
        let chosen = try_atomically(Limits::DEFAULT, |tx| reserve_any(tx, &free, bps))
            .map_err(|_| BandwidthError::Busy)?;
        let paths = candidates.len();
        let chosen = chosen.ok_or(BandwidthError::NoRoom { bps, paths })?;
        let (links, path) = candidates.swap_remove(chosen);
        let mut list = self.list();
        // The state read without the lock may have changed.
        let refusal = if list.reservations.contains_key(&key) {
            Some(BandwidthError::ReservedAlready)
        } else if !self.links.load().are_there(&path, &links) || !is_in(&path, &topology.load()) {
            Some(BandwidthError::Busy)
        } else {
            let permitted =
                list.permits(key.charged(path.begin()), bps, &self.links.load(), quotas);
            permitted.err()
        };
        if let Some(refusal) = refusal {
            give_back(&links, bps);
            return Err(refusal);
        }
        let flow = flow(&path);
        list.insert(key, path.clone(), flow, bps, links);
        Ok(path)
    }

    /// Provisions a path without a reservation, unless the flow already has a path. Returns `false`, and does nothing, if the
    /// quotas do not permit another flow.
    pub fn note(
        &self,
        key: FlowKey,
        path: Path,
        quotas: &Quotas,
        flow: impl FnOnce(&Path) -> Flow,
    ) -> bool {
        let mut list = self.list();
        if list.reservations.contains_key(&key) {
            return true;
        }
        let permitted = list.permits(key.charged(path.begin()), 0, &self.links.load(), quotas);
        if permitted.is_ok() {
            let flow = flow(&path);
            list.insert(key, path, flow, 0, Vec::new());
        }
        permitted.is_ok()
    }

    /// Returns the key of a reservation for all traffic between two hosts, whose VLAN may no longer be known.
    pub fn key_of_pair(&self, from: MacAddr, to: MacAddr) -> Option<FlowKey> {
        let list = self.list();
        let mut keys = list.reservations.keys();
        keys.find(|key| key.is_between(from, to)).copied()
    }

    /// Releases paths that are no longer valid. Returns the number of reservations released.
    pub fn give_up(&self, is_wrong: impl Fn(&FlowKey, &Path) -> bool) -> usize {
        let mut list = self.list();
        let wrong: Vec<_> = list
            .paths
            .iter()
            .filter(|(key, path)| is_wrong(key, path))
            .map(|(key, _)| *key)
            .collect();
        for key in &wrong {
            list.paths.remove(key);
            list.give_back(key);
        }
        wrong.len()
    }

    /// Releases a reservation. Returns `true` if it existed.
    pub fn release(&self, key: &FlowKey) -> bool {
        let mut list = self.list();
        list.paths.remove(key);
        list.give_back(key)
    }

    pub fn find(&self, key: &FlowKey) -> Option<Reserved> {
        let list = self.list();
        let found = list.reservations.get(key)?;
        Some(Reserved {
            bps: found.bps,
            path: list.paths.get(key)?.clone(),
            is_provisioned: list.paths.is_there(key),
        })
    }

    pub fn count(&self) -> usize {
        self.list().reservations.len()
    }

    /// Returns the free bandwidth of the link at a port.
    pub fn free_bps(&self, port: PortId) -> Option<u64> {
        let links = self.links.load();
        links.by_port.get(&port).map(|link| link.free_bps.load())
    }

    /// Updates the bandwidth of ports, and releases reservations on links that are gone. Returns the number of reservations
    /// released.
    ///
    /// `look` is called under the lock, so that an older result never replaces a newer one.
    pub fn update(&self, look: impl FnOnce() -> (BTreeMap<PortId, u64>, Arc<Topology>)) -> usize {
        let mut list = self.list();
        let (capacities, topology) = look();
        let links = self.links.load();
        if !links.carry(&capacities) {
            self.links.publish(links.updated(&capacities));
        }
        let links = self.links.load();
        let is_broken = |key: &FlowKey, path: &Path| {
            let has = list.reservations.get(key);
            !is_in(path, &topology) || has.is_some_and(|has| !links.are_there(path, &has.links))
        };
        let broken: Vec<_> = list
            .paths
            .iter()
            .filter(|(key, path)| is_broken(key, path))
            .map(|(key, _)| *key)
            .collect();
        for key in &broken {
            list.paths.remove(key);
            list.give_back(key);
        }
        broken.len()
    }

    /// Checks the state of the entries, and releases reservations without entries.
    pub fn settle(&self) {
        let mut list = self.list();
        for key in list.paths.settle() {
            urtica_log::debug!(
                about: "paths",
                ?key,
                "released a reservation: its entries expired, or its path was not set up"
            );
            list.give_back(&key);
        }
    }

    /// Checks that reserved and free bandwidth add up to the capacity of each link.
    ///
    /// Exact only while no reservation is in progress.
    pub fn check(&self) -> Result<(), Unbalanced> {
        let list = self.list();
        let mut reserved: BTreeMap<u64, u64> = BTreeMap::new();
        for reservation in list.reservations.values() {
            for link in &reservation.links {
                *reserved.entry(link.id).or_default() += reservation.bps;
            }
        }
        for (port, link) in &self.links.load().by_port {
            let (carries, free) = (link.capacity_bps, link.free_bps.load());
            let reserved = reserved.get(&link.id).copied().unwrap_or(0);
            if reserved > carries || reserved + free != carries {
                return Err(Unbalanced {
                    port: *port,
                    capacity_bps: carries,
                    reserved_bps: reserved,
                    free_bps: free,
                });
            }
        }
        Ok(())
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock()
    }
}

impl List {
    fn permits(
        &self,
        charged: Option<PortId>,
        bps: u64,
        links: &Links,
        quotas: &Quotas,
    ) -> Result<(), BandwidthError> {
        let max = quotas.total;
        if self.reservations.len() >= max {
            return Err(BandwidthError::TooMany { max });
        }
        let Some(port) = charged else {
            return Ok(());
        };
        // The bandwidth of a port that was not seen yet is unknown.
        let capacity_bps = links
            .by_port
            .get(&port)
            .map_or(u64::MAX, |link| link.capacity_bps);
        match self.charges.refusal(port, bps, capacity_bps, quotas) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    fn insert(&mut self, key: FlowKey, path: Path, flow: Flow, bps: u64, links: Vec<Link>) {
        let charged = key.charged(path.begin());
        if let Some(port) = charged {
            self.charges.add(port, bps);
        }
        self.paths.insert(key, path, flow);
        let reservation = Reservation {
            bps,
            links,
            charged,
        };
        self.reservations.insert(key, reservation);
    }

    fn give_back(&mut self, key: &FlowKey) -> bool {
        let Some(reservation) = self.reservations.remove(key) else {
            return false;
        };
        give_back(&reservation.links, reservation.bps);
        if let Some(port) = reservation.charged {
            self.charges.remove(port, reservation.bps);
        }
        true
    }
}

impl Links {
    /// Returns the link of each hop of a path; `None` if one is missing.
    fn of_path(&self, path: &Path) -> Option<Vec<Link>> {
        let ports = path.hops.iter().map(Hop::goes_out);
        ports.map(|port| self.by_port.get(&port).cloned()).collect()
    }

    /// Returns `true` if these are still the links of a path's hops.
    fn are_there(&self, path: &Path, links: &[Link]) -> bool {
        let mut ports = path.hops.iter().map(Hop::goes_out);
        let now = |port| self.by_port.get(&port).map(|link| link.id);
        links
            .iter()
            .all(|link| ports.next().and_then(now) == Some(link.id))
    }

    /// Returns `true` if the links have these ports and bandwidths.
    fn carry(&self, capacities: &BTreeMap<PortId, u64>) -> bool {
        let ours = self
            .by_port
            .iter()
            .map(|(port, link)| (port, &link.capacity_bps));
        ours.eq(capacities)
    }

    fn updated(&self, capacities: &BTreeMap<PortId, u64>) -> Self {
        let mut next_id = self.next_id;
        let mut by_port = BTreeMap::new();
        for (port, &capacity_bps) in capacities {
            let before = self.by_port.get(port);
            let kept = before.filter(|link| link.capacity_bps == capacity_bps);
            let link = kept.cloned().unwrap_or_else(|| {
                next_id += 1;
                Link {
                    id: next_id,
                    capacity_bps,
                    free_bps: TVar::new(capacity_bps),
                }
            });
            by_port.insert(*port, link);
        }
        Self { by_port, next_id }
    }
}

fn variables(links: &[Link]) -> Vec<TVar<u64>> {
    links.iter().map(|link| link.free_bps.clone()).collect()
}

fn give_back(links: &[Link], bps: u64) {
    let free = variables(links);
    atomically(|tx| release_path(tx, &free, bps));
}
