//! Host tracking as a service: its reaction to frames, ports, switches and links.

use crate::frames::{NdFrame, arp, arp_reply, arp_request, ip, ip6, mac};
use crate::net::{Net, port};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica_controller::{Controller, Switch, SwitchHandler, SwitchInfo};
use urtica_services::{
    ConflictPolicy, Discovery, DiscoveryConfig, Events, HostEvent, Hosts, HostsConfig,
    HostsWatcher, LeftReason,
};
use urtica_topology::PortId;
use urtica_wire::packet::{Arp, ether_type, icmpv6::nd_flags};
use urtica_wire::{MacAddr, PacketIn, Version};

/// Longer than a port needs to be classified as a host port.
const SETTLED: Duration = Duration::from_secs(1);

pub fn discovery() -> Discovery {
    Discovery::new(DiscoveryConfig {
        secret: Some([7; 32]),
        ..DiscoveryConfig::default()
    })
}

fn line(length: u64) -> (Net, Hosts) {
    line_with(HostsConfig::default(), length)
}

fn line_with(config: HostsConfig, length: u64) -> (Net, Hosts) {
    let discovery = discovery();
    let hosts = Hosts::new(&discovery, config);
    let controller = Controller::new().program(discovery).program(hosts.clone());
    let mut net = Net::line(controller, Version::Of13, length);
    net.advance(SETTLED);
    (net, hosts)
}

fn read(events: &mut Events<HostEvent>) -> Vec<HostEvent> {
    std::iter::from_fn(|| events.try_next()).collect()
}

#[test]
fn frames_at_an_edge_port_teach_hosts_and_addresses() {
    let (mut net, hosts) = line(2);
    let mut events = hosts.events();
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    net.packet_in(port(2, 3), &NdFrame::solicitation(2, 9).bytes());
    let first = hosts.find_ipv4(ip(1)).unwrap();
    assert_eq!((first.mac, first.attached), (mac(1), port(1, 3)));
    let second = hosts.find_ipv6(ip6(2)).unwrap();
    assert_eq!((second.mac, second.attached), (mac(2), port(2, 3)));
    assert_eq!(hosts.all().len(), 2);
    assert!(matches!(read(&mut events)[0], HostEvent::Joined(_)));
}

#[test]
fn frames_at_a_link_port_are_not_learnt() {
    let (mut net, hosts) = line(2);
    net.packet_in(port(1, 2), &arp_request(1, 9, None));
    net.packet_in(port(2, 1), &arp_request(1, 9, None));
    assert_eq!(hosts.count(), 0);
}

#[test]
fn hosts_learnt_before_the_link_are_corrected() {
    let discovery = discovery();
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let controller = Controller::new().program(discovery).program(hosts.clone());
    let mut net = Net::new(controller);
    for id in [1, 2] {
        net.add_switch(id, Version::Of13, 3);
        net.connect(id);
    }
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    net.packet_in(port(2, 1), &arp_request(1, 9, None));
    net.packet_in(port(2, 1), &arp_request(3, 9, None));
    net.advance(2 * SETTLED);
    assert_eq!(hosts.find(mac(1)).unwrap().attached, port(2, 1));
    let mut events = hosts.events();
    net.link(port(1, 2), port(2, 1));
    net.advance(Duration::from_secs(10));
    assert_eq!(hosts.find(mac(1)).unwrap().attached, port(1, 3));
    assert!(hosts.find(mac(3)).is_none());
    let told = read(&mut events);
    assert!(told.iter().any(|event| matches!(event,
        HostEvent::Left { host, reason: LeftReason::NotAnEdge } if host.mac == mac(3))));
}

#[test]
fn hosts_leave_with_their_port_and_with_their_switch() {
    let (mut net, hosts) = line(2);
    let mut events = hosts.events();
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    net.packet_in(port(2, 3), &arp_request(2, 9, None));
    net.set_link(port(1, 3), false);
    assert!(hosts.find(mac(1)).is_none() && hosts.find_ipv4(ip(1)).is_none());
    net.disconnect(2);
    assert_eq!(hosts.count(), 0);
    let reasons: Vec<_> = read(&mut events)
        .iter()
        .filter_map(|event| match event {
            HostEvent::Left { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [LeftReason::PortDown, LeftReason::SwitchLeft]);
}

#[test]
fn only_answering_owners_keep_their_address() {
    let (mut net, hosts) = line(2);
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    let mut events = hosts.events();
    let forged = || {
        let request = Arp::request(mac(2), ip(1), ip(9));
        arp(2, MacAddr::BROADCAST, None, request)
    };
    net.delivered.clear();
    net.packet_in(port(2, 3), &forged());
    let (to, probe) = net.delivered.first().expect("the owner is asked");
    assert_eq!((*to, &probe[..6]), (port(1, 3), &mac(1).octets()[..]));
    let our_mac = HostsConfig::default().our_mac;
    net.packet_in(port(1, 3), &arp_reply(1, our_mac));
    net.advance(2 * SETTLED);
    assert_eq!(hosts.find_ipv4(ip(1)).unwrap().mac, mac(1));
    let told = read(&mut events);
    assert!(
        told.iter()
            .any(|event| matches!(event, HostEvent::AddressConflict { .. }))
    );
    net.packet_in(port(2, 3), &forged());
    net.advance(2 * SETTLED);
    assert_eq!(hosts.find_ipv4(ip(1)).unwrap().mac, mac(2));
    let told = read(&mut events);
    assert!(
        told.iter()
            .any(|event| matches!(event, HostEvent::AddressMoved { .. }))
    );
}

#[test]
fn a_host_is_probed_in_its_vlan_and_in_ipv6() {
    let (mut net, hosts) = line(1);
    net.packet_in(port(1, 3), &arp_request(1, 9, Some(30)));
    net.packet_in(port(1, 2), &NdFrame::solicitation(2, 9).bytes());
    net.delivered.clear();
    // Each is seen at another port, and is probed at its own.
    net.packet_in(port(1, 1), &arp_request(1, 9, Some(30)));
    net.packet_in(port(1, 1), &NdFrame::solicitation(2, 9).bytes());
    let at = |wanted| {
        let mut frames = net.delivered.iter().filter(move |(at, _)| *at == wanted);
        frames.next().expect("a question").1.clone()
    };
    let tagged = at(port(1, 3));
    assert_eq!(&tagged[12..18], &[0x81, 0, 0, 30, 0x08, 0x06]);
    let solicitation = at(port(1, 2));
    assert_eq!(solicitation[12..14], ether_type::IPV6.to_be_bytes());
    assert_eq!(solicitation[21], 255, "hop limit");
    assert_eq!(
        hosts.find_in(Some(30), mac(1)).unwrap().attached,
        port(1, 3)
    );
}

#[test]
fn forged_neighbour_discovery_teaches_no_address() {
    let (mut net, hosts) = line(1);
    let mut routed = NdFrame::solicitation(1, 9);
    routed.hop_limit = 254;
    let mut damaged = NdFrame::solicitation(1, 9).bytes();
    *damaged.last_mut().unwrap() ^= 1;
    let mut in_anothers_name = NdFrame::solicitation(1, 9);
    in_anothers_name.nd.sll = Some(mac(5));
    let detection = NdFrame::detection(1, 8);
    let arp_in_anothers_name = {
        let request = Arp::request(mac(5), ip(5), ip(9));
        arp(1, MacAddr::BROADCAST, None, request)
    };
    for frame in [
        routed.bytes(),
        damaged,
        in_anothers_name.bytes(),
        detection.bytes(),
        arp_in_anothers_name,
    ] {
        net.packet_in(port(1, 3), &frame);
    }
    let host = hosts.find(mac(1)).expect("its MAC address is learnt");
    assert_eq!(host.addresses().count(), 0);
    assert_eq!(hosts.count(), 1);
}

#[test]
fn router_advertisements_mark_a_router() {
    let (mut net, hosts) = line(1);
    net.packet_in(
        port(1, 3),
        &NdFrame::advertisement(1, nd_flags::ROUTER).bytes(),
    );
    assert!(hosts.find_ipv6(ip6(1)).unwrap().is_router);
    net.packet_in(port(1, 3), &NdFrame::advertisement(1, 0).bytes());
    assert!(!hosts.find_ipv6(ip6(1)).unwrap().is_router);
}

#[test]
fn answers_to_own_requests_are_consumed_and_other_frames_pass() {
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<MacAddr>>>);
    impl SwitchHandler for Seen {
        fn packet_in(&mut self, _: &mut Switch, packet: &PacketIn) {
            self.0.lock().unwrap().push(packet.eth_dst());
        }
    }
    let discovery = discovery();
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let seen = Seen::default();
    let own = seen.clone();
    let controller = Controller::new()
        .program(discovery)
        .program(hosts.clone())
        .program(move |_: &SwitchInfo| own.clone());
    let mut net = Net::line(controller, Version::Of10, 1);
    net.packet_in(port(1, 3), &arp_reply(1, HostsConfig::default().our_mac));
    net.packet_in(port(1, 3), &arp_reply(1, mac(2)));
    assert_eq!(*seen.0.lock().unwrap(), [mac(2)]);
    assert!(hosts.find_ipv4(ip(1)).is_some());
}

#[test]
fn a_flood_of_forged_senders_affects_no_other_port() {
    let (mut net, hosts) = line(2);
    net.packet_in(port(2, 3), &arp_request(1, 9, None));
    for number in 0..10_000_u32 {
        let mut frame = arp_request(7, 9, None);
        frame[6] = 6;
        frame[8..12].copy_from_slice(&number.to_be_bytes());
        net.packet_in(port(1, 3), &frame);
    }
    let max_hosts_per_port = HostsConfig::default().max_hosts_per_port;
    assert_eq!(hosts.count(), 1 + max_hosts_per_port);
    assert_eq!(hosts.refused(), 10_000 - max_hosts_per_port as u64);
    assert_eq!(hosts.find_ipv4(ip(1)).unwrap().attached, port(2, 3));
    net.packet_in(port(2, 3), &arp_request(2, 9, None));
    assert!(hosts.find_ipv4(ip(2)).is_some());
    // They never answer, and are removed.
    net.advance(HostsConfig::default().max_age + Duration::from_secs(10));
    assert!(hosts.count() <= 2, "{}", hosts.count());
}

#[test]
fn frames_from_unknown_ports_are_not_learnt() {
    let (mut net, hosts) = line(1);
    for port_no in (4..1_000).chain([0, u32::MAX / 2]) {
        net.packet_in(port(1, port_no), &arp_request(1, 9, None));
    }
    assert_eq!(hosts.count(), 0);
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    assert_eq!(hosts.find(mac(1)).unwrap().attached, port(1, 3));
}

#[test]
fn unbounded_durations_are_accepted() {
    let config = HostsConfig {
        max_age: Duration::MAX,
        probe_timeout: Duration::MAX,
        flap_window: Duration::MAX,
        hold: Duration::MAX,
        ..HostsConfig::default()
    };
    let (mut net, hosts) = line_with(config.clone(), 2);
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    // Another host claims its location, and its address.
    net.packet_in(port(2, 3), &arp_request(1, 9, None));
    let forged = Arp::request(mac(2), ip(1), ip(9));
    net.packet_in(port(2, 3), &arp(2, MacAddr::BROADCAST, None, forged));
    net.advance(Duration::from_secs(3_600));
    let host = hosts.find_ipv4(ip(1)).expect("it is kept for ever");
    assert_eq!((host.mac, host.attached), (mac(1), port(1, 3)));
    assert_eq!(net.controller.background_counters().panics(), 0);

    let newest_wins = HostsConfig {
        on_conflict: ConflictPolicy::NewestWins,
        ..config
    };
    let (mut net, hosts) = line_with(newest_wins, 2);
    for switch in [1, 2].into_iter().cycle().take(20) {
        net.packet_in(port(switch, 3), &arp_request(1, 9, None));
    }
    net.advance(Duration::from_secs(3_600));
    assert!(hosts.find_ipv4(ip(1)).is_some());
    assert_eq!(net.controller.background_counters().panics(), 0);
}

/// A watcher that records the changed ports.
#[derive(Default)]
struct ChangedPorts(Mutex<Vec<PortId>>);

impl HostsWatcher for ChangedPorts {
    fn changed(&self, port: PortId) {
        self.0.lock().unwrap().push(port);
    }
}

impl ChangedPorts {
    /// Returns `true` if this port was named since the last call.
    fn names(&self, port: PortId) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap()).contains(&port)
    }
}

#[test]
fn a_watcher_is_notified_of_outdated_ports_at_once() {
    let (mut net, hosts) = line(2);
    let told = Arc::new(ChangedPorts::default());
    assert!(hosts.watch(told.clone()));
    assert!(
        !hosts.watch(Arc::new(ChangedPorts::default())),
        "there is one"
    );
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    assert!(told.names(port(1, 3)), "it has an address now");
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    assert!(told.0.lock().unwrap().is_empty(), "there is no news");
    // Another host claims the address; its owner is probed.
    let forged = Arp::request(mac(2), ip(1), ip(9));
    net.packet_in(port(2, 3), &arp(2, MacAddr::BROADCAST, None, forged));
    assert!(told.names(port(1, 3)), "the address is in doubt");
    net.advance(2 * SETTLED);
    assert_eq!(hosts.find_ipv4(ip(1)).unwrap().mac, mac(2));
    assert!(told.names(port(1, 3)), "the address has gone");
    net.packet_in(port(1, 3), &arp_request(3, 9, None));
    net.packet_in(port(2, 3), &arp_request(3, 9, None));
    assert!(told.names(port(1, 3)), "where it is is in doubt");
    net.advance(2 * SETTLED);
    assert_eq!(hosts.find(mac(3)).unwrap().attached, port(2, 3));
    assert!(told.names(port(1, 3)), "it has moved");
    net.disconnect(2);
    assert!(told.names(port(2, 3)), "it has left");
}

#[test]
fn hosts_seen_at_another_port_are_not_silent() {
    let config = HostsConfig::default();
    let (max_age, discovery) = (config.max_age, discovery());
    let hosts = Hosts::new(&discovery, config);
    let now = Arc::new(Mutex::new(None));
    let clock = Arc::clone(&now);
    let controller = Controller::new()
        .program(discovery)
        .program(hosts.clone())
        .program(move |_: &SwitchInfo| Clock(clock.clone()));
    let mut net = Net::line(controller, Version::Of13, 1);
    net.advance(SETTLED);
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    for _ in 0..3 {
        net.advance(max_age * 2 / 3);
        // Another frame gives the time.
        net.packet_in(port(1, 3), &arp_request(2, 9, None));
        let now = now.lock().unwrap().unwrap();
        hosts.note_heard(mac(1), port(1, 1), now);
        assert_ne!(hosts.find(mac(1)).unwrap().last_seen(), now, "elsewhere");
        hosts.note_heard(mac(1), port(1, 3), now);
        assert_eq!(hosts.find(mac(1)).unwrap().last_seen(), now);
    }
    net.advance(max_age * 2);
    assert!(hosts.find(mac(1)).is_none());
}

/// Restores hosts of an earlier program, unless newer information exists, and until a port turns out to be down.
#[test]
fn hosts_of_an_earlier_program_are_restored() {
    let (mut net, hosts) = line(2);
    let told = Arc::new(ChangedPorts::default());
    assert!(hosts.watch(told.clone()));
    hosts.restore(mac(1), port(1, 3), ip(1));
    hosts.restore(mac(1), port(1, 3), ip(5));
    let host = hosts.find_ipv4(ip(1)).unwrap();
    assert_eq!((host.mac, host.attached), (mac(1), port(1, 3)));
    assert_eq!(hosts.find_ipv4(ip(5)).unwrap().mac, mac(1));
    // Restoring does not change newer information.
    hosts.restore(mac(2), port(1, 3), ip(1));
    assert!(hosts.find(mac(2)).is_none());
    hosts.restore(mac(1), port(2, 3), ip(7));
    assert_eq!(hosts.find(mac(1)).unwrap().attached, port(1, 3));
    assert!(hosts.find_ipv4(ip(7)).is_none());
    hosts.restore(MacAddr::BROADCAST, port(1, 3), ip(8));
    hosts.restore(MacAddr::ZERO, port(1, 3), ip(8));
    assert_eq!(hosts.count(), 1);
    told.names(port(1, 3));
    // The host is at this port, so there is no news.
    net.packet_in(port(1, 3), &arp_request(1, 9, None));
    assert!(told.0.lock().unwrap().is_empty());
    // A switch joins without such a port, or with the port down.
    hosts.restore(mac(3), port(9, 77), ip(3));
    assert_eq!(hosts.find_ipv4(ip(3)).unwrap().attached, port(9, 77));
    net.add_switch(9, Version::Of13, 3);
    net.connect(9);
    assert!(hosts.find(mac(3)).is_none());
    assert!(told.names(port(9, 77)));
    assert!(hosts.find(mac(1)).is_some());
    // It is removed if it does not answer.
    net.advance(2 * HostsConfig::default().max_age);
    assert!(hosts.find(mac(1)).is_none());
}

/// Records when packets arrive.
struct Clock(Arc<Mutex<Option<std::time::Instant>>>);

impl SwitchHandler for Clock {
    fn packet_in(&mut self, switch: &mut Switch, _packet: &PacketIn) {
        *self.0.lock().unwrap() = Some(switch.now());
    }
}
