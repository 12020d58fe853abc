//! Flows: the packets that one entry forwards.

use super::config::Interface;
use std::net::Ipv4Addr;
use urtica_topology::PortId;
use urtica_wire::packet::ether_type;
use urtica_wire::{MacAddr, Match};

/// A flow: packets of a host through a gateway to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowKey {
    pub(super) src: MacAddr,
    pub(super) gateway: MacAddr,
    pub(super) dst: Ipv4Addr,
}

impl FlowKey {
    pub(super) fn match_(&self) -> Match<'static> {
        Match::any()
            .eth_src(self.src)
            .eth_dst(self.gateway)
            .untagged()
            .eth_type(ether_type::IPV4)
            .ipv4_dst(self.dst)
    }

    /// Returns the hash by which flows spread over paths.
    pub(super) fn hash(&self) -> u64 {
        self.src.to_u64().rotate_left(16) ^ u64::from(self.dst.to_bits())
    }
}

/// A packet sent to a gateway for forwarding.
pub(super) struct Handed<'a> {
    pub(super) gateway: &'a Interface,
    pub(super) src: MacAddr,
    pub(super) at: PortId,
    /// The IPv4 packet.
    pub(super) bytes: &'a [u8],
}

impl Handed<'_> {
    /// Returns the packet's flow, given its destination.
    pub(super) fn key(&self, dst: Ipv4Addr) -> FlowKey {
        FlowKey {
            src: self.src,
            gateway: self.gateway.mac,
            dst,
        }
    }
}
