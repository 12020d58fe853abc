//! The detection of scans and floods: only their sources are blocked, within a bounded time.

use crate::support::{frame, hold, inject, ms, net_with, net_with_controller, options};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use urtica_apps::{Offence, Options, Routing, Security, SecurityConfig};
use urtica_controller::{Controller, SessionConfig};
use urtica_net::simulate::{Programs, Scenario};
use urtica_net::watch::Violation;
use urtica_net::{Datagrams, Net};
use urtica_services::{Discovery, Hosts, HostsConfig, NeighbourProxy, Routes};
use urtica_topology::PortId;
use urtica_wire::packet::{
    Arp, Icmpv4, Icmpv6, Ipv4, Ipv6, Nd, PseudoHeader, Tcp, ether_type, icmpv4, icmpv6, ip_proto,
    tcp,
};
use urtica_wire::{DatapathId, MacAddr, Message, PortNo, Version};

/// Starts a network with the services, security, and routing.
pub fn watched(spec: &str, config: SecurityConfig) -> (Net, Security) {
    watched_with(SessionConfig::default(), spec, config)
}

fn watched_with(session: SessionConfig, spec: &str, config: SecurityConfig) -> (Net, Security) {
    let (controller, security) = watching(session, config);
    (net_with_controller(spec, controller), security)
}

fn watching(session: SessionConfig, config: SecurityConfig) -> (Controller, Security) {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let security = Security::new(&discovery, config);
    let controller = Controller::new()
        .session(session)
        .program(discovery)
        .program(hosts.clone())
        .program(routes.clone())
        .program(security.questions())
        .program(NeighbourProxy::new(&hosts))
        .program(security.clone())
        .program(Routing::new(&hosts, &routes));
    (controller, security)
}

fn ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + number)
}

fn packet(src: u32, dst: u32, proto: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let header = Ipv4 {
        dscp: 0,
        ecn: 0,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        proto,
        src: ipv4(src),
        dst: ipv4(dst),
        options: Vec::new(),
    };
    header.write(&mut packet, payload).unwrap();
    packet
}

/// Builds a TCP segment from one host's port to another's. A sender's IP address has its number; `mac` is its MAC address.
pub fn segment(
    mac: u64,
    (src, src_port): (u32, u16),
    (dst, dst_port): (u32, u16),
    flags: u16,
) -> Vec<u8> {
    let header = Tcp {
        src_port,
        dst_port,
        seq: 1,
        ack: 0,
        flags,
        window: 1_000,
        urgent: 0,
        options: Vec::new(),
    };
    let addresses = PseudoHeader::V4 {
        src: ipv4(src),
        dst: ipv4(dst),
    };
    let mut segment = Vec::new();
    header.write(&mut segment, &addresses, &[]).unwrap();
    frame(
        mac,
        dst.into(),
        ether_type::IPV4,
        &packet(src, dst, ip_proto::TCP, &segment),
    )
}

/// Builds a segment that requests a connection, from and to these hosts and ports.
pub fn syn(from: (u32, u16), to: (u32, u16)) -> Vec<u8> {
    segment(from.0.into(), from, to, tcp::flags::SYN)
}

pub fn who_has(src: u32, dst: u32) -> Vec<u8> {
    let mut question = Vec::new();
    Arp::request(MacAddr::from_u64(src.into()), ipv4(src), ipv4(dst)).write(&mut question);
    frame(
        src.into(),
        MacAddr::BROADCAST.to_u64(),
        ether_type::ARP,
        &question,
    )
}

/// Like [`who_has`], over IPv6.
fn solicits(src: u32, dst: u32) -> Vec<u8> {
    let address = |host: u32| Ipv6Addr::from_bits(0xfd00_u128 << 112 | u128::from(host));
    let (sender, target) = (address(src), address(dst));
    let group = Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | u128::from(dst));
    let header = Ipv6 {
        hop_limit: 255,
        ..Ipv6::new(sender, group, ip_proto::ICMPV6)
    };
    let nd = Nd {
        flags: 0,
        target,
        sll: Some(MacAddr::from_u64(src.into())),
        tll: None,
    };
    let icmp = Icmpv6 {
        icmp_type: icmpv6::NEIGHBOR_SOLICITATION,
        icmp_code: 0,
    };
    let (mut body, mut message, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    nd.write(&mut body);
    icmp.write(&mut message, &header.pseudo_header(), &body);
    header.write(&mut packet, &message).unwrap();
    frame(
        src.into(),
        0x3333_ff00_0000 | u64::from(dst),
        ether_type::IPV6,
        &packet,
    )
}

pub fn echo_request(src: u32, dst: u32) -> Vec<u8> {
    let mut request = Vec::new();
    let header = Icmpv4 {
        icmp_type: icmpv4::ECHO_REQUEST,
        icmp_code: 0,
        rest: [0, 1, 0, 1],
    };
    header.write(&mut request, b"scan");
    frame(
        src.into(),
        dst.into(),
        ether_type::IPV4,
        &packet(src, dst, ip_proto::ICMPV4, &request),
    )
}

fn pings(net: &mut Net, from: &str, to: &str) -> bool {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    net.ping(from, to).unwrap().received == 1
}

/// Returns the blocked sources: port, address and offence.
pub fn dropped(security: &Security) -> Vec<(PortId, Option<MacAddr>, Offence)> {
    let dropped = security.dropped().into_iter();
    dropped
        .map(|dropped| (dropped.port, dropped.source, dropped.offence))
        .collect()
}

pub fn port(switch: u64, port_no: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(port_no))
}

/// Makes host 1 of a line send frames to host 3, and checks that only host 1 is blocked, within half a second.
fn offends(offence: Offence, frames: impl IntoIterator<Item = Vec<u8>>) {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    inject(&net, "s1", 1, frames);
    net.run_for(ms(500));
    let h1 = Some(MacAddr::from_u64(1));
    assert_eq!(dropped(&security), [(port(1, 1), h1, offence)]);
    assert!(!pings(&mut net, "h1", "h2"), "{offence:?}");
    assert!(pings(&mut net, "h2", "h3"));
    net.run_for(Duration::from_secs(65));
    assert_eq!(dropped(&security), [], "{offence:?}");
    assert!(pings(&mut net, "h1", "h3"), "{offence:?}: it is unblocked");
}

#[test]
fn port_scans_are_blocked_for_a_while() {
    offends(
        Offence::PortScan,
        (1..=120).map(|port| syn((1, 4_000), (3, port))),
    );
}

#[test]
fn fragments_do_not_hide_scans() {
    let mut fragment = syn((1, 4_000), (3, 80));
    // A fragment of the second eight bytes of a packet.
    fragment[14 + 6..14 + 8].copy_from_slice(&[0x20, 1]);
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    inject(&net, "s1", 1, [fragment]);
    net.run_for(ms(500));
    let scan = (1..=120).map(|port| syn((1, 4_000), (3, port)));
    inject(&net, "s1", 1, scan);
    net.run_for(ms(500));
    let h1 = Some(MacAddr::from_u64(1));
    assert_eq!(dropped(&security), [(port(1, 1), h1, Offence::PortScan)]);
}

#[test]
fn slow_switches_are_updated_later() {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    let scan = (1..=120).map(|port| syn((1, 4_000), (3, port)));
    inject(&net, "s1", 1, scan);
    let is_seen = net.run_until(
        |net| {
            let much = Message::EchoReply(&[0; 60_000]);
            let network = net.controller().unwrap();
            while network.send(DatapathId(1), &much).is_ok() {}
            !security.dropped().is_empty()
        },
        ms(500),
    );
    assert!(is_seen);
    net.run_for(ms(5_000));
    assert!(!pings(&mut net, "h1", "h2"));
}

#[test]
fn sweeps_are_blocked() {
    offends(Offence::Sweep, (10..150).map(|dst| who_has(1, dst)));
    offends(Offence::Sweep, (10..150).map(|dst| echo_request(1, dst)));
}

#[test]
fn syn_floods_are_blocked() {
    offends(
        Offence::Flood,
        (0..1_100).map(|port| syn((1, 1_000 + port), (3, 80))),
    );
}

#[test]
fn ports_with_forged_senders_are_blocked() {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    // By now, all switches would have connected.
    net.run_for(Duration::from_secs(15));
    let mut most = 0;
    for round in 0..20 {
        let sources = (0..300).map(|number| 0x0200_0000_0000 + round * 300 + number);
        inject(
            &net,
            "s1",
            1,
            sources.map(|mac| segment(mac, (1, 4_000), (3, 80), tcp::flags::SYN)),
        );
        net.run_for(ms(50));
        most = most.max(security.notes());
    }
    assert_eq!(dropped(&security), [(port(1, 1), None, Offence::Spoofing)]);
    assert!(most < 20_000, "{most} notes");
    assert!(!pings(&mut net, "h1", "h2"));
    assert!(pings(&mut net, "h2", "h3"));
}

/// Returns frames from more hosts than a port may have.
fn from_many() -> impl Iterator<Item = Vec<u8>> {
    (0..300).map(|number| {
        segment(
            0x0200_0000_0000 + number,
            (1, 4_000),
            (2, 80),
            tcp::flags::SYN,
        )
    })
}

/// Breaks a switch's connection to the controller repeatedly.
fn keep_away(net: &mut Net, switch: &str, time: Duration) {
    let (switch, end) = (net.switch(switch).unwrap(), net.now() + time);
    while net.now() < end {
        net.break_connection(switch).unwrap();
        net.run_for(ms(1));
    }
}

#[test]
fn hosts_behind_a_late_switch_are_not_blocked() {
    let (mut net, _) = watched("linear,2", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    net.stop_controller();
    let (controller, security) = watching(SessionConfig::default(), SecurityConfig::default());
    net.start_controller(controller).unwrap();
    keep_away(&mut net, "s1", Duration::from_secs(4));
    inject(&net, "s2", 2, from_many());
    net.run_for(ms(1));
    keep_away(&mut net, "s1", Duration::from_secs(4));
    assert_eq!(dropped(&security), []);
    net.run_for(Duration::from_secs(10));
    assert_eq!(dropped(&security), []);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn ports_that_become_link_ports_are_unblocked() {
    let (mut net, _) = watched("linear,2", SecurityConfig::default());
    net.stop_controller();
    let (controller, security) = watching(SessionConfig::default(), SecurityConfig::default());
    net.start_controller(controller).unwrap();
    keep_away(&mut net, "s1", Duration::from_secs(16));
    inject(&net, "s2", 2, from_many());
    net.run_for(ms(1));
    keep_away(&mut net, "s1", Duration::from_secs(1));
    assert_eq!(dropped(&security), [(port(2, 2), None, Offence::Spoofing)]);
    net.run_for(Duration::from_secs(10));
    assert_eq!(dropped(&security), []);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn hosts_behind_a_switch_without_controller_are_not_blocked() {
    let (mut net, security) = watched("linear,2", SecurityConfig::default());
    net.run_for(Duration::from_secs(20));
    keep_away(&mut net, "s1", Duration::from_secs(20));
    inject(&net, "s2", 2, from_many());
    net.run_for(ms(1));
    keep_away(&mut net, "s1", Duration::from_secs(1));
    assert_eq!(dropped(&security), []);
    // After it has been down, the port is like any other.
    let link = net.link("s1", "s2").unwrap();
    net.cut(link).unwrap();
    keep_away(&mut net, "s1", ms(100));
    net.repair(link).unwrap();
    keep_away(&mut net, "s1", Duration::from_secs(1));
    inject(&net, "s2", 2, from_many());
    net.run_for(ms(1));
    keep_away(&mut net, "s1", Duration::from_secs(1));
    assert_eq!(dropped(&security), [(port(2, 2), None, Offence::Spoofing)]);
}

#[test]
fn sweeps_are_detected_in_any_order_of_programs() {
    for apps in [&["routing", "security"], &["security", "routing"]] {
        for question in [who_has, solicits] {
            let mut net = net_with("linear,3", apps, &options());
            assert!(net.ping_all().unwrap().is_complete());
            inject(&net, "s1", 1, (10..150).map(|dst| question(1, dst)));
            net.run_for(ms(500));
            assert!(!pings(&mut net, "h1", "h2"), "{apps:?}");
            assert!(pings(&mut net, "h2", "h3"), "{apps:?}");
        }
    }
}

#[test]
fn ordinary_traffic_is_not_blocked() {
    let (mut net, security) = watched("fattree,4", SecurityConfig::default());
    for _ in 0..2 {
        let report = net.ping_all().unwrap();
        assert!(report.is_complete(), "{report}");
        assert_eq!(report.duplicates, 0);
    }
    let hosts: Vec<_> = net.hosts().collect();
    for (&from, &to) in hosts.iter().zip(hosts.iter().rev()) {
        net.start_stream(from, to, 200_000).unwrap();
        let datagrams = Datagrams {
            count: 500,
            payload_bytes: 64,
            interval: ms(2),
        };
        net.start_datagrams(from, to, datagrams).unwrap();
    }
    net.run_for(Duration::from_secs(5));
    assert_eq!(dropped(&security), []);
}

#[test]
fn servers_of_many_hosts_are_not_blocked() {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    for round in 0..4_u16 {
        for client in [1, 2] {
            let ports = (0..200).map(|port| 1_000 + round * 200 + port);
            let asked = ports.clone().map(|port| syn((client, port), (3, 5_001)));
            inject(&net, &format!("s{client}"), 1, asked);
            net.run_for(ms(250));
            let flags = tcp::flags::SYN | tcp::flags::ACK;
            let answers = ports.map(|port| segment(3, (3, 5_001), (client, port), flags));
            inject(&net, "s3", 1, answers);
            net.run_for(ms(250));
        }
    }
    // Each client has started 800 flows; the server has answered 1600.
    assert_eq!(dropped(&security), []);
    assert!(security.notes() > 1_600);
}

#[test]
fn allowed_hosts_may_scan() {
    let config = SecurityConfig {
        allowed: [MacAddr::from_u64(1)].into(),
        ..SecurityConfig::default()
    };
    let (mut net, security) = watched("linear,3", config);
    inject(
        &net,
        "s1",
        1,
        (1..=120).map(|port| syn((1, 4_000), (3, port))),
    );
    net.run_for(ms(500));
    assert_eq!(dropped(&security), []);
}

#[test]
fn unbounded_limits_block_no_hosts() {
    let config = SecurityConfig {
        max_ports: usize::MAX,
        max_destinations: usize::MAX,
        max_flows: usize::MAX,
        max_sources: usize::MAX,
        window: Duration::MAX,
        drop_s: u16::MAX,
        ..SecurityConfig::default()
    };
    let (mut net, security) = watched("linear,2", config);
    let scan = (1..=120).map(|port| syn((1, 4_000), (2, port)));
    inject(&net, "s1", 1, scan);
    net.run_for(ms(500));
    assert_eq!(dropped(&security), []);
    let report = net.ping_all().unwrap();
    assert!(report.is_complete(), "its switch is still served: {report}");
}

#[test]
fn slow_scans_are_not_blocked() {
    let (mut net, security) = watched("linear,2", SecurityConfig::default());
    for port in 0..20 {
        inject(
            &net,
            "s1",
            1,
            (0..9).map(|number| syn((1, 4_000), (2, 1 + port * 9 + number))),
        );
        net.run_for(ms(1_000));
    }
    assert_eq!(dropped(&security), []);
}

#[test]
fn restarted_switches_get_their_blocks_again() {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    inject(
        &net,
        "s1",
        1,
        (1..=120).map(|port| syn((1, 4_000), (3, port))),
    );
    net.run_for(ms(500));
    net.restart_switch(net.switch("s1").unwrap()).unwrap();
    net.run_for(Duration::from_secs(3));
    assert_eq!(dropped(&security).len(), 1);
    assert!(!pings(&mut net, "h1", "h2"));
}

#[test]
fn openflow_1_0_packets_are_inspected_by_the_controller() {
    let mut session = SessionConfig::default();
    session.versions = vec![Version::Of10];
    let (mut net, security) = watched_with(session, "linear,3", SecurityConfig::default());
    for _ in 0..3 {
        assert!(net.ping_all().unwrap().is_complete());
    }
    assert_eq!(dropped(&security), []);
    inject(
        &net,
        "s1",
        1,
        (1..=120).map(|port| syn((1, 4_000), (3, port))),
    );
    net.run_for(ms(500));
    assert_eq!(dropped(&security).len(), 1);
    assert!(!pings(&mut net, "h1", "h2"));
    assert!(pings(&mut net, "h2", "h3"));
}

#[test]
fn runs_by_name_and_refuses_the_firewall() {
    let apps = &["discovery", "hosts", "routing", "security"];
    let mut net = net_with("ring,4", apps, &options());
    assert!(net.ping_all().unwrap().is_complete());
    let error = |names: &[&str], options: &Options| {
        let result = urtica_apps::add_all(Controller::new(), names, options);
        result.err().expect("it cannot run").to_string()
    };
    assert_eq!(
        error(&["security", "firewall"], &options()),
        "the control program 'security' cannot run: the firewall passes flows that this program must inspect; expected one of the two"
    );
    let mut wrong = options();
    wrong.security.security_ports = Some(0);
    assert_eq!(
        error(&["security"], &wrong),
        "the control program 'security' cannot run: --security-ports is 0; expected at least 1"
    );
}

#[test]
fn random_faults_block_no_hosts() {
    let programs = || {
        let (controller, security) = watching(SessionConfig::default(), SecurityConfig::default());
        let check = move |_: &Net| match dropped(&security).first() {
            None => Ok(()),
            Some(dropped) => Err(Violation::new(format!("{dropped:?} is dropped"))),
        };
        Programs {
            controller,
            reservations: Some(Box::new(check)),
        }
    };
    let scenario = Scenario {
        // Entries of routing expire after a minute.
        quiescent_after: Duration::from_secs(100),
        entries_when_quiescent: 14,
        versions: vec![Version::Of13],
        ..Scenario::on_loops(programs)
    };
    hold(&scenario, 0..8);
}

/// Builds a packet with a forged source address, from host 1 to host 3.
pub fn from_made_up(number: u32, proto: u8, payload: &[u8], dst_mac: u64) -> Vec<u8> {
    let packet = packet(1_000 + number, 3, proto, payload);
    frame(1, dst_mac, ether_type::IPV4, &packet)
}

pub fn icmp(icmp_type: u8, icmp_code: u8) -> Vec<u8> {
    let mut message = Vec::new();
    let header = Icmpv4 {
        icmp_type,
        icmp_code,
        rest: [0, 1, 0, 1],
    };
    header.write(&mut message, &[0; 28]);
    message
}

/// Builds an ARP reply of host 3.
fn is_at(dst: u32) -> Vec<u8> {
    let mut reply = Vec::new();
    let asked = Arp::request(MacAddr::from_u64(1), ipv4(dst), ipv4(3));
    asked.reply(MacAddr::from_u64(3)).write(&mut reply);
    frame(3, 1, ether_type::ARP, &reply)
}

/// Checks that host 3 is not blocked for packets that host 1 provokes, but is blocked for unprovoked ones.
fn is_provoked(
    what: &str,
    count: u32,
    provokes: impl Fn(u32) -> Vec<u8>,
    answers: impl Fn(u32) -> Vec<u8>,
) {
    for provoked in [true, false] {
        let (mut net, security) = watched("linear,3", SecurityConfig::default());
        assert!(net.ping_all().unwrap().is_complete());
        if provoked {
            inject(&net, "s1", 1, (0..count).map(&provokes));
            net.run_for(ms(20));
        }
        inject(&net, "s3", 1, (0..count).map(&answers));
        net.run_for(ms(500));
        let h3 = Some(MacAddr::from_u64(3));
        let is_dropped = dropped(&security)
            .iter()
            .any(|(_, source, _)| *source == h3);
        assert_eq!(is_dropped, !provoked, "{what}: {:?}", dropped(&security));
    }
}

#[test]
fn provoked_packets_do_not_count() {
    let ping = icmp(icmpv4::ECHO_REQUEST, 0);
    let echo = |number| from_made_up(number, ip_proto::ICMPV4, &ping, 3);
    let asks = |number| who_has(3, 1_000 + number);
    is_provoked("requests for the senders of pings", 200, echo, asks);
    let to_all = |number| {
        let to_all = MacAddr::BROADCAST.to_u64();
        from_made_up(number, ip_proto::ICMPV4, &ping, to_all)
    };
    is_provoked("requests for the senders of broadcasts", 200, to_all, asks);
    let unreachable = icmp(icmpv4::DESTINATION_UNREACHABLE, 3);
    let reports = |number| {
        let packet = packet(3, 1_000 + number, ip_proto::ICMPV4, &unreachable);
        frame(3, 1, ether_type::IPV4, &packet)
    };
    let syn_from = |number| {
        let mut frame = syn((1_000 + number, 4_000), (3, 80));
        frame[6..12].copy_from_slice(&MacAddr::from_u64(1).octets());
        frame
    };
    is_provoked("ICMP errors", 200, syn_from, reports);
    let connects_back = |number| syn((3, 5_000), (1_000 + number, 113));
    is_provoked("connections back", 200, syn_from, connects_back);
    let from_other_port = |number: u32| syn((3, 5_000 + number as u16), (1_000 + number, 4_000));
    is_provoked("answers from other ports", 200, syn_from, from_other_port);
    let asks_for_3 = |number| {
        let mut frame = who_has(1_000 + number, 3);
        frame[6..12].copy_from_slice(&MacAddr::from_u64(1).octets());
        frame
    };
    is_provoked("ARP replies", 200, asks_for_3, |number| {
        is_at(1_000 + number)
    });
    // Through host 3, which does not have these addresses.
    let through = |number| {
        let packet = packet(1, 1_000 + number, ip_proto::ICMPV4, &ping);
        frame(1, 3, ether_type::IPV4, &packet)
    };
    is_provoked("requests for next hops", 200, through, asks);
}

#[test]
fn senders_cannot_excuse_sweeps_at_their_own_port() {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    let ping = icmp(icmpv4::ECHO_REQUEST, 0);
    let excuses = (0..200).map(|number| {
        let packet = packet(1_000 + number, 3, ip_proto::ICMPV4, &ping);
        frame(77, 3, ether_type::IPV4, &packet)
    });
    inject(&net, "s3", 1, excuses);
    net.run_for(ms(20));
    inject(
        &net,
        "s3",
        1,
        (0..200).map(|number| who_has(3, 1_000 + number)),
    );
    net.run_for(ms(500));
    let h3 = Some(MacAddr::from_u64(3));
    assert_eq!(dropped(&security), [(port(3, 1), h3, Offence::Sweep)]);
}

#[test]
fn many_servers_on_one_tcp_port_are_no_port_scan() {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    let connects = (0..115).map(|server| syn((1, 4_000), (1_000 + server, 443)));
    inject(&net, "s1", 1, connects);
    net.run_for(ms(500));
    assert_eq!(dropped(&security), []);
}

#[test]
fn floods_are_detected_by_any_differing_field() {
    offends(
        Offence::Flood,
        (0..1_100).map(|number| frame(1, 0x0200_0000_1000 + number, 0x88b5, &[])),
    );
    offends(
        Offence::Flood,
        (0..1_100).map(|number| frame(1, 3, 0x9000 + number, &[])),
    );
    offends(
        Offence::Flood,
        (0..1_100).map(|number: u16| {
            let message = icmp((number >> 8) as u8 + 20, number as u8);
            let packet = packet(1, 3, ip_proto::ICMPV4, &message);
            frame(1, 3, ether_type::IPV4, &packet)
        }),
    );
    offends(
        Offence::Flood,
        (0..1_100).map(|number: u32| {
            let proto = 150 + (number % 100) as u8;
            frame(
                1,
                3,
                ether_type::IPV4,
                &packet(1, 3 + number / 100, proto, &[]),
            )
        }),
    );
}
