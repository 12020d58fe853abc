//! Programs with a bug, each found by its invariant.

use std::time::Duration;
use urtica_controller::{Controller, EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_net::simulate::{Failure, FaultKind, Faults, PlantedBug, Programs, Scenario, simulate};
use urtica_net::watch::Violation;
use urtica_topology::spec::TopologySpec;
use urtica_wire::{Match, PacketIn, PortNo};

/// Returns the failure of the first seed that fails.
pub fn first_failure(scenario: &Scenario) -> Box<Failure> {
    let found = (0..100).find_map(|seed| simulate(scenario, seed).err());
    found.expect("a bug is found within a hundred seeds")
}

fn programs<H: SwitchHandler + 'static>(handler: fn() -> H) -> impl Fn() -> Programs {
    move || Programs {
        controller: Controller::new().program(move |_: &SwitchInfo| handler()),
        reservations: None,
    }
}

/// Returns a scenario of routing, with or without a planted bug.
pub fn routing(bug: Option<PlantedBug>) -> Scenario {
    let mut options = urtica_apps::Options::default();
    options.discovery.secret = Some([0; 32]);
    let scenario = Scenario::on_loops(move || {
        let controller = Controller::new();
        let controller = match bug {
            Some(bug) => controller.program(bug.plant()),
            None => controller,
        };
        let apps = ["discovery", "hosts", "routing"];
        Programs {
            controller: urtica_apps::add_all(controller, &apps, &options).unwrap(),
            reservations: None,
        }
    });
    Scenario {
        faults: Faults::of(&[FaultKind::HostMove, FaultKind::LastingCut]),
        // The entries that send ARP, and five kinds of neighbour discovery, to the controller.
        entries_when_quiescent: scenario.entries_when_quiescent + 6,
        ..scenario
    }
}

/// Checks that the invariant whose sentence starts with `sentence` finds the bug, that the seed repeats the failure exactly,
/// and that the seed passes without the bug.
fn is_found(bug: PlantedBug, sentence: &str) {
    let spoilt = routing(Some(bug));
    let failure = first_failure(&spoilt);
    assert!(failure.sentence.starts_with(sentence), "{failure}");
    let told = failure.to_string();
    assert!(
        told.starts_with(&format!("seed {} (", failure.seed)),
        "{told}"
    );
    let again = simulate(&spoilt, failure.seed).unwrap_err();
    assert_eq!(again.digest, failure.digest);
    assert_eq!(again, failure);
    if let Err(failure) = simulate(&routing(None), failure.seed) {
        panic!("without {bug}: {failure}");
    }
}

#[test]
fn finds_use_of_cut_links() {
    is_found(PlantedBug::IgnorePortDown, "connected hosts");
}

#[test]
fn finds_floods_outside_the_spanning_tree() {
    is_found(PlantedBug::FloodEverywhere, "frames do not multiply");
}

#[test]
fn finds_entries_without_a_time_out() {
    is_found(PlantedBug::ForgottenEntries, "nothing is left over");
}

/// Floods every packet, on any topology.
struct Hub;

impl SwitchHandler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, PortNo::FLOOD);
    }
}

/// A program that learns nothing, and installs entries that never expire.
struct Hoarder;

impl SwitchHandler for Hoarder {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let forever = EntryOptions::idle(0);
        switch.forward_with_rule(packet, Match::exact(packet), PortNo::FLOOD, forever);
    }
}

#[test]
fn finds_loops_of_floods_in_a_ring() {
    let mut scenario = Scenario::on_loops(programs(|| Hub));
    scenario.topologies = vec![TopologySpec::Ring { switches: 4 }];
    scenario.never_loops = true;
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "no frame loops", "{failure}");
    assert_eq!(simulate(&scenario, failure.seed).err(), Some(failure));
}

#[test]
fn finds_storms_in_a_mesh() {
    let mut scenario = Scenario::on_loops(programs(|| Hub));
    scenario.topologies = vec![TopologySpec::Mesh { switches: 4 }];
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "frames do not multiply", "{failure}");
}

#[test]
fn finds_leftover_entries() {
    let mut scenario = Scenario::on_trees(programs(|| Hoarder));
    scenario.faults = Faults::NONE;
    let failure = first_failure(&scenario);
    assert!(
        failure.sentence.starts_with("nothing is left over"),
        "{failure}"
    );
    assert!(failure.seen.contains("expected at most 1"), "{failure}");
}

/// Floods the first packet, and then drops all others.
#[derive(Default)]
struct Forgetful(u32);

impl SwitchHandler for Forgetful {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.0 += 1;
        if self.0 < 20 {
            switch.forward(packet, PortNo::FLOOD);
        }
    }
}

#[test]
fn finds_unreachable_hosts() {
    let scenario = Scenario::on_trees(programs(Forgetful::default));
    let failure = first_failure(&scenario);
    assert!(failure.sentence.starts_with("connected hosts"), "{failure}");
    assert!(failure.seen.contains("no answer from h"), "{failure}");
    let told = failure.to_string();
    assert!(
        told.contains(&format!("seed {} (", failure.seed)) && told.contains("the last events"),
        "{told}"
    );
}

#[test]
fn checks_reservations() {
    let scenario = Scenario::on_trees(|| {
        let mut looks = 0;
        Programs {
            reservations: Some(Box::new(move |_| {
                looks += 1;
                match looks {
                    1..100 => Ok(()),
                    _ => Err(Violation::new(
                        "s1 to s2 carries 10 Mb/s, and 11 are reserved",
                    )),
                }
            })),
            ..programs(|| Hub)()
        }
    });
    let failure = first_failure(&scenario);
    assert_eq!(
        failure.sentence,
        "reservations never exceed a link's capacity"
    );
    assert!(failure.seen.contains("11 are reserved"));
}

/// Floods short frames.
struct ForShortFrames;

impl SwitchHandler for ForShortFrames {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        if packet.data.len() < 1_000 {
            switch.forward(packet, PortNo::FLOOD);
        }
    }
}

#[test]
fn finds_streams_that_lose_long_segments() {
    let mut scenario = Scenario::on_trees(programs(|| ForShortFrames));
    scenario.faults = Faults::NONE;
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "streams arrive whole", "{failure}");
    assert!(failure.seen.contains(" bytes of h"), "{failure}");
}

#[test]
fn finds_delivered_denied_packets() {
    let mut scenario = Scenario::on_trees(programs(|| Hub));
    scenario.faults = Faults::NONE;
    scenario.denied = Some(|frame| frame.len() == 1_514);
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "no denied packet arrives", "{failure}");
}

#[test]
fn finds_paths_longer_than_the_shortest() {
    let mut options = urtica_apps::Options::default();
    options.discovery.secret = Some([0; 32]);
    let mut scenario = Scenario::on_loops(move || Programs {
        controller: urtica_apps::add_all(Controller::new(), &["discovery", "l2"], &options)
            .unwrap(),
        reservations: None,
    });
    scenario.topologies = vec![TopologySpec::Ring { switches: 5 }];
    scenario.faults = Faults::NONE;
    scenario.shortest_paths = true;
    let failure = first_failure(&scenario);
    assert_eq!(
        failure.sentence, "paths after a quiescent period are no longer than the shortest",
        "{failure}"
    );
    assert!(failure.seen.contains(" has passed "), "{failure}");
}

#[test]
fn finds_slow_recovery_from_reported_faults() {
    let scenario = Scenario {
        quickly_restored_within: Some(Duration::from_secs(2)),
        ..routing(Some(PlantedBug::IgnorePortDown))
    };
    let failure = first_failure(&scenario);
    assert!(
        failure.seen.starts_with("after 2s, no answer from h"),
        "{failure}"
    );
}
