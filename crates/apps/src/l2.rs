//! A learning switch (McNettle Figure 5, "local learning controller").
//!
//! Each switch learns by itself behind which of its ports a host is, from the packets that it sends up. Packets to
//! known hosts get a flow entry; packets to others are flooded. The network must not have loops.

use crate::mac_table::{Learned, MacTable};
use urtica_controller::{IDLE_5S, Switch, SwitchHandler};
use urtica_wire::{Match, PacketIn, PortNo};

/// One switch's part of the learning program: its own table, which no other switch sees and no lock guards.
#[derive(Debug, Default)]
pub struct L2 {
    table: MacTable,
}

impl SwitchHandler for L2 {
    // Worth it with tens of thousands of hosts, whose entries no cache holds; leave it out in a program of your own.
    fn expect(&self, packet: &PacketIn) {
        self.table.prefetch(packet.eth_src());
    }

    #[inline(always)] // into the loop over packet-ins, where decoding, deciding and writing become one
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let (src, dst, in_port) = (packet.eth_src(), packet.eth_dst(), packet.in_port());
        // Spanning tree, LLDP and their like end at the first bridge (IEEE 802.1Q section 8.6.3).
        if dst.is_link_local() {
            return;
        }
        if self.table.learn(src, in_port, switch.now_s()) == Learned::Moved {
            // Entries towards the host's old port would live on for as long as they are used. A match on an address
            // alone can be expressed in every version.
            let _ = switch.delete(Match::any().eth_dst(src));
        }
        match self.table.port_of(dst, switch.now_s()) {
            None => switch.forward(packet, PortNo::FLOOD),
            // Both hosts are behind this port and have heard each other already.
            Some(port) if port == in_port => {}
            Some(port) => switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S),
        }
    }
}
