//! Ways through a network, switch by switch.

use crate::{DirectedLink, PortId};
use urtica_wire::{DatapathId, PortNo};

/// One switch on a path, and the ports by which packets come in and go out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    /// The switch.
    pub switch: DatapathId,
    /// Where packets come in.
    pub in_port: PortNo,
    /// Where they are sent out.
    pub out_port: PortNo,
}

impl Hop {
    /// The port where packets come in.
    pub fn comes_in(&self) -> PortId {
        PortId::new(self.switch, self.in_port)
    }

    /// The port where they are sent out.
    pub fn goes_out(&self) -> PortId {
        PortId::new(self.switch, self.out_port)
    }
}

/// A way from one port to another, of hosts for the most part: at least one hop.
///
/// The first hop's `in_port` is where the path begins, the last one's `out_port` where it ends. Where both are the same
/// port, as with two hosts behind one hub, the one hop leads back to it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Path {
    /// The switches in the order in which packets pass them.
    pub hops: Vec<Hop>,
}

impl Path {
    /// The path from a port to another over these links, each of which leaves the switch that the one before leads to.
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

    /// Where the path begins; `None` where it has no hop.
    pub fn begin(&self) -> Option<PortId> {
        self.hops.first().map(Hop::comes_in)
    }

    /// Where the path ends; `None` where it has no hop.
    pub fn end(&self) -> Option<PortId> {
        self.hops.last().map(Hop::goes_out)
    }

    /// The links from hop to hop.
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
