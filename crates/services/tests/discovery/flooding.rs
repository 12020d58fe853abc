//! Flooded frames reach each host once, for any number of loops in the network.

use crate::mesh::*;
use proptest::prelude::*;
use urtica_controller::{Controller, Switch, SwitchHandler, SwitchInfo};
use urtica_services::PortRole;
use urtica_wire::{
    Action, BufferId, DatapathId, List, Message, PacketIn, PacketOut, PortNo, Version,
};

/// Floods every packet with [`Switch::forward`].
struct Hub;

impl SwitchHandler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, PortNo::FLOOD);
    }
}

/// Floods every packet with its own packet-outs.
struct Outspoken;

impl SwitchHandler for Outspoken {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let flood = [Action::output(PortNo::FLOOD)];
        let packet_out = PacketOut {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            actions: List::from(&flood),
            data: packet.data,
        };
        switch.send(&Message::PacketOut(packet_out)).unwrap();
    }
}

fn hub(controller: Controller) -> Controller {
    controller.program(|_: &SwitchInfo| Hub)
}

fn broadcast() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.resize(60, 0);
    frame
}

/// Returns the number of copies that each host receives of a broadcast from the host of switch 1.
fn flood(mesh: &mut Mesh) -> Vec<usize> {
    mesh.host_sends(port(1, 3), &broadcast());
    assert!(mesh.settle(), "the network comes to rest");
    mesh.copies(&broadcast())
}

#[test]
fn floods_in_a_ring_reach_each_other_host_once() {
    for version in Version::ALL {
        let mut mesh = Mesh::new(config(), version, hub).ring(4);
        mesh.pass(SECOND);
        assert_eq!(flood(&mut mesh), [0, 1, 1, 1], "{version}");
    }
}

#[test]
fn a_programs_own_packet_outs_are_safe() {
    let outspoken = |controller: Controller| controller.program(|_: &SwitchInfo| Outspoken);
    let mut mesh = Mesh::new(config(), Version::Of13, outspoken).ring(3);
    mesh.pass(SECOND);
    assert_eq!(flood(&mut mesh), [0, 1, 1]);
}

#[test]
fn packet_outs_from_outside_handlers_are_safe() {
    let mut mesh = Mesh::new(config(), Version::Of13, hub).ring(3);
    mesh.pass(SECOND);
    let flood = [Action::output(PortNo::FLOOD)];
    let packet_out = Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo::CONTROLLER,
        actions: List::from(&flood),
        data: &broadcast(),
    });
    let network = mesh.controller.network().clone();
    network.send(DatapathId(2), &packet_out).unwrap();
    assert!(mesh.settle());
    assert_eq!(mesh.copies(&broadcast()), [1, 1, 1]);
}

#[test]
fn floods_loop_without_discovery() {
    let mut mesh = Mesh::new(config(), Version::Of13, hub);
    mesh.controller = hub(Controller::new()).embed().unwrap();
    let mut mesh = mesh.ring(3);
    let copies = flood(&mut mesh);
    // The loop ends only when the switches refuse to forward more packets.
    assert!(copies.iter().all(|copies| *copies > 1000), "{copies:?}");
}

#[test]
fn floods_use_the_other_links_after_a_cut() {
    let mut mesh = Mesh::new(config(), Version::Of13, hub).ring(4);
    mesh.pass(SECOND);
    mesh.remove_port(port(1, 1));
    mesh.pass(MS);
    assert_eq!(flood(&mut mesh), [0, 1, 1, 1]);
}

#[test]
fn new_ports_are_flooded_after_the_settle_time() {
    let mut mesh = Mesh::new(config(), Version::Of13, hub).ring(3);
    mesh.pass(290 * MS);
    assert_eq!(flood(&mut mesh), [0, 0, 0]);
    mesh.pass(20 * MS);
    assert_eq!(flood(&mut mesh), [0, 1, 1]);
}

#[test]
fn a_switch_that_joins_late_closes_no_loop() {
    let mut mesh = Mesh::new(config(), Version::Of13, hub).ring(3);
    mesh.disconnect(2);
    mesh.pass(SECOND);
    assert!(
        mesh.discovery.is_host_port(port(1, 1)),
        "nobody is behind it now"
    );
    mesh.connect(2);
    for _ in 0..5 {
        mesh.host_sends(port(1, 3), &broadcast());
        assert!(mesh.settle(), "the network comes to rest");
        assert!(mesh.copies(&broadcast()).iter().all(|copies| *copies <= 1));
        mesh.pass(100 * MS);
    }
    assert_eq!(flood(&mut mesh), [0, 1, 1]);
}

#[test]
fn roles_describe_ports() {
    let mut mesh = Mesh::new(config(), Version::Of13, hub).ring(3);
    let role = |mesh: &Mesh, port_no| mesh.discovery.port_role(port(1, port_no));
    assert_eq!(role(&mesh, 3), Some(PortRole::Unclassified));
    mesh.pass(SECOND);
    assert_eq!(role(&mesh, 1), Some(PortRole::Link));
    assert_eq!(role(&mesh, 3), Some(PortRole::Host));
    assert_eq!(role(&mesh, 4), None);
    assert!(mesh.discovery.is_link_port(port(1, 1)));
    assert!(mesh.discovery.is_host_port(port(1, 3)));
}

/// Returns whether each switch can be reached by links from the first, which is included.
fn reachable(count: u64, links: &[(u64, u64)]) -> Vec<bool> {
    let mut is_reached = vec![false; count as usize + 1];
    is_reached[1] = true;
    for _ in 0..count {
        for &(a, b) in links {
            let either = is_reached[a as usize] || is_reached[b as usize];
            is_reached[a as usize] = either;
            is_reached[b as usize] = either;
        }
    }
    is_reached
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Includes links from a switch to itself, and several between two switches.
    #[test]
    fn floods_reach_each_reachable_host_once_in_any_network(
        links in prop::collection::vec((1..6u64, 1..6u64), 0..12),
    ) {
        let mut mesh = Mesh::new(config(), Version::Of13, hub).random(5, &links);
        mesh.pass(SECOND);
        mesh.host_sends(port(1, 1), &broadcast());
        prop_assert!(mesh.settle());
        let is_reached = reachable(5, &links);
        let expected: Vec<_> = (1..=5).map(|id| usize::from(id > 1 && is_reached[id])).collect();
        prop_assert_eq!(mesh.copies(&broadcast()), expected);
    }
}
