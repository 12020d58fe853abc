//! Routes as a service: they follow the topology, and report when they are behind it.

use crate::hosts::discovery;
use crate::net::{Net, port};
use std::time::Duration;
use urtica_controller::Controller;
use urtica_services::{NoPath, Routes};
use urtica_topology::{NextHops, Topology};
use urtica_wire::{DatapathId, Version};

#[test]
fn routes_follow_the_topology() {
    let discovery = discovery();
    let routes = Routes::new(&discovery);
    let controller = Controller::new()
        .program(discovery.clone())
        .program(routes.clone());
    let mut net = Net::line(controller, Version::Of13, 4);
    net.advance(Duration::from_secs(1));
    assert!(routes.is_current());
    let path = routes.path(port(1, 3), port(4, 3), 0).unwrap();
    let switches: Vec<_> = path.hops.iter().map(|hop| hop.switch.0).collect();
    assert_eq!(switches, [1, 2, 3, 4]);

    let before = routes.version();
    net.disconnect(3);
    net.advance(Duration::from_secs(1));
    assert!(routes.version() > before && routes.is_current());
    let unreachable = NoPath::Unreachable {
        from: DatapathId(1),
        to: DatapathId(4),
    };
    assert_eq!(routes.path(port(1, 3), port(4, 3), 0), Err(unreachable));
    let unknown = NoPath::UnknownSwitch(DatapathId(3));
    assert_eq!(routes.path(port(1, 3), port(3, 3), 0), Err(unknown));

    net.connect(3);
    net.advance(Duration::from_secs(1));
    assert_eq!(routes.path(port(1, 3), port(4, 3), 0), Ok(path));
    let topology = discovery.topology().load();
    assert_eq!(*routes.next_hops().load(), NextHops::new(topology));
}

#[test]
fn bursts_cost_one_computation_and_lag_is_reported() {
    let discovery = discovery();
    let routes = Routes::new(&discovery);
    let controller = Controller::new()
        .program(discovery.clone())
        .program(routes.clone());
    let mut net = Net::line(controller, Version::Of13, 2);
    net.advance(Duration::from_secs(1));
    let before = routes.version();
    let switches = |count| (1..=count).map(DatapathId);
    for count in 1..=50 {
        discovery
            .topology()
            .publish(Topology::new(switches(count), []));
    }
    assert!(!routes.is_current());
    net.settle();
    assert!(routes.is_current());
    assert_eq!(routes.version(), before + 1);
    assert_eq!(routes.next_hops().load().topology().switches().len(), 50);
}
