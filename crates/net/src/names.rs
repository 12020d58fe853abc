//! The names of the parts of a network.

use crate::{End, HostId, LinkId, Net, SwitchId};

/// The names of one network's parts, which can be displayed while it changes. Parts of other networks are shown as `?`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    switches: Vec<String>,
    hosts: Vec<String>,
    links: Vec<[End; 2]>,
}

impl Names {
    pub fn of(net: &Net) -> Self {
        let owned = |name: &str| name.to_owned();
        let switches = net
            .switches()
            .filter_map(|switch| net.switch_name(switch).ok());
        let hosts = net.hosts().filter_map(|host| net.host_name(host).ok());
        Self {
            switches: switches.map(owned).collect(),
            hosts: hosts.map(owned).collect(),
            links: net.links().filter_map(|link| net.ends(link).ok()).collect(),
        }
    }

    /// Records that a host's link is now connected to another port.
    pub fn move_host(&mut self, link: LinkId, to: End) {
        if let Some([_, switch_end]) = self.links.get_mut(link.place()) {
            *switch_end = to;
        }
    }

    pub fn switch(&self, switch: SwitchId) -> &str {
        self.switches
            .get(switch.place())
            .map_or("?", String::as_str)
    }

    pub fn host(&self, host: HostId) -> &str {
        self.hosts.get(host.place()).map_or("?", String::as_str)
    }

    /// Returns `s1:2` for a port, `h1` for a host.
    pub fn end(&self, end: End) -> String {
        match end {
            End::Switch(switch, port_no) => format!("{}:{port_no}", self.switch(switch)),
            End::Host(host) => self.host(host).to_owned(),
        }
    }

    /// Returns a link's name, such as `s1:2 = s2:1`.
    pub fn link(&self, link: LinkId) -> String {
        match self.links.get(link.place()) {
            Some(&[one, other]) => format!("{} = {}", self.end(one), self.end(other)),
            None => "?".to_owned(),
        }
    }

    /// Returns the other end of a link.
    pub fn other(&self, link: LinkId, end: End) -> End {
        match self.links.get(link.place()) {
            Some(&[one, other]) if one == end => other,
            Some(&[one, _]) => one,
            None => end,
        }
    }
}
