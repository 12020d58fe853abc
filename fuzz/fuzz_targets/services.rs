//! A controller with the services that read frames (links by LLDP, hosts by ARP and neighbour discovery, answers in their
//! names), in a line of three switches whose ports get any frames: nothing panics, no link is believed in that does not exist,
//! and who answers in hosts' names keeps at it.
//!
//! The input is a sequence of events: a byte that says what happens (below 9: a frame comes in, switch by switch and port by
//! port; below 18: that port loses its link, or has it again; others: time passes), two bytes of length, the bytes.

#![no_main]

#[path = "../../crates/services/tests/hosts/net.rs"]
#[allow(
    dead_code,
    reason = "the tests that this is shared with use more of it"
)]
mod net;

use libfuzzer_sys::fuzz_target;
use net::{Net, port};
use std::time::Duration;
use urtica_controller::Controller;
use urtica_services::{
    Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy, Routes,
};
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::Version;

const SWITCHES: u64 = 3;
const PORTS: u8 = 3;

/// How many ports there are.
const PLACES: u8 = SWITCHES as u8 * PORTS;

/// What a millisecond of time passing is multiplied by, so that a byte of it reaches from probes to ageing.
const STEP_MS: u64 = 100;

fuzz_target!(|bytes: &[u8]| {
    let mut bench = Bench::new(bytes.len() % 2 == 0);
    let mut rest = bytes;
    while let [kind, l0, l1, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*l0, *l1])).min(after.len());
        let (data, following) = after.split_at(length);
        bench.handle(*kind, data);
        bench.check();
        rest = following;
    }
});

struct Bench {
    net: Net,
    discovery: Discovery,
    hosts: Hosts,
}

impl Bench {
    fn new(is_newest: bool) -> Self {
        let version = if is_newest {
            Version::Of13
        } else {
            Version::Of10
        };
        let discovery = Discovery::new(DiscoveryConfig {
            secret: Some([7; 32]),
            ..DiscoveryConfig::default()
        });
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let controller = Controller::new()
            .program(discovery.clone())
            .program(hosts.clone())
            .program(NeighbourProxy::new(&hosts))
            .program(Routes::new(&discovery));
        let mut net = Net::line(controller, version, SWITCHES);
        net.advance(Duration::from_secs(1));
        assert_eq!(
            discovery.topology().load().directed_links().len(),
            4,
            "both ways of two links"
        );
        Self {
            net,
            discovery,
            hosts,
        }
    }

    fn handle(&mut self, kind: u8, data: &[u8]) {
        // What is not taken would grow with the input.
        self.net.told.clear();
        self.net.delivered.clear();
        if kind < PLACES {
            self.net.packet_in(place(kind), data);
        } else if kind < 2 * PLACES {
            let is_up = data.len() % 2 == 0;
            self.net.set_link(place(kind - PLACES), is_up);
        } else {
            let steps = u64::from(kind - 2 * PLACES);
            self.net.advance(Duration::from_millis(steps * STEP_MS));
        }
    }

    fn check(&self) {
        let topology = self.discovery.topology().load();
        for link in topology.directed_links() {
            assert!(is_link(link), "{link:?} was made up");
        }
        for host in self.hosts.all() {
            assert!(!host.mac.is_multicast(), "{host:?}");
        }
        let network = self.net.controller.network();
        assert_eq!(
            network.switches().len() as u64,
            SWITCHES,
            "a handler panicked"
        );
        let background = self.net.controller.background_counters();
        assert_eq!((background.panics(), background.stalls()), (0, 0));
    }
}

fn place(number: u8) -> PortId {
    port(1 + u64::from(number / PORTS), 1 + u32::from(number % PORTS))
}

/// The line's links lead from port 2 of a switch to port 1 of the next.
fn is_link(link: &DirectedLink) -> bool {
    let (low, high) = if link.from.switch < link.to.switch {
        (link.from, link.to)
    } else {
        (link.to, link.from)
    };
    low.port_no.0 == 2 && high.port_no.0 == 1 && low.switch.0 + 1 == high.switch.0
}
