//! The plans of named topologies.
//!
//! Switches, hosts and ports have Mininet's numbers, so that pictures and flow entries agree with it: a switch's ports are
//! numbered from 1 in the order in which links are added, and hosts have addresses in the order of the numbers in their names.
//! Fat tree, ring and mesh, which Mininet does not have, follow the same rules.

use super::plan::{HostPlan, LinkPlan, LinkProperties, Plan, SwitchPlan};
use crate::PortId;
use std::net::Ipv4Addr;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// A switch's index in the plan.
type Switch = usize;

/// A plan under construction, link by link.
#[derive(Default)]
struct Builder {
    plan: Plan,
    /// The number of ports in use at each switch.
    ports: Vec<u32>,
}

impl Builder {
    /// Adds the next of the switches `s1`, `s2`, …, with its number as datapath id.
    fn switch(&mut self) -> Switch {
        let number = self.plan.switches.len() as u64 + 1;
        self.named_switch(format!("s{number}"), number)
    }

    fn named_switch(&mut self, name: String, datapath_id: u64) -> Switch {
        self.plan.switches.push(SwitchPlan {
            name,
            datapath_id: DatapathId(datapath_id),
        });
        self.ports.push(0);
        self.ports.len() - 1
    }

    /// Adds the next of the hosts `h1`, `h2`, …
    fn host(&mut self, switch: Switch) {
        let name = format!("h{}", self.plan.hosts.len() + 1);
        self.named_host(name, switch);
    }

    /// Adds a host without addresses, which [`Self::finish`] assigns.
    fn named_host(&mut self, name: String, switch: Switch) {
        let attached = self.next_port(switch);
        self.plan.hosts.push(HostPlan {
            name,
            mac: MacAddr::ZERO,
            ipv4: Ipv4Addr::UNSPECIFIED,
            attached,
        });
    }

    fn link(&mut self, a: Switch, b: Switch) {
        let link = LinkPlan {
            a: self.next_port(a),
            b: self.next_port(b),
            properties: LinkProperties::default(),
        };
        self.plan.links.push(link);
    }

    fn next_port(&mut self, switch: Switch) -> PortId {
        self.ports[switch] += 1;
        let datapath_id = self.plan.switches[switch].datapath_id;
        PortId::new(datapath_id, PortNo(self.ports[switch]))
    }

    fn finish(mut self) -> Plan {
        let hosts = &mut self.plan.hosts;
        hosts.sort_by_cached_key(|host| numbers_in(&host.name));
        for (number, host) in (1..).zip(hosts) {
            host.mac = default_mac(number);
            host.ipv4 = default_ipv4(number);
        }
        self.plan
    }
}

fn numbers_in(name: &str) -> Vec<u32> {
    let parts = name.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|digits| digits.parse().ok()).collect()
}

/// Returns the Ethernet address of the host with this number, from 1, as with `mn --mac`.
pub(super) fn default_mac(number: u32) -> MacAddr {
    MacAddr::from_u64(number.into())
}

/// Returns the IPv4 address of the host with this number, from 1, in 10.0.0.0/8.
pub(super) fn default_ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + number)
}

/// Creates one switch with hosts at its ports from 1.
pub(super) fn single(hosts: u32) -> Plan {
    linear(1, hosts, |host, _| format!("h{host}"))
}

/// Creates a line of switches. Hosts have the first ports, then the previous switch, then the next one.
pub(super) fn line(switches: u32, hosts: u32) -> Plan {
    match hosts {
        1 => linear(switches, hosts, |_, switch| format!("h{switch}")),
        _ => linear(switches, hosts, |host, switch| format!("h{host}s{switch}")),
    }
}

fn linear(switches: u32, hosts: u32, name: impl Fn(u32, u32) -> String) -> Plan {
    let mut builder = Builder::default();
    let mut before = None;
    for number in 1..=switches {
        let switch = builder.switch();
        for host in 1..=hosts {
            builder.named_host(name(host, number), switch);
        }
        if let Some(before) = before {
            builder.link(switch, before);
        }
        before = Some(switch);
    }
    builder.finish()
}

/// Creates a tree with hosts below its lowest switches. Switches are numbered depth first; nodes below a switch have
/// its first ports, the node above it the last.
pub(super) fn tree(depth: u32, fanout: u32) -> Plan {
    let mut builder = Builder::default();
    subtree(&mut builder, depth, fanout);
    builder.finish()
}

fn subtree(builder: &mut Builder, depth: u32, fanout: u32) -> Switch {
    let switch = builder.switch();
    for _ in 0..fanout {
        if depth == 1 {
            builder.host(switch);
        } else {
            let below = subtree(builder, depth - 1, fanout);
            builder.link(switch, below);
        }
    }
    switch
}

/// Creates a grid with joined edges, `s1x1` to `s{x}x{y}`. The datapath id is 256 times the first number plus the second.
pub(super) fn torus(x: u32, y: u32, hosts: u32) -> Plan {
    let mut builder = Builder::default();
    for column in 1..=x {
        for row in 1..=y {
            let datapath_id = u64::from(column * 256 + row);
            let switch = builder.named_switch(format!("s{column}x{row}"), datapath_id);
            for host in 1..=hosts {
                let name = match hosts {
                    1 => format!("h{column}x{row}"),
                    _ => format!("h{column}x{row}x{host}"),
                };
                builder.named_host(name, switch);
            }
        }
    }
    let place = |column, row| (column % x * y + row % y) as Switch;
    for column in 0..x {
        for row in 0..y {
            let switch = place(column, row);
            builder.link(switch, place(column, row + 1));
            builder.link(switch, place(column + 1, row));
        }
    }
    builder.finish()
}

/// Creates a fat tree of switches with `k` ports each (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 2.2):
/// first the core switches, then pod by pod the aggregation and the edge switches. Nodes below a switch have its first
/// ports.
pub(super) fn fat_tree(k: u32) -> Plan {
    let half = k / 2;
    let mut builder = Builder::default();
    let core: Vec<_> = (0..half * half).map(|_| builder.switch()).collect();
    for _ in 0..k {
        let aggregation: Vec<_> = (0..half).map(|_| builder.switch()).collect();
        pod_edges(&mut builder, &aggregation);
        for (above, &switch) in core.chunks(half as usize).zip(&aggregation) {
            for &above in above {
                builder.link(switch, above);
            }
        }
    }
    builder.finish()
}

fn pod_edges(builder: &mut Builder, aggregation: &[Switch]) {
    for _ in aggregation {
        let edge = builder.switch();
        for _ in aggregation {
            builder.host(edge);
        }
        for &above in aggregation {
            builder.link(edge, above);
        }
    }
}

/// Creates a line with joined ends and one host at each switch.
pub(super) fn ring(switches: u32) -> Plan {
    let mut builder = Builder::default();
    for place in 0..switches as Switch {
        let switch = builder.switch();
        builder.host(switch);
        if place > 0 {
            builder.link(switch, place - 1);
        }
    }
    builder.link(0, switches as Switch - 1);
    builder.finish()
}

/// Creates switches that are all linked to each other, with one host at each.
pub(super) fn mesh(switches: u32) -> Plan {
    let mut builder = Builder::default();
    for _ in 0..switches {
        let switch = builder.switch();
        builder.host(switch);
    }
    for a in 0..switches as Switch {
        for b in a + 1..switches as Switch {
            builder.link(a, b);
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NextHops;
    use crate::spec::TopologySpec;
    use std::collections::BTreeMap;
    use std::fmt::Write;
    use std::sync::Arc;

    /// Mininet's topologies, written by `tools/vectors/mininet_topologies.py`.
    const MININET: &str = include_str!("mininet.txt");

    fn plan(spec: &str) -> Plan {
        let spec: TopologySpec = spec.parse().expect("the topology is known");
        spec.plan().expect("the size is fine")
    }

    fn description(plan: &Plan) -> String {
        let names: BTreeMap<_, _> = plan
            .switches
            .iter()
            .map(|switch| (switch.datapath_id, switch.name.as_str()))
            .collect();
        let end = |port: PortId| (names[&port.switch], port.port_no.0);
        let mut out = String::new();
        for SwitchPlan { name, datapath_id } in &plan.switches {
            writeln!(out, "  switch {name} {datapath_id}").unwrap();
        }
        for HostPlan {
            name,
            mac,
            ipv4,
            attached,
        } in &plan.hosts
        {
            let (switch, port_no) = end(*attached);
            writeln!(out, "  host {name} {mac} {ipv4} {switch}:{port_no}").unwrap();
        }
        let mut links: Vec<_> = plan
            .links
            .iter()
            .map(|link| {
                let (a, b) = (end(link.a).min(end(link.b)), end(link.a).max(end(link.b)));
                format!("  link {}:{} {}:{}\n", a.0, a.1, b.0, b.1)
            })
            .collect();
        links.sort();
        out + &links.concat()
    }

    #[test]
    fn numbers_equal_mininets() {
        let mut specs: Vec<(&str, String)> = Vec::new();
        for line in MININET.lines() {
            match specs.last_mut() {
                Some((_, text)) if line.starts_with(' ') => *text += &format!("{line}\n"),
                _ => specs.push((line, String::new())),
            }
        }
        assert_eq!(specs.len(), 11);
        for (spec, expected) in specs {
            assert_eq!(description(&plan(spec)), expected, "{spec}");
        }
    }

    /// Returns the number of ports in use at each switch. Asserts that they are numbered from 1 and that each is used once.
    fn ports(plan: &Plan) -> Vec<u32> {
        let hosts = plan.hosts.iter().map(|host| host.attached);
        let links = plan.links.iter().flat_map(|link| [link.a, link.b]);
        let mut used: Vec<_> = hosts.chain(links).collect();
        used.sort();
        let of_switch = plan.switches.iter().map(|switch| {
            let ports = used.iter().filter(|port| port.switch == switch.datapath_id);
            let numbers: Vec<_> = ports.map(|port| port.port_no.0).collect();
            assert!(
                numbers.iter().copied().eq(1..=numbers.len() as u32),
                "{numbers:?}"
            );
            numbers.len() as u32
        });
        of_switch.collect()
    }

    /// Returns the greatest distance between two switches, all of which must be connected.
    fn diameter(plan: &Plan) -> u32 {
        let topology = Arc::new(plan.topology());
        let next_hops = NextHops::new(topology.clone());
        let pairs = topology
            .switches()
            .iter()
            .flat_map(|&at| topology.switches().iter().map(move |&to| (at, to)));
        pairs
            .map(|(at, to)| next_hops.distance(at, to).expect("it is connected"))
            .max()
            .unwrap_or(0)
    }

    /// Al-Fares, Loukissas and Vahdat, section 2.2: k pods of k/2 aggregation and k/2 edge switches, k²/4 core switches,
    /// k³/4 hosts, and all ports in use.
    #[test]
    fn fat_trees_are_as_the_paper_has_them() {
        for k in [2, 4, 6, 8] {
            let plan = plan(&format!("fattree,{k}"));
            assert_eq!(plan.switches.len(), k * k / 4 + k * k);
            assert_eq!(plan.hosts.len(), k * k * k / 4);
            assert!(ports(&plan).iter().all(|&ports| ports == k as u32));
            assert_eq!(diameter(&plan), 4);
        }
    }

    #[test]
    fn rings_and_meshes_have_their_links() {
        let ring = plan("ring,7");
        assert_eq!(
            (ring.switches.len(), ring.hosts.len(), ring.links.len()),
            (7, 7, 7)
        );
        assert!(ports(&ring).iter().all(|&ports| ports == 3));
        assert_eq!(diameter(&ring), 3);
        let mesh = plan("mesh,6");
        assert_eq!(
            (mesh.switches.len(), mesh.hosts.len(), mesh.links.len()),
            (6, 6, 15)
        );
        assert!(ports(&mesh).iter().all(|&ports| ports == 6));
        assert_eq!(diameter(&mesh), 1);
    }

    #[test]
    fn hosts_beyond_255_have_addresses_too() {
        let plan = plan("single,300");
        let last = plan.hosts.last().expect("there are 300");
        assert_eq!(last.ipv4.to_string(), "10.0.1.44");
        assert_eq!(last.mac.to_string(), "00:00:00:00:01:2c");
    }
}
