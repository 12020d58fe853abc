//! Compares trees in random graphs with the spread of a flooded packet.

use super::*;
use crate::testing::{any_link, any_topology, host_port, petgraph_of, switch};
use petgraph::unionfind::UnionFind;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Returns each switch's part of the network, connected by bidirectional links.
fn parts(topology: &Topology) -> UnionFind<usize> {
    let graph = petgraph_of(topology);
    let mut parts = UnionFind::new(graph.node_count());
    for edge in graph
        .edge_indices()
        .filter(|&edge| topology.contains(&graph[edge].reversed()))
    {
        let (from, to) = graph.edge_endpoints(edge).expect("the edge is there");
        parts.union(from.index(), to.index());
    }
    parts
}

/// Returns how often each switch receives a packet that a host at `from` floods along the tree's flood ports.
fn flooded(
    topology: &Topology,
    tree: &SpanningTree,
    from: DatapathId,
) -> BTreeMap<DatapathId, u32> {
    let mut seen = BTreeMap::new();
    let mut arriving = VecDeque::from([host_port(from)]);
    while let Some(port) = arriving.pop_front() {
        if !tree.is_flood_port(port) {
            continue;
        }
        *seen.entry(port.switch).or_default() += 1;
        assert!(seen[&port.switch] < 3, "the packet loops");
        let ports = topology
            .link_ports()
            .iter()
            .filter(|other| other.switch == port.switch);
        for port_no in tree.flood_ports(port, ports.map(|port| port.port_no)) {
            let out = PortId::new(port.switch, port_no);
            let links = topology
                .directed_links()
                .iter()
                .filter(|link| link.from == out);
            arriving.extend(links.map(|link| link.to));
        }
    }
    seen
}

proptest! {
    /// Each link of the tree joins two separate parts, and in the end there are as many parts as in the network.
    #[test]
    fn it_spans_every_part_without_a_cycle(topology in any_topology()) {
        let tree = SpanningTree::new(&topology);
        let expected = parts(&topology);
        let mut joined = UnionFind::new(topology.switches().len());
        for link in tree.links() {
            prop_assert!(topology.contains(link) && topology.contains(&link.reversed()));
            let ends = [link.from, link.to].map(|port| topology.index_of(port.switch).unwrap().to_usize());
            prop_assert!(joined.union(ends[0], ends[1]), "{link} closes a cycle");
        }
        let (joined, expected) = (joined.into_labeling(), expected.into_labeling());
        for (a, b) in (0..joined.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
            prop_assert_eq!(joined[a] == joined[b], expected[a] == expected[b]);
        }
        let lowest = (0..expected.len()).filter(|&at| (0..at).all(|other| expected[other] != expected[at]));
        let roots: Vec<_> = lowest.map(|at| topology.switches()[at]).collect();
        prop_assert_eq!(tree.roots(), &roots);
    }

    /// Adding or removing a link outside of the tree does not change the tree.
    #[test]
    fn links_outside_of_the_tree_change_nothing_else(topology in any_topology(), number: usize) {
        let tree = SpanningTree::new(&topology);
        let outside = |link: &&DirectedLink| !tree.links().contains(link) && !tree.links().contains(&link.reversed());
        let links: Vec<_> = topology.directed_links().iter().filter(outside).collect();
        if !links.is_empty() {
            let without = SpanningTree::new(&topology.without_link(*links[number % links.len()]));
            prop_assert_eq!(without.links(), tree.links());
        }
    }

    /// A switch keeps its parent unless it is at an end of the new link, or it or a neighbour becomes nearer to the root.
    #[test]
    fn a_new_link_changes_only_nearer_switches(topology in any_topology(), link in any_link()) {
        let after = topology.with_link(link).with_link(link.reversed());
        let (old, new) = (Places::new(&topology), Places::new(&after));
        for at in topology.indices() {
            let switch = topology.datapath_id(at);
            let ends = [link.from.switch, link.to.switch];
            let stays = old.depths[at.to_usize()] == new.depths[at.to_usize()] && old.roots == new.roots;
            let near = topology.neighbours(at).iter().any(|end| old.depths[end.to_usize()] != new.depths[end.to_usize()]);
            if stays && !near && !ends.contains(&switch) {
                prop_assert_eq!(old.link_to_parent(at), new.link_to_parent(at));
            }
        }
    }
}

/// A packet from each switch reaches each switch once, in networks without hubs.
#[test]
fn floods_reach_each_switch_once() {
    for spec in ["ring,5", "mesh,6", "torus,3,4", "fattree,4", "tree,3,2"] {
        let spec: crate::spec::TopologySpec = spec.parse().unwrap();
        let topology = spec.plan().unwrap().topology();
        let tree = SpanningTree::new(&topology);
        for &from in topology.switches() {
            let seen = flooded(&topology, &tree, from);
            assert!(seen.values().all(|&times| times == 1), "{spec}: {seen:?}");
            assert_eq!(seen.len(), topology.switches().len(), "{spec}");
        }
    }
}

/// IEEE 802.1D-2004 section 17.5: the lowest neighbour first, then its lowest port, then the switch's own.
#[test]
fn of_equal_paths_to_the_root_the_choice_is_fixed() {
    let port = |number, port_no| PortId::new(switch(number), PortNo(port_no));
    let towards_root = [
        DirectedLink::new(port(1, 1), port(0, 1)),
        DirectedLink::new(port(2, 1), port(0, 2)),
        DirectedLink::new(port(3, 1), port(2, 2)),
        DirectedLink::new(port(3, 2), port(1, 5)),
        DirectedLink::new(port(3, 3), port(1, 4)),
    ];
    let links = towards_root
        .iter()
        .flat_map(|link| [*link, link.reversed()]);
    let tree = SpanningTree::new(&Topology::new([0, 1, 2, 3].map(switch), links));
    assert_eq!(
        tree.links(),
        [towards_root[0], towards_root[1], towards_root[4]]
    );
}

/// Three switches at one hub: any two are linked, with one port each.
#[test]
fn a_hub_carries_a_flood_once() {
    let ports = [0, 1, 2].map(|number| PortId::new(switch(number), PortNo(1)));
    let links = ports
        .iter()
        .flat_map(|&from| ports.map(|to| DirectedLink::new(from, to)));
    let topology = Topology::new(
        ports.map(|port| port.switch),
        links.filter(|link| link.from != link.to),
    );
    let tree = SpanningTree::new(&topology);
    assert_eq!(tree.links().len(), 2);
    let seen = flooded(&topology, &tree, switch(1));
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn looped_and_one_way_links_are_not_flooded() {
    let port = |number, port_no| PortId::new(switch(number), PortNo(port_no));
    let looped = DirectedLink::new(port(0, 1), port(0, 2));
    let one_way = DirectedLink::new(port(0, 3), port(1, 3));
    let topology = Topology::new([switch(0), switch(1)], [looped, one_way]);
    let tree = SpanningTree::new(&topology);
    assert!(tree.links().is_empty());
    for blocked in [looped.from, looped.to, one_way.from, one_way.to] {
        assert!(!tree.is_flood_port(blocked), "{blocked}");
    }
    let host = port(0, 9);
    let ports = [1, 2, 3, 8, 9].map(PortNo);
    assert!(tree.flood_ports(host, ports).eq([PortNo(8)]));
    assert_eq!(
        tree.flood_ports(looped.to, ports).count(),
        0,
        "it has come round"
    );
}
