//! Bandwidth on demand: flows with a reservation arrive, others do not, and no link is overbooked.

use crate::support::{PacketIns, frame, hold, inject, ms, net_of_plan, options, tagged};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::{Bandwidth, BandwidthConfig, BandwidthError, Options};
use urtica_controller::Controller;
use urtica_net::simulate::{Programs, Scenario};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, End, FlowId, HostId, Net};
use urtica_services::{
    Discovery, Hosts, HostsConfig, NeighbourProxy, ProvisionConfig, Provisioner, Routes,
};
use urtica_topology::PortId;
use urtica_topology::spec::{Plan, TopologySpec};
use urtica_wire::packet::{Headers, Ipv4, PseudoHeader, Udp, ether_type, ip_proto};
use urtica_wire::{DatapathId, MacAddr, PortNo};

const MBPS: u64 = 1_000_000;

/// Returns a plan whose links between switches have 10 Mb/s.
fn plan(spec: &str) -> Plan {
    let mut plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
    for link in &mut plan.links {
        link.properties.bandwidth_bps = Some(10 * MBPS);
    }
    plan
}

/// Returns settings in which datagrams, the only flows of these networks, request 6 Mb/s.
fn config() -> BandwidthConfig {
    BandwidthConfig {
        demands: vec!["6M udp,tp_dst=5001".parse().unwrap()],
        ..BandwidthConfig::default()
    }
}

/// Creates a controller that reserves bandwidth, and routes other packets.
fn reserving(config: BandwidthConfig) -> (Controller, Bandwidth) {
    reserving_between(HostsConfig::default(), config)
}

/// Like [`reserving`], with these settings of hosts.
fn reserving_between(hosts: HostsConfig, config: BandwidthConfig) -> (Controller, Bandwidth) {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, hosts);
    let routes = Routes::new(&discovery);
    let provisioner = Provisioner::new(ProvisionConfig::default());
    let bandwidth = Bandwidth::new(&discovery, &hosts, &provisioner, config);
    let controller = Controller::new()
        .program(discovery)
        .program(hosts.clone())
        .program(NeighbourProxy::new(&hosts))
        .program(routes.clone())
        .program(provisioner)
        .program(bandwidth.clone())
        .program(urtica_apps::Routing::new(&hosts, &routes));
    (controller, bandwidth)
}

/// Creates a network in which all hosts are known.
fn net(spec: &str, config: BandwidthConfig) -> (Net, Bandwidth) {
    let (controller, bandwidth) = reserving(config);
    let mut net = net_of_plan(&plan(spec), controller);
    assert!(net.ping_all().unwrap().is_complete());
    bandwidth.check().unwrap();
    (net, bandwidth)
}

/// Counts the datagrams to port 5001 that a host receives.
#[derive(Clone)]
pub struct PacketsTo(HostId, Rc<Cell<usize>>);

impl PacketsTo {
    pub fn new(net: &Net, host: &str) -> Self {
        Self(net.host(host).unwrap(), Rc::default())
    }

    pub fn count(&self) -> usize {
        self.1.get()
    }
}

impl Watcher for PacketsTo {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), frame) = *event {
            if host == self.0 && Headers::parse(frame).dst_port == Some(5_001) {
                self.1.set(self.1.get() + 1);
            }
        }
        Ok(())
    }
}

/// Sends a datagram each ten milliseconds for `time`.
fn start(net: &mut Net, from: &str, to: &str, time: Duration) -> FlowId {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    let datagrams = Datagrams {
        count: (time.as_millis() / 10) as u64,
        payload_bytes: 64,
        interval: ms(10),
    };
    net.start_datagrams(from, to, datagrams).unwrap()
}

fn received(net: &Net, flow: FlowId) -> u64 {
    net.flow_report(flow).unwrap().received
}

fn mac(number: u64) -> MacAddr {
    MacAddr::from_u64(number)
}

fn port(switch: u64, port_no: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(port_no))
}

#[test]
fn flows_get_paths_until_the_bandwidth_is_reserved() {
    let (mut net, bandwidth) = net("ring,4", config());
    // One direction of the ring, the other, and no free path.
    let flows = [(); 3].map(|()| {
        let flow = start(&mut net, "h1", "h3", ms(1_000));
        net.run_for(ms(100));
        flow
    });
    net.run_for(ms(1_500));
    bandwidth.check().unwrap();
    assert_eq!(flows.map(|flow| received(&net, flow)), [100, 100, 0]);
    assert_eq!(bandwidth.count(), 2);
    // The first port of a switch of a ring is its host's.
    let free = [2, 3].map(|port_no| bandwidth.free_bps(port(1, port_no)));
    assert_eq!(free, [Some(4 * MBPS); 2]);
    assert!(net.ping_all().unwrap().is_complete(), "pings are routed");
}

#[test]
fn flows_without_a_reservation_count_towards_the_limit() {
    let config = BandwidthConfig {
        best_effort: true,
        max_reservations: 2,
        ..config()
    };
    let (mut net, bandwidth) = net("linear,2", config);
    // One flow gets its bandwidth, one is forwarded without, and the limit refuses the third.
    let flows = [(); 3].map(|()| {
        let flow = start(&mut net, "h1", "h2", ms(500));
        net.run_for(ms(100));
        flow
    });
    net.run_for(ms(1_000));
    assert_eq!(flows.map(|flow| received(&net, flow)), [50, 50, 0]);
    assert_eq!(bandwidth.count(), 2);
    bandwidth.check().unwrap();
}

/// Starts flows from the first host to the third, then one from the second.
fn greedy_and_modest(net: &mut Net) -> [FlowId; 3] {
    ["h1", "h1", "h2"].map(|from| {
        let flow = start(net, from, "h3", ms(1_000));
        net.run_for(ms(100));
        flow
    })
}

#[test]
fn the_hosts_of_a_port_reserve_no_more_than_their_quota() {
    let config = BandwidthConfig {
        port_bps: Some(6 * MBPS),
        ..config()
    };
    let (mut net, bandwidth) = net("ring,4", config);
    let flows = greedy_and_modest(&mut net);
    net.run_for(ms(1_500));
    assert_eq!(flows.map(|flow| received(&net, flow)), [100, 0, 100]);
    // A program is not a host: it may reserve more.
    bandwidth.reserve(mac(1), mac(4), 4 * MBPS).unwrap();
    bandwidth.check().unwrap();
}

#[test]
fn the_hosts_of_a_port_have_no_more_flows_than_their_quota() {
    let config = BandwidthConfig {
        best_effort: true,
        flows_per_port: 1,
        ..config()
    };
    let (mut net, bandwidth) = net("ring,4", config);
    let flows = greedy_and_modest(&mut net);
    net.run_for(ms(1_500));
    assert_eq!(flows.map(|flow| received(&net, flow)), [100, 0, 100]);
    bandwidth.check().unwrap();
    // Once a flow has ended, another is accepted.
    net.run_for(Duration::from_secs(40));
    let next = start(&mut net, "h1", "h3", ms(500));
    net.run_for(ms(1_000));
    assert_eq!(received(&net, next), 50);
}

#[test]
fn unused_bandwidth_is_available_again() {
    let (mut net, bandwidth) = net("linear,2", config());
    let first = start(&mut net, "h1", "h2", ms(500));
    net.run_for(ms(600));
    let second = start(&mut net, "h1", "h2", ms(500));
    net.run_for(ms(600));
    assert_eq!((received(&net, first), received(&net, second)), (50, 0));
    net.run_for(Duration::from_secs(35));
    assert_eq!(bandwidth.count(), 0);
    bandwidth.check().unwrap();
    let third = start(&mut net, "h1", "h2", ms(500));
    net.run_for(ms(1_000));
    assert_eq!(received(&net, third), 50);
}

#[test]
fn refused_flows_are_examined_again() {
    let (mut net, bandwidth) = net("linear,2", config());
    bandwidth.reserve(mac(1), mac(2), 5 * MBPS).unwrap();
    let flow = start(&mut net, "h1", "h2", Duration::from_secs(4));
    net.run_for(ms(500));
    assert_eq!(received(&net, flow), 0);
    bandwidth.release(mac(1), mac(2)).unwrap();
    net.run_for(Duration::from_secs(5));
    let received = received(&net, flow);
    assert!((250..400).contains(&received), "{received}");
}

#[test]
fn best_effort_flows_need_no_reservation() {
    let config = BandwidthConfig {
        best_effort: true,
        ..config()
    };
    let (mut net, bandwidth) = net("linear,2", config);
    let flows = [(); 2].map(|()| start(&mut net, "h1", "h2", ms(1_000)));
    net.run_for(ms(2_000));
    assert_eq!(flows.map(|flow| received(&net, flow)), [100, 100]);
    assert_eq!(bandwidth.free_bps(port(1, 2)), Some(4 * MBPS));
    bandwidth.check().unwrap();
}

#[test]
fn reserved_flows_leave_cut_links() {
    let (mut net, bandwidth) = net("ring,4", config());
    let flow = start(&mut net, "h1", "h3", Duration::from_secs(6));
    net.run_for(ms(1_000));
    let used = [("s1", "s2"), ("s1", "s4")]
        .into_iter()
        .zip([2, 3])
        .find(|(_, port_no)| bandwidth.free_bps(port(1, *port_no)) == Some(4 * MBPS));
    let ((one, other), port_no) = used.expect("one of both directions is used");
    net.cut(net.link(one, other).unwrap()).unwrap();
    net.run_for(Duration::from_secs(6));
    assert_eq!(
        bandwidth.free_bps(port(1, port_no)),
        None,
        "the link is gone"
    );
    let lost = 600 - received(&net, flow);
    assert!(lost < 200, "{lost} of 600 datagrams are lost");
    bandwidth.check().unwrap();
}

#[test]
fn a_reservation_between_hosts_lasts_until_it_is_released() {
    let (mut net, bandwidth) = net("ring,4", BandwidthConfig::default());
    let path = bandwidth.reserve(mac(1), mac(3), 7 * MBPS).unwrap();
    assert_eq!(path.hops.len(), 3);
    assert!(!bandwidth.find(mac(1), mac(3)).unwrap().is_provisioned);
    net.run_for(Duration::from_secs(60));
    let found = bandwidth.find(mac(1), mac(3)).unwrap();
    assert!(found.is_provisioned && found.path == path && found.bps == 7 * MBPS);
    assert!(net.ping_all().unwrap().is_complete());
    bandwidth.release(mac(1), mac(3)).unwrap();
    net.run_for(ms(1_000));
    assert_eq!(
        bandwidth.free_bps(port(1, path.hops[0].out_port.0)),
        Some(10 * MBPS)
    );
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn lost_switches_release_their_reservations() {
    let (mut net, bandwidth) = net("linear,3", BandwidthConfig::default());
    bandwidth.reserve(mac(1), mac(3), MBPS).unwrap();
    bandwidth.reserve(mac(1), mac(2), MBPS).unwrap();
    net.run_for(ms(1_000));
    net.stop_switch(net.switch("s3").unwrap()).unwrap();
    net.run_for(Duration::from_secs(20));
    assert_eq!(bandwidth.find(mac(1), mac(3)), None);
    assert!(bandwidth.find(mac(1), mac(2)).is_some());
    bandwidth.check().unwrap();
}

#[test]
fn impossible_reservations_are_errors() {
    let (_net, bandwidth) = net("linear,2", BandwidthConfig::default());
    let error = |from, to, bps| bandwidth.reserve(mac(from), mac(to), bps).unwrap_err();
    for (error, expected) in [
        (
            error(1, 77, MBPS),
            "the host 00:00:00:00:00:4d is not known; expected one that has sent something",
        ),
        (
            error(1, 1, MBPS),
            "the host 00:00:00:00:00:01 is both source and destination; expected two hosts",
        ),
        (
            error(1, 2, 0),
            "the request is for 0 b/s; expected at least 1",
        ),
        (
            error(1, 2, u64::MAX),
            "18446744073709551615 b/s are not free on any of 1 tried paths",
        ),
    ] {
        assert_eq!(error.to_string(), expected);
    }
    bandwidth.reserve(mac(1), mac(2), MBPS).unwrap();
    assert_eq!(error(1, 2, MBPS), BandwidthError::ReservedAlready);
    let missing = bandwidth.release(mac(2), mac(1)).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "no bandwidth is reserved from 00:00:00:00:00:02 to 00:00:00:00:00:01"
    );
    assert_eq!(bandwidth.count(), 1);
    bandwidth.check().unwrap();
}

/// An unknown address.
const NOBODY: u64 = 0x0200_0000_00ff;

/// Builds a datagram from a MAC and IP address to others.
pub fn datagram((eth_src, src): (u64, Ipv4Addr), (eth_dst, dst): (u64, Ipv4Addr)) -> Vec<u8> {
    let udp = Udp {
        src_port: 4_000,
        dst_port: 5_001,
    };
    let (mut payload, mut datagram) = (Vec::new(), Vec::new());
    let pseudo_header = PseudoHeader::V4 { src, dst };
    udp.write(&mut datagram, &pseudo_header, b"for somebody")
        .unwrap();
    let ip = Ipv4::new(src, dst, ip_proto::UDP);
    ip.write(&mut payload, &datagram).unwrap();
    frame(eth_src, eth_dst, ether_type::IPV4, &payload)
}

/// Builds a datagram from one host to another of its subnet.
fn datagram_between(from: u8, to: u8) -> Vec<u8> {
    let [from, to] = [from, to].map(|host| (u64::from(host), Ipv4Addr::new(10, 0, 0, host)));
    datagram(from, to)
}

#[test]
fn tagged_packets_request_bandwidth() {
    for (tpid, vid) in [
        (ether_type::VLAN, 0),
        (ether_type::SERVICE_VLAN, 0),
        (ether_type::SERVICE_VLAN, 7),
    ] {
        let (mut net, bandwidth) = net("linear,2", config());
        let packet_ins = PacketIns::default();
        // The switches know both hosts in this VLAN.
        for (switch, from, to) in [("s1", 1, 2), ("s2", 2, 1)] {
            let greeting = frame(from, to, 0x88b5, b"greeting");
            inject(&net, switch, 1, [tagged(tpid, vid, greeting)]);
            net.run_for(ms(100));
        }
        net.watch(packet_ins.clone());
        for _ in 0..20 {
            inject(&net, "s1", 1, [tagged(tpid, vid, datagram_between(1, 2))]);
            net.run_for(ms(50));
        }
        let came = packet_ins.take();
        assert!(
            came <= 2,
            "{tpid:#x}, VID {vid}: {came} of 20 packets came up"
        );
        assert_eq!(bandwidth.count(), 1, "{tpid:#x}, VID {vid}");
    }
}

#[test]
fn flows_to_unknown_hosts_are_refused() {
    let (controller, bandwidth) = reserving(config());
    let mut net = net_of_plan(&plan("linear,2"), controller);
    let heard = PacketsTo::new(&net, "h2");
    net.watch(heard.clone());
    for _ in 0..400 {
        inject(&net, "s1", 1, [datagram_between(1, 2)]);
        net.run_for(ms(10));
    }
    // One datagram a second passes, so that its destination may be found.
    assert!((1..=5).contains(&heard.count()), "{} of 400", heard.count());
    assert_eq!(bandwidth.count(), 0);
    assert!(net.ping_all().unwrap().is_complete());
    net.run_for(ms(1_000));
    let before = heard.count();
    for _ in 0..10 {
        inject(&net, "s1", 1, [datagram_between(1, 2)]);
        net.run_for(ms(10));
    }
    assert!(heard.count() - before >= 10);
    assert_eq!(bandwidth.count(), 1);
}

#[test]
fn moved_hosts_release_their_reservations() {
    let (mut net, bandwidth) = net("linear,3", config());
    bandwidth.reserve(mac(1), mac(3), MBPS).unwrap();
    start(&mut net, "h1", "h3", Duration::from_secs(1));
    net.run_for(ms(1_000));
    assert_eq!(bandwidth.count(), 2);
    // The third host sends from behind the second switch, while its old port stays up.
    let link = net.link("h3", "s3").unwrap();
    net.set_loss(link, 1.0).unwrap();
    inject(&net, "s2", 1, [frame(3, NOBODY, 0x88b5, b"elsewhere")]);
    net.run_for(ms(3_000));
    assert_eq!(bandwidth.find(mac(1), mac(3)), None);
    let free = bandwidth.free_bps(port(2, 3));
    assert_eq!(free, Some(10 * MBPS), "nothing leads to the third switch");
    bandwidth.check().unwrap();
}

#[test]
fn vlan_reservations_of_forgotten_hosts_can_be_released() {
    let hosts = HostsConfig {
        max_age: Duration::from_secs(5),
        ..HostsConfig::default()
    };
    let (controller, bandwidth) = reserving_between(hosts, config());
    let mut net = net_of_plan(&plan("linear,2"), controller);
    assert!(net.ping_all().unwrap().is_complete());
    let (one, other) = (0x0200_0000_0001, 0x0200_0000_0002);
    for (switch, from) in [("s1", one), ("s2", other)] {
        let greeting = frame(from, NOBODY, 0x88b5, b"greeting");
        inject(&net, switch, 1, [tagged(ether_type::VLAN, 7, greeting)]);
        net.run_for(ms(100));
    }
    bandwidth.reserve(mac(one), mac(other), MBPS).unwrap();
    net.run_for(Duration::from_secs(20));
    assert!(bandwidth.find(mac(one), mac(other)).is_some());
    bandwidth.release(mac(one), mac(other)).unwrap();
    assert_eq!(bandwidth.count(), 0);
}

#[test]
fn reports_missing_options() {
    let error = |names: &[&str], options: &Options| {
        let result = urtica_apps::add_all(Controller::new(), names, options);
        result.err().expect("it cannot run").to_string()
    };
    assert_eq!(
        error(&["routing", "bandwidth"], &options()),
        "the control program 'bandwidth' cannot run: routing would forward its packets first; expected bandwidth before routing"
    );
    let mut no_path = options();
    no_path.bandwidth.bandwidth_paths = Some(0);
    assert!(
        error(&["bandwidth"], &no_path).contains("--bandwidth-paths is 0; expected at least 1")
    );
}

#[test]
fn random_faults_overbook_no_links() {
    let most = Rc::new(Cell::new(0));
    let seen = Rc::clone(&most);
    let programs = move || {
        let config = BandwidthConfig {
            demands: vec!["3M udp".parse().unwrap(), "4M tcp".parse().unwrap()],
            default_capacity_bps: 10 * MBPS,
            // Streams arrive completely, even if they get no bandwidth.
            best_effort: true,
            ..BandwidthConfig::default()
        };
        let (controller, bandwidth) = reserving(config);
        let seen = Rc::clone(&seen);
        let check = move |_: &Net| {
            seen.set(seen.get().max(bandwidth.count()));
            let checked = bandwidth.check();
            checked.map_err(|error| Violation::new(error.to_string()))
        };
        Programs {
            controller,
            reservations: Some(Box::new(check)),
        }
    };
    let scenario = Scenario {
        // Routing's entries of flows expire after a minute. Its six other entries stay, and one for each demand.
        quiescent_after: Duration::from_secs(100),
        entries_when_quiescent: 14,
        flows: 20,
        ..Scenario::on_loops(programs)
    };
    hold(&scenario, 0..12);
    assert!(most.get() >= 3, "flows did reserve");
}
