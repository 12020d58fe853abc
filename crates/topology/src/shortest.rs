//! A shortest path.
//!
//! **What.** [`path`] finds a path with the fewest links, [`path_by_cost`] one whose links cost least together. Of
//! several, it is the one that leaves the first switch by the lowest port, then the second, and so on.
//!
//! **How.** A search from the destination, breadth first or Dijkstra's, which ends when it comes to the source; then a
//! walk along the links on which the distance falls.
//!
//! **Cost.** One look at each link of the switches that are nearer, and memory for a number per switch. On a tree of 13
//! switches well under a microsecond.
//!
//! **Thread-safety.** Functions of their arguments.

use crate::search::{self, UNREACHABLE};
use crate::{Link, Path, PortId, SwitchIndex, Topology};

/// A path with the fewest links between two ports; `None` if there is none or a switch is not there.
pub fn path(topology: &Topology, from: PortId, to: PortId) -> Option<Path> {
    let (start, end) = ends(topology, from, to)?;
    let distances = search::distances_to(topology, end, Some(start));
    let mut left = distances[start.to_usize()];
    if left == UNREACHABLE {
        return None;
    }
    let mut links = Vec::with_capacity(left.into());
    let mut at = start;
    while left > 0 {
        left -= 1;
        let nearer = |&(_, end): &(&Link, SwitchIndex)| distances[end.to_usize()] == left;
        let (link, end) = topology.ways_from(at).find(nearer)?;
        links.push(*link);
        at = end;
    }
    Some(Path::new(from, to, links))
}

/// A path between two ports whose links cost least together; `None` if there is none or a switch is not there.
///
/// A cost of 0 counts as 1: else paths might go in circles.
pub fn path_by_cost(
    topology: &Topology,
    from: PortId,
    to: PortId,
    cost: impl Fn(&Link) -> u32,
) -> Option<Path> {
    let (start, end) = ends(topology, from, to)?;
    let cost = |link: &Link| Some(u64::from(cost(link).max(1)));
    let links = search::cheapest(topology, start, end, cost)?;
    Some(Path::new(from, to, links.1))
}

/// The switches at the ends of a path.
pub(crate) fn ends(
    topology: &Topology,
    from: PortId,
    to: PortId,
) -> Option<(SwitchIndex, SwitchIndex)> {
    Some((
        topology.index_of(from.switch)?,
        topology.index_of(to.switch)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{all_ways, any_topology, host_port, petgraph_of};
    use petgraph::algo::dijkstra;
    use petgraph::graph::NodeIndex;
    use proptest::prelude::*;
    use urtica_wire::{DatapathId, PortNo};

    proptest! {
        /// Of all ways, the first in order: shortest, then by the links that it takes.
        #[test]
        fn trying_everything_finds_the_same(topology in any_topology()) {
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

        /// With any costs: petgraph finds as cheap a way, and ours is one that there is.
        #[test]
        fn petgraph_finds_as_cheap_a_path(
            topology in any_topology(),
            costs in prop::collection::vec(1..9_u32, 1..20),
        ) {
            let cost = |link: &Link| {
                let place = topology.links().binary_search(link).expect("the link is there");
                costs[place % costs.len()]
            };
            let graph = petgraph_of(&topology);
            for (node, &from) in topology.switches().iter().enumerate() {
                let distances = dijkstra(&graph, NodeIndex::new(node), None, |edge| cost(edge.weight()));
                for (end, &to) in topology.switches().iter().enumerate() {
                    let found = path_by_cost(&topology, host_port(from), host_port(to), cost);
                    let sum = found.map(|path| path.links().map(|link| cost(&link)).sum::<u32>());
                    prop_assert_eq!(sum, distances.get(&NodeIndex::new(end)).copied());
                }
            }
        }
    }

    #[test]
    fn a_path_has_the_ports_of_both_ends() {
        let [a, b] = [1, 2].map(DatapathId);
        let port = |switch, port_no| PortId::new(switch, PortNo(port_no));
        let topology = Topology::new([a, b], [Link::new(port(a, 3), port(b, 4))]);
        let found = path(&topology, port(a, 1), port(b, 2)).expect("there is a link");
        let ports: Vec<_> = found
            .hops
            .iter()
            .map(|hop| (hop.switch.0, hop.in_port.0, hop.out_port.0))
            .collect();
        assert_eq!(ports, [(1, 1, 3), (2, 4, 2)]);
        assert!(found.links().eq([Link::new(port(a, 3), port(b, 4))]));
        assert_eq!(
            path(&topology, port(b, 2), port(a, 1)),
            None,
            "the link leads one way"
        );
        let within = path(&topology, port(a, 1), port(a, 2)).expect("a switch leads to itself");
        assert_eq!((within.hops.len(), within.links().len()), (1, 0));
    }
}
