//! Switches and controllers that leave and return, while hosts communicate.

use crate::support::{ms, net_with_controller, options, refuse_flow_mods};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::Routing;
use urtica_controller::{Controller, SessionConfig};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, FlowReport, Net, PingReport};
use urtica_services::{Discovery, Hosts, HostsConfig, Routes};
use urtica_wire::{FlowModCommand, Message, Version, split_frame};

/// The cookie of routing's entries: `routing`, after a byte that distinguishes entries.
const COOKIE: u64 = u64::from_be_bytes(*b"\0routing");

/// The time for which a controller is away.
const AWAY: Duration = Duration::from_secs(3);

/// A time after which all switches have reconnected.
const BACK: Duration = Duration::from_secs(12);

fn controller(version: Version) -> (Controller, Routing) {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let routing = Routing::new(&hosts, &routes);
    let mut session = SessionConfig::default();
    session.versions = vec![version];
    let controller = Controller::new()
        .session(session)
        .program(discovery)
        .program(hosts)
        .program(routes)
        .program(routing.clone());
    (controller, routing)
}

/// Counts the flow mods about routing's entries.
#[derive(Clone, Default)]
struct FlowMods(Rc<RefCell<Vec<FlowModCommand>>>);

impl Watcher for FlowMods {
    fn see(&mut self, _: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let &Event::ToSwitch(_, mut bytes) = event else {
            return Ok(());
        };
        // Channels deliver whole messages.
        while let Ok(Some((frame, rest))) = split_frame(bytes) {
            if let Ok((_, Message::FlowMod(flow_mod))) = Message::decode(frame) {
                if flow_mod.cookie << 8 == COOKIE << 8 || flow_mod.priority == 0x8000 {
                    self.0.borrow_mut().push(flow_mod.command);
                }
            }
            bytes = rest;
        }
        Ok(())
    }
}

struct Bench {
    net: Net,
    routing: Routing,
    flow_mods: FlowMods,
}

impl Bench {
    /// Creates a network in which all hosts know each other.
    fn new(spec: &str, version: Version) -> Self {
        let (controller, routing) = controller(version);
        let mut net = net_with_controller(spec, controller);
        let report = net.ping_all().unwrap();
        assert!(report.is_complete(), "{spec}: {report}");
        // Switches still have to receive the last entries.
        net.run_for(ms(100));
        let flow_mods = FlowMods::default();
        net.watch(flow_mods.clone());
        Self {
            net,
            routing,
            flow_mods,
        }
    }

    /// Sends datagrams between two hosts, one every two milliseconds each way, and pings, one a second. Calls `happening` after
    /// a second, and returns the reports after a further time.
    fn talk(
        &mut self,
        (a, b): (&str, &str),
        happening: impl FnOnce(&mut Net),
        after: Duration,
    ) -> ([FlowReport; 2], PingReport) {
        let net = &mut self.net;
        let [a, b] = [a, b].map(|name| net.host(name).unwrap());
        let seconds = 1 + after.as_secs();
        let datagrams = Datagrams {
            count: seconds * 500,
            payload_bytes: 64,
            interval: ms(2),
        };
        let flows =
            [(a, b), (b, a)].map(|(from, to)| net.start_datagrams(from, to, datagrams).unwrap());
        let ping = net.start_ping(a, b, seconds as u32).unwrap();
        net.run_for(ms(1_000));
        happening(net);
        net.run_for(after + ms(2_000));
        let reports = flows.map(|flow| net.flow_report(flow).unwrap());
        (reports, net.ping_report(ping).unwrap())
    }

    fn lost(&mut self, pair: (&str, &str), happening: impl FnOnce(&mut Net)) -> u64 {
        let (flows, ping) = self.talk(pair, happening, BACK);
        assert!(flows.iter().all(|flow| flow.sent == 6_500));
        flows.iter().map(FlowReport::lost).sum::<u64>() + u64::from(ping.lost())
    }

    fn entries(&mut self) -> Vec<usize> {
        let net = &mut self.net;
        let switches = net.switches();
        let count = |switch| net.switch_mut(switch).unwrap().unwrap().entry_count();
        switches.map(count).collect()
    }
}

/// Breaks connections of switches, which cannot reconnect while the controller is away.
fn cut_off(net: &mut Net, switches: &[&str]) {
    for name in switches {
        let switch = net.switch(name).unwrap();
        net.break_connection(switch).unwrap();
        net.stall_connection(switch, AWAY).unwrap();
    }
}

const VERSIONS: [Version; 2] = [Version::Of10, Version::Of13];

#[test]
fn no_packet_is_lost_without_control_connections() {
    for version in VERSIONS {
        for (spec, switches) in [
            ("linear,3", &["s2"][..]),
            ("linear,3", &["s1", "s2", "s3"]),
            ("ring,5", &["s2"]),
            ("ring,5", &["s1", "s2", "s3", "s4", "s5"]),
        ] {
            let mut bench = Bench::new(spec, version);
            let before = bench.entries();
            let lost = bench.lost(("h1", "h3"), |net| cut_off(net, switches));
            assert_eq!(lost, 0, "{spec} without {switches:?}, {version:?}");
            assert_eq!(bench.entries(), before);
            let report = bench.net.ping_all().unwrap();
            assert!(report.is_complete(), "{report}");
        }
    }
}

#[test]
fn correct_switches_receive_no_flow_mods() {
    let mut bench = Bench::new("linear,3", Version::Of13);
    bench.flow_mods.0.take();
    assert_eq!(
        bench.lost(("h1", "h3"), |net| cut_off(net, &["s1", "s2", "s3"])),
        0
    );
    assert_eq!(bench.flow_mods.0.take(), []);
    assert_eq!(bench.routing.flows(), 3 * 2);
}

#[test]
fn reports_changed_and_missing_entries_of_a_returning_switch() {
    for version in VERSIONS {
        let mut bench = Bench::new("linear,3", version);
        let before = bench.entries();
        bench.flow_mods.0.take();
        let restart = |net: &mut Net| {
            let s2 = net.switch("s2").unwrap();
            net.restart_switch(s2).unwrap();
        };
        bench.talk(("h1", "h3"), restart, BACK);
        assert_eq!(bench.entries(), before);
        let report = bench.net.ping_all().unwrap();
        assert!(report.is_complete(), "{report}");
    }
}

/// The second switch is cut off; the third host, behind it, is unplugged before it returns.
#[test]
fn returning_switches_lose_entries_of_ended_flows() {
    for version in VERSIONS {
        let mut bench = Bench::new("linear,3", version);
        let before = bench.entries();
        cut_off(&mut bench.net, &["s2"]);
        bench.net.run_for(ms(500));
        let h3 = bench.net.link("h3", "s3").unwrap();
        bench.net.cut(h3).unwrap();
        bench.net.run_for(BACK);
        // Of 4, 6 and 4 flows, only the flows between h1 and h2 remain.
        assert_eq!(
            bench.entries(),
            [before[0] - 2, before[1] - 4, before[2] - 4]
        );
        assert_eq!(bench.routing.flows(), 2);
    }
}

#[test]
fn entries_are_repaired_after_refusals() {
    for version in VERSIONS {
        let mut bench = Bench::new("ring,5", version);
        let net = &mut bench.net;
        let [h1, h3] = ["h1", "h3"].map(|name| net.host(name).unwrap());
        let ping = net.start_ping(h1, h3, u32::MAX).unwrap();
        net.run_for(ms(2_000));
        refuse_flow_mods(net, true);
        net.cut(net.link("s2", "s3").unwrap()).unwrap();
        net.run_for(ms(4_000));
        refuse_flow_mods(net, false);
        net.run_for(Duration::from_secs(5));
        let before = net.ping_report(ping).unwrap().received;
        net.run_for(ms(10_000));
        let received = net.ping_report(ping).unwrap().received - before;
        assert!(received >= 9, "{version:?}: {received} of 10");
    }
}

/// Only the switch's connection is lost: its links stay up, so that only the controller can detect it.
#[test]
fn flows_over_a_lost_switch_end() {
    let mut bench = Bench::new("linear,3", Version::Of13);
    let s2 = bench.net.switch("s2").unwrap();
    bench.net.break_connection(s2).unwrap();
    bench
        .net
        .stall_connection(s2, Duration::from_secs(600))
        .unwrap();
    bench.net.run_for(Duration::from_secs(10));
    assert_eq!(bench.routing.flows(), 6);
    bench.net.run_for(Duration::from_secs(10));
    assert_eq!(bench.routing.flows(), 0);
}

/// Restarts the controller after a while, and returns the new program.
fn restart(net: &mut Net, version: Version) -> Routing {
    net.stop_controller();
    net.run_for(AWAY);
    let (controller, routing) = controller(version);
    net.start_controller(controller).unwrap();
    routing
}

/// Only h1 and h3 send packets, which entries of the earlier run forward.
#[test]
fn new_controllers_learn_hosts_from_flows_without_loss() {
    for version in VERSIONS {
        for spec in ["linear,3", "ring,5"] {
            let mut bench = Bench::new(spec, version);
            let mut routing = None;
            let restart = |net: &mut Net| routing = Some(restart(net, version));
            let (flows, ping) = bench.talk(("h1", "h3"), restart, 2 * BACK);
            let lost = flows.iter().map(FlowReport::lost).sum::<u64>() + u64::from(ping.lost());
            assert_eq!(lost, 0, "{spec}, {version:?}");
            assert_eq!(routing.unwrap().flows(), 2, "{spec}, {version:?}");
            let report = bench.net.ping_all().unwrap();
            assert!(report.is_complete(), "{report}");
        }
    }
}

/// The host's port keeps its link, and no switch receives its announcement: its packets to its peer reveal it.
#[test]
fn hosts_that_moved_unseen_are_found_by_their_packets() {
    for version in VERSIONS {
        let mut bench = Bench::new("ring,3", version);
        let net = &mut bench.net;
        let [h1, h3] = ["h1", "h3"].map(|name| net.host(name).unwrap());
        let pings = [(h1, h3), (h3, h1)].map(|(a, b)| net.start_ping(a, b, u32::MAX).unwrap());
        net.run_for(ms(2_000));
        net.stop_controller();
        net.move_host_silently(h1, net.switch("s3").unwrap())
            .unwrap();
        net.run_for(AWAY);
        let (controller, _routing) = controller(version);
        net.start_controller(controller).unwrap();
        net.run_for(BACK);
        let received = |net: &mut Net| pings.map(|ping| net.ping_report(ping).unwrap().received);
        let before = received(net);
        net.run_for(ms(10_000));
        let after = received(net);
        for (before, after) in before.into_iter().zip(after) {
            assert!(after - before >= 9, "{version:?}: {} of 10", after - before);
        }
    }
}

/// The host's switch was away, and has not received packets of the host since; entries forward its packets from its new port.
#[test]
fn unplugged_hosts_of_a_returned_switch_are_found_at_their_new_port() {
    for version in VERSIONS {
        let mut bench = Bench::new("linear,3", version);
        let net = &mut bench.net;
        let [h1, h3] = ["h1", "h3"].map(|name| net.host(name).unwrap());
        cut_off(net, &["s3"]);
        net.run_for(BACK);
        net.move_host(h3, net.switch("s2").unwrap()).unwrap();
        net.run_for(ms(1_000));
        let ping = net.start_ping(h1, h3, 10).unwrap();
        net.run_for(ms(12_000));
        let report = net.ping_report(ping).unwrap();
        assert!(report.lost() <= 1, "{version:?}: {report:?}");
    }
}

/// All hosts send packets as soon as their switches are back.
#[test]
fn controller_restarts_lose_no_packets_and_change_no_entries() {
    for version in VERSIONS {
        for spec in ["linear,3", "ring,5"] {
            let mut bench = Bench::new(spec, version);
            let before = bench.entries();
            bench.flow_mods.0.take();
            let mut routing = None;
            let restart_heard = |net: &mut Net| {
                routing = Some(restart(net, version));
                net.run_for(ms(8_500));
                net.announce_hosts();
            };
            let lost = bench.lost(("h1", "h3"), restart_heard);
            assert_eq!(lost, 0, "{spec}, {version:?}");
            let hosts = bench.net.hosts().len();
            assert_eq!(routing.unwrap().flows(), hosts * (hosts - 1));
            assert_eq!(bench.flow_mods.0.take(), [], "{spec}, {version:?}");
            assert_eq!(bench.entries(), before);
            let report = bench.net.ping_all().unwrap();
            assert!(report.is_complete(), "{report}");
        }
    }
}

#[test]
fn unused_entries_of_an_earlier_run_are_deleted() {
    for version in VERSIONS {
        let (controller, _) = controller(version);
        let fresh = {
            let mut net = net_with_controller("ring,4", controller);
            let s1 = net.switch("s1").unwrap();
            net.switch_mut(s1).unwrap().unwrap().entry_count()
        };
        let mut bench = Bench::new("ring,4", version);
        let routing = restart(&mut bench.net, version);
        bench.net.run_for(Duration::from_secs(70));
        assert_eq!(bench.entries(), [fresh; 4]);
        assert_eq!(routing.flows(), 0);
        let report = bench.net.ping_all().unwrap();
        assert!(report.is_complete(), "{report}");
    }
}

/// Entries of an earlier run lead to the host's old port while packets use them.
#[test]
fn hosts_that_moved_without_a_controller_are_found() {
    for version in VERSIONS {
        let mut bench = Bench::new("linear,4", version);
        let net = &mut bench.net;
        let [h1, h3] = ["h1", "h3"].map(|name| net.host(name).unwrap());
        let datagrams = Datagrams {
            count: 30_000,
            payload_bytes: 64,
            interval: ms(1),
        };
        let flow = net.start_datagrams(h1, h3, datagrams).unwrap();
        net.run_for(ms(500));
        net.stop_controller();
        net.move_host(h3, net.switch("s2").unwrap()).unwrap();
        net.run_for(AWAY);
        let (controller, _routing) = controller(version);
        net.start_controller(controller).unwrap();
        net.run_for(BACK);
        let before = net.flow_report(flow).unwrap();
        net.run_for(Duration::from_secs(5));
        let after = net.flow_report(flow).unwrap();
        let received = after.received - before.received;
        assert!(
            (4_999..=5_001).contains(&received),
            "{version:?}: {received}"
        );
    }
}
