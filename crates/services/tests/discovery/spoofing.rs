//! Hosts that send LLDP: their own frames, forged ones, or ours.

use crate::mesh::*;
use std::sync::{Arc, Mutex};
use urtica_controller::{Controller, Switch, SwitchHandler, SwitchInfo};
use urtica_services::{DiscoveryConfig, DiscoveryEvent, HostLldp, Refusal};
use urtica_topology::PortId;
use urtica_wire::packet::ether_type;
use urtica_wire::packet::lldp::{self, Lldp, LldpId};
use urtica_wire::{MacAddr, PacketIn, Version};

/// Records the LLDP that discovery passes to other programs.
struct Noting(Arc<Mutex<Vec<Vec<u8>>>>);

impl SwitchHandler for Noting {
    fn packet_in(&mut self, _switch: &mut Switch, packet: &PacketIn) {
        if packet.eth_type() == ether_type::LLDP {
            self.0.lock().unwrap().push(packet.data.to_vec());
        }
    }
}

/// Returns a ring of three switches that has settled, and the LLDP that other programs receive.
fn ring(config: DiscoveryConfig) -> (Mesh, Arc<Mutex<Vec<Vec<u8>>>>) {
    let seen = Arc::default();
    let noted = Arc::clone(&seen);
    let add = move |controller: Controller| {
        controller.program(move |_: &SwitchInfo| Noting(Arc::clone(&noted)))
    };
    let mut mesh = Mesh::new(config, Version::Of13, add).ring(3);
    mesh.pass(SECOND);
    mesh.take_events();
    (mesh, seen)
}

fn hosts_own() -> Vec<u8> {
    let mut frame = Vec::new();
    let lldp = Lldp {
        chassis_id: LldpId {
            subtype: lldp::chassis_id::MAC_ADDRESS,
            id: &[2, 0, 0, 0, 0, 9],
        },
        port_id: LldpId {
            subtype: lldp::port_id::INTERFACE_NAME,
            id: b"eth0",
        },
        ttl_s: 120,
        tlvs: Vec::new(),
    };
    lldp.write_frame(MacAddr::new([2, 0, 0, 0, 0, 9]), &mut frame)
        .unwrap();
    frame
}

/// Returns the probes that a host has received.
fn probes(mesh: &mut Mesh, at: PortId) -> Vec<Vec<u8>> {
    let mut frames = mesh.host_receives(at);
    frames.retain(|frame| frame[12..14] == [0x88, 0xcc]);
    frames
}

fn refusals(mesh: &mut Mesh) -> Vec<(PortId, Option<PortId>, Refusal)> {
    let events = mesh.take_events();
    let refusal = |event| match event {
        DiscoveryEvent::Refused {
            at,
            claimed,
            refusal,
            ..
        } => (at, claimed, refusal),
        other => panic!("expected refusals alone: {other:?}"),
    };
    events.into_iter().map(refusal).collect()
}

#[test]
fn hosts_that_send_lldp_are_hosts() {
    for (host_lldp, expected) in [
        (HostLldp::Pass, vec![hosts_own()]),
        (HostLldp::Drop, vec![]),
    ] {
        let (mut mesh, seen) = ring(DiscoveryConfig {
            host_lldp,
            ..config()
        });
        mesh.host_sends(port(1, 3), &hosts_own());
        mesh.settle();
        assert_eq!(mesh.take_events(), []);
        assert_eq!(mesh.discovery.counters().foreign(), 1);
        assert!(mesh.discovery.is_host_port(port(1, 3)));
        assert_eq!(*seen.lock().unwrap(), expected, "and our probes never");
    }
}

#[test]
fn forged_probes_are_refused_and_reported() {
    let (mut mesh, seen) = ring(config());
    let genuine = probes(&mut mesh, port(2, 3)).pop().unwrap();
    let mut forged = genuine.clone();
    let text = b"dpid:0000000000000002";
    let place = forged.windows(text.len()).position(|part| part == text);
    forged[place.unwrap() + text.len() - 1] = b'3';
    mesh.host_sends(port(1, 3), &forged);
    mesh.settle();
    let expected = (port(1, 3), Some(port(3, 3)), Refusal::Authenticator);
    assert_eq!(refusals(&mut mesh), [expected]);
    assert_eq!(mesh.discovery.counters().forged(), 1);
    assert_eq!(mesh.found(), ring_links(3));
    assert!(seen.lock().unwrap().is_empty());
}

/// At this rate, examining each frame would delay all other switches: only some hundred are examined, and other ports are not
/// affected.
#[test]
fn lldp_floods_are_sampled_and_affect_no_other_port() {
    let (mut mesh, _) = ring(config());
    let mut forged = probes(&mut mesh, port(2, 3)).pop().unwrap();
    // The last byte of the authenticator, before the TLV that ends the frame.
    *forged.iter_mut().nth_back(2).unwrap() ^= 1;
    for _ in 0..10 {
        for _ in 0..1_000 {
            mesh.host_sends(port(1, 3), &forged);
        }
        mesh.settle();
    }
    let counters = mesh.discovery.counters();
    let (read, dropped) = (counters.forged(), counters.overrun());
    assert_eq!(read + dropped, 10_000);
    assert!((100..=1_000).contains(&read), "{read} were read");
    mesh.pass(20 * SECOND);
    assert_eq!(mesh.found(), ring_links(3));
}

#[test]
fn a_returned_probe_is_refused() {
    let (mut mesh, _) = ring(config());
    let at = port(1, 3);
    let genuine = probes(&mut mesh, at).pop().unwrap();
    mesh.host_sends(at, &genuine);
    mesh.settle();
    assert_eq!(refusals(&mut mesh), [(at, Some(at), Refusal::Reflected)]);
}

#[test]
fn replayed_probes_are_refused() {
    let (mut mesh, _) = ring(config());
    let genuine = probes(&mut mesh, port(2, 3)).pop().unwrap();
    mesh.pass(20 * SECOND);
    mesh.host_sends(port(1, 3), &genuine);
    mesh.settle();
    let expected = (port(1, 3), Some(port(2, 3)), Refusal::Replayed);
    assert_eq!(refusals(&mut mesh), [expected]);
}

/// The limit of detection: to the switches, two hosts that relay all frames at once look like a link.
#[test]
fn two_way_relays_are_links_unless_late_links_are_refused() {
    for refuse_late_links in [false, true] {
        let (mut mesh, _) = ring(DiscoveryConfig {
            refuse_late_links,
            ..config()
        });
        let (a, b) = (port(1, 3), port(2, 3));
        for _ in 0..600 {
            for (from, to) in [(a, b), (b, a)] {
                for frame in mesh.host_receives(from) {
                    mesh.host_sends(to, &frame);
                }
            }
            mesh.pass(10 * MS);
        }
        let links = if refuse_late_links { 6 } else { 8 };
        assert_eq!(mesh.found().len(), links);
    }
}
