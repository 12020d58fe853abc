//! Moves elephants, large flows whose hashes put them on the same link, to paths with free bandwidth (Hedera: Al-Fares,
//! Radhakrishnan, Raghavan, Huang and Vahdat, NSDI 2010, "global first fit").
//!
//! **What.** Routing spreads flows over equal paths by their hash, regardless of their size. This program measures flows,
//! treats flows above a share of their host's bandwidth as *elephants*, estimates the rate of each if only the hosts limited
//! it, and moves each to a path with that much free bandwidth, or else to the least overloaded path.
//!
//! **How.** Every few seconds, the program requests the counters of the entries for pairs of hosts from edge switches. An
//! elephant stays on its path if it fits. A moved elephant gets entries above those of routing, set up by the
//! [`Provisioner`]; they are removed when it becomes small or silent.
//!
//! **Failures.** A switch that does not reply in time, disconnects, or reports nonsense is left out of that round: its flows
//! keep their paths.
//!
//! **Cost.** One request per switch with hosts, and per elephant a search of the equal paths. Packets cost nothing.
//!
//! **Thread-safety.** The background program owns its state; a lock guards the paths, so that other threads can count them.

mod demand;

use crate::bandwidth::capacities;
use crate::paths::{Paths, is_in};
use crate::registry::{About, ProgramOptions, Row, Setup};
use crate::routing::{self, Flow as Pair};
use demand::{WHOLE, estimate};
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use urtica_controller::{
    Background, EntryOptions, Network, Program, Rows, Switch, SwitchHandler, SwitchInfo,
};
use urtica_services::{Flow, Hosts, Provisioner, Routes};
use urtica_topology::{Path, PortId, Topology, k_shortest};
use urtica_wire::{DatapathId, FlowStats, FlowStatsRequest};

/// The priority of entries: above routing's.
const PRIORITY: u16 = 0x8400;

/// The seconds without a packet after which an elephant's entries expire.
const IDLE_TIMEOUT_S: u16 = 30;

/// The time for a switch to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval of checks of paths that are being set up.
const SETTLE_INTERVAL: Duration = Duration::from_millis(500);

/// The maximum number of equal paths to consider.
const MAX_PATHS: usize = 64;

/// Options of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct ElephantsArgs {
    /// Percentage of its host's bandwidth from which a flow is an elephant [default: 10].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub elephants_share: Option<u8>,
    /// Seconds between checks of flows [default: 5].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..))]
    pub elephants_interval: Option<u16>,
}

/// Settings of [`Elephants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElephantsConfig {
    /// The percentage of its host's bandwidth from which a flow is an elephant. 10.
    pub share_percent: u8,
    /// The interval at which flows are measured. 5 s.
    pub interval: Duration,
    /// The bandwidth of a link whose port does not state it, in bits per second. 1 Gb/s.
    pub default_capacity_bps: u64,
}

impl Default for ElephantsConfig {
    fn default() -> Self {
        Self::from(&ElephantsArgs::default())
    }
}

impl From<&ElephantsArgs> for ElephantsConfig {
    fn from(args: &ElephantsArgs) -> Self {
        Self {
            share_percent: args.elephants_share.unwrap_or(10),
            interval: Duration::from_secs(args.elephants_interval.unwrap_or(5).into()),
            default_capacity_bps: 1_000_000_000,
        }
    }
}

/// The program: cheap to clone.
#[derive(Clone)]
pub struct Elephants(Arc<ElephantsState>);

struct ElephantsState {
    config: ElephantsConfig,
    hosts: Hosts,
    routes: Routes,
    /// The paths of elephants that were moved.
    paths: Mutex<Paths<Pair>>,
    /// The table of the entries on all switches: not the first one if a program filters.
    table_id: AtomicU8,
}

/// A large flow, with its ports and its demand.
struct Elephant {
    pair: Pair,
    from: PortId,
    to: PortId,
    demand_bps: u64,
}

/// A pair's byte counter at a time.
#[derive(Clone, Copy)]
struct Sample {
    bytes: u64,
    at: Instant,
}

/// The last sample of each pair.
#[derive(Default)]
struct Samples(BTreeMap<Pair, Sample>);

/// The known rates of pairs of hosts, in bits per second.
type Rates = BTreeMap<Pair, u64>;

impl Elephants {
    /// Creates the program, which moves flows that a [`Routing`](crate::Routing) with these routes has spread. All of them
    /// must run in the same controller.
    pub fn new(
        hosts: &Hosts,
        routes: &Routes,
        provisioner: &Provisioner,
        config: ElephantsConfig,
    ) -> Self {
        Self(Arc::new(ElephantsState {
            config,
            hosts: hosts.clone(),
            routes: routes.clone(),
            paths: Mutex::new(Paths::new(provisioner)),
            table_id: AtomicU8::new(0),
        }))
    }

    /// Returns the number of flows that were moved from their hashed path.
    pub fn moved(&self) -> usize {
        self.0.paths().len()
    }
}

impl ProgramOptions for ElephantsArgs {}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<ElephantsArgs> = Row {
    about: About::new(
        "elephants",
        "moves large flows from overloaded links to free paths; needs routing",
    ),
    add,
};

fn add(setup: &mut Setup, args: &ElephantsArgs) -> Result<(), String> {
    if !setup.is_named(routing::ROW.name()) {
        return Err("it moves flows of routing; expected routing, too".to_owned());
    }
    let config = ElephantsConfig::from(args);
    let (hosts, routes) = (setup.hosts(), setup.routes());
    let provisioner = setup.provisioner();
    setup.add(Elephants::new(&hosts, &routes, &provisioner, config));
    Ok(())
}

impl Program for Elephants {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(ElephantsHandler(Arc::clone(&self.0)))
    }

    fn start(&self, background: &Background) {
        let shared = Arc::clone(&self.0);
        background.spawn("elephants", shared.balance(background.clone()));
        let shared = Arc::clone(&self.0);
        background.spawn("elephants-paths", shared.keep_paths(background.clone()));
    }
}

/// The handler of one switch, which notes the table for entries.
struct ElephantsHandler(Arc<ElephantsState>);

impl SwitchHandler for ElephantsHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.0.table_id.store(switch.table(), Ordering::Relaxed);
    }
}

impl ElephantsState {
    /// Measures flows and moves elephants at each interval.
    async fn balance(self: Arc<Self>, background: Background) {
        let mut samples = Samples::default();
        loop {
            background.sleep(self.config.interval).await;
            let rates = self.poll(&background, &mut samples).await;
            let network = background.network();
            self.give_up(&rates, network);
            self.place(self.elephants(&rates, network), network);
        }
    }

    /// Removes paths as soon as their links are lost, or their hosts have moved.
    async fn keep_paths(self: Arc<Self>, background: Background) {
        let mut events = self.hosts.events();
        let mut seen = 0;
        loop {
            seen = {
                let changed = pin!(self.routes.next_hops().changed(seen));
                let event = pin!(events.next());
                let either = select(changed, event);
                match background.timeout(SETTLE_INTERVAL, either).await {
                    Some(Either::Left((version, _))) => version,
                    Some(Either::Right((Some(_), _))) | None => seen,
                    Some(Either::Right((None, _))) => return,
                }
            };
            while events.try_next().is_some() {}
            let next_hops = self.routes.next_hops().load();
            self.remove_paths(|pair, path| !self.is_right(pair, path, next_hops.topology()));
        }
    }

    /// Requests the counters of all switches with hosts, and returns the rates of their flows.
    async fn poll(&self, background: &Background, samples: &mut Samples) -> Rates {
        let network = background.network();
        let hosts = self.hosts.all();
        let edges: BTreeSet<_> = hosts.iter().map(|host| host.attached.switch).collect();
        let ask = |switch| async move {
            let entries = network.flow_stats(switch, FlowStatsRequest::default());
            (switch, background.timeout(REPLY_TIMEOUT, entries).await)
        };
        let mut asked: FuturesUnordered<_> = edges.into_iter().map(ask).collect();
        let mut rates = Rates::new();
        while let Some((switch, entries)) = asked.next().await {
            match entries {
                Some(Ok(entries)) => {
                    let sent = self.sent_from(switch, &entries);
                    rates.append(&mut samples.update(sent, background.now()));
                }
                Some(Err(error)) => {
                    urtica_log::debug!(about: switch, dp_id = %switch, %error, "cannot read a switch's flows")
                }
                None => {
                    urtica_log::debug!(about: switch, dp_id = %switch, "a switch did not report its flows in time")
                }
            }
        }
        samples.forget(background.now(), self.config.interval.saturating_mul(4));
        rates
    }

    /// Returns the bytes that a switch's hosts have sent to each other host.
    fn sent_from(
        &self,
        switch: DatapathId,
        entries: &Rows<FlowStats<'static>>,
    ) -> BTreeMap<Pair, u64> {
        let mut sent: BTreeMap<Pair, u64> = BTreeMap::new();
        for entry in entries.iter() {
            // Entries with more fields cover a part of the pair's traffic, and belong to another program.
            let is_of_pair = entry.match_.fields().count() == 3;
            let pair = Pair::of_entry(&entry.match_).filter(|_| is_of_pair);
            if let Some(pair) = pair.filter(|pair| self.is_at(pair, switch)) {
                let bytes = sent.entry(pair).or_default();
                *bytes = bytes.saturating_add(entry.byte_count);
            }
        }
        sent
    }

    /// Returns `true` if the pair's source is at a switch.
    fn is_at(&self, pair: &Pair, switch: DatapathId) -> bool {
        let host = self.hosts.find_in(pair.vlan(), pair.src);
        host.is_some_and(|host| host.attached.switch == switch)
    }

    /// Returns the large flows, largest demand first.
    fn elephants(&self, rates: &Rates, network: &Network) -> Vec<Elephant> {
        let capacities = capacities(network, self.config.default_capacity_bps);
        let mut elephants = Vec::new();
        for (pair, bps) in rates {
            let ends = self
                .hosts
                .find_in(pair.vlan(), pair.src)
                .zip(self.hosts.find_in(pair.vlan(), pair.dst));
            let Some((near, far)) = ends else { continue };
            let Some(&capacity) = capacities.get(&near.attached) else {
                continue;
            };
            if *bps >= self.share_of(capacity) && near.attached.switch != far.attached.switch {
                elephants.push(Elephant {
                    pair: *pair,
                    from: near.attached,
                    to: far.attached,
                    demand_bps: capacity,
                });
            }
        }
        let ends: Vec<_> = elephants
            .iter()
            .map(|elephant| (elephant.from, elephant.to))
            .collect();
        for (elephant, share) in elephants.iter_mut().zip(estimate(&ends)) {
            elephant.demand_bps = share_of(elephant.demand_bps, share, WHOLE);
        }
        elephants.sort_by_key(|elephant| (std::cmp::Reverse(elephant.demand_bps), elephant.pair));
        elephants
    }

    fn share_of(&self, capacity_bps: u64) -> u64 {
        share_of(capacity_bps, self.config.share_percent.into(), 100)
    }

    /// Finds a path for each elephant, given the paths of the larger ones.
    fn place(&self, elephants: Vec<Elephant>, network: &Network) {
        let mut loads = Loads {
            capacities: capacities(network, self.config.default_capacity_bps),
            load_bps: BTreeMap::new(),
        };
        let mut paths = self.paths();
        for elephant in &elephants {
            let Elephant {
                pair, demand_bps, ..
            } = *elephant;
            let by_hash = || {
                self.routes
                    .path(elephant.from, elephant.to, pair.hash())
                    .ok()
            };
            let Some(current) = paths.get(&pair).cloned().or_else(by_hash) else {
                continue;
            };
            let better = self.better_path(&loads, elephant, &current);
            loads.add(better.as_ref().unwrap_or(&current), demand_bps);
            if let Some(path) = better {
                urtica_log::info!(about: pair.src, src = %pair.src, dst = %pair.dst, demand_bps, "moving a large flow");
                let flow = self.flow(pair, &path);
                paths.insert(pair, path, flow);
            }
        }
    }

    fn flow(&self, pair: Pair, path: &Path) -> Flow {
        Flow::new(path.clone(), pair.match_())
            .options(EntryOptions::idle(IDLE_TIMEOUT_S).priority(PRIORITY))
            .table(self.table_id.load(Ordering::Relaxed))
    }

    /// Returns an equal path to use instead of an overloaded current one: the first with enough free bandwidth, or else the
    /// least overloaded one. Returns `None` if no path is better.
    fn better_path(&self, loads: &Loads, elephant: &Elephant, current: &Path) -> Option<Path> {
        let overload = loads.overload(current, elephant.demand_bps);
        if overload == 0 {
            return None;
        }
        let Elephant { from, to, .. } = *elephant;
        let next_hops = self.routes.next_hops().load();
        let shortest = next_hops.distance(from.switch, to.switch)?;
        k_shortest::paths(next_hops.topology(), from, to)
            .take_while(|path| path.directed_links().len() as u32 == shortest)
            .take(MAX_PATHS)
            .min_by_key(|path| loads.overload(path, elephant.demand_bps))
            .filter(|path| loads.overload(path, elephant.demand_bps) < overload)
    }

    /// Returns moved flows to their hashed path if they have become small, or their path is no longer valid.
    fn give_up(&self, rates: &Rates, network: &Network) {
        let capacities = capacities(network, self.config.default_capacity_bps);
        let next_hops = self.routes.next_hops().load();
        self.remove_paths(|pair, path| {
            let capacity = path.begin().and_then(|port| capacities.get(&port));
            // Half of the threshold, so that a flow near it does not alternate.
            let is_small = rates
                .get(pair)
                .zip(capacity)
                .is_some_and(|(bps, capacity)| *bps < self.share_of(*capacity) / 2);
            is_small || !self.is_right(pair, path, next_hops.topology())
        });
    }

    fn remove_paths(&self, is_wrong: impl Fn(&Pair, &Path) -> bool) {
        let mut paths = self.paths();
        paths.settle();
        let wrong = paths
            .iter()
            .filter(|(pair, path)| is_wrong(pair, path))
            .map(|(pair, _)| *pair);
        for pair in wrong.collect::<Vec<_>>() {
            paths.remove(&pair);
        }
    }

    /// Returns `true` if a path's links exist, and its hosts are at its ends.
    fn is_right(&self, pair: &Pair, path: &Path, topology: &Topology) -> bool {
        let port_of = |mac| Some(self.hosts.find_in(pair.vlan(), mac)?.attached);
        is_in(path, topology)
            && path.begin() == port_of(pair.src)
            && path.end() == port_of(pair.dst)
    }

    fn paths(&self) -> MutexGuard<'_, Paths<Pair>> {
        self.paths.lock()
    }
}

impl Samples {
    /// Updates the samples. Returns the rates of pairs, except for new pairs and those whose counters were reset.
    fn update(&mut self, sent: BTreeMap<Pair, u64>, now: Instant) -> Rates {
        let mut rates = Rates::new();
        for (pair, bytes) in sent {
            let before = self.0.insert(pair, Sample { bytes, at: now });
            let rate = before.and_then(|before| {
                let bits = bytes.checked_sub(before.bytes)?.saturating_mul(8);
                let time_ms = now.saturating_duration_since(before.at).as_millis() as u64;
                bits.saturating_mul(1_000).checked_div(time_ms)
            });
            rates.extend(rate.map(|bps| (pair, bps)));
        }
        rates
    }

    /// Forgets pairs whose last report is older than `age`.
    fn forget(&mut self, now: Instant, age: Duration) {
        self.0
            .retain(|_, sample| now.saturating_duration_since(sample.at) < age);
    }
}

/// The load of links from elephants that have a path, by sending port.
struct Loads {
    capacities: BTreeMap<PortId, u64>,
    load_bps: BTreeMap<PortId, u64>,
}

impl Loads {
    /// Returns the overload of the path's worst link with this further demand, in thousandths of its bandwidth; 0 if it fits.
    fn overload(&self, path: &Path, demand_bps: u64) -> u64 {
        let links = path.directed_links().map(|link| {
            let load = self.load_bps.get(&link.from).copied().unwrap_or(0) + demand_bps;
            let capacity = self.capacities.get(&link.from).copied().unwrap_or(0);
            share_of(1_000, load.saturating_sub(capacity), capacity.max(1))
        });
        links.max().unwrap_or(0)
    }

    fn add(&mut self, path: &Path, demand_bps: u64) {
        for link in path.directed_links() {
            *self.load_bps.entry(link.from).or_default() += demand_bps;
        }
    }
}

/// Returns `whole * part / of`, without overflow.
fn share_of(whole: u64, part: u64, of: u64) -> u64 {
    let share = u128::from(whole) * u128::from(part) / u128::from(of);
    u64::try_from(share).unwrap_or(u64::MAX)
}
