//! Flooding that is safe in networks with loops.
//!
//! **What.** While a [`Discovery`](crate::Discovery) runs, a packet-out to FLOOD becomes outputs to the switch's *open*
//! ports: link ports on the spanning tree, and host ports. A packet that arrived at a port that is not open is not flooded:
//! its sender has flooded it along the tree as well.
//!
//! **A new port waits.** A port is open once it has been quiet for the settle time (0.3 s), because another switch may be
//! behind it. This corresponds to 802.1D's listening state, which lasts 15 s. Users notice it because a host's broadcasts are
//! lost in the first 0.3 s after its port comes up, as with any careful switch.
//!
//! **Limits.** Flow entries with an output to FLOOD, and packet-outs to ALL, are not safe: the switch executes them without
//! the controller. Neither are loops through switches that are not connected to this controller.
//!
//! **Cost.** Without a Discovery, one comparison. With one, a flooded packet costs a look-up by datapath id and one action
//! per port. Building the tree costs some tens of nanoseconds per port.

use std::collections::BTreeMap;
use std::sync::Arc;
use urtica_controller::{FloodPorts, Network};
use urtica_state::Snapshot;
use urtica_topology::{PortId, SpanningTree};
use urtica_wire::{Action, BufferId, DatapathId, List, Message, PacketOut, PortNo};

/// The number of outputs per packet-out, so that it always fits into a message.
const OUTPUTS: usize = 1024;

/// The kind of device behind a port, according to discovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum PortRole {
    /// It came up recently and is not classified yet.
    Unclassified,
    /// No switch of this controller is behind it.
    Host,
    /// Another switch's port, but no link is up: only one direction is known, it flaps, or it was refused.
    Blocked,
    /// Another switch's port, and the link is up.
    Link,
}

/// A port that is up, and its role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SeenPort {
    pub port: PortId,
    pub role: PortRole,
    /// Whether the switch floods there (1.0 section 5.2.1, OFPPC_NO_FLOOD).
    pub takes_floods: bool,
}

/// The ports to which each switch floods. Contains only ports that are up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FloodTree {
    /// Each switch's ports, by number.
    switches: BTreeMap<DatapathId, Vec<FloodPort>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FloodPort {
    port_no: PortNo,
    role: PortRole,
    /// Whether flooded packets may enter and leave here.
    is_open: bool,
    takes_floods: bool,
}

impl FloodTree {
    /// Creates the tree; the open ports are among `ports`, which are sorted.
    pub(crate) fn new(tree: &SpanningTree, ports: &[SeenPort]) -> Self {
        let mut switches = BTreeMap::<_, Vec<_>>::new();
        for seen in ports {
            let port = FloodPort {
                port_no: seen.port.port_no,
                role: seen.role,
                is_open: match seen.role {
                    PortRole::Host => true,
                    PortRole::Link => tree.is_flood_port(seen.port),
                    PortRole::Unclassified | PortRole::Blocked => false,
                },
                takes_floods: seen.takes_floods,
            };
            switches.entry(seen.port.switch).or_default().push(port);
        }
        Self { switches }
    }

    /// Returns all ports with a role, by switch and number.
    pub fn ports_of(&self, role: PortRole) -> impl Iterator<Item = PortId> + '_ {
        let switches = self.switches.iter();
        switches.flat_map(move |(&switch, ports)| {
            let ports = ports.iter().filter(move |port| port.role == role);
            ports.map(move |port| PortId::new(switch, port.port_no))
        })
    }

    /// Returns the role of a port; `None` if it is down or does not exist.
    pub fn role(&self, port: PortId) -> Option<PortRole> {
        self.find(port).map(|port| port.role)
    }

    /// Returns `true` if flooded packets may enter and leave at a port.
    pub fn is_open(&self, port: PortId) -> bool {
        self.find(port).is_some_and(|port| port.is_open)
    }

    /// Returns the ports of a switch to which a packet from `in_port` is flooded, in order; empty if it must be
    /// dropped. A packet from the controller itself is flooded to all open ports.
    pub fn flood_ports(
        &self,
        switch: DatapathId,
        in_port: PortNo,
    ) -> impl Iterator<Item = PortNo> + '_ {
        let accepted = self.accepts(PortId::new(switch, in_port));
        let ports = self.ports(switch).iter();
        ports
            .filter(move |port| {
                accepted && port.is_open && port.takes_floods && port.port_no != in_port
            })
            .map(|port| port.port_no)
    }

    /// Returns the host ports for a packet that is flooded without using links, by switch, except the ingress port.
    pub(crate) fn host_ports(
        &self,
        from: PortId,
    ) -> impl Iterator<Item = (DatapathId, Vec<PortNo>)> {
        self.switches.iter().map(move |(&switch, ports)| {
            let takes = |port: &&FloodPort| {
                port.role == PortRole::Host
                    && port.takes_floods
                    && PortId::new(switch, port.port_no) != from
            };
            let ports = ports.iter().filter(takes);
            (switch, ports.map(|port| port.port_no).collect())
        })
    }

    /// Sends a frame out of the ports of [`FloodTree::host_ports`], on these switches.
    pub(crate) fn send_to_hosts(
        &self,
        network: &Network,
        from: PortId,
        frame: &[u8],
        to: impl Fn(DatapathId) -> bool,
    ) {
        for (switch, ports) in self.host_ports(from).filter(|(switch, _)| to(*switch)) {
            for ports in ports.chunks(OUTPUTS) {
                let actions: Vec<_> = ports.iter().copied().map(Action::output).collect();
                // Fails if a switch has disconnected or its send queue is full: its hosts miss the frame.
                let _ = network.send(switch, &packet_out(frame, &actions));
            }
        }
    }

    /// Returns `true` if a packet from this port is flooded; packets from the controller always are.
    pub(crate) fn accepts(&self, from: PortId) -> bool {
        let is_port = !from.port_no.is_reserved() || from.port_no == PortNo::LOCAL;
        !is_port || self.is_open(from)
    }

    fn ports(&self, switch: DatapathId) -> &[FloodPort] {
        self.switches.get(&switch).map_or(&[], Vec::as_slice)
    }

    fn find(&self, port: PortId) -> Option<&FloodPort> {
        let ports = self.ports(port.switch);
        let place = ports.binary_search_by_key(&port.port_no, |port| port.port_no);
        place.ok().map(|place| &ports[place])
    }
}

/// The published tree, as the controller queries it.
pub(crate) struct LatestTree(pub Arc<Snapshot<FloodTree>>);

impl FloodPorts for LatestTree {
    fn flood_ports(&self, switch: DatapathId, in_port: PortNo) -> Vec<PortNo> {
        self.0.load().flood_ports(switch, in_port).collect()
    }
}

/// Returns a packet-out of a frame that we made.
pub(crate) fn packet_out<'a>(frame: &'a [u8], actions: &'a [Action<'a>]) -> Message<'a> {
    Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::CONTROLLER,
        actions: List::from(actions),
        data: frame,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_topology::{DirectedLink, Topology};

    const S1: DatapathId = DatapathId(1);
    const S2: DatapathId = DatapathId(2);

    fn port(switch: DatapathId, port_no: u32, role: PortRole) -> SeenPort {
        SeenPort {
            port: PortId::new(switch, PortNo(port_no)),
            role,
            takes_floods: true,
        }
    }

    /// Returns a tree of two links between two switches, with one port of every other kind at the first.
    fn tree() -> FloodTree {
        let both_ways = |port_no| {
            let [a, b] = [S1, S2].map(|switch| PortId::new(switch, PortNo(port_no)));
            [DirectedLink::new(a, b), DirectedLink::new(b, a)]
        };
        let topology = Topology::new([S1, S2], [both_ways(1), both_ways(2)].concat());
        let no_flood = SeenPort {
            takes_floods: false,
            ..port(S1, 6, PortRole::Host)
        };
        let ports = [
            port(S1, 1, PortRole::Link),
            port(S1, 2, PortRole::Link),
            port(S1, 3, PortRole::Host),
            port(S1, 4, PortRole::Unclassified),
            port(S1, 5, PortRole::Blocked),
            no_flood,
            port(S2, 1, PortRole::Link),
            port(S2, 2, PortRole::Link),
        ];
        FloodTree::new(&SpanningTree::new(&topology), &ports)
    }

    fn flooded(in_port: PortNo) -> Vec<u32> {
        let tree = tree();
        tree.flood_ports(S1, in_port).map(|port| port.0).collect()
    }

    #[test]
    fn packets_are_flooded_along_the_tree_and_to_hosts() {
        assert_eq!(flooded(PortNo(3)), [1]);
        assert_eq!(flooded(PortNo(1)), [3]);
        assert_eq!(flooded(PortNo(6)), [1, 3]);
        assert_eq!(flooded(PortNo::CONTROLLER), [1, 3]);
        assert_eq!(flooded(PortNo::ANY), [1, 3]);
    }

    #[test]
    fn packets_from_ports_that_are_not_open_are_dropped() {
        for port_no in [2, 4, 5, 7] {
            assert_eq!(flooded(PortNo(port_no)), [], "port {port_no}");
        }
    }

    #[test]
    fn an_unknown_switch_has_no_flood_ports() {
        let tree = tree();
        assert_eq!(
            tree.flood_ports(DatapathId(9), PortNo::CONTROLLER).count(),
            0
        );
        assert_eq!(tree.role(PortId::new(DatapathId(9), PortNo(1))), None);
    }
}
