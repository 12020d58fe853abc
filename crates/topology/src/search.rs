//! Distances to one switch from all others, which all algorithms use.
//!
//! Searches start at the destination and follow links backwards, since forwarding state is per destination. A switch's next
//! hops are then the links whose ends are nearer by exactly the link's cost.

use crate::topology::Incoming;
use crate::{DirectedLink, SwitchIndex, Topology};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

/// The distance of a switch from which the destination cannot be reached, or only over more than 65,534 links.
pub(crate) const UNREACHABLE: u16 = u16::MAX;

/// A breadth-first search from one destination, for a single path, and as the reference model of [`Searches`].
///
/// Returns each switch's distance to `to`, in links. With `until`, the search ends when that switch is reached; then only
/// distances up to its own are final.
pub(crate) fn distances_to(
    topology: &Topology,
    to: SwitchIndex,
    until: Option<SwitchIndex>,
) -> Vec<u16> {
    let mut distances = vec![UNREACHABLE; topology.switches().len()];
    distances[to.to_usize()] = 0;
    let mut queue = vec![to];
    let mut turn = 0;
    while let Some(&at) = queue.get(turn) {
        turn += 1;
        let distance = distances[at.to_usize()] + 1;
        if Some(at) == until || distance == UNREACHABLE {
            break;
        }
        for &Incoming { from, .. } in topology.ways_to(at) {
            let known = &mut distances[from.to_usize()];
            if *known == UNREACHABLE {
                *known = distance;
                queue.push(from);
            }
        }
    }
    distances
}

/// The number of destinations that are searched together: one for each bit of a word.
pub(crate) const TOGETHER: usize = u64::BITS as usize;

/// Breadth-first searches from several destinations at once (Then and others, The more the merrier, VLDB 2014). Each switch
/// has a word with a bit for each search, so searches that reach a switch at the same distance continue from there with a
/// single scan of its links.
///
/// In a data centre's network there are few different distances, and nearly all searches advance together. In the worst case,
/// if no two ever meet, the cost equals that of separate searches.
pub(crate) struct Searches {
    /// For each switch, the searches that have reached it.
    seen: Vec<u64>,
    /// For each switch, the searches that reached it in the last step.
    arrived: Vec<u64>,
    /// For each switch, the searches that reach it in this step.
    arriving: Vec<u64>,
    /// The switches reached in the last step.
    turn: Vec<SwitchIndex>,
    /// The switches reached in this step.
    next: Vec<SwitchIndex>,
}

impl Searches {
    /// Allocates memory for searches of networks with `switches` switches.
    pub fn new(switches: usize) -> Self {
        Self {
            seen: vec![0; switches],
            arrived: vec![0; switches],
            arriving: vec![0; switches],
            turn: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Writes each switch's distance to each of at most [`TOGETHER`] different destinations: first all distances to the
    /// first, then all distances to the second, and so on.
    pub fn distances_to(
        &mut self,
        topology: &Topology,
        destinations: &[SwitchIndex],
        distances: &mut [u16],
    ) {
        distances.fill(UNREACHABLE);
        self.begin(destinations);
        for distance in 0..UNREACHABLE {
            self.write(distance, distances);
            self.step(topology);
            if self.turn.is_empty() {
                return;
            }
        }
        self.arrived.fill(0);
    }

    fn begin(&mut self, destinations: &[SwitchIndex]) {
        self.seen.fill(0);
        self.turn.clear();
        for (search, to) in destinations.iter().enumerate() {
            self.seen[to.to_usize()] = 1 << search;
            self.arrived[to.to_usize()] = 1 << search;
            self.turn.push(*to);
        }
    }

    /// Writes the distance of the switches reached in the last step, for the searches that reached them.
    fn write(&self, distance: u16, distances: &mut [u16]) {
        let switches = self.seen.len();
        for &at in &self.turn {
            let mut left = self.arrived[at.to_usize()];
            while left != 0 {
                let search = left.trailing_zeros() as usize;
                distances[search * switches + at.to_usize()] = distance;
                left &= left - 1;
            }
        }
    }

    /// Advances every search by one link.
    fn step(&mut self, topology: &Topology) {
        for &at in &self.turn {
            let searches = mem::take(&mut self.arrived[at.to_usize()]);
            for &Incoming { from, .. } in topology.ways_to(at) {
                let arriving = &mut self.arriving[from.to_usize()];
                let new = searches & !self.seen[from.to_usize()];
                if *arriving == 0 && new != 0 {
                    self.next.push(from);
                }
                *arriving |= new;
            }
        }
        for &at in &self.next {
            let arrived = mem::take(&mut self.arriving[at.to_usize()]);
            self.arrived[at.to_usize()] = arrived;
            self.seen[at.to_usize()] |= arrived;
        }
        mem::swap(&mut self.turn, &mut self.next);
        self.next.clear();
    }
}

/// Returns each switch's least cost to `to` (Dijkstra, Numerische Mathematik 1, 1959); `None` if no path exists.
///
/// `cost` returns a link's cost, 1 or more, or `None` to exclude the link.
pub(crate) fn costs_to(
    topology: &Topology,
    to: SwitchIndex,
    cost: impl Fn(&DirectedLink) -> Option<u64>,
) -> Vec<Option<u64>> {
    let mut costs = vec![None; topology.switches().len()];
    let mut queue = BinaryHeap::from([Reverse((0, to))]);
    while let Some(Reverse((so_far, at))) = queue.pop() {
        if costs[at.to_usize()].is_some() {
            continue;
        }
        costs[at.to_usize()] = Some(so_far);
        for &Incoming { from, link } in topology.ways_to(at) {
            if costs[from.to_usize()].is_none() {
                if let Some(step) = cost(&topology.directed_links()[link as usize]) {
                    queue.push(Reverse((so_far + step, from)));
                }
            }
        }
    }
    costs
}

/// Returns the links of the cheapest path between two switches, and their total cost; `None` if no path exists.
///
/// Of several paths, returns the one that leaves the first switch by the lowest link, then the second, and so on. `cost` is as
/// for [`costs_to`].
pub(crate) fn cheapest(
    topology: &Topology,
    from: SwitchIndex,
    to: SwitchIndex,
    cost: impl Fn(&DirectedLink) -> Option<u64>,
) -> Option<(u64, Vec<DirectedLink>)> {
    let costs = costs_to(topology, to, &cost);
    let total = costs[from.to_usize()]?;
    let mut links = Vec::new();
    let (mut at, mut left) = (from, total);
    while at != to {
        let on_the_way = |&(link, end): &(&DirectedLink, SwitchIndex)| {
            let rest = costs[end.to_usize()];
            rest.zip(cost(link))
                .is_some_and(|(rest, step)| rest + step == left)
        };
        let (link, end) = topology.ways_from(at).find(on_the_way)?;
        links.push(*link);
        left = costs[end.to_usize()]?;
        at = end;
    }
    Some((total, links))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DirectedLink, PortId};
    use urtica_wire::{DatapathId, PortNo};

    /// Creates a line of switches, longer than the maximum distance.
    fn long_line() -> Topology {
        let port = |switch, port_no| PortId::new(DatapathId(switch), PortNo(port_no));
        let links = (1..66_000).map(|at| DirectedLink::new(port(at, 2), port(at + 1, 1)));
        Topology::new((1..=66_000).map(DatapathId), links)
    }

    #[test]
    fn switches_too_far_are_unreachable() {
        let topology = long_line();
        let ends = [65_999, 65_998].map(SwitchIndex);
        let plainly = ends.map(|to| distances_to(&topology, to, None)).concat();
        assert_eq!(plainly[65_999 - 65_534..][..2], [65_534, 65_533]);
        assert_eq!(plainly[65_999 - 65_535], UNREACHABLE);
        let mut searches = Searches::new(topology.switches().len());
        let mut together = vec![0; plainly.len()];
        // The second search shows that the first one left no state behind.
        for _ in 0..2 {
            searches.distances_to(&topology, &ends, &mut together);
            assert!(together == plainly);
        }
    }
}
