//! Link discovery: which switches and ports exist, and which ports are connected by links.
//!
//! **What.** [`Discovery`] is a program that sends LLDP frames out of every port and watches where they arrive. It maintains
//! a [`Topology`] for path computation, publishes events when it changes, and makes flooding safe in networks with loops
//! (`flooding.rs`). [docs/discovery.md](../../../docs/discovery.md) describes it for users.
//!
//! **How.**
//!
//! ```text
//!  handlers, on their switch's shard                       in the background
//!  switch up, port up ──► Links ──► probes, at once
//!  LLDP ──► Prober::read ──► Links ──► probe back           timers ──► Links ──► regular probes
//!                              │
//!                              └── news ──► wakeup ────────► findings ──► Topology, FloodTree, then events
//! ```
//!
//! Probes for the switch whose message is being handled are sent with its other replies, in one write: once the last switch has
//! come up, all links are known after two round trips of a frame between switch and controller. One background program
//! publishes all findings together: a burst of changes costs one topology, not one per change. Between two publications it
//! waits [`PUBLISH_PAUSE_PER_PORT`] per port, so that a large network that is starting does not spend its time building
//! topologies.
//!
//! **Cost.** A packet-in that is not LLDP: one comparison. A probe that confirms a known link: checking its authenticator,
//! one lock, a few look-ups. A publication: building the topology and the spanning tree, about 100 ns per link.
//!
//! **Thread-safety.** One lock guards `Links`. It is held while one message or one round of timers is handled, and no other
//! code is called under it. Readers of snapshots and events never wait for it.

mod config;
mod damping;
mod event;
mod links;
mod probe;

pub use config::{DiscoveryConfig, HostLldp};
pub use damping::DampingConfig;
use event::count;
pub use event::{DiscoveryCounters, DiscoveryEvent, DownReason, Refusal};

use crate::bucket::PortBuckets;
use crate::flooding::{FloodTree, LatestTree, PortRole, packet_out};
use crate::notify::Notify;
use crate::offload::{LinkProbe, Offload, ServiceOffload};
use links::{Findings, Links, Owner};
use parking_lot::Mutex;
use probe::{Probe, Prober, Sighting};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use urtica_controller::{
    Background, Broadcast, Events, Network, Program, Stage, Switch, SwitchHandler, SwitchInfo,
};
use urtica_state::Snapshot;
use urtica_topology::{PortId, SpanningTree, Topology};
use urtica_wire::packet::{ether_type, lldp};
use urtica_wire::{Action, DatapathId, EntryOptions, Match, PacketIn, Port, PortStatus};

/// The minimum pause between two publications, per port of the network. It is about ten times the time to build the topology,
/// so publishing never uses more than a tenth of a core.
pub const PUBLISH_PAUSE_PER_PORT: Duration = Duration::from_micros(1);

/// The upper limit of every duration in the configuration.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of LLDP frames per second that are examined from each port, in addition to the probes from the port at the
/// other end of its link. A port that exceeds this limit does not affect other ports.
const LLDP_RATE_PER_PORT: u32 = 100;

/// Maximum number of LLDP frames that are examined from each port in a burst.
const LLDP_BURST_PER_PORT: u32 = 200;

/// Higher than the priority of any program's entries, so that they cannot hide links.
const ENTRY_PRIORITY: u16 = u16::MAX;

/// Link discovery: a program, and a handle to its results. Cheap to clone. See the module's documentation.
///
/// ```
/// use urtica_services::{Discovery, DiscoveryConfig};
/// use urtica_controller::{Controller, SwitchHandler, SwitchInfo};
///
/// struct Silent;
/// impl SwitchHandler for Silent {}
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let discovery = Discovery::new(DiscoveryConfig::default());
/// let topology = discovery.clone();
/// let controller = Controller::new()
///     .program(discovery)
///     .program(move |_: &SwitchInfo| {
///         println!("{} links", topology.topology().load().directed_links().len());
///         Silent
///     })
///     .embed()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Discovery(Arc<DiscoveryState>);

struct DiscoveryState {
    config: DiscoveryConfig,
    prober: Prober,
    topology: Snapshot<Topology>,
    flood_tree: Arc<Snapshot<FloodTree>>,
    events: Broadcast<DiscoveryEvent>,
    counters: DiscoveryCounters,
    wakeup: Notify,
    last_owner: AtomicU64,
    /// The offload that settles probes of known links, if any.
    offload: Offload,
    /// Set when the controller starts.
    active: OnceLock<Active>,
}

/// The parts that exist once the controller has started.
struct Active {
    background: Background,
    links: Mutex<Links>,
}

impl Discovery {
    /// Creates the link discovery of one controller.
    ///
    /// # Panics
    /// If the system has no random bytes and the configuration has no secret.
    pub fn new(config: DiscoveryConfig) -> Self {
        let config = config.sound();
        let secret = config.secret.unwrap_or_else(random_secret);
        let ttl_s = config.timeout().as_secs_f64().ceil() as u16;
        Self(Arc::new(DiscoveryState {
            prober: Prober::new(&secret, ttl_s.max(1)),
            config,
            topology: Snapshot::new(Topology::default()),
            flood_tree: Arc::new(Snapshot::new(FloodTree::default())),
            events: Broadcast::new(DiscoveryEvent::Missed),
            counters: DiscoveryCounters::default(),
            wakeup: Notify::default(),
            last_owner: AtomicU64::new(0),
            offload: Offload::new(),
            active: OnceLock::new(),
        }))
    }

    /// Sets the offload that settles probes of known links. Call this before the controller starts; later calls have no
    /// effect.
    pub fn offload(&self, offload: Arc<dyn ServiceOffload>) {
        let _ = self.0.offload.set(offload);
    }

    /// Returns the switches and links; a link is included once both its ends have received each other's probes.
    pub fn topology(&self) -> &Snapshot<Topology> {
        &self.0.topology
    }

    /// Returns the ports to which each switch floods, and the role of each port.
    pub fn flood_tree(&self) -> &Snapshot<FloodTree> {
        &self.0.flood_tree
    }

    /// Floods a frame without using any link: sends it out of the host ports of all these switches, except the ingress port.
    /// This costs one packet-out per switch and no packet-in. Does nothing if the ingress port does not accept flooded packets
    /// ([`FloodTree::is_open`]).
    pub fn flood(
        &self,
        network: &Network,
        from: PortId,
        frame: &[u8],
        to: impl Fn(DatapathId) -> bool,
    ) {
        let tree = self.0.flood_tree.load();
        if tree.accepts(from) {
            tree.send_to_hosts(network, from, frame, to);
        }
    }

    /// Returns `true` if both are clones of one service.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the events from now on. The topology is always at least as new as the event.
    pub fn events(&self) -> Events<DiscoveryEvent> {
        self.0.events.subscribe()
    }

    /// Returns the counters. Probes that were [settled elsewhere](Discovery::offload) are counted there
    /// ([`SettledCounts`](crate::SettledCounts)).
    pub fn counters(&self) -> &DiscoveryCounters {
        &self.0.counters
    }

    /// Returns the role of a port; `None` if it is down or does not exist.
    ///
    /// To query many ports, load [`Discovery::flood_tree`] once.
    pub fn port_role(&self, port: PortId) -> Option<PortRole> {
        self.0.flood_tree.load().role(port)
    }

    /// Returns `true` if another switch is behind a port, even if the link is not up.
    pub fn is_link_port(&self, port: PortId) -> bool {
        matches!(
            self.port_role(port),
            Some(PortRole::Link | PortRole::Blocked)
        )
    }

    /// Returns `true` if a port has been classified as a host port: no switch is behind it. `false` for a port that has just
    /// come up.
    pub fn is_host_port(&self, port: PortId) -> bool {
        self.port_role(port) == Some(PortRole::Host)
    }

    /// Probes a host port at once because its classification is in doubt: a host appears there that was at another port. Either
    /// the host has moved, or packets loop over a link that carried no probes for a while.
    ///
    /// At most ten times per second and port. Does nothing for other ports.
    pub fn doubt(&self, port: PortId) {
        let Some(active) = self.0.active.get() else {
            return;
        };
        let now = active.background.now();
        if active.with_links(|links| links.handle_doubt(port, now)) {
            self.0.wakeup.notify();
        }
    }
}

fn random_secret() -> [u8; 32] {
    let mut secret = [0; 32];
    rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
        .expect("the system has random bytes");
    secret
}

impl Program for Discovery {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        let owner = self.0.last_owner.fetch_add(1, Ordering::Relaxed) + 1;
        Box::new(Handler {
            discovery: Arc::clone(&self.0),
            switch: info.datapath_id,
            owner: Owner(owner),
            is_up: false,
            frames: PortBuckets::new(self.0.config.lldp_rate_per_port(), LLDP_BURST_PER_PORT),
        })
    }

    fn start(&self, background: &Background) {
        let (shared, background) = (Arc::clone(&self.0), background.clone());
        let is_free = shared.active.get().is_none();
        if !is_free
            || !background
                .network()
                .flood_by(Arc::new(LatestTree(shared.flood_tree.clone())))
        {
            return tracing::error!(
                "a controller can have one Discovery, and a Discovery one controller; not running this one"
            );
        }
        let links = Links::new(shared.config.clone(), background.now())
            .with_offload(shared.offload.get().cloned());
        shared.active.get_or_init(|| Active {
            background: background.clone(),
            links: Mutex::new(links),
        });
        background
            .clone()
            .spawn("discovery", async move { shared.run(background).await });
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// The handler of one switch: passes its input to `Links`, and sends the resulting probes for this switch at once.
struct Handler {
    discovery: Arc<DiscoveryState>,
    switch: DatapathId,
    owner: Owner,
    is_up: bool,
    /// Limits the LLDP frames that are examined from each port.
    frames: PortBuckets,
}

impl SwitchHandler for Handler {
    fn switch_up(&mut self, switch: &mut Switch) {
        if self.discovery.config.installs_entry {
            install_entry(switch);
        }
        let (id, owner, ports) = (self.switch, self.owner, all_ports(switch));
        self.tell(switch, |links, now| {
            links.handle_switch_up(id, owner, &ports, now)
        });
        self.is_up = true;
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        if packet.eth_type() == ether_type::LLDP {
            self.handle_lldp(switch, packet);
        }
    }

    fn settled(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.packet_in(switch, packet);
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        let (id, owner, port) = (self.switch, self.owner, &status.port);
        // A switch has at most the ports that its session accepts, whatever it reports.
        let is_there = switch.info().port(port.port_no).is_some();
        if !is_there {
            self.frames.forget(port.port_no);
        }
        self.tell(switch, |links, now| match is_there {
            false => links.handle_port_removed(id, owner, port.port_no, now),
            true => links.handle_port(id, owner, port, now),
        });
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        let (id, owner) = (info.datapath_id, self.owner);
        self.discovery
            .tell(|links, now| links.handle_switch_down(id, owner, now));
    }
}

impl Handler {
    #[cold]
    fn handle_lldp(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let is_there = switch.info().port(packet.in_port).is_some();
        if !is_there || !self.frames.take(packet.in_port, switch.now()) {
            count(&self.discovery.counters.overrun, 1);
            return switch.consume();
        }
        let (shared, owner) = (&self.discovery, self.owner);
        let at = PortId::new(self.switch, packet.in_port);
        match shared.prober.read(packet.data) {
            Some(Sighting::Probe { from, stamp }) => {
                count(&shared.counters.probes_received, 1);
                switch.consume();
                self.tell(switch, |links, now| {
                    links.handle_probe(owner, at, from, stamp, now);
                });
            }
            Some(Sighting::Forged { claimed }) => {
                count(&shared.counters.forged, 1);
                switch.consume();
                self.tell(switch, |links, now| {
                    links.handle_forged(owner, at, claimed, now);
                });
            }
            Some(Sighting::Foreign) | None => {
                count(&shared.counters.foreign, 1);
                if shared.config.host_lldp == HostLldp::Drop {
                    switch.consume();
                }
            }
        }
    }

    /// Reports a change at the switch, and sends the resulting probes.
    ///
    /// If no connection represents the switch although it is up, this one does from now on: if two connections with one
    /// datapath id come up together, the closed one may report last.
    fn tell(&self, switch: &mut Switch, what: impl FnOnce(&mut Links, Instant)) {
        let (id, owner) = (self.switch, self.owner);
        let probes = self.discovery.tell(|links, now| {
            if self.is_up && !links.knows(id) {
                links.handle_switch_up(id, owner, &all_ports(switch), now);
            }
            what(links, now);
        });
        count(&self.discovery.counters.probes_sent, probes.len());
        for probe in &probes {
            let frame = self.discovery.frame(probe);
            // Fails for a port without a number in 1.0; such a port was never reported.
            let _ = switch.send(&packet_out(&frame, &[Action::output(probe.from.port_no)]));
        }
    }
}

fn all_ports(switch: &Switch) -> Vec<Port> {
    switch.info().ports.iter().copied().collect()
}

/// Installs the entry that sends LLDP to the controller, whatever entries other programs install.
fn install_entry(switch: &mut Switch) {
    let lldp = Match::any()
        .eth_type(ether_type::LLDP)
        .eth_dst(lldp::NEAREST_BRIDGE);
    let options = EntryOptions::PERMANENT.priority(ENTRY_PRIORITY);
    // Both versions have all of these.
    let _ = switch.install(lldp, &[Action::controller()], options);
}

impl DiscoveryState {
    /// Reports a change; returns the resulting probes, which are all for the switch where it happened.
    fn tell(&self, what: impl FnOnce(&mut Links, Instant)) -> Vec<Probe> {
        let Some(active) = self.active.get() else {
            return Vec::new();
        };
        let now = active.background.now();
        let (probes, has_news) = active.with_links(|links| {
            what(links, now);
            (links.poll_probes(), links.has_news())
        });
        if has_news {
            self.wakeup.notify();
        }
        probes
    }

    /// Returns the frame of a probe that is about to be sent.
    fn frame(&self, probe: &Probe) -> Vec<u8> {
        let frame = self.prober.frame(probe);
        if let (Some(offload), Some(at)) = (self.offload.get(), probe.confirms_at) {
            let (from, stamp) = (probe.from, probe.stamp);
            offload.expect_probe(at, LinkProbe { from, stamp }, &frame);
        }
        frame
    }

    /// Runs the background program: timers and publishing.
    async fn run(&self, background: Background) {
        let mut next_publication = background.now();
        loop {
            let due = self.take_turn(&background, &mut next_publication);
            match due {
                Some(due) => {
                    let pause = due.saturating_duration_since(background.now());
                    background.timeout(pause, self.wakeup.notified()).await;
                }
                None => self.wakeup.notified().await,
            }
        }
    }

    /// Handles all due work, and waits until more is due.
    fn take_turn(
        &self,
        background: &Background,
        next_publication: &mut Instant,
    ) -> Option<Instant> {
        let active = self.active.get()?;
        let now = background.now();
        let (probes, news, due) = active.with_links(|links| {
            links.handle_timeout(now);
            let mut news = None;
            if links.has_news() && *next_publication <= now {
                *next_publication = now + PUBLISH_PAUSE_PER_PORT * links.port_count() as u32;
                news = Some((links.poll_findings(), links.poll_events()));
            }
            let publication = links.has_news().then_some(*next_publication);
            let due = publication.into_iter().chain(links.poll_timeout()).min();
            (links.poll_probes(), news, due)
        });
        self.send_all(background, &probes);
        if let Some((findings, events)) = news {
            self.publish(findings, events);
        }
        due
    }

    fn send_all(&self, background: &Background, probes: &[Probe]) {
        count(&self.counters.probes_sent, probes.len());
        for probe in probes {
            let (switch, port_no) = (probe.from.switch, probe.from.port_no);
            let frame = self.frame(probe);
            // Fails if the switch has disconnected, which will be reported soon, or if its send queue is full. Then this probe
            // counts as missed.
            let _ = background
                .network()
                .send(switch, &packet_out(&frame, &[Action::output(port_no)]));
        }
    }

    /// Publishes the findings, then the events.
    fn publish(&self, findings: Option<Findings>, events: VecDeque<DiscoveryEvent>) {
        if let Some(findings) = findings {
            count(&self.counters.publications, 1);
            if let Some(links) = findings.links {
                self.topology
                    .publish(Topology::new(findings.switches, links));
            }
            let tree = SpanningTree::new(&self.topology.load());
            self.flood_tree
                .publish(FloodTree::new(&tree, &findings.ports));
        }
        for event in events {
            log(&event);
            self.events.send(event);
        }
    }
}

impl Active {
    /// Locks the state. If a panic left it half changed, it is used nevertheless: probes and time-outs correct it.
    fn with_links<R>(&self, work: impl FnOnce(&mut Links) -> R) -> R {
        work(&mut self.links.lock())
    }
}

fn log(event: &DiscoveryEvent) {
    match event {
        DiscoveryEvent::SwitchUp(_) | DiscoveryEvent::SwitchDown(_) | DiscoveryEvent::Missed(_) => {
        }
        DiscoveryEvent::LinkUp(link) => urtica_log::debug!(about: link, %link, "link up"),
        DiscoveryEvent::LinkDown { link, reason } => {
            urtica_log::debug!(about: link, %link, ?reason, "link down")
        }
        DiscoveryEvent::OneWay(link) => {
            urtica_log::warn!(about: link, %link, "probes arrive in this direction only; not using the link until they arrive in both");
        }
        DiscoveryEvent::Flapping { link, held_for } => {
            urtica_log::warn!(about: link, %link, ?held_for, "link is flapping; holding it down");
        }
        DiscoveryEvent::Refused {
            at,
            claimed,
            refusal,
            count,
        } => {
            urtica_log::warn!(about: at, %at, ?claimed, ?refusal, count, "refused a frame that would have created a link");
        }
    }
}
