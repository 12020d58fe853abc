//! Bandwidth on demand (McNettle section 4.4 and Figure 6): a flow gets the bandwidth that it requests on each link of its
//! path, or is not admitted.
//!
//! **What.** Rules assign a bandwidth to flows ([`Demand`]); a program may also reserve for all traffic from one host to
//! another ([`Bandwidth::reserve`]). A flow gets the shortest of several paths with enough free bandwidth. If no path has
//! enough, the flow is dropped, or forwarded without a guarantee if [`BandwidthConfig::best_effort`] is set. Later programs
//! handle all other packets.
//!
//! **How.** The free bandwidth of each link is a transactional variable. A reservation is one transaction over the variables
//! of a path, with the other paths as alternatives (`or_else`): it needs no lock, and no rollback when it fails. The
//! [`Provisioner`] then sets up the path; the first packet waits for that. Bandwidth is released half a minute after the last
//! packet, when it is released explicitly, or when a link or switch of the path goes down.
//!
//! **Limits.** Flows that send more than they reserved are not policed, and packets without a reservation share the links. A
//! path counts the links out of each of its switches, including the one to the destination host, but not the link from the
//! source host to its switch.
//!
//! **Cost.** The first packet of a flow: a search per alternative, a transaction, a round trip per hop. Each reservation is
//! checked twice a second.
//!
//! **Thread-safety.** Reservations of different switches run concurrently and conflict only on links that they share.

mod book;
mod demand;
mod quotas;
mod refusals;
mod reserve;
mod row;

pub(crate) use row::ROW;

pub use book::{Reserved, Unbalanced};
pub use demand::{Demand, ParseDemandError};

use book::Book;
use demand::{FlowKey, parse_rate};
use parking_lot::Mutex;
use quotas::Quotas;
use refusals::Refusals;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use urtica_controller::{
    Background, EntryOptions, Network, Ports, Program, Switch, SwitchHandler, SwitchInfo,
};
use urtica_services::{Discovery, Flow, HostEvent, Hosts, Provisioner, is_provisioned};
use urtica_topology::{Path, PortId, k_shortest};
use urtica_wire::{
    Action, FlowMod, MacAddr, Message, PacketIn, Port, PortConfig, PortState, Version,
};

/// Marks the entries that send flows with a demand to the controller: `ubandwd` in ASCII.
const COOKIE: u64 = u64::from_be_bytes(*b"\0ubandwd");
const _: () = assert!(!is_provisioned(COOKIE));

/// The priority of entries for all traffic between two hosts: above programs that just forward.
const PAIR_PRIORITY: u16 = 0x9000;

/// The priority of entries that send flows with a demand to the controller.
const DEMAND_PRIORITY: u16 = 0x9100;

/// The priority of entries for flows.
const FLOW_PRIORITY: u16 = 0x9200;

/// The seconds without a packet after which a flow's bandwidth is released.
const IDLE_TIMEOUT_S: u16 = 30;

/// The seconds for which a refused flow is dropped before the next attempt.
const REFUSED_S: u16 = 1;

/// The seconds for which a flow is forwarded without a guarantee before the next attempt.
const BEST_EFFORT_S: u16 = 10;

/// The interval at which reservations are checked.
const SETTLE_INTERVAL: Duration = Duration::from_millis(500);

/// Options of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct BandwidthArgs {
    /// Flows that get bandwidth: 'RATE MATCH', the rate in bits per second with K, M, G or T, the match as in
    /// ovs-ofctl, for instance '10M udp,tp_dst=5004'. May be repeated; the first that matches applies.
    #[arg(long, value_name = "DEMAND")]
    pub bandwidth_demand: Vec<Demand>,
    /// Forward flows that cannot get their bandwidth, instead of dropping them.
    #[arg(long)]
    pub bandwidth_best_effort: bool,
    /// Number of paths to try for a flow [default: 4].
    #[arg(long, value_name = "N")]
    pub bandwidth_paths: Option<usize>,
    /// Capacity of links whose port reports none [default: 1G].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub bandwidth_capacity: Option<u64>,
    /// Bandwidth that the hosts of one port may reserve [default: what the port can send].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub bandwidth_per_port: Option<u64>,
    /// Number of flows with a demand that the hosts of one port may have at a time [default: 1024].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub bandwidth_flows_per_port: Option<u32>,
}

/// Settings of [`Bandwidth`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthConfig {
    /// The demands of flows; the first that matches a packet applies. Empty.
    pub demands: Vec<Demand>,
    /// Whether a flow that does not get its bandwidth is forwarded without a guarantee. `false`.
    pub best_effort: bool,
    /// The number of paths to try. 4.
    pub paths: usize,
    /// The bandwidth of a link whose port reports none, in bits per second. 1 Gb/s.
    pub default_capacity_bps: u64,
    /// The maximum number of reservations, and flows that are forwarded without one. 65,536.
    pub max_reservations: usize,
    /// The maximum total reservation of the flows that start at one port, in bits per second; `None`, the default, for the
    /// port's own rate. Reservations of programs do not count.
    pub port_bps: Option<u64>,
    /// The maximum number of flows with a demand that start at one port, with or without a reservation. 1,024.
    pub flows_per_port: usize,
}

impl Default for BandwidthConfig {
    fn default() -> Self {
        Self::from(&BandwidthArgs::default())
    }
}

impl From<&BandwidthArgs> for BandwidthConfig {
    fn from(args: &BandwidthArgs) -> Self {
        Self {
            demands: args.bandwidth_demand.clone(),
            best_effort: args.bandwidth_best_effort,
            paths: args.bandwidth_paths.unwrap_or(4),
            default_capacity_bps: args.bandwidth_capacity.unwrap_or(1_000_000_000),
            max_reservations: 1 << 16,
            port_bps: args.bandwidth_per_port,
            flows_per_port: args.bandwidth_flows_per_port.unwrap_or(1_024) as usize,
        }
    }
}

/// The error of a failed reservation or release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BandwidthError {
    /// A host is not known.
    #[error("the host {mac} is not known; expected one that has sent something")]
    UnknownHost {
        /// The host.
        mac: MacAddr,
    },
    /// A host needs no bandwidth to itself.
    #[error("the host {mac} is both source and destination; expected two hosts")]
    SameHost {
        /// The host.
        mac: MacAddr,
    },
    /// The two hosts are in different VLANs.
    #[error("the hosts {from} and {to} are in different VLANs; expected two hosts in one VLAN")]
    OtherVlan {
        /// The source host.
        from: MacAddr,
        /// The destination host.
        to: MacAddr,
    },
    /// The requested bandwidth is zero.
    #[error("the request is for 0 b/s; expected at least 1")]
    Nothing,
    /// No links lead to the destination.
    #[error("no links lead from port {from} to port {to}")]
    NoPath {
        /// The source host's port.
        from: PortId,
        /// The destination host's port.
        to: PortId,
    },
    /// No path has enough free bandwidth.
    #[error("{bps} b/s are not free on any of {paths} tried paths")]
    NoRoom {
        /// The requested bandwidth in bits per second.
        bps: u64,
        /// The number of paths tried.
        paths: usize,
    },
    /// Such a reservation already exists.
    #[error("a reservation already exists; release it first")]
    ReservedAlready,
    /// No such reservation exists.
    #[error("no bandwidth is reserved from {from} to {to}")]
    NotReserved {
        /// The source host.
        from: MacAddr,
        /// The destination host.
        to: MacAddr,
    },
    /// Too many reservations exist.
    #[error(
        "{max} reservations already exist; release some, or raise BandwidthConfig::max_reservations"
    )]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// The hosts of a port have too many flows.
    #[error(
        "the hosts of port {port} have {max} flows already; wait until some end, or raise --bandwidth-flows-per-port"
    )]
    TooManyOfPort {
        /// The port.
        port: PortId,
        /// The limit.
        max: usize,
    },
    /// The hosts of a port would have reserved too much.
    #[error(
        "the hosts of port {port} have reserved {reserved_bps} of their {max_bps} b/s, and requested {bps}; release some, or raise --bandwidth-per-port"
    )]
    TooMuchOfPort {
        /// The port.
        port: PortId,
        /// The requested bandwidth in bits per second.
        bps: u64,
        /// The reserved bandwidth in bits per second.
        reserved_bps: u64,
        /// The limit in bits per second.
        max_bps: u64,
    },
    /// The links, or the reservations on them, changed repeatedly during the attempt.
    #[error("links or their reservations changed repeatedly during the attempt; try again")]
    Busy,
}

/// The program, and a handle for reservations. Cheap to clone.
#[derive(Clone)]
pub struct Bandwidth(Arc<BandwidthState>);

struct BandwidthState {
    config: BandwidthConfig,
    discovery: Discovery,
    hosts: Hosts,
    book: Book,
    /// Taken while no other lock is held.
    refusals: Mutex<Refusals>,
    /// The table of the entries on all switches: not the first one if a program filters.
    table_id: AtomicU8,
}

impl Bandwidth {
    /// Creates the program. The services must run in the same controller.
    pub fn new(
        discovery: &Discovery,
        hosts: &Hosts,
        provisioner: &Provisioner,
        config: BandwidthConfig,
    ) -> Self {
        Self(Arc::new(BandwidthState {
            config,
            discovery: discovery.clone(),
            hosts: hosts.clone(),
            book: Book::new(provisioner),
            refusals: Mutex::default(),
            table_id: AtomicU8::new(0),
        }))
    }

    /// Reserves for all traffic from one host to another without its own demand. The reverse direction is another
    /// reservation. It lasts until it is released, a link of its path goes down, or one of the hosts moves.
    ///
    /// When this returns, the bandwidth is reserved and the path is being set up: [`Bandwidth::find`] reports when it is
    /// complete. If a switch refuses it, the reservation is released.
    ///
    /// # Errors
    /// [`BandwidthError`]; then no bandwidth is reserved.
    pub fn reserve(&self, from: MacAddr, to: MacAddr, bps: u64) -> Result<Path, BandwidthError> {
        if from == to {
            return Err(BandwidthError::SameHost { mac: from });
        }
        let find = |mac| {
            self.0
                .hosts
                .find(mac)
                .ok_or(BandwidthError::UnknownHost { mac })
        };
        let (near, far) = (find(from)?, find(to)?);
        if near.vlan != far.vlan {
            return Err(BandwidthError::OtherVlan { from, to });
        }
        let key = FlowKey::between(near.vlan, from, to);
        self.0
            .reserve(key, bps, (near.attached, far.attached), None)
    }

    /// Releases a reservation of [`Bandwidth::reserve`]. Its entries are removed soon after.
    ///
    /// # Errors
    /// [`BandwidthError::NotReserved`].
    pub fn release(&self, from: MacAddr, to: MacAddr) -> Result<(), BandwidthError> {
        let key = self.0.book.key_of_pair(from, to);
        match key.is_some_and(|key| self.0.book.release(&key)) {
            true => Ok(()),
            false => Err(BandwidthError::NotReserved { from, to }),
        }
    }

    /// Returns a reservation of [`Bandwidth::reserve`], while it exists.
    pub fn find(&self, from: MacAddr, to: MacAddr) -> Option<Reserved> {
        self.0.book.find(&self.0.book.key_of_pair(from, to)?)
    }

    /// Returns the reason why the last flow with a demand from one address to another got no bandwidth; `None` if it got
    /// some. Kept for the 1,024 pairs of addresses that were refused last.
    pub fn refusal(&self, from: IpAddr, to: IpAddr) -> Option<BandwidthError> {
        self.0.refusals.lock().find((from, to))
    }

    /// Returns the number of reservations, including those of flows.
    pub fn count(&self) -> usize {
        self.0.book.count()
    }

    /// Returns the free bandwidth of the link at a port, in bits per second; `None` while it is down.
    pub fn free_bps(&self, port: PortId) -> Option<u64> {
        self.0.book.free_bps(port)
    }

    /// Checks that reserved and free bandwidth add up to the capacity of each link. For tests: exact while no reservation is
    /// in progress.
    ///
    /// # Errors
    /// [`Unbalanced`] with the first such link.
    pub fn check(&self) -> Result<(), Unbalanced> {
        self.0.book.check()
    }
}

impl Program for Bandwidth {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(BandwidthHandler(Arc::clone(&self.0)))
    }

    fn start(&self, background: &Background) {
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("bandwidth", shared.follow_topology(own));
        let (shared, network) = (Arc::clone(&self.0), background.network().clone());
        background.spawn("bandwidth-ports", shared.follow_ports(network));
        background.spawn("bandwidth-hosts", Arc::clone(&self.0).follow_hosts());
    }
}

/// The handler of one switch.
struct BandwidthHandler(Arc<BandwidthState>);

impl SwitchHandler for BandwidthHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.0.table_id.store(switch.table(), Ordering::Relaxed);
        self.0.send_demands(switch);
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let demands = &self.0.config.demands;
        if let Some(demand) = demands.iter().find(|demand| demand.is_of(packet)) {
            self.0.admit(switch, packet, demand);
        }
    }
}

impl BandwidthState {
    /// Installs the entries that send flows with a demand to the controller, above the entries of other programs.
    fn send_demands(&self, switch: &mut Switch) {
        // OpenFlow 1.0 cannot delete by cookie.
        if switch.info().version != Version::Of10 {
            let _ = switch.send(&Message::FlowMod(FlowMod::delete_by_cookie(COOKIE)));
            let _ = switch.send(&Message::BarrierRequest);
        }
        let options = EntryOptions {
            cookie: COOKIE,
            ..EntryOptions::PERMANENT.priority(DEMAND_PRIORITY)
        };
        for demand in &self.config.demands {
            let sent = switch.install(demand.match_.clone(), &[Action::controller()], options);
            if let Err(error) = sent {
                urtica_log::error!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %error, "cannot install the entry of a demand");
            }
        }
    }

    /// Handles a packet of a flow with a demand.
    fn admit(&self, switch: &mut Switch, packet: &PacketIn, demand: &Demand) {
        let key = FlowKey::of(packet);
        let at = PortId::new(switch.datapath_id(), packet.in_port);
        let ends = match self.ends(&key) {
            Ok(ends) => ends,
            Err(error) => return self.keep_out(switch, key, at, &error),
        };
        switch.consume();
        if let Some(reserved) = self.book.find(&key) {
            return forward_along(&reserved.path, switch, packet, at);
        }
        // The packet is not at the sender's edge port, so its flow was never admitted.
        if ends.0 != at {
            return;
        }
        match self.reserve(key, demand.bps, ends, Some(packet)) {
            Ok(_) => self.forget_refusal(&key),
            Err(error) => self.refuse(switch, packet, key, ends, &error),
        }
    }

    /// Handles a flow with an unknown host. Leaves this packet to later programs, which may find the host, and drops the
    /// following ones for a while, unless best effort is set.
    fn keep_out(&self, switch: &mut Switch, key: FlowKey, at: PortId, error: &BandwidthError) {
        urtica_log::info!(about: at, src = %key.eth_src, dst = %key.eth_dst, best_effort = self.config.best_effort, "no bandwidth for a flow: {error}, and no gateway, as bandwidth is reserved within a subnet");
        self.note_refusal(&key, error);
        if !self.config.best_effort {
            drop_for_a_while(switch, key);
        }
    }

    fn note_refusal(&self, key: &FlowKey, error: &BandwidthError) {
        if let Some(pair) = key.addresses() {
            self.refusals.lock().note(pair, error.clone());
        }
    }

    fn forget_refusal(&self, key: &FlowKey) {
        if let Some(pair) = key.addresses() {
            self.refusals.lock().forget(pair);
        }
    }

    /// Returns the ports of the flow's hosts if both are known.
    fn ends(&self, key: &FlowKey) -> Result<(PortId, PortId), BandwidthError> {
        let port_of = |mac| match self.hosts.find_in(key.vlan(), mac) {
            Some(host) => Ok(host.attached),
            None => Err(BandwidthError::UnknownHost { mac }),
        };
        Ok((port_of(key.eth_src)?, port_of(key.eth_dst)?))
    }

    fn reserve(
        &self,
        key: FlowKey,
        bps: u64,
        ends: (PortId, PortId),
        packet: Option<&PacketIn>,
    ) -> Result<Path, BandwidthError> {
        if bps == 0 {
            return Err(BandwidthError::Nothing);
        }
        let quotas = self.quotas();
        let charged = key.charged(Some(ends.0));
        self.book.permits(charged, bps, &quotas)?;
        let topology = self.discovery.topology().load();
        let paths: Vec<_> = k_shortest::paths(&topology, ends.0, ends.1)
            .take(self.config.paths)
            .collect();
        if paths.is_empty() {
            let (from, to) = ends;
            return Err(BandwidthError::NoPath { from, to });
        }
        let options = match key.is_pair() {
            true => EntryOptions::PERMANENT.priority(PAIR_PRIORITY),
            false => EntryOptions::idle(IDLE_TIMEOUT_S).priority(FLOW_PRIORITY),
        };
        let flow = |path: &Path| self.flow(key, path, options, packet);
        self.book
            .reserve(key, bps, paths, &quotas, self.discovery.topology(), flow)
    }

    fn quotas(&self) -> Quotas {
        Quotas {
            total: self.config.max_reservations,
            port_flows: self.config.flows_per_port,
            port_bps: self.config.port_bps,
        }
    }

    fn flow(
        &self,
        key: FlowKey,
        path: &Path,
        options: EntryOptions,
        packet: Option<&PacketIn>,
    ) -> Flow {
        let flow = Flow::new(path.clone(), key.match_())
            .options(options)
            .table(self.table_id.load(Ordering::Relaxed));
        match packet {
            Some(packet) => flow.releasing(packet),
            None => flow,
        }
    }

    /// Drops a flow for a while, or forwards it without a guarantee.
    fn refuse(
        &self,
        switch: &mut Switch,
        packet: &PacketIn,
        key: FlowKey,
        ends: (PortId, PortId),
        error: &BandwidthError,
    ) {
        urtica_log::info!(about: ends.0, src = %key.eth_src, dst = %key.eth_dst, best_effort = self.config.best_effort, "no bandwidth for a flow: {error}");
        self.note_refusal(&key, error);
        let topology = self.discovery.topology().load();
        let shortest = k_shortest::paths(&topology, ends.0, ends.1).next();
        let is_noted = shortest
            .filter(|_| self.config.best_effort)
            .is_some_and(|path| {
                self.book.note(key, path, &self.quotas(), |path| {
                    self.flow(key, path, for_seconds(BEST_EFFORT_S), Some(packet))
                })
            });
        if !is_noted {
            drop_for_a_while(switch, key);
        }
    }

    /// Checks the reservations whenever links go up or down, and twice a second.
    async fn follow_topology(self: Arc<Self>, background: Background) {
        let mut seen = 0;
        loop {
            let changed = self.discovery.topology().changed(seen);
            if let Some(version) = background.timeout(SETTLE_INTERVAL, changed).await {
                seen = version;
                self.update(background.network());
            }
            self.book.settle();
        }
    }

    /// Checks the reservations whenever ports change.
    async fn follow_ports(self: Arc<Self>, network: Network) {
        let mut events = network.events();
        while events.next().await.is_some() {
            self.update(&network);
        }
    }

    /// Releases the paths from and to a host's old port whenever it moves. Its next packet with a demand gets another path.
    async fn follow_hosts(self: Arc<Self>) {
        let mut events = self.hosts.events();
        while let Some(event) = events.next().await {
            let concerned = match event {
                HostEvent::Moved { host, .. } | HostEvent::Joined(host) => Some(host.mac),
                HostEvent::Missed(_) => None,
                _ => continue,
            };
            let gone = self.book.give_up(|key, path| {
                let is_concerned =
                    concerned.is_none_or(|mac| key.eth_src == mac || key.eth_dst == mac);
                is_concerned && self.leads_elsewhere(key, path)
            });
            if gone > 0 {
                tracing::info!(
                    reservations = gone,
                    "released the reservations of hosts that moved"
                );
            }
        }
    }

    /// Returns `true` if the known port of one of the hosts is not at its end of the path.
    fn leads_elsewhere(&self, key: &FlowKey, path: &Path) -> bool {
        let attached = |mac| Some(self.hosts.find_in(key.vlan(), mac)?.attached);
        let ends = [
            (attached(key.eth_src), path.begin()),
            (attached(key.eth_dst), path.end()),
        ];
        ends.iter().any(|(is, was)| is.is_some() && is != was)
    }

    fn update(&self, network: &Network) {
        let gone = self.book.update(|| {
            let capacities = capacities(network, self.config.default_capacity_bps);
            (capacities, self.discovery.topology().load())
        });
        if gone > 0 {
            urtica_log::warn!(
                about: "links",
                reservations = gone,
                "released the reservations on lost links"
            );
        }
    }
}

/// Returns the options of a flow's entry that expires after these seconds.
fn for_seconds(hard_timeout: u16) -> EntryOptions {
    EntryOptions {
        hard_timeout,
        ..EntryOptions::PERMANENT.priority(FLOW_PRIORITY)
    }
}

/// Drops a flow until the next attempt.
fn drop_for_a_while(switch: &mut Switch, key: FlowKey) {
    let options = EntryOptions {
        cookie: COOKIE,
        ..for_seconds(REFUSED_S)
    };
    let _ = switch.install(key.match_(), &[], options);
}

/// Forwards a packet that overtook its entries.
fn forward_along(path: &Path, switch: &mut Switch, packet: &PacketIn, at: PortId) {
    if let Some(hop) = path.hops.iter().find(|hop| hop.comes_in() == at) {
        switch.forward(packet, hop.out_port);
    }
}

/// Returns the rates of all ports that are up, in bits per second.
pub(crate) fn capacities(network: &Network, default_bps: u64) -> BTreeMap<PortId, u64> {
    let mut capacities = BTreeMap::new();
    for switch in network.switches() {
        let ports = network
            .info(switch)
            .map_or_else(Ports::default, |info| info.ports.clone());
        for port in ports.iter().filter(|port| is_up(port)) {
            let capacity = port.speed_bps().unwrap_or(default_bps);
            capacities.insert(PortId::new(switch, port.port_no), capacity);
        }
    }
    capacities
}

fn is_up(port: &Port) -> bool {
    !port.port_no.is_reserved()
        && !port.config.contains(PortConfig::PORT_DOWN)
        && !port.state.contains(PortState::LINK_DOWN)
}
