//! Global learning in its three forms, and with a topology.

use crate::support::{ms, net_with, options};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use urtica_controller::Controller;
use urtica_net::SwitchId;
use urtica_net::watch::{Event, Violation, Watcher};

/// A time, a switch, and the bytes that the controller sent to it.
type Said = (Duration, SwitchId, Vec<u8>);

/// Records all bytes that the controller sends to switches.
#[derive(Clone, Default)]
struct Sent(Rc<RefCell<Vec<Said>>>);

impl Watcher for Sent {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::ToSwitch(switch, bytes) = event {
            self.0.borrow_mut().push((now, *switch, bytes.to_vec()));
        }
        Ok(())
    }
}

/// Returns the bytes that a controller with this app sends while hosts communicate, leave and return.
fn run(app: &str) -> Sent {
    let mut net = net_with("tree,depth=2,fanout=3", &[app], &options());
    let sent = Sent::default();
    net.watch(sent.clone());
    assert!(net.ping_all().unwrap().is_complete(), "{app}");
    let link = net.link("s1", "s2").unwrap();
    net.cut(link).unwrap();
    net.run_for(Duration::from_secs(6));
    net.repair(link).unwrap();
    net.run_for(ms(500));
    assert!(net.ping_all().unwrap().is_complete(), "{app}");
    sent
}

#[test]
fn all_forms_send_equal_messages() {
    let lock_free = run("global");
    assert!(lock_free.0.borrow().len() > 100);
    for app in ["global-mutex", "global-stm"] {
        assert!(*run(app).0.borrow() == *lock_free.0.borrow(), "{app}");
    }
}

#[test]
fn loops_are_harmless_with_a_topology() {
    for app in ["global", "global-mutex", "global-stm"] {
        let mut net = net_with("torus,3,3", &["discovery", app], &options());
        let report = net.ping_all().unwrap();
        assert!(report.is_complete(), "{app}: {report}");
    }
}

#[test]
fn learning_switches_with_discovery_tolerate_loops() {
    let mut net = net_with("torus,3,3", &["discovery", "l2"], &options());
    net.announce_hosts();
    net.run_for(ms(500));
    let report = net.ping_all().unwrap();
    assert!(report.is_complete(), "{report}");
    assert_eq!(report.duplicates, 0);
    // No packet loops: while hosts are silent, only probes are sent.
    net.run_for(Duration::from_secs(1));
    let carried = |net: &urtica_net::Net| -> u64 {
        net.links()
            .map(|link| crate::support::frames_carried(net, link))
            .sum()
    };
    let before = carried(&net);
    net.run_for(Duration::from_secs(10));
    let ports = 2 * 18;
    assert!(
        carried(&net) - before <= 4 * ports,
        "{} frames in ten seconds",
        carried(&net) - before
    );
}

#[test]
fn services_are_added_automatically() {
    for app in [
        "hosts",
        "routes",
        "neighbour-proxy",
        "provisioner",
        "routing",
    ] {
        let controller = urtica_apps::add_by_name(Controller::new(), app).unwrap();
        assert!(controller.embed().is_ok(), "{app}");
    }
}
