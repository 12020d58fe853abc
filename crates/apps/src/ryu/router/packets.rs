//! Packets that the controller receives: ARP, packets for the router itself, and packets that wait for ARP.

use super::Routed;
use super::frames::{ask_all, interface, send_frames, tagged};
use super::handler::RouterHandler;
use super::vlan::{Neighbour, VlanRouter};
use crate::l3::MAX_ERRORS_PER_S;
use crate::l3::frames::{self, Failure};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use urtica_controller::Switch;
use urtica_wire::packet::{Arp, EthernetView, Headers, Ipv4View, VlanTags, arp, ip_proto};
use urtica_wire::{MacAddr, PacketIn, PacketInReason, PortNo};

/// The maximum number of a switch's waiting packets.
const MAX_WAITING: usize = 50;

/// The time for which a packet waits.
const WAITS_FOR: Duration = Duration::from_secs(2);

/// A packet whose next hop is not resolved.
pub(super) struct Waiting {
    vlan_id: u16,
    next_hop: Ipv4Addr,
    in_port: PortNo,
    since: Instant,
    /// The sender's MAC address.
    src: MacAddr,
    /// The IPv4 packet.
    bytes: Vec<u8>,
}

/// A received IPv4 packet.
struct ReceivedPacket<'a> {
    vlan_id: u16,
    in_port: PortNo,
    src: MacAddr,
    bytes: &'a [u8],
}

fn port_mac(switch: &Switch, port_no: PortNo) -> Option<MacAddr> {
    Some(switch.info().port(port_no)?.hw_addr)
}

impl RouterHandler {
    /// Handles an ARP or IPv4 packet.
    pub(super) fn take(&mut self, routed: &mut Routed, switch: &mut Switch, packet: &PacketIn) {
        let headers = Headers::parse(packet.data);
        let vlan_id = headers.vlan.map_or(0, |tag| tag.vid);
        if let Some(asked) = headers.arp {
            take_arp(routed, switch, packet, vlan_id, &asked);
            return;
        }
        let Ok(ethernet) = EthernetView::new(packet.data) else {
            return;
        };
        let mut tags = VlanTags::new(ethernet.ether_type(), ethernet.payload());
        tags.next();
        let received = ReceivedPacket {
            vlan_id,
            in_port: packet.in_port,
            src: packet.eth_src(),
            bytes: tags.rest(),
        };
        let expired = packet.reason == PacketInReason::InvalidTtl;
        self.take_ipv4(routed, switch, &received, expired);
    }

    fn take_ipv4(
        &mut self,
        routed: &mut Routed,
        switch: &mut Switch,
        received: &ReceivedPacket,
        expired: bool,
    ) {
        let (Ok(packet), Some(router)) = (
            Ipv4View::new(received.bytes),
            routed.vlans.get(&received.vlan_id),
        ) else {
            return;
        };
        if !frames::is_intact(&packet, received.bytes) {
            return;
        }
        if router.is_own(packet.dst()) {
            self.deliver(router, switch, received, &packet);
            return;
        }
        if expired || packet.ttl() <= 1 {
            self.tell(router, switch, received, Failure::TimeExceeded);
            return;
        }
        let Some((own, next_hop)) = router.next_hop(packet.dst()) else {
            return;
        };
        if routed.waiting.len() >= MAX_WAITING {
            return;
        }
        routed.waiting.push(Waiting {
            vlan_id: received.vlan_id,
            next_hop,
            in_port: received.in_port,
            since: switch.now(),
            src: received.src,
            bytes: received.bytes.to_vec(),
        });
        let asking = ask_all(
            switch.info(),
            received.vlan_id,
            own.address,
            next_hop,
            Some(received.in_port),
        );
        send_frames(switch, asking);
    }

    /// Handles a packet for the router itself.
    fn deliver(
        &mut self,
        router: &VlanRouter,
        switch: &mut Switch,
        received: &ReceivedPacket,
        packet: &Ipv4View,
    ) {
        let Some(mac) = port_mac(switch, received.in_port) else {
            return;
        };
        if matches!(packet.proto(), ip_proto::TCP | ip_proto::UDP) {
            self.tell(router, switch, received, Failure::PortUnreachable);
        } else if let Some(reply) =
            frames::echo_reply(&interface(packet.dst(), mac), received.src, packet)
        {
            send_frames(
                switch,
                [(received.in_port, tagged(received.vlan_id, reply))],
            );
        }
    }

    /// Sends an ICMP error with the reason to a packet's sender.
    fn tell(
        &mut self,
        router: &VlanRouter,
        switch: &mut Switch,
        received: &ReceivedPacket,
        failure: Failure,
    ) {
        let Ok(packet) = Ipv4View::new(received.bytes) else {
            return;
        };
        let (own, mac) = (
            router.next_hop(packet.src()),
            port_mac(switch, received.in_port),
        );
        let (Some((own, _)), Some(mac)) = (own, mac) else {
            return;
        };
        let now_s = switch.now_s();
        if self.errors.0 != now_s {
            self.errors = (now_s, 0);
        }
        self.errors.1 += 1;
        if self.errors.1 > MAX_ERRORS_PER_S {
            return;
        }
        let from = interface(own.address, mac);
        let error = frames::icmp_error(&from, received.src, failure, &packet, received.bytes);
        send_frames(
            switch,
            error.map(|error| (received.in_port, tagged(received.vlan_id, error))),
        );
    }

    /// Sends ICMP errors to the senders of packets that have waited long enough.
    pub(super) fn give_up(&mut self, routed: &mut Routed, switch: &mut Switch, now: Instant) {
        let all = std::mem::take(&mut routed.waiting);
        let is_over = |waiting: &Waiting| now >= waiting.since + WAITS_FOR;
        let (over, waiting): (Vec<_>, Vec<_>) = all.into_iter().partition(is_over);
        routed.waiting = waiting;
        for packet in over {
            let received = ReceivedPacket {
                vlan_id: packet.vlan_id,
                in_port: packet.in_port,
                src: packet.src,
                bytes: &packet.bytes,
            };
            if let Some(router) = routed.vlans.get(&packet.vlan_id) {
                self.tell(router, switch, &received, Failure::HostUnreachable);
            }
        }
    }
}

/// Learns from an ARP packet, and answers it, or makes the switch forward it within its subnet.
fn take_arp(
    routed: &mut Routed,
    switch: &mut Switch,
    packet: &PacketIn,
    vlan_id: u16,
    asked: &Arp,
) {
    let in_port = packet.in_port;
    let Some(mac) = port_mac(switch, in_port) else {
        return;
    };
    let Some(router) = routed.vlans.get_mut(&vlan_id) else {
        return;
    };
    let Some(own) = router.subnet_of(asked.spa) else {
        return;
    };
    let neighbour = Neighbour {
        mac: asked.sha,
        port_no: in_port,
        port_mac: mac,
    };
    // The router's own address must not be learnt from another device.
    if own.address != asked.spa {
        for entry in router.learn(asked.spa, neighbour, switch.info().version) {
            let _ = switch.send(&entry);
        }
    }
    let is_for_us = router.is_own(asked.tpa);
    if asked.spa == asked.tpa || !is_for_us && own.subnet.contains(asked.tpa) {
        switch.forward(packet, PortNo::NORMAL);
    } else if is_for_us && asked.op == arp::REQUEST {
        let reply = frames::arp_reply(&interface(asked.tpa, mac), asked);
        send_frames(switch, [(in_port, tagged(vlan_id, reply))]);
    }
    send_waiting(routed, switch, vlan_id, asked.spa, neighbour);
}

/// Forwards the packets that waited for a resolved neighbour.
fn send_waiting(
    routed: &mut Routed,
    switch: &mut Switch,
    vlan_id: u16,
    address: Ipv4Addr,
    neighbour: Neighbour,
) {
    let all = std::mem::take(&mut routed.waiting);
    let is_for = |it: &Waiting| it.vlan_id == vlan_id && it.next_hop == address;
    let (ready, waiting): (Vec<_>, Vec<_>) = all.into_iter().partition(is_for);
    routed.waiting = waiting;
    let from = interface(address, neighbour.port_mac);
    let on = ready.iter().filter_map(|packet| {
        let view = Ipv4View::new(&packet.bytes).ok()?;
        let frame = frames::forwarded(&from, neighbour.mac, &view)?;
        Some((neighbour.port_no, tagged(vlan_id, frame)))
    });
    send_frames(switch, on.collect::<Vec<_>>());
}
