//! Next hops between all pairs of switches.
//!
//! **What.** For each switch and destination, [`NextHops`] has the distance and all links on shortest paths, so that flows can
//! be spread (equal-cost multipath). [`NextHops::updated`] adapts it to a changed network.
//!
//! **How.** Only distances are stored: a *column* for each destination, with every switch's distance to it. A link is on a
//! shortest path to the destination if and only if its end is nearer by one, so the sets of links need no memory, and cannot
//! contradict the distances.
//!
//! Columns are computed by breadth-first searches, 64 together. After a change, a column is still correct if and only if
//!
//! 1. no new link is a shortcut: its end is not nearer than its start by more than one; and
//! 2. every switch that lost a link still has one that leads to a nearer switch, if it has any path.
//!
//! Then each distance is one more than the least of its neighbours', and only the correct distances satisfy this. Correct
//! columns are shared with the previous value; only the others are searched again. So the update is exact: it searches no
//! column that stays unchanged.
//!
//! **Cost.** 2 bytes for each pair of switches. A query about a switch scans its links. `new` visits each link at worst once
//! per destination, and once per 64 destinations if there are few different distances; it uses several threads if there is
//! much work. `updated` compares all links once, checks the changed ones for each destination, and searches the remaining
//! columns. If switches were added or removed, it also copies the columns, and a new switch with links changes all of them.
//!
//! **Thread-safety.** Immutable: share it in an `Arc`. Threads are started for a computation and end with it. Their number
//! does not affect the result.

use crate::search::{Searches, TOGETHER, UNREACHABLE};
use crate::sorted::difference;
use crate::{DirectedLink, Path, PortId, SwitchIndex, Topology};
use std::sync::Arc;
use std::thread;
use urtica_wire::{DatapathId, mix};

/// The number of links and switches that a search must visit to justify another thread, in about half a millisecond.
const STEPS_PER_THREAD: usize = 500_000;

/// The distances from every switch to one destination.
type Column = Arc<[u16]>;

/// Distances and next hops between all pairs of switches of a [`Topology`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextHops {
    topology: Arc<Topology>,
    /// The columns, one for each destination.
    columns: Vec<Column>,
}

/// The default is the next hops of a topology without switches.
impl Default for NextHops {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl NextHops {
    /// Computes the distances between all pairs of switches.
    pub fn new(topology: Arc<Topology>) -> Self {
        let destinations: Vec<_> = topology.indices().collect();
        let columns = columns(&topology, &destinations);
        Self { topology, columns }
    }

    /// Returns what [`Self::new`] returns for the changed network, with at most one search for each destination to which a
    /// distance changes.
    #[must_use]
    pub fn updated(&self, topology: Arc<Topology>) -> Self {
        let change = Change::between(&self.topology, &topology);
        let kept: Vec<_> = topology
            .indices()
            .map(|to| self.column_after(&change, &topology, to))
            .collect();
        let lost: Vec<_> = topology
            .indices()
            .filter(|to| kept[to.to_usize()].is_none())
            .collect();
        let mut searched = columns(&topology, &lost).into_iter();
        let columns = kept
            .into_iter()
            .filter_map(|column| column.or_else(|| searched.next()))
            .collect();
        Self { topology, columns }
    }

    /// Returns the network for which they were computed.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Returns the number of links on a shortest path; `None` if no path or switch exists.
    pub fn distance(&self, at: DatapathId, to: DatapathId) -> Option<u32> {
        let at = self.topology.index_of(at)?;
        let distance = self.column(to)?[at.to_usize()];
        (distance != UNREACHABLE).then_some(distance.into())
    }

    /// Returns the links from a switch that lead to another on a shortest path, by port number. Empty if the other switch cannot
    /// be reached, is the same switch, or does not exist.
    pub fn next_hops(
        &self,
        at: DatapathId,
        to: DatapathId,
    ) -> impl Iterator<Item = &DirectedLink> + Clone {
        let found = self.topology.index_of(at).zip(self.column(to));
        let links = found.map(|(at, column)| self.nearer(at, column));
        links.into_iter().flatten().map(|(link, _)| link)
    }

    /// Returns a shortest path between two ports, which only depends on the hash; `None` if no path or switch exists.
    ///
    /// At each switch, the hash, mixed with the switch's datapath id, selects one of the next hops. So flows are spread over all
    /// paths, and the choices at successive switches are independent.
    pub fn path(&self, from: PortId, to: PortId, flow_hash: u64) -> Option<Path> {
        let column = self.column(to.switch)?;
        let mut at = self.topology.index_of(from.switch)?;
        let mut left = column[at.to_usize()];
        if left == UNREACHABLE {
            return None;
        }
        let mut links = Vec::with_capacity(left.into());
        while left > 0 {
            let next_hops = self.nearer(at, column);
            let choice = choose(
                flow_hash,
                self.topology.datapath_id(at),
                next_hops.clone().count(),
            );
            let (link, end) = next_hops.clone().nth(choice)?;
            links.push(*link);
            at = end;
            left -= 1;
        }
        Some(Path::new(from, to, links))
    }

    /// Returns a destination's column, renumbered, if it is still correct after a change.
    fn column_after(&self, change: &Change, after: &Topology, to: SwitchIndex) -> Option<Column> {
        let column = match &change.old_indices {
            None => self.columns[to.to_usize()].clone(),
            Some(old_indices) => {
                let column = &self.columns[old_indices[to.to_usize()]?.to_usize()];
                let moved = old_indices
                    .iter()
                    .map(|old| old.map_or(UNREACHABLE, |old| column[old.to_usize()]));
                moved.collect()
            }
        };
        change.keeps(after, to, &column).then_some(column)
    }

    fn column(&self, to: DatapathId) -> Option<&[u16]> {
        let to = self.topology.index_of(to)?;
        Some(&self.columns[to.to_usize()])
    }

    /// Returns the links from a switch whose ends are nearer to a column's destination.
    fn nearer<'a>(
        &'a self,
        at: SwitchIndex,
        column: &'a [u16],
    ) -> impl Iterator<Item = (&'a DirectedLink, SwitchIndex)> + Clone {
        let distance = column[at.to_usize()];
        let ways = self.topology.ways_from(at);
        ways.filter(move |(_, end)| is_nearer(column[end.to_usize()], distance))
    }
}

/// Returns `true` if a link from a switch at `distance` to one at `end` is on a shortest path.
fn is_nearer(end: u16, distance: u16) -> bool {
    distance != UNREACHABLE && end.saturating_add(1) == distance
}

/// Computes the columns of some destinations, on one thread or several.
fn columns(topology: &Topology, destinations: &[SwitchIndex]) -> Vec<Column> {
    let steps = destinations.len() * (topology.directed_links().len() + topology.switches().len());
    let threads = match steps / STEPS_PER_THREAD {
        0 => 1,
        most => thread::available_parallelism().map_or(1, |cores| cores.get().min(most)),
    };
    columns_by(threads, topology, destinations)
}

fn columns_by(threads: usize, topology: &Topology, destinations: &[SwitchIndex]) -> Vec<Column> {
    if threads <= 1 {
        return columns_of_share(topology, destinations);
    }
    let share = destinations.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let shares = destinations.chunks(share);
        let searches: Vec<_> = shares
            .map(|share| scope.spawn(|| columns_of_share(topology, share)))
            .collect();
        let found = searches.into_iter().map(|search| search.join());
        found
            .flat_map(|columns| columns.expect("searches do not panic"))
            .collect()
    })
}

fn columns_of_share(topology: &Topology, destinations: &[SwitchIndex]) -> Vec<Column> {
    let switches = topology.switches().len();
    let mut searches = Searches::new(switches);
    let mut distances = vec![UNREACHABLE; switches * destinations.len().min(TOGETHER)];
    let mut columns = Vec::with_capacity(destinations.len());
    for destinations in destinations.chunks(TOGETHER) {
        let distances = &mut distances[..switches * destinations.len()];
        searches.distances_to(topology, destinations, distances);
        columns.extend(distances.chunks(switches).map(Column::from));
    }
    columns
}

/// The difference between two topologies.
struct Change {
    /// Each switch's index before the change; `None` if all are unchanged.
    old_indices: Option<Vec<Option<SwitchIndex>>>,
    /// The new links, from switch to switch.
    added: Vec<(SwitchIndex, SwitchIndex)>,
    /// The remaining switches from which a link was removed.
    losers: Vec<SwitchIndex>,
}

impl Change {
    fn between(before: &Topology, after: &Topology) -> Self {
        let added = difference(after.directed_links(), before.directed_links());
        let removed = difference(before.directed_links(), after.directed_links());
        let old_indices = || {
            let switches = after.switches().iter();
            switches.map(|&switch| before.index_of(switch)).collect()
        };
        let mut losers: Vec<_> = removed
            .filter_map(|link| after.index_of(link.from.switch))
            .collect();
        losers.dedup();
        Self {
            old_indices: (before.switches() != after.switches()).then(old_indices),
            added: added
                .filter_map(|link| {
                    after
                        .index_of(link.from.switch)
                        .zip(after.index_of(link.to.switch))
                })
                .collect(),
            losers,
        }
    }

    /// Returns `true` if a correct column is still correct after the change, by the two conditions above.
    fn keeps(&self, after: &Topology, to: SwitchIndex, column: &[u16]) -> bool {
        let distance = |switch: SwitchIndex| column[switch.to_usize()];
        let is_shortcut = |&(from, end): &(SwitchIndex, SwitchIndex)| {
            distance(end).saturating_add(1) < distance(from)
        };
        let is_cut_off = |&at: &SwitchIndex| {
            let mut ends = after.neighbours(at).iter();
            at != to
                && distance(at) != UNREACHABLE
                && !ends.any(|&end| is_nearer(distance(end), distance(at)))
        };
        !self.added.iter().any(is_shortcut) && !self.losers.iter().any(is_cut_off)
    }
}

/// Selects one of `count` choices, which must not be 0, by a flow's hash at a switch.
fn choose(flow_hash: u64, switch: DatapathId, count: usize) -> usize {
    let mixed = mix(flow_hash ^ mix(switch.0));
    ((u128::from(mixed) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
