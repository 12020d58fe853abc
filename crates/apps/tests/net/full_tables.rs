//! A switch whose table is full: packet-outs forward its packets, and few of them add an entry.

use crate::support::{ms, net_speaking, options};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::Routing;
use urtica_controller::Controller;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, Net, SwitchId};
use urtica_services::{Discovery, Hosts, HostsConfig, Routes};
use urtica_switch::Switch;
use urtica_wire::{FlowModCommand, Message, Version};

/// The programs that add entries for packets.
const ADDING: [&[&str]; 5] = [
    &["l2"],
    &["discovery", "l2"],
    &["global"],
    &["discovery", "global"],
    &["discovery", "hosts", "routing"],
];

/// Counts the entries that the controller adds, to all switches.
#[derive(Clone, Default)]
struct Added(Rc<Cell<usize>>);

impl Watcher for Added {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::ToSwitch(_, mut bytes) = *event {
            while let Ok(Some((frame, rest))) = urtica_wire::split_frame(bytes) {
                let message = Message::decode(frame).unwrap().1;
                self.0.set(self.0.get() + usize::from(adds(&message)));
                bytes = rest;
            }
        }
        Ok(())
    }
}

fn adds(message: &Message) -> bool {
    matches!(message, Message::FlowMod(flow_mod) if flow_mod.command == FlowModCommand::Add)
}

fn change(net: &mut Net, switch: SwitchId, work: impl FnOnce(&mut Switch)) {
    work(net.switch_mut(switch).unwrap().unwrap());
}

#[test]
fn full_tables_get_few_entries_and_packets_arrive() {
    for version in Version::ALL {
        for apps in ADDING {
            is_left_alone(apps, version);
        }
    }
}

/// Sends datagrams over a switch whose table is full, and then has space again.
fn is_left_alone(apps: &[&str], version: Version) {
    let controller = urtica_apps::add_all(Controller::new(), apps, &options()).unwrap();
    let mut net = net_speaking(&[version], "linear,3", controller);
    let s2 = net.switch("s2").unwrap();
    let [h1, h3] = ["h1", "h3"].map(|name| net.host(name).unwrap());
    net.announce_hosts();
    net.run_for(ms(500));
    let entries = |net: &mut Net| net.switch_mut(s2).unwrap().unwrap().entry_count();
    let fresh = entries(&mut net);
    change(&mut net, s2, |switch| switch.leave_room_for(0));
    let added = Added::default();
    net.watch(added.clone());
    let datagrams = Datagrams {
        count: 3_000,
        payload_bytes: 64,
        interval: ms(10),
    };
    let flow = net.start_datagrams(h1, h3, datagrams).unwrap();
    net.run_for(Duration::from_secs(10));
    let report = net.flow_report(flow).unwrap();
    // A switch may lose a packet whose entry it refuses.
    assert!(report.lost() <= 10, "{apps:?}, {version:?}: {report}");
    // Each of a thousand packets would add an entry. Now only address resolution and a few attempts do.
    let added = added.0.get();
    assert!(added <= 30, "{apps:?}, {version:?}: {added}");
    assert_eq!(entries(&mut net), fresh, "{apps:?}, {version:?}");
    change(&mut net, s2, Switch::leave_room);
    net.run_for(Duration::from_secs(17));
    assert!(entries(&mut net) > fresh, "{apps:?}, {version:?}");
}

#[test]
fn flows_with_a_refused_first_entry_end() {
    let discovery = Discovery::new(options().discovery);
    let hosts = Hosts::new(&discovery, HostsConfig::default());
    let routes = Routes::new(&discovery);
    let routing = Routing::new(&hosts, &routes);
    let services = Controller::new().program(discovery).program(hosts);
    let controller = services.program(routes).program(routing.clone());
    let mut net = net_speaking(&Version::ALL, "linear,3", controller);
    let s1 = net.switch("s1").unwrap();
    let [h1, h2, h3] = ["h1", "h2", "h3"].map(|name| net.host(name).unwrap());
    net.announce_hosts();
    net.run_for(ms(500));
    change(&mut net, s1, |switch| switch.leave_room_for(0));
    assert_eq!(net.ping(h1, h2).unwrap().received, 1);
    change(&mut net, s1, Switch::leave_room);
    assert!(routing.flows() > 0);
    // Entries expire after 60 s. Then a packet of another flow ends these flows.
    net.run_for(Duration::from_secs(65));
    assert_eq!(net.ping(h2, h3).unwrap().received, 1);
    net.run_for(Duration::from_secs(130));
    assert_eq!(routing.flows(), 0);
}
