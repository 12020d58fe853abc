//! Host tracking: the hosts, their ports and their addresses ("endpoint tracking", Shalimov and Ivashchenko, section IV).
//!
//! **What.** [`Hosts`] learns from packet-ins, publishes changes ([`HostEvent`]), and finds hosts by MAC, IPv4 and IPv6
//! address. [docs/services.md](../../../docs/services.md) describes it for users.
//!
//! **Sources.** Only frames that arrive at an edge port are used: if another switch is behind the port ([`Discovery`]), frames
//! come from hosts elsewhere. Until a port is known to be a link port, invalid locations may be learnt there. They are
//! corrected as soon as it is known: a host returns to its previous location, or is removed if it had none.
//!
//! - Every frame gives the location of its source MAC address, except for group addresses and frames addressed to bridges
//!   (01:80:c2:00:00:0x).
//! - ARP and neighbour discovery give IP addresses if the MAC address in the message is the frame's source and, in
//!   IPv6, hop limit and checksum are valid. Other packets give addresses only if enabled
//!   ([`HostsConfig::learns_from_data`]), and only addresses that no host has claimed: a router forwards packets of
//!   remote hosts.
//!
//! **Conflicts.** By default the first host wins ([`ConflictPolicy::OwnerWhileAlive`]). When a host is seen at a second port,
//! or a second host claims an address, the first is probed at its port. If it answers within [`HostsConfig::probe_timeout`],
//! nothing changes; otherwise the newer claim is accepted. An event is published in either case. So no host can take over a
//! live host's location or address by claiming it, and a host that moved without its port going down is found within a second.
//! When a port goes down or a switch disconnects, its hosts are removed at once, and may then join elsewhere without a
//! conflict.
//!
//! **Bounds.** The number of hosts is limited in total and per port, and that of addresses per family and host. A flood of
//! forged sources fills only its own port's share, and ages out. If many ports together fill the table, a new host elsewhere
//! displaces a host of the switch with the most hosts.
//!
//! **Cost.** A sighting without news: a look-up in a hash map and two stores. A new host: a lock, and some microseconds.
//! About 500 bytes per host.
//!
//! **Thread-safety.** Look-ups need no lock. Changes take one, and call no other code while they hold it.

mod binding;
mod event;
mod flooded;
pub(crate) mod frame;
mod host;
pub(crate) mod probe;
mod table;

pub use event::{HostEvent, LeftReason};
pub use host::Host;

use crate::bucket::PortBuckets;
use crate::flooding::packet_out;
use crate::offload::ServiceOffload;
use crate::{Discovery, FloodTree, PortRole};
use flooded::Flooded;
use frame::Frame;
use parking_lot::Mutex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use table::{Effects, HostTable, Sighting};
use urtica_controller::setting::{SettingError, expect_some, expect_time};
use urtica_controller::{
    Background, Broadcast, Events, Network, Program, Stage, Switch, SwitchHandler, SwitchInfo,
};
use urtica_topology::PortId;
use urtica_wire::{
    Action, DatapathId, MacAddr, PacketIn, Port, PortConfig, PortNo, PortReason, PortState,
    PortStatus,
};

/// Maximum number of sightings with news per second that are examined from each port, in addition to a burst large enough for
/// all hosts that a port may have. A port that exceeds this limit does not affect other ports.
const NEWS_RATE_PER_PORT: u32 = 1000;

/// The upper limit of every duration in the configuration: a hundred years, which clocks can still represent.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The minimum time between two events that a host could cause over and over.
pub const EVENT_INTERVAL: Duration = Duration::from_secs(10);

/// Settings of [`Hosts`]. Durations longer than a hundred years count as a hundred years.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsConfig {
    /// The maximum number of hosts. 131,072.
    pub max_hosts: usize,
    /// The maximum number of hosts per port. 4,096.
    pub max_hosts_per_port: usize,
    /// The maximum number of IPv4 and of IPv6 addresses per host; the oldest is dropped. 16.
    pub max_addresses: usize,
    /// Time without packets after which a host is probed. 300 s.
    pub max_age: Duration,
    /// Time in which a host must answer a probe. 1 s.
    pub probe_timeout: Duration,
    /// The host that wins a conflict over a location or address.
    pub on_conflict: ConflictPolicy,
    /// Maximum number of times that a host may move within `flap_window` before it is held in place for `hold`. 5.
    pub max_moves: usize,
    /// The period in which moves are counted. 10 s.
    pub flap_window: Duration,
    /// Time for which a host that moved too often is held in place. 30 s.
    pub hold: Duration,
    /// Whether the source address of any IP packet is learnt, if no other host has it. Off: a router forwards packets of
    /// remote hosts.
    pub learns_from_data: bool,
    /// The MAC address from which hosts are probed; it must be unused. 02:75:72:74:69:63 by default.
    pub our_mac: MacAddr,
}

impl Default for HostsConfig {
    fn default() -> Self {
        Self {
            max_hosts: 1 << 17,
            max_hosts_per_port: 4096,
            max_addresses: 16,
            max_age: Duration::from_secs(300),
            probe_timeout: Duration::from_secs(1),
            on_conflict: ConflictPolicy::default(),
            max_moves: 5,
            flap_window: Duration::from_secs(10),
            hold: Duration::from_secs(30),
            learns_from_data: false,
            our_mac: MacAddr::new(*b"\x02urtic"),
        }
    }
}

impl HostsConfig {
    /// Checks the settings; the error is a message for users.
    fn check(&self) -> Result<(), SettingError> {
        expect_some("HostsConfig::max_hosts", self.max_hosts)?;
        expect_some("HostsConfig::max_hosts_per_port", self.max_hosts_per_port)?;
        expect_some("HostsConfig::max_addresses", self.max_addresses)?;
        expect_time("HostsConfig::max_age", self.max_age)?;
        expect_time("HostsConfig::probe_timeout", self.probe_timeout)
    }

    /// Returns the values that are used: limited, so that timers neither spin nor overflow.
    fn sound(self) -> Self {
        let least = Duration::from_millis(1);
        Self {
            max_age: self.max_age.clamp(least, LONGEST),
            probe_timeout: self.probe_timeout.clamp(least, LONGEST),
            flap_window: self.flap_window.min(LONGEST),
            hold: self.hold.min(LONGEST),
            max_addresses: self.max_addresses.max(1),
            ..self
        }
    }

    /// Returns the maximum number of sightings with news that are examined from each port in a burst.
    fn news_burst_per_port(&self) -> u32 {
        let hosts = u32::try_from(self.max_hosts_per_port).unwrap_or(u32::MAX);
        hosts.saturating_add(NEWS_RATE_PER_PORT)
    }
}

/// The host that wins a conflict over a location or address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictPolicy {
    /// The current owner, as long as it answers. Safe: no host can take over a live host's location or address.
    #[default]
    OwnerWhileAlive,
    /// The latest claim. Faster by [`HostsConfig::probe_timeout`] if hosts move without their ports going down, but any
    /// host can take over any location or address. A host that moves too often is held in place.
    NewestWins,
}

/// The hosts of the network: a program, and a handle to its results. Cheap to clone. See the module's documentation.
///
/// ```
/// use urtica_controller::Controller;
/// use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig};
///
/// let discovery = Discovery::new(DiscoveryConfig::default());
/// let hosts = Hosts::new(&discovery, HostsConfig::default());
/// let controller = Controller::new()
///     .program(discovery)
///     .program(hosts.clone());
///
/// if let Some(host) = hosts.find_ipv4([10, 0, 0, 1].into()) {
///     println!("{} is at {}", host.mac, host.attached);
/// }
/// ```
#[derive(Clone)]
pub struct Hosts(Arc<HostsState>);

struct HostsState {
    /// The first invalid setting, if any; `table` uses corrected ones.
    is_sound: Result<(), SettingError>,
    table: HostTable,
    discovery: Discovery,
    /// Locked only for a look-up.
    flooded: Mutex<Flooded>,
    events: Broadcast<HostEvent>,
    /// The watcher that is notified of changes at once, if any.
    watcher: OnceLock<Arc<dyn HostsWatcher>>,
    /// Set when the controller starts.
    background: OnceLock<Background>,
}

/// Keeps copies of hosts' locations, in order to answer instead of the controller.
///
/// Events ([`Hosts::events`]) are published after the change. A watcher is notified by the thread that makes the change, before
/// that thread continues.
pub trait HostsWatcher: Send + Sync {
    /// Called when the location or the addresses of a host at this port have changed or are in doubt: copies must no
    /// longer be used. Not called for hosts that join. It must neither call back nor wait.
    fn changed(&self, port: PortId);
}

impl Hosts {
    /// Creates the service without hosts. `discovery`, in the same controller, decides which ports can have hosts.
    pub fn new(discovery: &Discovery, config: HostsConfig) -> Self {
        Self(Arc::new(HostsState {
            is_sound: config.check(),
            table: HostTable::new(config.sound()),
            discovery: discovery.clone(),
            flooded: Mutex::default(),
            events: Broadcast::new(HostEvent::Missed),
            watcher: OnceLock::new(),
            background: OnceLock::new(),
        }))
    }

    /// Sets the offload that settles packets of known hosts. Call this before the controller starts; later calls have no
    /// effect.
    pub fn offload(&self, offload: Arc<dyn ServiceOffload>) {
        let table = &self.0.table;
        if table.offload().set(Arc::clone(&offload)).is_ok() {
            offload.set_our_mac(table.config().our_mac);
        }
    }

    /// Returns the host with this MAC address; if it is in several VLANs, the untagged one, or the one in the lowest VLAN.
    #[inline]
    pub fn find(&self, mac: MacAddr) -> Option<Arc<Host>> {
        self.0.table.find(mac)
    }

    /// Returns the host with this MAC address in a VLAN.
    #[inline]
    pub fn find_in(&self, vlan: Option<u16>, mac: MacAddr) -> Option<Arc<Host>> {
        self.0.table.find_in(vlan, mac)
    }

    /// Returns the host with this address; if it is in several VLANs, the untagged one, or the one in the lowest VLAN.
    #[inline]
    pub fn find_ipv4(&self, address: Ipv4Addr) -> Option<Arc<Host>> {
        self.0.table.find_address(address.into())
    }

    /// Returns the host with this address; if it is in several VLANs, the untagged one, or the one in the lowest VLAN.
    #[inline]
    pub fn find_ipv6(&self, address: Ipv6Addr) -> Option<Arc<Host>> {
        self.0.table.find_address(address.into())
    }

    /// Returns the host with this address in a VLAN.
    #[inline]
    pub fn find_address_in(
        &self,
        vlan: Option<u16>,
        address: std::net::IpAddr,
    ) -> Option<Arc<Host>> {
        self.0.table.find_address_in(vlan, address)
    }

    /// Returns all hosts, by MAC address and VLAN. Takes time proportional to their number.
    pub fn all(&self) -> Vec<Arc<Host>> {
        self.0.table.all()
    }

    /// Returns the number of known hosts.
    pub fn count(&self) -> usize {
        self.0.table.count()
    }

    /// Returns the number of times that a host was not learnt because there were too many hosts, or too much news from its
    /// port.
    pub fn refused(&self) -> u64 {
        self.0.table.refused()
    }

    /// Returns `true` if both are clones of one service.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the events from now on. [`Hosts::find`] already shows the change when its event arrives.
    pub fn events(&self) -> Events<HostEvent> {
        self.0.events.subscribe()
    }

    /// Notifies `watcher` of changes from now on. Returns `false`, without effect, if a watcher is set already.
    pub fn watch(&self, watcher: Arc<dyn HostsWatcher>) -> bool {
        self.0.watcher.set(watcher).is_ok()
    }

    /// Notes that an untagged frame of this host arrived at this port and was handled without the controller. If the host is
    /// still at this port, it was heard at this time. This does not count as an answer to a probe: if something is in doubt,
    /// the controller has to receive frames itself.
    pub fn note_heard(&self, mac: MacAddr, port: PortId, now: Instant) {
        let host = self.find_in(None, mac);
        if let Some(host) = host.filter(|host| host.attached == port) {
            host.note_seen(now);
        }
    }

    /// Restores an untagged host that was at this port with this address when an earlier program ended. Does nothing if
    /// newer information exists, or before the controller starts. Once the switch has described its ports, hosts at
    /// ports that do not exist, or are down, are removed.
    pub fn restore(&self, mac: MacAddr, port: PortId, address: Ipv4Addr) {
        let is_host = !mac.is_multicast() && mac != MacAddr::ZERO;
        let Some(background) = self.0.background.get().filter(|_| is_host) else {
            return;
        };
        let (address, now) = (address.into(), background.now());
        let effects = self.0.table.restore((None, mac), port, address, now);
        self.0.learn(effects, port, background.network(), now);
    }

    /// Floods a frame without using any link: sends it out of the host ports of all these switches, except the ingress port.
    /// This costs one packet-out per switch and no packet-in. Does nothing if the ingress port does not accept flooded packets
    /// ([`FloodTree::is_open`]), or if an equal frame was flooded less than 100 ms ago: this one is its copy, returned by the
    /// network.
    pub fn flood(
        &self,
        network: &Network,
        from: PortId,
        frame: &[u8],
        now: Instant,
        to: impl Fn(DatapathId) -> bool,
    ) {
        let tree = self.0.discovery.flood_tree().load();
        if tree.accepts(from) && self.is_new(frame, now) {
            tree.send_to_hosts(network, from, frame, to);
        }
    }

    /// Returns `true` if addresses are learnt from any packet: see [`HostsConfig::learns_from_data`].
    pub fn learns_from_data(&self) -> bool {
        self.0.table.config().learns_from_data
    }

    /// Returns `true` if a port has been classified as a host port: see [`Discovery::is_host_port`].
    pub fn is_host_port(&self, port: PortId) -> bool {
        self.0.discovery.is_host_port(port)
    }

    /// Returns `true` if a frame maps a host's address to another MAC address.
    pub(crate) fn is_contradicted_by(&self, frame: &Frame) -> bool {
        let vlan = frame.vlan();
        frame.bindings().into_iter().any(|binding| {
            let owner = self.find_address_in(vlan, binding.address);
            owner.is_some_and(|owner| owner.mac != binding.mac)
        })
    }

    /// Returns `true` if a frame may be sent to all hosts: no equal one was sent recently.
    pub(crate) fn is_new(&self, frame: &[u8], now: Instant) -> bool {
        self.0.flooded.lock().is_new(frame, now)
    }

    /// Returns the service that classifies ports.
    pub(crate) fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }
}

impl Program for Hosts {
    fn check(&self) -> Result<(), SettingError> {
        self.0.is_sound.clone()
    }

    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        self.0.restore_kept(info.datapath_id);
        Box::new(Handler {
            hosts: Arc::clone(&self.0),
            switch: info.datapath_id,
            edges: Edges::new(&self.0.discovery),
            news: PortBuckets::new(
                NEWS_RATE_PER_PORT,
                self.0.table.config().news_burst_per_port(),
            ),
        })
    }

    fn start(&self, background: &Background) {
        // A second controller would have other switches; the first one keeps it.
        if self.0.background.set(background.clone()).is_ok() {
            let (shared, own) = (Arc::clone(&self.0), background.clone());
            background.spawn("hosts", async move { shared.run(own).await });
        }
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// The ports that may have hosts, for a handler that needs them for each packet-in. They are reloaded only if they have
/// changed.
pub(crate) struct Edges {
    discovery: Discovery,
    tree: Arc<FloodTree>,
    version: u64,
}

impl Edges {
    pub fn new(discovery: &Discovery) -> Self {
        Self {
            discovery: discovery.clone(),
            version: discovery.flood_tree().version(),
            tree: discovery.flood_tree().load(),
        }
    }

    /// Returns `true` if a port of this switch may have hosts: it exists, and no switch is known to be behind it.
    pub fn contains(&mut self, port_no: PortNo, info: &SwitchInfo) -> bool {
        let port = PortId::new(info.datapath_id, port_no);
        !port_no.is_reserved() && info.port(port_no).is_some() && !is_link_port(self.tree(), port)
    }

    pub fn tree(&mut self) -> &FloodTree {
        let version = self.discovery.flood_tree().version();
        if version != self.version {
            self.version = version;
            self.tree = self.discovery.flood_tree().load();
        }
        &self.tree
    }
}

fn is_link_port(tree: &FloodTree, port: PortId) -> bool {
    matches!(tree.role(port), Some(PortRole::Link | PortRole::Blocked))
}

/// The handler of one switch.
struct Handler {
    hosts: Arc<HostsState>,
    switch: DatapathId,
    edges: Edges,
    /// Limits the news from each port.
    news: PortBuckets,
}

impl SwitchHandler for Handler {
    /// Hosts may be known already: [restored](Hosts::restore) ones, or all if the controller may write again.
    fn switch_up(&mut self, switch: &mut Switch) {
        for port in self.hosts.table.ports_of(self.switch) {
            let described = switch.info().port(port.port_no);
            if described.is_none_or(is_down) {
                let effects = self.hosts.table.port_down(port, switch.now());
                self.hosts.carry_out(effects, switch.network());
            }
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let Some(frame) = Frame::parse(packet.data) else {
            return;
        };
        let our_mac = self.hosts.table.config().our_mac;
        if frame.eth_dst == our_mac || frame.eth_src == our_mac {
            // An answer to one of our probes, or a probe that was returned.
            switch.consume();
        }
        if frame.eth_src == our_mac
            || is_for_bridges(frame.eth_dst)
            || !self.edges.contains(packet.in_port, switch.info())
        {
            return;
        }
        let port = PortId::new(self.switch, packet.in_port);
        let (sighting, now) = (self.hosts.sighting(port, &frame), switch.now());
        if !self.hosts.table.is_news(&sighting, now) {
            return;
        }
        if !self.news.take(packet.in_port, now) {
            return self.hosts.table.refuse_unread();
        }
        self.hosts.see(&sighting, switch.network(), now);
    }

    fn settled(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.packet_in(switch, packet);
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        let is_down = status.reason == PortReason::Delete || is_down(&status.port);
        if status.reason == PortReason::Delete {
            self.news.forget(status.port.port_no);
        }
        if is_down {
            let port = PortId::new(self.switch, status.port.port_no);
            let effects = self.hosts.table.port_down(port, switch.now());
            self.hosts.carry_out(effects, switch.network());
        }
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.hosts.switch_left(info.datapath_id);
    }
}

/// Returns whether no frames can arrive at a port.
fn is_down(port: &Port) -> bool {
    port.config.contains(PortConfig::PORT_DOWN) || port.state.contains(PortState::LINK_DOWN)
}

/// Returns `true` for the destinations of frames between bridges, which do not forward them (IEEE 802.1D section 7.12.6): LLDP,
/// spanning tree.
fn is_for_bridges(mac: MacAddr) -> bool {
    matches!(mac.octets(), [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
}

impl HostsState {
    fn sighting(&self, port: PortId, frame: &Frame) -> Sighting {
        let ip_src = if self.table.config().learns_from_data {
            frame.ip_src()
        } else {
            None
        };
        Sighting {
            port,
            mac: frame.eth_src,
            vlan: frame.vlan(),
            neighbour: frame.neighbour(),
            ip_src,
        }
    }

    fn see(&self, sighting: &Sighting, network: &Network, now: Instant) {
        let effects = self.table.see(sighting, now);
        self.learn(effects, sighting.port, network, now);
    }

    /// Carries out the effects of a sighting at a port.
    fn learn(&self, effects: Effects, port: PortId, network: &Network, now: Instant) {
        if effects.is_empty() {
            return;
        }
        self.carry_out(effects, network);
        // The port may have been classified as a link port since the check above, and the correction that this caused may be
        // over.
        if self.discovery.is_link_port(port) {
            self.correct(network, now);
        }
    }

    /// Restores the hosts of this switch that the offload has kept from an earlier program.
    fn restore_kept(&self, switch: DatapathId) {
        let (Some(offload), Some(background)) = (self.table.offload().get(), self.background.get())
        else {
            return;
        };
        let now = background.now();
        for kept in offload.take_kept_hosts(switch) {
            let effects = self.table.restore_kept(&kept, now);
            self.learn(effects, kept.attached, background.network(), now);
            // Not all are restored: the table may be full, or have newer information.
            if self.table.find_in(kept.vlan, kept.mac).is_none() {
                offload.remove_host(kept.vlan, kept.mac);
            }
            for address in kept.addresses {
                if self.table.find_address_in(kept.vlan, address).is_none() {
                    offload.remove_address(kept.vlan, address);
                }
            }
        }
    }

    fn switch_left(&self, switch: DatapathId) {
        let Some(background) = self.background.get() else {
            return;
        };
        // If a newer connection has replaced this one, the switch is still connected and keeps its hosts.
        if background.network().info(switch).is_none() {
            let effects = self.table.switch_left(switch, background.now());
            self.carry_out(effects, background.network());
        }
    }

    /// Sends the probes and publishes the events.
    fn carry_out(&self, effects: Effects, network: &Network) {
        if let Some(watcher) = self.watcher.get() {
            let changed = effects.events.iter().flat_map(HostEvent::changed_ports);
            let in_doubt = effects.probes.iter().map(|probe| probe.port);
            changed
                .chain(in_doubt)
                .for_each(|port| watcher.changed(port));
        }
        for probe in &effects.probes {
            let frame = probe::frame(probe, self.table.config().our_mac);
            let actions = [Action::output(probe.port.port_no)];
            let message = packet_out(&frame, &actions);
            // Fails if a switch has disconnected or its send queue is full: its host's answer is missed.
            let _ = network.send(probe.port.switch, &message);
        }
        for event in effects.events {
            log(&event);
            self.events.send(event);
        }
    }

    fn correct(&self, network: &Network, now: Instant) {
        let tree = self.discovery.flood_tree().load();
        if let Some(offload) = self.table.offload().get() {
            let roles = [PortRole::Unclassified, PortRole::Host].into_iter();
            let ports = roles.flat_map(|role| tree.ports_of(role));
            let ports = ports.filter(|port| !port.port_no.is_reserved());
            offload.set_host_ports(&ports.collect::<Vec<_>>());
        }
        let effects = self.table.correct(|port| is_link_port(&tree, port), now);
        self.carry_out(effects, network);
    }

    /// Runs the background program: timers, and corrections when ports turn out to be link ports.
    async fn run(&self, background: Background) {
        let tree = self.discovery.flood_tree();
        let mut seen = tree.version();
        loop {
            // Claims made from now on are decided after `probe_timeout` or later.
            let latest = background.now() + self.table.config().probe_timeout;
            let due = self
                .table
                .next_timeout()
                .map_or(latest, |due| due.min(latest));
            let pause = due.saturating_duration_since(background.now());
            if let Some(version) = background.timeout(pause, tree.changed(seen)).await {
                seen = version;
                self.correct(background.network(), background.now());
            }
            let effects = self.table.handle_timeout(background.now());
            self.carry_out(effects, background.network());
        }
    }
}

fn log(event: &HostEvent) {
    match event {
        HostEvent::Joined(host) => {
            urtica_log::debug!(about: host.attached, mac = %host.mac, at = %host.attached, "host joined")
        }
        HostEvent::Changed(_) | HostEvent::Missed(_) => {}
        HostEvent::Moved { host, from } => {
            urtica_log::info!(about: host.attached, mac = %host.mac, %from, to = %host.attached, "host moved");
        }
        HostEvent::Left { host, reason } => {
            urtica_log::debug!(about: host.attached, mac = %host.mac, at = %host.attached, ?reason, "host left");
        }
        HostEvent::AddressConflict {
            address,
            owner,
            claimant,
        } => {
            urtica_log::warn!(about: claimant.attached, %address, owner = %owner.mac, at = %owner.attached, claimant = %claimant.mac, claimant_at = %claimant.attached, "two hosts claim one address");
        }
        HostEvent::AddressMoved { address, from, to } => {
            urtica_log::warn!(about: to.attached, %address, from = %from.mac, to = %to.mac, to_at = %to.attached, "an address has a new owner");
        }
        HostEvent::Contested { host, port } => {
            urtica_log::warn!(about: port, mac = %host.mac, at = %host.attached, %port, "a host is seen at a second port while it answers at the first: two hosts with one MAC address, a loop, or a forged sender");
        }
        HostEvent::Flapping { host, .. } => {
            urtica_log::warn!(about: host.attached, mac = %host.mac, at = %host.attached, "host is flapping between ports; holding it in place");
        }
        HostEvent::Refused { port, known } => {
            urtica_log::warn!(about: port, %port, known, "too many hosts; not learning new ones");
        }
    }
}
