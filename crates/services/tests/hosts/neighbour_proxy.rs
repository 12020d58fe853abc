//! Replies on hosts' behalf, and relayed requests.

use crate::frames::{NdFrame, arp, arp_reply, arp_request, ip, ip6, mac, read_advertisement};
use crate::hosts::discovery;
use crate::net::{Net, ToSwitch, port};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica_controller::{Controller, Switch, SwitchHandler, SwitchInfo};
use urtica_services::{
    Hosts, HostsConfig, NeighbourProxy, NeighbourProxyConfig, NeighbourProxyCounts,
};
use urtica_topology::PortId;
use urtica_wire::packet::icmpv6::nd_flags;
use urtica_wire::packet::{Arp, ArpView};
use urtica_wire::{MacAddr, PacketIn, Version};

/// A line of switches with a proxy, and the packets that it passed to later programs.
struct Bench {
    net: Net,
    proxy: NeighbourProxy,
    passed: Passed,
}

#[derive(Clone, Default)]
struct Passed(Arc<Mutex<Vec<Vec<u8>>>>);

impl SwitchHandler for Passed {
    fn packet_in(&mut self, _: &mut Switch, packet: &PacketIn) {
        self.0.lock().unwrap().push(packet.data.to_vec());
    }
}

impl Bench {
    fn new(version: Version, length: u64) -> Self {
        Self::with(version, length, NeighbourProxy::new)
    }

    fn with(version: Version, length: u64, proxy: fn(&Hosts) -> NeighbourProxy) -> Self {
        let discovery = discovery();
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let proxy = proxy(&hosts);
        let passed = Passed::default();
        let own = passed.clone();
        let controller = Controller::new()
            .program(discovery)
            .program(hosts)
            .program(proxy.clone())
            .program(move |_: &SwitchInfo| own.clone());
        let mut net = Net::line(controller, version, length);
        net.advance(Duration::from_secs(1));
        Self { net, proxy, passed }
    }

    /// Returns the frames that hosts receive when a host sends this frame.
    fn send(&mut self, at: PortId, frame: &[u8]) -> Vec<(PortId, Vec<u8>)> {
        self.net.delivered.clear();
        self.net.packet_in(at, frame);
        std::mem::take(&mut self.net.delivered)
    }

    fn passed(&self) -> usize {
        self.passed.0.lock().unwrap().len()
    }
}

/// Returns all ports without links in a line of three switches, except one.
fn others(but: PortId) -> Vec<PortId> {
    let ports = [port(1, 1), port(1, 3), port(2, 3), port(3, 2), port(3, 3)];
    ports.into_iter().filter(|port| *port != but).collect()
}

fn ports(delivered: &[(PortId, Vec<u8>)]) -> Vec<PortId> {
    delivered.iter().map(|(port, _)| *port).collect()
}

#[test]
fn requests_for_known_hosts_are_answered() {
    for version in [Version::Of10, Version::Of13] {
        for vlan in [None, Some(30)] {
            let mut bench = Bench::new(version, 3);
            bench.send(port(3, 3), &arp_request(2, 9, vlan));
            let delivered = bench.send(port(1, 3), &arp_request(1, 2, vlan));
            assert_eq!(ports(&delivered), [port(1, 3)]);
            let frame = &delivered[0].1;
            assert_eq!(frame[..12], [mac(1).octets(), mac(2).octets()].concat());
            let tag: &[u8] = if vlan.is_some() {
                &[0x81, 0, 0xa0, 30]
            } else {
                &[]
            };
            assert_eq!(&frame[12..12 + tag.len()], tag);
            let answer = ArpView::new(&frame[14 + tag.len()..]).unwrap().to_header();
            assert_eq!(answer, Arp::request(mac(1), ip(1), ip(2)).reply(mac(2)));
            assert_eq!(bench.passed(), 0);
            assert_eq!(bench.proxy.counts().answered, 1);
        }
    }
}

#[test]
fn requests_for_hosts_of_other_vlans_are_not_answered() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.send(port(3, 3), &arp_request(2, 9, Some(30)));
    let delivered = bench.send(port(1, 3), &arp_request(1, 2, None));
    assert_eq!(ports(&delivered), others(port(1, 3)));
}

#[test]
fn requests_for_an_unknown_host_are_relayed_to_other_host_ports() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.net.told.clear();
    let question = arp_request(1, 2, None);
    let delivered = bench.send(port(1, 3), &question);
    assert_eq!(ports(&delivered), others(port(1, 3)));
    assert!(delivered.iter().all(|(_, frame)| *frame == question));
    let packet_outs = bench
        .net
        .told
        .iter()
        .filter(|(_, told)| matches!(told, ToSwitch::PacketOut { .. }));
    assert_eq!(packet_outs.count(), 3, "one for each switch");
    assert_eq!(bench.passed(), 0);
}

#[test]
fn unicast_requests_arrive() {
    let mut bench = Bench::new(Version::Of13, 2);
    bench.send(port(2, 3), &arp_request(2, 9, None));
    let question = arp(1, mac(2), None, Arp::request(mac(1), ip(1), ip(2)));
    assert_eq!(ports(&bench.send(port(1, 3), &question)), []);
    assert_eq!(bench.passed(), 1);
}

#[test]
fn scans_do_not_flood_the_network() {
    let mut bench = Bench::new(Version::Of13, 3);
    let NeighbourProxyConfig {
        burst_per_port,
        rate_per_port,
        ..
    } = NeighbourProxyConfig::default();
    for target in 0..1_000_u32 {
        let address = Ipv4Addr::from(0x0a01_0000 + target);
        let request = Arp::request(mac(1), ip(1), address);
        bench.send(port(1, 3), &arp(1, MacAddr::BROADCAST, None, request));
    }
    let counts = bench.proxy.counts();
    assert_eq!(counts.relayed, u64::from(burst_per_port));
    assert_eq!(counts.dropped, 1_000 - counts.relayed);
    // Other hosts' requests are relayed as before.
    assert_eq!(
        ports(&bench.send(port(2, 3), &arp_request(2, 8, None))),
        others(port(2, 3))
    );
    bench.net.advance(Duration::from_secs(1));
    for target in 100..200 {
        bench.send(port(1, 3), &arp_request(1, target, None));
    }
    let later = bench.proxy.counts().relayed - counts.relayed - 1;
    assert_eq!(later, u64::from(rate_per_port));
}

#[test]
fn requests_from_unknown_ports_are_ignored() {
    let mut bench = Bench::new(Version::Of13, 3);
    for port_no in 4..1_000 {
        assert_eq!(bench.send(port(1, port_no), &arp_request(1, 2, None)), []);
    }
    assert_eq!(bench.proxy.counts(), NeighbourProxyCounts::default());
}

#[test]
fn a_gratuitous_arp_is_relayed_unless_another_owns_the_address() {
    let mut bench = Bench::new(Version::Of13, 3);
    let gratuitous = |host| {
        let announcement = Arp::request(mac(host), ip(1), ip(1));
        arp(host, MacAddr::BROADCAST, None, announcement)
    };
    let delivered = bench.send(port(1, 3), &gratuitous(1));
    assert_eq!(ports(&delivered), others(port(1, 3)));
    let delivered = bench.send(port(2, 3), &gratuitous(2));
    let answered: Vec<_> = delivered
        .iter()
        .filter(|(at, _)| *at == port(2, 3))
        .collect();
    assert_eq!(answered.len(), 1);
    let answer = ArpView::new(&answered[0].1[14..]).unwrap();
    assert_eq!((answer.sha(), answer.spa()), (mac(1), ip(1)));
    // In addition, only the owner was probed.
    assert_eq!(delivered.len(), 2);
    assert!(ports(&delivered).contains(&port(1, 3)));
}

/// Returns frames with which host 3 could impersonate host 1: to all hosts and to host 2, in ARP and in neighbour discovery,
/// from its own and from a third host's MAC address.
fn forged() -> Vec<Vec<u8>> {
    let all = MacAddr::BROADCAST;
    let request = Arp::request(mac(3), ip(1), ip(9));
    let reply = Arp::request(mac(2), ip(2), ip(1)).reply(mac(3));
    let gratuitous = Arp::request(mac(3), ip(1), ip(1));
    let solicitation = || NdFrame {
        from: ip6(1),
        ..NdFrame::solicitation(3, 9)
    };
    let advertisement = |to| {
        let mut forged = NdFrame::advertisement(3, nd_flags::OVERRIDE);
        forged.nd.target = ip6(1);
        forged.dst_mac = to;
        forged
    };
    let mut from_another = solicitation();
    from_another.src = 7;
    let mut without_option = advertisement(all);
    without_option.nd.tll = None;
    let mut frames = Vec::new();
    for to in [all, mac(2)] {
        for src in [3, 7] {
            frames.extend([request, reply, gratuitous].map(|forged| arp(src, to, None, forged)));
        }
        frames.push(advertisement(to).bytes());
    }
    frames.extend([solicitation(), from_another, without_option].map(|forged| forged.bytes()));
    frames
}

#[test]
fn frames_with_addresses_of_other_hosts_are_dropped() {
    for version in [Version::Of10, Version::Of13] {
        let mut bench = Bench::new(version, 3);
        for host in [1, 2, 3] {
            let at = port(host.into(), 3);
            bench.send(at, &arp_request(host, 9, None));
            bench.send(at, &NdFrame::advertisement(host, 0).bytes());
        }
        let (relayed, passed) = (bench.proxy.counts().relayed, bench.passed());
        let forged = forged();
        for frame in &forged {
            let delivered = bench.send(port(3, 3), frame);
            // The requester may be answered; the owner may be probed.
            let others = ports(&delivered);
            assert!(
                !others.contains(&port(2, 3)),
                "{frame:02x?}: {delivered:02x?}"
            );
            assert!(!delivered.iter().any(|(_, delivered)| delivered == frame));
            // The owner answers, and keeps its address.
            bench.send(port(1, 3), &arp_reply(1, HostsConfig::default().our_mac));
            bench.net.advance(Duration::from_secs(2));
        }
        let counts = bench.proxy.counts();
        assert_eq!(counts.relayed, relayed);
        assert_eq!(bench.passed(), passed, "no other program sees them");
        assert_eq!(counts.contradicted + counts.answered, forged.len() as u64);
        assert!(counts.contradicted >= 13, "{counts:?}");
    }
}

#[test]
fn a_guard_only_drops_frames_with_addresses_of_other_hosts() {
    let mut bench = Bench::with(Version::Of13, 3, NeighbourProxy::guard);
    for host in [1, 2, 3] {
        let at = port(host.into(), 3);
        bench.send(at, &arp_request(host, 9, None));
        bench.send(at, &NdFrame::advertisement(host, 0).bytes());
        bench.send(at, &arp_request(host, 1, None));
    }
    let passed = bench.passed();
    assert_eq!(passed, 9, "later programs see all requests");
    let forged = forged();
    for frame in &forged {
        let delivered = bench.send(port(3, 3), frame);
        assert!(ports(&delivered).iter().all(|at| *at == port(1, 3)));
        // The owner answers a probe, and keeps its address.
        bench.send(port(1, 3), &arp_reply(1, HostsConfig::default().our_mac));
        bench.net.advance(Duration::from_secs(2));
    }
    assert_eq!(bench.passed(), passed);
    let expected = NeighbourProxyCounts {
        contradicted: forged.len() as u64,
        ..NeighbourProxyCounts::default()
    };
    assert_eq!(bench.proxy.counts(), expected);
}

#[test]
fn addresses_are_separate_in_each_vlan() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.send(port(1, 3), &arp_request(1, 9, None));
    let question = arp(
        3,
        MacAddr::BROADCAST,
        Some(30),
        Arp::request(mac(3), ip(1), ip(9)),
    );
    assert_eq!(
        ports(&bench.send(port(3, 3), &question)),
        others(port(3, 3))
    );
}

/// The new owner's own announcement was dropped, since it arrived while the old owner was being probed.
#[test]
fn a_new_owner_of_an_address_is_announced_to_all() {
    for vlan in [None, Some(30)] {
        let mut bench = Bench::new(Version::Of13, 3);
        bench.send(port(1, 3), &arp_request(1, 9, vlan));
        let taking = Arp::request(mac(3), ip(1), ip(1));
        bench.send(port(3, 3), &arp(3, MacAddr::BROADCAST, vlan, taking));
        bench.net.delivered.clear();
        bench.net.advance(Duration::from_secs(2));
        let delivered = std::mem::take(&mut bench.net.delivered);
        assert_eq!(ports(&delivered), others(port(3, 3)));
        for (_, frame) in &delivered {
            assert_eq!(frame[..12], [[0xff; 6], mac(3).octets()].concat());
            let skipped = if vlan.is_some() { 18 } else { 14 };
            let told = ArpView::new(&frame[skipped..]).unwrap().to_header();
            assert_eq!(told, taking);
        }
        assert_eq!(bench.proxy.counts().announced, 1);
        let question = arp(
            3,
            MacAddr::BROADCAST,
            vlan,
            Arp::request(mac(3), ip(1), ip(9)),
        );
        let asked = bench.send(port(3, 3), &question);
        assert_eq!(
            ports(&asked),
            others(port(3, 3)),
            "and it asks like anybody"
        );
    }
}

#[test]
fn a_new_owner_of_an_ipv6_address_is_announced_to_all_nodes() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.send(port(1, 3), &NdFrame::advertisement(1, 0).bytes());
    let mut taking = NdFrame::advertisement(3, nd_flags::OVERRIDE);
    taking.nd.target = ip6(1);
    bench.send(port(3, 3), &taking.bytes());
    bench.net.delivered.clear();
    bench.net.advance(Duration::from_secs(2));
    let delivered = std::mem::take(&mut bench.net.delivered);
    assert_eq!(ports(&delivered), others(port(3, 3)));
    let (from, to, nd) = read_advertisement(&delivered[0].1);
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!((from, to), (ip6(1), all_nodes));
    let expected = (nd_flags::OVERRIDE, ip6(1), Some(mac(3)));
    assert_eq!((nd.flags, nd.target, nd.tll), expected);
}

#[test]
fn checks_for_used_addresses_are_answered() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.send(port(3, 3), &arp_request(2, 9, None));
    let look = |target| {
        let probe = Arp::request(mac(1), Ipv4Addr::UNSPECIFIED, ip(target));
        arp(1, MacAddr::BROADCAST, None, probe)
    };
    let delivered = bench.send(port(1, 3), &look(2));
    assert_eq!(ports(&delivered), [port(1, 3)]);
    assert_eq!(ArpView::new(&delivered[0].1[14..]).unwrap().sha(), mac(2));
    let delivered = bench.send(port(1, 3), &look(1));
    assert_eq!(
        ports(&delivered),
        others(port(1, 3)),
        "whoever has it answers"
    );
}

#[test]
fn solicitations_are_answered_with_the_targets_flags() {
    let mut bench = Bench::new(Version::Of13, 3);
    for (flags, expected) in [(nd_flags::ROUTER, nd_flags::ROUTER), (0, 0)] {
        let advertisement = NdFrame::advertisement(2, flags).bytes();
        bench.send(port(3, 3), &advertisement);
        let delivered = bench.send(port(1, 3), &NdFrame::solicitation(1, 2).bytes());
        assert_eq!(ports(&delivered), [port(1, 3)]);
        let (from, to, nd) = read_advertisement(&delivered[0].1);
        assert_eq!((from, to), (ip6(2), ip6(1)));
        let flags = expected | nd_flags::SOLICITED | nd_flags::OVERRIDE;
        assert_eq!((nd.flags, nd.target, nd.tll), (flags, ip6(2), Some(mac(2))));
    }
}

#[test]
fn duplicate_address_detection_is_answered_only_for_other_hosts() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.send(port(3, 3), &NdFrame::advertisement(2, 0).bytes());
    let delivered = bench.send(port(1, 3), &NdFrame::detection(1, 2).bytes());
    assert_eq!(ports(&delivered), [port(1, 3)]);
    let (_, to, nd) = read_advertisement(&delivered[0].1);
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!((to, nd.flags & nd_flags::SOLICITED), (all_nodes, 0));
    let own = NdFrame::detection(2, 2).bytes();
    assert_eq!(ports(&bench.send(port(3, 3), &own)), others(port(3, 3)));
    let free = NdFrame::detection(1, 77).bytes();
    assert_eq!(ports(&bench.send(port(1, 3), &free)), others(port(1, 3)));
}

#[test]
fn unverifiable_neighbour_discovery_is_not_answered() {
    let mut bench = Bench::new(Version::Of13, 3);
    bench.send(port(3, 3), &NdFrame::advertisement(2, 0).bytes());
    let mut routed = NdFrame::solicitation(1, 2);
    routed.hop_limit = 64;
    let mut damaged = NdFrame::solicitation(1, 2).bytes();
    *damaged.last_mut().unwrap() ^= 1;
    for frame in [routed.bytes(), damaged] {
        assert_eq!(ports(&bench.send(port(1, 3), &frame)), []);
    }
    assert_eq!(bench.proxy.counts().answered, 0);
}
