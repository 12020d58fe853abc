//! Shortest-path routing (McNettle section 4.3): forwards packets between known hosts over shortest paths, in networks
//! with loops, too.
//!
//! **What.** A *flow* is the packets from one host to another in one VLAN. Its first packet installs an entry in each
//! switch of a shortest path; the flow's hash selects one of several paths, so that flows spread (equal-cost multipath).
//! Packets to unknown hosts and to groups are flooded without using links: they leave by the ports of all hosts that the
//! sender can reach. (Along a spanning tree, a copy could meet entries that its flow received after it was flooded, leave
//! the tree, and arrive twice.)
//!
//! **When the network changes.** A flow whose path is broken, or no longer shortest, immediately gets another: its entries
//! are rewritten instead of expiring. So does a flow whose destination moves; if its source moves or a host leaves, its
//! entries are deleted.
//!
//! **When the controller is away.** Switches continue to forward by their entries. So a flow over a switch that loses its
//! connection keeps its path for a while if it has no other ([`absence`]). The program requests the entries of a switch that
//! joins: it adds missing entries, changes different ones, and deletes entries of no path. Entries of an earlier run of the
//! controller stay unless a known fact contradicts them ([`inherited`]).
//!
//! **When a switch is slow, or refuses an entry.** Messages that cannot be sent are made up for: as soon as the switch
//! accepts more, and repeatedly while it refuses some, its entries are requested as if it had just joined ([`late`]). A
//! switch whose table is full gets no entries for new flows for a while; their packets are sent directly to their hosts'
//! ports.
//!
//! **Bounds.** A [`FloodLimit`] on packets to single hosts that are flooded from each port, and a maximum number of flows that
//! are charged to each port ([`shares`]).
//!
//! **How.** Entries are per flow, not per destination, because a path is then one decision: flows to one destination can
//! use different paths and are repaired one by one. The price is an entry for each pair of hosts that communicate. Entries
//! are sent from the egress switch to the ingress switch without waiting: the controller receives a packet that overtakes
//! them, and forwards it along the path. (For a path that must exist before its first packet, use
//! [`Provisioner`](urtica_services::Provisioner).)
//!
//! **Cost.** The first packet of a flow: a lock, two host look-ups, one flow mod per hop. A change of the network: a check
//! of each hop of each flow, and a flow mod for each changed entry; first packets of flows wait until that is done.
//!
//! **Thread-safety.** One lock guards the flows and is held while their entries are sent, so that the last message to a
//! switch is the last decision. It is taken before the locks of the services and of [`Network`].

mod absence;
mod comparison;
mod config;
mod doubtful;
mod entry;
mod flow;
mod inherited;
mod inspection;
mod known;
mod late;
mod shares;
mod tasks;

use crate::flood_budget::{FloodBudget, FloodLimit, PortBudgets};
use crate::full_table::{self, FullTable};
use crate::registry::{About, ProgramOptions, Row, Sees, Setup};
use absence::Absences;
use comparison::{Comparison, Found};
pub use config::RoutingConfig;
use doubtful::Doubtful;
use entry::Entry;
pub(crate) use flow::Flow;
use inherited::{Inherited, UNHEARD_AT_ONCE};
use known::Known;
use late::Late;
use parking_lot::{Mutex, MutexGuard};
use shares::Shares;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use urtica_controller::setting::{SettingError, expect_some};
use urtica_controller::{
    Background, EntryOptions, Network, OWN_COOKIE_BITS, Program, Switch, SwitchHandler, SwitchInfo,
};
use urtica_services::{Hosts, NeighbourProxy, Routes, is_provisioned};
use urtica_state::Snapshot;
use urtica_topology::{Path, PortId};
use urtica_wire::{
    Action, BufferId, DatapathId, ErrorMessage, FlowRemoved, FlowRemovedReason, MacAddr, Message,
    MultipartFlags, MultipartReplyBody, PacketIn, PacketOut, PortNo, PortStatus,
};

/// Marks the program's entries: `routing` in ASCII.
const COOKIE: u64 = u64::from_be_bytes(*b"\0routing");
const _: () = assert!(!is_provisioned(COOKIE));

/// Added to the cookie of a path's first entry, whose switch reports its removal: a 1.0 switch reports the cookies of its
/// entries, but not their flags.
const FIRST: u64 = 1 << 55;

/// Returns `true` if an entry with this cookie is the program's.
fn is_ours(cookie: u64) -> bool {
    cookie & OWN_COOKIE_BITS & !FIRST == COOKIE
}

/// The time for a switch that has caught up to report its entries; after it, the switch is sent all entries.
const TELLS_WITHIN: Duration = Duration::from_secs(10);

/// The pause before the entries of a switch that refused one are requested; doubled each time.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

/// The maximum of that pause.
const LONGEST_REFUSAL_PAUSE: Duration = Duration::from_secs(4);

/// The pause before flows are checked again after ports went down: many ports may fail at once, or one repeatedly.
const PORTS_PAUSE: Duration = Duration::from_millis(100);

/// The options of entries, which expire after a minute without a packet.
const ENTRY: EntryOptions = EntryOptions {
    cookie: COOKIE,
    ..EntryOptions::idle(60)
};

/// Options of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct RoutingArgs {
    /// Packets a second to unknown hosts that are flooded from each port, and a burst, or none [default: 1000,2000].
    #[arg(long, value_name = "LIMIT")]
    pub routing_flood_limit: Option<FloodLimit>,
    /// Flows with entries that the hosts at one port may start; the controller forwards further ones [default: 1024].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub routing_flows_per_port: Option<u32>,
}

impl ProgramOptions for RoutingArgs {}

/// The program.
#[derive(Clone)]
pub struct Routing(Arc<RoutingState>);

struct RoutingState {
    hosts: Hosts,
    routes: Routes,
    /// The error of an invalid setting, if any.
    is_sound: Result<(), SettingError>,
    floods: FloodBudget,
    flows: Mutex<Flows>,
    /// Set when the controller starts.
    background: OnceLock<Background>,
    /// The time when the controller started.
    started: OnceLock<Instant>,
    /// The time when the first switch joined: all entries of this run are younger.
    first_join: OnceLock<Instant>,
    /// The table of the entries.
    table_id: AtomicU8,
    /// Incremented whenever a port goes down.
    ports_down: Snapshot<()>,
}

/// The program's state: the flows, and the entries that switches are known to have.
struct Flows {
    /// Each flow and the path of its entries.
    paths: BTreeMap<Flow, Path>,
    /// The ports to which the flows are charged.
    shares: Shares,
    inherited: Inherited,
    absences: Absences,
    /// The switches that have reported all their entries since they joined.
    reported: BTreeSet<DatapathId>,
    late: Late,
    /// The back-offs of switches whose tables were full.
    full: BTreeMap<DatapathId, FullTable>,
    doubtful: Doubtful,
}

/// A switch that is reporting its entries.
struct EntryRequest<'a> {
    network: &'a Network,
    switch: DatapathId,
    /// The table of the entries.
    table_id: u8,
    now: Instant,
}

impl<'a> From<&'a Switch<'_>> for EntryRequest<'a> {
    fn from(switch: &'a Switch<'_>) -> Self {
        Self {
            network: switch.network(),
            switch: switch.datapath_id(),
            table_id: switch.table(),
            now: switch.now(),
        }
    }
}

impl Routing {
    /// Creates the program with the default settings. The services must run in the same controller.
    pub fn new(hosts: &Hosts, routes: &Routes) -> Self {
        Self::with_config(hosts, routes, RoutingConfig::default())
    }

    /// Creates the program with these settings. The services must run in the same controller.
    pub fn with_config(hosts: &Hosts, routes: &Routes, config: RoutingConfig) -> Self {
        Self(Arc::new(RoutingState {
            hosts: hosts.clone(),
            routes: routes.clone(),
            is_sound: expect_some("RoutingConfig::flows_per_port", config.flows_per_port),
            floods: FloodBudget::new(config.flood_limit),
            flows: Mutex::new(Flows::new(config.flows_per_port)),
            background: OnceLock::new(),
            started: OnceLock::new(),
            first_join: OnceLock::new(),
            table_id: AtomicU8::new(0),
            ports_down: Snapshot::new(()),
        }))
    }

    /// Returns the number of flows with a path.
    pub fn flows(&self) -> usize {
        self.0.flows().paths.len()
    }

    /// Returns the number of packets to single hosts that were dropped because their port exceeded its flood limit.
    pub fn dropped_floods(&self) -> u64 {
        self.0.floods.dropped()
    }
}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<RoutingArgs> = Row {
    about: About {
        sees: Sees::FirstOfFlow,
        ..About::forwarder(
            "routing",
            "sends packets over shortest paths, and repairs them; on any topology",
        )
    },
    add,
};

/// Adds the program, with the proxy: requests for the addresses of known hosts are then not flooded. Next to gateways, it
/// only drops forged messages.
fn add(setup: &mut Setup, args: &RoutingArgs) -> Result<(), String> {
    let is_answered = setup.answer_for_hosts();
    let (hosts, routes) = (setup.hosts(), setup.routes());
    if !is_answered {
        setup.add(NeighbourProxy::guard(&hosts));
    }
    let config = RoutingConfig::from(args);
    setup.add(Routing::with_config(&hosts, &routes, config));
    Ok(())
}

impl Program for Routing {
    fn check(&self) -> Result<(), SettingError> {
        self.0.is_sound.clone()
    }

    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        self.0.note_back(info.datapath_id);
        Box::new(RoutingHandler {
            shared: Arc::clone(&self.0),
            floods: self.0.floods.of_switch(),
            comparison: None,
        })
    }

    fn start(&self, background: &Background) {
        // The program serves one controller: a second one would have other switches.
        if self.0.background.set(background.clone()).is_err() {
            return;
        }
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("routing", shared.follow_routes(own));
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("routing-hosts", shared.follow_hosts(own));
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("routing-late", shared.follow_late(own));
        let (shared, own) = (Arc::clone(&self.0), background.clone());
        background.spawn("routing-ports", shared.follow_ports(own));
    }
}

/// The handler of one switch.
struct RoutingHandler {
    shared: Arc<RoutingState>,
    floods: PortBudgets,
    /// Starts when the switch is up, and ends with the last part of its reply.
    comparison: Option<Comparison>,
}

impl SwitchHandler for RoutingHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        let here = switch.datapath_id();
        self.shared
            .table_id
            .store(switch.table(), Ordering::Relaxed);
        self.shared.begin_comparison(here);
        self.shared.routes.forward_as(switch.program());
        let asked = switch.send(&entry::request(switch.info().version));
        let found = Found::default();
        match asked {
            Ok(xid) => self.comparison = Some(Comparison { xid, found }),
            // Both versions have the request, so it can be encoded.
            Err(_) => self.shared.finish_comparison(&(&*switch).into(), &found),
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let flow = Flow::of(packet);
        // Bridges do not forward STP, LLDP and similar protocols (IEEE 802.1Q section 8.6.3).
        if flow.dst.is_link_local() {
            return;
        }
        let at = PortId::new(switch.datapath_id(), packet.in_port());
        let way = match inspection::concerns(packet) {
            true => self.shared.way_to_host(at, flow),
            false => self.shared.find_way(switch, at, flow),
        };
        match way {
            // Both hosts are behind this port, so the destination already has the packet.
            NextStep::Out(port) if port == at.port_no => {}
            NextStep::Out(port) => switch.forward(packet, port),
            NextStep::Straight(to) => send_straight(switch.network(), to, packet),
            NextStep::Flood if !self.floods.admit(switch, packet) => {}
            NextStep::Flood => self.shared.flood(switch, at, packet),
        }
    }

    fn settled(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let at = PortId::new(switch.datapath_id(), packet.in_port());
        // Another program has sent the packet; only the path remains to be installed.
        if !inspection::concerns(packet) {
            self.shared.find_way(switch, at, Flow::of(packet));
        }
    }

    fn message(&mut self, switch: &mut Switch, xid: u32, message: &Message) {
        let (Message::MultipartReply(reply), Some(comparison)) = (message, &mut self.comparison)
        else {
            return;
        };
        let MultipartReplyBody::Flow(entries) = &reply.body else {
            return;
        };
        if comparison.xid != xid {
            return;
        }
        let asked = (&*switch).into();
        self.shared
            .compare(&asked, entries.iter(), &mut comparison.found);
        let is_last = !reply.flags.contains(MultipartFlags::MORE);
        if is_last {
            if let Some(comparison) = self.comparison.take() {
                self.shared.finish_comparison(&asked, &comparison.found);
            }
        }
    }

    fn error(&mut self, switch: &mut Switch, xid: u32, _: &ErrorMessage) {
        // The switch does not report its entries, so it is sent all of them.
        if let Some(comparison) = self.comparison.take_if(|comparison| comparison.xid == xid) {
            self.shared
                .finish_comparison(&(&*switch).into(), &comparison.found);
        }
    }

    fn refused(&mut self, switch: &mut Switch, error: &ErrorMessage) {
        if inspection::is_about(error, switch.info().version) {
            urtica_log::warn!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), code = %error.code, "the switch refused an entry that sends ARP or neighbour discovery to the controller; forged messages to single hosts are not recognised there");
            return;
        }
        let mut flows = self.shared.flows();
        match full_table::is_full(error) {
            // Without the entry, the controller receives the flow's packets.
            true => flows.note_full(switch.datapath_id(), switch.now()),
            false => flows.late.note_refusal(switch.datapath_id()),
        }
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        let port = switch.info().port(status.port.port_no);
        if !port.is_some_and(known::is_up) {
            self.shared.ports_down.update(|()| ());
        }
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        let mut flows = self.shared.flows();
        flows.reported.remove(&info.datapath_id);
        flows.full.remove(&info.datapath_id);
    }

    fn flow_removed(&mut self, switch: &mut Switch, removed: &FlowRemoved) {
        if is_ours(removed.cookie) {
            switch.consume();
            self.shared.forget(switch, removed);
        }
    }
}

/// The next step of a packet at a switch.
enum NextStep {
    /// Output to a port of this switch.
    Out(PortNo),
    /// Output to the host's port, on whichever switch, without using a link.
    Straight(PortId),
    /// Output to the ports of all hosts.
    Flood,
}

impl RoutingState {
    /// Returns the next step of a packet of this flow, which gets a path if it has none.
    fn find_way(&self, switch: &Switch, at: PortId, flow: Flow) -> NextStep {
        let (network, now) = (switch.network(), switch.now());
        let mut flows = self.flows();
        for doubtful in flows.doubtful.take_due(now) {
            flows.set_path(network, doubtful, None);
        }
        if let Some(path) = flows.paths.get(&flow) {
            if let Some(index) = path.hops.iter().position(|hop| hop.comes_in() == at) {
                // The packet overtook the entry, or the switch has lost it, or had no space for it.
                let out_port = path.hops[index].out_port;
                let tells = index == 0;
                if flows.make_space(network, &flow, at, [at.switch], now) {
                    Entry { out_port, tells }.add(network, &flows.late, &flow, at.switch);
                    if tells {
                        flows.doubtful.note_added(at.switch, flow, now);
                    }
                }
                return NextStep::Out(out_port);
            }
            // An entry of the flow's previous path has led the packet here. Along a path, it might meet such entries again.
            if !self.hosts.is_host_port(at) {
                if let Some(to) = self.place(flow.vlan(), flow.dst).or(path.end()) {
                    return NextStep::Straight(to);
                }
            }
        }
        let Some((from, to)) = self.ends(&flow) else {
            // The entries of an earlier run do not lead all the way.
            if flows.inherited.contains(&flow) {
                flows.set_path(network, flow, None);
            }
            // The share of its sender's port may be used up, which must not affect other hosts.
            return self.way_to_host(at, flow);
        };
        let next_hops = self.routes.next_hops().load();
        let strays = from != at && next_hops.topology().is_link_port(at);
        if from != at && !strays {
            // Another host uses the source address.
            return self.way_to_host(at, flow);
        }
        if from == to {
            return NextStep::Out(at.port_no);
        }
        let Some(path) = next_hops.path(from, to, flow.hash()) else {
            return NextStep::Flood;
        };
        let switches = path.hops.iter().map(|hop| hop.switch);
        if !flows.shares.has_room(&flow, from, to, now)
            || !flows.make_space(network, &flow, from, switches, now)
        {
            return NextStep::Straight(to);
        }
        flows.set_path(network, flow, Some(path));
        flows.doubtful.note_added(from.switch, flow, now);
        if strays {
            // Entries of an earlier run of the controller led the packet here; the new entries overwrite them.
            return NextStep::Straight(to);
        }
        let way_on = next_hops.path(at, to, flow.hash());
        let next = way_on.and_then(|path| path.hops.first().map(|hop| hop.out_port));
        next.map_or(NextStep::Flood, NextStep::Out)
    }

    /// Returns the next step of a packet that needs no path: an inspected one, which entries send here even if its flow has a
    /// path, or one whose sender is not known here.
    fn way_to_host(&self, at: PortId, flow: Flow) -> NextStep {
        match self.place(flow.vlan(), flow.dst) {
            Some(to) if to == at => NextStep::Out(at.port_no),
            Some(to) => NextStep::Straight(to),
            None => NextStep::Flood,
        }
    }

    /// Sends a packet to all hosts that its sender can reach.
    fn flood(&self, switch: &Switch, at: PortId, packet: &PacketIn) {
        // If a switch buffers packets despite its configuration, its hosts must repeat the request.
        if packet.data.len() < usize::from(packet.total_len) {
            return;
        }
        let next_hops = self.routes.next_hops().load();
        let reaches = |there| there == at.switch || next_hops.distance(at.switch, there).is_some();
        let (network, now) = (switch.network(), switch.now());
        self.hosts.flood(network, at, packet.data, now, reaches);
    }

    /// Returns the ports of the flow's hosts if both are known.
    fn ends(&self, flow: &Flow) -> Option<(PortId, PortId)> {
        Some((
            self.place(flow.vlan(), flow.src)?,
            self.place(flow.vlan(), flow.dst)?,
        ))
    }

    fn place(&self, vlan: Option<u16>, host: MacAddr) -> Option<PortId> {
        Some(self.hosts.find_in(vlan, host)?.attached)
    }

    /// Deletes the entries of concerned flows that have an unknown host.
    fn remove(&self, network: &Network, concerns: impl Fn(&Flow) -> bool) {
        let mut flows = self.flows();
        let all = flows.paths.keys().chain(flows.inherited.flows());
        let gone = all.filter(|flow| concerns(flow) && self.ends(flow).is_none());
        for flow in gone.copied().collect::<Vec<_>>() {
            flows.set_path(network, flow, None);
        }
    }

    /// Replaces invalid paths of the concerned flows by valid ones, or deletes the flow's entries if it has no valid path.
    fn repair(&self, network: &Network, now: Instant, concerns: impl Fn(&Flow) -> bool) {
        let next_hops = self.routes.next_hops().load();
        let mut flows = self.flows();
        flows.note_away(network, now);
        let known = Known {
            network,
            next_hops: &next_hops,
            reported: &flows.reported,
            absences: &flows.absences,
            is_host_port: &|port| self.hosts.is_host_port(port),
            all_are_back: self.all_back_at().is_some_and(|at| at <= now),
            now,
        };
        let mut changes = Vec::new();
        for (flow, path) in flows.paths.iter().filter(|(flow, _)| concerns(flow)) {
            if !self.is_right(flow, path, &known) {
                let end = |host, end: Option<PortId>| {
                    let place = self.place(flow.vlan(), host);
                    place.or(end.filter(|end| known.may_be_up(*end)))
                };
                let (from, to) = (end(flow.src, path.begin()), end(flow.dst, path.end()));
                let ends = from.zip(to);
                let path = ends.and_then(|(from, to)| next_hops.path(from, to, flow.hash()));
                changes.push((*flow, path));
            }
        }
        let mut unheard = 0;
        for flow in flows.inherited.flows().filter(|flow| concerns(flow)) {
            let ends = self.ends(flow);
            let path = ends.and_then(|(from, to)| next_hops.path(from, to, flow.hash()));
            let place = |host| self.place(flow.vlan(), host);
            let is_unheard = unheard < UNHEARD_AT_ONCE
                && place(flow.src).is_none()
                && flows.inherited.hides_source(flow, &known);
            unheard += usize::from(is_unheard);
            let to = place(flow.dst);
            if is_unheard || path.is_some() || flows.inherited.is_wrong(flow, to, &known) {
                changes.push((*flow, path));
            }
        }
        if unheard > 0 {
            flows.inherited.pause_unheard(now);
        }
        for (flow, path) in changes {
            flows.set_path(network, flow, path);
        }
    }

    /// Returns `true` if a path leads from host to host, all its links are up, and no other path is shorter. A host that is
    /// unknown because its switch was away counts as at the path's end. A path over switches that are away is valid while
    /// they are believed to forward and no other path exists.
    fn is_right(&self, flow: &Flow, path: &Path, known: &Known) -> bool {
        let (Some(from), Some(to)) = (path.begin(), path.end()) else {
            return false;
        };
        let holds = |(host, end)| match self.place(flow.vlan(), host) {
            Some(place) => place == end,
            None => known.may_be_up(end),
        };
        let distance = known.next_hops.distance(from.switch, to.switch);
        let is_shortest = match known.sees(path) {
            true => distance == Some(path.directed_links().len() as u32),
            false => distance.is_none() && known.believes(path),
        };
        is_shortest && [(flow.src, from), (flow.dst, to)].into_iter().all(holds)
    }

    /// Deletes a flow's other entries if that of its first switch has expired.
    fn forget(&self, switch: &Switch, removed: &FlowRemoved) {
        let mut flows = self.flows();
        let flow = Flow::of_entry(&removed.match_)
            .filter(|_| removed.reason == FlowRemovedReason::IdleTimeout);
        let Some(flow) = flow else { return };
        let (network, here) = (switch.network(), switch.datapath_id());
        if flows.inherited.remove(&flow, here).is_some() {
            return flows.set_path(network, flow, None);
        }
        let first = flows.paths.get(&flow).and_then(|path| path.hops.first());
        if first.is_some_and(|hop| hop.switch == here) {
            flows.set_path(network, flow, None);
        }
    }

    fn flows(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock()
    }
}

/// Sends a packet to its host, at any switch.
fn send_straight(network: &Network, to: PortId, packet: &PacketIn) {
    // If a switch buffers packets despite its configuration, its hosts must send again.
    if packet.data.len() < usize::from(packet.total_len) {
        return;
    }
    let packet_out = Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(to.port_no)].into(),
        data: packet.data,
    });
    // If the switch has disconnected, or does not keep up, its host misses the frame.
    let _ = network.send(to.switch, &packet_out);
}

impl Flows {
    /// Creates the state without flows. Each port is charged for at most `flows_per_port` of them.
    fn new(flows_per_port: usize) -> Self {
        Self {
            paths: BTreeMap::new(),
            shares: Shares::new(flows_per_port),
            inherited: Inherited::default(),
            absences: Absences::default(),
            reported: BTreeSet::new(),
            late: Late::default(),
            full: BTreeMap::new(),
            doubtful: Doubtful::default(),
        }
    }

    /// Sets a flow's path, or removes it. Replaces the entries of its current or inherited path.
    fn set_path(&mut self, network: &Network, flow: Flow, path: Option<Path>) {
        let old = self.paths.remove(&flow).map(|path| {
            self.shares.remove(&flow, &path);
            entry::of_path(&path)
        });
        let old = old.or_else(|| self.inherited.take(&flow));
        let old = old.unwrap_or_default();
        entry::replace(network, &self.late, &flow, &old, path.as_ref());
        if let Some(path) = path {
            self.shares.insert(flow, &path);
            self.paths.insert(flow, path);
        }
    }

    /// Returns `true` if a switch may be sent new entries.
    fn has_space(&self, switch: DatapathId, now: Instant) -> bool {
        let full = self.full.get(&switch);
        full.is_none_or(|full| full.has_space(now))
    }

    /// Returns `true` if switches may be sent new entries of a flow from this port. If a table is full, first deletes entries
    /// of the port with the most flows there.
    fn make_space(
        &mut self,
        network: &Network,
        flow: &Flow,
        from: PortId,
        switches: impl IntoIterator<Item = DatapathId>,
        now: Instant,
    ) -> bool {
        let payer = self.shares.payer(flow, from);
        let mut displaced = BTreeSet::new();
        for switch in switches {
            if !self.has_space(switch, now) {
                let flows = self.shares.find_displaced(switch, payer);
                if flows.is_empty() {
                    return false;
                }
                displaced.extend(flows);
            }
        }
        for flow in displaced {
            self.set_path(network, flow, None);
        }
        true
    }

    /// Notes that a switch refused an entry because its table is full.
    fn note_full(&mut self, switch: DatapathId, now: Instant) {
        self.full.entry(switch).or_default().pause(switch, now);
        self.doubtful.note_refusal(switch, now);
    }

    /// Notes the switches of paths that are not connected.
    fn note_away(&mut self, network: &Network, now: Instant) {
        let of_paths = self.paths.values().flat_map(|path| &path.hops);
        let switches = of_paths
            .map(|hop| hop.switch)
            .chain(self.inherited.switches());
        for switch in switches.collect::<BTreeSet<_>>() {
            if network.info(switch).is_none() {
                self.absences.note_away(switch, now);
            }
        }
    }
}
