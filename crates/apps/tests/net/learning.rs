//! Learning programs: they forget outdated facts when the network changes, and flood no more than necessary.

use crate::support::{
    frame, frames_carried, inject, ms, net_of_plan, net_speaking, options, refuse_flow_mods,
};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::{EdgeLearning, FULL_PORT_KEPT_FOR, LockFree, MAX_HOSTS_PER_PORT};
use urtica_controller::Controller;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, Net, PingId};
use urtica_services::Discovery;
use urtica_topology::spec::TopologySpec;
use urtica_wire::{Action, Message, PortNo, Version};

/// The forms of `global`.
const GLOBALS: [&str; 3] = ["global", "global-mutex", "global-stm"];

fn controller(apps: &[&str]) -> Controller {
    urtica_apps::add_all(Controller::new(), apps, &options()).unwrap()
}

/// A network in which one host pings another continuously, so that no entry on the path is ever idle.
struct Pinged {
    net: Net,
    ping: PingId,
    apps: [&'static str; 2],
    version: Version,
}

impl Pinged {
    /// The time to reach the other host again after a change of the network.
    const RECOVERY: Duration = ms(2_000);

    /// Creates a network in which `from` has pinged `to` for a while; no host has announced itself.
    fn new(apps: [&'static str; 2], version: Version, spec: &str, from: &str, to: &str) -> Self {
        let mut net = net_speaking(&[version], spec, controller(&apps));
        let [from, to] = [from, to].map(|name| net.host(name).unwrap());
        let ping = net.start_ping(from, to, u32::MAX).unwrap();
        let mut pinged = Self {
            net,
            ping,
            apps,
            version,
        };
        pinged.answered("at first");
        pinged
    }

    /// Checks that each request is answered after the time to recover.
    fn answered(&mut self, when: &str) {
        self.net.run_for(Self::RECOVERY);
        let before = self.net.ping_report(self.ping).unwrap().received;
        self.net.run_for(ms(4_000));
        let received = self.net.ping_report(self.ping).unwrap().received - before;
        let (apps, version) = (self.apps, self.version);
        assert!(
            received >= 4,
            "{apps:?}, {version:?}, {when}: {received} of 4"
        );
    }
}

/// Runs a check in networks of this topology, with each program and version.
fn each(spec: &str, from: &str, to: &str, befall: impl Fn(&mut Pinged)) {
    for app in ["l2"].into_iter().chain(GLOBALS) {
        for version in Version::ALL {
            befall(&mut Pinged::new(
                ["discovery", app],
                version,
                spec,
                from,
                to,
            ));
        }
    }
}

#[test]
fn packets_follow_lost_and_restored_links() {
    each("ring,4", "h3", "h1", |pinged| {
        for (a, b) in [("s1", "s2"), ("s1", "s4"), ("s2", "s3"), ("s3", "s4")] {
            let link = pinged.net.link(a, b).unwrap();
            pinged.net.cut(link).unwrap();
            pinged.answered(&format!("without {a} = {b}"));
            pinged.net.repair(link).unwrap();
            pinged.answered(&format!("with {a} = {b} again"));
        }
    });
}

#[test]
fn silently_moved_hosts_are_found() {
    each("ring,4", "h3", "h1", |pinged| {
        for to in ["s2", "s3", "s4", "s1"] {
            let (h1, to_id) = (
                pinged.net.host("h1").unwrap(),
                pinged.net.switch(to).unwrap(),
            );
            pinged.net.move_host(h1, to_id).unwrap();
            pinged.answered(&format!("h1 is at {to}"));
        }
    });
}

#[test]
fn entries_of_an_earlier_controller_hide_no_moves() {
    each("ring,4", "h3", "h1", |pinged| {
        let net = &mut pinged.net;
        net.stop_controller();
        let (h1, s3) = (net.host("h1").unwrap(), net.switch("s3").unwrap());
        net.move_host(h1, s3).unwrap();
        net.run_for(ms(1_000));
        net.start_controller(controller(&pinged.apps)).unwrap();
        // Switches try to connect at least every eight seconds.
        net.run_for(Duration::from_secs(10));
        pinged.answered("with another controller");
    });
}

#[test]
fn moves_without_port_status_are_found() {
    each("ring,4", "h3", "h1", |pinged| {
        let net = &mut pinged.net;
        let [s1, s2] = ["s1", "s2"].map(|name| net.switch(name).unwrap());
        net.break_connection(s1).unwrap();
        let h1 = net.host("h1").unwrap();
        net.move_host(h1, s2).unwrap();
        net.run_for(Duration::from_secs(10));
        pinged.answered("h1 has moved while s1 had no connection");
    });
}

#[test]
fn moves_are_found_after_refused_deletions() {
    each("ring,4", "h3", "h1", |pinged| {
        let net = &mut pinged.net;
        refuse_flow_mods(net, true);
        let (h1, s3) = (net.host("h1").unwrap(), net.switch("s3").unwrap());
        net.move_host(h1, s3).unwrap();
        net.run_for(ms(1_000));
        refuse_flow_mods(&mut pinged.net, false);
        pinged.answered("h1 has moved while switches refused all flow mods");
    });
}

/// A link that loses all packets for a while, while its ports stay up, looks like two host ports.
#[test]
fn restored_silent_links_cause_no_loops() {
    for app in ["l2", "global"] {
        let mut net = net_speaking(&Version::ALL, "ring,3", controller(&["discovery", app]));
        let [s1, s2, s3] = ["s1", "s2", "s3"].map(|name| net.switch(name).unwrap());
        assert!(net.ping_all().unwrap().is_complete());
        let link = net.link("s1", "s3").unwrap();
        net.set_loss(link, 1.0).unwrap();
        for switch in [s1, s2, s3] {
            net.restart_switch(switch).unwrap();
        }
        net.run_for(Duration::from_secs(10));
        assert!(net.ping_all().unwrap().is_complete(), "{app}");
        let known = frames_carried(&net, link);
        net.set_loss(link, 0.0).unwrap();
        net.announce_hosts();
        net.run_for(ms(1_000));
        let carried = frames_carried(&net, link) - known;
        assert!(carried < 100, "{app}: {carried} frames in a second");
        assert!(net.ping_all().unwrap().is_complete(), "{app}");
    }
}

/// Copies of a packet to an unknown host are in flight when that host is learnt.
#[test]
fn flooded_packets_arrive_once_while_their_host_is_learnt() {
    for app in ["l2"].into_iter().chain(GLOBALS) {
        let mut net = net_speaking(&Version::ALL, "ring,3", controller(&["discovery", app]));
        let h2 = net.host("h2").unwrap();
        let received = |net: &Net| net.host_counters(h2).unwrap().received;
        let before = received(&net);
        net.stall_connection(net.switch("s3").unwrap(), ms(200))
            .unwrap();
        inject(&net, "s1", 1, [frame(1, 2, 0x88b5, b"to h2")]);
        net.run_for(ms(100));
        net.announce_host(h2).unwrap();
        net.run_for(ms(1_000));
        assert_eq!(received(&net) - before, 1, "{app}");
    }
}

#[test]
fn long_silent_receivers_still_receive_after_a_move() {
    let mut net = net_speaking(&Version::ALL, "single,3", controller(&["l2"]));
    let [h1, h2, h3] = ["h1", "h2", "h3"].map(|name| net.host(name).unwrap());
    assert!(net.ping_all().unwrap().is_complete());
    let datagrams = Datagrams {
        count: 4_000,
        payload_bytes: 64,
        interval: ms(100),
    };
    let flow = net.start_datagrams(h1, h2, datagrams).unwrap();
    // The table forgets a host after 300 s of silence.
    net.run_for(Duration::from_secs(310));
    net.move_host(h2, net.switch("s1").unwrap()).unwrap();
    net.run_for(ms(1_000));
    assert_eq!(net.ping(h2, h3).unwrap().received, 1);
    net.run_for(ms(500));
    let before = net.flow_report(flow).unwrap().received;
    net.run_for(ms(10_000));
    let received = net.flow_report(flow).unwrap().received - before;
    assert!(received >= 99, "{received} of 100");
}

#[test]
fn forged_senders_fill_only_their_port_for_a_while() {
    let discovery = Discovery::new(options().discovery);
    let learning = EdgeLearning::<LockFree>::along_tree(&discovery);
    let controller = Controller::new()
        .program(discovery)
        .program(learning.clone());
    let mut net = net_speaking(&[Version::Of13], "linear,2", controller);
    let most = MAX_HOSTS_PER_PORT as u64;
    let made_up = |number| {
        frame(
            0x0200_0000_0000 + number,
            0x0300_0000_0000,
            0x88b5,
            b"made up",
        )
    };
    let send = |net: &mut Net, numbers: Range<u64>| {
        for first in numbers.clone().step_by(100) {
            inject(
                net,
                "s1",
                1,
                (first..numbers.end.min(first + 100)).map(made_up),
            );
            net.run_for(ms(100));
        }
    };
    send(&mut net, 0..most + 500);
    assert_eq!(learning.refused(), 500);
    // Neither hosts at other ports nor hosts at the full port are affected, since packets to the latter are flooded.
    assert!(net.ping_all().unwrap().is_complete());
    net.run_for(FULL_PORT_KEPT_FOR);
    let refused = learning.refused();
    send(&mut net, 10_000..10_100);
    assert_eq!(learning.refused(), refused);
}

/// Counts the packet-outs to FLOOD.
#[derive(Clone, Default)]
struct Floods(Rc<RefCell<usize>>);

impl Watcher for Floods {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::ToSwitch(_, mut bytes) = *event {
            while let Ok(Some((frame, rest))) = urtica_wire::split_frame(bytes) {
                let message = Message::decode(frame).unwrap().1;
                *self.0.borrow_mut() += usize::from(floods(&message));
                bytes = rest;
            }
        }
        Ok(())
    }
}

fn floods(message: &Message) -> bool {
    let Message::PacketOut(packet_out) = message else {
        return false;
    };
    packet_out
        .actions
        .iter()
        .any(|action| action == Action::output(PortNo::FLOOD))
}

/// Returns the number of an app's floods while all hosts ping each other, and while they do so again after all connections
/// broke.
fn floods_of(app: &str, spec: &str) -> [usize; 2] {
    let plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
    let mut net = net_of_plan(&plan, controller(&[app]));
    let floods = Floods::default();
    net.watch(floods.clone());
    let count = |net: &mut Net| {
        assert!(net.ping_all().unwrap().is_complete(), "{app}");
        floods.0.take()
    };
    let first = count(&mut net);
    for switch in net.switches() {
        net.break_connection(switch).unwrap();
    }
    net.run_for(Duration::from_secs(10));
    [first, count(&mut net)]
}

#[test]
fn shared_hosts_cause_fewer_floods() {
    for spec in ["linear,4", "tree,depth=2,fanout=3"] {
        let each = floods_of("l2", spec);
        for app in GLOBALS {
            let all = floods_of(app, spec);
            assert!(
                all[0] <= each[0],
                "{spec}: {app} {}, l2 {}",
                all[0],
                each[0]
            );
            assert!(
                each[1] > 0 && all[1] == 0,
                "after a break, {spec}: {app} {}, l2 {}",
                all[1],
                each[1]
            );
        }
    }
}
