//! What is really connected, whatever the controller believes.

use crate::{CableId, End, HostId, Net};
use std::collections::BTreeMap;

/// The pairs of hosts, both ways, between which there is a way over cables that are not cut. All switches are on.
pub(super) fn connected_pairs(net: &Net) -> Vec<(HostId, HostId)> {
    let mut islands = Islands::default();
    net.cables().for_each(|cable| islands.join(net, cable));
    let hosts: Vec<_> = net.hosts().collect();
    let pairs = hosts
        .iter()
        .flat_map(|&from| hosts.iter().map(move |&to| (from, to)));
    pairs
        .filter(|(from, to)| from != to && islands.of_host(*from) == islands.of_host(*to))
        .collect()
}

/// A host or a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Host(HostId),
    Switch(u32),
}

/// Each node's island, by the name of one of its nodes.
#[derive(Default)]
struct Islands(BTreeMap<Node, Node>);

impl Islands {
    fn join(&mut self, net: &Net, cable: CableId) {
        let Ok(ends) = net.ends(cable) else {
            return;
        };
        let [one, other] = ends.map(|end| match end {
            End::Host(host) => Node::Host(host),
            End::Switch(switch, _) => Node::Switch(switch.0),
        });
        let [one, other] = [one, other].map(|node| *self.0.entry(node).or_insert(node));
        if !net.is_cut(cable).unwrap_or(true) {
            let islands = self.0.values_mut();
            islands
                .filter(|island| **island == other)
                .for_each(|island| *island = one);
        }
    }

    fn of_host(&self, host: HostId) -> Option<Node> {
        self.0.get(&Node::Host(host)).copied()
    }
}
