//! Shortest-path routing (McNettle section 4.3): packets between known hosts take a shortest path, whatever loops the
//! network has.
//!
//! **What.** A *flow* is what one host sends to another in one VLAN. Its first packet puts an entry into each switch of
//! a shortest path; of several paths one is taken by the flow's hash, so that flows spread (equal-cost multipath).
//! Packets to unknown hosts and to groups are flooded without taking a link: they leave by the ports of all hosts that the
//! sender can reach. Along a spanning tree, a copy could meet the entries of a path that its flow has been given meanwhile,
//! leave the tree, and come a second time.
//!
//! **When the network changes.** A flow whose path is broken, or is not shortest any more, gets another at once: its
//! entries are rewritten, not waited for. So does a flow whose destination moves; where its source moves or a host
//! leaves, its entries go.
//!
//! **How.** Entries are for a flow, and not for a destination, since then a path is one decision: flows of one
//! destination can take different ways and are repaired one by one. The price is an entry for each pair of hosts that
//! talk. Entries are sent from the far end to the near end, and none is waited for: a packet that is faster than they
//! are comes to the controller, which sends it on along the path. (A path that must be there before its first packet is
//! a matter for [`Provisioner`](urtica_controller::services::Provisioner).)
//!
//! **Cost.** The first packet of a flow: a lock, two hosts looked up, one flow mod a hop. A change of the network: a
//! look at each hop of each flow, and a flow mod for each entry that becomes another; first packets of flows wait
//! meanwhile.
//!
//! **Thread-safety.** One lock guards the flows and is held while their entries are sent, so that the last that a
//! switch gets is the last that was decided. It is taken before those of the services and of [`Network`].

use crate::registry::Setup;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use urtica_controller::services::{HostEvent, Hosts, Routes};
use urtica_controller::{
    Background, EntryOptions, Network, Program, RequestError, Switch, SwitchHandler, SwitchInfo,
};
use urtica_topology::{Hop, NextHops, Path, PortId};
use urtica_wire::packet::Headers;
use urtica_wire::{
    Action, DatapathId, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
    FlowStats, FlowStatsRequest, MacAddr, Match, Message, MultipartFlags, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody, OxmField, PacketIn, PortNo, VLAN_PRESENT, Version,
};

/// What marks the program's entries: `uroutes` in ASCII.
const COOKIE: u64 = u64::from_be_bytes(*b"\0uroutes");

/// Goes when no packet came for a minute.
const ENTRY: EntryOptions = EntryOptions {
    cookie: COOKIE,
    ..EntryOptions::idle(60)
};

/// What one host sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub vlan: Option<u16>,
    pub src: MacAddr,
    pub dst: MacAddr,
}

impl Flow {
    fn of(packet: &PacketIn) -> Self {
        Self {
            vlan: Headers::parse(packet.data).vlan.map(|tag| tag.vid),
            src: packet.eth_src(),
            dst: packet.eth_dst(),
        }
    }

    /// The flow of an entry of ours.
    pub fn of_entry(match_: &Match) -> Option<Self> {
        let value = |field| match_.get(field).map(|(value, _)| value as u64);
        let vlan_vid = value(OxmField::VlanVid)? as u16;
        Some(Self {
            vlan: (vlan_vid & VLAN_PRESENT != 0).then_some(vlan_vid & !VLAN_PRESENT),
            src: MacAddr::from_u64(value(OxmField::EthSrc)?),
            dst: MacAddr::from_u64(value(OxmField::EthDst)?),
        })
    }

    pub fn match_(&self) -> Match<'static> {
        let vlan_vid = self.vlan.map_or(0, |vid| vid | VLAN_PRESENT);
        Match::any()
            .eth_src(self.src)
            .eth_dst(self.dst)
            .with_exact(OxmField::VlanVid, vlan_vid)
    }

    /// By which flows spread over paths. [`NextHops::path`] mixes it.
    pub fn hash(&self) -> u64 {
        let vlan = u64::from(self.vlan.unwrap_or(0));
        self.src.to_u64().rotate_left(16) ^ self.dst.to_u64() ^ vlan << 48
    }

    fn has(&self, vlan: Option<u16>, host: MacAddr) -> bool {
        self.vlan == vlan && (self.src == host || self.dst == host)
    }
}

/// The program.
#[derive(Clone)]
pub struct Routing(Arc<Shared>);

struct Shared {
    hosts: Hosts,
    routes: Routes,
    /// Each flow and the path that its entries are on.
    flows: Mutex<BTreeMap<Flow, Path>>,
}

impl Routing {
    /// Routes between these hosts. The services must run in the same controller.
    pub fn new(hosts: &Hosts, routes: &Routes) -> Self {
        Self(Arc::new(Shared {
            hosts: hosts.clone(),
            routes: routes.clone(),
            flows: Mutex::default(),
        }))
    }

    /// How many flows have a path.
    pub fn flows(&self) -> usize {
        self.0.flows().len()
    }
}

/// How `urtica run` adds it. Hosts that are asked for by their address need not be flooded for, so the proxy comes
/// along.
pub(crate) fn add(setup: &mut Setup) -> Result<(), String> {
    setup.answer_for_hosts();
    let (hosts, routes) = (setup.hosts(), setup.routes());
    setup.add(Routing::new(&hosts, &routes));
    Ok(())
}

impl Program for Routing {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(RoutingHandler {
            shared: Arc::clone(&self.0),
        })
    }

    fn start(&self, background: &Background) {
        let (shared, network) = (Arc::clone(&self.0), background.network().clone());
        background.spawn("routing", shared.follow_routes(network));
        let (shared, network) = (Arc::clone(&self.0), background.network().clone());
        background.spawn("routing-hosts", shared.follow_hosts(network));
    }
}

/// One switch's part.
struct RoutingHandler {
    shared: Arc<Shared>,
}

impl SwitchHandler for RoutingHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.shared.restore(switch);
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let flow = Flow::of(packet);
        // Spanning tree, LLDP and their like end at the first bridge (IEEE 802.1Q section 8.6.3).
        if flow.dst.is_link_local() {
            return;
        }
        let at = PortId::new(switch.datapath_id(), packet.in_port());
        match self.shared.next_port(switch.network(), at, flow) {
            // Both hosts are behind this port and have heard each other already.
            Some(port) if port == at.port_no => {}
            Some(port) => switch.forward(packet, port),
            None => self.shared.flood(switch, at, packet),
        }
    }

    fn message(&mut self, switch: &mut Switch, _xid: u32, message: &Message) {
        if let Message::MultipartReply(reply) = message
            && let MultipartReplyBody::Flow(entries) = &reply.body
        {
            self.shared.delete_old(switch, entries.iter());
        }
    }

    fn flow_removed(&mut self, switch: &mut Switch, removed: &FlowRemoved) {
        if removed.cookie == COOKIE {
            switch.consume();
            self.shared.forget(switch, removed);
        }
    }
}

impl Shared {
    /// The port by which a packet of this flow leaves a switch that it has come to; `None` where it is to be flooded. A
    /// flow that has no path gets one.
    fn next_port(&self, network: &Network, at: PortId, flow: Flow) -> Option<PortNo> {
        let mut flows = self.flows();
        if let Some(path) = flows.get(&flow)
            && let Some(hop) = path.hops.iter().find(|hop| hop.comes_in() == at)
        {
            // The packet was faster than the entry, or the switch has lost it.
            add_entry(network, &flow, hop, is_first(path, hop));
            return Some(hop.out_port);
        }
        let (from, to) = self.ends(&flow)?;
        let next_hops = self.routes.next_hops().load();
        let strays = from != at && next_hops.topology().is_link_port(at);
        if from != at && !strays {
            // Somebody else sends in its name.
            return None;
        }
        if from == to {
            return Some(at.port_no);
        }
        // Old entries have led a packet here that strays: those of an earlier run of the controller, which the new ones
        // overwrite.
        if !(strays && flows.contains_key(&flow)) {
            let path = next_hops.path(from, to, flow.hash())?;
            set_path(network, &mut flows, flow, Some(path));
        }
        if strays {
            // Sent on along a path, it might meet the old entries again.
            return None;
        }
        let way_on = next_hops.path(at, to, flow.hash())?;
        way_on.hops.first().map(|hop| hop.out_port)
    }

    /// Sends a packet to all hosts that its sender can reach.
    fn flood(&self, switch: &Switch, at: PortId, packet: &PacketIn) {
        // A switch that keeps packets back, whatever it was asked for, has its hosts ask again.
        if packet.data.len() < usize::from(packet.total_len) {
            return;
        }
        let next_hops = self.routes.next_hops().load();
        let reaches = |there| there == at.switch || next_hops.distance(at.switch, there).is_some();
        let (network, now) = (switch.network(), switch.now());
        self.hosts.flood(network, at, packet.data, now, reaches);
    }

    /// Where the flow's hosts are, if both are known.
    fn ends(&self, flow: &Flow) -> Option<(PortId, PortId)> {
        let port_of = |mac| Some(self.hosts.find_in(flow.vlan, mac)?.attached);
        Some((port_of(flow.src)?, port_of(flow.dst)?))
    }

    /// Whenever there are new next hops, gives new paths to the flows whose paths are not right any more.
    async fn follow_routes(self: Arc<Self>, network: Network) {
        let mut seen = 0;
        loop {
            seen = self.routes.changed(seen).await;
            self.repair(&network, |_| true);
        }
    }

    /// Whenever a host moves or leaves, does so for its flows.
    async fn follow_hosts(self: Arc<Self>, network: Network) {
        let mut events = self.hosts.events();
        while let Some(event) = events.next().await {
            match event {
                HostEvent::Moved { host, .. } | HostEvent::Left { host, .. } => {
                    self.repair(&network, |flow| flow.has(host.vlan, host.mac));
                }
                // Some of the events that were lost may have been such.
                HostEvent::Missed(_) => self.repair(&network, |_| true),
                _ => {}
            }
        }
    }

    /// Of these flows, those whose path is not right get one that is, or lose their entries where there is none.
    fn repair(&self, network: &Network, concerns: impl Fn(&Flow) -> bool) {
        let mut flows = self.flows();
        let next_hops = self.routes.next_hops().load();
        let mut changes = Vec::new();
        for (flow, path) in flows.iter().filter(|(flow, _)| concerns(flow)) {
            let ends = self.ends(flow);
            if !ends.is_some_and(|ends| is_right(path, ends, &next_hops)) {
                let path = ends.and_then(|(from, to)| next_hops.path(from, to, flow.hash()));
                changes.push((*flow, path));
            }
        }
        for (flow, path) in changes {
            set_path(network, &mut flows, flow, path);
        }
    }

    /// A switch has joined: what it has from an earlier life goes, what it should have comes.
    fn restore(&self, switch: &mut Switch) {
        let here = switch.datapath_id();
        let flows = self.flows();
        // 1.0 cannot say whose entries to delete: we ask for them, and `delete_old` looks.
        if switch.info().version == Version::Of10 {
            let _ = switch.send(&request_for_entries());
        } else {
            let _ = switch
                .network()
                .send(here, &Message::FlowMod(FlowMod::delete_by_cookie(COOKIE)));
        }
        let network = switch.network();
        for (flow, path) in flows.iter() {
            for hop in path.hops.iter().filter(|hop| hop.switch == here) {
                add_entry(network, flow, hop, is_first(path, hop));
            }
        }
    }

    /// Deletes those of a switch's entries that are this program's and belong to no path there.
    fn delete_old<'a>(&self, switch: &Switch, entries: impl Iterator<Item = FlowStats<'a>>) {
        let here = switch.datapath_id();
        let flows = self.flows();
        for entry in entries.filter(|entry| entry.cookie == COOKIE) {
            let Some(flow) = Flow::of_entry(&entry.match_) else {
                continue;
            };
            let path = flows.get(&flow);
            if !path.is_some_and(|path| path.hops.iter().any(|hop| hop.switch == here)) {
                delete_entry(switch.network(), &flow, here);
            }
        }
    }

    /// Where an entry of the flow's first switch was not used any more, its other entries go, too.
    fn forget(&self, switch: &Switch, removed: &FlowRemoved) {
        let mut flows = self.flows();
        let flow = Flow::of_entry(&removed.match_)
            .filter(|_| removed.reason == FlowRemovedReason::IdleTimeout);
        let Some(flow) = flow else { return };
        let first = flows.get(&flow).and_then(|path| path.hops.first());
        if first.is_some_and(|hop| hop.switch == switch.datapath_id()) {
            set_path(switch.network(), &mut flows, flow, None);
        }
    }

    fn flows(&self) -> MutexGuard<'_, BTreeMap<Flow, Path>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_first(path: &Path, hop: &Hop) -> bool {
    path.hops.first() == Some(hop)
}

/// Whether a path leads from end to end, all its links are there, and no other path is shorter.
fn is_right(path: &Path, (from, to): (PortId, PortId), next_hops: &NextHops) -> bool {
    let links = path.links();
    path.begin() == Some(from)
        && path.end() == Some(to)
        && next_hops.distance(from.switch, to.switch) == Some(links.len() as u32)
        && links
            .into_iter()
            .all(|link| next_hops.topology().contains(&link))
}

/// Gives a flow a path, in place of that which it has: first the entries that are new or another, from the far end on,
/// and then the deletion of those that have no successor.
fn set_path(network: &Network, flows: &mut BTreeMap<Flow, Path>, flow: Flow, path: Option<Path>) {
    let old = flows.remove(&flow);
    let old_hops = old.as_ref().map_or(&[][..], |path| &path.hops);
    let new_hops = path.as_ref().map_or(&[][..], |path| &path.hops);
    for (index, hop) in new_hops.iter().enumerate().rev() {
        let is_first = index == 0;
        let stays = |(index, old): (usize, &Hop)| {
            (old.switch, old.out_port, index == 0) == (hop.switch, hop.out_port, is_first)
        };
        if !old_hops.iter().enumerate().any(stays) {
            add_entry(network, &flow, hop, is_first);
        }
    }
    for old in old_hops {
        if new_hops.iter().all(|hop| hop.switch != old.switch) {
            delete_entry(network, &flow, old.switch);
        }
    }
    if let Some(path) = path {
        flows.insert(flow, path);
    }
}

/// Adds a hop's entry, or changes it. The first hop's tells when it goes.
fn add_entry(network: &Network, flow: &Flow, hop: &Hop, is_first: bool) {
    let flags = match is_first {
        true => FlowModFlags::SEND_FLOW_REM,
        false => FlowModFlags::empty(),
    };
    let options = EntryOptions { flags, ..ENTRY };
    let added = network.install(
        hop.switch,
        flow.match_(),
        &[Action::output(hop.out_port)],
        options,
    );
    tell(hop.switch, added);
}

fn delete_entry(network: &Network, flow: &Flow, at: DatapathId) {
    let delete = Message::FlowMod(FlowMod {
        command: FlowModCommand::DeleteStrict,
        match_: flow.match_(),
        ..ENTRY.flow_mod()
    });
    tell(at, network.send(at, &delete));
}

/// A switch that has left is told all when it joins again; one that does not keep up sends its packets to the
/// controller.
fn tell(switch: DatapathId, sent: Result<(), RequestError>) {
    if let Err(error) = sent {
        urtica_log::debug!(about: switch, dp_id = %switch, %error, "an entry was not sent");
    }
}

fn request_for_entries() -> Message<'static> {
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body: MultipartRequestBody::Flow(FlowStatsRequest::default()),
    })
}
