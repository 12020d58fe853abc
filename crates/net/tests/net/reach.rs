//! Hosts reach each other.

use crate::support::{learning_net, ms, net_with, plan};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{LinkId, Net, NetConfig};

#[test]
fn hosts_ping_over_switches_that_learn_by_themselves() {
    let mut net = learning_net("tree,depth=2,fanout=3");
    let report = net.ping_all().unwrap();
    assert!(report.is_complete(), "{report} {:?}", report.failed);
    assert_eq!((report.sent, report.duplicates), (9 * 8, 0));
}

#[test]
fn hosts_ping_by_the_controllers_entries() {
    let mut net = net_with("linear,4", "l2");
    let report = net.ping_all().unwrap();
    assert!(report.is_complete(), "{report} {:?}", report.failed);
    assert_eq!(report.to_string(), "Results: 0% dropped (12/12 received)");
}

#[test]
fn compiled_tables_carry_the_same() {
    let mut net = Net::new(&plan("linear,2"), NetConfig::default()).unwrap();
    let controller = urtica_apps::add_by_name(Default::default(), "l2").unwrap();
    net.start_controller(controller).unwrap();
    net.run_for(ms(500));
    assert!(net.ping_all().unwrap().is_complete());
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let report = net.ping(h1, h2).unwrap();
    assert_eq!((report.sent, report.received), (1, 1));
    assert!(
        report.rtt_max < ms(1),
        "by an entry, not by the controller: {report}"
    );
}

#[test]
fn hosts_find_each_other_and_ping_over_ipv6() {
    let mut net = learning_net("linear,3");
    net.ping_over_ipv6(true);
    let link = net.link("h1", "s1").unwrap();
    let frames = Rc::new(RefCell::new(Vec::new()));
    net.watch(EtherTypes(link, Rc::clone(&frames)));
    assert!(net.ping_all().unwrap().is_complete());
    let frames = frames.borrow();
    assert!(!frames.is_empty() && frames.iter().all(|ether_type| *ether_type == 0x86dd));
}

#[test]
fn hosts_of_one_vlan_reach_each_other_and_no_others() {
    let mut net = net_with("linear,4", "l2");
    let hosts: Vec<_> = net.hosts().collect();
    for (host, vlan) in hosts.iter().zip([None, Some(7), None, Some(7)]) {
        net.set_vlan(*host, vlan).unwrap();
    }
    let refused = net.set_vlan(hosts[0], Some(4_095)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a host cannot be in VLAN 4095; expected 1 to 4094"
    );
    for over_ipv6 in [false, true] {
        net.ping_over_ipv6(over_ipv6);
        for (from, to) in [(0, 1), (1, 3), (3, 0), (0, 2), (2, 3)] {
            let report = net.ping(hosts[from], hosts[to]).unwrap();
            let is_same = from % 2 == to % 2;
            assert_eq!(
                report.received == 1,
                is_same,
                "h{} to h{}",
                from + 1,
                to + 1
            );
        }
    }
}

/// Records the types of the frames that leave a link.
struct EtherTypes(LinkId, Rc<RefCell<Vec<u16>>>);

impl Watcher for EtherTypes {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(link, _, frame) = *event {
            if link == self.0 {
                let ether_type = u16::from_be_bytes([frame[12], frame[13]]);
                self.1.borrow_mut().push(ether_type);
            }
        }
        Ok(())
    }
}
