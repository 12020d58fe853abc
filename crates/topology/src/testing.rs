//! Random networks, and reference algorithms on them.

use crate::{DirectedLink, PortId, Topology};
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::collection::vec;
use proptest::prelude::*;
use urtica_wire::{DatapathId, PortNo};

/// The maximum number of switches in a random network.
const SWITCHES: u64 = 9;

/// Returns the switch with a number. Ids are far apart, so that a number cannot be mistaken for a datapath id.
pub(crate) fn switch(number: u64) -> DatapathId {
    DatapathId(7 + number * 100)
}

/// Returns a port without a link.
pub(crate) fn host_port(switch: DatapathId) -> PortId {
    PortId::new(switch, PortNo(99))
}

/// Generates ports that may have a link. They are few, so that several links often share one.
fn any_port() -> impl Strategy<Value = PortId> {
    (0..SWITCHES, 1..5_u32)
        .prop_map(|(number, port_no)| PortId::new(switch(number), PortNo(port_no)))
}

/// Generates links, including links from a switch to itself.
pub(crate) fn any_link() -> impl Strategy<Value = DirectedLink> {
    (any_port(), any_port()).prop_map(|(from, to)| DirectedLink::new(from, to))
}

pub(crate) fn any_switch() -> impl Strategy<Value = DatapathId> {
    (0..SWITCHES).prop_map(switch)
}

/// Generates networks of up to nine switches, with mostly bidirectional links. They may be disconnected, and have parallel
/// links, hubs, links from a switch to itself, and links to unknown switches.
pub(crate) fn any_topology() -> impl Strategy<Value = Topology> {
    let drawn = vec((any_link(), prop::bool::weighted(0.8)), 0..24);
    (vec(any_switch(), 0..16), drawn).prop_map(|(switches, drawn)| {
        let links = drawn
            .into_iter()
            .flat_map(|(link, both_ways)| [Some(link), both_ways.then_some(link.reversed())]);
        Topology::new(switches, links.flatten())
    })
}

/// Returns the network for petgraph. Nodes have the indices of the switches.
pub(crate) fn petgraph_of(topology: &Topology) -> DiGraph<DatapathId, DirectedLink> {
    let mut graph = DiGraph::new();
    for &switch in topology.switches() {
        graph.add_node(switch);
    }
    for &link in topology.directed_links() {
        let node = |port: PortId| {
            let index = topology
                .index_of(port.switch)
                .expect("links are between switches");
            NodeIndex::new(index.to_usize())
        };
        graph.add_edge(node(link.from), node(link.to), link);
    }
    graph
}

/// Returns all paths between two switches that visit no switch twice, by exhaustive search.
pub(crate) fn all_ways(
    topology: &Topology,
    from: DatapathId,
    to: DatapathId,
) -> Vec<Vec<DirectedLink>> {
    let mut found = Vec::new();
    let both_there = [from, to]
        .map(|switch| topology.index_of(switch))
        .iter()
        .all(Option::is_some);
    if both_there {
        extend(topology, from, to, &mut Vec::new(), &mut found);
    }
    found
}

fn extend(
    topology: &Topology,
    at: DatapathId,
    to: DatapathId,
    way: &mut Vec<DirectedLink>,
    found: &mut Vec<Vec<DirectedLink>>,
) {
    if at == to {
        found.push(way.clone());
        return;
    }
    for link in topology
        .directed_links()
        .iter()
        .filter(|link| link.from.switch == at)
    {
        let end = link.to.switch;
        if end != at && way.iter().all(|before| before.from.switch != end) {
            way.push(*link);
            extend(topology, end, to, way, found);
            way.pop();
        }
    }
}
