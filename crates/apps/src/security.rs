//! Detects scans and floods, and blocks their sources (McNettle Figure 2, "Security": external triggers, background threads
//! with access to shared state and switch commands).
//!
//! **What.** A source that tries many ports (a port scan), tries or requests many addresses (a sweep), or starts many flows
//! (a flood of SYNs, for instance) within a window of time is blocked at its own port for a while. If a port has so many
//! sources that their addresses must be forged, the whole port is blocked.
//!
//! **How.** The program is a filter ([`Stage::Filter`]): the edge switch sends the first packet of each flow to the
//! controller, which records it and adds an entry that passes the flow to the programs that forward. Packets from a link
//! between switches have passed a filter already. Traffic provoked by an incoming packet is not recorded, so that no host is
//! blamed for being contacted: replies, requests for the sender's address, ICMP errors and connections back (`begun.rs`).
//! Handlers only record. A background program evaluates the records ten times a second, sends entries that drop, and
//! publishes the blocked sources, so that packets in flight are dropped as well. A separate program
//! ([`Security::questions`]) records address resolution messages; it must run before any program that answers or drops them.
//!
//! **Edge or link.** A port that leads to another switch looks like any other until that switch is connected, and all hosts
//! behind it seem to be at that port. So a port is classified when it is about to be blocked (`ports.rs`): hosts are blocked
//! only at ports that discovery has classified as host ports, and whole ports only once switches have had the time to
//! connect after a start of the controller. A port that turns out to be a link's is unblocked immediately.
//!
//! **Windows.** Records cover the current half of the window and the previous one. So a limit applies to a time between half
//! the window and the whole.
//!
//! **Lasting flows.** An entry hides the packets of its flow, which may provoke traffic for as long as the flow lasts. So the
//! entry expires after half a window, unless the flow answers another one, and the next packet is checked again. A flow that
//! is still known at its port counts as nothing then. Flows and provocations are known for three to four half windows after
//! their last check (`known.rs`).
//!
//! **Bounds.** The records of a port are bounded: 10,000 by default, 400 KB, before the port is blocked. So are its known
//! flows, 10,000 by default: the entries of further ones expire only if they are idle.
//!
//! **Cost.** An exact-match entry at the edge for each flow, and a packet-in for each half window in which it lasts, or a single
//! packet-in if it is an answer: the price of detecting scans, which entries for pairs of hosts would hide.
//!
//! **Thread-safety.** Each switch's records have a lock, held for one record or one evaluation. Another lock guards the
//! record of started flows.

mod begun;
mod known;
mod ports;
mod record;

pub use record::Offence;

use crate::firewall;
use crate::registry::{About, ProgramOptions, Row, Sees, Setup};
use begun::Begun;
use parking_lot::Mutex;
use ports::Ports;
use record::{Attempt, Blame, SwitchRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_controller::{
    Background, EntryOptions, Network, Program, RequestError, Stage, Switch, SwitchHandler,
    SwitchInfo,
};
use urtica_services::{Discovery, is_provisioned};
use urtica_state::Snapshot;
use urtica_topology::PortId;
use urtica_wire::{
    DatapathId, FlowMod, FlowModCommand, MacAddr, Match, Message, PacketIn, PortNo, PortStatus,
    Version,
};

/// Marks the program's entries: `usecure` in ASCII.
const COOKIE: u64 = u64::from_be_bytes(*b"\0usecure");
const _: () = assert!(!is_provisioned(COOKIE));

/// The priority of entries that drop.
const DROP_PRIORITY: u16 = 0xff00;

/// The interval at which records are evaluated.
const TICK: Duration = Duration::from_millis(100);

/// The time without a packet after which a flow's entry expires.
const FLOW_IDLE_S: u16 = 10;

/// The minimum time after which a flow is checked again. A flow stays known for three times as long, that is until the entry has
/// expired and the flow has paused for [`FLOW_IDLE_S`].
const MIN_RECHECK: Duration = Duration::from_secs(5);
const _: () = assert!(2 * MIN_RECHECK.as_secs() >= FLOW_IDLE_S as u64);

/// The time for which all packets from a link pass before it is checked again.
const LINK_PASS_S: u16 = 10;

/// The maximum number of started flows, and of provocations, that are remembered in the whole network.
const MAX_BEGUN: usize = 1 << 18;

/// Options of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct SecurityArgs {
    /// MAC address of a host that is never blocked. May be repeated.
    #[arg(long, value_name = "MAC")]
    pub security_allow: Vec<MacAddr>,
    /// Number of tried ports that make a scan [default: 100].
    #[arg(long, value_name = "N")]
    pub security_ports: Option<usize>,
    /// Number of tried addresses that make a sweep [default: 128].
    #[arg(long, value_name = "N")]
    pub security_destinations: Option<usize>,
    /// Number of started flows that make a flood [default: 1000].
    #[arg(long, value_name = "N")]
    pub security_flows: Option<usize>,
    /// Number of sources at one port above which they count as forged [default: 256].
    #[arg(long, value_name = "N")]
    pub security_sources: Option<usize>,
    /// Time window of these limits in seconds [default: 10].
    #[arg(long, value_name = "SECONDS")]
    pub security_window: Option<u16>,
    /// Duration of a block in seconds [default: 60].
    #[arg(long, value_name = "SECONDS")]
    pub security_drop: Option<u16>,
}

/// Settings of [`Security`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityConfig {
    /// The hosts that are never blocked. Empty.
    pub allowed: BTreeSet<MacAddr>,
    /// The number of tried ports that make a scan. 100.
    pub max_ports: usize,
    /// The number of tried addresses that make a sweep. 128.
    pub max_destinations: usize,
    /// The number of started flows that make a flood. 1,000.
    pub max_flows: usize,
    /// The number of sources at one port above which they count as forged. 256.
    pub max_sources: usize,
    /// The time window of these limits. 10 s.
    pub window: Duration,
    /// The duration of a block in seconds. 60.
    pub drop_s: u16,
}

impl Default for SecurityConfig {
    fn default() -> Self {
        Self {
            allowed: BTreeSet::new(),
            max_ports: 100,
            max_destinations: 128,
            max_flows: 1_000,
            max_sources: 256,
            window: Duration::from_secs(10),
            drop_s: 60,
        }
    }
}

impl SecurityConfig {
    fn from_args(args: &SecurityArgs) -> Result<Self, String> {
        let default = Self::default();
        let window = args.security_window.map(u64::from);
        let config = Self {
            allowed: args.security_allow.iter().copied().collect(),
            max_ports: args.security_ports.unwrap_or(default.max_ports),
            max_destinations: args
                .security_destinations
                .unwrap_or(default.max_destinations),
            max_flows: args.security_flows.unwrap_or(default.max_flows),
            max_sources: args.security_sources.unwrap_or(default.max_sources),
            window: window.map_or(default.window, Duration::from_secs),
            drop_s: args.security_drop.unwrap_or(default.drop_s),
        };
        let numbers = [
            ("ports", config.max_ports),
            ("destinations", config.max_destinations),
            ("flows", config.max_flows),
            ("sources", config.max_sources),
            ("window", config.window.as_secs() as usize),
            ("drop", config.drop_s.into()),
        ];
        match numbers.iter().find(|(_, number)| *number == 0) {
            None => Ok(config),
            Some((name, _)) => Err(format!("--security-{name} is 0; expected at least 1")),
        }
    }

    /// Returns the time after which a flow that answers no other is checked again: half the window, or more if that is short.
    fn recheck_interval(&self) -> Duration {
        MIN_RECHECK.max(self.window / 2)
    }

    /// Returns the timeouts of an entry that passes a flow.
    fn flow_timeouts(&self, is_rechecked: bool) -> EntryOptions {
        let interval = self.recheck_interval().as_secs();
        let hard_timeout = match is_rechecked {
            true => u16::try_from(interval).unwrap_or(u16::MAX),
            false => 0,
        };
        EntryOptions {
            hard_timeout,
            ..options(EntryOptions::idle(FLOW_IDLE_S))
        }
    }

    /// Returns the number of records of one port above which its sources count as forged.
    fn max_notes_per_port(&self) -> usize {
        let limits = [self.max_ports, self.max_destinations, self.max_flows];
        limits
            .into_iter()
            .fold(0, usize::saturating_add)
            .saturating_mul(8)
    }
}

/// A blocked source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The port of the source.
    pub port: PortId,
    /// The address of the source; `None` for all packets from the port.
    pub source: Option<MacAddr>,
    /// The reason of the block.
    pub offence: Offence,
    /// The end of the block.
    pub until: Instant,
}

impl Dropped {
    /// Returns the remaining time in whole seconds, at least one.
    fn seconds_left(&self, now: Instant) -> u16 {
        let left = self.until.saturating_duration_since(now).as_secs();
        u16::try_from(left).unwrap_or(u16::MAX).max(1)
    }
}

/// The blocked hosts and their ports.
type DropList = BTreeMap<(PortId, Option<MacAddr>), Dropped>;

/// The program: cheap to clone.
#[derive(Clone)]
pub struct Security(Arc<SecurityState>);

struct SecurityState {
    config: SecurityConfig,
    ports: Ports,
    dropped: Snapshot<DropList>,
    /// The unsent blocks, whose switch does not keep up.
    untold: Mutex<BTreeSet<(PortId, Option<MacAddr>)>>,
    /// The records of switches, which their handlers share. Those of a disconnected switch stay until they expire, so that its
    /// flows are known when it reconnects.
    records: Mutex<BTreeMap<DatapathId, Arc<Mutex<SwitchRecord>>>>,
    begun: Mutex<Begun>,
}

impl Security {
    /// Creates the program. `discovery`, which must run in the same controller, classifies the ports.
    ///
    /// If a program answers address resolution requests, such as a [`NeighbourProxy`](urtica_services::NeighbourProxy),
    /// [`Security::questions`] must be added before it.
    pub fn new(discovery: &Discovery, config: SecurityConfig) -> Self {
        Self(Arc::new(SecurityState {
            config,
            ports: Ports::new(discovery),
            dropped: Snapshot::new(DropList::new()),
            untold: Mutex::default(),
            records: Mutex::default(),
            begun: Mutex::new(Begun::new(MAX_BEGUN)),
        }))
    }

    /// Returns a program that records address resolution messages. Add it before any program that answers or drops them.
    pub fn questions(&self) -> impl Program + use<> {
        Questions(Arc::clone(&self.0))
    }

    /// Returns the blocked sources, by port.
    pub fn dropped(&self) -> Vec<Dropped> {
        self.0.dropped.load().values().copied().collect()
    }

    /// Returns the number of records.
    pub fn notes(&self) -> usize {
        let of_switches = self.0.live_records();
        let of_switches = of_switches.iter().map(|(_, record)| record.lock().len());
        of_switches.sum::<usize>() + self.0.begun.lock().len()
    }
}

impl ProgramOptions for SecurityArgs {}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<SecurityArgs> = Row {
    about: About {
        sees: Sees::Everything,
        ..About::new(
            "security",
            "blocks hosts that scan, sweep or flood, for a while, at their own ports",
        )
    },
    add,
};

fn add(setup: &mut Setup, args: &SecurityArgs) -> Result<(), String> {
    if setup.is_named(firewall::ROW.name()) {
        return Err(
            "the firewall passes flows that this program must inspect; expected one of the two"
                .to_owned(),
        );
    }
    let config = SecurityConfig::from_args(args)?;
    let discovery = setup.discovery();
    let security = Security::new(&discovery, config);
    setup.add(security.questions());
    setup.add(security);
    Ok(())
}

impl Program for Security {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(SecurityHandler {
            record: self.0.record(info.datapath_id),
            shared: Arc::clone(&self.0),
        })
    }

    fn start(&self, background: &Background) {
        let shared = Arc::clone(&self.0);
        background.spawn("security", shared.evaluate(background.clone()));
    }

    fn stage(&self) -> Stage {
        Stage::Filter
    }
}

/// The program that records address resolution messages.
struct Questions(Arc<SecurityState>);

impl Program for Questions {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(QuestionsHandler(SecurityHandler {
            record: self.0.record(info.datapath_id),
            shared: Arc::clone(&self.0),
        }))
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

struct QuestionsHandler(SecurityHandler);

impl SwitchHandler for QuestionsHandler {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let handler = &self.0;
        let port = PortId::new(switch.datapath_id(), packet.in_port);
        if packet.table_id != 0 || handler.shared.ports.is_trunk(port) {
            return;
        }
        let attempt = Attempt::of(packet);
        if attempt.is_neighbour {
            if handler.shared.is_dropped(port, packet.eth_src()) {
                return switch.consume();
            }
            handler.note(port, &attempt);
        }
    }
}

/// The handler of one switch, which records packets.
struct SecurityHandler {
    shared: Arc<SecurityState>,
    record: Arc<Mutex<SwitchRecord>>,
}

impl SwitchHandler for SecurityHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        // OpenFlow 1.0 cannot delete by cookie.
        if switch.info().version != Version::Of10 {
            let _ = switch.send(&Message::FlowMod(FlowMod::delete_by_cookie(COOKIE)));
            let _ = switch.send(&Message::BarrierRequest);
        }
        self.shared.ports.forget_unplugged(switch.info());
        let (now, here) = (switch.now(), switch.datapath_id());
        let dropped = self.shared.dropped.load();
        for dropped in dropped
            .values()
            .filter(|dropped| dropped.port.switch == here)
            .filter(|dropped| !self.shared.ports.is_trunk(dropped.port))
        {
            let (match_, options) = drop_entry(dropped, dropped.seconds_left(now));
            let _ = switch.install(match_, &[], options);
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        // An entry has passed the packets from the forwarding programs' table.
        if packet.table_id != 0 || packet.eth_dst().is_link_local() {
            return;
        }
        let port = PortId::new(switch.datapath_id(), packet.in_port);
        if self.shared.ports.is_trunk(port) {
            return let_link_pass(switch, packet.in_port);
        }
        if self.shared.is_dropped(port, packet.eth_src()) {
            return switch.consume();
        }
        let attempt = Attempt::of(packet);
        let is_rechecked = self.note(port, &attempt);
        if attempt.may_get_entry {
            let options = self.shared.config.flow_timeouts(is_rechecked);
            // OpenFlow 1.0 has no second table: there, the controller receives every packet.
            let _ = switch.let_pass(Match::exact(packet), options);
        }
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        let port = PortId::new(switch.datapath_id(), status.port.port_no);
        let is_forgotten = self.shared.ports.forget_where_down(port, status);
        // OpenFlow 1.0 has no such entry.
        if is_forgotten && switch.info().version != Version::Of10 {
            let (match_, options) = link_entry(status.port.port_no);
            let _ = switch.send(&deletion(match_, options));
        }
    }
}

impl SecurityHandler {
    /// Records a packet. Returns `true` if its flow has to be checked again while it lasts.
    fn note(&self, port: PortId, attempt: &Attempt) -> bool {
        let config = &self.shared.config;
        let blame = self.shared.begun.lock().judge(attempt, port);
        if blame == Blame::Answer || config.allowed.contains(&attempt.source) {
            return blame != Blame::Answer;
        }
        let mut record = self.record.lock();
        record.note(port.port_no, attempt, blame, config)
    }
}

impl SecurityState {
    /// Returns the records of a switch, which its handlers share, including that of a connection which replaces another.
    fn record(&self, switch: DatapathId) -> Arc<Mutex<SwitchRecord>> {
        Arc::clone(self.records.lock().entry(switch).or_default())
    }

    /// Returns the records of connected switches.
    fn live_records(&self) -> Vec<(DatapathId, Arc<Mutex<SwitchRecord>>)> {
        let records = self.records.lock();
        let live = records.iter().filter(|(_, record)| is_shared(record));
        live.map(|(switch, record)| (*switch, Arc::clone(record)))
            .collect()
    }

    fn is_dropped(&self, port: PortId, source: MacAddr) -> bool {
        let dropped = self.dropped.load();
        dropped.contains_key(&(port, Some(source))) || dropped.contains_key(&(port, None))
    }

    /// Evaluates the records at each tick.
    async fn evaluate(self: Arc<Self>, background: Background) {
        let started = background.now();
        let mut half_windows = Every::new(self.config.window / 2, started);
        let mut rechecks = Every::new(self.config.recheck_interval(), started);
        loop {
            background.sleep(TICK).await;
            let now = background.now();
            let network = background.network();
            self.ports.learn(network);
            self.let_in_trunks(network);
            let is_settled = now.saturating_duration_since(started) >= ports::SETTLE;
            self.tell_again(network, now);
            self.drop_offenders(network, is_settled, now);
            self.let_in_again(now);
            if half_windows.is_due(now) {
                self.turn();
            }
            if rechecks.is_due(now) {
                self.forget_flows();
            }
        }
    }

    fn drop_offenders(&self, network: &Network, is_settled: bool, now: Instant) {
        let until = now + Duration::from_secs(self.config.drop_s.into());
        for (switch, record) in self.live_records() {
            let side = |port_no| self.ports.side(PortId::new(switch, port_no), is_settled);
            let offences = record.lock().take_offences(&self.config, side);
            for (port_no, source, offence) in offences {
                let port = PortId::new(switch, port_no);
                self.drop_packets(
                    network,
                    Dropped {
                        port,
                        source,
                        offence,
                        until,
                    },
                    now,
                );
            }
        }
    }

    fn drop_packets(&self, network: &Network, dropped: Dropped, now: Instant) {
        let Dropped {
            port,
            source,
            offence,
            ..
        } = dropped;
        let seconds = self.config.drop_s;
        match source {
            Some(source) => {
                urtica_log::warn!(about: port, %port, %source, ?offence, seconds, "blocking a host for a while");
            }
            None => {
                urtica_log::warn!(about: port, %port, ?offence, seconds, "blocking a port for a while")
            }
        }
        self.dropped.update(|list| {
            let mut list = list.clone();
            list.insert((port, source), dropped);
            list
        });
        self.tell(network, &dropped, now);
    }

    /// Sends a switch the entry that drops a source's packets. A switch that does not keep up gets it at the next tick.
    fn tell(&self, network: &Network, dropped: &Dropped, now: Instant) {
        let port = dropped.port;
        let (match_, options) = drop_entry(dropped, dropped.seconds_left(now));
        match network.install(port.switch, match_, &[], options) {
            Ok(()) => {}
            Err(RequestError::Busy(_)) => {
                self.untold.lock().insert((port, dropped.source));
            }
            Err(error) => {
                urtica_log::error!(about: port, %port, %error, "cannot send a block to its switch");
            }
        }
    }

    fn tell_again(&self, network: &Network, now: Instant) {
        let untold = std::mem::take(&mut *self.untold.lock());
        let dropped = self.dropped.load();
        for dropped in untold.iter().filter_map(|key| dropped.get(key)) {
            self.tell(network, dropped, now);
        }
    }

    fn let_in_again(&self, now: Instant) {
        let dropped = self.dropped.load();
        let over: Vec<_> = dropped
            .iter()
            .filter(|(_, dropped)| dropped.until <= now)
            .collect();
        for ((port, source), _) in &over {
            let source = source.map_or_else(|| "everybody".to_owned(), |mac| mac.to_string());
            urtica_log::info!(about: port, %port, source, "unblocked a source");
        }
        if !over.is_empty() {
            self.dropped.update(|list| {
                let left = list.iter().filter(|(_, dropped)| dropped.until > now);
                left.map(|(key, dropped)| (*key, *dropped)).collect()
            });
        }
    }

    /// Unblocks ports that have turned out to be link ports.
    fn let_in_trunks(&self, network: &Network) {
        let dropped = self.dropped.load();
        let trunks = dropped.values();
        let mut trunks = trunks
            .filter(|dropped| self.ports.is_trunk(dropped.port))
            .peekable();
        if trunks.peek().is_none() {
            return;
        }
        for dropped in trunks {
            let port = dropped.port;
            tracing::info!(%port, "unblocked a port, which leads to another switch");
            let (match_, options) = drop_entry(dropped, 0);
            if let Err(error) = network.send(port.switch, &deletion(match_, options)) {
                tracing::warn!(%port, %error, "cannot delete a block from its switch; it stays until it expires");
            }
        }
        self.dropped.update(|list| {
            let edge = list
                .iter()
                .filter(|((port, _), _)| !self.ports.is_trunk(*port));
            edge.map(|(key, dropped)| (*key, *dropped)).collect()
        });
    }

    /// Starts a new half of the window in all records.
    fn turn(&self) {
        for record in self.records.lock().values() {
            record.lock().turn();
        }
    }

    /// Forgets the flows that were not checked for a while, and disconnected switches without records.
    fn forget_flows(&self) {
        self.records.lock().retain(|_, record| {
            let mut flows = record.lock();
            flows.forget_flows();
            flows.len() > 0 || is_shared(record)
        });
        self.begun.lock().turn();
    }
}

/// Returns `true` if a handler has these records, so that their switch is connected.
fn is_shared(record: &Arc<Mutex<SwitchRecord>>) -> bool {
    Arc::strong_count(record) > 1
}

/// A repeated interval.
struct Every {
    interval: Duration,
    last: Instant,
}

impl Every {
    fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            last: now,
        }
    }

    /// Returns `true`, and starts the next interval, if the present one is over.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.last) >= self.interval;
        if is_due {
            self.last = now;
        }
        is_due
    }
}

/// Passes all packets from a link: they were inspected where they entered the network.
fn let_link_pass(switch: &mut Switch, port_no: PortNo) {
    let (match_, options) = link_entry(port_no);
    let _ = switch.let_pass(match_, options);
}

fn link_entry(port_no: PortNo) -> (Match<'static>, EntryOptions) {
    let options = options(EntryOptions {
        hard_timeout: LINK_PASS_S,
        ..EntryOptions::PERMANENT
    });
    (Match::any().in_port(port_no), options)
}

fn deletion(match_: Match<'static>, options: EntryOptions) -> Message<'static> {
    Message::FlowMod(FlowMod {
        command: FlowModCommand::DeleteStrict,
        match_,
        ..options.flow_mod()
    })
}

fn drop_entry(dropped: &Dropped, seconds: u16) -> (Match<'static>, EntryOptions) {
    let at_port = Match::any().in_port(dropped.port.port_no);
    let match_ = match dropped.source {
        Some(source) => at_port.eth_src(source),
        None => at_port,
    };
    let options = options(EntryOptions {
        hard_timeout: seconds,
        ..EntryOptions::PERMANENT.priority(DROP_PRIORITY)
    });
    (match_, options)
}

fn options(options: EntryOptions) -> EntryOptions {
    EntryOptions {
        cookie: COOKIE,
        ..options
    }
}
