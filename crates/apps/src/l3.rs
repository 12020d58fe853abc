//! A router: connects hosts of different subnets through virtual gateways, which every switch provides.
//!
//! **What.** A file lists subnets and the gateways' addresses ([`L3Config`]). The program answers ARP requests and pings for
//! the gateways, and forwards packets that hosts send through them to the next hop: a host in another subnet, or another
//! router. It decrements the TTL of each packet, and answers a packet with ICMP if its TTL expires or it has no route
//! (RFC 792, RFC 1812). Later programs handle packets within one subnet.
//!
//! **How.** The controller itself forwards the first packet of a flow (from a host, through a gateway, to an address), while
//! the [`Provisioner`] sets up a shortest path for the following ones; the last switch rewrites the addresses and decrements
//! the TTL. Next hops are found by ARP at all host ports; packets wait for up to one second, and are then forwarded, or
//! answered with ICMP.
//!
//! **OpenFlow 1.0** cannot decrement a TTL. If a switch of a path uses it, the controller forwards every packet.
//!
//! **Bounds.** Packets wait for at most 1,024 next hops, 32 for each; packets from one port wait for at most 64. A next hop
//! that did not answer is not requested again for three seconds. A switch's hosts get at most 100 ICMP errors per second.
//!
//! **Cost.** The first packet of a flow: a scan of the interfaces and routes, a look-up of the next hop, two messages. Each
//! flow is checked twice a second.
//!
//! **Thread-safety.** One lock guards flows and waiting packets. It is taken before the locks of the services and of
//! [`Network`].

mod config;
mod flow;
pub(crate) mod frames;
mod handler;
mod kernel;
mod unresolved;

pub use config::{Interface, L3Config, L3ConfigError, Subnet};
pub use kernel::{L3Fact, L3Kernel, L3Session};

use crate::paths::{Paths, is_in};
use crate::registry::{About, Forwards, ProgramOptions, Row, Service, Setup};
use config::NextHop;
use flow::{FlowKey, Handed};
use frames::Failure;
use handler::L3Handler;
use kernel::Forgetting;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, io};
use unresolved::{Due, Lookup, Unresolved};
use urtica_controller::hold::Id;
use urtica_controller::{
    Background, EntryOptions, Network, Ports, Program, ProgramId, Switch, SwitchHandler, SwitchInfo,
};
use urtica_services::{Discovery, Flow, Host, Hosts, PortRole, Provisioner, Routes};
use urtica_topology::{Path, PortId};
use urtica_wire::packet::{Arp, Ipv4View, arp, ip_proto};
use urtica_wire::{
    Action, AsyncConfig, BufferId, DatapathId, List, MacAddr, Message, PacketIn, PacketOut, PortNo,
    Version,
};

/// The priority of entries: above programs that just forward.
const PRIORITY: u16 = 0x8800;

/// The seconds without a packet after which a flow's entries expire.
const IDLE_TIMEOUT_S: u16 = 60;

/// The interval at which waiting packets are checked.
const WAIT_INTERVAL: Duration = Duration::from_millis(100);

/// The interval at which flows are checked.
const SETTLE_INTERVAL: Duration = Duration::from_millis(500);

/// The number of requests for a next hop, and the time to answer each.
const ARP_ATTEMPTS: u32 = 3;
const ARP_TIMEOUT: Duration = Duration::from_millis(333);

/// The time for which a next hop that did not answer is not requested again.
const FAILURE_TIME: Duration = Duration::from_secs(3);

/// The maximum number of next hops that are being resolved or did not answer, of those for which packets from one port
/// wait, and of packets that wait for each.
const MAX_UNRESOLVED: usize = 1024;
const MAX_UNRESOLVED_PER_PORT: usize = 64;
const MAX_WAITING: usize = 32;

/// The limit of ICMP errors per second to a switch's hosts (RFC 1812 section 4.3.2.8).
pub(crate) const MAX_ERRORS_PER_S: u32 = 100;

/// The maximum number of flows with entries; the controller forwards the packets of others.
const MAX_FLOWS: usize = 1 << 17;

/// All events that switches report by default (1.3.5 section 7.3.10), and packets whose TTL expired.
pub(crate) const ALL_AND_EXPIRED: AsyncConfig = AsyncConfig {
    packet_in_mask: [0b111, 0],
    port_status_mask: [0b111, 0b111],
    flow_removed_mask: [0b1111, 0],
};

/// Options of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct L3Args {
    /// TOML file of the router's subnets and routes, with interfaces (address, mac) and routes (to, via).
    #[arg(long, value_name = "FILE")]
    pub l3_config: Option<PathBuf>,
}

/// The error of a configuration file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum L3Error {
    /// The file cannot be read.
    #[error("the subnets cannot be read from '{}': {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file is not a valid configuration.
    #[error("{}: {error}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// The problem.
        error: L3ConfigError,
    },
}

impl L3Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`L3Error`] if the file cannot be read or is invalid.
    pub fn from_file(file: &std::path::Path) -> Result<Self, L3Error> {
        let text = fs::read_to_string(file).map_err(|error| L3Error::Read {
            file: file.to_owned(),
            error,
        })?;
        text.parse().map_err(|error| L3Error::Config {
            file: file.to_owned(),
            error,
        })
    }
}

/// The program: cheap to clone.
#[derive(Clone)]
pub struct L3(Arc<L3State>);

struct L3State {
    config: L3Config,
    discovery: Discovery,
    hosts: Hosts,
    routes: Routes,
    state: Mutex<State>,
    /// The table of this program's entries on all switches, which is not the first one if a program filters.
    table_id: AtomicU8,
    /// The kernel half, if any.
    kernel: OnceLock<Arc<dyn L3Kernel>>,
    /// The id of this program in its controller, once that has started.
    program: OnceLock<ProgramId>,
}

struct State {
    paths: Paths<FlowKey>,
    /// The MAC addresses to which the entries of paths send.
    next_hops: BTreeMap<FlowKey, MacAddr>,
    unresolved: Unresolved,
}

impl L3 {
    /// Creates the program. The services must run in the same controller.
    pub fn new(
        discovery: &Discovery,
        hosts: &Hosts,
        routes: &Routes,
        provisioner: &Provisioner,
        config: L3Config,
    ) -> Self {
        Self(Arc::new(L3State {
            config,
            discovery: discovery.clone(),
            hosts: hosts.clone(),
            routes: routes.clone(),
            state: Mutex::new(State {
                paths: Paths::new(provisioner),
                next_hops: BTreeMap::new(),
                unresolved: Unresolved::default(),
            }),
            table_id: AtomicU8::new(0),
            kernel: OnceLock::new(),
            program: OnceLock::new(),
        }))
    }

    /// Answers simple packets in the kernel. No other program sees them, as if this one had consumed them: its services and
    /// later programs may run, but no earlier ones. Does nothing if hosts learn from
    /// [any packet](urtica_services::HostsConfig::learns_from_data), or have another [watcher](Hosts::watch).
    pub fn in_kernel(self, kernel: Arc<dyn L3Kernel>) -> Self {
        let (hosts, watcher) = (&self.0.hosts, Forgetting(Arc::clone(&kernel)));
        if !hosts.learns_from_data() && hosts.watch(Arc::new(watcher)) {
            let _ = self.0.kernel.set(kernel);
        }
        self
    }

    /// Returns the number of flows that have entries, or will have some.
    pub fn flows(&self) -> usize {
        self.0.state().paths.len()
    }
}

/// The program's options, and its kernel half.
#[derive(Default)]
pub(crate) struct L3Options {
    pub args: L3Args,
    pub kernel: Option<Arc<dyn L3Kernel>>,
}

/// Compares the options only: the kernel half is not a setting of the user.
impl PartialEq for L3Options {
    fn eq(&self, other: &Self) -> bool {
        self.args == other.args
    }
}

impl ProgramOptions for L3Options {
    fn files(&self) -> Vec<&std::path::Path> {
        self.args.l3_config.as_deref().into_iter().collect()
    }
}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<L3Options> = Row {
    about: About {
        forwards: Forwards::Only("packets from one subnet to another"),
        has_gateways: true,
        ..About::new(
            "l3",
            "routes between subnets; needs --l3-config; name it before programs that forward",
        )
    },
    add,
};

fn add(setup: &mut Setup, options: &L3Options) -> Result<(), String> {
    let file = options.args.l3_config.as_ref();
    let file = file.ok_or("it needs its subnets; expected --l3-config FILE")?;
    let config = L3Config::from_file(file).map_err(|error| error.to_string())?;
    if let Some(forwarder) = setup.forwarder_before() {
        return Err(format!(
            "{forwarder} would forward its packets first; expected l3 before {forwarder}"
        ));
    }
    if setup.is_named(Service::NeighbourProxy.name()) {
        return Err("the neighbour-proxy would consume requests for its gateways; expected l3 without neighbour-proxy".to_owned());
    }
    let (discovery, hosts) = (setup.discovery(), setup.hosts());
    let (routes, provisioner) = (setup.routes(), setup.provisioner());
    let l3 = L3::new(&discovery, &hosts, &routes, &provisioner, config);
    setup.add(match options.kernel.clone() {
        Some(kernel) => l3.in_kernel(kernel),
        None => l3,
    });
    Ok(())
}

impl Program for L3 {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(L3Handler::new(&self.0, None))
    }

    /// Resumes an earlier program's sessions, and keeps the facts that this program would report as well.
    fn resume_for_all(
        &self,
        info: &SwitchInfo,
        held: Id,
        _started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        let (shared, program) = (&self.0, *self.0.program.get()?);
        let mut session = shared
            .kernel
            .get()?
            .resume(info, held, program, &shared.hosts)?;
        session.begin();
        session.retain(&mut |fact| shared.is_so(info.datapath_id, fact));
        Some(Box::new(L3Handler::new(shared, Some(session))))
    }

    fn start(&self, background: &Background) {
        // The program serves the first controller.
        let _ = self.0.program.set(background.network().program());
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("l3", shared.resolve(own));
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("l3-paths", shared.keep_paths(own));
    }
}

impl L3State {
    /// Answers ARP requests for a gateway.
    fn answer(&self, switch: &mut Switch, packet: &PacketIn, asked: &Arp) {
        let at = PortId::new(switch.datapath_id(), packet.in_port);
        if asked.op != arp::REQUEST || asked.spa == asked.tpa || self.discovery.is_link_port(at) {
            return;
        }
        if let Some(interface) = self.interface_for(asked) {
            switch.consume();
            let reply = frames::arp_reply(interface, asked);
            send_frame(switch.network(), at, &reply);
        }
    }

    /// Returns `true` if a host claims the address of a gateway. Hosts that believe it would send it all packets to other
    /// subnets.
    fn claims_gateway(&self, claim: &Arp) -> bool {
        let gateway = self.config.by_address(claim.spa);
        gateway.is_some_and(|gateway| gateway.mac != claim.sha)
    }

    /// Returns the interface that answers a request: the one with the requested address, or, with proxy ARP, the requester's
    /// if the address is in another subnet.
    fn interface_for(&self, asked: &Arp) -> Option<&Interface> {
        if let Some(interface) = self.config.by_address(asked.tpa) {
            return Some(interface);
        }
        let near = self
            .config
            .by_subnet(asked.spa)
            .filter(|_| self.config.proxy_arp)?;
        let hop = self.config.next_hop(asked.tpa)?;
        (hop.interface != near).then_some(near)
    }

    /// Delivers or forwards a packet; if neither is possible, returns the reason.
    fn take(
        &self,
        network: &Network,
        now: Instant,
        handed: &Handed,
        packet: &Ipv4View,
    ) -> Result<(), Failure> {
        if self.config.by_address(packet.dst()).is_some() {
            return self.deliver(network, handed, packet);
        }
        if packet.ttl() <= 1 {
            return Err(Failure::TimeExceeded);
        }
        let hop = self
            .config
            .next_hop(packet.dst())
            .ok_or(Failure::NetUnreachable)?;
        if hop.interface.subnet.is_broadcast(hop.address) {
            return Ok(());
        }
        match self.hosts.find_ipv4(hop.address) {
            Some(host) => self.send_on(network, handed, packet, hop, &host),
            None => return self.wait(network, now, handed, hop),
        }
        Ok(())
    }

    /// Handles a packet to a gateway itself.
    fn deliver(
        &self,
        network: &Network,
        handed: &Handed,
        packet: &Ipv4View,
    ) -> Result<(), Failure> {
        if packet.proto() == ip_proto::UDP {
            return Err(Failure::PortUnreachable);
        }
        if let Some(reply) = frames::echo_reply(handed.gateway, handed.src, packet) {
            self.send_back(network, handed, &reply);
        }
        Ok(())
    }

    /// Sends an ICMP error to the packet's sender.
    fn tell(&self, network: &Network, handed: &Handed, packet: &Ipv4View, failure: Failure) {
        let error = frames::icmp_error(handed.gateway, handed.src, failure, packet, handed.bytes);
        if let Some(error) = error {
            self.send_back(network, handed, &error);
        }
    }

    /// Sends a frame to the sender of a packet. A switch inside the network may have sent a packet whose TTL expired.
    fn send_back(&self, network: &Network, handed: &Handed, frame: &[u8]) {
        let host = self.hosts.find_in(None, handed.src);
        send_frame(network, host.map_or(handed.at, |host| host.attached), frame);
    }

    /// Forwards a packet to its next hop, and sets up entries for the following ones.
    fn send_on(
        &self,
        network: &Network,
        handed: &Handed,
        packet: &Ipv4View,
        hop: NextHop,
        host: &Host,
    ) {
        if let Some(frame) = frames::forwarded(hop.interface, host.mac, packet) {
            send_frame(network, host.attached, &frame);
        }
        let key = handed.key(packet.dst());
        let near = self.hosts.find_in(None, handed.src);
        let Some(near) = near.filter(|near| near.attached == handed.at) else {
            return;
        };
        let mut state = self.state();
        if state.paths.get(&key).is_some() || state.paths.len() >= MAX_FLOWS {
            return;
        }
        if let Ok(path) = self.routes.path(near.attached, host.attached, key.hash()) {
            if counts_hops(network, &path) {
                let flow = self.flow(key, &path, hop.interface, host.mac);
                state.paths.insert(key, path, flow);
                state.next_hops.insert(key, host.mac);
            }
        }
    }

    /// Returns the host with this MAC address if it is at this port and has an address to probe.
    fn host_at(&self, at: PortId, mac: MacAddr) -> Option<L3Fact> {
        let host = self.hosts.find_in(None, mac)?;
        let is_there = host.attached == at && host.addresses().next().is_some();
        is_there.then_some(L3Fact::Host {
            mac,
            port: at.port_no,
        })
    }

    /// Returns the next hop for an address, if it is at a port of this switch and no packet waits for it.
    fn next_hop_at(&self, switch: DatapathId, address: Ipv4Addr) -> Option<L3Fact> {
        if self.config.by_address(address).is_some() {
            return None;
        }
        let hop = self.config.next_hop(address)?;
        let host = self.hosts.find_ipv4(hop.address)?;
        let is_here = host.vlan.is_none() && host.attached.switch == switch;
        let is_clear = is_here && !self.state().unresolved.is_waited_for(hop.address);
        is_clear.then_some(L3Fact::NextHop {
            address,
            port: host.attached.port_no,
            dst: host.mac,
            src: hop.interface.mac,
            is_owner: hop.address == address,
        })
    }

    /// Returns the next hop of packets to a host itself, if it is at this switch. From this fact, the next program learns the
    /// host's port.
    fn own_hop(&self, switch: DatapathId, mac: MacAddr) -> Option<L3Fact> {
        let host = self.hosts.find_in(None, mac)?;
        self.next_hop_at(switch, *host.ipv4s.first()?)
    }

    /// Returns `true` if a fact of this switch still holds.
    fn is_so(&self, switch: DatapathId, fact: L3Fact) -> bool {
        match fact {
            L3Fact::Gateway { address, .. } => {
                let gateway = self.config.by_address(address);
                gateway.map(Interface::fact) == Some(fact)
            }
            L3Fact::Host { mac, port } => {
                self.host_at(PortId::new(switch, port), mac) == Some(fact)
            }
            L3Fact::NextHop { address, .. } => self.next_hop_at(switch, address) == Some(fact),
            L3Fact::Flow { src, gateway, dst } => {
                let key = FlowKey { src, gateway, dst };
                self.state().paths.get(&key).is_some()
            }
        }
    }

    /// Makes the kernel half forget the facts of a path's first switch, which may be outdated.
    fn forget(&self, path: &Path) {
        if let (Some(kernel), Some(begin)) = (self.kernel.get(), path.begin()) {
            kernel.forget(begin.switch);
        }
    }

    /// Returns the entries of a flow, whose last switch rewrites packets like [`frames::forwarded`].
    fn flow(&self, key: FlowKey, path: &Path, interface: &Interface, next: MacAddr) -> Flow {
        let rewrite = vec![
            Action::DecNwTtl,
            Action::set_eth_src(interface.mac),
            Action::set_eth_dst(next),
        ];
        Flow::new(path.clone(), key.match_())
            .options(EntryOptions::idle(IDLE_TIMEOUT_S).priority(PRIORITY))
            .table(self.table_id.load(Ordering::Relaxed))
            .at_egress(rewrite)
    }

    /// Keeps a packet until its next hop is resolved. Drops excess packets.
    fn wait(
        &self,
        network: &Network,
        now: Instant,
        handed: &Handed,
        hop: NextHop,
    ) -> Result<(), Failure> {
        let lookup = self.state().unresolved.wait(hop.address, handed, now);
        match lookup {
            Lookup::New => self.ask(network, hop),
            Lookup::Known => {}
            Lookup::Failed => return Err(Failure::HostUnreachable),
        }
        Ok(())
    }

    /// Requests a next hop at all host ports.
    fn ask(&self, network: &Network, hop: NextHop) {
        let request = frames::arp_request(hop.interface, hop.address);
        let tree = self.discovery.flood_tree().load();
        for switch in network.switches() {
            let ports = network
                .info(switch)
                .map_or_else(Ports::default, |info| info.ports.clone());
            let ports = ports.iter().map(|port| PortId::new(switch, port.port_no));
            let of_hosts = ports.filter(|port| {
                matches!(
                    tree.role(*port),
                    Some(PortRole::Host | PortRole::Unclassified)
                )
            });
            send_frame_to_all(network, switch, of_hosts.map(|port| port.port_no), &request);
        }
    }

    /// Forwards waiting packets whose next hop was resolved, repeats requests, and gives up after the last.
    async fn resolve(self: Arc<Self>, background: Background) {
        let mut events = self.hosts.events();
        loop {
            let _ = background.timeout(WAIT_INTERVAL, events.next()).await;
            while events.try_next().is_some() {}
            self.look_at_waiting(background.network(), background.now());
        }
    }

    fn look_at_waiting(&self, network: &Network, now: Instant) {
        let addresses = self.state().unresolved.addresses();
        for address in addresses {
            let Some(hop) = self.config.next_hop(address) else {
                continue;
            };
            if let Some(host) = self.hosts.find_ipv4(address) {
                let waiting = self.state().unresolved.remove(address);
                unresolved::each(waiting, |handed, packet| {
                    self.send_on(network, handed, packet, hop, &host);
                });
                continue;
            }
            let due = self.state().unresolved.take_due(address, now);
            match due {
                Due::Nothing => {}
                Due::Request => self.ask(network, hop),
                Due::Failure(waiting) => unresolved::each(waiting, |handed, packet| {
                    self.tell(network, handed, packet, Failure::HostUnreachable);
                }),
            }
        }
    }

    /// Removes paths that are no longer valid. A flow's next packet gets another path.
    async fn keep_paths(self: Arc<Self>, background: Background) {
        let mut seen = 0;
        loop {
            let changed = self.discovery.topology().changed(seen);
            if let Some(version) = background.timeout(SETTLE_INTERVAL, changed).await {
                seen = version;
            }
            let state = &mut *self.state();
            state.paths.settle_each(|path| self.forget(path));
            let paths = state.paths.iter();
            let wrong: Vec<_> = paths
                .filter(|(key, path)| !self.is_right(key, path, state.next_hops.get(key)))
                .inspect(|(_, path)| self.forget(path))
                .map(|(key, _)| *key)
                .collect();
            for key in wrong {
                state.paths.remove(&key);
            }
            state
                .next_hops
                .retain(|key, _| state.paths.get(key).is_some());
        }
    }

    /// Returns `true` if a path's links exist, its hosts are at its ends, and its next hop has this MAC address.
    fn is_right(&self, key: &FlowKey, path: &Path, mac: Option<&MacAddr>) -> bool {
        let near = self.hosts.find_in(None, key.src).map(|host| host.attached);
        let hop = self.config.next_hop(key.dst);
        let next = hop.and_then(|hop| self.hosts.find_ipv4(hop.address));
        let is_next =
            next.is_some_and(|next| Some(next.attached) == path.end() && Some(&next.mac) == mac);
        is_in(path, &self.discovery.topology().load()) && near == path.begin() && is_next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Returns `true` if all switches of a path can decrement TTLs.
fn counts_hops(network: &Network, path: &Path) -> bool {
    path.hops.iter().all(|hop| {
        let info = network.info(hop.switch);
        info.is_some_and(|info| info.version != Version::Of10)
    })
}

fn send_frame(network: &Network, port: PortId, frame: &[u8]) {
    send_frame_to_all(network, port.switch, [port.port_no], frame);
}

fn send_frame_to_all(
    network: &Network,
    switch: DatapathId,
    ports: impl IntoIterator<Item = PortNo>,
    frame: &[u8],
) {
    let actions: Vec<_> = ports.into_iter().map(Action::output).collect();
    if actions.is_empty() {
        return;
    }
    let message = Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::CONTROLLER,
        actions: List::from(actions),
        data: frame,
    });
    if let Err(error) = network.send(switch, &message) {
        urtica_log::debug!(about: switch, dp_id = %switch, %error, "cannot send a packet");
    }
}
