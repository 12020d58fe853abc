//! Links between real switches that go up and down.

use crate::mesh::*;
use urtica_controller::{Controller, EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_services::{Discovery, DiscoveryConfig, DiscoveryEvent, DownReason};
use urtica_topology::Topology;
use urtica_wire::{DatapathId, Match, Version};

fn silent(_: &SwitchInfo) -> Silent {
    Silent
}

struct Silent;

impl SwitchHandler for Silent {}

fn ring(count: u64, version: Version) -> Mesh {
    Mesh::new(config(), version, |controller| controller.program(silent)).ring(count)
}

#[test]
fn all_links_are_known_within_a_millisecond() {
    for version in Version::ALL {
        let mut mesh = ring(4, version);
        mesh.pass(MS);
        assert_eq!(mesh.found(), ring_links(4), "{version}");
    }
}

#[test]
fn events_follow_their_topology() {
    let mut mesh = ring(3, Version::Of13);
    mesh.pass(MS);
    let topology = mesh.discovery.topology().load();
    let mut told = Topology::default();
    for event in mesh.take_events() {
        told = match event {
            DiscoveryEvent::SwitchUp(switch) => told.with_switch(switch),
            DiscoveryEvent::LinkUp(link) => told.with_link(link),
            other => panic!("nothing but this goes up: {other:?}"),
        };
    }
    assert_eq!(told, *topology);
}

#[test]
fn a_cut_link_loses_both_directions_at_once() {
    let mut mesh = ring(3, Version::Of13);
    mesh.pass(MS);
    mesh.take_events();
    mesh.remove_port(port(1, 1));
    mesh.pass(MS);
    let down = both_ways(port(1, 1), port(2, 2)).map(|link| DiscoveryEvent::LinkDown {
        link,
        reason: DownReason::Port,
    });
    assert_eq!(mesh.take_events(), down);
    assert_eq!(mesh.found().len(), 4);
    mesh.plug(port(1, 1), port(2, 2));
    mesh.pass(MS);
    assert_eq!(mesh.found(), ring_links(3));
}

#[test]
fn a_reconnected_switch_has_its_links_again() {
    let mut mesh = ring(3, Version::Of13);
    mesh.disconnect(2);
    mesh.pass(MS);
    assert_eq!(mesh.found(), both_ways(port(1, 2), port(3, 1)));
    let topology = mesh.discovery.topology().load();
    assert_eq!(topology.switches(), [DatapathId(1), DatapathId(3)]);
    mesh.connect(2);
    mesh.pass(MS);
    assert_eq!(mesh.found(), ring_links(3));
}

#[test]
fn a_switch_that_reconnects_in_time_keeps_its_links() {
    let mut mesh = ring(3, Version::Of13);
    let ids = mesh.connect_anew(2);
    mesh.pass(MS);
    assert_eq!(mesh.found(), ring_links(3));
    assert!(mesh.controller.output(ids).is_none());
}

#[test]
fn closed_connections_do_not_override_newer_ones() {
    let mut mesh = ring(3, Version::Of13);
    mesh.disconnect(2);
    mesh.pass(MS);
    mesh.connect_twice(2);
    mesh.pass(6 * SECOND);
    assert_eq!(mesh.found(), ring_links(3));
}

/// Drops all packets, as a firewall might.
struct Forbidding;

impl SwitchHandler for Forbidding {
    fn switch_up(&mut self, switch: &mut Switch) {
        let options = EntryOptions::PERMANENT.priority(u16::MAX - 1);
        switch.install(Match::any(), &[], options).unwrap();
    }
}

#[test]
fn entries_of_other_programs_do_not_hide_links() {
    let with = |installs_entry| {
        let config = DiscoveryConfig {
            installs_entry,
            ..config()
        };
        let add = |controller: Controller| controller.program(|_: &SwitchInfo| Forbidding);
        let mut mesh = Mesh::new(config, Version::Of10, add).ring(3);
        mesh.pass(MS);
        mesh.found().len()
    };
    assert_eq!(with(true), 6);
    assert_eq!(with(false), 0);
}

#[test]
fn first_of_two_discoveries_in_a_controller_runs() {
    let second = Discovery::new(config());
    let idle = second.clone();
    let add = |controller: Controller| controller.program(second);
    let mut mesh = Mesh::new(config(), Version::Of13, add).ring(3);
    mesh.pass(SECOND);
    assert_eq!(mesh.found(), ring_links(3));
    assert_eq!(mesh.discovery.counters().forged(), 0);
    assert_eq!(idle.counters().probes_sent(), 0);
}

#[test]
fn idle_links_stay_up() {
    let mut mesh = ring(3, Version::Of13);
    mesh.pass(3 * SECOND);
    mesh.take_events();
    let version = mesh.discovery.topology().version();
    mesh.pass(40 * SECOND);
    assert_eq!(mesh.take_events(), []);
    assert_eq!(mesh.discovery.topology().version(), version);
}

#[test]
fn runs_are_deterministic_to_the_byte() {
    let run = || {
        let mut mesh = ring(4, Version::Of13);
        mesh.pass(SECOND);
        mesh.remove_port(port(1, 1));
        mesh.pass(6 * SECOND);
        mesh.said
    };
    assert!(run() == run());
}
