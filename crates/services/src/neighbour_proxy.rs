//! Answers for hosts: who has this address? (ARP, RFC 826; neighbour discovery, RFC 4861; "working with dataplane
//! control protocols like ARP", Shalimov and Ivashchenko, section IV.)
//!
//! **What.** Questions that a host sends to everybody at its port come here, and go no further:
//!
//! | the question | what becomes of it |
//! | --- | --- |
//! | for the address of a host that is known | answered in that host's name, at the asker's port, with the question's VLAN tag |
//! | for an address that nobody is known to have | *relayed*: sent, unchanged, out of every other host port of the network |
//! | whether an address is free (RFC 5227, RFC 4862), which another host has | answered: it is not |
//! | whether an address is free, which the asker has, or nobody | relayed; whoever has it answers |
//! | for the asker's own address: a gratuitous ARP | relayed, so that all hear it |
//! | … which another host has | answered, which tells the sender of the conflict; not relayed |
//! | whose sender says that it has another host's address | never relayed; answered if its target is known |
//!
//! Questions to one host alone pass: they are how hosts find out whether others are still there, and must reach them.
//! So do answers, and everything that comes in by a port with a switch behind it.
//!
//! **What contradicts the hosts' table goes nowhere.** A host believes what it reads in any ARP packet and in any message
//! of neighbour discovery, so one of them that is passed on would take a live host's address in everybody's cache. Here
//! ends every such frame that names, for an address which a host has, a MAC address that is not this host's: questions,
//! answers, announcements and redirects, to all or to one, believable or not ([`Hosts`] asks the owner meanwhile). Where
//! an address has gone over to another host, all are told of it in its new owner's name, since its own announcement may
//! have come when the old owner was still asked.
//!
//! **Why out of every host port, and not flooded.** A flooded packet visits every switch, and at each comes to the
//! controller again. Sent out of the host ports, it costs a packet-out a switch and no packet-in, and takes no link: no
//! loop can multiply it.
//!
//! **Bounds.** A host that scans a network asks for addresses that nobody has by the thousand. So many questions are
//! relayed for each port, and so many in all ([`NeighbourProxyConfig`]); what is beyond is dropped and counted.
//! Answers cost the network nothing and have no bound. An address that goes over is told of within the bound in all.
//!
//! **Routers.** An IPv6 host takes a router for one only while the router's answers say so. The answers here do, if the
//! router's advertisements have been seen ([`Host::is_router`]).
//!
//! **Cost.** A packet-in that is neither ARP nor IPv6: parsing an Ethernet header. An answer: a look-up, and one
//! packet-out.
//!
//! **Thread-safety.** Each switch's handler counts for its own ports; the count in all is behind a lock, taken only to
//! relay.

mod answer;

use crate::bucket::{Bucket, PortBuckets};
use crate::flooding::packet_out;
use crate::hosts::frame::{Frame, Neighbour};
use crate::hosts::{Edges, Host, HostEvent, Hosts};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use urtica_controller::setting::{SettingError, expect_some};
use urtica_controller::{Background, Program, Stage, Switch, SwitchHandler, SwitchInfo};
use urtica_topology::PortId;
use urtica_wire::{Action, DatapathId, PacketIn, PortReason, PortStatus};

/// How many questions are relayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourProxyConfig {
    /// From each port, in a second. 20.
    pub rate_per_port: u32,
    /// From each port, at once. 40.
    pub burst_per_port: u32,
    /// In all, in a second. 500.
    pub rate: u32,
    /// In all, at once. 1,000.
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

/// What happened to questions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourProxyCounts {
    /// Answered.
    pub answered: u64,
    /// Sent out of the other host ports.
    pub relayed: u64,
    /// Dropped, since there were too many.
    pub dropped: u64,
    /// Frames of any kind that were dropped since they named another MAC address for an address than its owner's.
    pub contradicted: u64,
    /// Addresses that went over to another host, of which all were told.
    pub announced: u64,
}

/// Answers questions for addresses in the hosts' names: a program. Cheap to clone. See the module.
///
/// It comes after [`Hosts`], so that a question that makes its sender known is answered as from somebody known.
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
pub struct NeighbourProxy(Arc<Shared>);

struct Shared {
    config: NeighbourProxyConfig,
    hosts: Hosts,
    /// For all ports; full from the first question on.
    bucket: Mutex<Option<Bucket>>,
    answered: AtomicU64,
    relayed: AtomicU64,
    dropped: AtomicU64,
    contradicted: AtomicU64,
    announced: AtomicU64,
    is_started: AtomicBool,
}

impl NeighbourProxy {
    /// Answers for these hosts, with the default bounds.
    pub fn new(hosts: &Hosts) -> Self {
        Self::with_config(hosts, NeighbourProxyConfig::default())
    }

    /// Answers for these hosts.
    pub fn with_config(hosts: &Hosts, config: NeighbourProxyConfig) -> Self {
        Self(Arc::new(Shared {
            config,
            hosts: hosts.clone(),
            bucket: Mutex::default(),
            answered: AtomicU64::new(0),
            relayed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            contradicted: AtomicU64::new(0),
            announced: AtomicU64::new(0),
            is_started: AtomicBool::new(false),
        }))
    }

    /// What happened so far.
    pub fn counts(&self) -> NeighbourProxyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NeighbourProxyCounts {
            answered: read(&self.0.answered),
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
        // A second controller would have switches of its own; the first keeps it.
        if !self.0.is_started.swap(true, Ordering::Relaxed) {
            let (shared, own) = (Arc::clone(&self.0), background.clone());
            background.spawn("neighbours", async move { shared.run(own).await });
        }
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// One switch's part.
struct Handler {
    proxy: Arc<Shared>,
    switch: DatapathId,
    edges: Edges,
    /// What each port may have relayed.
    questions: PortBuckets,
}

/// What is to be done with a frame.
enum Verdict {
    /// It is nothing of ours, or may go on.
    Pass,
    /// It goes no further.
    Drop,
    /// It is a question, to be answered in the name of `owner`.
    Answer {
        sender: Option<IpAddr>,
        target: IpAddr,
        owner: Arc<Host>,
    },
    /// It is a question to relay.
    Relay,
}

impl SwitchHandler for Handler {
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
                // Fails where 1.0 has no number for the port, and by such a port nothing came.
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
    /// Sends a question out of every host port but the one that it came in by. One that has just been relayed has come
    /// back. What all ports share is asked last, so that a port which asks too much keeps nobody else waiting.
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

impl Shared {
    fn verdict(&self, frame: &Frame) -> Verdict {
        let question = match frame.neighbour() {
            Some(Neighbour::Question { sender, target }) if frame.eth_dst.is_multicast() => {
                Some((sender, target))
            }
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

    /// The background program: tells all of addresses that have gone over to other hosts. Where events were missed, hosts
    /// find out by themselves, later.
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
        let bucket = bucket.get_or_insert_with(|| Bucket::new(burst, now));
        bucket.take(rate, burst, now)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
