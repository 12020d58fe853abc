//! A known host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use urtica_topology::PortId;
use urtica_wire::MacAddr;

/// A snapshot of a host. Only [`Host::last_seen`] changes; look the host up again to see later changes.
#[derive(Debug)]
pub struct Host {
    /// Its MAC address.
    pub mac: MacAddr,
    /// The VLAN of its frames, if they are tagged. One MAC address in two VLANs is two hosts.
    pub vlan: Option<u16>,
    /// The port where it is attached.
    pub attached: PortId,
    /// Its IPv4 addresses, in the order in which they were learnt.
    pub ipv4s: Vec<Ipv4Addr>,
    /// Its IPv6 addresses, in the order in which they were learnt.
    pub ipv6s: Vec<Ipv6Addr>,
    /// Whether it has announced itself as an IPv6 router.
    pub is_router: bool,
    /// Its previous location.
    pub(super) came_from: Option<PortId>,
    /// Number of times that it was heard at its location. This shows whether it answered a probe; the time does not, because it
    /// does not advance within a batch.
    heard: AtomicU64,
    /// Number of its packets that were settled elsewhere, as of the last query of the offload.
    settled: AtomicU64,
    /// Nanoseconds since `base`.
    last_seen: AtomicU64,
    base: Instant,
}

/// The identity of a host.
pub(super) type HostId = (Option<u16>, MacAddr);

impl Host {
    pub(super) fn new((vlan, mac): HostId, attached: PortId, now: Instant) -> Self {
        Self {
            mac,
            vlan,
            attached,
            ipv4s: Vec::new(),
            ipv6s: Vec::new(),
            is_router: false,
            came_from: None,
            heard: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            last_seen: AtomicU64::new(0),
            base: now,
        }
    }

    /// Returns when the host was last heard at its current port. Packets that are [settled elsewhere](crate::Hosts::offload)
    /// are included only if the host would be removed otherwise.
    pub fn last_seen(&self) -> Instant {
        self.base + Duration::from_nanos(self.last_seen.load(Ordering::Relaxed))
    }

    /// Returns all its addresses, IPv4 first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let ipv4s = self.ipv4s.iter().copied().map(IpAddr::V4);
        ipv4s.chain(self.ipv6s.iter().copied().map(IpAddr::V6))
    }

    /// Returns `true` if the host has this address.
    pub fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.ipv4s.contains(&address),
            IpAddr::V6(address) => self.ipv6s.contains(&address),
        }
    }

    pub(super) fn id(&self) -> HostId {
        (self.vlan, self.mac)
    }

    /// Notes that the host was heard. The time never decreases, although threads may read their clocks in another order.
    pub(super) fn touch(&self, now: Instant) {
        self.note_seen(now);
        let heard = self.heard.load(Ordering::Relaxed);
        self.heard.store(heard + 1, Ordering::Relaxed);
    }

    /// Notes that `count` of its packets were settled elsewhere since it became known, the last at this time.
    pub(super) fn note_settled(&self, count: u64, last: Instant) {
        self.note_seen(last);
        self.settled.store(count, Ordering::Relaxed);
    }

    /// Notes that the host was heard by a frame that is not an answer to a probe.
    pub(super) fn note_seen(&self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.base).as_nanos() as u64;
        if elapsed > self.last_seen.load(Ordering::Relaxed) {
            self.last_seen.store(elapsed, Ordering::Relaxed);
        }
    }

    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed) + self.settled.load(Ordering::Relaxed)
    }

    pub(super) fn add(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.ipv4s.push(address),
            IpAddr::V6(address) => self.ipv6s.push(address),
        }
    }

    pub(super) fn remove(&mut self, address: IpAddr) {
        self.ipv4s.retain(|other| IpAddr::V4(*other) != address);
        self.ipv6s.retain(|other| IpAddr::V6(*other) != address);
    }

    /// Returns the first address of this family if the host already has `max` of them.
    pub(super) fn surplus(&self, address: IpAddr, max: usize) -> Option<IpAddr> {
        match address {
            IpAddr::V4(_) if self.ipv4s.len() >= max => self.ipv4s.first().copied().map(IpAddr::V4),
            IpAddr::V6(_) if self.ipv6s.len() >= max => self.ipv6s.first().copied().map(IpAddr::V6),
            _ => None,
        }
    }
}

impl Clone for Host {
    fn clone(&self) -> Self {
        Self {
            mac: self.mac,
            vlan: self.vlan,
            attached: self.attached,
            ipv4s: self.ipv4s.clone(),
            ipv6s: self.ipv6s.clone(),
            is_router: self.is_router,
            came_from: self.came_from,
            heard: AtomicU64::new(self.heard.load(Ordering::Relaxed)),
            settled: AtomicU64::new(self.settled.load(Ordering::Relaxed)),
            last_seen: AtomicU64::new(self.last_seen.load(Ordering::Relaxed)),
            base: self.base,
        }
    }
}
