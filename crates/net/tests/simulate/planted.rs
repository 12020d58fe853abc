//! Programs with a mistake in them, each found by the invariant that is there for it.

use std::time::Duration;
use urtica_controller::{Controller, EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_net::simulate::{Failure, FaultKind, Faults, PlantedBug, Programs, Scenario, simulate};
use urtica_topology::spec::TopologySpec;
use urtica_wire::{Match, PacketIn, PortNo};

/// The first seed that fails, and how.
fn first_failure(scenario: &Scenario) -> Box<Failure> {
    let found = (0..100).find_map(|seed| simulate(scenario, seed).err());
    found.expect("a mistake is found within a hundred seeds")
}

fn programs<H: SwitchHandler + 'static>(handler: fn() -> H) -> impl Fn() -> Programs {
    move || Programs {
        controller: Controller::new().program(move |_: &SwitchInfo| handler()),
        reservations: None,
    }
}

/// Routing as it is run, behind a mistake that is planted or as it should be.
pub fn routing(bug: Option<PlantedBug>) -> Scenario {
    let mut options = urtica_apps::Options::default();
    options.discovery.secret = Some([0; 32]);
    let scenario = Scenario::on_loops(move || {
        let controller = Controller::new();
        let controller = match bug {
            Some(bug) => controller.program(bug),
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
        ..scenario
    }
}

/// The mistake is found by the invariant whose sentence begins like this, its seed repeats that to the byte, and all is well
/// with that seed where nothing is planted.
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
fn links_that_are_believed_in_after_they_were_cut_are_found() {
    is_found(PlantedBug::IgnorePortDown, "connected hosts");
}

#[test]
fn floods_beside_the_spanning_tree_are_found() {
    is_found(PlantedBug::FloodEverywhere, "frames do not multiply");
}

#[test]
fn entries_without_a_time_out_are_found() {
    is_found(PlantedBug::ForgottenEntries, "nothing is left over");
}

/// Floods, wherever it is.
struct Hub;

impl SwitchHandler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, PortNo::FLOOD);
    }
}

/// Learns nothing, and installs entries that never go.
struct Hoarder;

impl SwitchHandler for Hoarder {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let forever = EntryOptions::idle(0);
        switch.forward_with_rule(packet, Match::exact(packet), PortNo::FLOOD, forever);
    }
}

#[test]
fn flooding_in_a_ring_goes_round() {
    let mut scenario = Scenario::on_loops(programs(|| Hub));
    scenario.topologies = vec![TopologySpec::Ring { switches: 4 }];
    scenario.never_loops = true;
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "no frame loops", "{failure}");
    assert_eq!(simulate(&scenario, failure.seed).err(), Some(failure));
}

#[test]
fn flooding_in_a_mesh_is_a_storm() {
    let mut scenario = Scenario::on_loops(programs(|| Hub));
    scenario.topologies = vec![TopologySpec::Mesh { switches: 4 }];
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "frames do not multiply", "{failure}");
}

#[test]
fn entries_that_never_go_are_left_over() {
    let mut scenario = Scenario::on_trees(programs(|| Hoarder));
    scenario.faults = Faults::NONE;
    let failure = first_failure(&scenario);
    assert!(
        failure.sentence.starts_with("nothing is left over"),
        "{failure}"
    );
    assert!(failure.seen.contains("expected at most 1"), "{failure}");
}

/// Floods the first time, and drops from then on.
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
fn hosts_that_are_not_reached_are_told() {
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
fn what_is_reserved_is_looked_at() {
    let scenario = Scenario::on_trees(|| {
        let mut looks = 0;
        Programs {
            reservations: Some(Box::new(move |_| {
                looks += 1;
                match looks {
                    1..100 => Ok(()),
                    _ => Err("s1 to s2 carries 10 Mb/s, and 11 are reserved".to_owned()),
                }
            })),
            ..programs(|| Hub)()
        }
    });
    let failure = first_failure(&scenario);
    assert_eq!(
        failure.sentence,
        "what is reserved never exceeds what a link carries"
    );
    assert!(failure.seen.contains("11 are reserved"));
}

/// Floods what is short.
struct ForShortFrames;

impl SwitchHandler for ForShortFrames {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        if packet.data.len() < 1_000 {
            switch.forward(packet, PortNo::FLOOD);
        }
    }
}

#[test]
fn streams_that_lose_their_long_segments_are_found() {
    let mut scenario = Scenario::on_trees(programs(|| ForShortFrames));
    scenario.faults = Faults::NONE;
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "streams arrive whole", "{failure}");
    assert!(failure.seen.contains(" bytes of h"), "{failure}");
}

#[test]
fn what_is_denied_and_arrives_is_found() {
    let mut scenario = Scenario::on_trees(programs(|| Hub));
    scenario.faults = Faults::NONE;
    scenario.denied = Some(|frame| frame.len() == 1_514);
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "no denied packet arrives", "{failure}");
}

#[test]
fn ways_along_the_spanning_tree_are_found_to_be_long() {
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
fn who_recovers_late_from_what_it_was_told_is_found() {
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
