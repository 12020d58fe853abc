//! Tests of shortest paths, with exhaustive search and petgraph as references.

use super::*;
use crate::testing::{all_ways, any_topology, host_port, petgraph_of};
use petgraph::algo::dijkstra;
use petgraph::graph::NodeIndex;
use proptest::prelude::*;
use urtica_wire::{DatapathId, PortNo};

proptest! {
    /// The path is the first of all paths, which are ordered by length, then by their links.
    #[test]
    fn agrees_with_exhaustive_search(topology in any_topology()) {
        for &from in topology.switches() {
            for &to in topology.switches() {
                let (from, to) = (host_port(from), host_port(to));
                let ways = all_ways(&topology, from.switch, to.switch).into_iter();
                let first = ways.min_by_key(|way| (way.len(), way.clone()));
                let expected = first.map(|way| Path::new(from, to, way));
                prop_assert_eq!(path(&topology, from, to), expected.clone());
                prop_assert_eq!(path_by_cost(&topology, from, to, |_| 0), expected);
            }
        }
    }

    /// With any costs, the path is as cheap as petgraph's, and exists.
    #[test]
    fn paths_are_as_cheap_as_petgraphs(
        topology in any_topology(),
        costs in prop::collection::vec(1..9_u32, 1..20),
    ) {
        let cost = |link: &DirectedLink| {
            let place = topology.directed_links().binary_search(link).expect("the link is there");
            costs[place % costs.len()]
        };
        let graph = petgraph_of(&topology);
        for (node, &from) in topology.switches().iter().enumerate() {
            let distances = dijkstra(&graph, NodeIndex::new(node), None, |edge| cost(edge.weight()));
            for (end, &to) in topology.switches().iter().enumerate() {
                let found = path_by_cost(&topology, host_port(from), host_port(to), cost);
                let sum = found.map(|path| path.directed_links().map(|link| cost(&link)).sum::<u32>());
                prop_assert_eq!(sum, distances.get(&NodeIndex::new(end)).copied());
            }
        }
    }
}

#[test]
fn a_path_has_the_ports_of_both_ends() {
    let [a, b] = [1, 2].map(DatapathId);
    let port = |switch, port_no| PortId::new(switch, PortNo(port_no));
    let topology = Topology::new([a, b], [DirectedLink::new(port(a, 3), port(b, 4))]);
    let found = path(&topology, port(a, 1), port(b, 2)).expect("there is a link");
    let ports: Vec<_> = found
        .hops
        .iter()
        .map(|hop| (hop.switch.0, hop.in_port.0, hop.out_port.0))
        .collect();
    assert_eq!(ports, [(1, 1, 3), (2, 4, 2)]);
    assert!(
        found
            .directed_links()
            .eq([DirectedLink::new(port(a, 3), port(b, 4))])
    );
    assert_eq!(
        path(&topology, port(b, 2), port(a, 1)),
        None,
        "the link leads one way"
    );
    let within = path(&topology, port(a, 1), port(a, 2)).expect("a switch leads to itself");
    assert_eq!((within.hops.len(), within.directed_links().len()), (1, 0));
}
