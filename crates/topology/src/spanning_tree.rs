//! The tree along which packets are flooded.
//!
//! **What.** [`SpanningTree`] determines the link ports that take part in flooding, so that a flooded packet reaches each
//! switch once. It spans each connected part of the network and has no cycles. If a hub joins several ports, the links between
//! any two of them must be known.
//!
//! **How.** As in 802.1D with equal costs (IEEE 802.1D-2004 section 17.5), the root of each part is its lowest datapath id.
//! Each other switch has a link to a neighbour that is nearer to the root; of several, it is the one to the neighbour with the
//! lowest datapath id, then with its lowest port, then with the switch's own. Only bidirectional links are used, since
//! flooding needs both directions. Adding or removing a link outside of the tree changes nothing else; for a link in the tree,
//! only the part beyond it changes.
//!
//! **Cost.** Creating a tree visits each link a few times. A query about a port is a binary search among the blocked ports.
//!
//! **Thread-safety.** Immutable: share it in an `Arc`.

use crate::sorted::difference;
use crate::{DirectedLink, PortId, SwitchIndex, Topology};
use std::collections::VecDeque;
use urtica_wire::{DatapathId, PortNo};

/// The links along which packets are flooded, and the link ports that are blocked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpanningTree {
    roots: Vec<DatapathId>,
    links: Vec<DirectedLink>,
    /// The link ports that no link of the tree uses, sorted.
    blocked: Vec<PortId>,
}

impl SpanningTree {
    /// Computes the tree of a network, or of each of its connected parts.
    pub fn new(topology: &Topology) -> Self {
        let places = Places::new(topology);
        let links: Vec<_> = topology
            .indices()
            .filter_map(|switch| places.link_to_parent(switch))
            .collect();
        let mut used: Vec<_> = links.iter().flat_map(|link| [link.from, link.to]).collect();
        used.sort_unstable();
        Self {
            roots: places.roots,
            links,
            blocked: difference(topology.link_ports(), &used).copied().collect(),
        }
    }

    /// Returns the lowest datapath id of each connected part, in order.
    pub fn roots(&self) -> &[DatapathId] {
        &self.roots
    }

    /// Returns the tree's links, each towards the root, by the switch at which they start.
    pub fn links(&self) -> &[DirectedLink] {
        &self.links
    }

    /// Returns `true` if the port may send and receive flooded packets: it is in the tree, or is not a link port.
    ///
    /// A packet to be flooded that was received at another port also arrives on another path, and must be dropped.
    pub fn is_flood_port(&self, port: PortId) -> bool {
        self.blocked.binary_search(&port).is_err()
    }

    /// Returns a switch's ports to which a packet received at `from` is flooded: empty if it must be dropped.
    pub fn flood_ports<'a>(
        &'a self,
        from: PortId,
        ports: impl IntoIterator<Item = PortNo> + 'a,
    ) -> impl Iterator<Item = PortNo> + 'a {
        let accepted = self.is_flood_port(from);
        ports.into_iter().filter(move |&port_no| {
            let port = PortId::new(from.switch, port_no);
            accepted && port != from && self.is_flood_port(port)
        })
    }
}

/// The distance of each switch from the root of its part.
struct Places<'a> {
    topology: &'a Topology,
    roots: Vec<DatapathId>,
    depths: Vec<Option<u32>>,
}

impl<'a> Places<'a> {
    fn new(topology: &'a Topology) -> Self {
        let mut places = Self {
            topology,
            roots: Vec::new(),
            depths: vec![None; topology.switches().len()],
        };
        for switch in topology.indices() {
            if places.depths[switch.to_usize()].is_none() {
                places.roots.push(topology.datapath_id(switch));
                places.spread_from(switch);
            }
        }
        places
    }

    fn spread_from(&mut self, root: SwitchIndex) {
        self.depths[root.to_usize()] = Some(0);
        let mut queue = VecDeque::from([(root, 0)]);
        while let Some((at, depth)) = queue.pop_front() {
            for (_, end) in self.two_way(at) {
                let known = &mut self.depths[end.to_usize()];
                if known.is_none() {
                    *known = Some(depth + 1);
                    queue.push_back((end, depth + 1));
                }
            }
        }
    }

    /// Returns the link from a switch to its parent in the tree; `None` for a root.
    fn link_to_parent(&self, switch: SwitchIndex) -> Option<DirectedLink> {
        let parent_depth = self.depths[switch.to_usize()]?.checked_sub(1)?;
        self.two_way(switch)
            .filter(|(_, end)| self.depths[end.to_usize()] == Some(parent_depth))
            .map(|(link, _)| *link)
            .min_by_key(|link| (link.to, link.from))
    }

    fn two_way(
        &self,
        switch: SwitchIndex,
    ) -> impl Iterator<Item = (&'a DirectedLink, SwitchIndex)> + use<'a> {
        let topology = self.topology;
        let ways = topology.ways_from(switch);
        ways.filter(|(link, end)| {
            let back = topology.links_from(*end);
            back.binary_search(&link.reversed()).is_ok()
        })
    }
}

#[cfg(test)]
mod tests;
