//! The routers controlled by requests: the packets that they forward, and those that they answer.

use crate::l3::in_subnets;
use crate::rest_firewall::answer;
use crate::support::{PacketIns, frame, inject, ms, net_of_plan, options, tagged};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::{Apps, RestRouter};
use urtica_controller::{Controller, SessionConfig};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{End, HostId, Net};
use urtica_wire::packet::{
    Arp, Ethernet, EthernetView, Icmpv4, Icmpv4View, Ipv4, Ipv4View, ether_type, icmpv4, ip_proto,
};
use urtica_wire::{DatapathId, Ipv4Prefix, MacAddr, PortNo, Version};

const S1: DatapathId = DatapathId(1);

/// A time after which no packet waits any longer.
const WAITED: Duration = ms(4_000);

/// A switch with a host in each of three subnets, whose first two have gateways.
struct Bench {
    net: Net,
    router: RestRouter,
    heard: Heard,
}

/// A frame, and the host that received it.
type Arrived = (HostId, Vec<u8>);

/// Records the frames that hosts receive.
#[derive(Clone, Default)]
struct Heard(Rc<RefCell<Vec<Arrived>>>);

impl Watcher for Heard {
    fn see(&mut self, _: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), frame) = event {
            self.0.borrow_mut().push((*host, frame.to_vec()));
        }
        Ok(())
    }
}

fn subnet(number: u8) -> Ipv4Prefix {
    Ipv4Prefix::new(Ipv4Addr::new(10, 0, number, 0), 24).unwrap()
}

fn gateway(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, number, 254)
}

/// Returns the address of host n: 10.0.n.n.
fn host(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, number, number)
}

impl Bench {
    fn new(version: Version) -> Self {
        Self::with_vlan(version, 0)
    }

    /// Creates a network whose gateways are in this VLAN.
    fn with_vlan(version: Version, vlan_id: u16) -> Self {
        let apps = Apps::new(&["rest_router"], &options()).unwrap();
        let router = apps.services().ryu.router.clone();
        let mut session = SessionConfig::default();
        session.versions = vec![version];
        let controller = apps.add_to(Controller::new().session(session));
        let mut net = net_of_plan(&in_subnets("single,3"), controller);
        let heard = Heard::default();
        net.watch(heard.clone());
        for number in [1, 2] {
            let added = router.add_address(S1, vlan_id, gateway(number), subnet(number));
            assert_eq!(answer(&mut net, added), Ok(number.into()));
        }
        net.run_for(ms(100));
        Self { net, router, heard }
    }

    /// Returns the address of a port of the switch.
    fn port_mac(&self, port: u32) -> MacAddr {
        let info = self.net.controller().unwrap().info(S1).unwrap();
        info.port(PortNo(port)).unwrap().hw_addr
    }

    /// Builds a frame from host 1 through its gateway.
    fn frame_from_h1(&self, header: &Ipv4, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        header.write(&mut packet, payload).unwrap();
        frame(1, self.port_mac(1).to_u64(), ether_type::IPV4, &packet)
    }

    /// Builds a datagram from host 1 to this address.
    fn datagram(&self, dst: Ipv4Addr, ttl: u8) -> Vec<u8> {
        let header = Ipv4 {
            ttl,
            ..Ipv4::new(host(1), dst, ip_proto::UDP)
        };
        self.frame_from_h1(&header, &[0x10, 0, 0x10, 1, 0, 12, 0, 0, 1, 2, 3, 4])
    }

    /// Sends a frame from host 1, and returns the IPv4 packets of other hosts that a host receives: sender and receiver of the
    /// frame, and the packet.
    fn heard(
        &mut self,
        host: &str,
        sent: Vec<u8>,
        within: Duration,
    ) -> Vec<(MacAddr, MacAddr, Vec<u8>)> {
        self.heard.0.borrow_mut().clear();
        inject(&self.net, "s1", 1, [sent]);
        self.net.run_for(within);
        let host = self.net.host(host).unwrap();
        let heard = self.heard.0.borrow();
        let to_host = heard.iter().filter(|(to, _)| *to == host);
        let views = to_host.filter_map(|(_, frame)| EthernetView::new(frame).ok());
        views
            .filter(|view| view.ether_type() == ether_type::IPV4)
            .map(|view| (view.src(), view.dst(), view.payload().to_vec()))
            .collect()
    }

    /// Sends a frame from host 1, and returns types and codes of the ICMP messages that it receives from this address.
    fn told(&mut self, from: Ipv4Addr, sent: Vec<u8>, within: Duration) -> Vec<(u8, u8)> {
        let heard = self.heard("h1", sent, within);
        let packets = heard.iter().filter_map(|(_, _, packet)| {
            let packet = Ipv4View::new(packet).ok()?;
            assert!(packet.is_checksum_valid() && packet.dst() == host(1));
            let icmp = Icmpv4View::new(packet.payload()).ok()?;
            (packet.src() == from).then(|| (icmp.icmp_type(), icmp.icmp_code()))
        });
        packets.collect()
    }
}

#[test]
fn forwards_packets_between_subnets() {
    for version in Version::ALL {
        let mut bench = Bench::new(version);
        let (near, far) = (bench.port_mac(2), MacAddr::from_u64(2));
        let seen = PacketIns::default();
        bench.net.watch(seen.clone());
        for is_first in [true, false] {
            seen.take();
            let datagram = bench.datagram(host(2), 64);
            let heard = bench.heard("h2", datagram, ms(500));
            assert_eq!(heard.len(), 1, "{version:?}: {heard:?}");
            let (src, dst, packet) = &heard[0];
            assert_eq!((*src, *dst), (near, far));
            let packet = Ipv4View::new(packet).unwrap();
            // 1.0 has no action that decrements the TTL.
            let ttl = if version == Version::Of13 || is_first {
                63
            } else {
                64
            };
            assert_eq!(
                (packet.ttl(), packet.src(), packet.dst()),
                (ttl, host(1), host(2))
            );
            assert!(packet.is_checksum_valid());
            assert_eq!(
                seen.take() == 0,
                !is_first,
                "{version:?}: an entry forwards it"
            );
        }
        // A host outside all subnets is unreachable.
        let datagram = bench.datagram(host(3), 64);
        assert_eq!(bench.heard("h3", datagram, WAITED), []);
    }
}

#[test]
fn packets_follow_routes_to_their_gateways() {
    for version in Version::ALL {
        let mut bench = Bench::new(version);
        let far_away = Ipv4Addr::new(192, 168, 1, 1);
        let datagram = bench.datagram(far_away, 64);
        assert_eq!(bench.heard("h2", datagram.clone(), ms(500)), []);
        let destination = Ipv4Prefix::new(Ipv4Addr::new(192, 168, 0, 0), 16).unwrap();
        let router = bench.router.clone();
        let added = router.add_route(S1, 0, destination, host(2));
        assert_eq!(answer(&mut bench.net, added), Ok(1));
        bench.net.run_for(ms(500));
        let view = router.view(S1, 0).unwrap().unwrap();
        assert!(view.routes[0].is_resolved, "{view:?}");
        let heard = bench.heard("h2", datagram.clone(), ms(500));
        assert_eq!(heard.len(), 1, "{version:?}");
        assert_eq!(heard[0].1, MacAddr::from_u64(2));

        let deleted = answer(&mut bench.net, router.delete_routes(S1, 0, None));
        assert_eq!(deleted.unwrap().ids, [1]);
        assert_eq!(bench.heard("h2", datagram, ms(500)), []);
    }
}

#[test]
fn routers_answer_for_their_own_addresses() {
    let mut bench = Bench::new(Version::Of13);
    let ping = Icmpv4 {
        icmp_type: icmpv4::ECHO_REQUEST,
        icmp_code: 0,
        rest: [0, 1, 0, 1],
    };
    for address in [gateway(1), gateway(2)] {
        let mut request = Vec::new();
        ping.write(&mut request, b"payload");
        let sent = bench.frame_from_h1(&Ipv4::new(host(1), address, ip_proto::ICMPV4), &request);
        assert_eq!(
            bench.told(address, sent, ms(500)),
            [(icmpv4::ECHO_REPLY, 0)]
        );
    }
    let to_port = bench.datagram(gateway(1), 64);
    assert_eq!(
        bench.told(gateway(1), to_port, ms(500)),
        [(3, 3)],
        "port unreachable"
    );
    let last_hop = bench.datagram(host(2), 1);
    assert_eq!(
        bench.told(gateway(1), last_hop, ms(500)),
        [(11, 0)],
        "time exceeded"
    );
    let nobody = bench.datagram(Ipv4Addr::new(10, 0, 2, 77), 64);
    assert_eq!(
        bench.told(gateway(1), nobody, WAITED),
        [(3, 1)],
        "host unreachable"
    );
    // If an entry forwards packets, the switch decrements the TTL.
    let datagram = bench.datagram(host(2), 64);
    assert_eq!(bench.heard("h2", datagram, ms(500)).len(), 1);
    let last_hop = bench.datagram(host(2), 1);
    assert_eq!(
        bench.told(gateway(1), last_hop, ms(500)),
        [(11, 0)],
        "time exceeded"
    );
}

#[test]
fn addresses_and_routes_survive_a_reconnection() {
    let mut bench = Bench::new(Version::Of13);
    let datagram = bench.datagram(host(2), 64);
    assert_eq!(bench.heard("h2", datagram.clone(), ms(500)).len(), 1);
    let s1 = bench.net.switch("s1").unwrap();
    bench.net.break_connection(s1).unwrap();
    bench.net.run_for(ms(15_000));
    assert_eq!(
        bench.router.view(S1, 0).unwrap().unwrap().addresses.len(),
        2
    );
    assert_eq!(bench.heard("h2", datagram.clone(), ms(500)).len(), 1);

    let router = bench.router.clone();
    let deleted = answer(&mut bench.net, router.delete_addresses(S1, 0, Some(2)));
    assert_eq!(deleted.unwrap().ids, [2]);
    assert_eq!(bench.heard("h2", datagram, ms(500)), []);
}

#[test]
fn vlan_routers_handle_only_their_vlan() {
    let mut bench = Bench::with_vlan(Version::Of13, 2);
    // Hosts of the VLAN do not announce themselves: one sends a request.
    let mut request = Vec::new();
    Arp::request(MacAddr::from_u64(2), host(2), gateway(2)).write(&mut request);
    let asking = frame(2, MacAddr::BROADCAST.to_u64(), ether_type::ARP, &request);
    inject(&bench.net, "s1", 2, [tagged(ether_type::VLAN, 2, asking)]);
    bench.net.run_for(ms(500));
    for (vlan_id, comes) in [(2, 1), (3, 0)] {
        bench.heard.0.borrow_mut().clear();
        let datagram = tagged(ether_type::VLAN, vlan_id, bench.datagram(host(2), 64));
        inject(&bench.net, "s1", 1, [datagram]);
        bench.net.run_for(ms(500));
        let h2 = bench.net.host("h2").unwrap();
        let heard = bench.heard.0.borrow();
        let routed = heard.iter().filter(|(to, frame)| {
            let header: Ethernet = EthernetView::new(frame).unwrap().to_header();
            *to == h2 && header.ether_type == ether_type::VLAN && header.dst == MacAddr::from_u64(2)
        });
        assert_eq!(routed.count(), comes, "VLAN {vlan_id}");
    }
}
