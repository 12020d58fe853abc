//! Failures are reduced to the necessary faults and flows.

use crate::planted::routing;
use urtica_controller::{Controller, EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_net::simulate::{FaultKind, Faults, PlantedBug, Programs, Scenario, minimise, simulate};
use urtica_wire::{Match, PacketIn, PortNo};

/// Returns the numbers of necessary faults and flows of the first seed that fails. With these, it fails in the same way each
/// time.
fn least(mut scenario: Scenario) -> (usize, usize) {
    let failure = (0..100).find_map(|seed| simulate(&scenario, seed).err());
    let failure = failure.expect("a bug is found within a hundred seeds");
    let least = minimise(&scenario, &failure);
    assert_eq!(least.failure.sentence, failure.sentence);
    assert_eq!(least.failure.items, least.only);
    scenario.only = Some(least.only.clone());
    assert_eq!(simulate(&scenario, failure.seed).err(), Some(least.failure));
    let faults = least.only.iter().filter(|item| item.is_fault()).count();
    (faults, least.only.len() - faults)
}

#[test]
fn reduces_eight_faults_to_the_cut_that_is_the_cause() {
    let mut scenario = routing(Some(PlantedBug::IgnorePortDown));
    scenario.faults = Faults::of(&[FaultKind::LastingCut]);
    assert_eq!(least(scenario), (1, 0));
}

/// Installs entries that never expire.
struct Hoarder;

impl SwitchHandler for Hoarder {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let forever = EntryOptions::idle(0);
        switch.forward_with_rule(packet, Match::exact(packet), PortNo::FLOOD, forever);
    }
}

#[test]
fn removes_all_faults_and_flows_that_are_not_the_cause() {
    let scenario = Scenario::on_trees(|| Programs {
        controller: Controller::new().program(|_: &SwitchInfo| Hoarder),
        reservations: None,
    });
    assert_eq!(least(scenario), (0, 0));
}
