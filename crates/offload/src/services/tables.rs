//! The services' tables, which are the BPF maps of `bpf/service_tables.h`. Keys and values are written field by field, so that
//! no padding is left uninitialised.

use crate::kernel::Kernel;
use crate::link::clock_ns_at;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use urtica_controller::ProgramId;
use urtica_services::{Host, LinkProbe, ServiceOffload, SettledCounts};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// Maximum length of the frame of an expected probe.
const MAX_PROBE_BYTES: usize = 128;

const FAMILY_IPV4: u16 = 4;
const FAMILY_IPV6: u16 = 6;

/// The only key of a table with one element.
const ONLY: [u8; 4] = [0; 4];

/// The services' tables. See the module's documentation.
pub(super) struct Tables {
    settings: MapHandle,
    counts: MapHandle,
    host_ports: MapHandle,
    hosts: MapHandle,
    heard: MapHandle,
    addresses: MapHandle,
    expected: MapHandle,
    confirmed: MapHandle,
    next_hops: MapHandle,
    set: Mutex<Set>,
    /// Whether a full table has been logged.
    has_warned: AtomicBool,
}

/// The last written values of entries whose parts change separately.
#[derive(Default)]
struct Set {
    our_mac: u64,
    answers_as: u32,
    forwards_as: u32,
    host_ports: BTreeSet<PortId>,
    next_hops: BTreeMap<(DatapathId, DatapathId), PortNo>,
}

impl Set {
    /// Encodes `struct settings`.
    fn settings(&self) -> Vec<u8> {
        let programs = [self.answers_as, self.forwards_as].map(u32::to_ne_bytes);
        [&self.our_mac.to_ne_bytes(), programs.as_flattened()].concat()
    }
}

impl Tables {
    /// Opens the tables of the loaded programs.
    pub fn open(kernel: &Kernel) -> io::Result<Self> {
        Ok(Self {
            settings: kernel.table("settings")?,
            counts: kernel.table("counts")?,
            host_ports: kernel.table("host_ports")?,
            hosts: kernel.table("hosts")?,
            heard: kernel.table("heard")?,
            addresses: kernel.table("addresses")?,
            expected: kernel.table("expected")?,
            confirmed: kernel.table("confirmed")?,
            next_hops: kernel.table("next_hops")?,
            set: Mutex::default(),
            has_warned: AtomicBool::new(false),
        })
    }

    /// Replaces an entry. Returns whether it is in the table afterwards.
    fn put(&self, table: &MapHandle, key: &[u8], value: &[u8]) -> bool {
        let put = table.update(key, value, MapFlags::ANY);
        put.map_err(|error| self.warn_once(&error)).is_ok()
    }

    /// Creates an entry, unless it exists. Returns whether it exists afterwards.
    fn make(&self, table: &MapHandle, key: &[u8], value: &[u8]) -> bool {
        match table.update(key, value, MapFlags::NO_EXIST) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::AlreadyExists => {
                self.warn_once(&error);
                false
            }
            _ => true,
        }
    }

    fn warn_once(&self, error: &libbpf_rs::Error) {
        if !self.has_warned.swap(true, Relaxed) {
            tracing::warn!(%error, "cannot add to a kernel-half table; the program handles the rest");
        }
    }
}

/// Removes an entry, if it exists.
fn remove(table: &MapHandle, key: &[u8]) {
    let _ = table.delete(key);
}

fn find(table: &MapHandle, key: &[u8]) -> Option<Vec<u8>> {
    table.lookup(key, MapFlags::ANY).ok().flatten()
}

/// Returns the 8 bytes at this offset of a value, in the kernel's byte order.
fn word(value: &[u8], at: usize) -> u64 {
    let bytes = value.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Encodes `struct port_key`.
fn port_key(port: PortId) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&port.switch.0.to_ne_bytes());
    key[8..12].copy_from_slice(&port.port_no.0.to_ne_bytes());
    key
}

/// Encodes `struct host_key`.
fn host_key(vlan: Option<u16>, mac: MacAddr) -> [u8; 8] {
    let mut key = [0; 8];
    key[..6].copy_from_slice(&mac.octets());
    key[6..].copy_from_slice(&vlan.unwrap_or(0).to_ne_bytes());
    key
}

/// Encodes `struct address_key`.
fn address_key(vlan: Option<u16>, address: IpAddr) -> [u8; 24] {
    let mut key = [0; 24];
    let family = match address {
        IpAddr::V4(address) => {
            key[..4].copy_from_slice(&address.octets());
            FAMILY_IPV4
        }
        IpAddr::V6(address) => {
            key[..16].copy_from_slice(&address.octets());
            FAMILY_IPV6
        }
    };
    key[16..18].copy_from_slice(&vlan.unwrap_or(0).to_ne_bytes());
    key[18..20].copy_from_slice(&family.to_ne_bytes());
    key
}

/// Encodes `struct address_owner`.
fn address_owner(host: &Host) -> [u8; 8] {
    let mut value = [0; 8];
    value[..6].copy_from_slice(&host.mac.octets());
    value[6] = host.is_router.into();
    value
}

/// Encodes `struct link_probe` of a probe that has not arrived.
fn link_probe(probe: LinkProbe, frame_bytes: usize) -> [u8; 32] {
    let mut value = [0; 32];
    value[..8].copy_from_slice(&probe.from.switch.0.to_ne_bytes());
    value[8..12].copy_from_slice(&probe.from.port_no.0.to_ne_bytes());
    value[12..16].copy_from_slice(&(frame_bytes as u32).to_ne_bytes());
    value[16..24].copy_from_slice(&probe.stamp.to_ne_bytes());
    value
}

/// Encodes `struct pair`.
fn pair(at: DatapathId, to: DatapathId) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&at.0.to_ne_bytes());
    key[8..].copy_from_slice(&to.0.to_ne_bytes());
    key
}

/// Returns the time at which the kernel's monotonic clock showed this value.
fn instant_at(clock_ns: u64) -> Instant {
    let now = Instant::now();
    let ago = clock_ns_at(now).saturating_sub(clock_ns);
    now.checked_sub(Duration::from_nanos(ago)).unwrap_or(now)
}

impl ServiceOffload for Tables {
    fn expect_probe(&self, at: PortId, probe: LinkProbe, frame: &[u8]) {
        let key = port_key(at);
        let mut value = link_probe(probe, frame.len()).to_vec();
        // The kernel only updates an existing entry, for which there is always space.
        if frame.len() > MAX_PROBE_BYTES || !self.make(&self.confirmed, &key, &value) {
            return self.forget_probe(at);
        }
        value.extend_from_slice(frame);
        value.resize(value.len() + MAX_PROBE_BYTES - frame.len(), 0);
        if !self.put(&self.expected, &key, &value) {
            remove(&self.expected, &key);
        }
    }

    fn forget_probe(&self, at: PortId) {
        let key = port_key(at);
        remove(&self.expected, &key);
        remove(&self.confirmed, &key);
    }

    fn settled_probe(&self, at: PortId) -> Option<(LinkProbe, Instant)> {
        let value = find(&self.confirmed, &port_key(at))?;
        let port_no = value.get(8..).and_then(|rest| rest.first_chunk());
        let port_no = PortNo(u32::from_ne_bytes(*port_no?));
        let probe = LinkProbe {
            from: PortId::new(DatapathId(word(&value, 0)), port_no),
            stamp: word(&value, 16),
        };
        let settled_ns = word(&value, 24);
        (settled_ns != 0).then(|| (probe, instant_at(settled_ns)))
    }

    fn set_host_ports(&self, ports: &[PortId]) {
        let ports: BTreeSet<_> = ports.iter().copied().collect();
        let mut set = self.set.lock();
        for port in set.host_ports.difference(&ports) {
            remove(&self.host_ports, &port_key(*port));
        }
        for port in ports.difference(&set.host_ports) {
            self.put(&self.host_ports, &port_key(*port), &[1, 0, 0, 0]);
        }
        set.host_ports = ports;
    }

    fn set_our_mac(&self, mac: MacAddr) {
        let mut set = self.set.lock();
        set.our_mac = mac.to_u64();
        self.put(&self.settings, &ONLY, &set.settings());
    }

    fn set_host(&self, host: &Host) {
        let key = host_key(host.vlan, host.mac);
        // If a host cannot be counted, it is unknown to the kernel, so all its packets are news.
        let is_there = self.make(&self.heard, &key, &[0; 16])
            && self.put(&self.hosts, &key, &port_key(host.attached));
        if !is_there {
            remove(&self.hosts, &key);
        }
        for address in host.addresses() {
            let key = address_key(host.vlan, address);
            if !self.put(&self.addresses, &key, &address_owner(host)) {
                remove(&self.addresses, &key);
            }
        }
    }

    fn remove_host(&self, vlan: Option<u16>, mac: MacAddr) {
        let key = host_key(vlan, mac);
        remove(&self.hosts, &key);
        remove(&self.heard, &key);
    }

    fn remove_address(&self, vlan: Option<u16>, address: IpAddr) {
        remove(&self.addresses, &address_key(vlan, address));
    }

    fn settled_of(&self, vlan: Option<u16>, mac: MacAddr) -> Option<(u64, Instant)> {
        let value = find(&self.heard, &host_key(vlan, mac))?;
        let (count, last_ns) = (word(&value, 0), word(&value, 8));
        (count > 0).then(|| (count, instant_at(last_ns)))
    }

    fn answer_as(&self, program: ProgramId) {
        let mut set = self.set.lock();
        let number = program.number().into();
        if set.answers_as != number {
            set.answers_as = number;
            self.put(&self.settings, &ONLY, &set.settings());
        }
    }

    fn set_next_hops(&self, next_hops: &[(PortId, DatapathId)]) {
        let hops = next_hops
            .iter()
            .map(|&(at, to)| ((at.switch, to), at.port_no));
        let hops: BTreeMap<_, _> = hops.collect();
        let mut set = self.set.lock();
        for &(at, to) in set.next_hops.keys() {
            if !hops.contains_key(&(at, to)) {
                remove(&self.next_hops, &pair(at, to));
            }
        }
        for (&(at, to), port_no) in &hops {
            let key = pair(at, to);
            let is_there = set.next_hops.get(&(at, to)) == Some(port_no);
            if !is_there && !self.put(&self.next_hops, &key, &port_no.0.to_ne_bytes()) {
                remove(&self.next_hops, &key);
            }
        }
        set.next_hops = hops;
    }

    fn forward_as(&self, program: ProgramId) {
        let mut set = self.set.lock();
        let number = program.number().into();
        if set.forwards_as != number {
            set.forwards_as = number;
            self.put(&self.settings, &ONLY, &set.settings());
        }
    }

    fn counts(&self) -> SettledCounts {
        let value = find(&self.counts, &ONLY).unwrap_or_default();
        SettledCounts {
            probes: word(&value, 0),
            requests: word(&value, 8),
        }
    }
}
