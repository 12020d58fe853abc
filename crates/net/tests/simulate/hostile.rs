//! Hostile hosts: the programs keep their bounds, and a violation is found if a program is missing.

use crate::planted::first_failure;
use urtica_apps::{FloodLimit, Options, Routing, RoutingConfig};
use urtica_controller::Controller;
use urtica_net::simulate::{FaultKind, Faults, FloodBound, Programs, Scenario, simulate};
use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig, Routes};

/// The default limits of the programs and the neighbour proxy.
const UNKNOWN_FLOOD: FloodBound = FloodBound {
    per_second: 1_000,
    burst: 2_000,
};
const SWEEP: FloodBound = FloodBound {
    per_second: 20,
    burst: 40,
};

/// The maximum number of flows that a port starts, and of other entries: those of a few pings, and permanent ones.
const FLOWS_PER_PORT: usize = 1_024;
const OTHER_ENTRIES: usize = 100;

pub fn options() -> Options {
    let mut options = Options::default();
    options.discovery.secret = Some([0; 32]);
    options
}

/// Returns a few faults of these kinds.
pub fn faults(kinds: &[FaultKind]) -> Faults {
    let most = if kinds.len() == 1 { 1 } else { 3 };
    Faults {
        most,
        ..Faults::of(kinds)
    }
}

/// Returns a scenario of the learning switch, which guarantees only the first bound.
fn l2(options: Options) -> Scenario {
    let programs = move || Programs {
        controller: urtica_apps::add_all(Controller::new(), &["l2"], &options).unwrap(),
        reservations: None,
    };
    Scenario {
        faults: faults(&[
            FaultKind::UnknownFlood,
            FaultKind::Sweep,
            FaultKind::FullTable,
        ]),
        unknown_flood: Some(UNKNOWN_FLOOD),
        quickly_restored_within: None,
        ..Scenario::on_trees(programs)
    }
}

/// Returns a scenario of routing with this controller, which guarantees all bounds.
fn routed(controller: impl Fn() -> Controller + 'static, kinds: &[FaultKind]) -> Scenario {
    let scenario = Scenario::on_loops(move || Programs {
        controller: controller(),
        reservations: None,
    });
    Scenario {
        // Each fault may have another hostile host.
        entries_at_most: Some(faults(kinds).most * FLOWS_PER_PORT + OTHER_ENTRIES),
        faults: faults(kinds),
        unknown_flood: Some(UNKNOWN_FLOOD),
        sweep: Some(SWEEP),
        drops_spoofed_replies: true,
        // The entries that send ARP, and five kinds of neighbour discovery, to the controller.
        entries_when_quiescent: scenario.entries_when_quiescent + 6,
        ..scenario
    }
}

fn routing(options: Options, kinds: &[FaultKind]) -> Scenario {
    let apps = ["discovery", "hosts", "routing"];
    let controller = move || urtica_apps::add_all(Controller::new(), &apps, &options).unwrap();
    routed(controller, kinds)
}

/// Returns a scenario of routing without the neighbour proxy.
pub fn unprotected(kinds: &[FaultKind]) -> Scenario {
    let controller = || {
        let discovery = Discovery::new(DiscoveryConfig {
            secret: Some([0; 32]),
            ..DiscoveryConfig::default()
        });
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let routes = Routes::new(&discovery);
        let routing = Routing::with_config(&hosts, &routes, RoutingConfig::default());
        let services = Controller::new().program(discovery).program(hosts);
        services.program(routes).program(routing)
    };
    routed(controller, kinds)
}

/// Returns a scenario of routing with up to four faults, in which hosts are hostile several times.
fn many_faults(kinds: &[FaultKind]) -> Scenario {
    Scenario {
        faults: Faults {
            most: 4,
            ..Faults::of(kinds)
        },
        ..routing(options(), kinds)
    }
}

fn hold(scenario: &Scenario, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        if let Err(failure) = simulate(scenario, seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn learning_switches_hold_against_hostile_hosts() {
    hold(&l2(options()), 0..10);
}

#[test]
fn routing_holds_against_hostile_hosts_and_full_tables() {
    let kinds = [FaultKind::HOSTILE, &[FaultKind::FullTable]].concat();
    hold(&routing(options(), &kinds), 0..10);
}

/// Hosts of different VLANs may have the same address.
#[test]
fn a_claim_to_an_address_of_another_vlan_is_no_violation() {
    hold(&many_faults(&[FaultKind::SpoofedReplies]), 0..10);
}

/// Packets to a made-up host that has sent before are not flooded.
#[test]
fn no_made_up_sender_has_an_absent_address() {
    let kinds = [FaultKind::UnknownFlood, FaultKind::MadeUpSenders];
    hold(&many_faults(&kinds), 72..73);
}

/// Checks that the invariant whose sentence starts with `sentence` finds a violation, which repeats with its seed.
fn is_found(scenario: &Scenario, sentence: &str) {
    let failure = first_failure(scenario);
    assert!(failure.sentence.starts_with(sentence), "{failure}");
    assert_eq!(simulate(scenario, failure.seed).err(), Some(failure));
}

#[test]
fn finds_unlimited_floods() {
    let mut unlimited = options();
    unlimited.l2.l2_flood_limit = Some(FloodLimit::NONE);
    is_found(&l2(unlimited), "the floods of a host are bounded");
    let mut unlimited = options();
    unlimited.routing.routing_flood_limit = Some(FloodLimit::NONE);
    let kinds = [FaultKind::UnknownFlood];
    is_found(
        &routing(unlimited, &kinds),
        "the floods of a host are bounded",
    );
}

#[test]
fn finds_unlimited_sweeps() {
    let kinds = [FaultKind::Sweep];
    is_found(&unprotected(&kinds), "the floods of a host are bounded");
}

#[test]
fn finds_tables_full_of_made_up_senders() {
    let mut unlimited = options();
    unlimited.routing.routing_flows_per_port = Some(u32::MAX);
    let kinds = [FaultKind::MadeUpSenders];
    is_found(&routing(unlimited, &kinds), "no host fills the tables");
}

#[test]
fn finds_forwarded_spoofed_replies() {
    let kinds = [FaultKind::SpoofedReplies];
    is_found(
        &unprotected(&kinds),
        "no host receives another host's address",
    );
}
