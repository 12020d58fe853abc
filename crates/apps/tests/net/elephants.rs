//! Large flows that share links are spread, and small ones stay on their paths.

use crate::support::{hold, ms, options};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::{Elephants, ElephantsConfig, Routing};
use urtica_controller::Controller;
use urtica_net::simulate::{Programs, Scenario};
use urtica_net::{Datagrams, End, FlowId, Net, NetConfig};
use urtica_services::{
    Discovery, Hosts, HostsConfig, NeighbourProxy, ProvisionConfig, Provisioner, Routes,
};
use urtica_switch::{Forwarding, SwitchConfig};
use urtica_topology::spec::{LinkProperties, TopologySpec};

/// The bandwidth of all links: small, so that few packets fill them.
const CAPACITY_BPS: u64 = 2_000_000;

/// Creates a controller with routing, and with elephants if `moves`.
fn balancing(config: ElephantsConfig, moves: bool) -> (Controller, Elephants) {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let provisioner = Provisioner::new(ProvisionConfig::default());
    let elephants = Elephants::new(&hosts, &routes, &provisioner, config);
    let controller = Controller::new()
        .program(discovery)
        .program(hosts.clone())
        .program(NeighbourProxy::new(&hosts))
        .program(routes.clone())
        .program(provisioner)
        .program(Routing::new(&hosts, &routes));
    match moves {
        true => (controller.program(elephants.clone()), elephants),
        false => (controller, elephants),
    }
}

/// Creates a fat tree in which flows are measured each second.
fn fat_tree(moves: bool) -> (Net, Elephants) {
    let config = ElephantsConfig {
        interval: ms(1_000),
        ..ElephantsConfig::default()
    };
    let (controller, elephants) = balancing(config, moves);
    (fat_tree_with(controller), elephants)
}

/// Creates a fat tree of links with this bandwidth, in which all hosts are known.
pub fn fat_tree_with(controller: Controller) -> Net {
    let links = LinkProperties {
        bandwidth_bps: Some(CAPACITY_BPS),
        ..LinkProperties::default()
    };
    let mut plan = TopologySpec::FatTree { k: 4 }.plan().unwrap();
    plan.links
        .iter_mut()
        .for_each(|link| link.properties = links);
    let config = NetConfig {
        switch: SwitchConfig {
            forwarding: Forwarding::Plain,
            ..SwitchConfig::default()
        },
        queue_bytes: 16 << 10,
        host_links: links,
        ..NetConfig::default()
    };
    let mut net = Net::new(&plan, config).unwrap();
    net.start_controller(controller).unwrap();
    net.run_for(ms(1_000));
    assert!(net.ping_all().unwrap().is_complete());
    net
}

/// Makes each of the first eight hosts send datagrams to the host eight further, in another pod, at nearly the rate of its
/// link.
fn start_flows(net: &mut Net, time: Duration) -> Vec<FlowId> {
    start_flows_every(net, ms(6), time)
}

/// Like `start_flows`, with a datagram in each interval.
fn start_flows_every(net: &mut Net, interval: Duration, time: Duration) -> Vec<FlowId> {
    let datagrams = Datagrams {
        count: (time.as_millis() / interval.as_millis()) as u64,
        payload_bytes: 1_300,
        interval,
    };
    let hosts: Vec<_> = net.hosts().collect();
    let pairs = hosts[..8].iter().zip(&hosts[8..]);
    pairs
        .map(|(&from, &to)| net.start_datagrams(from, to, datagrams).unwrap())
        .collect()
}

/// Returns the number of datagrams that arrive of each thousand, in ten seconds after the first five.
pub fn throughput(net: &mut Net) -> u64 {
    let flows = start_flows(net, Duration::from_secs(60));
    let count = |net: &Net| {
        let reports = flows.iter().map(|flow| net.flow_report(*flow).unwrap());
        reports.fold((0, 0), |sum, report| {
            (sum.0 + report.sent, sum.1 + report.received)
        })
    };
    net.run_for(Duration::from_secs(5));
    let before = count(net);
    net.run_for(Duration::from_secs(10));
    let after = count(net);
    (after.1 - before.1) * 1_000 / (after.0 - before.0)
}

#[test]
fn spreading_large_flows_increases_their_rate() {
    let by_hash = throughput(&mut fat_tree(false).0);
    let (mut net, elephants) = fat_tree(true);
    let by_size = throughput(&mut net);
    assert!(elephants.moved() > 0);
    assert!(by_hash < 800, "{by_hash}: the hash is a bad one");
    assert!(by_size > 990, "{by_size}, and {by_hash} without");
}

#[test]
fn small_flows_return_to_their_paths() {
    let (mut net, elephants) = fat_tree(true);
    let flows = start_flows(&mut net, Duration::from_secs(6));
    net.run_for(Duration::from_secs(5));
    assert!(elephants.moved() > 0);
    net.run_for(Duration::from_secs(30));
    assert!(
        flows
            .iter()
            .all(|flow| net.flow_report(*flow).unwrap().is_done)
    );
    assert_eq!(elephants.moved(), 0);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn moved_flows_leave_cut_links_immediately() {
    let config = ElephantsConfig {
        interval: Duration::from_secs(3),
        ..ElephantsConfig::default()
    };
    let (controller, elephants) = balancing(config, true);
    let mut net = fat_tree_with(controller);
    start_flows(&mut net, Duration::from_secs(60));
    let is_moved = net.run_until(|_| elephants.moved() > 0, Duration::from_secs(20));
    assert!(is_moved);
    // Until the next measurement, flows stay on their paths. Now few links have space for all.
    net.run_for(ms(100));
    net.stop_flows();
    let flows = start_flows_every(&mut net, ms(50), Duration::from_secs(60));
    net.run_for(ms(200));
    // Two of the four core switches, which are the first, have a link to each pod.
    let links: Vec<_> = net.links().collect();
    let cores = [net.switch("s1").unwrap(), net.switch("s3").unwrap()];
    for link in links {
        let ends = net.ends(link).unwrap();
        let is_of_core = ends
            .iter()
            .any(|end| matches!(end, End::Switch(switch, _) if cores.contains(switch)));
        if is_of_core {
            net.cut(link).unwrap();
        }
    }
    net.run_for(ms(300));
    let received = |net: &Net| -> Vec<_> {
        let reports = flows.iter().map(|flow| net.flow_report(*flow).unwrap());
        reports.map(|report| report.received).collect()
    };
    let before = received(&net);
    net.run_for(ms(700));
    for (before, after) in before.into_iter().zip(received(&net)) {
        assert_eq!(after - before, 14, "datagrams of a flow");
    }
}

#[test]
fn pings_are_not_moved() {
    let (mut net, elephants) = fat_tree(true);
    for _ in 0..3 {
        assert!(net.ping_all().unwrap().is_complete());
        net.run_for(ms(500));
    }
    assert_eq!(elephants.moved(), 0);
}

#[test]
fn late_and_leaving_switches_do_not_stop_the_measurement() {
    let (mut net, elephants) = fat_tree(true);
    let switches: Vec<_> = net.switches().collect();
    start_flows(&mut net, Duration::from_secs(60));
    // Requests are pending whenever this happens, since they are sent once a second.
    for (turn, &switch) in switches.iter().enumerate() {
        match turn % 3 {
            0 => net.stall_connection(switch, ms(2_500)).unwrap(),
            1 => net.restart_switch(switch).unwrap(),
            _ => net.break_connection(switch).unwrap(),
        }
        net.run_for(ms(333));
    }
    net.run_for(Duration::from_secs(15));
    assert!(elephants.moved() > 0, "it still works");
    net.stop_flows();
    net.run_for(Duration::from_secs(60));
    assert_eq!(elephants.moved(), 0);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn random_moves_break_no_flows() {
    let most = Rc::new(Cell::new(0));
    let seen = Rc::clone(&most);
    let programs = move || {
        // Every flow with a packet is an elephant.
        let config = ElephantsConfig {
            share_percent: 0,
            interval: ms(300),
            default_capacity_bps: 10_000_000,
        };
        let (controller, elephants) = balancing(config, true);
        let seen = Rc::clone(&seen);
        let look = move |_: &Net| {
            seen.set(seen.get().max(elephants.moved()));
            Ok(())
        };
        Programs {
            controller,
            reservations: Some(Box::new(look)),
        }
    };
    let scenario = Scenario {
        // Entries of routing expire after a minute.
        quiescent_after: Duration::from_secs(100),
        entries_when_quiescent: 8,
        flows: 20,
        ..Scenario::on_loops(programs)
    };
    hold(&scenario, 0..8);
    assert!(most.get() > 0, "flows are moved");
}

#[test]
fn reports_missing_options() {
    let result = urtica_apps::add_all(Controller::new(), &["elephants"], &options());
    assert_eq!(
        result.err().unwrap().to_string(),
        "the control program 'elephants' cannot run: it moves flows of routing; expected routing, too"
    );
}
