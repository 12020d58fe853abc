//! Programs with a mistake in them, each found by the invariant that is there for it.

use urtica_controller::{Controller, EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_net::simulate::{Failure, Faults, Programs, Scenario, simulate};
use urtica_topology::shapes::Shape;
use urtica_wire::{Match, PacketIn, PortNo};

/// The first seed that fails, and how.
fn first_failure(scenario: &Scenario) -> Box<Failure> {
    let found = (0..20).find_map(|seed| simulate(scenario, seed).err());
    found.expect("a mistake is found within twenty seeds")
}

fn programs<H: SwitchHandler + 'static>(handler: fn() -> H) -> impl Fn() -> Programs {
    move || Programs {
        controller: Controller::new().program(move |_: &SwitchInfo| handler()),
        reservations: None,
    }
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
    scenario.shapes = vec![Shape::Ring { switches: 4 }];
    scenario.never_loops = true;
    let failure = first_failure(&scenario);
    assert_eq!(failure.sentence, "no frame goes round", "{failure}");
    assert_eq!(simulate(&scenario, failure.seed).err(), Some(failure));
}

#[test]
fn flooding_in_a_mesh_is_a_storm() {
    let mut scenario = Scenario::on_loops(programs(|| Hub));
    scenario.shapes = vec![Shape::Mesh { switches: 4 }];
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
    assert!(
        failure.sentence.starts_with("hosts that cables connect"),
        "{failure}"
    );
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
