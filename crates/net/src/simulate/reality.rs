//! The actual connectivity of a network, independent of the controller's view.

use crate::{End, HostId, LinkId, Net};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Returns the pairs of hosts in one VLAN, in both directions, that are connected by links that are not cut. Expects all
/// switches to be on.
pub(super) fn connected_pairs(net: &Net) -> Vec<(HostId, HostId)> {
    let mut islands = Islands::default();
    net.links().for_each(|link| islands.join(net, link));
    let hosts: Vec<_> = net.hosts().collect();
    let pairs = hosts
        .iter()
        .flat_map(|&from| hosts.iter().map(move |&to| (from, to)));
    let are_neighbours = |from, to| net.vlan(from).ok() == net.vlan(to).ok();
    pairs
        .filter(|&(from, to)| from != to && are_neighbours(from, to))
        .filter(|(from, to)| islands.of_host(*from) == islands.of_host(*to))
        .collect()
}

/// Returns the number of switches on a shortest path from each host to each other.
pub(super) fn distances(net: &Net) -> BTreeMap<(HostId, HostId), usize> {
    let mut neighbours: BTreeMap<Node, Vec<Node>> = BTreeMap::new();
    for link in net
        .links()
        .filter(|link| !net.is_cut(*link).unwrap_or(true))
    {
        if let Ok([one, other]) = net.ends(link).map(|ends| ends.map(Node::of)) {
            neighbours.entry(one).or_default().push(other);
            neighbours.entry(other).or_default().push(one);
        }
    }
    let mut distances = BTreeMap::new();
    for from in net.hosts() {
        let mut reached = BTreeMap::from([(Node::Host(from), 0)]);
        let mut next = VecDeque::from([Node::Host(from)]);
        while let Some(node) = next.pop_front() {
            let hops = reached[&node];
            for &neighbour in neighbours.get(&node).into_iter().flatten() {
                if let Entry::Vacant(entry) = reached.entry(neighbour) {
                    entry.insert(hops + 1);
                    next.push_back(neighbour);
                }
            }
        }
        for to in net.hosts().filter(|to| *to != from) {
            if let Some(links) = reached.get(&Node::Host(to)) {
                distances.insert((from, to), links - 1);
            }
        }
    }
    distances
}

/// A host or a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Host(HostId),
    Switch(u32),
}

impl Node {
    fn of(end: End) -> Self {
        match end {
            End::Host(host) => Self::Host(host),
            End::Switch(switch, _) => Self::Switch(switch.0),
        }
    }
}

/// The component of each node, named by one of its nodes.
#[derive(Default)]
struct Islands(BTreeMap<Node, Node>);

impl Islands {
    fn join(&mut self, net: &Net, link: LinkId) {
        let Ok(ends) = net.ends(link) else {
            return;
        };
        let [one, other] = ends.map(Node::of);
        let [one, other] = [one, other].map(|node| *self.0.entry(node).or_insert(node));
        if !net.is_cut(link).unwrap_or(true) {
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
