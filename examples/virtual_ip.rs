//! Two servers behind one address, each client on one of them: `cargo run --example virtual_ip`.

use std::net::{IpAddr, Ipv4Addr};
use urtica::prelude::*;
use urtica::wire::packet::{Arp, Ethernet, arp, ether_type};

/// A MAC address, an IPv4 address, and where they are.
#[derive(Clone, Copy)]
pub(crate) struct Server(pub(crate) MacAddr, pub(crate) Ipv4Addr, pub(crate) PortNo);

/// Sends what is for `address` to one of the servers, and floods all else.
pub(crate) struct VirtualIp {
    pub(crate) mac: MacAddr,
    pub(crate) address: Ipv4Addr,
    pub(crate) servers: [Server; 2],
}

impl SwitchHandler for VirtualIp {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let headers = Headers::parse(packet.data);
        match (headers.arp, headers.ip_src, headers.ip_dst) {
            (Some(asked), ..) if asked.op == arp::REQUEST && asked.tpa == self.address => {
                self.answer(switch, packet, asked);
            }
            (None, Some(IpAddr::V4(client)), Some(IpAddr::V4(to))) if to == self.address => {
                self.balance(switch, packet, client);
            }
            _ => switch.forward(packet, PortNo::FLOOD),
        }
    }
}

impl VirtualIp {
    fn balance(&self, switch: &mut Switch, packet: &PacketIn, client: Ipv4Addr) {
        let Server(mac, address, port) = self.servers[client.to_bits() as usize % 2];
        let reply = Match::any().eth_type(EtherType::IPV4);
        let reply = reply.ipv4_src(address).ipv4_dst(client);
        let from_us = [
            Action::set_eth_src(self.mac),
            Action::set_ipv4_src(self.address),
            Action::output(packet.in_port()),
        ];
        // It outlives the entry below, with which it comes again.
        if let Err(error) = switch.install(reply, &from_us, EntryOptions::idle(60)) {
            eprintln!("{}: {error}", switch.datapath_id());
        }
        // This packet is rewritten as well, not only those after it.
        let to_server = [
            Action::set_eth_dst(mac),
            Action::set_ipv4_dst(address),
            Action::output(port),
        ];
        switch.forward_with_rule(packet, Match::exact(packet), &to_server, IDLE_5S);
    }

    fn answer(&self, switch: &mut Switch, packet: &PacketIn, asked: Arp) {
        let (dst, src, ether_type) = (packet.eth_src(), self.mac, ether_type::ARP);
        let mut frame = Vec::new();
        Ethernet {
            dst,
            src,
            ether_type,
        }
        .write(&mut frame);
        asked.reply(self.mac).write(&mut frame);
        if let Err(error) = switch.send_packet(&frame, packet.in_port()) {
            eprintln!("{}: {error}", switch.datapath_id());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = [
        Server("02:00:00:00:00:01".parse()?, "10.0.0.1".parse()?, PortNo(1)),
        Server("02:00:00:00:00:02".parse()?, "10.0.0.2".parse()?, PortNo(2)),
    ];
    let (mac, address) = ("02:00:00:00:00:64".parse()?, "10.0.0.100".parse()?);
    Ok(
        Controller::from_args().run(move |_: &SwitchInfo| VirtualIp {
            mac,
            address,
            servers,
        })?,
    )
}
