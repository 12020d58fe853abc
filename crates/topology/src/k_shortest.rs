//! The shortest paths without loops, in order.
//!
//! **What.** [`paths`] returns the paths between two ports that visit no switch twice, shortest first; [`paths_by_cost`]
//! returns them cheapest first. Equally good paths are ordered by their links, so the order is always the same. Paths over
//! parallel links are different paths.
//!
//! **How.** Yen's algorithm (Management Science 17, 1971) with Lawler's refinement (Management Science 18, 1972). Every path
//! except the first *deviates* from an earlier one at some switch, its spur: up to there it has the same links, and then
//! another. When a path is returned, the best deviation at each switch from its own spur on becomes a candidate; the next path
//! is the best of all candidates. A deviation is found by one search in the network without the switches before the spur, and
//! without the links that paths with the same first links use there. So no path is found twice.
//!
//! **Cost.** Each path needs a search of the network for each of its switches. Nothing is computed in advance: take only as
//! many paths as needed.
//!
//! **Thread-safety.** The iterator has its own memory.

use crate::search;
use crate::shortest;
use crate::{DirectedLink, Path, PortId, SwitchIndex, Topology};
use std::collections::BTreeSet;

/// Returns the paths between two ports that visit no switch twice, by number of links.
pub fn paths(topology: &Topology, from: PortId, to: PortId) -> impl Iterator<Item = Path> + '_ {
    paths_by_cost(topology, from, to, |_| 1)
}

/// Returns the paths between two ports that visit no switch twice, by the total cost of their links. A cost of 0 counts as 1.
pub fn paths_by_cost<'a>(
    topology: &'a Topology,
    from: PortId,
    to: PortId,
    cost: impl Fn(&DirectedLink) -> u32 + 'a,
) -> impl Iterator<Item = Path> + 'a {
    let cost = move |link: &DirectedLink| u64::from(cost(link).max(1));
    let ways = shortest::ends(topology, from, to).map(|ends| Ways::new(topology, ends, cost));
    ways.into_iter()
        .flatten()
        .map(move |links| Path::new(from, to, links))
}

/// A path that was found but not returned yet. Candidates are ordered like returned paths.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    cost: u64,
    links: Vec<DirectedLink>,
    /// The number of links that it shares with the path from which it deviates.
    spur: usize,
}

/// The paths between two switches, as links.
struct Ways<'a, C> {
    topology: &'a Topology,
    from: SwitchIndex,
    to: SwitchIndex,
    cost: C,
    given: Vec<Vec<DirectedLink>>,
    candidates: BTreeSet<Candidate>,
}

impl<'a, C: Fn(&DirectedLink) -> u64> Ways<'a, C> {
    fn new(topology: &'a Topology, (from, to): (SwitchIndex, SwitchIndex), cost: C) -> Self {
        let first = search::cheapest(topology, from, to, |link| Some(cost(link)));
        let candidates = first.map(|(cost, links)| Candidate {
            cost,
            links,
            spur: 0,
        });
        Self {
            topology,
            from,
            to,
            cost,
            given: Vec::new(),
            candidates: candidates.into_iter().collect(),
        }
    }

    /// Returns the best path that has the first `spur` links of `links`, and then a link that no returned path with these links
    /// uses.
    fn deviation(&self, links: &[DirectedLink], spur: usize) -> Option<Candidate> {
        let root = &links[..spur];
        let passed = |link: &DirectedLink| {
            root.iter()
                .any(|before| before.from.switch == link.from.switch)
        };
        let taken: Vec<_> = self
            .given
            .iter()
            .filter(|given| given.starts_with(root))
            .filter_map(|given| given.get(spur))
            .collect();
        let cost = |link: &DirectedLink| {
            let is_open = !passed(link) && !taken.contains(&link);
            is_open.then(|| (self.cost)(link))
        };
        let (rest, way) = search::cheapest(self.topology, self.spur_switch(root), self.to, cost)?;
        Some(Candidate {
            cost: root.iter().map(&self.cost).sum::<u64>() + rest,
            links: [root, &way].concat(),
            spur,
        })
    }

    fn spur_switch(&self, root: &[DirectedLink]) -> SwitchIndex {
        let end = root.last().map(|link| link.to.switch);
        end.and_then(|switch| self.topology.index_of(switch))
            .unwrap_or(self.from)
    }
}

impl<C: Fn(&DirectedLink) -> u64> Iterator for Ways<'_, C> {
    type Item = Vec<DirectedLink>;

    fn next(&mut self) -> Option<Vec<DirectedLink>> {
        let Candidate { links, spur, .. } = self.candidates.pop_first()?;
        self.given.push(links.clone());
        for spur in spur..links.len() {
            let deviation = self.deviation(&links, spur);
            self.candidates.extend(deviation);
        }
        Some(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{all_ways, any_topology, host_port};
    use proptest::prelude::*;

    /// Returns a cost that differs between links and directions.
    fn uneven(link: &DirectedLink) -> u32 {
        let sum = link.from.switch.0 * 3 + link.to.switch.0 + u64::from(link.from.port_no.0);
        (sum % 5) as u32
    }

    fn expected(
        topology: &Topology,
        from: PortId,
        to: PortId,
        cost: impl Fn(&DirectedLink) -> u32,
    ) -> Vec<Path> {
        let mut ways = all_ways(topology, from.switch, to.switch);
        ways.sort_by_cached_key(|way| {
            let cost: u32 = way.iter().map(|link| cost(link).max(1)).sum();
            (cost, way.clone())
        });
        ways.into_iter()
            .map(|way| Path::new(from, to, way))
            .collect()
    }

    proptest! {
        /// All paths in order, both by links and by cost.
        #[test]
        fn agrees_with_exhaustive_search(topology in any_topology()) {
            for &from in topology.switches() {
                for &to in topology.switches() {
                    let (from, to) = (host_port(from), host_port(to));
                    // A network in which most switches are linked has too many paths to compare all.
                    let by_links = paths(&topology, from, to).take(60).collect::<Vec<_>>();
                    let by_cost = paths_by_cost(&topology, from, to, uneven).take(60).collect::<Vec<_>>();
                    prop_assert_eq!(by_links, first(60, expected(&topology, from, to, |_| 1)));
                    prop_assert_eq!(by_cost, first(60, expected(&topology, from, to, uneven)));
                }
            }
        }
    }

    fn first(count: usize, mut paths: Vec<Path>) -> Vec<Path> {
        paths.truncate(count);
        paths
    }

    #[test]
    fn a_ring_has_two_paths() {
        let plan = "ring,5"
            .parse::<crate::spec::TopologySpec>()
            .unwrap()
            .plan()
            .unwrap();
        let topology = plan.topology();
        let found = paths(&topology, plan.hosts[0].attached, plan.hosts[1].attached);
        let lengths: Vec<_> = found.map(|path| path.hops.len()).collect();
        assert_eq!(lengths, [2, 5]);
    }

    #[test]
    fn a_switch_has_one_path_to_itself_and_an_absent_switch_none() {
        let topology = Topology::new([1, 2].map(urtica_wire::DatapathId), []);
        let port = |switch| host_port(urtica_wire::DatapathId(switch));
        assert_eq!(paths(&topology, port(1), port(1)).count(), 1);
        assert_eq!(paths(&topology, port(1), port(2)).count(), 0);
        assert_eq!(paths(&topology, port(1), port(3)).count(), 0);
    }
}
