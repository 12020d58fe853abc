//! Ports of switches that have too many, change them endlessly, or do not describe them.

use crate::in_memory::*;
use crate::support::*;
use std::time::Duration;
use urtica_controller::{
    ConnectionId, Controller, MAX_PORTS, NetworkEvent, SwitchHandler, SwitchInfo,
};
use urtica_wire::{DatapathId, Message, MultipartFlags, PortReason, PortStatus, Version};

const ONE: DatapathId = DatapathId(1);

/// The time-out of handshakes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The number of ports that fit into one message.
const PORTS_A_PART: usize = 1000;

/// Returns a controller that records events, and a 1.3 switch that has not described its ports, with the xid of the request
/// for them.
fn undescribed() -> (Bench, ConnectionId, u32, Record) {
    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| recorder.clone();
    let mut bench = Bench::new(Controller::new().program(program));
    let switch = bench.connect();
    bench.input(switch, &[4, 0, 0, 8, 0, 0, 0, 0]);
    bench.input(
        switch,
        &encode(Version::Of13, 0, &features(Version::Of13, 1)),
    );
    let asked = bench.take(switch);
    let question = asked
        .iter()
        .find(|frame| matches!(frame.message(), Message::MultipartRequest(_)));
    let xid = question.unwrap().header().xid;
    assert!(record.is_empty());
    (bench, switch, xid, record)
}

/// Describes ports from number `first`, in a part that is not the last.
fn describe_more(bench: &mut Bench, switch: ConnectionId, xid: u32, first: usize) {
    let numbers: Vec<_> = (first..first + PORTS_A_PART)
        .map(|port| port as u32)
        .collect();
    let part = port_desc(MultipartFlags::MORE, &numbers);
    bench.input(switch, &encode(Version::Of13, xid, &part));
}

fn pass(bench: &mut Bench, time: Duration) {
    bench.now += time;
    let ended = bench.controller.handle_timeout(bench.now);
    assert!(ended.is_empty(), "{ended:?}");
}

fn change(bench: &mut Bench, switch: ConnectionId, reason: PortReason, number: usize) {
    let port = port(number as u32);
    let status = Message::PortStatus(PortStatus { reason, port });
    bench.input(switch, &encode(Version::Of13, 0, &status));
}

#[test]
fn endless_port_descriptions_are_limited_by_time_and_number() {
    let (mut bench, switch, xid, record) = undescribed();
    for part in 0..100 {
        describe_more(&mut bench, switch, xid, part * PORTS_A_PART);
    }
    assert!(record.is_empty());
    let log = logged(|| pass(&mut bench, TIMEOUT));
    assert_eq!(record.next(), format!("p: up, {MAX_PORTS} ports"));
    assert_eq!(log.len(), 1);
    assert!(log[0].contains("was not complete 10s after it connected"));
    let counters = bench.controller.network().counters(ONE).unwrap();
    let refused = 100 * PORTS_A_PART - MAX_PORTS;
    assert_eq!(counters.ports_refused.get(), refused as u64);
    // Further parts cause no event, however long they continue.
    describe_more(&mut bench, switch, xid, 100 * PORTS_A_PART);
    assert!(record.is_empty());
}

#[test]
fn unanswered_port_descriptions_are_logged_and_switches_join() {
    let (mut bench, switch, xid, record) = undescribed();
    pass(&mut bench, TIMEOUT - Duration::from_millis(1));
    assert!(record.is_empty());
    let log = logged(|| pass(&mut bench, Duration::from_millis(1)));
    assert_eq!(record.next(), "p: up, 0 ports");
    assert!(log[0].contains("known_ports=0") && log[0].contains("0000000000000001"));
    // A late description is used.
    let late = port_desc(MultipartFlags::empty(), &[1, 2]);
    bench.input(switch, &encode(Version::Of13, xid, &late));
    assert_eq!(record.next(), "p: port 1 Add, now [1, 2]");
    assert_eq!(record.next(), "p: port 2 Add, now [1, 2]");
    pass(&mut bench, Duration::from_secs(1));
    assert!(record.is_empty(), "it comes up once");
}

#[test]
fn malformed_port_descriptions_are_logged_and_switches_join() {
    let (mut bench, switch, xid, record) = undescribed();
    let described = port_desc(MultipartFlags::empty(), &[1]);
    let mut malformed = encode(Version::Of13, xid, &described);
    malformed.truncate(malformed.len() - 1);
    malformed[3] -= 1;
    let log = logged(|| bench.input(switch, &malformed));
    assert_eq!(record.next(), "p: up, 0 ports");
    let problem = "its description of its ports is malformed";
    assert!(log.iter().any(|line| line.contains(problem)), "{log:?}");
    let counters = bench.controller.network().counters(ONE).unwrap();
    assert_eq!(counters.malformed.get(), 1);
}

#[test]
fn excess_ports_are_hidden_until_one_is_removed() {
    let (mut bench, switch, xid, record) = undescribed();
    for part in 0..MAX_PORTS.div_ceil(PORTS_A_PART) {
        describe_more(&mut bench, switch, xid, part * PORTS_A_PART);
    }
    let last = port_desc(MultipartFlags::empty(), &[]);
    bench.input(switch, &encode(Version::Of13, xid, &last));
    assert_eq!(record.next(), format!("p: up, {MAX_PORTS} ports"));
    let network = bench.controller.network().clone();
    let refused = network.counters(ONE).unwrap().ports_refused.get();
    for number in 0..10 {
        change(&mut bench, switch, PortReason::Add, 1_000_000 + number);
    }
    assert!(record.is_empty());
    let counters = network.counters(ONE).unwrap();
    assert_eq!(counters.ports_refused.get(), refused + 10);
    assert_eq!(network.info(ONE).unwrap().ports.len(), MAX_PORTS);
    change(&mut bench, switch, PortReason::Delete, 7);
    change(&mut bench, switch, PortReason::Add, 1_000_000);
    let added = |told: String| told.starts_with("p: port 1000000 Add");
    assert!(record.next().starts_with("p: port 7 Delete"));
    assert!(added(record.next()));
}

/// Does nothing, so that changes cost only the controller's own work.
struct Idle;

impl SwitchHandler for Idle {}

/// 4,096 waiting events, each with a copy of this number of ports, would need some 16 GiB.
#[test]
fn events_of_large_switches_share_their_ports() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Idle));
    let network = bench.controller.network().clone();
    // These events are not received.
    let mut events = network.events();
    let switch = bench.join(Version::Of13, 1);
    for number in 0..60_000 {
        change(&mut bench, switch, PortReason::Add, number);
    }
    assert_eq!(network.info(ONE).unwrap().ports.len(), 60_000);
    let Some(NetworkEvent::Missed(missed)) = block_on(events.next()) else {
        panic!("expected more events than are kept");
    };
    let mut known = Vec::new();
    for _ in 0..60_000 + 1 - missed {
        match block_on(events.next()) {
            Some(NetworkEvent::Port(info, status)) => {
                assert!(info.port(status.port.port_no).is_some());
                known.push(info.ports.len());
            }
            other => panic!("expected a change of a port, not {other:?}"),
        }
    }
    assert!(known.is_sorted(), "each knows what was so when it was told");
    assert_eq!(known.last(), Some(&60_000));
}
