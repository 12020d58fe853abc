//! Links that flap.

use super::*;

#[test]
fn holds_of_flapping_links_grow() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    let mut holds = Vec::new();
    for _ in 0..40 {
        world.set_port(a, false);
        world.pass(10 * MS);
        world.set_port(a, true);
        world.pass(10 * MS);
        let held = world.events.drain(..).find_map(|event| match event {
            DiscoveryEvent::Flapping { held_for, .. } => Some(held_for),
            _ => None,
        });
        if let Some(held_for) = held {
            assert_eq!(world.found(), []);
            assert_eq!(world.role(b), Some(PortRole::Blocked));
            holds.push(held_for.as_secs());
            world.pass(held_for);
            assert_eq!(world.found().len(), 2, "up when the hold has ended");
        }
    }
    assert_eq!(holds[..4], [1, 2, 4, 8]);
}

#[test]
fn the_history_of_flaps_expires() {
    let (mut world, a, _) = World::pair(DiscoveryConfig::default());
    for _ in 0..4 {
        world.set_port(a, false);
        world.set_port(a, true);
    }
    assert_eq!(world.links.dampings.len(), 1);
    world.pass(Duration::from_secs(70));
    assert!(world.links.dampings.is_empty());
}

#[test]
fn flapping_ports_need_no_further_memory() {
    let (mut world, a, _) = World::pair(DiscoveryConfig::default());
    let before = world.links.timers.len();
    for _ in 0..10_000 {
        world.set_port(a, false);
        world.set_port(a, true);
    }
    // The timers of at most two ports, and the timer of their link's history.
    let after = world.links.timers.len();
    assert!(after <= before + 13, "{before} timers became {after}");
    for id in 1..=2 {
        world.part(id);
    }
    world.work_off();
    assert!(world.links.timers.len() <= 1, "that of the flaps is left");
}

#[test]
fn flap_histories_per_port_are_bounded() {
    let mut world = World::new();
    for switch in 1..=40 {
        world.join(switch);
    }
    let a = port_id(1, 1);
    for switch in 2..=40 {
        world.plug(a, port_id(switch, 1));
        world.set_port(a, false);
        world.set_port(a, true);
        assert_eq!(world.found().len(), 2, "a wire to switch {switch}");
    }
    assert_eq!(world.links.dampings.len(), MAX_DAMPINGS_PER_PORT);
    world.pass(Duration::from_secs(70));
    assert!(world.links.dampings.is_empty());
}
