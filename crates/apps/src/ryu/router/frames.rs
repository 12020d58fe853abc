//! Frames that the router sends, and the check for frames that it handles.

use crate::l3::frames;
use crate::{Interface, Subnet};
use std::net::Ipv4Addr;
use urtica_controller::{Switch, SwitchInfo};
use urtica_wire::packet::{Headers, ether_type};
use urtica_wire::{Action, BufferId, List, MacAddr, Message, PacketIn, PacketOut, PortNo};

/// The offset of a frame's tag.
pub(super) const TAG: std::ops::Range<usize> = 12..16;

/// Returns `true` for packets that routers handle: ARP and IPv4.
pub(super) fn is_routed(packet: &PacketIn) -> bool {
    let eth_type = Headers::parse(packet.data).eth_type;
    matches!(eth_type, Some(ether_type::ARP | ether_type::IPV4))
}

/// Adds the tag of a VLAN to a frame, unless the VLAN is 0.
pub(super) fn tagged(vlan_id: u16, mut frame: Vec<u8>) -> Vec<u8> {
    if vlan_id != 0 {
        let tag = [ether_type::VLAN.to_be_bytes(), vlan_id.to_be_bytes()].concat();
        frame.splice(TAG.start..TAG.start, tag);
    }
    frame
}

/// Returns the router's interface, as its neighbours at a port see it.
pub(super) fn interface(address: Ipv4Addr, mac: MacAddr) -> Interface {
    let subnet = Subnet {
        network: address,
        prefix_len: 32,
    };
    Interface {
        address,
        subnet,
        mac,
    }
}

/// Returns ARP requests for `wanted` from the router's address `own`, one for each port except `but`.
pub(super) fn ask_all(
    info: &SwitchInfo,
    vlan_id: u16,
    own: Ipv4Addr,
    wanted: Ipv4Addr,
    but: Option<PortNo>,
) -> Vec<(PortNo, Vec<u8>)> {
    let ports = info.ports.iter();
    let ports = ports.filter(|port| !port.port_no.is_reserved() && Some(port.port_no) != but);
    let request = |port: &urtica_wire::Port| {
        let request = frames::arp_request(&interface(own, port.hw_addr), wanted);
        (port.port_no, tagged(vlan_id, request))
    };
    ports.map(request).collect()
}

/// Builds a packet-out of a frame that the router sends.
pub(super) fn packet_out(port: PortNo, frame: &[u8]) -> Message<'_> {
    Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::CONTROLLER,
        actions: List::from(vec![Action::output(port)]),
        data: frame,
    })
}

/// Sends frames of the router.
pub(super) fn send_frames(
    switch: &mut Switch,
    frames: impl IntoIterator<Item = (PortNo, Vec<u8>)>,
) {
    for (port, frame) in frames {
        if let Err(error) = switch.send(&packet_out(port, &frame)) {
            let id = switch.datapath_id();
            urtica_log::debug!(about: id, dp_id = %id, %error, "a packet was not sent");
        }
    }
}
