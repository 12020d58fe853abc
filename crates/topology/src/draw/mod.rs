//! Drawings of networks.
//!
//! **What.** A [`Network`] lists switches, hosts and links to draw, from a [`Plan`] or a controller. It can be written for
//! Graphviz ([`Network::to_dot`]), or laid out as a [`Picture`], which can be written as SVG ([`Picture::to_svg`]) or, with
//! serde, as data with positions.
//!
//! **Determinism.** Equal switches, hosts and links, in any order, result in equal text on one machine.
//!
//! **Names** are untrusted. In SVG and DOT they are escaped and truncated, and characters that control the direction of text
//! are replaced. SVG has no styles, scripts or references, so a strict Content-Security-Policy does not change it.
//!
//! **Cost.** A layout needs at most some tenths of a second, and memory for the square of two thousand nodes. Larger networks
//! get a simpler layout, in linear time. Everything else is linear in the network's size.

mod dot;
mod layout;
mod picture;
mod svg;
mod text;

use crate::PortId;
use crate::spec::Plan;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use urtica_wire::DatapathId;

pub use picture::Picture;

/// A network to draw.
///
/// ```
/// use urtica_topology::draw::{Network, Picture};
/// use urtica_topology::spec::TopologySpec;
///
/// let plan = "ring,5".parse::<TopologySpec>()?.plan()?;
/// let network = Network::from(&plan);
/// assert!(network.to_dot().starts_with("graph network {"));
/// assert!(Picture::new(&network).to_svg().starts_with("<svg"));
/// # Ok::<(), urtica_topology::spec::SpecError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Network {
    /// The switches, sorted, without duplicates.
    switches: Vec<Switch>,
    /// The hosts, sorted; each is attached to one of the switches.
    hosts: Vec<Host>,
    /// The links, sorted; each is between two of the switches, the lower end first.
    links: Vec<Link>,
}

/// A switch to draw.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Switch {
    /// The datapath id.
    #[serde(serialize_with = "as_text")]
    pub id: DatapathId,
    /// The name, if it has one.
    pub name: Option<String>,
}

/// A host to draw.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Host {
    /// The port to which it is attached.
    #[serde(rename = "port", serialize_with = "as_text")]
    pub attached: PortId,
    /// The name, or the MAC address.
    pub name: String,
    /// The addresses, the first of which is drawn.
    pub addresses: Vec<String>,
}

/// A full-duplex link to draw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Link {
    /// An end.
    #[serde(serialize_with = "as_text")]
    pub a: PortId,
    /// The other end.
    #[serde(serialize_with = "as_text")]
    pub b: PortId,
    /// Whether it is up. A link that is down is dashed.
    #[serde(rename = "up")]
    pub is_up: bool,
}

impl Network {
    /// Creates the network of these switches, hosts and links, in any order.
    ///
    /// Hosts and links at other switches are omitted.
    pub fn new(
        switches: impl IntoIterator<Item = Switch>,
        hosts: impl IntoIterator<Item = Host>,
        links: impl IntoIterator<Item = Link>,
    ) -> Self {
        let mut switches: Vec<_> = switches.into_iter().collect();
        switches.sort_unstable();
        switches.dedup_by_key(|switch| switch.id);
        let is_at_one = |port: PortId| index_of(&switches, port).is_some();
        let mut hosts: Vec<_> = hosts.into_iter().collect();
        hosts.retain(|host| is_at_one(host.attached));
        hosts.sort_unstable();
        let links = links.into_iter().map(Link::sorted);
        let mut links: Vec<_> = links
            .filter(|link| is_at_one(link.a) && is_at_one(link.b))
            .collect();
        links.sort_unstable();
        links.dedup();
        Self {
            switches,
            hosts,
            links,
        }
    }

    /// Returns the index of the switch that has a port.
    ///
    /// # Panics
    /// If it is not a port of a host or link of this network.
    fn at(&self, port: PortId) -> usize {
        index_of(&self.switches, port).expect("hosts and links are at switches")
    }
}

fn index_of(switches: &[Switch], port: PortId) -> Option<usize> {
    let found = switches.binary_search_by_key(&port.switch, |switch| switch.id);
    found.ok()
}

impl From<&Plan> for Network {
    fn from(plan: &Plan) -> Self {
        let switches = plan.switches.iter().map(|switch| Switch {
            id: switch.datapath_id,
            name: Some(switch.name.clone()),
        });
        let hosts = plan.hosts.iter().map(|host| Host {
            attached: host.attached,
            name: host.name.clone(),
            addresses: vec![host.ipv4.to_string(), host.mac.to_string()],
        });
        let links = plan.links.iter().map(|link| Link {
            a: link.a,
            b: link.b,
            is_up: true,
        });
        Self::new(switches, hosts, links)
    }
}

impl Link {
    /// Returns this link with the lower end first.
    fn sorted(self) -> Self {
        Self {
            a: self.a.min(self.b),
            b: self.a.max(self.b),
            ..self
        }
    }
}

fn as_text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[cfg(test)]
mod tests;
