//! Routing between subnets: which hosts reach each other, and the answers to undeliverable packets.

use crate::support::{frame, inject, ms, net_of_plan, options};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica_apps::{L3, L3Config, L3Fact, L3Kernel, L3Session, Routing};
use urtica_controller::{Controller, KernelHalf, ProgramId, SessionConfig, SwitchInfo};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, End, HostId, Net};
use urtica_services::{Discovery, Hosts, HostsConfig, ProvisionConfig, Provisioner, Routes};
use urtica_topology::spec::{Plan, TopologySpec};
use urtica_wire::packet::{
    Arp, EthernetView, Icmpv4, Icmpv4View, Ipv4, Ipv4View, PseudoHeader, Udp, ether_type, icmpv4,
    ip_proto,
};
use urtica_wire::{DatapathId, MacAddr, Version};

/// Three subnets. Hosts of these networks regard all addresses as neighbours, so the gateways answer for remote addresses.
pub const CONFIG: &str = r#"
proxy_arp = true

[[interface]]
address = "10.0.1.254/24"
mac = "02:00:00:00:01:fe"

[[interface]]
address = "10.0.2.254/24"
mac = "02:00:00:00:02:fe"

[[interface]]
address = "10.0.3.254/24"
mac = "02:00:00:00:03:fe"
"#;

const GATEWAY: u64 = 0x0200_0000_01fe;

/// Returns `CONFIG` with a further subnet of many addresses.
fn with_large_subnet() -> String {
    format!("{CONFIG}\n[[interface]]\naddress = \"10.16.0.254/16\"\nmac = \"02:00:00:00:04:fe\"")
}

/// Starts a network with routing within subnets and between them.
fn routed(spec: &str, version: Version) -> (Net, L3) {
    routed_with(spec, version, None)
}

fn routed_with(spec: &str, version: Version, kernel: Option<Arc<Recorder>>) -> (Net, L3) {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let provisioner = Provisioner::new(ProvisionConfig::default());
    let config: L3Config = with_large_subnet().parse().unwrap();
    let l3 = L3::new(&discovery, &hosts, &routes, &provisioner, config);
    let l3 = match kernel {
        Some(kernel) => l3.in_kernel(kernel),
        None => l3,
    };
    let mut session = SessionConfig::default();
    session.versions = vec![version];
    let controller = Controller::new()
        .session(session)
        .program(discovery)
        .program(hosts.clone())
        .program(routes.clone())
        .program(provisioner)
        .program(l3.clone())
        .program(Routing::new(&hosts, &routes));
    (net_of_plan(&in_subnets(spec), controller), l3)
}

/// Returns a network whose host n is 10.0.N.n, where N repeats 1, 2, 3.
pub fn in_subnets(spec: &str) -> Plan {
    let mut plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
    for (number, host) in (1..).zip(&mut plan.hosts) {
        host.ipv4 = Ipv4Addr::new(10, 0, (number - 1) % 3 + 1, number);
    }
    plan
}

/// The ICMP messages that a host has received: sender, type, code and TTL.
pub type Heard = Rc<RefCell<Vec<(Ipv4Addr, u8, u8, u8)>>>;

struct Listener(HostId, Heard);

impl Watcher for Listener {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match *event {
            Event::Arrived(_, End::Host(host), frame) if host == self.0 => {
                self.1.borrow_mut().extend(heard_of(frame));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Reads a frame that carries ICMP over IPv4.
fn heard_of(frame: &[u8]) -> Option<(Ipv4Addr, u8, u8, u8)> {
    let ethernet = EthernetView::new(frame).ok()?;
    let packet = Ipv4View::new(ethernet.payload()).ok()?;
    let icmp = Icmpv4View::new(packet.payload()).ok()?;
    let is_icmp = ethernet.ether_type() == ether_type::IPV4 && packet.proto() == ip_proto::ICMPV4;
    is_icmp.then(|| {
        (
            packet.src(),
            icmp.icmp_type(),
            icmp.icmp_code(),
            packet.ttl(),
        )
    })
}

/// Starts to record the ICMP messages that a host receives.
pub fn listen(net: &mut Net, host: &str) -> Heard {
    let heard = Heard::default();
    let host = net.host(host).unwrap();
    net.watch(Listener(host, Rc::clone(&heard)));
    heard
}

/// Makes host 1 send an IPv4 packet to its gateway.
fn hand(net: &Net, dst: [u8; 4], ttl: u8, proto: u8, payload: &[u8]) {
    let header = Ipv4 {
        ttl,
        ..Ipv4::new([10, 0, 1, 1].into(), dst.into(), proto)
    };
    let mut packet = Vec::new();
    header.write(&mut packet, payload).unwrap();
    inject(net, "s1", 1, [frame(1, GATEWAY, ether_type::IPV4, &packet)]);
}

fn hand_echo(net: &Net, dst: [u8; 4], ttl: u8) {
    let mut request = Vec::new();
    let header = Icmpv4 {
        icmp_type: icmpv4::ECHO_REQUEST,
        icmp_code: 0,
        rest: [0, 1, 0, 1],
    };
    header.write(&mut request, b"echo");
    hand(net, dst, ttl, ip_proto::ICMPV4, &request);
}

/// Makes host 2 send an echo request to its gateway.
fn hand_echo_of_h2(net: &Net, dst: [u8; 4]) {
    let mut request = Vec::new();
    let header = Icmpv4 {
        icmp_type: icmpv4::ECHO_REQUEST,
        icmp_code: 0,
        rest: [0, 1, 0, 1],
    };
    header.write(&mut request, b"echo");
    let mut packet = Vec::new();
    let header = Ipv4::new([10, 0, 2, 2].into(), dst.into(), ip_proto::ICMPV4);
    header.write(&mut packet, &request).unwrap();
    let gateway = 0x0200_0000_02fe;
    inject(net, "s2", 1, [frame(2, gateway, ether_type::IPV4, &packet)]);
}

fn hand_datagram(net: &Net, dst: [u8; 4], ttl: u8) {
    let addresses = PseudoHeader::V4 {
        src: [10, 0, 1, 1].into(),
        dst: dst.into(),
    };
    let mut datagram = Vec::new();
    let header = Udp {
        src_port: 4_000,
        dst_port: 33_434,
    };
    header.write(&mut datagram, &addresses, b"trace").unwrap();
    hand(net, dst, ttl, ip_proto::UDP, &datagram);
}

#[test]
fn hosts_of_all_subnets_reach_each_other() {
    for (spec, version) in [
        ("linear,3", Version::Of13),
        ("ring,6", Version::Of13),
        ("fattree,4", Version::Of13),
        ("ring,6", Version::Of10),
    ] {
        let (mut net, l3) = routed(spec, version);
        let report = net.ping_all().unwrap();
        assert!(report.is_complete(), "{spec}, {version:?}: {report}");
        assert_eq!(l3.flows() > 0, version == Version::Of13);
    }
}

#[test]
fn switches_decrement_the_ttl_and_forward() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    let heard = listen(&mut net, "h1");
    assert!(net.ping_all().unwrap().is_complete());
    net.run_for(ms(500));
    let from_h2 = |heard: &Heard| {
        let heard = heard.borrow();
        let last = heard
            .iter()
            .rfind(|(src, ..)| *src == Ipv4Addr::new(10, 0, 2, 2));
        last.map(|(.., ttl)| *ttl)
    };
    assert_eq!(from_h2(&heard), Some(63), "by the controller");
    assert!(net.ping_all().unwrap().is_complete());
    assert_eq!(from_h2(&heard), Some(63), "by switches");
    let s1 = net.datapath_id(net.switch("s1").unwrap()).unwrap();
    let packet_ins = |net: &Net| {
        net.controller()
            .unwrap()
            .counters(s1)
            .unwrap()
            .packet_ins
            .get()
    };
    let before = packet_ins(&net);
    let datagrams = Datagrams {
        count: 500,
        payload_bytes: 64,
        interval: ms(1),
    };
    let (from, to) = (net.host("h1").unwrap(), net.host("h3").unwrap());
    let flow = net.start_datagrams(from, to, datagrams).unwrap();
    net.run_for(ms(1_000));
    assert_eq!(net.flow_report(flow).unwrap().received, 500);
    assert!(
        packet_ins(&net) < before + 20,
        "the controller receives few packets"
    );
}

#[test]
fn undeliverable_packets_are_answered() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let heard = listen(&mut net, "h1");
    let gateway = Ipv4Addr::new(10, 0, 1, 254);
    let mut expect = |hand: &dyn Fn(&Net), expected: &[(Ipv4Addr, u8, u8)]| {
        heard.borrow_mut().clear();
        hand(&net);
        net.run_for(ms(1_500));
        let heard: Vec<_> = heard
            .borrow()
            .iter()
            .map(|&(src, kind, code, _)| (src, kind, code))
            .collect();
        assert_eq!(heard, expected);
    };
    expect(
        &|net| hand_echo(net, [10, 0, 1, 254], 64),
        &[(gateway, 0, 0)],
    );
    expect(
        &|net| hand_echo(net, [10, 0, 2, 254], 1),
        &[([10, 0, 2, 254].into(), 0, 0)],
    );
    expect(
        &|net| hand_datagram(net, [10, 0, 1, 254], 64),
        &[(gateway, 3, 3)],
    );
    expect(
        &|net| hand_echo(net, [10, 0, 3, 77], 64),
        &[(gateway, 3, 1)],
    );
    expect(&|net| hand_echo(net, [8, 8, 8, 8], 64), &[(gateway, 3, 0)]);
    // Like traceroute: first one hop, then two.
    expect(
        &|net| hand_datagram(net, [10, 0, 3, 3], 1),
        &[(gateway, 11, 0)],
    );
    expect(
        &|net| hand_echo(net, [10, 0, 3, 3], 2),
        &[([10, 0, 3, 3].into(), 0, 0)],
    );
}

/// Counts the ARP packets that a host receives.
struct Requests(HostId, Rc<RefCell<usize>>);

impl Watcher for Requests {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), frame) = *event {
            let is_request =
                EthernetView::new(frame).is_ok_and(|frame| frame.ether_type() == ether_type::ARP);
            *self.1.borrow_mut() += usize::from(host == self.0 && is_request);
        }
        Ok(())
    }
}

#[test]
fn directed_broadcasts_are_dropped() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let heard = listen(&mut net, "h1");
    let requests = Rc::default();
    let h3 = net.host("h3").unwrap();
    net.watch(Requests(h3, Rc::clone(&requests)));
    for address in [[10, 0, 3, 255], [10, 0, 3, 0]] {
        hand_echo(&net, address, 64);
        net.run_for(ms(1_500));
    }
    assert_eq!(*requests.borrow(), 0);
    assert_eq!(*heard.borrow(), []);
    hand_echo(&net, [10, 0, 3, 77], 64);
    net.run_for(ms(1_500));
    assert!(*requests.borrow() > 0, "other addresses are resolved");
}

/// Makes a host announce its address at a switch.
fn announce(net: &Net, switch: &str, mac: u64, address: [u8; 4]) {
    let mut announcement = Vec::new();
    Arp::request(MacAddr::from_u64(mac), address.into(), address.into()).write(&mut announcement);
    let broadcast = MacAddr::BROADCAST.to_u64();
    let frame = frame(mac, broadcast, ether_type::ARP, &announcement);
    inject(net, switch, 1, [frame]);
}

/// Counts the IPv4 packets that a host's port receives, by destination MAC address.
struct SentTo(HostId, Rc<RefCell<BTreeMap<MacAddr, usize>>>);

impl Watcher for SentTo {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), bytes) = *event {
            let ethernet =
                EthernetView::new(bytes).map_err(|error| Violation::new(error.to_string()))?;
            if host == self.0 && ethernet.ether_type() == ether_type::IPV4 {
                *self.1.borrow_mut().entry(ethernet.dst()).or_default() += 1;
            }
        }
        Ok(())
    }
}

/// An address moves to another MAC address, as when a standby router behind the port takes over.
#[test]
fn traffic_follows_an_address_to_another_mac_at_the_same_port() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let sent_to: Rc<RefCell<BTreeMap<_, _>>> = Rc::default();
    let h3 = net.host("h3").unwrap();
    net.watch(SentTo(h3, Rc::clone(&sent_to)));
    let (first, second) = (0x0200_0000_aa01, 0x0200_0000_aa02);
    let shared = [10, 0, 3, 100];
    for (owner, packets) in [(first, 100), (second, 200)] {
        announce(&net, "s3", owner, shared);
        net.run_for(ms(100));
        // Traffic never pauses long enough for the entries to expire.
        for _ in 0..packets {
            hand_echo(&net, shared, 64);
            net.run_for(ms(20));
        }
    }
    let count = |mac| sent_to.borrow().get(&MacAddr::from_u64(mac)).copied();
    assert!(count(first) >= Some(99), "{:?}", count(first));
    assert!(count(second) >= Some(100), "{:?}", count(second));
}

#[test]
fn sweeps_of_absent_addresses_do_not_stop_other_resolutions() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    let heard = listen(&mut net, "h2");
    let requests = Rc::default();
    let h3 = net.host("h3").unwrap();
    net.watch(Requests(h3, Rc::clone(&requests)));
    let mut absent = 0_u32;
    for step in 0..100 {
        for _ in 0..30 {
            absent += 1;
            hand_echo(&net, Ipv4Addr::from_bits(0x0a10_0000 + absent).octets(), 64);
        }
        if step == 50 {
            hand_echo_of_h2(&net, [10, 0, 3, 3]);
        }
        net.run_for(ms(10));
    }
    net.run_for(ms(1_000));
    let of_h3 = (Ipv4Addr::new(10, 0, 3, 3), icmpv4::ECHO_REPLY);
    let heard = heard.borrow();
    assert!(
        heard.iter().any(|&(src, kind, ..)| (src, kind) == of_h3),
        "host 3, silent so far, is found"
    );
    let requests = *requests.borrow();
    assert!(requests < 600, "{requests} broadcasts for 3,000 addresses");
}

#[test]
fn unanswered_addresses_are_not_requested_for_a_while() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let heard = listen(&mut net, "h1");
    let requests = Rc::default();
    let h3 = net.host("h3").unwrap();
    net.watch(Requests(h3, Rc::clone(&requests)));
    for _ in 0..35 {
        hand_echo(&net, [10, 0, 3, 77], 64);
        net.run_for(ms(100));
    }
    assert_eq!(*requests.borrow(), 3, "in three and a half seconds");
    let unreachable = heard.borrow().iter().filter(|heard| heard.1 == 3).count();
    assert_eq!(unreachable, 35);
    net.run_for(ms(1_000));
    hand_echo(&net, [10, 0, 3, 77], 64);
    net.run_for(ms(1_500));
    assert_eq!(*requests.borrow(), 6);
}

#[test]
fn truncated_packets_are_dropped() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let sent_to: Rc<RefCell<BTreeMap<_, _>>> = Rc::default();
    let h2 = net.host("h2").unwrap();
    net.watch(SentTo(h2, Rc::clone(&sent_to)));
    let header = Ipv4::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), 253);
    let mut packet = Vec::new();
    header.write(&mut packet, &[7; 100]).unwrap();
    for (len, expected) in [(packet.len() - 1, 0), (packet.len(), 1)] {
        // The sender is unknown, so that no entry forwards the frame.
        let frame = frame(77, GATEWAY, ether_type::IPV4, &packet[..len]);
        inject(&net, "s1", 1, [frame]);
        net.run_for(ms(100));
        let count: usize = sent_to.borrow().values().sum();
        assert_eq!(count, expected, "{len} of {} bytes", packet.len());
    }
}

#[test]
fn packets_wait_for_silent_hosts() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    let heard = listen(&mut net, "h1");
    // No host has sent anything yet, so host 3 must be resolved.
    hand_echo(&net, [10, 0, 3, 3], 64);
    net.run_for(ms(2_000));
    let heard: Vec<_> = heard
        .borrow()
        .iter()
        .map(|&(src, kind, ..)| (src, kind))
        .collect();
    assert_eq!(heard, [([10, 0, 3, 3].into(), icmpv4::ECHO_REPLY)]);
}

#[test]
fn broken_packets_are_dropped() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let heard = listen(&mut net, "h1");
    let header = Ipv4::new([10, 0, 1, 1].into(), [8, 8, 8, 8].into(), ip_proto::UDP);
    let mut packet = Vec::new();
    header.write(&mut packet, &[0; 20]).unwrap();
    for broken in 0..20 {
        let mut bytes = packet.clone();
        bytes[broken] ^= 0x55;
        let cut = packet[..broken].to_vec();
        for bytes in [bytes, cut] {
            inject(&net, "s1", 1, [frame(1, GATEWAY, ether_type::IPV4, &bytes)]);
        }
    }
    let mut question = Vec::new();
    Arp::request(
        MacAddr::from_u64(1),
        [10, 0, 9, 1].into(),
        [10, 0, 9, 2].into(),
    )
    .write(&mut question);
    inject(
        &net,
        "s1",
        1,
        [frame(
            1,
            MacAddr::BROADCAST.to_u64(),
            ether_type::ARP,
            &question,
        )],
    );
    net.run_for(ms(1_500));
    assert_eq!(*heard.borrow(), []);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_flow_leaves_a_link_that_is_cut() {
    let (mut net, l3) = routed("ring,6", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let before = l3.flows();
    net.cut(net.link("s1", "s2").unwrap()).unwrap();
    net.run_for(ms(1_000));
    assert!(l3.flows() < before);
    assert!(net.ping_all().unwrap().is_complete());
    net.run_for(Duration::from_secs(70));
    assert_eq!(l3.flows(), 0, "unused flows have expired");
}

/// A kernel half that records the facts about the first switch until they are forgotten.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<L3Fact>>>);

impl L3Kernel for Recorder {
    fn open(&self, switch: &SwitchInfo, _: ProgramId, _: &Hosts) -> Option<Box<dyn L3Session>> {
        let is_first = switch.datapath_id == DatapathId(1);
        is_first.then(|| Box::new(self.clone()) as Box<dyn L3Session>)
    }

    fn forget(&self, switch: DatapathId) {
        if switch == DatapathId(1) {
            self.0.lock().unwrap().clear();
        }
    }
}

impl L3Session for Recorder {
    fn begin(&mut self) {}

    fn tell(&mut self, fact: L3Fact) {
        self.0.lock().unwrap().push(fact);
    }

    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        None
    }
}

impl Recorder {
    fn knows(&self, is_it: impl Fn(&L3Fact) -> bool) -> bool {
        self.0.lock().unwrap().iter().any(is_it)
    }
}

#[test]
fn the_kernel_gets_the_facts_of_forwarded_packets() {
    for version in Version::ALL {
        let kernel = Arc::new(Recorder::default());
        let (mut net, _) = routed_with("single,3", version, Some(Arc::clone(&kernel)));
        assert!(net.ping_all().unwrap().is_complete());
        // Once all hosts are known, packets of host 1 to host 2 and back.
        hand_echo(&net, [10, 0, 2, 2], 64);
        net.run_for(ms(100));
        let first = MacAddr::from_u64(1);
        let second = Ipv4Addr::new(10, 0, 2, 2);
        assert!(kernel.knows(
            |fact| matches!(fact, L3Fact::Host { mac, port } if *mac == first && port.0 == 1)
        ));
        assert!(
            kernel.knows(
                |fact| matches!(fact, L3Fact::Gateway { mac, .. } if mac.to_u64() == GATEWAY)
            )
        );
        assert!(kernel.knows(|fact| matches!(fact,
            L3Fact::NextHop { address, port, is_owner: true, .. } if *address == second && port.0 == 2)));
        let has_flow = kernel.knows(
            |fact| matches!(fact, L3Fact::Flow { src, dst, .. } if *src == first && *dst == second),
        );
        assert_eq!(has_flow, version == Version::Of13);
        net.cut(net.link("h2", "s1").unwrap()).unwrap();
        net.run_for(ms(1_000));
        assert!(
            !kernel.knows(
                |fact| matches!(fact, L3Fact::NextHop { address, .. } if *address == second)
            ),
            "it has left"
        );
    }
}

#[test]
fn the_kernel_forgets_flows_that_expire() {
    let kernel = Arc::new(Recorder::default());
    let (mut net, l3) = routed_with("single,3", Version::Of13, Some(Arc::clone(&kernel)));
    assert!(net.ping_all().unwrap().is_complete());
    hand_echo(&net, [10, 0, 2, 2], 64);
    net.run_for(ms(100));
    assert!(kernel.knows(|fact| matches!(fact, L3Fact::Flow { .. })));
    net.run_for(Duration::from_secs(70));
    assert_eq!(l3.flows(), 0);
    assert!(!kernel.knows(|fact| matches!(fact, L3Fact::Flow { .. })));
}

/// Packets to another switch, or to a gateway itself, are left to the program.
#[test]
fn the_kernel_gets_no_hosts_of_other_switches() {
    let kernel = Arc::new(Recorder::default());
    let (mut net, _) = routed_with("linear,3", Version::Of13, Some(Arc::clone(&kernel)));
    assert!(net.ping_all().unwrap().is_complete());
    hand_echo(&net, [10, 0, 2, 2], 64);
    hand_echo(&net, [10, 0, 2, 254], 64);
    net.run_for(ms(100));
    assert!(!kernel.knows(|fact| matches!(fact,
        L3Fact::NextHop { address, .. } if address.octets()[2] == 2)));
}

#[test]
fn icmp_errors_are_rate_limited() {
    let (mut net, _) = routed("linear,3", Version::Of13);
    assert!(net.ping_all().unwrap().is_complete());
    let heard = listen(&mut net, "h1");
    for _ in 0..1_000 {
        hand_echo(&net, [8, 8, 8, 8], 64);
    }
    net.run_for(ms(900));
    let count = heard.borrow().len();
    assert!((100..=200).contains(&count), "{count}");
}

#[test]
fn reports_missing_options() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("subnets.toml");
    let error = |names: &[&str], file: Option<&std::path::Path>| {
        let mut options = options();
        options.l3.l3_config = file.map(std::path::Path::to_owned);
        let result = urtica_apps::add_all(Controller::new(), names, &options);
        result.err().expect("it cannot run").to_string()
    };
    let prefix = "the control program 'l3' cannot run: ";
    assert_eq!(
        error(&["l3"], None),
        format!("{prefix}it needs its subnets; expected --l3-config FILE")
    );
    assert!(error(&["l3"], Some(&file)).contains("the subnets cannot be read from"));
    fs::write(&file, CONFIG.replace("10.0.2.254/24", "10.0.2.254/x")).unwrap();
    assert_eq!(
        error(&["l3"], Some(&file)),
        format!(
            "{prefix}{}: line 9, column 11: '10.0.2.254/x' is not a subnet; expected an IPv4 address and a number of bits up to 32, as in 10.0.1.1/24",
            file.display()
        )
    );
    fs::write(&file, CONFIG).unwrap();
    assert_eq!(
        error(&["routing", "l3"], Some(&file)),
        format!("{prefix}routing would forward its packets first; expected l3 before routing")
    );
}
