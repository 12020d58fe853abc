//! The whole network.

mod build;
mod control;
mod flows;
mod hosts;
mod interrupt;
mod links;
mod moves;
mod peers;
mod pings;
mod real_time;
mod second;
mod switches;
mod trouble;

pub use build::NetConfig;
pub use flows::FlowId;
pub use pings::{PingAllReport, PingId};
pub use trouble::LostEnd;

use crate::channel::Channel;
use crate::frame::Frame;
use crate::host::{Host, Outbox};
use crate::kernel::{Broken, Due, Kernel, to_ns};
use crate::link::Link;
use crate::node::Node;
use crate::watch::Watcher;
use crate::{HostId, LinkId, SwitchId};
use control::Control;
use interrupt::Interrupt;
use peers::Peer;
use real_time::Pace;
use second::Second;
use std::time::Duration;

/// A network in one process: switches, links, hosts and, if wanted, a controller.
///
/// Single-threaded, and without a clock: time advances only in methods that document it, and jumps from one event to the next.
/// Equal seeds and calls give equal runs, to the byte. [`Net::follow_the_clock`] and [`Net::connect_to`] make the network
/// follow real time instead; then runs differ.
// Its many methods are the operations of tests and prompts on a network, with a file for each kind: cables, hosts, faults,
// time, …
pub struct Net {
    pub(crate) kernel: Kernel,
    config: NetConfig,
    links: Vec<Link>,
    nodes: Vec<Node>,
    hosts: Vec<Attached>,
    channels: Vec<Channel>,
    control: Control,
    /// A second controller, in addition to the first.
    second: Option<Second>,
    /// Whether new pings use IPv6.
    pings_over_ipv6: bool,
    /// Peers connected to the controller that are not switches of this network.
    peers: Vec<Peer>,
    /// Set while time follows the clock.
    pace: Option<Pace>,
    /// The check that may interrupt a run.
    interrupt: Interrupt,
    outbox: Outbox,
    /// Buffer for a switch's sent frames.
    sent: Vec<(u32, Frame)>,
}

/// A host and its link.
struct Attached {
    host: Host,
    link: LinkId,
    /// The time at which its timer is scheduled.
    due_ns: u64,
}

/// Errors of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The plan contradicts itself.
    #[error("the plan is not a network: {0}")]
    Plan(String),
    /// The name is unknown.
    #[error("there is no {kind} '{name}'; expected one of {expected}")]
    NoSuchName {
        /// The kind of object that was looked up.
        kind: &'static str,
        /// The name.
        name: String,
        /// The existing names.
        expected: String,
    },
    /// The id belongs to another network.
    #[error("there is no {kind} {id} in this network; expected one that it returned")]
    NoSuchId {
        /// The kind of object that was looked up.
        kind: &'static str,
        /// The number.
        id: u32,
    },
    /// There is no such link.
    #[error("there is no link between '{0}' and '{1}'")]
    NoLink(String, String),
    /// A tag cannot hold this VLAN, or 0, which means "no VLAN" (IEEE 802.1Q section 9.6).
    #[error("a host cannot be in VLAN {0}; expected 1 to 4094")]
    NoVlan(u16),
    /// A controller's address cannot be resolved.
    #[error("cannot find the controller {0}: {1}; expected an existing host")]
    Address(String, String),
    /// A watcher has stopped the network.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The run was interrupted.
    #[error("interrupted after {0:.3?}")]
    Interrupted(Duration),
}

impl Net {
    /// Returns the time since the network was built.
    pub fn now(&self) -> Duration {
        self.kernel.now()
    }

    /// Advances the time by this much.
    pub fn run_for(&mut self, time: Duration) {
        self.run_to_ns(self.kernel.now_ns.saturating_add(to_ns(time)));
    }

    /// Advances the time up to this time.
    pub fn run_to(&mut self, time: Duration) {
        self.run_to_ns(to_ns(time));
    }

    /// Advances the time until a condition holds, by `bound` at most; returns whether it holds. The condition is checked every
    /// millisecond.
    pub fn run_until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool, bound: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(1);
        let end = self.now() + bound;
        loop {
            if is_so(self) {
                return true;
            }
            if self.now() >= end || self.is_broken() || self.is_interrupted() {
                return false;
            }
            self.run_to((self.now() + STEP).min(end));
        }
    }

    /// Returns the time of the next event.
    pub fn next_due(&self) -> Option<Duration> {
        self.kernel.agenda.next_ns().map(Duration::from_nanos)
    }

    /// Adds a watcher.
    pub fn watch(&mut self, watcher: impl Watcher + 'static) {
        self.kernel.watch(Box::new(watcher));
    }

    /// Returns the violation for which a watcher has stopped the network. Time no longer advances then.
    pub fn broken(&self) -> Option<&Broken> {
        self.kernel.broken.as_ref()
    }

    /// Returns the host with this name.
    ///
    /// # Errors
    /// [`NetError::NoSuchName`].
    pub fn host(&self, name: &str) -> Result<HostId, NetError> {
        let names = self.hosts.iter().map(|attached| &*attached.host.name);
        find("host", name, names).map(HostId)
    }

    /// Returns the switch with this name.
    ///
    /// # Errors
    /// [`NetError::NoSuchName`].
    pub fn switch(&self, name: &str) -> Result<SwitchId, NetError> {
        let names = self.nodes.iter().map(|node| &*node.name);
        find("switch", name, names).map(SwitchId)
    }

    /// Returns the hosts.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// Returns the switches.
    pub fn switches(&self) -> impl ExactSizeIterator<Item = SwitchId> + use<> {
        (0..self.nodes.len() as u32).map(SwitchId)
    }

    /// Returns the links.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    fn is_broken(&self) -> bool {
        self.kernel.broken.is_some()
    }

    fn run_to_ns(&mut self, until_ns: u64) {
        // The caller may have sent messages through the controller.
        self.set_timer();
        while !self.is_broken() && !self.interrupt.is_due() {
            let next_ns = self.kernel.agenda.next_ns();
            if self.wait(next_ns.map_or(until_ns, |next_ns| next_ns.min(until_ns))) {
                continue;
            }
            let Some((at_ns, due)) = self.kernel.agenda.take_due(until_ns) else {
                self.kernel.now_ns = until_ns.max(self.kernel.now_ns);
                return;
            };
            self.kernel.now_ns = at_ns.max(self.kernel.now_ns);
            self.handle(due);
        }
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Link(link, from) => self.deliver(link, from.into()),
            Due::Poll(switch) => self.poll_switch(switch),
            Due::Tick(switch, life) => self.tick_switch(switch, life),
            Due::Carrier(switch, life) => {
                self.run_switch_tick(switch, life);
            }
            Due::Host(host) => self.handle_host_timeout(host),
            Due::Channel(switch, way) => self.deliver_control(switch, way),
            Due::Connect(switch) => self.connect(switch),
            Due::Controller => self.take_controller_turn(),
            Due::ControllerTick => self.tick_controller(),
        }
    }
}

/// Returns the index of a name among these.
fn find<'a>(
    kind: &'static str,
    name: &str,
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> Result<u32, NetError> {
    let all = names.clone();
    match names.position(|known| known == name) {
        Some(place) => Ok(place as u32),
        None => Err(NetError::NoSuchName {
            kind,
            name: name.to_owned(),
            expected: all.collect::<Vec<_>>().join(", "),
        }),
    }
}
