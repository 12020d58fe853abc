//! Commands that show a network, in Mininet's format.

use super::names::{Names, host_link, interface, ports};
use crate::say::say;
use urtica_net::{End, Net, NetError, SwitchId};
use urtica_wire::FlowStatsRequest;

/// The controller's name, whether it runs in this process or another.
const CONTROLLER: &str = "c0";

/// The width of the line above a switch's entries.
const RULE_WIDTH: usize = 76;

/// Prints the names of all nodes.
pub(super) fn nodes(net: &Net, names: &Names) {
    let controller = net.has_control_plane().then_some(CONTROLLER);
    let hosts = names.hosts.iter().map(|(name, _)| name.as_str());
    let switches = names.switches.iter().map(String::as_str);
    let all: Vec<_> = controller
        .into_iter()
        .chain(hosts)
        .chain(switches)
        .collect();
    say("available nodes are:");
    say(all.join(" "));
}

/// Prints the connections of each node.
pub(super) fn net(net: &Net) -> Result<(), NetError> {
    for host in net.hosts() {
        let name = net.host_name(host)?;
        let there = host_link(net, host)?.map(|(_, end)| interface(net, end));
        let there = there.transpose()?.unwrap_or_default();
        say(format!(
            "{name} {}:{there}",
            interface(net, End::Host(host))?
        ));
    }
    for switch in net.switches() {
        let mut line = net.switch_name(switch)?.to_owned();
        for (own, other) in ports(net, switch)? {
            line += &format!(" {}:{}", interface(net, own)?, interface(net, other)?);
        }
        say(line);
    }
    if net.has_control_plane() {
        say(CONTROLLER);
    }
    Ok(())
}

/// Prints the links, and whether they are cut.
pub(super) fn links(net: &Net) -> Result<(), NetError> {
    for link in net.links() {
        let [a, b] = net.ends(link)?;
        let state = match net.is_cut(link)? {
            true => "down down",
            false => "OK OK",
        };
        let (a, b) = (interface(net, a)?, interface(net, b)?);
        say(format!("{a}<->{b} ({state})"));
    }
    Ok(())
}

/// Prints the interfaces of each node.
pub(super) fn intfs(net: &Net) -> Result<(), NetError> {
    for host in net.hosts() {
        let name = net.host_name(host)?;
        say(format!("{name}: {}", interface(net, End::Host(host))?));
    }
    for switch in net.switches() {
        let name = net.switch_name(switch)?;
        say(format!("{name}: {}", own_interfaces(net, switch)?));
    }
    Ok(())
}

/// Prints each node with its addresses and state.
pub(super) fn dump(net: &Net) -> Result<(), NetError> {
    for host in net.hosts() {
        let (mac, ipv4) = net.host_addresses(host)?;
        let name = net.host_name(host)?;
        let interface = interface(net, End::Host(host))?;
        say(format!("<Host {name}: {interface}:{ipv4} mac={mac}>"));
    }
    for switch in net.switches() {
        let (name, dpid) = (net.switch_name(switch)?, net.datapath_id(switch)?);
        let interfaces = own_interfaces(net, switch)?;
        let state = match (net.is_on(switch)?, net.has_controller(switch)?) {
            (false, _) => "off",
            (true, true) => "connected",
            (true, false) if net.has_control_plane() => "not connected",
            (true, false) => "without controller",
        };
        say(format!("<Switch {name}: {interfaces} dpid={dpid} {state}>"));
    }
    Ok(())
}

/// Prints the flow entries of one switch, or of all.
pub(super) fn flows(net: &mut Net, only: Option<&str>) -> Result<(), NetError> {
    let now = net.now();
    for switch in net.switches() {
        let name = net.switch_name(switch)?.to_owned();
        if only.is_some_and(|only| only != name) {
            continue;
        }
        if only.is_none() {
            say(format!("*** {name} {:-<RULE_WIDTH$}", ""));
        }
        match net.switch_mut(switch)? {
            None => say(format!("{name} is switched off")),
            Some(switch) => match switch.flow_stats(&FlowStatsRequest::default(), now) {
                Ok(entries) => entries.iter().for_each(say),
                Err(code) => say(format!("{name} refuses: {code}")),
            },
        }
    }
    Ok(())
}

fn own_interfaces(net: &Net, switch: SwitchId) -> Result<String, NetError> {
    let mut own = Vec::new();
    for (end, _) in ports(net, switch)? {
        own.push(interface(net, end)?);
    }
    Ok(own.join(","))
}
