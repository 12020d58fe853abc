//! The number of hops per second of a simulated network on one core.
//!
//! `cargo bench -p urtica-net --bench hops` sends datagrams along lines and across a tree, by entries that a controller has
//! installed, and prints hops per second of this machine's time. `perf stat` can count instructions. A hop is one frame over
//! one link into a switch and through it, or to a host. Under `cargo test` it is short, and prints nothing.
//!
//! Not measured: the cost of watchers, and of a controller's decisions.

use std::time::{Duration, Instant};
use urtica_controller::{Controller, EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_net::{Datagrams, HostId, Net, NetConfig};
use urtica_topology::spec::TopologySpec;
use urtica_wire::{Action, Match, PacketIn, PortNo};

/// The duration of sending, by the network's clock, in a measurement and under `cargo test`.
const TIME: Duration = Duration::from_millis(500);
const TIME_IN_TESTS: Duration = Duration::from_micros(100);

/// The interval of a host's datagrams; five wait for a switch each time.
const INTERVAL: Duration = Duration::from_micros(2);

/// The time after which datagrams are in flight on all hops.
const WARM_UP: Duration = Duration::from_millis(1);

/// A program that learns a host's port from its first packet, and installs a permanent entry for it.
struct Standing;

impl SwitchHandler for Standing {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let to_host = Match::any().eth_dst(packet.eth_src());
        let _ = switch.install(
            to_host,
            &[Action::output(packet.in_port())],
            EntryOptions::idle(0),
        );
        switch.forward(packet, PortNo::FLOOD);
    }
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let time = if is_bench { TIME } else { TIME_IN_TESTS };
    for spec in ["linear,2", "linear,16", "tree,depth=4,fanout=2"] {
        let (hops, took) = measure(spec, time);
        if is_bench {
            let rate = hops as f64 / took.as_secs_f64() / 1e6;
            println!("{spec:24} {hops:>10} hops in {took:>8.3?}: {rate:.2} million a second");
        }
    }
}

/// Makes each host send to a distant one; returns the number of hops, and their duration.
fn measure(spec: &str, time: Duration) -> (u64, Duration) {
    let plan = spec
        .parse::<TopologySpec>()
        .and_then(|spec| spec.plan())
        .expect("it is a topology");
    let mut net = Net::new(&plan, NetConfig::default()).expect("the plan is a network");
    let controller = Controller::new().program(|_: &SwitchInfo| Standing);
    net.start_controller(controller).expect("it has a program");
    net.run_for(Duration::from_millis(500));
    net.announce_hosts();
    net.run_for(Duration::from_millis(500));
    let pairs = pairs(&net);
    let report = net.ping_pairs(&pairs).expect("they are this network's");
    assert!(report.is_complete());
    net.run_for(Duration::from_millis(100));
    for &(from, to) in &pairs {
        let flow = Datagrams {
            count: u64::MAX,
            payload_bytes: 64,
            interval: INTERVAL,
        };
        net.start_datagrams(from, to, flow)
            .expect("they are this network's");
    }
    net.run_for(WARM_UP);
    let before = hops(&net);
    let started = Instant::now();
    net.run_for(time);
    let measured = (hops(&net) - before, started.elapsed());
    assert_eq!(net.control_bytes_under_way(), 0, "all goes by entries");
    measured
}

/// Pairs each host with the host that is half the number of hosts further on.
fn pairs(net: &Net) -> Vec<(HostId, HostId)> {
    let hosts: Vec<_> = net.hosts().collect();
    let half = hosts.len() / 2;
    hosts
        .iter()
        .copied()
        .zip(hosts.iter().copied().cycle().skip(half))
        .collect()
}

fn hops(net: &Net) -> u64 {
    let counters = net.links().filter_map(|link| net.link_counters(link).ok());
    counters.flatten().map(|link| link.arrived).sum()
}
