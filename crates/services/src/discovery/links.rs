//! The state of link discovery: switches, ports, which port received whose probes, and the resulting links.
//!
//! **What.** [`Links`] has no socket, lock or clock: it receives events with their time (`handle_…`), and returns
//! probes to send, events and [`Findings`] (`poll_…`).
//!
//! **How.** Each port that is up records the origin of the last probe it heard ([`PortState::heard`]) and the port that heard
//! its own ([`PortState::heard_by`]). The two are kept consistent, so a port has at most one neighbour in each direction. A
//! link is up when both ports have heard each other. So a link that works in one direction only is not accepted, nor is a
//! single forged or relayed frame.
//!
//! ```text
//!             a probe heard, or its own was                    both heard each other, and not flapping
//!  unclassified ───────────────────────────► link port, blocked ◄───────────────────────────► link
//!   │   ▲ ▲                                      │
//!   │   │ └──────────────────────────────────────┘ neither any longer: port or switch down, or time-out
//!   │   │ port up
//!   ▼   │
//!  host port: quiet for the settle time
//! ```
//!
//! **When probes are sent.** To a port that came up: at once, and up to three more times while it settles. Back to the origin
//! of a probe if the reverse direction is unknown: at once, since the neighbour's own probe may have been sent before this
//! switch could report it. To a host port that is in doubt: at once. And periodically, each port at its own offset within the
//! interval: the offsets of consecutive ports are spread as evenly as possible (van der Corput's sequence), so a thousand
//! switches that join together are not probed together.
//!
//! **Cost.** Each call: a few look-ups in ordered maps. 250 bytes per port. Work for switches with many ports is done in
//! portions of [`PORTION`] ports, one per turn of the timers (`backlog.rs`), because callers hold a lock that other switches
//! wait for.

mod backlog;
mod establishing;
mod port_state;
mod ports;

use super::damping::Damping;
use super::probe::Probe;
use super::{DiscoveryConfig, DiscoveryEvent, DownReason, Refusal};
use crate::flooding::{PortRole, SeenPort};
use crate::offload::ServiceOffload;
use crate::timers::Timers;
use backlog::Backlog;
use port_state::{Heard, PortState};
use ports::Ports;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{DatapathId, Port, PortConfig, PortNo, PortState as PortStateBits};

/// The minimum time between two events for refused frames at one port, so that a sender of thousands does not drown out other
/// events.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

/// Times at which an unclassified port is probed again, as fractions of the settle time: 9 ms, 38 ms and 150 ms if that is 0.3
/// s. A switch that has just joined may lose the first probes: its cache may keep dropping frames that were dropped before it
/// had entries, until the cache is revalidated.
const ASK_AGAIN_AT: [u32; 3] = [32, 8, 2];

/// The minimum time between two probes of a host port that is in doubt.
const DOUBT_PAUSE: Duration = Duration::from_millis(100);

/// The number of other ports whose flap history is kept for one port. A link has one other end; more are needed only if links
/// are moved or forged.
const MAX_DAMPINGS_PER_PORT: usize = 16;

/// The maximum number of ports, or due timers, that one call handles.
const PORTION: usize = 256;

/// Identifies a connection of a switch. If two have one datapath id, the one that came up last represents the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner(pub u64);

/// The state at one moment, to be published.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Findings {
    pub switches: Vec<DatapathId>,
    /// The links, if they or the switches have changed.
    pub links: Option<Vec<DirectedLink>>,
    /// All ports that are up, sorted.
    pub ports: Vec<SeenPort>,
}

/// The ports, and the ports whose probes they receive. See the module's documentation.
// Each event of a port or probe has a method here; a separate file establishes and removes links.
pub(super) struct Links {
    config: DiscoveryConfig,
    /// The origin of stamps.
    started: Instant,
    last_stamp: u64,
    last_place: u32,
    switches: BTreeMap<DatapathId, Owner>,
    /// The ports that are up.
    ports: Ports,
    /// By the ends of the link, lower end first.
    dampings: BTreeMap<(PortId, PortId), Damping>,
    timers: Timers<Timer>,
    backlog: Backlog,
    /// See [`PORTION`]; lower in tests.
    portion: usize,
    probes: Vec<Probe>,
    events: VecDeque<DiscoveryEvent>,
    has_new_links: bool,
    has_new_ports: bool,
    /// The offload that settles probes of known links, if any.
    offload: Option<Arc<dyn ServiceOffload>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// The port's periodic probe.
    Probe(PortId),
    /// Probe an unclassified port again: the index in [`ASK_AGAIN_AT`].
    AskAgain(PortId, usize),
    /// Classify the port if it was quiet, or if the link works in one direction only.
    Classify(PortId),
    /// Check whether the last probe that the port heard is too old.
    Expire(PortId),
    /// The hold-down of a link ends, or its history can be forgotten.
    Damping(PortId, PortId),
}

impl Links {
    /// Creates the state without switches and ports.
    pub fn new(config: DiscoveryConfig, now: Instant) -> Self {
        Self {
            config,
            started: now,
            last_stamp: 0,
            last_place: 0,
            switches: BTreeMap::new(),
            ports: Ports::default(),
            dampings: BTreeMap::new(),
            timers: Timers::default(),
            backlog: Backlog::default(),
            portion: PORTION,
            probes: Vec::new(),
            events: VecDeque::new(),
            has_new_links: false,
            has_new_ports: false,
            offload: None,
        }
    }

    /// Sets the offload that settles probes of known links.
    pub fn with_offload(self, offload: Option<Arc<dyn ServiceOffload>>) -> Self {
        Self { offload, ..self }
    }

    /// Adds a connected switch with these ports: one portion at once, the others by [`Links::handle_timeout`]. Replaces an
    /// earlier switch with this id.
    pub fn handle_switch_up(
        &mut self,
        switch: DatapathId,
        owner: Owner,
        ports: &[Port],
        now: Instant,
    ) {
        self.remove_switch(switch, now);
        self.switches.insert(switch, owner);
        self.has_new_links = true;
        self.events.push_back(DiscoveryEvent::SwitchUp(switch));
        let joined_at = self.stamp(now);
        let (first, others) = ports.split_at(ports.len().min(self.portion));
        for port in first {
            self.handle_port(switch, owner, port, now);
        }
        self.backlog.add_ports(switch, others, now);
        self.backlog.doubt_ports(joined_at, now);
    }

    /// Handles the disconnection of a switch, unless another connection represents it by now.
    pub fn handle_switch_down(&mut self, switch: DatapathId, owner: Owner, now: Instant) {
        if self.is_owner(switch, owner) {
            self.remove_switch(switch, now);
        }
    }

    /// Handles a port that was added or changed.
    pub fn handle_port(&mut self, switch: DatapathId, owner: Owner, port: &Port, now: Instant) {
        let id = PortId::new(switch, port.port_no);
        if !self.is_owner(switch, owner) || (port.port_no.is_reserved() && !is_local(id)) {
            return;
        }
        self.backlog.forget_port(id);
        if !is_up(port) {
            return self.remove_port(id, DownReason::Port, now);
        }
        match self.ports.get_mut(id) {
            Some(state) => {
                state.hw_addr = port.hw_addr;
                self.has_new_ports |= state.takes_floods != takes_floods(port);
                state.takes_floods = takes_floods(port);
                self.send_probe(id, now);
            }
            None => self.add_port(id, port, now),
        }
    }

    /// Handles the removal of a port.
    pub fn handle_port_removed(
        &mut self,
        switch: DatapathId,
        owner: Owner,
        port_no: PortNo,
        now: Instant,
    ) {
        let id = PortId::new(switch, port_no);
        if self.is_owner(switch, owner) {
            self.backlog.forget_port(id);
            self.remove_port(id, DownReason::Port, now);
        }
    }

    /// Handles one of our probes, which `from` sent with this stamp, and which arrived at `at`.
    pub fn handle_probe(
        &mut self,
        owner: Owner,
        at: PortId,
        from: PortId,
        stamp: u64,
        now: Instant,
    ) {
        if !self.is_owner(at.switch, owner) || !self.ports.contains(at) {
            return;
        }
        if let Some(heard_by) = self.ports.get(from).and_then(|port| port.heard_by) {
            self.note_settled(heard_by);
        }
        match self.check_probe(at, from, stamp, now) {
            Check::Good => self.hear(at, from, stamp, now),
            Check::Old => {}
            Check::Refused(refusal) => {
                if refusal == Refusal::Late {
                    self.block([at, from]);
                }
                self.refuse(at, Some(from), refusal, now);
            }
        }
    }

    /// Handles a forged probe.
    pub fn handle_forged(
        &mut self,
        owner: Owner,
        at: PortId,
        claimed: Option<PortId>,
        now: Instant,
    ) {
        if self.is_owner(at.switch, owner) {
            self.refuse(at, claimed, Refusal::Authenticator, now);
        }
    }

    /// Handles doubt about a port's classification as a host port: its next probe is due at once. Returns whether one is.
    pub fn handle_doubt(&mut self, id: PortId, now: Instant) -> bool {
        let is_doubtful = |port: &&mut PortState| {
            port.role() == PortRole::Host && port.next_doubt.is_none_or(|next| next <= now)
        };
        let port = self.ports.get_mut(id).filter(is_doubtful);
        let is_due = port.is_some() && !is_local(id);
        if let Some(port) = port {
            port.note_doubt(now);
        }
        if is_due {
            self.timers.set(Timer::Probe(id), now);
        }
        is_due
    }

    /// Handles due work, at most one portion: if more is due, [`Links::poll_timeout`] is not after `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.work_off_backlog(now);
        for _ in 0..self.portion {
            let Some(timer) = self.timers.pop_due(now) else {
                return;
            };
            match timer {
                Timer::Probe(port) => self.probe_regularly(port, now),
                Timer::AskAgain(port, _) => self.ask_again(port, now),
                Timer::Classify(port) => self.classify(port, now),
                Timer::Expire(port) => self.expire(port, now),
                Timer::Damping(a, b) => self.release(a, b, now),
            }
        }
    }

    /// Returns the time of the next due work of [`Links::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.backlog
            .due()
            .into_iter()
            .chain(self.timers.next())
            .min()
    }

    /// Returns the probes to send now, in order. All probes that result from a call about a switch are for that switch.
    pub fn poll_probes(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.probes)
    }

    /// Returns the events since the last call, in order.
    pub fn poll_events(&mut self) -> VecDeque<DiscoveryEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns `true` if [`Links::poll_findings`] or [`Links::poll_events`] would return anything.
    pub fn has_news(&self) -> bool {
        self.has_new_links || self.has_new_ports || !self.events.is_empty()
    }

    /// Returns the findings, if they have changed since the last call.
    pub fn poll_findings(&mut self) -> Option<Findings> {
        let has_new_links = std::mem::take(&mut self.has_new_links);
        if !std::mem::take(&mut self.has_new_ports) && !has_new_links {
            return None;
        }
        Some(Findings {
            switches: self.switches.keys().copied().collect(),
            links: has_new_links.then(|| self.links().collect()),
            ports: self.seen_ports().collect(),
        })
    }

    /// Returns `true` if a connection represents the switch.
    pub fn knows(&self, switch: DatapathId) -> bool {
        self.switches.contains_key(&switch)
    }

    /// Returns the number of ports that are up.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    fn links(&self) -> impl Iterator<Item = DirectedLink> {
        let ports = self.ports.iter();
        ports.filter_map(|(from, state)| state.link.map(|to| DirectedLink::new(from, to)))
    }

    fn seen_ports(&self) -> impl Iterator<Item = SeenPort> {
        self.ports.iter().map(|(port, state)| SeenPort {
            port,
            role: state.role(),
            takes_floods: state.takes_floods,
        })
    }

    fn is_owner(&self, switch: DatapathId, owner: Owner) -> bool {
        self.switches.get(&switch) == Some(&owner)
    }

    fn remove_switch(&mut self, switch: DatapathId, now: Instant) {
        if self.switches.remove(&switch).is_none() {
            return;
        }
        let ports = self.ports.of_switch(switch);
        let ends = ports.filter(|(_, port)| port.is_link_port());
        let ends: Vec<_> = ends.map(|(id, _)| id).collect();
        for port in ends {
            self.remove_port(port, DownReason::Switch, now);
        }
        let others = self.ports.take_switch(switch);
        self.has_new_ports |= !others.is_empty();
        self.backlog.remove_switch(switch, others, now);
        self.has_new_links = true;
        self.events.push_back(DiscoveryEvent::SwitchDown(switch));
    }

    fn add_port(&mut self, id: PortId, port: &Port, now: Instant) {
        self.last_place = self.last_place.wrapping_add(1);
        let first_stamp = self.stamp(now);
        let state = PortState::new(port, self.last_place, first_stamp);
        self.ports.insert(id, state);
        self.has_new_ports = true;
        // The switch's own network stack is a host, and no switch can be behind it.
        if !is_local(id) {
            self.settle(id, now);
            self.send_probe(id, now);
            self.schedule_probe(id, now);
        }
    }

    fn remove_port(&mut self, port: PortId, reason: DownReason, now: Instant) {
        if !self.ports.contains(port) {
            return;
        }
        self.forget_heard(port, reason, now);
        self.forget_heard_by(port, reason, now);
        self.ports.remove(port);
        self.has_new_ports = true;
        self.cancel_timers(port);
    }

    fn cancel_timers(&mut self, port: PortId) {
        for timer in [
            Timer::Probe(port),
            Timer::Classify(port),
            Timer::Expire(port),
        ] {
            self.timers.cancel(timer);
        }
        for which in 0..ASK_AGAIN_AT.len() {
            self.timers.cancel(Timer::AskAgain(port, which));
        }
    }

    /// Forgets the origin that `at` heard: the link goes down, and the neighbour is no longer heard by it.
    fn forget_heard(&mut self, at: PortId, reason: DownReason, now: Instant) {
        self.take_down(at, reason);
        let heard = self.ports.get_mut(at).and_then(|port| port.heard.take());
        if let Some(Heard { from, .. }) = heard {
            if let Some(port) = self.ports.get_mut(from) {
                port.heard_by = None;
            }
            self.has_new_ports = true;
            self.settle(at, now);
            self.settle(from, now);
        }
    }

    /// Forgets the port where the probes of `from` arrive.
    fn forget_heard_by(&mut self, from: PortId, reason: DownReason, now: Instant) {
        let heard_by = self.ports.get(from).and_then(|port| port.heard_by);
        if let Some(port) = heard_by {
            self.forget_heard(port, reason, now);
        }
    }

    /// Classifies the port again, because its state has changed, once it has had time for probes.
    fn settle(&mut self, id: PortId, now: Instant) {
        let classify_at = now + self.config.settle_time;
        if let Some(port) = self.ports.get_mut(id) {
            port.classify_at = Some(classify_at);
            self.timers.set(Timer::Classify(id), classify_at);
            for (which, share) in ASK_AGAIN_AT.into_iter().enumerate() {
                let at = now + self.config.settle_time / share;
                self.timers.set(Timer::AskAgain(id, which), at);
            }
        }
    }

    fn check_probe(&self, at: PortId, from: PortId, stamp: u64, now: Instant) -> Check {
        let Some(sender) = self.ports.get(from) else {
            // The port went down while the probe was in flight.
            return Check::Old;
        };
        let age = Duration::from_nanos(self.elapsed_ns(now).saturating_sub(stamp));
        if at == from {
            Check::Refused(Refusal::Reflected)
        } else if stamp < sender.first_stamp {
            Check::Old
        } else if age > self.config.timeout() {
            Check::Refused(Refusal::Replayed)
        } else if stamp <= sender.heard_stamp {
            match sender.heard_by == Some(at) {
                true => Check::Old,
                false => Check::Refused(Refusal::Duplicated),
            }
        } else if self.config.refuse_late_links && (self.was_host(at) || self.was_host(from)) {
            Check::Refused(Refusal::Late)
        } else {
            Check::Good
        }
    }

    /// Blocks ports that a switch may be behind but that must not become a link: flooding to them could close a loop.
    fn block(&mut self, ports: [PortId; 2]) {
        for port in ports {
            if let Some(port) = self.ports.get_mut(port) {
                self.has_new_ports |= !port.is_blocked;
                port.is_blocked = true;
            }
        }
    }

    fn was_host(&self, port: PortId) -> bool {
        self.ports.get(port).is_some_and(|port| port.was_host)
    }

    /// Handles a probe that has passed all checks. If the reverse direction is unknown, it is probed.
    fn hear(&mut self, at: PortId, from: PortId, stamp: u64, now: Instant) {
        let is_new = !self.hears(at, from);
        if is_new {
            self.forget_heard(at, DownReason::Moved, now);
            self.forget_heard_by(from, DownReason::Moved, now);
            self.has_new_ports = true;
            self.settle(at, now);
            self.timers
                .set(Timer::Expire(at), now + self.config.timeout());
        }
        if let Some(port) = self.ports.get_mut(at) {
            port.heard = Some(Heard { from, at: now });
        }
        if let Some(port) = self.ports.get_mut(from) {
            port.heard_by = Some(at);
            port.heard_stamp = stamp;
        }
        if self.hears(from, at) {
            self.bring_up(at, from, now);
        } else if is_new {
            // Only once: with one-way links in a cycle, answers to answers would circulate for ever.
            self.send_probe(at, now);
        }
    }

    /// Returns `true` if `from` is the port that `at` heard last.
    fn hears(&self, at: PortId, from: PortId) -> bool {
        let heard = self.ports.get(at).and_then(|port| port.heard);
        heard.is_some_and(|heard| heard.from == from)
    }

    fn refuse(&mut self, at: PortId, claimed: Option<PortId>, refusal: Refusal, now: Instant) {
        let Some(port) = self.ports.get_mut(at) else {
            return;
        };
        port.refusals += 1;
        if port.next_refusal.is_some_and(|next| now < next) {
            return;
        }
        port.next_refusal = Some(now + REFUSAL_PAUSE);
        self.events.push_back(DiscoveryEvent::Refused {
            at,
            claimed,
            refusal,
            count: port.refusals,
        });
    }

    fn probe_regularly(&mut self, port: PortId, now: Instant) {
        self.send_probe(port, now);
        self.schedule_probe(port, now);
    }

    fn ask_again(&mut self, port: PortId, now: Instant) {
        let is_unsure = |state: &PortState| {
            state.classify_at.is_some_and(|at| now < at) && state.link.is_none()
        };
        if self.ports.get(port).is_some_and(is_unsure) {
            self.send_probe(port, now);
        }
    }

    fn classify(&mut self, id: PortId, now: Instant) {
        let is_due = |port: &&mut PortState| port.classify_at.is_some_and(|at| at <= now);
        let Some(port) = self.ports.get_mut(id).filter(is_due) else {
            return;
        };
        port.classify_at = None;
        if !port.is_link_port() {
            port.was_host = true;
            self.has_new_ports = true;
        } else if let Some(Heard { from, .. }) = port.heard {
            if !self.hears(from, id) {
                let link = DirectedLink::new(from, id);
                self.events.push_back(DiscoveryEvent::OneWay(link));
            }
        }
    }

    fn expire(&mut self, port: PortId, now: Instant) {
        self.note_settled(port);
        let Some(heard) = self.ports.get(port).and_then(|port| port.heard) else {
            return;
        };
        let due = heard.at + self.config.timeout();
        if due > now {
            self.timers.set(Timer::Expire(port), due);
        } else {
            self.forget_heard(port, DownReason::TimedOut, now);
        }
    }

    fn is_up(&self, a: PortId, b: PortId) -> bool {
        self.ports.get(a).is_some_and(|port| port.link == Some(b))
    }

    fn send_probe(&mut self, from: PortId, now: Instant) {
        if is_local(from) {
            return;
        }
        let stamp = self.stamp(now);
        if let Some(port) = self.ports.get(from) {
            self.probes.push(Probe {
                from,
                hw_addr: port.hw_addr,
                stamp,
                confirms_at: port.link,
            });
        }
    }

    /// Schedules the port's probe at its next offset in the interval.
    fn schedule_probe(&mut self, id: PortId, now: Instant) {
        let Some(port) = self.ports.get(id) else {
            return;
        };
        let interval = self.config.probe_interval.as_nanos() as u64;
        let place = (u128::from(port.place.reverse_bits()) * u128::from(interval)) >> 32;
        let elapsed = now.saturating_duration_since(self.started).as_nanos() as u64;
        let into_interval = (elapsed + interval - place as u64) % interval;
        let due = now + Duration::from_nanos(interval - into_interval);
        self.timers.set(Timer::Probe(id), due);
    }

    /// Returns a stamp higher than that of any earlier probe.
    fn stamp(&mut self, now: Instant) -> u64 {
        self.last_stamp = self.elapsed_ns(now).max(self.last_stamp + 1);
        self.last_stamp
    }

    fn elapsed_ns(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_nanos() as u64
    }
}

/// The verdict on a probe.
enum Check {
    Good,
    /// It contains nothing new.
    Old,
    Refused(Refusal),
}

/// Returns both directions of a link, the one from the lower port first.
fn both_ways(a: PortId, b: PortId) -> [DirectedLink; 2] {
    let link = DirectedLink::new(a.min(b), a.max(b));
    [link, link.reversed()]
}

fn is_local(port: PortId) -> bool {
    port.port_no == PortNo::LOCAL
}

fn is_up(port: &Port) -> bool {
    !port.config.contains(PortConfig::PORT_DOWN) && !port.state.contains(PortStateBits::LINK_DOWN)
}

fn takes_floods(port: &Port) -> bool {
    !port.config.contains(PortConfig::NO_FLOOD)
}

#[cfg(test)]
mod tests;
