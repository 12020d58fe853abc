//! Networks as DOT, for Graphviz.

use super::{Host, Link, Network, Switch, text};
use crate::PortId;

impl Network {
    /// Writes the network in Graphviz's language. Graphviz lays it out, as in `neato -Tsvg`.
    ///
    /// The names of nodes are datapath ids and numbers of hosts. Ports are labels at the ends of links; links that are down are
    /// dashed.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("graph network {\n  node [shape=box];\n");
        for switch in &self.switches {
            dot += &node(switch);
        }
        for (number, host) in (1..).zip(&self.hosts) {
            dot += &host_node(number, host);
        }
        for link in &self.links {
            dot += &edge(link);
        }
        dot + "}\n"
    }
}

fn node(switch: &Switch) -> String {
    let lines = switch.name.iter().cloned().chain([switch.id.to_string()]);
    format!("  \"{}\" [label=\"{}\"];\n", switch.id, label(lines))
}

fn host_node(number: usize, host: &Host) -> String {
    let lines = [&host.name].into_iter().chain(&host.addresses).cloned();
    let PortId { switch, port_no } = host.attached;
    format!(
        "  host{number} [shape=ellipse, label=\"{}\"];\n  \"{switch}\" -- host{number} [taillabel=\"{port_no}\"];\n",
        label(lines)
    )
}

fn edge(link: &Link) -> String {
    let style = if link.is_up { "" } else { ", style=dashed" };
    format!(
        "  \"{}\" -- \"{}\" [taillabel=\"{}\", headlabel=\"{}\"{style}];\n",
        link.a.switch, link.b.switch, link.a.port_no, link.b.port_no
    )
}

/// Joins the lines of a label.
fn label(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<_> = lines.map(|line| text::dot(&text::shown(&line))).collect();
    lines.join("\\n")
}
