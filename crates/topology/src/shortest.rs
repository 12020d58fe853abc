//! Shortest paths.
//!
//! **What.** [`path`] finds a path with the fewest links, [`path_by_cost`] one with the least total cost. Of several, it is
//! the one that leaves the first switch by the lowest port, then the second, and so on.
//!
//! **How.** A search from the destination (breadth-first, or Dijkstra's) that ends at the source, and then a walk along links
//! on which the distance decreases.
//!
//! **Cost.** A visit to each link of the nearer switches, and memory for a number per switch; for a tree of 13 switches well
//! under a microsecond.
//!
//! **Thread-safety.** The functions are pure.

use crate::search::{self, UNREACHABLE};
use crate::{DirectedLink, Path, PortId, SwitchIndex, Topology};

/// Returns a path with the fewest links between two ports; `None` if no path or switch exists.
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
        let nearer = |&(_, end): &(&DirectedLink, SwitchIndex)| distances[end.to_usize()] == left;
        let (link, end) = topology.ways_from(at).find(nearer)?;
        links.push(*link);
        at = end;
    }
    Some(Path::new(from, to, links))
}

/// Returns a path between two ports with the least total cost; `None` if no path or switch exists.
///
/// A cost of 0 counts as 1, since paths might otherwise contain loops.
pub fn path_by_cost(
    topology: &Topology,
    from: PortId,
    to: PortId,
    cost: impl Fn(&DirectedLink) -> u32,
) -> Option<Path> {
    let (start, end) = ends(topology, from, to)?;
    let cost = |link: &DirectedLink| Some(u64::from(cost(link).max(1)));
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
mod tests;
