//! Tests of ports: descriptions for controllers, counters, and forwarding without a controller.

use crate::support::{Bench, body, config, frame, hw_addr, link_index, multipart, port};
use std::time::Duration;
use urtica_switch::{ConnectionId, FailMode, SwitchConfig};
use urtica_wire::{
    ErrorCode, FlowMod, FlowModCommand, GroupMod, GroupModCommand, Message, MultipartReplyBody,
    MultipartRequestBody, Port, PortConfig, PortFeatures, PortMod, PortNo, PortReason, PortState,
    PortStats, PortStatus, Version,
};

fn take_status(bench: &mut Bench, controller: ConnectionId) -> PortStatus {
    match bench.take_one(controller).message() {
        Message::PortStatus(status) => status,
        other => panic!("expected a port status, not {other:?}"),
    }
}

fn standalone(ports: u32) -> Bench {
    let mut bench = Bench::new(SwitchConfig {
        fail_mode: FailMode::Standalone,
        ..config()
    });
    for number in 1..=ports {
        bench.add_port(number);
    }
    bench
}

fn configure(bench: &mut Bench, controller: ConnectionId, number: u32, config: PortConfig) {
    let port_mod = PortMod {
        port_no: PortNo(number),
        hw_addr: hw_addr(number),
        config,
        mask: config,
        advertise: PortFeatures::empty(),
    };
    bench.tell(controller, &Message::PortMod(port_mod));
    bench.take(controller);
}

/// This test does not poll the link.
#[test]
fn a_link_lost_by_a_system_report_is_gone_at_once() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let failover =
        "group_id=1,type=fast_failover,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3";
    let group = GroupMod::parse(GroupModCommand::Add, failover).unwrap();
    bench.tell_quietly(controller, &Message::GroupMod(group));
    let entry = FlowMod::parse(FlowModCommand::Add, "in_port=1,actions=group:1").unwrap();
    bench.tell_quietly(controller, &Message::FlowMod(entry));
    for (is_cut, sender) in [(false, 2), (true, 3), (false, 2)] {
        bench.link(2).is_cut = is_cut;
        bench.switch.handle_link(link_index(2), !is_cut);
        bench.switch.handle_link(link_index(9), false);
        bench.receive(1, &frame(1, 2));
        assert_eq!(bench.senders(), [sender]);
    }
    let told = bench.take(controller);
    let is_down = told.iter().map(|sent| match sent.message() {
        Message::PortStatus(status) => status.port.state.contains(PortState::LINK_DOWN),
        other => panic!("expected a port's status, not {other:?}"),
    });
    assert!(is_down.eq([true, false]));
}

#[test]
fn ports_are_added_and_removed() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let expected = |reason| PortStatus {
            reason,
            port: port(version, 7),
        };
        bench.add_port(7);
        assert_eq!(
            take_status(&mut bench, controller),
            expected(PortReason::Add)
        );
        bench.add_port(7);
        assert_eq!(
            take_status(&mut bench, controller),
            expected(PortReason::Modify)
        );
        let io = bench.switch.remove_port(PortNo(7), bench.now);
        assert_eq!(io.unwrap().name(), "link");
        assert_eq!(
            take_status(&mut bench, controller),
            expected(PortReason::Delete)
        );
        assert!(bench.switch.remove_port(PortNo(7), bench.now).is_none());
        assert!(bench.take(controller).is_empty());
    }
}

#[test]
fn numbers_that_no_port_can_have_are_refused() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    for number in [0, PortNo::ALL.0, PortNo::ANY.0] {
        bench.add_port(number);
        assert!(bench.take(controller).is_empty());
    }
    bench.add_port(PortNo::LOCAL.0);
    assert_eq!(bench.take(controller).len(), 1);
    assert_eq!(bench.switch.ports().count(), 4);
}

#[test]
fn links_are_watched() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    bench.link(2).is_cut = true;
    bench.pass(Duration::from_secs(1));
    let status = take_status(&mut bench, controller);
    assert_eq!(status.reason, PortReason::Modify);
    assert_eq!(status.port.state, PortState::LINK_DOWN);
    bench.pass(Duration::from_secs(1));
    assert!(bench.take(controller).is_empty());
    bench.link(2).is_cut = false;
    bench.pass(Duration::from_secs(1));
    let back = take_status(&mut bench, controller);
    assert_eq!(back.port, port(Version::Of13, 2));
}

#[test]
fn a_failed_port_has_no_link_until_it_works_again() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    bench.link(1).is_broken = true;
    bench.switch.poll_ports(bench.now);
    let status = take_status(&mut bench, controller);
    assert_eq!(status.port.state, PortState::LINK_DOWN);
    bench.switch.poll_ports(bench.now);
    assert!(bench.take(controller).is_empty());
    bench.link(1).is_broken = false;
    bench.pass(Duration::from_secs(1));
    assert_eq!(
        take_status(&mut bench, controller).port,
        port(Version::Of13, 1)
    );
}

#[test]
fn without_a_controller_the_switch_learns() {
    let mut bench = standalone(3);
    bench.receive(1, &frame(1, 2));
    assert_eq!(bench.senders(), [2, 3], "not known yet");
    bench.receive(2, &frame(2, 1));
    assert_eq!(bench.senders(), [1]);
    bench.receive(1, &frame(1, 2));
    assert_eq!(bench.senders(), [2]);
    bench.receive(3, &frame(3, 0xff));
    assert_eq!(bench.senders(), [1, 2]);
    bench.receive(2, &frame(9, 2));
    assert!(bench.senders().is_empty(), "it is on its side already");
}

#[test]
fn without_a_controller_bridge_frames_are_not_forwarded() {
    let mut bench = standalone(2);
    let mut bpdu = frame(1, 2);
    bpdu[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
    bench.receive(1, &bpdu);
    assert!(bench.senders().is_empty());
}

#[test]
fn without_a_controller_frames_for_lost_hosts_are_flooded() {
    let mut bench = standalone(3);
    bench.receive(2, &frame(2, 0xff));
    bench.senders();
    bench.link(2).is_cut = true;
    bench.pass(Duration::from_secs(1));
    bench.receive(1, &frame(1, 2));
    assert_eq!(bench.senders(), [3]);
}

#[test]
fn ports_that_are_switched_off_take_no_part() {
    for (config, takes_in, sends) in [
        (PortConfig::PORT_DOWN, false, false),
        (PortConfig::NO_RECV, false, true),
        (PortConfig::NO_FWD, true, false),
        (PortConfig::NO_FLOOD, true, false),
    ] {
        let mut bench = standalone(2);
        let controller = bench.connect(Version::Of10);
        configure(&mut bench, controller, 2, config);
        bench.switch.disconnect(controller, bench.now);
        bench.receive(2, &frame(2, 0xff));
        assert_eq!(!bench.senders().is_empty(), takes_in, "{config:?}");
        bench.receive(1, &frame(1, 0xff));
        assert_eq!(!bench.senders().is_empty(), sends, "{config:?}");
    }
}

#[test]
fn a_full_burst_reports_possible_further_frames() {
    let mut bench = standalone(2);
    for _ in 0..40 {
        bench.link(1).to_switch.push_back(frame(1, 0xff));
    }
    assert!(bench.switch.poll_ports(bench.now));
    assert!(!bench.switch.poll_ports(bench.now));
    assert_eq!(bench.sent_by(2).len(), 40);
}

fn stats(bench: &mut Bench, controller: ConnectionId, number: u32) -> PortStats {
    let asked = multipart(MultipartRequestBody::PortStats(PortNo(number)));
    let answer = bench.ask(controller, &asked);
    match body(&answer) {
        MultipartReplyBody::PortStats(rows) => rows.iter().next().unwrap(),
        other => panic!("expected port stats, not {other:?}"),
    }
}

#[test]
fn ports_count() {
    let mut bench = standalone(2);
    bench.receive(1, &frame(1, 2));
    bench.receive(1, &[0; 13]);
    bench.link(2).is_full = true;
    bench.receive(1, &frame(1, 2));
    bench.now += Duration::from_millis(2500);

    let controller = bench.connect(Version::Of13);
    let first = stats(&mut bench, controller, 1);
    assert_eq!((first.rx_packets, first.rx_bytes), (3, 133));
    assert_eq!((first.rx_errors, first.rx_dropped), (1, 0));
    assert_eq!((first.duration_sec, first.duration_nsec), (2, 500_000_000));
    assert_eq!(first.collisions, u64::MAX, "not kept");
    let second = stats(&mut bench, controller, 2);
    assert_eq!((second.tx_packets, second.tx_bytes), (1, 60));
    assert_eq!(second.tx_dropped, 1);

    configure(&mut bench, controller, 1, PortConfig::NO_RECV);
    bench.receive(1, &frame(1, 2));
    assert_eq!(stats(&mut bench, controller, 1).rx_dropped, 1);

    for dropped in [1000, 0, 7] {
        bench.link(1).dropped = dropped;
        bench.pass(Duration::from_millis(100));
    }
    assert_eq!(stats(&mut bench, controller, 1).rx_dropped, 1008);

    let of10 = bench.connect(Version::Of10);
    let told = stats(&mut bench, of10, 2);
    assert_eq!((told.tx_packets, told.duration_sec), (1, 0));
}

#[test]
fn all_ports_counters_and_unknown_ones() {
    for (version, code) in [
        (Version::Of13, ErrorCode::BadRequestBadPort),
        (Version::Of10, ErrorCode::BadRequestEperm),
    ] {
        let (mut bench, controller) = Bench::with_controller(version);
        let asked = |port| multipart(MultipartRequestBody::PortStats(port));
        let answer = bench.ask(controller, &asked(PortNo::ANY));
        let MultipartReplyBody::PortStats(rows) = body(&answer) else {
            panic!("expected port stats");
        };
        let numbers: Vec<_> = rows.iter().map(|row| row.port_no.0).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(bench.refused(controller, &asked(PortNo(9))), code);
    }
}

#[test]
fn port_descriptions() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let answer = bench.ask(controller, &multipart(MultipartRequestBody::PortDesc));
    let MultipartReplyBody::PortDesc(rows) = body(&answer) else {
        panic!("expected ports");
    };
    let ports: Vec<Port> = rows.iter().collect();
    let expected = [1, 2, 3].map(|number| port(Version::Of13, number));
    assert_eq!(ports, expected);
}

/// The number of the LOCAL port.
const LOCAL: u32 = PortNo::LOCAL.0;

/// A switch with ports 1 and 2 and a LOCAL port, and a controller.
fn with_local(version: Version) -> (Bench, ConnectionId) {
    let mut bench = Bench::with_ports(2);
    bench.add_port(LOCAL);
    let controller = bench.connect(version);
    (bench, controller)
}

fn add_entry(bench: &mut Bench, controller: ConnectionId, text: &str) {
    let entry = FlowMod::parse(FlowModCommand::Add, text).unwrap();
    bench.tell_quietly(controller, &Message::FlowMod(entry));
}

#[test]
fn the_local_port_is_described() {
    let (mut bench, controller) = with_local(Version::Of10);
    let answer = bench.ask(controller, &Message::FeaturesRequest);
    let Message::FeaturesReply(features) = answer.message() else {
        panic!("expected features");
    };
    let ports: Vec<Port> = features.ports.iter().collect();
    assert_eq!(ports[2], port(Version::Of10, LOCAL));
    let (mut bench, controller) = with_local(Version::Of13);
    let answer = bench.ask(controller, &multipart(MultipartRequestBody::PortDesc));
    let MultipartReplyBody::PortDesc(ports) = body(&answer) else {
        panic!("expected descriptions");
    };
    assert_eq!(ports.iter().last(), Some(port(Version::Of13, LOCAL)));
    bench.link(LOCAL).is_cut = true;
    bench.switch.handle_link(link_index(LOCAL), false);
    let status = take_status(&mut bench, controller);
    assert_eq!(status.port.port_no, PortNo::LOCAL);
    assert!(status.port.state.contains(PortState::LINK_DOWN));
}

#[test]
fn packets_are_sent_to_and_received_from_the_local_port() {
    for version in Version::ALL {
        let (mut bench, controller) = with_local(version);
        add_entry(&mut bench, controller, "priority=9,in_port=1,actions=LOCAL");
        add_entry(
            &mut bench,
            controller,
            "priority=9,in_port=LOCAL,actions=output:2",
        );
        add_entry(&mut bench, controller, "priority=1,actions=FLOOD");
        bench.receive(1, &frame(1, 2));
        assert_eq!(bench.senders(), [LOCAL]);
        bench.receive(LOCAL, &frame(2, 1));
        assert_eq!(bench.senders(), [2]);
        bench.receive(2, &frame(2, 1));
        assert_eq!(bench.senders(), [1, LOCAL]);
        let wanted = MultipartRequestBody::PortStats(PortNo::LOCAL);
        let answer = bench.ask(controller, &multipart(wanted));
        let MultipartReplyBody::PortStats(rows) = body(&answer) else {
            panic!("expected statistics");
        };
        let rows: Vec<PortStats> = rows.iter().collect();
        assert_eq!((rows.len(), rows[0].port_no), (1, PortNo::LOCAL));
        assert_eq!((rows[0].rx_packets, rows[0].tx_packets), (1, 2));
    }
}

#[test]
fn the_local_port_can_be_configured() {
    let (mut bench, controller) = with_local(Version::Of10);
    add_entry(&mut bench, controller, "actions=FLOOD");
    configure(&mut bench, controller, LOCAL, PortConfig::NO_FLOOD);
    bench.receive(1, &frame(1, 2));
    assert_eq!(bench.senders(), [2]);
    configure(&mut bench, controller, LOCAL, PortConfig::NO_RECV);
    bench.receive(LOCAL, &frame(1, 2));
    assert!(bench.senders().is_empty());
}

#[test]
fn a_learning_switch_without_a_controller_serves_the_local_port() {
    let mut bench = standalone(2);
    bench.add_port(LOCAL);
    bench.receive(LOCAL, &frame(9, 1));
    assert_eq!(bench.senders(), [1, 2]);
    bench.receive(1, &frame(1, 9));
    assert_eq!(bench.senders(), [LOCAL]);
}

#[test]
fn without_a_local_port_there_is_no_output_to_it() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let entry = FlowMod::parse(FlowModCommand::Add, "actions=LOCAL").unwrap();
    let refused = bench.refused(controller, &Message::FlowMod(entry));
    assert_eq!(refused, ErrorCode::BadActionBadOutPort);
}
