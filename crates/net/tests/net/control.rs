//! The control channel, and networks without one.

use crate::support::{all_connected, config, ms, net_with, plan, settle};
use std::time::Duration;
use urtica_controller::Controller;
use urtica_net::Net;
use urtica_wire::Message;

fn l2() -> Controller {
    urtica_apps::add_by_name(Controller::new(), "l2").unwrap()
}

#[test]
fn switches_reconnect_after_a_break() {
    let mut net = net_with("linear,2", "l2");
    let s1 = net.switch("s1").unwrap();
    net.break_connection(s1).unwrap();
    net.run_for(ms(10));
    assert_eq!(net.connections(), (1, 1));
    assert!(settle(&mut net, ms(1_500)));
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn messages_from_outside_the_programs_leave_at_once() {
    let mut net = net_with("linear,2", "l2");
    let network = net.controller().unwrap();
    let switch = network.switches()[0];
    network.send(switch, &Message::BarrierRequest).unwrap();
    net.run_for(Duration::from_micros(1));
    assert!(net.control_bytes_under_way() > 0);
}

#[test]
fn switches_reconnect_to_a_restarted_controller() {
    let mut net = net_with("tree,depth=2,fanout=2", "l2");
    assert!(net.ping_all().unwrap().is_complete());
    net.stop_controller();
    net.run_for(Duration::from_secs(20));
    assert_eq!(net.connections(), (0, 0));
    assert!(
        !net.ping_all().unwrap().is_complete(),
        "entries have expired, and are not replaced"
    );
    net.start_controller(l2()).unwrap();
    assert!(settle(&mut net, Duration::from_secs(11)));
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_restarted_switch_receives_its_entries_again() {
    let mut net = net_with("linear,2", "l2");
    assert!(net.ping_all().unwrap().is_complete());
    let s1 = net.switch("s1").unwrap();
    net.restart_switch(s1).unwrap();
    assert_eq!(net.connections().0, 1);
    assert!(settle(&mut net, ms(500)));
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_long_stall_closes_the_connection() {
    let mut net = net_with("linear,2", "l2");
    let s1 = net.switch("s1").unwrap();
    net.stall_connection(s1, ms(500)).unwrap();
    net.run_for(ms(1_000));
    assert_eq!(net.connections(), (2, 2), "a short one is survived");
    net.stall_connection(s1, Duration::from_secs(30)).unwrap();
    net.run_for(Duration::from_secs(22));
    assert_eq!(net.connections().0, 1);
    net.run_for(Duration::from_secs(20));
    assert!(all_connected(&net));
    assert_eq!(net.connections(), (2, 2));
}

#[test]
fn segmentation_changes_nothing() {
    let mut config = config();
    config.channel.splits = true;
    let mut net = Net::new(&plan("tree,depth=2,fanout=2"), config).unwrap();
    net.start_controller(l2()).unwrap();
    assert!(settle(&mut net, ms(1_000)));
    assert!(net.ping_all().unwrap().is_complete());
    net.run_for(ms(100));
    assert_eq!(
        (net.control_bytes_under_way(), net.frames_under_way()),
        (0, 0)
    );
}

#[test]
fn a_controller_without_programs_is_refused() {
    let mut net = Net::new(&plan("single,2"), config()).unwrap();
    assert!(net.start_controller(Controller::new()).is_err());
    net.run_for(ms(3_000));
    assert_eq!(net.connections(), (0, 0));
}
