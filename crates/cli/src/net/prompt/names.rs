//! The names of the parts of a network.

use std::net::Ipv4Addr;
use urtica_net::{End, HostId, LinkId, Net, NetError, SwitchId};

/// The names of one network, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub hosts: Vec<(String, Ipv4Addr)>,
    pub switches: Vec<String>,
    /// The nodes of each link.
    pub links: Vec<(String, String)>,
}

impl Names {
    pub fn of(net: &Net) -> Result<Self, NetError> {
        let mut names = Self::default();
        for host in net.hosts() {
            let (_, address) = net.host_addresses(host)?;
            names.hosts.push((net.host_name(host)?.to_owned(), address));
        }
        for switch in net.switches() {
            names.switches.push(net.switch_name(switch)?.to_owned());
        }
        for link in net.links() {
            let [a, b] = net.ends(link)?;
            names.links.push((owner(net, a)?, owner(net, b)?));
        }
        Ok(names)
    }

    /// Returns the host of this name or address.
    pub fn host(&self, text: &str) -> Option<&str> {
        let address = text.parse::<Ipv4Addr>().ok();
        let mut hosts = self.hosts.iter();
        hosts
            .find(|(name, own)| name == text || Some(*own) == address)
            .map(|(name, _)| name.as_str())
    }

    pub fn is_switch(&self, text: &str) -> bool {
        self.switches.iter().any(|name| name == text)
    }

    /// Returns all switches, then all hosts.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let hosts = self.hosts.iter().map(|(name, _)| name.as_str());
        self.switches.iter().map(String::as_str).chain(hosts)
    }

    /// Returns the neighbours of a node.
    pub fn neighbours<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a str> {
        self.links.iter().filter_map(move |(a, b)| match node {
            _ if a == node => Some(b.as_str()),
            _ if b == node => Some(a.as_str()),
            _ => None,
        })
    }
}

/// Returns the node at the end of a link.
fn owner(net: &Net, end: End) -> Result<String, NetError> {
    Ok(match end {
        End::Switch(switch, _) => net.switch_name(switch)?,
        End::Host(host) => net.host_name(host)?,
    }
    .to_owned())
}

/// Returns the interface of a link's end, such as `s1-eth2` or `h1-eth0`.
pub(super) fn interface(net: &Net, end: End) -> Result<String, NetError> {
    Ok(match end {
        End::Switch(switch, port) => format!("{}-eth{}", net.switch_name(switch)?, port.0),
        End::Host(host) => format!("{}-eth0", net.host_name(host)?),
    })
}

/// Returns the links of a switch, by port: its own ends and the peers' ends.
pub(super) fn ports(net: &Net, switch: SwitchId) -> Result<Vec<(End, End)>, NetError> {
    let mut ports = Vec::new();
    for link in net.links() {
        let [a, b] = net.ends(link)?;
        for (own, other) in [(a, b), (b, a)] {
            if matches!(own, End::Switch(owner, _) if owner == switch) {
                ports.push((own, other));
            }
        }
    }
    ports.sort_unstable();
    Ok(ports)
}

/// Returns the link of a host, and the node at its other end.
pub(super) fn host_link(net: &Net, host: HostId) -> Result<Option<(LinkId, End)>, NetError> {
    for link in net.links() {
        let [a, b] = net.ends(link)?;
        if a == End::Host(host) {
            return Ok(Some((link, b)));
        }
    }
    Ok(None)
}
