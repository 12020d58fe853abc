//! Routing over many topologies, and after changes of the network.

use crate::support::{
    APPS, PacketIns, frame, frames_carried, hold, inject, ms, net_with, net_with_controller,
    options, tagged,
};
use std::time::Duration;
use urtica_apps::Routing;
use urtica_controller::{Controller, SessionConfig};
use urtica_net::simulate::{Programs, Scenario};
use urtica_net::{Datagrams, FlowReport, Net};
use urtica_services::{Discovery, Hosts, HostsConfig, Routes};
use urtica_wire::packet::{Arp, ether_type};
use urtica_wire::{MacAddr, Message, Version};

/// Starts a network with routing, and returns a handle to the program.
fn routed(spec: &str) -> (Net, Routing) {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let routing = Routing::new(&hosts, &routes);
    let controller = Controller::new()
        .program(discovery)
        .program(hosts)
        .program(routes)
        .program(routing.clone());
    (net_with_controller(spec, controller), routing)
}

/// Returns the number of entries of each switch.
fn entries(net: &mut Net) -> Vec<usize> {
    let switches = net.switches();
    let count = |switch| net.switch_mut(switch).unwrap().unwrap().entry_count();
    switches.map(count).collect()
}

/// Sends a datagram a millisecond from one host to another, while `meanwhile` runs.
fn send(
    net: &mut Net,
    from: &str,
    to: &str,
    count: u64,
    meanwhile: impl FnOnce(&mut Net),
) -> FlowReport {
    let datagrams = Datagrams {
        count,
        payload_bytes: 64,
        interval: ms(1),
    };
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    let flow = net.start_datagrams(from, to, datagrams).unwrap();
    net.run_for(ms(count / 2));
    meanwhile(net);
    net.run_for(ms(count));
    net.flow_report(flow).unwrap()
}

#[test]
fn all_pairs_reach_each_other_in_all_topologies() {
    for spec in ["linear,4", "ring,6", "torus,3,3", "fattree,4"] {
        let mut net = net_with(spec, APPS, &options());
        let report = net.ping_all().unwrap();
        assert!(report.is_complete(), "{spec}: {report}");
        assert_eq!(report.duplicates, 0, "{spec}");
    }
}

#[test]
fn without_the_neighbour_proxy_floods_reach_each_host_once() {
    let (mut net, routing) = routed("torus,3,3");
    let report = net.ping_all().unwrap();
    assert!(report.is_complete(), "{report}");
    assert_eq!(report.duplicates, 0);
    assert_eq!(routing.flows(), 9 * 8);
}

#[test]
fn flows_leave_cut_links_and_return() {
    let mut net = net_with("ring,5", APPS, &options());
    let link = net.link("s1", "s2").unwrap();
    let report = send(&mut net, "h1", "h3", 1_000, |net| net.cut(link).unwrap());
    // A switch detects it within a millisecond. Datagrams until then are lost, and few after.
    assert!((1..10).contains(&report.lost()), "{report:?}");
    assert_eq!(send(&mut net, "h1", "h3", 500, |_| ()).lost(), 0);
    net.repair(link).unwrap();
    net.run_for(ms(1_000));
    let before = frames_carried(&net, link);
    assert_eq!(send(&mut net, "h1", "h3", 500, |_| ()).lost(), 0);
    assert!(
        frames_carried(&net, link) >= before + 500,
        "the short path is used again"
    );
}

#[test]
fn flows_end_with_their_hosts() {
    let (mut net, routing) = routed("ring,4");
    assert!(net.ping_all().unwrap().is_complete());
    assert_eq!(routing.flows(), 4 * 3);
    net.cut(net.link("h1", "s1").unwrap()).unwrap();
    net.run_for(ms(300));
    assert_eq!(routing.flows(), 3 * 2, "a host without a link has left");
    net.stop_switch(net.switch("s2").unwrap()).unwrap();
    net.run_for(Duration::from_secs(20));
    assert_eq!(routing.flows(), 2, "hosts leave with their switch");
}

#[test]
fn separated_networks_join_again() {
    let mut net = net_with("linear,3", APPS, &options());
    assert!(net.ping_all().unwrap().is_complete());
    let link = net.link("s1", "s2").unwrap();
    net.cut(link).unwrap();
    net.run_for(ms(300));
    let report = net.ping_all().unwrap();
    assert_eq!(report.failed.len(), 4, "{report}");
    net.repair(link).unwrap();
    net.run_for(ms(1_000));
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn restarted_switches_get_their_entries_again() {
    let (mut net, routing) = routed("linear,3");
    assert!(net.ping_all().unwrap().is_complete());
    let s2 = net.switch("s2").unwrap();
    let entries = |net: &mut Net| net.switch_mut(s2).unwrap().unwrap().entry_count();
    let before = entries(&mut net);
    // The connection of a switch that restarts immediately is replaced, not lost.
    net.restart_switch(s2).unwrap();
    net.run_for(Duration::from_secs(3));
    assert!(net.ping_all().unwrap().is_complete());
    assert_eq!(entries(&mut net), before);
    assert_eq!(routing.flows(), 3 * 2);
}

#[test]
fn restarted_controllers_leave_no_old_entries() {
    let mut net = net_with("ring,4", APPS, &options());
    let s1 = net.switch("s1").unwrap();
    let entries = |net: &mut Net| net.switch_mut(s1).unwrap().unwrap().entry_count();
    let fresh = entries(&mut net);
    assert!(net.ping_all().unwrap().is_complete());
    assert!(entries(&mut net) > fresh);
    let controller = urtica_apps::add_all(Controller::new(), APPS, &options()).unwrap();
    net.start_controller(controller).unwrap();
    // Only used entries stay, and these are unused.
    net.run_for(Duration::from_secs(70));
    assert_eq!(entries(&mut net), fresh);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn unused_flows_are_forgotten() {
    let (mut net, routing) = routed("ring,4");
    let s1 = net.switch("s1").unwrap();
    let entries = |net: &mut Net| net.switch_mut(s1).unwrap().unwrap().entry_count();
    let fresh = entries(&mut net);
    assert!(net.ping_all().unwrap().is_complete());
    net.run_for(Duration::from_secs(70));
    assert_eq!(routing.flows(), 0);
    assert_eq!(entries(&mut net), fresh);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn flows_spread_over_equal_paths() {
    let mut net = net_with("fattree,4", APPS, &options());
    let before: Vec<_> = net.links().map(|link| frames_carried(&net, link)).collect();
    assert!(net.ping_all().unwrap().is_complete());
    // Each pair exchanges two pings and two replies; a link with only probes is idle.
    let used = net
        .links()
        .zip(before)
        .filter(|&(link, before)| frames_carried(&net, link) > before + 20);
    assert_eq!(used.count(), net.links().len(), "no link is idle");
}

#[test]
fn routes_with_openflow_1_0() {
    let mut session = SessionConfig::default();
    session.versions = vec![Version::Of10];
    let controller = Controller::new().session(session);
    let controller = urtica_apps::add_all(controller, APPS, &options()).unwrap();
    let mut net = net_with_controller("ring,5", controller);
    assert!(net.ping_all().unwrap().is_complete());
    net.cut(net.link("s1", "s2").unwrap()).unwrap();
    net.run_for(ms(300));
    assert!(net.ping_all().unwrap().is_complete());
}

/// A host moves while it sends, and while it is silent and others send to it: flows follow, no host receives a packet twice, and
/// ended flows leave no entries.
#[test]
fn flows_follow_moving_hosts() {
    let (mut net, routing) = routed("ring,5");
    let fresh = entries(&mut net);
    assert!(net.ping_all().unwrap().is_complete());
    let h1 = net.host("h1").unwrap();
    for (from, to) in [("h1", "h3"), ("h3", "h1")] {
        for home in ["s4", "s2", "s1"] {
            let home = net.switch(home).unwrap();
            let report = send(&mut net, from, to, 2_000, |net| {
                net.move_host(h1, home).unwrap();
                net.run_for(ms(2_000));
            });
            // It is resolved once its port is known to be a host port, and a sending host is learnt immediately.
            assert!(report.lost() < 500, "{from} to {to}: {report:?}");
            assert_eq!(send(&mut net, from, to, 200, |_| ()).lost(), 0);
            let report = net.ping_all().unwrap();
            assert!(report.is_complete(), "{report}");
            assert_eq!(report.duplicates, 0);
        }
    }
    net.run_for(Duration::from_secs(70));
    assert_eq!(routing.flows(), 0);
    assert_eq!(entries(&mut net), fresh);
}

/// The host's port keeps its link, as behind an unmanaged switch: it falls silent there, and sends from another port.
#[test]
fn flows_follow_hosts_whose_port_stays_up() {
    let (mut net, routing) = routed("linear,3");
    assert!(net.ping_all().unwrap().is_complete());
    let h3 = net.host("h3").unwrap();
    net.set_loss(net.link("h1", "s1").unwrap(), 1.0).unwrap();
    let mut payload = Vec::new();
    let h1 = MacAddr::from_u64(1);
    let address = [10, 0, 0, 1].into();
    Arp::request(h1, address, address).write(&mut payload);
    let announcement = frame(1, MacAddr::BROADCAST.to_u64(), ether_type::ARP, &payload);
    // At the port of the third host, which receives packets for the first from now on.
    inject(&net, "s3", 1, [announcement]);
    net.run_for(ms(2_000));
    let before = net.host_counters(h3).unwrap().for_others;
    send(&mut net, "h2", "h1", 200, |_| ());
    assert_eq!(net.host_counters(h3).unwrap().for_others - before, 200);
    assert_eq!(routing.flows(), 3 * 2);
}

#[test]
fn moved_hosts_leave_no_entries_behind() {
    let (mut net, routing) = routed("linear,4");
    let fresh = entries(&mut net);
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    for _ in 0..2 {
        assert_eq!(net.ping(h1, h2).unwrap().received, 1);
    }
    assert_eq!((routing.flows(), entries(&mut net)[3]), (2, fresh[3]));
    // Both hosts move from s1 and s2 to one other switch.
    for host in [h1, h2] {
        net.move_host(host, net.switch("s4").unwrap()).unwrap();
    }
    net.run_for(ms(500));
    for (from, to) in [(h1, h2), (h2, h1)] {
        assert!(net.start_ping(from, to, 3).is_ok());
        net.run_for(Duration::from_secs(4));
    }
    assert_eq!(net.ping(h1, h2).unwrap().received, 1);
    assert_eq!(
        entries(&mut net)[..3],
        fresh[..3],
        "s1 to s3 have no part in it"
    );
    assert_eq!((routing.flows(), entries(&mut net)[3]), (2, fresh[3] + 2));
}

/// The sender's switch has an entry to the old port, and accepts no other for a while.
#[test]
fn packets_reach_hosts_that_moved_behind_a_slow_switch() {
    let (mut net, _routing) = routed("linear,3");
    let [h1, h3] = ["h1", "h3"].map(|name| net.host(name).unwrap());
    assert_eq!(net.ping(h1, h3).unwrap().received, 1);
    let datagrams = Datagrams {
        count: 20_000,
        payload_bytes: 64,
        interval: ms(1),
    };
    let flow = net.start_datagrams(h1, h3, datagrams).unwrap();
    let s1 = net.switch("s1").unwrap();
    let datapath_id = net.datapath_id(s1).unwrap();
    net.move_host(h3, s1).unwrap();
    net.run_until(
        |net| {
            let network = net.controller().unwrap();
            let much = Message::EchoReply(&[0; 60_000]);
            while network.send(datapath_id, &much).is_ok() {}
            false
        },
        ms(500),
    );
    net.run_for(Duration::from_secs(8));
    let link = net.link("s1", "s2").unwrap();
    let (received, carried) = (
        net.flow_report(flow).unwrap().received,
        frames_carried(&net, link),
    );
    net.run_for(Duration::from_secs(2));
    let received = net.flow_report(flow).unwrap().received - received;
    assert!((1_999..=2_001).contains(&received), "{received}");
    let astray = frames_carried(&net, link) - carried;
    assert!(
        astray < 100,
        "{astray} frames by a link that only probes use"
    );
}

/// Random networks, communicating hosts, and random faults: links cut, switches off, connections and the controller lost.
#[test]
fn hosts_reach_each_other_again_after_random_faults() {
    let programs = || Programs {
        controller: urtica_apps::add_all(Controller::new(), APPS, &options()).unwrap(),
        reservations: None,
    };
    let mut scenario = Scenario::on_loops(programs);
    // Entries of flows live for a minute after the last packet.
    scenario.entries_when_quiescent = 300;
    hold(&scenario, 1..=8);
}

#[test]
fn priority_tags_and_service_tags_are_routed_by_entries() {
    for (tpid, vid) in [
        (ether_type::VLAN, 0),
        (ether_type::SERVICE_VLAN, 0),
        (ether_type::SERVICE_VLAN, 7),
        (ether_type::VLAN, 7),
    ] {
        let mut net = net_with("linear,2", APPS, &options());
        let packet_ins = PacketIns::default();
        net.watch(packet_ins.clone());
        for number in 0..20 {
            for (switch, from, to) in [("s1", 1, 2), ("s2", 2, 1)] {
                let frame = frame(from, to, 0x88b5, b"tagged");
                inject(&net, switch, 1, [tagged(tpid, vid, frame)]);
            }
            net.run_for(ms(50));
            if number == 4 {
                packet_ins.take();
            }
        }
        assert_eq!(packet_ins.take(), 0, "{tpid:#x}, VID {vid}");
    }
}
