//! A proxy for ARP (RFC 826) and neighbour discovery (RFC 4861) that answers on behalf of hosts ("working with dataplane
//! control protocols like ARP", Shalimov and Ivashchenko, section IV).
//!
//! **What.** Requests that a host broadcasts or multicasts are sent to the controller, and no further:
//!
//! | request | action |
//! | --- | --- |
//! | for the address of a known host | answered on that host's behalf, out of the requester's port, with the request's VLAN tag |
//! | for an unknown address | *relayed*: sent, unchanged, out of every other host port of the network |
//! | whether an address is free (RFC 5227, RFC 4862), which another host has | answered: it is not |
//! | whether an address is free, which the requester or no host has | relayed; the owner, if any, answers |
//! | for the requester's own address: a gratuitous ARP | relayed, so that all receive it |
//! | … which another host has | answered, so that the requester notices the conflict; not relayed |
//! | whose sender claims another host's address | never relayed; answered if its target is known |
//!
//! Unicast requests pass: hosts use them to check whether others are still present, so they must arrive. So do replies,
//! and everything from ports with a switch behind them.
//!
//! **Frames that contradict the table of hosts are dropped.** Hosts believe any ARP packet and any neighbour discovery message,
//! so forwarding one could replace a live host's address in all caches. Every frame that maps a host's address to another MAC
//! address is dropped here: requests, replies, announcements and redirects, multicast or unicast, credible or not ([`Hosts`]
//! then probes the owner). When an address gets a new owner, the proxy announces it to all hosts on the new owner's behalf,
//! since the owner's own announcement may have arrived while the old one was being probed.
//!
//! **Why out of every host port, and not flooded.** A flooded packet visits every switch, and causes a packet-in at each.
//! Sent out of the host ports, it costs one packet-out per switch and no packet-in, and uses no link: no loop can multiply
//! it.
//!
//! **Bounds.** A host that scans a network requests thousands of addresses that no host has. The number of relayed requests is
//! limited per port and in total ([`NeighbourProxyConfig`]); excess requests are dropped and counted. Replies cause no traffic
//! in the network and are not limited. Announcements of new owners count towards the total.
//!
//! **Routers.** An IPv6 host treats a neighbour as a router only while its advertisements claim that. Replies sent here claim
//! it if the router's own advertisements have been seen ([`Host::is_router`]).
//!
//! **Cost.** A packet-in that is neither ARP nor IPv6: parsing an Ethernet header. A reply: a look-up, and one packet-out.
//!
//! **Thread-safety.** Each switch's handler has the counts of its own ports; the total is behind a lock that is taken only to
//! relay a request.

mod answer;

use crate::bucket::PortBuckets;
use crate::flooding::packet_out;
use crate::hosts::frame::{Frame, Neighbour};
use crate::hosts::{Edges, Host, HostEvent, Hosts};
use crate::offload::{Offload, ServiceOffload};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use urtica_controller::setting::{SettingError, expect_some};
use urtica_controller::{Background, Program, Stage, Switch, SwitchHandler, SwitchInfo};
use urtica_log::{Rate, TokenBucket};
use urtica_topology::PortId;
use urtica_wire::{Action, DatapathId, PacketIn, PortReason, PortStatus};

/// Limits of relayed requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourProxyConfig {
    /// Per port, in a second. 20.
    pub rate_per_port: u32,
    /// Per port, in a burst. 40.
    pub burst_per_port: u32,
    /// In total, in a second. 500.
    pub rate: u32,
    /// In total, in a burst. 1,000.
    pub burst: u32,
}

impl Default for NeighbourProxyConfig {
    fn default() -> Self {
        Self {
            rate_per_port: 20,
            burst_per_port: 40,
            rate: 500,
            burst: 1_000,
        }
    }
}

/// Counters of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourProxyCounts {
    /// Answered.
    pub answered: u64,
    /// Relayed out of the other host ports.
    pub relayed: u64,
    /// Dropped because there were too many.
    pub dropped: u64,
    /// Frames of any kind dropped because they map an address to another MAC address than its owner's.
    pub contradicted: u64,
    /// Addresses whose new owner was announced.
    pub announced: u64,
}

/// Answers address resolution requests on behalf of hosts: a program. Cheap to clone. See the module's documentation.
///
/// Add it after [`Hosts`], so that a requester is already known when its request is answered.
///
/// ```
/// use urtica_controller::Controller;
/// use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy};
///
/// let discovery = Discovery::new(DiscoveryConfig::default());
/// let hosts = Hosts::new(&discovery, HostsConfig::default());
/// let proxy = NeighbourProxy::new(&hosts);
/// let controller = Controller::new().program(discovery).program(hosts).program(proxy);
/// ```
#[derive(Clone)]
pub struct NeighbourProxy(Arc<ProxyState>);

struct ProxyState {
    config: NeighbourProxyConfig,
    /// Whether it answers and relays requests.
    answers: bool,
    hosts: Hosts,
    /// Shared by all ports; initially full.
    bucket: Mutex<Option<TokenBucket>>,
    answered: AtomicU64,
    relayed: AtomicU64,
    dropped: AtomicU64,
    contradicted: AtomicU64,
    announced: AtomicU64,
    is_started: AtomicBool,
    /// The offload that answers on the proxy's behalf, if any.
    offload: Offload,
}

impl NeighbourProxy {
    /// Creates a proxy for these hosts, with the default limits.
    pub fn new(hosts: &Hosts) -> Self {
        Self::with_config(hosts, NeighbourProxyConfig::default())
    }

    /// Creates a proxy for these hosts.
    pub fn with_config(hosts: &Hosts, config: NeighbourProxyConfig) -> Self {
        Self::create(hosts, config, true)
    }

    /// Creates a proxy that only drops frames that contradict the table of hosts, and announces new owners of addresses: for
    /// networks in which hosts also request addresses of gateways, which another program answers.
    pub fn guard(hosts: &Hosts) -> Self {
        Self::create(hosts, NeighbourProxyConfig::default(), false)
    }

    fn create(hosts: &Hosts, config: NeighbourProxyConfig, answers: bool) -> Self {
        Self(Arc::new(ProxyState {
            config,
            answers,
            hosts: hosts.clone(),
            bucket: Mutex::default(),
            answered: AtomicU64::new(0),
            relayed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            contradicted: AtomicU64::new(0),
            announced: AtomicU64::new(0),
            is_started: AtomicBool::new(false),
            offload: Offload::new(),
        }))
    }

    /// Sets an offload, which answers requests instead of the proxy if it can. Call this before the controller starts; later
    /// calls have no effect.
    pub fn offload(&self, offload: Arc<dyn ServiceOffload>) {
        let _ = self.0.offload.set(offload);
    }

    /// Returns the counters.
    pub fn counts(&self) -> NeighbourProxyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let settled = self
            .0
            .offload
            .get()
            .map(|offload| offload.counts().requests);
        NeighbourProxyCounts {
            answered: read(&self.0.answered) + settled.unwrap_or(0),
            relayed: read(&self.0.relayed),
            dropped: read(&self.0.dropped),
            contradicted: read(&self.0.contradicted),
            announced: read(&self.0.announced),
        }
    }
}

impl Program for NeighbourProxy {
    fn check(&self) -> Result<(), SettingError> {
        let config = &self.0.config;
        for (setting, bound) in [
            ("NeighbourProxyConfig::rate_per_port", config.rate_per_port),
            (
                "NeighbourProxyConfig::burst_per_port",
                config.burst_per_port,
            ),
            ("NeighbourProxyConfig::rate", config.rate),
            ("NeighbourProxyConfig::burst", config.burst),
        ] {
            expect_some(setting, bound as usize)?;
        }
        Ok(())
    }

    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Handler {
            proxy: Arc::clone(&self.0),
            switch: info.datapath_id,
            edges: Edges::new(self.0.hosts.discovery()),
            questions: PortBuckets::new(self.0.config.rate_per_port, self.0.config.burst_per_port),
        })
    }

    fn start(&self, background: &Background) {
        // A second controller would have other switches; the first one keeps it.
        if !self.0.is_started.swap(true, Ordering::Relaxed) {
            let (shared, own) = (Arc::clone(&self.0), background.clone());
            background.spawn("neighbours", async move { shared.run(own).await });
        }
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// The handler of one switch.
struct Handler {
    proxy: Arc<ProxyState>,
    switch: DatapathId,
    edges: Edges,
    /// Limits each port's relayed requests.
    questions: PortBuckets,
}

/// The treatment of a frame.
enum Verdict {
    /// Not a request for the proxy, or harmless: later programs see it.
    Pass,
    /// Drop it.
    Drop,
    /// A request to answer on behalf of `owner`.
    Answer {
        sender: Option<IpAddr>,
        target: IpAddr,
        owner: Arc<Host>,
    },
    /// A request to relay.
    Relay,
}

impl SwitchHandler for Handler {
    fn switch_up(&mut self, switch: &mut Switch) {
        if let Some(offload) = self.proxy.offload.get() {
            offload.answer_as(switch.program());
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let Some(frame) = Frame::parse(packet.data) else {
            return;
        };
        if !frame.may_be_neighbour() || !self.edges.contains(packet.in_port, switch.info()) {
            return;
        }
        match self.proxy.verdict(&frame) {
            Verdict::Pass => return,
            Verdict::Drop => count(&self.proxy.contradicted),
            Verdict::Answer {
                sender,
                target,
                owner,
            } => {
                let answer = answer::answer(&frame, sender, target, &owner);
                // Fails if the port has no number in 1.0; such a port cannot have sent the request.
                let _ = switch.send(&packet_out(&answer, &[Action::output(packet.in_port)]));
                count(&self.proxy.answered);
            }
            Verdict::Relay => self.relay(switch, packet),
        }
        switch.consume();
    }

    fn port_status(&mut self, _: &mut Switch, status: &PortStatus) {
        if status.reason == PortReason::Delete {
            self.questions.forget(status.port.port_no);
        }
    }
}

impl Handler {
    /// Sends a request out of every host port except its ingress port. A request that was relayed just before has returned, and
    /// is dropped. The shared limit is checked last, so that a port above its own limit does not use up that of others.
    fn relay(&mut self, switch: &Switch, packet: &PacketIn) {
        let (proxy, now) = (&self.proxy, switch.now());
        let is_whole = packet.data.len() >= usize::from(packet.total_len);
        if !is_whole || !self.questions.take(packet.in_port, now) {
            return count(&proxy.dropped);
        }
        if !proxy.hosts.is_new(packet.data, now) {
            return;
        }
        if !proxy.may_relay(now) {
            return count(&proxy.dropped);
        }
        let from = PortId::new(self.switch, packet.in_port);
        let tree = self.edges.tree();
        tree.send_to_hosts(switch.network(), from, packet.data, |_| true);
        count(&self.proxy.relayed);
    }
}

impl ProxyState {
    fn verdict(&self, frame: &Frame) -> Verdict {
        let is_question = self.answers && frame.eth_dst.is_multicast();
        let question = match frame.neighbour() {
            Some(Neighbour::Question { sender, target }) if is_question => Some((sender, target)),
            _ => None,
        };
        if let Some((sender, target)) = question {
            let owner = self.hosts.find_address_in(frame.vlan(), target);
            if let Some(owner) = owner.filter(|owner| owner.mac != frame.eth_src) {
                return Verdict::Answer {
                    sender,
                    target,
                    owner,
                };
            }
        }
        match question {
            _ if self.hosts.is_contradicted_by(frame) => Verdict::Drop,
            Some(_) => Verdict::Relay,
            None => Verdict::Pass,
        }
    }

    /// Runs the background program, which announces new owners of addresses. If it missed events, hosts learn of those new
    /// owners later, without it.
    async fn run(&self, background: Background) {
        let mut events = self.hosts.events();
        while let Some(event) = events.next().await {
            if let HostEvent::AddressMoved { address, to, .. } = event {
                if self.may_relay(background.now()) {
                    let tree = self.hosts.discovery().flood_tree().load();
                    let frame = answer::announcement(&to, address);
                    let network = background.network();
                    tree.send_to_hosts(network, to.attached, &frame, |_| true);
                    count(&self.announced);
                }
            }
        }
    }

    fn may_relay(&self, now: Instant) -> bool {
        let NeighbourProxyConfig { rate, burst, .. } = self.config;
        let mut bucket = self.bucket.lock();
        let bucket = bucket.get_or_insert_with(|| TokenBucket::new(now));
        bucket.take(Rate::per_second(rate, burst), now)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
