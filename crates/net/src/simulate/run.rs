//! One run, phase by phase.

use super::faults::{self, Act, Happening, Schedule};
use super::invariants::{self, Faced, Invariant, Resolution};
use super::{Check, Failure, Report, Scenario, ScheduleItem};
use crate::digest::Digest;
use crate::names::Names;
use crate::{ChannelConfig, Datagrams, Draw, Net, NetConfig, NetError, SwitchId};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use urtica_pipeline::Backend;
use urtica_switch::{Forwarding, Switch, SwitchConfig};
use urtica_topology::spec::{LinkProperties, Plan};
use urtica_wire::Version;

/// The interval between checks of invariants.
const STEP: Duration = Duration::from_millis(50);

/// The maximum time that switches need to connect to a running controller: the longest back-off, and the handshake.
const CONNECTED_WITHIN: Duration = Duration::from_secs(11);

/// A run of a seed.
pub(super) struct Run<'s> {
    scenario: &'s Scenario,
    /// The only faults and flows to run, if given.
    only: Option<&'s BTreeSet<ScheduleItem>>,
    seed: u64,
    topology: String,
    names: Names,
    net: Net,
    digest: Rc<RefCell<Digest>>,
    invariants: Vec<Box<dyn Invariant>>,
    reservations: Option<Check>,
    /// The drawn faults and flows.
    items: BTreeSet<ScheduleItem>,
    /// The faults and flows, for the invariants.
    faced: Faced,
    /// The faults and traffic so far, as text.
    told: Vec<String>,
}

impl<'s> Run<'s> {
    /// Draws the network.
    pub fn new(
        scenario: &'s Scenario,
        seed: u64,
        only: Option<&'s BTreeSet<ScheduleItem>>,
    ) -> Self {
        let mut draw = Draw::of(seed, "shape");
        let spec = draw.choose(&scenario.topologies);
        let spec = spec.expect("a scenario has a topology");
        let mut plan = spec
            .plan()
            .expect("a scenario's topologies fit their limits");
        if let Some(arrange) = scenario.arrange {
            arrange(&mut plan);
        }
        draw_links(&mut plan, seed);
        let config = draw_config(&scenario.versions, seed);
        let mut net = Net::new(&plan, config).expect("the plan is a network");
        draw_hosts(&mut net, scenario, seed);
        let digest = Rc::new(RefCell::new(Digest::new()));
        net.watch(Rc::clone(&digest));
        let mut invariants = invariants::all(scenario, seed);
        invariants
            .iter_mut()
            .for_each(|invariant| invariant.attach(&mut net));
        Self {
            scenario,
            only,
            seed,
            topology: spec.to_string(),
            names: Names::of(&net),
            net,
            digest,
            invariants,
            reservations: None,
            items: BTreeSet::new(),
            faced: Faced::default(),
            told: Vec::new(),
        }
    }

    /// Returns the network.
    pub fn net(&mut self) -> &mut Net {
        &mut self.net
    }

    /// Runs all phases.
    pub fn run(mut self) -> Result<Report, Box<Failure>> {
        self.start_controller();
        self.pass(CONNECTED_WITHIN)?;
        self.undergo_faults()?;
        let faced = std::mem::take(&mut self.faced);
        self.each(|invariant, net| invariant.after_faults(net, &faced))?;
        self.each(|invariant, net| invariant.after_recovery(net, &faced))?;
        self.net.stop_flows();
        self.pass(self.scenario.quiescent_after)?;
        self.each(|invariant, net| invariant.when_quiescent(net))?;
        Ok(Report {
            seed: self.seed,
            topology: self.topology,
            faults: self.items.iter().filter(|item| item.is_fault()).count(),
            time: self.net.now(),
            digest: *self.digest.borrow(),
        })
    }

    fn start_controller(&mut self) {
        let programs = (self.scenario.programs)();
        self.reservations = programs.reservations;
        let started = self.net.start_controller(programs.controller);
        started.expect("a scenario's controller can be started");
    }

    fn undergo_faults(&mut self) -> Result<(), Box<Failure>> {
        let from = self.net.now();
        let to = from + self.scenario.fault_time;
        let Scenario { faults, flows, .. } = self.scenario;
        let mut schedule = Schedule::draw(&self.net, self.seed, faults, *flows, from, to);
        if self.scenario.blocks_offenders {
            schedule.spare_blocked();
        }
        if let Some(only) = self.only {
            schedule.keep(only);
        }
        self.faced = Faced::of(&schedule, self.scenario.blocks_offenders);
        self.items = schedule.items.into_keys().collect();
        for Happening { at, item, act } in schedule.happenings {
            self.pass(at.saturating_sub(self.net.now()))?;
            self.tell(at, &format!("{item}: {}", act.description(&self.names)));
            self.carry_out(act);
        }
        self.pass(schedule.end.saturating_sub(self.net.now()))?;
        let lasting: Vec<_> = schedule.lasting.iter().map(|(_, link)| *link).collect();
        self.heal(&lasting);
        Ok(())
    }

    fn carry_out(&mut self, act: Act) {
        let net = &mut self.net;
        let done = match act {
            Act::Cut(link) => net.cut(link),
            Act::Repair(link) => net.repair(link),
            Act::SetLoss(link, probability) => net.set_loss(link, probability),
            Act::StopSwitch(switch) => net.stop_switch(switch),
            Act::StartSwitch(switch) => net.start_switch(switch),
            Act::StopController => {
                net.stop_controller();
                Ok(())
            }
            Act::StartController => {
                self.start_controller();
                Ok(())
            }
            Act::Move(host, to) => net.move_host(host, to).map(drop),
            Act::ConnectImpostor(switch) => net.connect_impostor(switch),
            Act::StartSecondController => {
                let started = net.start_second_controller();
                started.expect("a controller without programs can be started");
                Ok(())
            }
            Act::StopSecondController => {
                net.stop_second_controller();
                Ok(())
            }
            Act::ConnectStranger(bytes) => {
                net.connect_stranger(&bytes);
                Ok(())
            }
            Act::Announce(host) => net.announce_host(host),
            Act::MoveSilently(host, to) => net.move_host_silently(host, to).map(drop),
            Act::SetLossFrom(link, end, probability) => net.set_loss_from(link, end, probability),
            Act::LoseEnd(switch, end) => net.lose_end(switch, end),
            Act::SetReadRate(switch, rate) => net.set_read_rate(switch, rate),
            Act::LeaveRoom(switch, Some(room)) => {
                with_switch(net, switch, |switch| switch.leave_room_for(room))
            }
            Act::LeaveRoom(switch, None) => with_switch(net, switch, Switch::leave_room),
            Act::RefuseFlowMods(switch, refuses) => {
                with_switch(net, switch, |switch| switch.refuse_flow_mods(refuses))
            }
            Act::JumpClock(Some(switch), by) => net.jump_clock(switch, by),
            Act::JumpClock(None, by) => {
                net.jump_controller_clock(by);
                Ok(())
            }
            Act::Break(switch) => net.break_connection(switch),
            Act::Stall(switch, time) => net.stall_connection(switch, time),
            Act::Ping(from, to, count) => net.start_ping(from, to, count).map(drop),
            Act::Resolve(from, to) => net.start_ping(from, to, 1).map(|ping| {
                let pair = (from, to);
                self.faced.resolutions.push(Resolution { pair, ping });
            }),
            Act::Stream(from, to, bytes) => net.start_stream(from, to, bytes).map(drop),
            Act::SendToNobody(..)
            | Act::Sweep(..)
            | Act::MakeUpSenders(..)
            | Act::SpoofReply { .. }
            | Act::Forge { .. }
            | Act::Provoke(..)
            | Act::PingNobody(..)
            | Act::Crowd(..) => faults::send(net, &act),
            Act::Datagrams(from, to, count) => {
                let flow = Datagrams {
                    count,
                    payload_bytes: 64,
                    interval: Duration::from_millis(20),
                };
                net.start_datagrams(from, to, flow).map(drop)
            }
        };
        done.expect("what is scheduled is about this network");
        self.names = Names::of(&self.net);
    }

    /// Ends the faults: repairs links that are not cut for good, and switches all switches on.
    fn heal(&mut self, lasting: &[crate::LinkId]) {
        let net = &mut self.net;
        for link in net.links() {
            let healed = net
                .set_loss(link, 0.0)
                .and_then(|()| match lasting.contains(&link) {
                    true => net.cut(link),
                    false => net.repair(link),
                });
            healed.expect("it is this network's link");
        }
        for switch in net.switches() {
            let healed = net
                .start_switch(switch)
                .and_then(|()| net.set_read_rate(switch, None))
                .and_then(|()| with_switch(net, switch, Switch::leave_room))
                .and_then(|()| with_switch(net, switch, |switch| switch.refuse_flow_mods(false)));
            healed.expect("it is this network's switch");
        }
        net.stop_second_controller();
        if net.controller().is_none() {
            self.start_controller();
        }
        self.tell(self.net.now(), "the faults are over");
    }

    fn tell(&mut self, at: Duration, what: &str) {
        self.told.push(format!("{:12.6} {what}", at.as_secs_f64()));
    }

    /// Advances the time, and checks the invariants at intervals.
    fn pass(&mut self, time: Duration) -> Result<(), Box<Failure>> {
        let end = self.net.now() + time;
        while self.net.now() < end {
            let next = (self.net.now() + STEP).min(end);
            self.net.run_to(next);
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Box<Failure>> {
        self.check_watchers()?;
        if let Some(check) = &mut self.reservations {
            if let Err(seen) = check(&self.net) {
                return Err(self.failure(invariants::RESERVATIONS, seen.to_string()));
            }
        }
        Ok(())
    }

    /// Checks that no watcher has seen a violation.
    fn check_watchers(&mut self) -> Result<(), Box<Failure>> {
        let Some(broken) = self.net.broken().cloned() else {
            return Ok(());
        };
        let rule = broken.violation.rule();
        Err(self.failure(
            rule.unwrap_or("a watcher stopped the network"),
            broken.violation.to_string(),
        ))
    }

    /// Calls a check of each invariant.
    fn each(
        &mut self,
        look: impl Fn(&mut dyn Invariant, &mut Net) -> Result<(), String>,
    ) -> Result<(), Box<Failure>> {
        for place in 0..self.invariants.len() {
            let looked = look(&mut *self.invariants[place], &mut self.net);
            self.look()?;
            if let Err(seen) = looked {
                return Err(self.failure(self.invariants[place].sentence(), seen));
            }
        }
        Ok(())
    }

    fn failure(&self, sentence: &'static str, seen: String) -> Box<Failure> {
        Box::new(Failure {
            seed: self.seed,
            topology: self.topology.clone(),
            at: self.net.now(),
            sentence,
            seen,
            items: self.items.clone(),
            faults: self.told.clone(),
            digest: *self.digest.borrow(),
            last_events: Vec::new(),
        })
    }
}

/// Changes a switch, if it is on.
fn with_switch(
    net: &mut Net,
    switch: SwitchId,
    work: impl FnOnce(&mut Switch),
) -> Result<(), NetError> {
    if let Some(switch) = net.switch_mut(switch)? {
        work(switch);
    }
    Ok(())
}

/// Draws the delay, jitter and bandwidth of the links.
fn draw_links(plan: &mut Plan, seed: u64) {
    let is_narrow = Draw::of(seed, "bandwidth").below(4) == 0;
    for link in &mut plan.links {
        let mut draw = Draw::of(seed, &format!("cable {} {}", link.a, link.b));
        let delay = draw.duration(Duration::ZERO..=Duration::from_millis(2));
        link.properties = LinkProperties {
            delay,
            jitter: draw.duration(Duration::ZERO..=delay),
            loss: 0.0,
            bandwidth_bps: is_narrow.then_some(10_000_000),
        };
    }
}

/// Draws the protocol of hosts' pings, and the VLAN of each host: in one run of four, some are in none and some in others.
fn draw_hosts(net: &mut Net, scenario: &Scenario, seed: u64) {
    let over_ipv6 = Draw::of(seed, "ipv6").below(3) == 0;
    net.ping_over_ipv6(scenario.ipv6 && over_ipv6);
    if scenario.vlans && Draw::of(seed, "vlans").below(4) == 0 {
        for host in net.hosts() {
            let mut draw = Draw::of(seed, &format!("vlan of host {}", host.0));
            let vlan = draw.choose(&[None, Some(10), Some(4_094)]).copied();
            let set = net.set_vlan(host, vlan.unwrap_or_default());
            set.expect("it is this network's host");
        }
    }
}

/// Draws the behaviour of switches and channels.
fn draw_config(versions: &[Version], seed: u64) -> NetConfig {
    let forwardings = [
        Forwarding::Plain,
        Forwarding::Compiled(Backend::Interpreter),
        Forwarding::default(),
    ];
    let mut channel = Draw::of(seed, "channels");
    let slowest = channel.duration(Duration::from_micros(100)..=Duration::from_millis(20));
    let mut switch = Draw::of(seed, "switches");
    NetConfig {
        seed: Draw::of(seed, "network").number(),
        switch: SwitchConfig {
            versions: draw_versions(versions, &mut switch),
            n_buffers: switch.choose(&[0, 4, 256]).copied().unwrap_or_default(),
            forwarding: switch.choose(&forwardings).copied().unwrap_or_default(),
            ..SwitchConfig::default()
        },
        switch_delay: switch.duration(Duration::from_micros(1)..=Duration::from_micros(100)),
        channel: ChannelConfig {
            delay: Duration::from_micros(50)..=slowest,
            splits: channel.below(2) == 0,
            ..ChannelConfig::default()
        },
        ..NetConfig::default()
    }
}

/// Draws all of these in one run of three, otherwise one of them.
fn draw_versions(versions: &[Version], draw: &mut Draw) -> Vec<Version> {
    match draw.below(3) {
        0 => versions.to_vec(),
        _ => draw.choose(versions).copied().into_iter().collect(),
    }
}
