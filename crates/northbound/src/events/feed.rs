//! The events of the controller and of its services, in one stream.

use crate::app::App;
use crate::live::Sources;
use crate::ryu::topology::{host_json, link_json, port_json, switch_json};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::watch;
use urtica_controller::{Events, NetworkEvent, ProgramPanic, SwitchInfo};
use urtica_services::{Discovery, DiscoveryEvent, Host, HostEvent, Hosts};
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{ErrorCode, PortReason, PortStatus};

/// An event that is reported to clients.
pub(super) enum Happened {
    SwitchUp(Arc<SwitchInfo>),
    SwitchDown(Arc<SwitchInfo>),
    Port(Arc<SwitchInfo>, PortStatus),
    RoleChanged(Arc<SwitchInfo>),
    LinkUp(DirectedLink),
    LinkDown(DirectedLink),
    HostJoined(Arc<Host>),
    HostMoved(Arc<Host>, PortId),
    HostLeft(Arc<Host>),
    /// A switch refused a message with this error; the number of its refusals so far.
    Refused(Arc<SwitchInfo>, ErrorCode, u64),
    Panicked(Arc<ProgramPanic>),
    /// The running programs changed; these are their names.
    ProgramsChanged(Vec<String>),
    /// The number of events that were lost because the client reads too slowly.
    Missed(u64),
}

impl Happened {
    /// Returns the name of the server-sent event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SwitchUp(_) => "switch_up",
            Self::SwitchDown(_) => "switch_down",
            Self::Port(_, status) => match status.reason {
                PortReason::Add => "port_added",
                PortReason::Delete => "port_removed",
                _ => "port_changed",
            },
            Self::RoleChanged(_) => "role_changed",
            Self::LinkUp(_) => "link_up",
            Self::LinkDown(_) => "link_down",
            Self::HostJoined(_) => "host_joined",
            Self::HostMoved(..) => "host_moved",
            Self::HostLeft(_) => "host_left",
            Self::Refused(..) => "refused",
            Self::Panicked(_) => "program_panicked",
            Self::ProgramsChanged(_) => "programs_changed",
            Self::Missed(_) => "missed",
        }
    }
}

/// The stream of events for one client.
pub(super) struct Feed {
    app: Arc<App>,
    network: Events<NetworkEvent>,
    links: Option<Events<DiscoveryEvent>>,
    hosts: Option<Events<HostEvent>>,
    /// The services that send these events.
    sources: Arc<Sources>,
    changes: watch::Receiver<Arc<Sources>>,
    /// Events about services that were added or removed.
    news: VecDeque<Happened>,
}

impl Feed {
    pub fn new(app: Arc<App>) -> Self {
        let mut changes = app.live.watch_sources();
        let sources = Arc::clone(&changes.borrow_and_update());
        let mut feed = Self {
            network: app.network.events(),
            links: sources.discovery.as_ref().map(Discovery::events),
            hosts: sources.hosts.as_ref().map(Hosts::events),
            sources,
            changes,
            news: VecDeque::new(),
            app,
        };
        // Connected switches are reported before links and hosts.
        while let Some(event) = feed.network.try_next() {
            feed.news.extend(from_network(event));
        }
        feed
    }

    /// Creates a feed that does not report the switches that are already connected.
    pub fn from_now_on(app: Arc<App>) -> Self {
        let mut feed = Self::new(app);
        feed.news.clear();
        feed
    }

    /// Returns the next event to report; `None` when the controller stops.
    pub async fn next(&mut self) -> Option<Happened> {
        loop {
            if let Some(happened) = self.news.pop_front() {
                return Some(happened);
            }
            let happened = tokio::select! {
                changed = self.changes.changed() => {
                    changed.ok()?;
                    self.follow();
                    None
                }
                event = self.network.next() => from_network(event?),
                event = next_of(&mut self.links) => from_discovery(event?),
                event = next_of(&mut self.hosts) => from_hosts(event?),
            };
            if happened.is_some() {
                return happened;
            }
        }
    }

    /// Reports changed programs, and subscribes to the current services if they have changed. Links and hosts of the old
    /// services are reported as removed, and those of the new ones as added.
    fn follow(&mut self) {
        let new = Arc::clone(&self.changes.borrow_and_update());
        let old = std::mem::replace(&mut self.sources, Arc::clone(&new));
        if old.programs != new.programs {
            let changed = Happened::ProgramsChanged(new.programs.clone());
            self.news.push_back(changed);
        }
        if !is_same(&old.hosts, &new.hosts, Hosts::ptr_eq) {
            self.hosts = new.hosts.as_ref().map(Hosts::events);
            self.news.extend(hosts(&old).map(Happened::HostLeft));
            self.news.extend(hosts(&new).map(Happened::HostJoined));
        }
        if !is_same(&old.discovery, &new.discovery, Discovery::ptr_eq) {
            self.links = new.discovery.as_ref().map(Discovery::events);
            self.news.extend(links(&old).map(Happened::LinkDown));
            self.news.extend(links(&new).map(Happened::LinkUp));
        }
    }

    /// Returns an event as JSON.
    pub fn json(&self, happened: &Happened) -> Value {
        let network = &self.app.network;
        match happened {
            Happened::SwitchUp(info) | Happened::SwitchDown(info) => switch_json(info),
            Happened::Port(info, status) => port_json(info.datapath_id, &status.port),
            Happened::RoleChanged(info) => {
                json!({ "dpid": info.datapath_id.to_string(), "role": info.role.to_string() })
            }
            Happened::LinkUp(link) | Happened::LinkDown(link) => link_json(network, *link),
            Happened::HostJoined(host) | Happened::HostLeft(host) => host_json(network, host),
            Happened::HostMoved(host, from) => {
                let mut moved = host_json(network, host);
                moved["from"] = from.to_string().into();
                moved
            }
            Happened::Refused(info, code, count) => {
                let id = info.datapath_id.to_string();
                json!({ "dpid": id, "code": code.to_string(), "count": count })
            }
            Happened::Panicked(panic) => {
                let id = panic.switch.map(|id| id.to_string());
                json!({ "program": panic.program, "dpid": id, "reason": panic.reason })
            }
            Happened::ProgramsChanged(names) => json!({ "programs": names }),
            Happened::Missed(count) => json!({ "count": count }),
        }
    }
}

fn is_same<T>(old: &Option<T>, new: &Option<T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => same(old, new),
        (None, None) => true,
        _ => false,
    }
}

fn hosts(sources: &Sources) -> impl Iterator<Item = Arc<Host>> {
    let hosts = sources.hosts.as_ref().map(|hosts| hosts.all());
    hosts.unwrap_or_default().into_iter()
}

fn links(sources: &Sources) -> impl Iterator<Item = DirectedLink> {
    let discovery = sources.discovery.as_ref();
    let links = discovery.map(|discovery| discovery.topology().load().directed_links().to_vec());
    links.unwrap_or_default().into_iter()
}

/// Returns the next event of a service; never returns without the service.
async fn next_of<T: Clone>(events: &mut Option<Events<T>>) -> Option<T> {
    match events {
        Some(events) => events.next().await,
        None => pending().await,
    }
}

fn from_network(event: NetworkEvent) -> Option<Happened> {
    match event {
        NetworkEvent::Up(info) => Some(Happened::SwitchUp(info)),
        NetworkEvent::Down(info) => Some(Happened::SwitchDown(info)),
        NetworkEvent::Port(info, status) => Some(Happened::Port(info, status)),
        NetworkEvent::Role(info) => Some(Happened::RoleChanged(info)),
        NetworkEvent::Refused(info, code, count) => Some(Happened::Refused(info, code, count)),
        NetworkEvent::Panicked(panic) => Some(Happened::Panicked(panic)),
        NetworkEvent::Missed(count) => Some(Happened::Missed(count)),
        #[allow(unreachable_patterns, reason = "events may be added")]
        _ => None,
    }
}

fn from_discovery(event: DiscoveryEvent) -> Option<Happened> {
    match event {
        DiscoveryEvent::LinkUp(link) => Some(Happened::LinkUp(link)),
        DiscoveryEvent::LinkDown { link, .. } => Some(Happened::LinkDown(link)),
        DiscoveryEvent::Missed(count) => Some(Happened::Missed(count)),
        _ => None,
    }
}

fn from_hosts(event: HostEvent) -> Option<Happened> {
    match event {
        HostEvent::Joined(host) => Some(Happened::HostJoined(host)),
        HostEvent::Moved { host, from } => Some(Happened::HostMoved(host, from)),
        HostEvent::Left { host, .. } => Some(Happened::HostLeft(host)),
        HostEvent::Missed(count) => Some(Happened::Missed(count)),
        _ => None,
    }
}
