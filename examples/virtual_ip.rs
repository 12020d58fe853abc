//! Two servers behind one address, each client on one of them: `cargo run --example virtual_ip`.

use std::net::Ipv4Addr;
use urtica::prelude::*;
use urtica::wire::packet::{ArpView, Ethernet, EthernetView, Ipv4View, arp, ether_type};

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
        let payload = EthernetView::new(packet.data).map_or(&[][..], |frame| frame.payload());
        match (
            packet.eth_type(),
            ArpView::new(payload),
            Ipv4View::new(payload),
        ) {
            (ether_type::ARP, Ok(arp), _) if arp.tpa() == self.address => {
                self.answer(switch, packet, arp)
            }
            (ether_type::IPV4, _, Ok(ip)) if ip.dst() == self.address => {
                self.balance(switch, packet, ip.src())
            }
            _ => switch.forward(packet, PortNo::FLOOD),
        }
    }
}

impl VirtualIp {
    fn balance(&self, switch: &mut Switch, packet: &PacketIn, client: Ipv4Addr) {
        let Server(mac, address, port) = self.servers[client.to_bits() as usize % 2];
        let back = Match::any()
            .eth_type(ether_type::IPV4)
            .ipv4_src(address)
            .ipv4_dst(client);
        let from_us = rewrite(
            [OxmField::EthSrc, OxmField::Ipv4Src],
            self.mac,
            self.address,
            packet.in_port(),
        );
        if let Err(error) = switch.install(back, &from_us, IDLE_5S) {
            eprintln!("{}: {error}", switch.datapath_id());
        }
        // The first packet is rewritten as those that the entry will match.
        let to_server = rewrite([OxmField::EthDst, OxmField::Ipv4Dst], mac, address, port);
        switch.forward_with_rule(packet, Match::exact(packet), &to_server, IDLE_5S);
    }

    fn answer(&self, switch: &mut Switch, packet: &PacketIn, request: ArpView) {
        let mut frame = Vec::new();
        let header = Ethernet {
            dst: packet.eth_src(),
            src: self.mac,
            ether_type: ether_type::ARP,
        };
        header.write(&mut frame);
        request.to_header().reply(self.mac).write(&mut frame);
        if request.op() == arp::REQUEST {
            switch.send_packet(&frame, packet.in_port()).ok();
        }
    }
}

/// Sets a MAC and an IPv4 address, and sends the packet out of a port.
fn rewrite(
    [eth, ipv4]: [OxmField; 2],
    mac: MacAddr,
    address: Ipv4Addr,
    port: PortNo,
) -> [Action<'static>; 3] {
    [
        Action::SetField(Field::exact(eth, mac.to_u64().into())),
        Action::SetField(Field::exact(ipv4, address.to_bits().into())),
        Action::output(port),
    ]
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
