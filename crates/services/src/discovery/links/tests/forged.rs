//! Probes that are forged or relayed, and hosts that pretend to be switches.

use super::*;

#[test]
fn forged_frames_change_nothing_and_are_reported_once_a_second() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    let at = port_id(2, 3);
    let owner = world.owners[&at.switch];
    for _ in 0..1500 {
        world.links.handle_forged(owner, at, Some(a), world.now);
        world.pass(MS);
    }
    let told = |count| DiscoveryEvent::Refused {
        at,
        claimed: Some(a),
        refusal: Refusal::Authenticator,
        count,
    };
    assert_eq!(world.events, [told(1), told(1001)]);
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
}

/// Returns the refusal of a probe of `from`, sent `age` ago, that arrives at `at`.
fn refusal_of(world: &mut World, at: PortId, from: PortId, age: Duration) -> Option<Refusal> {
    world.events.clear();
    let stamp = world.links.elapsed_ns(world.now - age);
    world.deliver(at, from, stamp);
    world.settle();
    world.events.iter().find_map(|event| match event {
        DiscoveryEvent::Refused { refusal, .. } => Some(*refusal),
        _ => None,
    })
}

#[test]
fn genuine_frames_at_other_ports_are_refused() {
    let (mut world, a, b) = World::pair(DiscoveryConfig::default());
    world.pass(Duration::from_secs(60));
    let (host, other) = (port_id(1, 3), port_id(2, 3));
    let refusal = refusal_of(&mut world, host, host, MS);
    assert_eq!(refusal, Some(Refusal::Reflected));
    let refusal = refusal_of(&mut world, other, host, 20 * SECOND);
    assert_eq!(refusal, Some(Refusal::Replayed));
    world.pass(SECOND);
    let stamp = world.links.ports.get(a).unwrap().heard_stamp;
    let age = Duration::from_nanos(world.links.elapsed_ns(world.now) - stamp);
    let refusal = refusal_of(&mut world, other, a, age);
    assert_eq!(refusal, Some(Refusal::Duplicated));
    assert_eq!(world.found(), [link(a, b), link(b, a)]);
}

#[test]
fn one_way_relays_make_no_link() {
    let mut world = World::new();
    world.join(1);
    world.join(2);
    world.pass(SECOND);
    let (from, to) = (port_id(1, 3), port_id(2, 3));
    assert_eq!(refusal_of(&mut world, to, from, MS), None);
    assert_eq!(world.found(), []);
}

#[test]
fn host_ports_become_no_links_if_late_links_are_refused() {
    let mut world = World::with(DiscoveryConfig {
        refuse_late_links: true,
        ..DiscoveryConfig::default()
    });
    world.join(1);
    world.join(2);
    world.pass(SECOND);
    let (a, b) = (port_id(1, 3), port_id(2, 3));
    world.plug(a, b);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.found(), []);
    let late = |event: &DiscoveryEvent| {
        matches!(
            event,
            DiscoveryEvent::Refused {
                refusal: Refusal::Late,
                ..
            }
        )
    };
    assert_eq!(world.count(late), 2);
    assert_eq!(
        [a, b].map(|port| world.role(port)),
        [Some(PortRole::Blocked); 2],
        "flooding into them could close a loop"
    );
    for port in [a, b] {
        world.set_port(port, false);
        world.set_port(port, true);
    }
    assert_eq!(
        world.found().len(),
        2,
        "unplugged and plugged in, it may be a link"
    );
}
