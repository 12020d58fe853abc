//! Paths through a network, switch by switch.

use crate::{DirectedLink, PortId};
use urtica_wire::{DatapathId, PortNo};

/// A switch on a path, with the ports at which packets enter and leave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    /// The switch.
    pub switch: DatapathId,
    /// The port that receives packets.
    pub in_port: PortNo,
    /// The port that sends them.
    pub out_port: PortNo,
}

impl Hop {
    /// Returns the port that receives packets.
    pub fn comes_in(&self) -> PortId {
        PortId::new(self.switch, self.in_port)
    }

    /// Returns the port that sends them.
    pub fn goes_out(&self) -> PortId {
        PortId::new(self.switch, self.out_port)
    }
}

/// A path from one port to another, usually of hosts, with at least one hop.
///
/// The path starts at the first hop's `in_port` and ends at the last one's `out_port`. If both are the same port, as for two
/// hosts behind a hub, the only hop leads back to it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Path {
    /// The switches, in the order in which packets pass them.
    pub hops: Vec<Hop>,
}

impl Path {
    /// Creates the path from a port to another over these links, each of which starts at the switch where the previous one ends.
    pub(crate) fn new(
        from: PortId,
        to: PortId,
        links: impl IntoIterator<Item = DirectedLink>,
    ) -> Self {
        let mut hops = Vec::new();
        let mut at = from;
        for link in links {
            hops.push(hop(at, link.from));
            at = link.to;
        }
        hops.push(hop(at, to));
        Self { hops }
    }

    /// Returns the port at which the path starts; `None` if it has no hops.
    pub fn begin(&self) -> Option<PortId> {
        self.hops.first().map(Hop::comes_in)
    }

    /// Returns the port at which the path ends; `None` if it has no hops.
    pub fn end(&self) -> Option<PortId> {
        self.hops.last().map(Hop::goes_out)
    }

    /// Returns the links between the hops.
    pub fn directed_links(&self) -> impl ExactSizeIterator<Item = DirectedLink> + '_ {
        self.hops.windows(2).map(|pair| DirectedLink {
            from: pair[0].goes_out(),
            to: pair[1].comes_in(),
        })
    }
}

fn hop(in_port: PortId, out_port: PortId) -> Hop {
    debug_assert_eq!(in_port.switch, out_port.switch, "links of a path follow");
    Hop {
        switch: in_port.switch,
        in_port: in_port.port_no,
        out_port: out_port.port_no,
    }
}
