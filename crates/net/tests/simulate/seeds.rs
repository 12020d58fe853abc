//! The bundled programs, over many seeds.

use urtica_controller::Controller;
use urtica_net::simulate::{FaultKind, Faults, Programs, Report, Scenario, simulate};

fn programs(app: &'static str) -> impl Fn() -> Programs {
    move || Programs {
        controller: urtica_apps::add_by_name(Controller::new(), app).unwrap(),
        reservations: None,
    }
}

fn run(scenario: &Scenario, seed: u64) -> Report {
    simulate(scenario, seed).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_learning_switch_survives_on_trees() {
    let scenario = Scenario::on_trees(programs("l2"));
    let faults: usize = (0..100).map(|seed| run(&scenario, seed).faults).sum();
    assert!(faults > 200, "{faults}");
}

#[test]
fn a_learning_switch_follows_hosts_that_move() {
    // After a reconnect, the location of a host is forgotten: a host that has moved is then a new host, whose old entries stay.
    let kept = [
        FaultKind::HostMove,
        FaultKind::Cut,
        FaultKind::LastingCut,
        FaultKind::Flap,
        FaultKind::Loss,
        FaultKind::Stall,
        FaultKind::SwitchRestart,
    ];
    let mut scenario = Scenario::on_trees(programs("l2"));
    scenario.faults = Faults::of(&kept);
    // Entries towards a host's old port are found invalid only when the host sends; then its neighbours resolve it again.
    scenario.quickly_restored_within = None;
    (3_000..3_050).for_each(|seed| drop(run(&scenario, seed)));
}

#[test]
fn a_hub_survives_on_trees() {
    let scenario = Scenario::on_trees(programs("hub"));
    (1_000..1_020).for_each(|seed| drop(run(&scenario, seed)));
}

#[test]
fn a_seed_repeats_exactly_and_others_differ() {
    let scenario = Scenario::on_trees(programs("l2"));
    let mut digests = Vec::new();
    for seed in 2_000..2_015 {
        let report = run(&scenario, seed);
        assert_eq!(report, run(&scenario, seed));
        digests.push(report.digest.to_string());
    }
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 15);
}
