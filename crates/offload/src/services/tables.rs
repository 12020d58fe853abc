//! The services' tables, which are the BPF maps of `bpf/service_tables.h`. Keys and values are written field by field, so that
//! no padding is left uninitialised.

use crate::kernel::Kernel;
use crate::link::clock_ns_at;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use urtica_controller::ProgramId;
use urtica_services::{Host, KeptHost, LinkProbe, ServiceOffload, SettledCounts};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// Maximum length of the frame of an expected probe.
const MAX_PROBE_BYTES: usize = 128;

/// The time in which the connections of an earlier program continue.
const PATIENCE: Duration = Duration::from_secs(10);

const FAMILY_IPV4: u16 = 4;
const FAMILY_IPV6: u16 = 6;

/// The only key of a table with one element.
const ONLY: [u8; 4] = [0; 4];

/// The services' tables. See the module's documentation.
pub(super) struct Tables {
    /// The tables are not changed once connections are left to the next program.
    kernel: Kernel,
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
    kept: Mutex<Kept>,
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

/// The hosts in an earlier program's tables, by switch.
#[derive(Default)]
struct Kept {
    /// When they were read, while there may be any.
    since: Option<Instant>,
    /// Of switches whose connections have not continued.
    waiting: HashMap<DatapathId, Vec<KeptHost>>,
    /// Of switches whose connections continue in this program.
    resumed: HashMap<DatapathId, Vec<KeptHost>>,
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
            kernel: kernel.clone(),
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
            kept: Mutex::default(),
            has_warned: AtomicBool::new(false),
        })
    }

    /// Reads the hosts of an earlier program, for those switches whose connections continue, and empties the tables of ports and
    /// links. Without ports the kernel passes all packets to the services, until they know the ports.
    pub fn keep_hosts(&self) {
        self.put(&self.settings, &ONLY, &Set::default().settings());
        self.put(&self.counts, &ONLY, &[0; 16]);
        let tables = [
            &self.host_ports,
            &self.next_hops,
            &self.expected,
            &self.confirmed,
        ];
        for table in tables {
            let keys: Vec<_> = table.keys().collect();
            for key in keys {
                self.remove(table, &key);
            }
        }
        let mut kept = self.kept.lock();
        kept.since = Some(Instant::now());
        for host in self.known_hosts() {
            let of_switch = kept.waiting.entry(host.attached.switch).or_default();
            of_switch.push(host);
        }
    }

    /// Removes the hosts of switches whose connections have not continued in time.
    fn remove_waiting(&self) {
        let waiting = {
            let mut kept = self.kept.lock();
            match kept.since.is_some_and(|since| since.elapsed() > PATIENCE) {
                true => std::mem::take(&mut *kept).waiting,
                false => return,
            }
        };
        for host in waiting.into_values().flatten() {
            let at = find(&self.hosts, &host_key(host.vlan, host.mac));
            if at.and_then(|value| read_port(&value)) != Some(host.attached) {
                continue;
            }
            self.remove_host(host.vlan, host.mac);
            for address in host.addresses {
                let key = address_key(host.vlan, address);
                let owner = find(&self.addresses, &key).and_then(|value| read_owner(&value));
                if owner.is_some_and(|(mac, _)| mac == host.mac) {
                    self.remove(&self.addresses, &key);
                }
            }
        }
    }

    /// Lets the services take the hosts of this switch, whose connection continues.
    pub fn resume(&self, switch: DatapathId) {
        let mut kept = self.kept.lock();
        if let Some(hosts) = kept.waiting.remove(&switch) {
            kept.resumed.insert(switch, hosts);
        }
    }

    /// Returns all hosts in the tables.
    fn known_hosts(&self) -> Vec<KeptHost> {
        let mut hosts = HashMap::new();
        for key in self.hosts.keys() {
            let at = find(&self.hosts, &key).and_then(|value| read_port(&value));
            if let (Some((vlan, mac)), Some(attached)) = (read_host_key(&key), at) {
                let host = KeptHost {
                    vlan,
                    mac,
                    attached,
                    addresses: Vec::new(),
                    is_router: false,
                };
                hosts.insert((vlan, mac), host);
            }
        }
        for key in self.addresses.keys() {
            let owner = find(&self.addresses, &key);
            let owner = owner.and_then(|value| read_owner(&value));
            let (Some((vlan, address)), Some((mac, is_router))) = (read_address_key(&key), owner)
            else {
                continue;
            };
            if let Some(host) = hosts.get_mut(&(vlan, mac)) {
                host.addresses.push(address);
                host.is_router = is_router;
            }
        }
        hosts.into_values().collect()
    }

    /// Replaces an entry. Returns whether it is in the table afterwards.
    fn put(&self, table: &MapHandle, key: &[u8], value: &[u8]) -> bool {
        if self.kernel.is_left() {
            return true;
        }
        let put = table.update(key, value, MapFlags::ANY);
        put.map_err(|error| self.warn_once(&error)).is_ok()
    }

    /// Creates an entry, unless it exists. Returns whether it exists afterwards.
    fn make(&self, table: &MapHandle, key: &[u8], value: &[u8]) -> bool {
        if self.kernel.is_left() {
            return true;
        }
        match table.update(key, value, MapFlags::NO_EXIST) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::AlreadyExists => {
                self.warn_once(&error);
                false
            }
            _ => true,
        }
    }

    /// Removes an entry, if it exists.
    fn remove(&self, table: &MapHandle, key: &[u8]) {
        if !self.kernel.is_left() {
            let _ = table.delete(key);
        }
    }

    fn warn_once(&self, error: &libbpf_rs::Error) {
        if !self.has_warned.swap(true, Relaxed) {
            tracing::warn!(%error, "cannot add to a kernel-half table; the program handles the rest");
        }
    }
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

/// Reads `struct port_key`.
fn read_port(value: &[u8]) -> Option<PortId> {
    let port_no = value.get(8..)?.first_chunk()?;
    let port_no = PortNo(u32::from_ne_bytes(*port_no));
    Some(PortId::new(DatapathId(word(value, 0)), port_no))
}

/// Reads a VLAN; 0 for none.
fn read_vlan(bytes: &[u8]) -> Option<Option<u16>> {
    let vlan = u16::from_ne_bytes(*bytes.first_chunk()?);
    Some(Some(vlan).filter(|vlan| *vlan != 0))
}

/// Reads `struct host_key`.
fn read_host_key(key: &[u8]) -> Option<(Option<u16>, MacAddr)> {
    let mac = MacAddr::new(*key.first_chunk()?);
    Some((read_vlan(key.get(6..)?)?, mac))
}

/// Reads `struct address_key`.
fn read_address_key(key: &[u8]) -> Option<(Option<u16>, IpAddr)> {
    let family = u16::from_ne_bytes(*key.get(18..)?.first_chunk()?);
    let address = match family {
        FAMILY_IPV4 => IpAddr::from(*key.first_chunk::<4>()?),
        FAMILY_IPV6 => IpAddr::from(*key.first_chunk::<16>()?),
        _ => return None,
    };
    Some((read_vlan(key.get(16..)?)?, address))
}

/// Reads `struct address_owner`: the host's MAC address, and whether it is a router.
fn read_owner(value: &[u8]) -> Option<(MacAddr, bool)> {
    Some((MacAddr::new(*value.first_chunk()?), *value.get(6)? != 0))
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
            self.remove(&self.expected, &key);
        }
    }

    fn forget_probe(&self, at: PortId) {
        let key = port_key(at);
        self.remove(&self.expected, &key);
        self.remove(&self.confirmed, &key);
    }

    fn settled_probe(&self, at: PortId) -> Option<(LinkProbe, Instant)> {
        let value = find(&self.confirmed, &port_key(at))?;
        let probe = LinkProbe {
            from: read_port(&value)?,
            stamp: word(&value, 16),
        };
        let settled_ns = word(&value, 24);
        (settled_ns != 0).then(|| (probe, instant_at(settled_ns)))
    }

    fn set_host_ports(&self, ports: &[PortId]) {
        let ports: BTreeSet<_> = ports.iter().copied().collect();
        self.remove_waiting();
        let mut set = self.set.lock();
        for port in set.host_ports.difference(&ports) {
            self.remove(&self.host_ports, &port_key(*port));
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
        self.remove_waiting();
        let key = host_key(host.vlan, host.mac);
        // If a host cannot be counted, it is unknown to the kernel, so all its packets are news.
        let is_there = self.make(&self.heard, &key, &[0; 16])
            && self.put(&self.hosts, &key, &port_key(host.attached));
        if !is_there {
            self.remove(&self.hosts, &key);
        }
        for address in host.addresses() {
            let key = address_key(host.vlan, address);
            if !self.put(&self.addresses, &key, &address_owner(host)) {
                self.remove(&self.addresses, &key);
            }
        }
    }

    fn remove_host(&self, vlan: Option<u16>, mac: MacAddr) {
        let key = host_key(vlan, mac);
        self.remove(&self.hosts, &key);
        self.remove(&self.heard, &key);
    }

    fn remove_address(&self, vlan: Option<u16>, address: IpAddr) {
        self.remove(&self.addresses, &address_key(vlan, address));
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
                self.remove(&self.next_hops, &pair(at, to));
            }
        }
        for (&(at, to), port_no) in &hops {
            let key = pair(at, to);
            let is_there = set.next_hops.get(&(at, to)) == Some(port_no);
            if !is_there && !self.put(&self.next_hops, &key, &port_no.0.to_ne_bytes()) {
                self.remove(&self.next_hops, &key);
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

    fn take_kept_hosts(&self, switch: DatapathId) -> Vec<KeptHost> {
        let kept = self.kept.lock().resumed.remove(&switch);
        let kept = kept.unwrap_or_default();
        for host in &kept {
            // Its packets so far were counted for the earlier program.
            self.remove(&self.heard, &host_key(host.vlan, host.mac));
        }
        kept
    }
}
