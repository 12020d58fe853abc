//! Hosts reach each other.

use crate::support::{learning_net, ms, net_with, plan};
use urtica_net::{Net, NetConfig};

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
