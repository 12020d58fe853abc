//! Requests that a network rejects.

use crate::support::{config, learning_net, plan};
use urtica_net::{Net, NetError};

#[test]
fn errors_for_unknown_names_list_the_known_ones() {
    let net = learning_net("linear,2");
    let told = |error: NetError| error.to_string();
    assert_eq!(
        told(net.host("h9").unwrap_err()),
        "there is no host 'h9'; expected one of h1, h2"
    );
    assert_eq!(
        told(net.switch("h1").unwrap_err()),
        "there is no switch 'h1'; expected one of s1, s2"
    );
    assert_eq!(
        told(net.link("h1", "h2").unwrap_err()),
        "there is no link between 'h1' and 'h2'"
    );
}

#[test]
fn ids_of_another_network_are_refused() {
    let big = learning_net("linear,3");
    let (host, switch, link) = (
        big.host("h3").unwrap(),
        big.switch("s3").unwrap(),
        big.link("s2", "s3").unwrap(),
    );
    let far = big.links().last().unwrap();
    let mut net = learning_net("single,2");
    let h1 = net.host("h1").unwrap();
    let is_refused =
        |result: Result<(), NetError>| matches!(result, Err(NetError::NoSuchId { .. }));
    assert!(is_refused(net.ping(h1, host).map(drop)));
    assert!(is_refused(net.ping(host, h1).map(drop)));
    assert!(is_refused(net.start_stream(h1, host, 1).map(drop)));
    assert!(is_refused(net.host_counters(host).map(drop)));
    assert!(is_refused(net.restart_switch(switch)));
    assert!(is_refused(net.break_connection(switch)));
    assert!(is_refused(net.cut(far)));
    assert!(is_refused(net.set_loss(far, 0.5)));
    assert!(is_refused(net.link_counters(far).map(drop)));
    assert!(net.cut(link).is_ok(), "the second link is there, too");
}

#[test]
fn rejects_contradictory_plans() {
    let told = |change: fn(&mut urtica_topology::spec::Plan)| {
        let mut plan = plan("linear,2");
        change(&mut plan);
        Net::new(&plan, config()).err().unwrap().to_string()
    };
    let twice = told(|plan| plan.hosts[1].attached = plan.hosts[0].attached);
    assert!(twice.contains("two links use the port"), "{twice}");
    let nowhere = told(|plan| drop(plan.switches.pop()));
    assert!(
        nowhere.contains("there is no switch for the port"),
        "{nowhere}"
    );
    let same = told(|plan| plan.switches[1].datapath_id = plan.switches[0].datapath_id);
    assert!(same.contains("two switches have the datapath id"), "{same}");
    let zero = told(|plan| plan.hosts[0].attached.port_no = urtica_wire::PortNo(0));
    assert!(zero.contains("no port can have the number"), "{zero}");
}
