//! The topology of a network at one moment.
//!
//! **What.** A [`Topology`] consists of switches, and the directed links between them. It never changes; a change creates a new
//! one, so computations see a consistent network.
//!
//! **How.** Switches are sorted by datapath id and numbered in that order ([`SwitchIndex`]). Links are sorted, so the links
//! from a switch are adjacent; a vector has the index of each switch's first link (compressed sparse rows). A second such pair
//! has the links by destination switch, since searches start at the destination. Equal inputs in any order result in equal
//! topologies, and therefore in equal results of every query.
//!
//! **Which links are kept.** A link from or to an unknown switch is omitted, since a controller loses switches before the links
//! to them expire. A link from a switch to itself is kept, since its ports are link ports, into which packets must not be
//! flooded; no path or tree uses it. If a hub joins several ports, several links start at one port, and all are kept.
//!
//! **Cost.** 44 bytes per link, 16 per switch, and 16 per link port. Creating a topology sorts the links; a change copies and
//! indexes all of them.
//!
//! **Thread-safety.** Immutable: share it in an `Arc`.

use crate::{DirectedLink, PortId};
use urtica_wire::DatapathId;

/// A switch's index in one [`Topology`], from 0 for the lowest datapath id.
///
/// It has no meaning in another topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SwitchIndex(pub(crate) u32);

impl SwitchIndex {
    /// Returns the number, as an index of vectors.
    #[inline]
    pub const fn to_usize(self) -> usize {
        self.0 as usize
    }
}

/// A link, seen from the switch at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Incoming {
    /// The switch at which it starts.
    pub from: SwitchIndex,
    /// Its index in [`Topology::directed_links`].
    pub link: u32,
}

/// The topology of a network at one moment: switches, and the directed links between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The switches, sorted.
    switches: Vec<DatapathId>,
    /// The links, sorted.
    links: Vec<DirectedLink>,
    /// The index of the first link from each switch, and finally the number of links.
    begins: Vec<u32>,
    /// The switch at the end of each link.
    ends: Vec<SwitchIndex>,
    /// The links, by the switch at their end.
    incoming: Vec<Incoming>,
    /// The index in `incoming` of the first link to each switch, and finally their number.
    incoming_begins: Vec<u32>,
    /// The ports at both ends of links, sorted.
    link_ports: Vec<PortId>,
}

/// The default is a topology without switches.
impl Default for Topology {
    fn default() -> Self {
        Self::new([], [])
    }
}

impl Topology {
    /// Creates the network of these switches and links, in any order, with or without duplicates.
    ///
    /// Links from or to other switches are omitted.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` links or switches.
    pub fn new(
        switches: impl IntoIterator<Item = DatapathId>,
        links: impl IntoIterator<Item = DirectedLink>,
    ) -> Self {
        let mut switches: Vec<_> = switches.into_iter().collect();
        switches.sort_unstable();
        switches.dedup();
        let mut links: Vec<_> = links.into_iter().collect();
        links.sort_unstable();
        links.dedup();
        Self::of_sorted(switches, links)
    }

    fn of_sorted(switches: Vec<DatapathId>, mut links: Vec<DirectedLink>) -> Self {
        u32::try_from(switches.len().max(links.len())).expect("u32 has room for all");
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        links.retain(|link| {
            let found = find(&switches, link.from.switch).zip(find(&switches, link.to.switch));
            let (start, end) = found.unzip();
            starts.extend(start);
            ends.extend(end);
            found.is_some()
        });
        let end = |incoming: &Incoming| ends[incoming.link as usize];
        let mut incoming: Vec<_> = (0..)
            .zip(&starts)
            .map(|(link, &from)| Incoming { from, link })
            .collect();
        incoming.sort_by_key(end);
        Self {
            begins: begins(switches.len(), starts.iter().copied()),
            incoming_begins: begins(switches.len(), incoming.iter().map(end)),
            link_ports: ports_of(&links),
            switches,
            links,
            ends,
            incoming,
        }
    }

    /// Returns this network with an additional switch, which has no links yet.
    pub fn with_switch(&self, switch: DatapathId) -> Self {
        let switches = self.switches.iter().copied().chain([switch]);
        Self::new(switches, self.links.iter().copied())
    }

    /// Returns this network without a switch and its links.
    pub fn without_switch(&self, switch: DatapathId) -> Self {
        let others = |other: &DatapathId| *other != switch;
        let switches = self.switches.iter().copied().filter(others);
        Self::new(switches, self.links.iter().copied())
    }

    /// Returns this network with an additional link; a link from or to an unknown switch is omitted.
    pub fn with_link(&self, link: DirectedLink) -> Self {
        let mut links = self.links.clone();
        if let Err(place) = links.binary_search(&link) {
            links.insert(place, link);
        }
        Self::of_sorted(self.switches.clone(), links)
    }

    /// Returns this network without this link. The opposite direction stays.
    pub fn without_link(&self, link: DirectedLink) -> Self {
        let mut links = self.links.clone();
        if let Ok(place) = links.binary_search(&link) {
            links.remove(place);
        }
        Self::of_sorted(self.switches.clone(), links)
    }

    /// Returns the switches, by datapath id.
    pub fn switches(&self) -> &[DatapathId] {
        &self.switches
    }

    /// Returns the indices of the switches, in order.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = SwitchIndex> + use<> {
        (0..self.switches.len() as u32).map(SwitchIndex)
    }

    /// Returns the directed links, sorted.
    pub fn directed_links(&self) -> &[DirectedLink] {
        &self.links
    }

    /// Returns the links from a switch, sorted by port number.
    ///
    /// # Panics
    /// May panic if the index belongs to another topology.
    pub fn links_from(&self, switch: SwitchIndex) -> &[DirectedLink] {
        &self.links[row(&self.begins, switch)]
    }

    /// Returns the switches at the ends of the links from a switch, in the order of [`Self::links_from`].
    pub(crate) fn neighbours(&self, switch: SwitchIndex) -> &[SwitchIndex] {
        &self.ends[row(&self.begins, switch)]
    }

    /// Returns the links from a switch, each with the switch at its end.
    pub(crate) fn ways_from(
        &self,
        switch: SwitchIndex,
    ) -> impl Iterator<Item = (&DirectedLink, SwitchIndex)> + Clone {
        let neighbours = self.neighbours(switch).iter().copied();
        self.links_from(switch).iter().zip(neighbours)
    }

    /// Returns the links to a switch.
    pub(crate) fn ways_to(&self, switch: SwitchIndex) -> &[Incoming] {
        &self.incoming[row(&self.incoming_begins, switch)]
    }

    /// Returns a switch's index; `None` for an unknown switch.
    pub fn index_of(&self, switch: DatapathId) -> Option<SwitchIndex> {
        find(&self.switches, switch)
    }

    /// Returns the switch with an index.
    ///
    /// # Panics
    /// May panic if the index belongs to another topology.
    pub fn datapath_id(&self, switch: SwitchIndex) -> DatapathId {
        self.switches[switch.to_usize()]
    }

    /// Returns the link that starts at a port, if any. Of several, returns the one to the lowest port.
    pub fn link_from(&self, port: PortId) -> Option<DirectedLink> {
        let place = self.links.partition_point(|link| link.from < port);
        self.links
            .get(place)
            .copied()
            .filter(|link| link.from == port)
    }

    /// Returns `true` if the network has exactly this link.
    pub fn contains(&self, link: &DirectedLink) -> bool {
        self.links.binary_search(link).is_ok()
    }

    /// Returns `true` if a link starts or ends at the port. Hosts are at other ports.
    pub fn is_link_port(&self, port: PortId) -> bool {
        self.link_ports.binary_search(&port).is_ok()
    }

    /// Returns the ports at which links start or end, sorted.
    pub fn link_ports(&self) -> &[PortId] {
        &self.link_ports
    }
}

fn find(switches: &[DatapathId], switch: DatapathId) -> Option<SwitchIndex> {
    let place = switches.binary_search(&switch).ok()?;
    Some(SwitchIndex(place as u32))
}

/// Returns the index of each row's first item, given the row of each item in order.
fn begins(rows: usize, row_of_each: impl Iterator<Item = SwitchIndex>) -> Vec<u32> {
    let mut begins = vec![0; rows + 1];
    for row in row_of_each {
        begins[row.to_usize() + 1] += 1;
    }
    for row in 0..rows {
        begins[row + 1] += begins[row];
    }
    begins
}

fn row(begins: &[u32], switch: SwitchIndex) -> std::ops::Range<usize> {
    let row = switch.to_usize();
    begins[row] as usize..begins[row + 1] as usize
}

fn ports_of(links: &[DirectedLink]) -> Vec<PortId> {
    let mut ports: Vec<_> = links.iter().flat_map(|link| [link.from, link.to]).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_link, any_switch, any_topology, switch};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use urtica_wire::PortNo;

    fn port(number: u64, port_no: u32) -> PortId {
        PortId::new(switch(number), PortNo(port_no))
    }

    #[test]
    fn keeps_parallel_and_looped_links_and_drops_links_to_unknown_switches() {
        let parallel = [1, 2].map(|port_no| DirectedLink::new(port(0, port_no), port(1, port_no)));
        let looped = DirectedLink::new(port(0, 3), port(0, 4));
        let nowhere = DirectedLink::new(port(0, 5), port(2, 5));
        let links = [nowhere, looped, parallel[1], parallel[0], parallel[0]];
        let topology = Topology::new([switch(1), switch(0), switch(1)], links);
        assert_eq!(topology.switches(), [switch(0), switch(1)]);
        assert_eq!(
            topology.directed_links(),
            [parallel[0], parallel[1], looped]
        );
        assert!(topology.is_link_port(looped.to) && !topology.is_link_port(nowhere.from));
    }

    #[test]
    fn ports_know_their_links() {
        let link = DirectedLink::new(port(0, 1), port(1, 2));
        let topology = Topology::new([switch(0), switch(1)], [link]);
        assert_eq!(topology.link_from(link.from), Some(link));
        assert_eq!(topology.link_from(link.to), None);
        assert!(topology.is_link_port(link.to), "a link enters it");
        assert!(!topology.is_link_port(port(0, 2)));
        let with_hub = topology
            .with_switch(switch(2))
            .with_link(DirectedLink::new(link.from, port(2, 1)));
        assert_eq!(with_hub.links_from(SwitchIndex(0)).len(), 2);
        assert_eq!(
            with_hub.link_from(link.from),
            Some(link),
            "it leads to the lower port"
        );
    }

    #[test]
    fn an_empty_network_answers_queries() {
        let empty = Topology::default();
        assert_eq!(
            (empty.switches().len(), empty.directed_links().len()),
            (0, 0)
        );
        assert_eq!(
            (empty.index_of(switch(0)), empty.link_from(port(0, 1))),
            (None, None)
        );
        assert_eq!(empty.without_switch(switch(0)), empty);
    }

    proptest! {
        /// Every query of a topology agrees with sets of switches and links.
        #[test]
        fn agrees_with_sets(switches in vec(any_switch(), 0..12), links in vec(any_link(), 0..40)) {
            let topology = Topology::new(switches.clone(), links.clone());
            let switches: BTreeSet<_> = switches.into_iter().collect();
            let links: BTreeSet<_> = links
                .into_iter()
                .filter(|link| switches.contains(&link.from.switch) && switches.contains(&link.to.switch))
                .collect();
            prop_assert!(topology.switches().iter().eq(&switches));
            prop_assert!(topology.directed_links().iter().eq(&links));
            for (index, &switch) in topology.indices().zip(&switches) {
                prop_assert_eq!(topology.index_of(switch), Some(index));
                prop_assert_eq!(topology.datapath_id(index), switch);
                let from = links.iter().filter(|link| link.from.switch == switch);
                prop_assert!(topology.links_from(index).iter().eq(from));
                let ends = topology.neighbours(index).iter().map(|end| topology.datapath_id(*end));
                prop_assert!(ends.eq(topology.links_from(index).iter().map(|link| link.to.switch)));
                let to: BTreeSet<_> = links.iter().filter(|link| link.to.switch == switch).collect();
                let incoming = topology.ways_to(index).iter();
                prop_assert_eq!(incoming.clone().count(), to.len());
                for incoming in incoming {
                    let link = &topology.directed_links()[incoming.link as usize];
                    prop_assert!(to.contains(link));
                    prop_assert_eq!(topology.datapath_id(incoming.from), link.from.switch);
                }
            }
        }

        /// A changed topology equals a new one of the changed sets.
        #[test]
        fn changes_equal_new_topologies(topology in any_topology(), link in any_link(), switch in any_switch()) {
            let (switches, links) = (|| topology.switches().iter().copied(), || topology.directed_links().iter().copied());
            let others = |other: &DirectedLink| *other != link;
            prop_assert_eq!(topology.with_link(link), Topology::new(switches(), links().chain([link])));
            prop_assert_eq!(topology.without_link(link), Topology::new(switches(), links().filter(others)));
            prop_assert_eq!(topology.with_switch(switch), Topology::new(switches().chain([switch]), links()));
            let without = Topology::new(switches().filter(|other| *other != switch), links());
            prop_assert_eq!(topology.without_switch(switch), without);
        }
    }
}
