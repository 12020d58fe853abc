//! Descriptions of the controller's events: it knows switches and hosts by address, users know them by name.

use std::collections::BTreeMap;
use urtica_services::{DiscoveryEvent, DownReason, HostEvent};
use urtica_topology::spec::{LinkPlan, Plan};
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{DatapathId, MacAddr};

/// Names of the hosts that the controller knows by address.
pub struct Names {
    switches: BTreeMap<DatapathId, String>,
    hosts: BTreeMap<MacAddr, String>,
    /// The names of links by their ends, in the plan's order.
    links: BTreeMap<[PortId; 2], String>,
}

impl Names {
    /// Creates the names of a plan.
    pub fn of(plan: &Plan) -> Self {
        let switches = plan.switches.iter();
        let hosts = plan.hosts.iter();
        let switches: BTreeMap<_, _> = switches
            .map(|switch| (switch.datapath_id, switch.name.clone()))
            .collect();
        let name = |link: &LinkPlan| {
            let ends = [link.a, link.b];
            let [one, other] = ends.map(|end| &switches[&end.switch]);
            (ends, format!("{one}-{other}"))
        };
        Self {
            links: plan.links.iter().map(name).collect(),
            switches,
            hosts: hosts.map(|host| (host.mac, host.name.clone())).collect(),
        }
    }

    /// Describes an event of discovery, if it is worth showing. A link is reported once, not once per direction.
    pub fn tell_link(&self, event: &DiscoveryEvent) -> Option<String> {
        match event {
            DiscoveryEvent::LinkUp(link) if link.from < link.to => {
                let link = self.link(link);
                Some(format!("the controller has found the link {link}"))
            }
            DiscoveryEvent::LinkDown { link, reason } if link.from < link.to => {
                let (link, because) = (self.link(link), because(*reason));
                Some(format!(
                    "the controller has lost the link {link}: {because}"
                ))
            }
            DiscoveryEvent::Flapping { link, held_for } => {
                let (link, seconds) = (self.link(link), held_for.as_secs_f64());
                Some(format!(
                    "the link {link} flaps: not used for {seconds:.0} s"
                ))
            }
            _ => None,
        }
    }

    /// Describes an event of a host, if it is worth showing.
    pub fn tell_host(&self, event: &HostEvent) -> Option<String> {
        match event {
            HostEvent::Joined(host) => {
                let (name, port) = (self.host(host.mac), self.port(host.attached));
                Some(format!(
                    "the controller has found the host {name} at {port}"
                ))
            }
            HostEvent::Left { host, .. } => Some(format!(
                "the controller has lost the host {}",
                self.host(host.mac)
            )),
            _ => None,
        }
    }

    fn host(&self, mac: MacAddr) -> String {
        self.hosts
            .get(&mac)
            .map_or_else(|| mac.to_string(), Clone::clone)
    }

    /// Like [`Lab::link_name`](super::lab::Lab::link_name), for a link found in either direction.
    fn link(&self, directed: &DirectedLink) -> String {
        let ends = [directed.from, directed.to];
        let link = self
            .links
            .get(&ends)
            .or_else(|| self.links.get(&[directed.to, directed.from]));
        link.map_or_else(|| directed.to_string(), Clone::clone)
    }

    fn port(&self, port: PortId) -> String {
        let switch = self.switches.get(&port.switch);
        let switch = switch.map_or_else(|| port.switch.to_string(), Clone::clone);
        format!("{switch}:{}", port.port_no)
    }
}

fn because(reason: DownReason) -> &'static str {
    match reason {
        DownReason::Port => "its port is down",
        DownReason::Switch => "its switch has disconnected",
        DownReason::TimedOut => "probes are lost",
        DownReason::Moved => "it was connected elsewhere",
        _ => "it is down",
    }
}
