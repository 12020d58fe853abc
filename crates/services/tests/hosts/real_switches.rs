//! All services together, on real switches in a ring, used as by an application.

use crate::frames::{NdFrame, arp, arp_request, ip, mac};
use crate::mesh::{self, Mesh, port};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use urtica_controller::{Switch, SwitchHandler, SwitchInfo};
use urtica_services::{
    Discovery, Flow, Hosts, HostsConfig, NeighbourProxy, ProvisionConfig, Provisioner, Routes,
};
use urtica_topology::PortId;
use urtica_wire::packet::Arp;
use urtica_wire::{Match, PacketIn, Version};

/// Longer than a packet needs, with the controller's help: frames move by one switch at least every 10 ms.
const A_WHILE: Duration = Duration::from_millis(100);

/// Sets up a path to the destination of each packet, and sends the packet along it.
#[derive(Clone)]
struct Forwarding {
    hosts: Hosts,
    routes: Routes,
    provisioner: Provisioner,
    packet_ins: Arc<AtomicUsize>,
}

impl SwitchHandler for Forwarding {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.packet_ins.fetch_add(1, Ordering::Relaxed);
        let Some(host) = self.hosts.find(packet.eth_dst()) else {
            return;
        };
        let from = PortId::new(switch.datapath_id(), packet.in_port);
        if let Ok(path) = self.routes.path(from, host.attached, 0) {
            let match_ = Match::any().eth_dst(host.mac);
            let _goes_on_without_us = self
                .provisioner
                .provision(Flow::new(path, match_).releasing(packet));
        }
    }
}

fn ring(version: Version, count: u64) -> (Mesh, Forwarding) {
    let discovery = Discovery::new(mesh::config());
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let forwarding = Forwarding {
        hosts: hosts.clone(),
        routes: Routes::new(&discovery),
        provisioner: Provisioner::new(ProvisionConfig::default()),
        packet_ins: Arc::default(),
    };
    let own = forwarding.clone();
    let mut mesh = Mesh::around(discovery, version, |controller| {
        controller
            .program(hosts.clone())
            .program(NeighbourProxy::new(&hosts))
            .program(own.routes.clone())
            .program(own.provisioner.clone())
            .program(move |_: &SwitchInfo| own.clone())
    })
    .ring(count);
    mesh.pass(Duration::from_secs(1));
    (mesh, forwarding)
}

#[test]
fn hosts_in_a_ring_communicate_without_the_controller() {
    for version in [Version::Of10, Version::Of13] {
        let (mut mesh, forwarding) = ring(version, 5);
        let (near, far) = (port(1, 3), port(3, 3));
        let question = arp_request(1, 3, None);
        mesh.host_sends(near, &question);
        mesh.pass(A_WHILE);
        assert_eq!(
            mesh.copies(&question),
            [0, 1, 1, 1, 1],
            "once to each other host"
        );
        let answer = arp(
            3,
            mac(1),
            None,
            Arp::request(mac(1), ip(1), ip(3)).reply(mac(3)),
        );
        mesh.host_sends(far, &answer);
        mesh.pass(A_WHILE);
        assert_eq!(mesh.copies(&answer), [1, 0, 0, 0, 0]);
        // The second packet in each direction finds entries on the whole path.
        let data = arp(1, mac(3), None, Arp::request(mac(1), ip(1), ip(3)));
        for expected in [1, 0] {
            let before = forwarding.packet_ins.load(Ordering::Relaxed);
            mesh.host_sends(near, &data);
            mesh.pass(A_WHILE);
            assert_eq!(mesh.copies(&data), [0, 0, 1, 0, 0]);
            let after = forwarding.packet_ins.load(Ordering::Relaxed);
            assert_eq!(after - before, expected);
        }
        assert_eq!(forwarding.provisioner.counts().paths, 2);
        assert_eq!(forwarding.provisioner.counts().failed, 0);
    }
}

#[test]
fn runs_are_deterministic_to_the_byte() {
    let run = || {
        let (mut mesh, _) = ring(Version::Of13, 4);
        for host in 1..=4 {
            mesh.host_sends(port(host, 3), &arp_request(host as u8, 9, None));
            mesh.host_sends(port(host, 3), &NdFrame::solicitation(host as u8, 1).bytes());
        }
        mesh.pass(Duration::from_secs(2));
        mesh.disconnect(2);
        mesh.pass(Duration::from_secs(2));
        mesh.said
    };
    let said = run();
    assert!(said.len() > 10_000);
    assert!(said == run(), "two runs differ");
}
