//! Faults of channels, clocks and tables have their effects.

use crate::support::{ms, net_with};
use urtica_net::{LostEnd, Net};

fn pings(net: &mut Net, from: &str, to: &str) -> bool {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    net.ping(from, to).unwrap().received == 1
}

#[test]
fn one_way_loss_is_not_reported_by_ports() {
    let mut net = net_with("linear,2", "l2");
    assert!(pings(&mut net, "h1", "h2"));
    let link = net.link("s1", "s2").unwrap();
    net.set_loss_from(link, 0, 1.0).unwrap();
    let before = net.link_counters(link).unwrap();
    assert!(!pings(&mut net, "h1", "h2"));
    let after = net.link_counters(link).unwrap();
    let lost = [0, 1].map(|end: usize| after[end].lost_drawn - before[end].lost_drawn);
    assert!(lost[0] > 0 && lost[1] == 0, "{lost:?}");
    assert!(!net.is_cut(link).unwrap());
    net.set_loss_from(link, 0, 0.0).unwrap();
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn the_controller_keeps_a_half_open_connection() {
    let mut net = net_with("linear,2", "l2");
    let s1 = net.switch("s1").unwrap();
    net.lose_end(s1, LostEnd::OfSwitch).unwrap();
    assert_eq!(net.connections(), (1, 2));
    assert_eq!(
        net.controller().unwrap().switches().len(),
        2,
        "the controller has not noticed"
    );
    // The switch reconnects first: the newer connection counts, and the older one is closed.
    net.run_for(ms(2_000));
    assert_eq!(net.connections(), (2, 2));
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn a_switch_notices_a_half_open_connection_when_it_sends() {
    let mut net = net_with("linear,2", "l2");
    let s1 = net.switch("s1").unwrap();
    net.lose_end(s1, LostEnd::OfController).unwrap();
    assert_eq!(net.connections(), (2, 1));
    // A frame is sent to the controller, which has lost its end of the connection.
    assert!(!pings(&mut net, "h1", "h2"));
    net.run_for(ms(2_000));
    assert_eq!(net.connections(), (2, 2));
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn a_switch_that_reads_slowly_delays_its_input() {
    let mut net = net_with("single,2", "l2");
    assert!(pings(&mut net, "h1", "h2"));
    let s1 = net.switch("s1").unwrap();
    net.run_for(ms(6_000));
    net.set_read_rate(s1, Some(20)).unwrap();
    assert!(
        !pings(&mut net, "h1", "h2"),
        "entries have expired, and new ones arrive slowly"
    );
    assert!(net.control_bytes_under_way() > 0);
    net.set_read_rate(s1, None).unwrap();
    net.run_for(ms(100));
    assert_eq!(net.control_bytes_under_way(), 0);
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn tables_are_full_and_flow_mods_refused() {
    let mut net = net_with("single,2", "l2");
    let s1 = net.switch("s1").unwrap();
    let entries = |net: &mut Net| net.switch_mut(s1).unwrap().unwrap().entry_count();
    for (refuse, allow) in [
        (
            (|switch| switch.leave_room_for(0)) as fn(&mut urtica_switch::Switch),
            (|switch| switch.leave_room()) as fn(&mut urtica_switch::Switch),
        ),
        (
            |switch| switch.refuse_flow_mods(true),
            |switch| switch.refuse_flow_mods(false),
        ),
    ] {
        net.run_for(ms(6_000));
        assert_eq!(entries(&mut net), 1, "the table-miss entry");
        refuse(net.switch_mut(s1).unwrap().unwrap());
        pings(&mut net, "h1", "h2");
        assert_eq!(entries(&mut net), 1, "nothing can be added");
        allow(net.switch_mut(s1).unwrap().unwrap());
        // A program that finds a table full adds no entries for a second.
        net.run_for(ms(1_000));
        assert!(pings(&mut net, "h1", "h2"));
        assert!(entries(&mut net) > 1);
    }
}

#[test]
fn a_clock_jump_expires_timers() {
    let mut net = net_with("single,2", "l2");
    let s1 = net.switch("s1").unwrap();
    assert!(pings(&mut net, "h1", "h2"));
    let entries = |net: &mut Net| net.switch_mut(s1).unwrap().unwrap().entry_count();
    assert!(entries(&mut net) > 1);
    net.jump_clock(s1, ms(6_000)).unwrap();
    net.run_for(ms(200));
    assert_eq!(entries(&mut net), 1, "entries of five seconds are old now");
    net.jump_controller_clock(ms(60_000));
    net.run_for(ms(200));
    assert_eq!(
        net.connections().1,
        1,
        "the switch was silent for a minute of the controller's clock, and answers when it is asked"
    );
    net.run_for(ms(2_000));
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn a_silent_move_keeps_the_old_port_up() {
    let mut net = net_with("linear,2", "l2");
    let (h1, s1, s2) = (
        net.host("h1").unwrap(),
        net.switch("s1").unwrap(),
        net.switch("s2").unwrap(),
    );
    net.move_host_silently(h1, s2).unwrap();
    net.run_for(ms(500));
    let has_link = |net: &mut Net, switch| {
        let switch = net.switch_mut(switch).unwrap().unwrap();
        switch.ports().next().unwrap().1.is_up()
    };
    assert!(has_link(&mut net, s1), "the port that it has left");
    net.announce_host(h1).unwrap();
    net.run_for(ms(100));
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn a_switch_reconnects_after_an_impostor() {
    let mut net = net_with("linear,2", "l2");
    let s1 = net.switch("s1").unwrap();
    net.connect_impostor(s1).unwrap();
    net.run_for(ms(300));
    assert_eq!(
        (net.peers(), net.connections().0),
        (1, 1),
        "the newer connection counts"
    );
    net.run_for(ms(3_000));
    assert_eq!(
        (net.peers(), net.connections()),
        (0, (2, 2)),
        "and so is the next"
    );
    assert!(pings(&mut net, "h1", "h2"));
}

#[test]
fn malformed_peers_are_disconnected() {
    let mut net = net_with("linear,2", "l2");
    net.connect_stranger(b"GET / HTTP/1.1\r\n\r\n");
    net.run_for(ms(300));
    assert_eq!(net.peers(), 0, "this is no OpenFlow");
    net.connect_stranger(&[4, 0, 0]);
    net.run_for(ms(1_000));
    assert_eq!(net.peers(), 1, "more may come");
    assert!(pings(&mut net, "h1", "h2"));
    net.run_for(ms(12_000));
    assert_eq!(
        (net.peers(), net.connections()),
        (0, (2, 2)),
        "but not for ever"
    );
}

#[test]
fn a_second_controller_has_sessions_and_changes_nothing() {
    let mut net = net_with("linear,2", "l2");
    let s1 = net.switch("s1").unwrap();
    net.start_second_controller().unwrap();
    net.run_for(ms(1_000));
    assert_eq!(net.switches_of_second_controller(), 2);
    let connections = |net: &mut Net| net.switch_mut(s1).unwrap().unwrap().connection_count();
    assert_eq!(connections(&mut net), 2);
    let report = net.ping_all().unwrap();
    assert!(report.is_complete() && report.duplicates == 0, "{report}");
    net.restart_switch(s1).unwrap();
    net.run_for(ms(20_000));
    assert_eq!(
        net.switches_of_second_controller(),
        2,
        "keep-alives are answered"
    );
    net.stop_second_controller();
    assert_eq!(connections(&mut net), 1);
    assert!(net.ping_all().unwrap().is_complete());
}
