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
use crate::{DirectedLink, Path, PortId, SwitchIndex, Topology};

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
        let nearer = |&(_, end): &(&DirectedLink, SwitchIndex)| distances[end.to_usize()] == left;
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
