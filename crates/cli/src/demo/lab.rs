//! The demonstration's network and its controller, with the actions and measurements of the demonstration.
//!
//! Time passes only in [`Lab::step`], and the caller decides whether to wait for it: the same topology, seed and calls give
//! the same run.

use super::map::ends;
use super::meter::{Losses, Meter, Pair, percentile};
use super::names::Names;
use super::pings::PingRound;
use super::traffic::Traffic;
use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::Routing;
use urtica_controller::Controller;
use urtica_net::{HostId, LinkCounters, LinkId, Net, NetConfig, SwitchId};
use urtica_services::{
    Discovery, DiscoveryConfig, DiscoveryEvent, Events, HostEvent, Hosts, HostsConfig,
    NeighbourProxy, Routes,
};
use urtica_topology::spec::{LinkProperties, Plan, TopologySpec};

/// The network's errors, and errors that users can cause.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The time that passes in a step.
pub const STEP: Duration = Duration::from_millis(1);

/// The interval between measurements.
pub const SAMPLE: Duration = Duration::from_millis(500);

/// The latency of a link.
const LINK_DELAY: Duration = Duration::from_micros(100);

/// The time in which a switch notices that a link was cut: long enough to lose some packets.
const CARRIER_DELAY: Duration = Duration::from_millis(60);

/// The maximum number of hosts.
const MAX_HOSTS: usize = 64;

/// The maximum number of switches.
const MAX_SWITCHES: usize = 100;

/// The network, and its observers.
pub struct Lab {
    net: Net,
    plan: Plan,
    names: Names,
    switches: Vec<SwitchId>,
    hosts: Vec<HostId>,
    /// Links between switches.
    links: Vec<LinkId>,
    ends: Vec<[usize; 2]>,
    controller: Services,
    meter: Rc<RefCell<Meter>>,
    pings: PingRound,
    traffic: Option<Traffic>,
    seed: u64,
    sampler: Sampler,
}

/// The controller's event streams.
struct Services {
    discovery: Discovery,
    hosts: Hosts,
    link_events: Events<DiscoveryEvent>,
    host_events: Events<HostEvent>,
}

/// The measurements of the last [`SAMPLE`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// New flows per second.
    pub flows_per_s: u64,
    /// Packets per second that reached their destination.
    pub packets_per_s: u64,
    /// The median latency.
    pub latency_p50: Option<Duration>,
    /// The 99th percentile of the latency.
    pub latency_p99: Option<Duration>,
    /// Frames per second on each link between switches, both directions.
    pub links_per_s: Vec<u64>,
    /// Frames per second that each switch received from others.
    pub switches_per_s: Vec<u64>,
    /// Entries in each switch.
    pub entries: Vec<usize>,
}

/// Computes rates from counters.
#[derive(Default)]
struct Sampler {
    taken_at: Duration,
    flows: u64,
    links: Vec<[LinkCounters; 2]>,
    last: Figures,
}

impl Lab {
    /// Creates a network of this topology, with a controller that its switches connect to at once.
    ///
    /// # Errors
    /// A sentence if the network has too few hosts, is too large to be shown, or is invalid.
    pub fn new(spec: &TopologySpec, seed: u64) -> Result<Self> {
        let (plan, mut net) = build(spec, seed)?;
        let hosts: Vec<_> = net.hosts().collect();
        let macs = plan.hosts.iter().map(|host| host.mac);
        let meter = Rc::new(RefCell::new(Meter::new(macs.zip(hosts.clone()))));
        net.watch(Rc::clone(&meter));
        Ok(Self {
            controller: start_controller(&mut net)?,
            names: Names::of(&plan),
            switches: net.switches().collect(),
            links: net.links().take(plan.links.len()).collect(),
            ends: ends(&plan),
            pings: PingRound::default(),
            traffic: None,
            seed,
            sampler: Sampler::default(),
            hosts,
            meter,
            plan,
            net,
        })
    }

    /// Lets a [`STEP`] pass.
    ///
    /// # Errors
    /// An unexpected error of the network.
    pub fn step(&mut self) -> Result<()> {
        self.pings.advance(&mut self.net)?;
        self.advance_traffic()?;
        self.net.run_for(STEP);
        if let Some(broken) = self.net.broken() {
            return Err(broken.clone().into());
        }
        if self.now() >= self.sampler.taken_at + SAMPLE {
            self.sample()?;
        }
        Ok(())
    }

    /// Returns the network's time.
    pub fn now(&self) -> Duration {
        self.net.now()
    }

    /// Returns the network's plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns for each switch whether it is connected to the controller.
    pub fn joined(&self) -> impl Iterator<Item = bool> + '_ {
        let switches = self.switches.iter();
        switches.map(|&switch| self.net.has_controller(switch).unwrap_or(false))
    }

    /// Returns for each host whether the controller knows it.
    pub fn known_hosts(&self) -> impl Iterator<Item = bool> + '_ {
        let hosts = self.plan.hosts.iter();
        hosts.map(|host| self.controller.hosts.find(host.mac).is_some())
    }

    /// Returns `true` if the controller knows a link, in both directions.
    pub fn is_discovered(&self, link: usize) -> bool {
        let topology = self.controller.discovery.topology().load();
        topology.is_link_port(self.plan.links[link].a)
    }

    /// Returns the number of links that the controller knows.
    pub fn discovered(&self) -> usize {
        let links = 0..self.links.len();
        links.filter(|&link| self.is_discovered(link)).count()
    }

    /// Makes each host ping each other, replacing the previous round.
    pub fn ping_all(&mut self) {
        self.pings = PingRound::new(&self.net);
    }

    /// Returns the current or last round of pings.
    pub fn pings(&self) -> &PingRound {
        &self.pings
    }

    /// Returns `true` while the round of pings is in progress.
    pub fn is_pinging(&self) -> bool {
        !self.pings.is_done(self.now())
    }

    /// Starts traffic between hosts.
    pub fn start_traffic(&mut self) {
        let now = self.now();
        self.traffic
            .get_or_insert_with(|| Traffic::new(self.seed, now));
    }

    /// Returns the last measurements.
    pub fn figures(&self) -> &Figures {
        &self.sampler.last
    }

    /// Returns the losses among the packets sent since then.
    pub fn lost_since(&self, since: Duration) -> Losses {
        self.meter().lost_since(since, self.now())
    }

    /// Cuts a link between switches, or repairs it.
    ///
    /// # Errors
    /// An unexpected error of the network.
    pub fn set_cut(&mut self, link: usize, is_cut: bool) -> Result<()> {
        let id = self.links[link];
        match is_cut {
            true => self.net.cut(id)?,
            false => self.net.repair(id)?,
        }
        Ok(())
    }

    /// Returns `true` if a link is cut.
    pub fn is_cut(&self, link: usize) -> bool {
        self.net.is_cut(self.links[link]).unwrap_or(false)
    }

    /// Returns the redundant link with the most traffic: without it, all switches still reach each other.
    pub fn busiest_spare(&self) -> Option<usize> {
        let rate = |link: usize| self.figures().links_per_s.get(link).copied();
        let spare = (0..self.links.len()).filter(|&link| self.is_spare(link));
        // Of several equally busy links, the first.
        spare.rev().max_by_key(|&link| rate(link))
    }

    /// Returns a pair of hosts that communicate over a link.
    pub fn pair_over(&self, link: usize) -> Option<Pair> {
        let ends = self.ends[link].map(|end| self.switches[end]);
        self.meter().pairs_over(ends).next()
    }

    /// Returns the names of the switches on the path of the last packet from one host to another.
    pub fn path(&self, pair: Pair) -> Option<String> {
        let meter = self.meter();
        let name = |&switch: &SwitchId| self.net.switch_name(switch).unwrap_or("?");
        let names: Vec<_> = meter.path(pair)?.iter().map(name).collect();
        Some(names.join(" "))
    }

    /// Returns a host's name.
    pub fn host_name(&self, host: HostId) -> &str {
        self.net.host_name(host).unwrap_or("?")
    }

    /// Returns the name of a link between switches.
    pub fn link_name(&self, link: usize) -> String {
        let [one, other] = self.ends[link].map(|end| &self.plan.switches[end].name);
        format!("{one}-{other}")
    }

    /// Descriptions of the controller's findings since the last call.
    pub fn take_news(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        while let Some(event) = self.controller.link_events.try_next() {
            news.extend(self.names.tell_link(&event));
        }
        while let Some(event) = self.controller.host_events.try_next() {
            news.extend(self.names.tell_host(&event));
        }
        news
    }

    fn meter(&self) -> Ref<'_, Meter> {
        self.meter.borrow()
    }

    /// Returns `true` if switches that reach each other still do without this link.
    fn is_spare(&self, link: usize) -> bool {
        let whole: Vec<_> = (0..self.links.len())
            .filter(|&other| other != link && !self.is_cut(other))
            .map(|other| self.ends[other])
            .collect();
        let [from, to] = self.ends[link];
        !self.is_cut(link) && reaches(from, to, &whole)
    }

    fn advance_traffic(&mut self) -> Result<()> {
        let (now, is_pinging) = (self.now(), self.is_pinging());
        if let Some(traffic) = &mut self.traffic {
            traffic.advance(&mut self.net, &self.hosts)?;
            if !is_pinging && traffic.clear_away(&mut self.net) {
                self.meter.borrow_mut().forget(now);
            }
        }
        Ok(())
    }

    fn sample(&mut self) -> Result<()> {
        let mut times = self.meter.borrow_mut().take_times();
        let flows = self.traffic.as_ref().map_or(0, Traffic::started);
        let counters: std::result::Result<Vec<_>, _> = self
            .links
            .iter()
            .map(|&link| self.net.link_counters(link))
            .collect();
        let counters = counters?;
        let mut entries = Vec::new();
        for &switch in &self.switches {
            let switch = self.net.switch_mut(switch)?;
            entries.push(switch.map_or(0, |switch| switch.entry_count()));
        }
        let passed = self.now() - self.sampler.taken_at;
        let per_s = |count: u64| (count as f64 / passed.as_secs_f64()).round() as u64;
        let arrived = arrivals(&self.sampler.links, &counters);
        let mut to_switches = vec![0; self.switches.len()];
        for (ends, arrived) in self.ends.iter().zip(&arrived) {
            (0..2).for_each(|end| to_switches[ends[1 - end]] += arrived[end]);
        }
        self.sampler.last = Figures {
            flows_per_s: per_s(flows - self.sampler.flows),
            packets_per_s: per_s(times.len() as u64),
            latency_p50: percentile(&mut times, 0.5),
            latency_p99: percentile(&mut times, 0.99),
            links_per_s: arrived
                .iter()
                .map(|both| per_s(both.iter().sum()))
                .collect(),
            switches_per_s: to_switches.into_iter().map(per_s).collect(),
            entries,
        };
        self.sampler.taken_at = self.now();
        self.sampler.flows = flows;
        self.sampler.links = counters;
        Ok(())
    }
}

/// Creates the network of the demonstration; also returns its plan.
///
/// # Errors
/// As [`Lab::new`].
pub fn build(spec: &TopologySpec, seed: u64) -> Result<(Plan, Net)> {
    let mut plan = spec.plan()?;
    check_size(spec, &plan)?;
    plan.links
        .iter_mut()
        .for_each(|link| slow_down(&mut link.properties));
    let net = Net::new(&plan, config(seed))?;
    Ok((plan, net))
}

fn check_size(spec: &TopologySpec, plan: &Plan) -> Result<()> {
    let (switches, hosts) = (plan.switches.len(), plan.hosts.len());
    if (2..=MAX_HOSTS).contains(&hosts) && switches <= MAX_SWITCHES {
        return Ok(());
    }
    Err(format!(
        "{spec} has {switches} switches and {hosts} hosts; expected 2 to {MAX_HOSTS} hosts and at most {MAX_SWITCHES} \
         switches, so that they can be seen (urtica net has larger networks)"
    )
    .into())
}

fn slow_down(properties: &mut LinkProperties) {
    if properties.delay.is_zero() {
        properties.delay = LINK_DELAY;
    }
}

fn config(seed: u64) -> NetConfig {
    let mut config = NetConfig {
        seed,
        carrier_delay: CARRIER_DELAY,
        ..NetConfig::default()
    };
    slow_down(&mut config.host_links);
    config
}

/// Starts the programs of `urtica run discovery,hosts,routing`; returns handles to their results.
fn start_controller(net: &mut Net) -> Result<Services> {
    let discovery = Discovery::new(DiscoveryConfig::default());
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let (link_events, host_events) = (discovery.events(), hosts.events());
    let controller = Controller::new()
        .program(discovery.clone())
        .program(hosts.clone())
        .program(NeighbourProxy::new(&hosts))
        .program(routes.clone())
        .program(Routing::new(&hosts, &routes));
    net.start_controller(controller)?;
    Ok(Services {
        discovery,
        hosts,
        link_events,
        host_events,
    })
}

/// Returns the number of frames through each link between two readings of the counters.
fn arrivals(before: &[[LinkCounters; 2]], now: &[[LinkCounters; 2]]) -> Vec<[u64; 2]> {
    let links = now.iter().enumerate();
    let arrived = links.map(|(link, now)| {
        let before = before.get(link).copied().unwrap_or_default();
        [0, 1].map(|end| now[end].arrived - before[end].arrived)
    });
    arrived.collect()
}

/// Returns `true` if one switch reaches another over these links.
fn reaches(from: usize, to: usize, links: &[[usize; 2]]) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&here) = reached.get(next) {
        for &[one, other] in links {
            for (near, far) in [(one, other), (other, one)] {
                if near == here && !reached.contains(&far) {
                    reached.push(far);
                }
            }
        }
        next += 1;
    }
    reached.contains(&to)
}
