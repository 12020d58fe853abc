//! Moves of hosts.

use crate::support::{config, learning_net, ms, net_with, plan};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{End, Net, NetConfig, NetError};
use urtica_switch::FailMode;
use urtica_topology::spec::LinkProperties;
use urtica_wire::{PortNo, PortState};

/// Returns `true` if each of two hosts gets an answer from the other.
fn reach(net: &mut Net, a: &str, b: &str) -> bool {
    let (a, b) = (net.host(a).unwrap(), net.host(b).unwrap());
    [(a, b), (b, a)]
        .into_iter()
        .all(|(from, to)| net.ping(from, to).unwrap().received == 1)
}

/// Moves a host, and waits until its new port is noticed.
fn move_host(net: &mut Net, host: &str, to: &str) -> PortNo {
    let (host, to) = (net.host(host).unwrap(), net.switch(to).unwrap());
    let port_no = net.move_host(host, to).unwrap();
    net.run_for(ms(200));
    port_no
}

#[test]
fn a_host_moves_with_its_link() {
    let mut net = learning_net("linear,3");
    assert!(reach(&mut net, "h1", "h3"));
    // The switch at the end of a line has two ports, for its host and its neighbour.
    assert_eq!(move_host(&mut net, "h1", "s3"), PortNo(3));
    let (s1, s3) = (net.switch("s1").unwrap(), net.switch("s3").unwrap());
    let link = net.link("h1", "s3").unwrap();
    assert_eq!(net.ends(link).unwrap()[1], End::Switch(s3, PortNo(3)));
    assert!(reach(&mut net, "h1", "h3") && reach(&mut net, "h1", "h2"));
    net.stop_switch(s1).unwrap();
    assert!(reach(&mut net, "h1", "h2"));
    net.start_switch(s1).unwrap();
    assert_eq!(move_host(&mut net, "h1", "s1"), PortNo(1), "it is free");
    assert!(reach(&mut net, "h1", "h3"));
}

#[test]
fn a_host_may_move_to_another_port_of_its_switch() {
    let mut net = learning_net("single,2");
    assert!(reach(&mut net, "h1", "h2"));
    assert_eq!(move_host(&mut net, "h1", "s1"), PortNo(3));
    assert!(reach(&mut net, "h1", "h2"));
    assert_eq!(move_host(&mut net, "h1", "s1"), PortNo(1));
    assert!(reach(&mut net, "h1", "h2"));
}

#[test]
fn ports_outlast_switches_that_are_off() {
    let mut net = learning_net("linear,2");
    let s2 = net.switch("s2").unwrap();
    net.stop_switch(s2).unwrap();
    assert_eq!(move_host(&mut net, "h1", "s2"), PortNo(3));
    assert!(!reach(&mut net, "h1", "h2"));
    net.start_switch(s2).unwrap();
    net.run_for(ms(200));
    assert!(reach(&mut net, "h1", "h2"));
    net.restart_switch(s2).unwrap();
    net.run_for(ms(200));
    assert!(reach(&mut net, "h1", "h2"));
}

#[test]
fn a_cut_link_stays_cut_after_a_move() {
    let mut net = learning_net("linear,2");
    let link = net.link("h1", "s1").unwrap();
    net.cut(link).unwrap();
    move_host(&mut net, "h1", "s2");
    assert!(!reach(&mut net, "h1", "h2"));
    net.repair(link).unwrap();
    net.run_for(ms(200));
    assert!(reach(&mut net, "h1", "h2"));
}

#[test]
fn the_controller_is_notified_of_both_ports() {
    let mut net = net_with("linear,2", "l2");
    let ports = |net: &Net, switch: &str| {
        let id = net.datapath_id(net.switch(switch).unwrap()).unwrap();
        let info = net.controller().unwrap().info(id).unwrap();
        let ports = info.ports.iter().filter(|port| !port.port_no.is_reserved());
        let up = ports.map(|port| {
            let is_down = port.state.contains(PortState::LINK_DOWN);
            (port.port_no.0, !is_down)
        });
        up.collect::<Vec<_>>()
    };
    move_host(&mut net, "h1", "s2");
    assert_eq!(ports(&net, "s1"), [(1, false), (2, true)]);
    assert_eq!(ports(&net, "s2"), [(1, true), (2, true), (3, true)]);
    move_host(&mut net, "h1", "s1");
    assert_eq!(ports(&net, "s1"), [(1, true), (2, true)]);
    assert_eq!(ports(&net, "s2"), [(1, true), (2, true), (3, false)]);
}

/// Counts lost frames.
#[derive(Default)]
struct Lost(Rc<Cell<usize>>);

impl Watcher for Lost {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Lost(..) = event {
            self.0.set(self.0.get() + 1);
        }
        Ok(())
    }
}

#[test]
fn frames_in_flight_are_lost() {
    let mut config = NetConfig {
        host_links: LinkProperties {
            delay: ms(1),
            ..LinkProperties::default()
        },
        ..config()
    };
    config.switch.fail_mode = FailMode::Standalone;
    let mut net = Net::new(&plan("linear,2"), config).unwrap();
    assert!(reach(&mut net, "h1", "h2"));
    let lost = Lost::default();
    let count = Rc::clone(&lost.0);
    net.watch(lost);
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let ping = net.start_ping(h1, h2, 1).unwrap();
    net.run_for(ms(1) / 2);
    assert_eq!(net.frames_under_way(), 1);
    net.move_host(h1, net.switch("s2").unwrap()).unwrap();
    net.run_for(ms(1_500));
    assert_eq!((count.get(), net.frames_under_way()), (1, 0));
    assert_eq!(net.ping_report(ping).unwrap().received, 0);
}

#[test]
fn hosts_and_switches_of_another_network_are_refused() {
    let big = learning_net("linear,3");
    let (host, switch) = (big.host("h3").unwrap(), big.switch("s3").unwrap());
    let mut net = learning_net("single,2");
    let (h1, s1) = (net.host("h1").unwrap(), net.switch("s1").unwrap());
    let is_refused = |result| matches!(result, Err(NetError::NoSuchId { .. }));
    assert!(is_refused(net.move_host(host, s1)));
    assert!(is_refused(net.move_host(h1, switch)));
}
