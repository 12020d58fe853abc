//! Hostile hosts that harm others by way of the programs: the bundled programs prevent this, and planted bugs are found within
//! the seeds that `tools/simulate` runs.

use crate::hostile::{faults, options, unprotected};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::{Bandwidth, BandwidthConfig, L3, L3Config, Routing};
use urtica_controller::Controller;
use urtica_net::simulate::{
    Failure, FaultKind, Faults, PlantedBug, Programs, Refused, Scenario, simulate,
};
use urtica_services::{
    Discovery, Hosts, HostsConfig, NeighbourProxy, ProvisionConfig, Provisioner, Routes,
};
use urtica_topology::spec::{Plan, TopologySpec};

/// The seeds of hostile hosts.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=51;

/// Three subnets of hosts, and one of absent addresses, as a configuration.
const SUBNETS: &str = r#"proxy_arp = true

[[interface]]
address = "10.0.1.254/24"
mac = "02:00:00:00:01:fe"

[[interface]]
address = "10.0.2.254/24"
mac = "02:00:00:00:02:fe"

[[interface]]
address = "10.0.3.254/24"
mac = "02:00:00:00:03:fe"

[[interface]]
address = "10.16.255.254/16"
mac = "02:00:00:00:04:fe"
"#;

fn put_into_subnets(plan: &mut Plan) {
    for (number, host) in (1..=u8::MAX).zip(&mut plan.hosts) {
        host.ipv4 = Ipv4Addr::new(10, 0, (number - 1) % 3 + 1, number);
    }
}

/// Returns a scenario with these kinds of faults, in which the programs guarantee everything.
fn siege(controller: impl Fn() -> Controller + 'static, kinds: &[FaultKind]) -> Scenario {
    let scenario = Scenario::on_loops(move || Programs {
        controller: controller(),
        reservations: None,
    });
    Scenario {
        faults: faults(kinds),
        drops_spoofed_replies: true,
        resolved_within: Some(Duration::from_millis(1_500)),
        keeps_hosts: true,
        // The entries of routing and security.
        entries_when_quiescent: scenario.entries_when_quiescent + 12,
        ..scenario
    }
}

fn planted(controller: Controller, bug: Option<PlantedBug>) -> Controller {
    match bug {
        Some(bug) => controller.program(bug.plant()),
        None => controller,
    }
}

/// Returns a scenario of the programs with these names.
fn named(apps: &'static [&'static str], kinds: &[FaultKind], bug: Option<PlantedBug>) -> Scenario {
    let controller = move || {
        let controller = planted(Controller::new(), bug);
        urtica_apps::add_all(controller, apps, &options()).unwrap()
    };
    Scenario {
        blocks_offenders: apps.contains(&"security"),
        ..siege(controller, kinds)
    }
}

fn routing(kinds: &[FaultKind], bug: Option<PlantedBug>) -> Scenario {
    named(&["discovery", "hosts", "routing"], kinds, bug)
}

/// The way in which subnets are routed.
#[derive(Clone, Copy)]
struct Between {
    bug: Option<PlantedBug>,
    best_effort: bool,
    /// Whether forged replies are dropped, as by `routing`.
    is_guarded: bool,
}

const BETWEEN: Between = Between {
    bug: None,
    best_effort: false,
    is_guarded: true,
};

/// Returns a scenario of routing between subnets, and reservations for datagrams.
fn subnets(kinds: &[FaultKind], between: Between) -> Scenario {
    let running: Rc<RefCell<Option<Bandwidth>>> = Rc::default();
    let refused: Refused = {
        let running = Rc::clone(&running);
        Rc::new(move |src, dst| {
            let running = running.borrow();
            let refusal = running.as_ref()?.refusal(src.into(), dst.into())?;
            Some(refusal.to_string())
        })
    };
    let controller = move || {
        let discovery = Discovery::new(options().discovery);
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let routes = Routes::new(&discovery);
        let provisioner = Provisioner::new(ProvisionConfig::default());
        let demands = BandwidthConfig {
            demands: vec!["1M udp,tp_dst=5001".parse().unwrap()],
            best_effort: between.best_effort,
            ..BandwidthConfig::default()
        };
        let bandwidth = Bandwidth::new(&discovery, &hosts, &provisioner, demands);
        *running.borrow_mut() = Some(bandwidth.clone());
        let config: L3Config = SUBNETS.parse().unwrap();
        let l3 = L3::new(&discovery, &hosts, &routes, &provisioner, config);
        let controller = planted(Controller::new(), between.bug)
            .program(discovery)
            .program(hosts.clone());
        let controller = match between.is_guarded {
            true => controller.program(NeighbourProxy::guard(&hosts)),
            false => controller,
        };
        controller
            .program(routes.clone())
            .program(provisioner)
            .program(bandwidth)
            .program(l3)
            .program(Routing::new(&hosts, &routes))
    };
    let scenario = siege(controller, kinds);
    Scenario {
        arrange: Some(put_into_subnets),
        ipv6: false,
        vlans: false,
        refused: Some(refused),
        blocks_offenders: true,
        // Between subnets, the first packets of a flow may follow another path.
        shortest_paths: false,
        ..scenario
    }
}

/// Returns a scenario of routing with space for few hosts, most of which one port may use.
fn cramped(kinds: &[FaultKind]) -> Scenario {
    let controller = || {
        let discovery = Discovery::new(options().discovery);
        let config = HostsConfig {
            max_hosts: 2_000,
            max_hosts_per_port: 1_900,
            ..HostsConfig::default()
        };
        let hosts = Hosts::new(&discovery, config);
        let routes = Routes::new(&discovery);
        Controller::new()
            .program(discovery)
            .program(hosts.clone())
            .program(NeighbourProxy::new(&hosts))
            .program(routes.clone())
            .program(Routing::new(&hosts, &routes))
    };
    siege(controller, kinds)
}

/// Returns the scenario in small networks, which are simulated faster.
fn on_rings(scenario: Scenario) -> Scenario {
    Scenario {
        topologies: vec![TopologySpec::Ring { switches: 5 }],
        ..scenario
    }
}

fn hold(scenario: &Scenario, seeds: std::ops::RangeInclusive<u64>) {
    for seed in seeds {
        if let Err(failure) = simulate(scenario, seed) {
            panic!("{failure}");
        }
    }
}

/// Checks that the invariant whose sentence starts with `sentence` finds a violation, that it repeats with its seed, and that
/// the invariants hold for the seed without the bug.
fn is_found(spoilt: &Scenario, sentence: &str, sound: &Scenario) {
    let failures = SEEDS.filter_map(|seed| simulate(spoilt, seed).err());
    let failure: Box<Failure> = failures.into_iter().next().expect("a seed fails");
    assert!(failure.sentence.starts_with(sentence), "{failure}");
    let seed = failure.seed;
    assert_eq!(simulate(spoilt, seed).err(), Some(failure));
    if let Err(failure) = simulate(sound, seed) {
        panic!("without the bug: {failure}");
    }
}

const ALL: &[FaultKind] = &[
    FaultKind::ForgedNeighbours,
    FaultKind::Provocation,
    FaultKind::ContendedSweep,
    FaultKind::CrowdedPort,
    FaultKind::FullTable,
];

#[test]
fn routing_holds_in_a_siege() {
    hold(&routing(ALL, None), 1..=5);
}

#[test]
fn security_holds_in_a_siege_and_blocks_no_victim() {
    hold(&named(&["security", "routing"], ALL, None), 1..=5);
}

#[test]
fn programs_between_subnets_hold_in_a_siege() {
    hold(&subnets(ALL, BETWEEN), 1..=4);
    let best_effort = Between {
        best_effort: true,
        ..BETWEEN
    };
    hold(&subnets(ALL, best_effort), 5..=6);
}

#[test]
fn a_small_table_keeps_hosts_of_other_ports() {
    hold(&cramped(&[FaultKind::CrowdedPort]), 1..=5);
}

#[test]
fn finds_demands_that_are_accepted_and_dropped() {
    let scenario = |bug| Scenario {
        faults: Faults::NONE,
        ..subnets(&[], Between { bug, ..BETWEEN })
    };
    let bug = Some(PlantedBug::DropReserved);
    is_found(&scenario(bug), "a flow with a demand", &scenario(None));
}

#[test]
fn finds_packets_sent_to_claimants_of_their_address() {
    let scenario = |bug| routing(&[FaultKind::ForgedNeighbours], bug);
    let bug = Some(PlantedBug::BelieveReplies);
    is_found(&scenario(bug), "no host receives", &scenario(None));
}

#[test]
fn finds_forwarded_forgeries() {
    let kinds = [FaultKind::ForgedNeighbours];
    is_found(
        &unprotected(&kinds),
        "no host receives another host's address",
        &routing(&kinds, None),
    );
}

#[test]
fn finds_forwarded_forgeries_between_subnets() {
    let kinds = [FaultKind::ForgedNeighbours];
    let unguarded = Between {
        is_guarded: false,
        ..BETWEEN
    };
    let sound = subnets(&kinds, BETWEEN);
    is_found(
        &subnets(&kinds, unguarded),
        "no host receives another host's address",
        &sound,
    );
}

#[test]
fn finds_victims_that_are_dropped() {
    let kinds = [FaultKind::Provocation];
    let scenario = |bug| named(&["security", "routing"], &kinds, bug);
    let bug = Some(PlantedBug::BlameProvoked);
    is_found(&scenario(bug), "connected hosts reach", &scenario(None));
}

#[test]
fn finds_a_budget_that_all_hosts_share() {
    let bug = Some(PlantedBug::SharedBudget);
    let between = |bug| subnets(&[FaultKind::ContendedSweep], Between { bug, ..BETWEEN });
    let scenario = |bug| on_rings(between(bug));
    is_found(&scenario(bug), "a host is found", &scenario(None));
    let scenario = |bug| on_rings(routing(&[FaultKind::ContendedSweep], bug));
    is_found(&scenario(bug), "a host is found", &scenario(None));
}

#[test]
fn finds_a_table_without_shares() {
    let scenario = |bug| on_rings(routing(&[FaultKind::CrowdedPort], bug));
    let bug = Some(PlantedBug::SharedTable);
    is_found(
        &scenario(bug),
        "packets between known hosts",
        &scenario(None),
    );
}
