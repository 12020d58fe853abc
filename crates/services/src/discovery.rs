//! Link discovery: which switches and ports there are, and which ports links connect.
//!
//! **What.** [`Discovery`] is a program that sends LLDP frames out of every port and watches where they come in. It
//! keeps a [`Topology`] for all who look for paths, tells what changes, and makes flooding safe where links form loops
//! (`flooding.rs`). [docs/discovery.md](../../../docs/discovery.md) is the same for users.
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
//! What is to be sent to the switch whose message is handled leaves with its other replies, in the same write: after the last
//! switch came up, all links are known after two trips of a frame between switch and controller. What was found out is published by
//! one program in the background, which takes all that has gathered: a burst of changes costs one topology, not one each.
//! Between two publications it waits [`PUBLISH_PAUSE_PER_PORT`] for each port, so that large networks that come up do
//! not spend their time making topologies.
//!
//! **Cost.** A packet-in that is no LLDP: one comparison. A probe that confirms what is known: checking its authenticator, one
//! lock, a few look-ups. A publication: building the topology and the spanning tree, some 100 ns a link.
//!
//! **Thread-safety.** One lock around `Links`, held for one message or one round of timers; nothing else is called under it.
//! Readers of the snapshots and of events never wait for it.

mod damping;
mod links;
mod probe;

pub use damping::DampingConfig;

use crate::bucket::PortBuckets;
use crate::flooding::{FloodTree, LatestTree, PortRole, packet_out};
use crate::notify::Notify;
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
use urtica_topology::{DirectedLink, PortId, SpanningTree, Topology};
use urtica_wire::packet::{ether_type, lldp};
use urtica_wire::{Action, DatapathId, EntryOptions, Match, PacketIn, Port, PortStatus};

/// How long at least lies between two publications, for each port of the network: some ten times what making the topology
/// takes, so that it never takes more than a tenth of a core.
pub const PUBLISH_PAUSE_PER_PORT: Duration = Duration::from_micros(1);

/// No time in a configuration is longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How many LLDP frames a second are looked at from each port, beside the probes of the port at the other end of its
/// cable. What is beyond costs nobody but its own port anything.
const LLDP_RATE_PER_PORT: u32 = 100;

/// How many LLDP frames are looked at from each port at once.
const LLDP_BURST_PER_PORT: u32 = 200;

/// Above all entries that programs install, so that none of them hides links.
const ENTRY_PRIORITY: u16 = u16::MAX;

/// How discovery goes about it. The default is for networks that have nothing special. Times longer than a day count as a
/// day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// The key of the authenticator in probes. `None`, the default, takes one from the system at the start, so that nobody
    /// knows it. A fixed one is for simulations, whose runs shall be the same to the byte.
    pub secret: Option<[u8; 32]>,
    /// How often each port sends a probe while nothing happens. 5 s by default; at least a millisecond.
    pub probe_interval: Duration,
    /// After how many probes that did not come a link is dead. 3 by default; 1 to 1,000. A port or switch that goes down takes its links
    /// along at once.
    pub missed_probes: u32,
    /// How long a port that came up must be quiet to be taken for a host's, and flooded to. 0.3 s by default.
    pub settle_time: Duration,
    /// When links count as flapping, and what is done about it.
    pub damping: DampingConfig,
    /// Whether a port that was taken for a host's stays one until it has been down. Off by default, since a switch that
    /// connects late is then not found behind it. On, a host cannot become a link by relaying probes unless it does so
    /// from the moment on at which it is plugged in; a port where one is refused is [blocked](PortRole::Blocked).
    pub refuse_late_links: bool,
    /// What becomes of other stations' LLDP.
    pub host_lldp: HostLldp,
    /// Whether each switch gets an entry of the highest priority that sends LLDP to the controller. On by default: without it,
    /// an entry of some program that matches LLDP hides links.
    pub installs_entry: bool,
}

/// What becomes of LLDP that is not ours, after it was counted. In either case it is no sign of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLldp {
    /// Other programs see it: whoever wants to know what hosts say of themselves.
    #[default]
    Pass,
    /// Nobody sees it.
    Drop,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self {
            secret: None,
            probe_interval: Duration::from_secs(5),
            missed_probes: 3,
            settle_time: Duration::from_millis(300),
            damping: DampingConfig::default(),
            refuse_late_links: false,
            host_lldp: HostLldp::default(),
            installs_entry: true,
        }
    }
}

impl DiscoveryConfig {
    /// How long after the last probe a link is dead: when the last of those that may be missed is half an interval late.
    fn timeout(&self) -> Duration {
        self.probe_interval * self.missed_probes + self.probe_interval / 2
    }

    /// How many LLDP frames a second are looked at from each port: with short intervals, a neighbour sends many.
    fn lldp_rate_per_port(&self) -> u32 {
        let probes = 1.0 / self.probe_interval.as_secs_f64();
        LLDP_RATE_PER_PORT + 2 * probes.ceil() as u32
    }

    /// As it is used: no time is so short that timers never rest, or so long that there is no such time.
    fn sound(self) -> Self {
        let DampingConfig {
            max_ups,
            window,
            first_hold,
            max_hold,
        } = self.damping;
        Self {
            probe_interval: self.probe_interval.clamp(Duration::from_millis(1), LONGEST),
            missed_probes: self.missed_probes.clamp(1, 1000),
            settle_time: self.settle_time.min(LONGEST),
            damping: DampingConfig {
                max_ups,
                window: window.min(LONGEST),
                first_hold: first_hold.min(LONGEST),
                max_hold: max_hold.min(LONGEST),
            },
            ..self
        }
    }
}

/// Something that discovery has found out. The topology shows it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryEvent {
    /// A switch joined; its links follow.
    SwitchUp(DatapathId),
    /// A switch left; its links went before.
    SwitchDown(DatapathId),
    /// A link is there. There is one for each way, always both together.
    LinkUp(DirectedLink),
    /// A link is gone, and the one the other way with it.
    LinkDown {
        /// Which.
        link: DirectedLink,
        /// Why.
        reason: DownReason,
    },
    /// Probes come through this way and not the other: it is no link until they do.
    OneWay(DirectedLink),
    /// A link comes up too often; it is held down for a while. Named by its lower end.
    Flapping {
        /// Which.
        link: DirectedLink,
        /// For how long.
        held_for: Duration,
    },
    /// A frame was refused that would have made a link. Told once a second at most for each port.
    Refused {
        /// Where it came in.
        at: PortId,
        /// The port that it claims to have left by, where that can be read.
        claimed: Option<PortId>,
        /// Why.
        refusal: Refusal,
        /// How many were refused at this port since it came up.
        count: u64,
    },
    /// So many events were lost to this reader, who did not take them in time. What it knows is to be learnt anew from
    /// the topology.
    Missed(u64),
}

/// Why a link is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DownReason {
    /// The port at one end went down or was removed.
    Port,
    /// The switch at one end left.
    Switch,
    /// Probes did not come through any more.
    TimedOut,
    /// One end's probes come in elsewhere: the cable was plugged in there.
    Moved,
}

/// Why a frame that would have made a link was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It is no probe of ours: it is forged.
    Authenticator,
    /// It came back in at the port that it had left by: a host sent it back, or the link ends in a loop.
    Reflected,
    /// It was sent too long ago: it is replayed.
    Replayed,
    /// It has come in at another port: a host relayed it, or something between the ports repeats frames.
    Duplicated,
    /// The port was a host's ([`DiscoveryConfig::refuse_late_links`]).
    Late,
}

/// What is counted. Any thread adds to it.
#[derive(Debug, Default)]
pub struct DiscoveryCounters {
    probes_sent: AtomicU64,
    probes_received: AtomicU64,
    forged: AtomicU64,
    foreign: AtomicU64,
    overrun: AtomicU64,
    publications: AtomicU64,
}

impl DiscoveryCounters {
    /// Probes that were sent.
    pub fn probes_sent(&self) -> u64 {
        self.probes_sent.load(Ordering::Relaxed)
    }

    /// Probes that came in, and were ours.
    pub fn probes_received(&self) -> u64 {
        self.probes_received.load(Ordering::Relaxed)
    }

    /// Frames that pretended to be probes.
    pub fn forged(&self) -> u64 {
        self.forged.load(Ordering::Relaxed)
    }

    /// Other stations' LLDP frames.
    pub fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    /// LLDP frames that were dropped unread: there were too many from their port, or their switch has no such port.
    pub fn overrun(&self) -> u64 {
        self.overrun.load(Ordering::Relaxed)
    }

    /// How often something new was published.
    pub fn publications(&self) -> u64 {
        self.publications.load(Ordering::Relaxed)
    }
}

fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

/// Link discovery: a program, and a handle to what it finds out. Cheap to clone. See the module.
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
pub struct Discovery(Arc<Shared>);

struct Shared {
    config: DiscoveryConfig,
    prober: Prober,
    topology: Snapshot<Topology>,
    flood_tree: Arc<Snapshot<FloodTree>>,
    events: Broadcast<DiscoveryEvent>,
    counters: DiscoveryCounters,
    wakeup: Notify,
    last_owner: AtomicU64,
    /// From the start on.
    active: OnceLock<Active>,
}

/// What there is once the controller has started.
struct Active {
    background: Background,
    links: Mutex<Links>,
}

impl Discovery {
    /// A discovery for one controller.
    ///
    /// # Panics
    /// If the system has no random bytes and the configuration has no secret.
    pub fn new(config: DiscoveryConfig) -> Self {
        let config = config.sound();
        let secret = config.secret.unwrap_or_else(random_secret);
        let ttl_s = config.timeout().as_secs_f64().ceil() as u16;
        Self(Arc::new(Shared {
            prober: Prober::new(&secret, ttl_s.max(1)),
            config,
            topology: Snapshot::new(Topology::default()),
            flood_tree: Arc::new(Snapshot::new(FloodTree::default())),
            events: Broadcast::new(DiscoveryEvent::Missed),
            counters: DiscoveryCounters::default(),
            wakeup: Notify::default(),
            last_owner: AtomicU64::new(0),
            active: OnceLock::new(),
        }))
    }

    /// The switches and links: those whose ends have heard each other.
    pub fn topology(&self) -> &Snapshot<Topology> {
        &self.0.topology
    }

    /// Where flooded packets go, and what is behind each port.
    pub fn flood_tree(&self) -> &Snapshot<FloodTree> {
        &self.0.flood_tree
    }

    /// Floods a frame without taking a link: sends it out of all hosts' ports of these switches, but for the port that it came in by.
    /// That costs a packet-out a switch, and no packet-in. Nothing is sent where that port is one that flooded packets may not come
    /// in by ([`FloodTree::is_open`]).
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

    /// What happens from now on. The topology is always at least as new as the event.
    pub fn events(&self) -> Events<DiscoveryEvent> {
        self.0.events.subscribe()
    }

    /// What is counted.
    pub fn counters(&self) -> &DiscoveryCounters {
        &self.0.counters
    }

    /// What is behind a port; `None` if it is down or not there.
    ///
    /// To ask for many ports, load [`Discovery::flood_tree`] once.
    pub fn port_role(&self, port: PortId) -> Option<PortRole> {
        self.0.flood_tree.load().role(port)
    }

    /// Whether another switch is behind a port, also where the link is not up.
    pub fn is_link_port(&self, port: PortId) -> bool {
        matches!(
            self.port_role(port),
            Some(PortRole::Link | PortRole::Blocked)
        )
    }

    /// Whether a port has been classified as having no switch behind it. A port that came up lately is neither.
    pub fn is_host_port(&self, port: PortId) -> bool {
        self.port_role(port) == Some(PortRole::Host)
    }

    /// Has a host's port be probed at once, where something speaks against what it was classified as: a host comes in there
    /// that was at another port. It may have moved, or packets loop over a link that carried no probes for a while.
    ///
    /// At most ten times a second for each port; elsewhere it does nothing.
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
                "a controller takes one Discovery, and a Discovery serves one controller; this one does not run"
            );
        }
        let links = Links::new(shared.config.clone(), background.now());
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

/// One switch's part: hands over what it hears, and sends what is to be sent there at once.
struct Handler {
    discovery: Arc<Shared>,
    switch: DatapathId,
    owner: Owner,
    is_up: bool,
    /// How many LLDP frames each port may send.
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

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        let (id, owner, port) = (self.switch, self.owner, &status.port);
        // A switch has no more ports than the session takes, whatever it tells of.
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

    /// Tells what happened at the switch, and sends the probes that it calls for.
    ///
    /// Where nobody speaks for the switch though it is up, this connection does from now on: of two with one datapath id
    /// that come up together, the one that is closed may be the last to say so.
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
            let frame = self.discovery.prober.frame(probe);
            // Fails for a port that 1.0 has no number for, and such a port has not been reported.
            let _ = switch.send(&packet_out(&frame, &[Action::output(probe.from.port_no)]));
        }
    }
}

fn all_ports(switch: &Switch) -> Vec<Port> {
    switch.info().ports.iter().copied().collect()
}

/// Sends LLDP to the controller, whatever entries other programs install.
fn install_entry(switch: &mut Switch) {
    let lldp = Match::any()
        .eth_type(ether_type::LLDP)
        .eth_dst(lldp::NEAREST_BRIDGE);
    let options = EntryOptions::PERMANENT.priority(ENTRY_PRIORITY);
    // Both versions have all of this.
    let _ = switch.install(lldp, &[Action::controller()], options);
}

impl Shared {
    /// Tells what happened; returns the probes that it calls for, all for the switch that it happened at.
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

    /// The background program: timers, and publishing.
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

    /// Does what is due; returns when there is something to do again.
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
            let frame = self.prober.frame(probe);
            // Fails where the switch has left, of which word is on the way, or does not keep up: then this probe is missed.
            let _ = background
                .network()
                .send(switch, &packet_out(&frame, &[Action::output(port_no)]));
        }
    }

    /// Shows what is known, then tells what happened.
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
    /// What the lock guards may be half changed after a panic, and is used nevertheless: what is wrong in it is put right when
    /// probes come or time out.
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
            urtica_log::warn!(about: link, %link, "probes come through this way only; it is not used until they come through both ways");
        }
        DiscoveryEvent::Flapping { link, held_for } => {
            urtica_log::warn!(about: link, %link, ?held_for, "a link comes and goes; it is held down for a while");
        }
        DiscoveryEvent::Refused {
            at,
            claimed,
            refusal,
            count,
        } => {
            urtica_log::warn!(about: at, %at, ?claimed, ?refusal, count, "a frame was refused that would have made a link");
        }
    }
}
