//! Next hops without a known MAC address, and the packets that wait for them.
//!
//! **Bounds.** A port whose hosts send to many absent addresses has a share of the table ([`MAX_UNRESOLVED_PER_PORT`]), and if
//! the table is full, the port with the largest share loses an address. So the next hops of other ports can still be
//! resolved, and broadcasts are bounded.
//!
//! **Cost.** A scan of the table for each new next hop.

use super::config::Interface;
use super::{
    ARP_ATTEMPTS, ARP_TIMEOUT, FAILURE_TIME, Handed, MAX_UNRESOLVED, MAX_UNRESOLVED_PER_PORT,
    MAX_WAITING,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Instant;
use urtica_topology::PortId;
use urtica_wire::MacAddr;
use urtica_wire::packet::Ipv4View;

/// A packet whose next hop is being resolved.
pub(super) struct Waiting {
    gateway: Interface,
    src: MacAddr,
    at: PortId,
    bytes: Vec<u8>,
}

impl Waiting {
    fn of(handed: &Handed) -> Self {
        Self {
            gateway: handed.gateway.clone(),
            src: handed.src,
            at: handed.at,
            bytes: handed.bytes.to_vec(),
        }
    }

    fn as_handed(&self) -> Handed<'_> {
        Handed {
            gateway: &self.gateway,
            src: self.src,
            at: self.at,
            bytes: &self.bytes,
        }
    }
}

/// Calls a function with each packet.
pub(super) fn each(waiting: Vec<Waiting>, call: impl Fn(&Handed, &Ipv4View)) {
    for waiting in &waiting {
        if let Ok(packet) = Ipv4View::new(&waiting.bytes) {
            call(&waiting.as_handed(), &packet);
        }
    }
}

/// A next hop that is being resolved, or did not answer.
struct Entry {
    /// The port of the first packet.
    at: PortId,
    attempts: u32,
    /// The time of the next request, or of removal if the next hop did not answer.
    due: Instant,
    packets: Vec<Waiting>,
}

impl Entry {
    fn has_failed(&self) -> bool {
        self.attempts > ARP_ATTEMPTS
    }
}

/// The state of a packet's next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The next hop must be requested.
    New,
    /// The next hop was requested, or the port has used its share: the packet waits or is dropped.
    Known,
    /// The next hop did not answer recently.
    Failed,
}

/// The next step for a next hop.
pub(super) enum Due {
    Nothing,
    /// Request the next hop again.
    Request,
    /// Answer these packets with errors: the next hop does not answer.
    Failure(Vec<Waiting>),
}

/// The table of unresolved next hops.
#[derive(Default)]
pub(super) struct Unresolved(BTreeMap<Ipv4Addr, Entry>);

impl Unresolved {
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        self.0.keys().copied().collect()
    }

    pub fn is_waited_for(&self, address: Ipv4Addr) -> bool {
        self.0.contains_key(&address)
    }

    /// Removes a next hop that was resolved, and returns its packets.
    pub fn remove(&mut self, address: Ipv4Addr) -> Vec<Waiting> {
        let entry = self.0.remove(&address);
        entry.map_or_else(Vec::new, |entry| entry.packets)
    }

    /// Keeps a packet, if there is space.
    pub fn wait(&mut self, address: Ipv4Addr, handed: &Handed, now: Instant) -> Lookup {
        if let Some(entry) = self.0.get_mut(&address) {
            if entry.has_failed() {
                return Lookup::Failed;
            }
            if entry.packets.len() < MAX_WAITING {
                entry.packets.push(Waiting::of(handed));
            }
            return Lookup::Known;
        }
        if !self.make_space(handed.at) {
            return Lookup::Known;
        }
        let entry = Entry {
            at: handed.at,
            attempts: 1,
            due: now + ARP_TIMEOUT,
            packets: vec![Waiting::of(handed)],
        };
        self.0.insert(address, entry);
        Lookup::New
    }

    /// Makes space for another next hop of a port, and returns `true` if it may be resolved. A full table loses a next hop that
    /// did not answer, or one of the port with the largest share.
    fn make_space(&mut self, at: PortId) -> bool {
        let mut shares = BTreeMap::<PortId, usize>::new();
        for entry in self.0.values().filter(|entry| !entry.has_failed()) {
            *shares.entry(entry.at).or_default() += 1;
        }
        let own = shares.get(&at).copied().unwrap_or(0);
        if own >= MAX_UNRESOLVED_PER_PORT {
            return false;
        }
        if self.0.len() < MAX_UNRESOLVED {
            return true;
        }
        let failed = self.0.iter().find(|(_, entry)| entry.has_failed());
        let busiest = shares.into_iter().max_by_key(|(_, share)| *share);
        let busiest = busiest.filter(|(_, share)| *share > own + 1);
        let of_busiest = busiest.and_then(|(port, _)| {
            let mut entries = self.0.iter();
            entries.rfind(|(_, entry)| entry.at == port && !entry.has_failed())
        });
        let lost = failed.or(of_busiest).map(|(address, _)| *address);
        lost.is_some_and(|lost| self.0.remove(&lost).is_some())
    }

    /// Returns the next step for a next hop that is still unknown.
    pub fn take_due(&mut self, address: Ipv4Addr, now: Instant) -> Due {
        let entry = self.0.get_mut(&address);
        let Some(entry) = entry.filter(|entry| entry.due <= now) else {
            return Due::Nothing;
        };
        if entry.has_failed() {
            self.0.remove(&address);
            return Due::Nothing;
        }
        entry.attempts += 1;
        if entry.has_failed() {
            entry.due = now + FAILURE_TIME;
            return Due::Failure(std::mem::take(&mut entry.packets));
        }
        entry.due = now + ARP_TIMEOUT;
        Due::Request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l3::L3Config;
    use urtica_wire::{DatapathId, PortNo};

    #[test]
    fn a_full_table_evicts_from_the_largest_share() {
        let config: L3Config =
            "[[interface]]\naddress = \"10.0.1.1/8\"\nmac = \"02:00:00:00:01:01\""
                .parse()
                .unwrap();
        let (mut table, now) = (Unresolved::default(), Instant::now());
        let mut wait = |port, address: u32| {
            let handed = Handed {
                gateway: &config.interfaces()[0],
                src: MacAddr::ZERO,
                at: PortId::new(DatapathId(1), PortNo(port)),
                bytes: &[],
            };
            table.wait(Ipv4Addr::from_bits(address), &handed, now)
        };
        let mut requested = BTreeMap::<u32, usize>::new();
        for address in 0..4_000 {
            let port = address % 20;
            if wait(port, address) == Lookup::New {
                *requested.entry(port).or_default() += 1;
            }
        }
        assert!(
            requested.values().all(|count| *count <= 64),
            "{requested:?}"
        );
        assert_eq!(wait(99, 9_999), Lookup::New, "a port without a share");
        assert_eq!(wait(99, 9_999), Lookup::Known);
        assert_eq!(table.0.len(), MAX_UNRESOLVED);
    }
}
