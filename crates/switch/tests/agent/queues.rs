//! Tests of ports' queues: packets pass through the queues of their actions, according to priorities and rates, while queues
//! and ports are added and removed.

use crate::support::{Bench, body, frame, mac, multipart};
use std::collections::BTreeMap;
use std::time::Duration;
use urtica_switch::{ConnectionId, PortQueues, Queue, QueueError};
use urtica_wire::{
    Action, BufferId, ErrorCode, FlowMod, FlowModCommand, FlowStatsRequest, Instruction, List,
    Match, Message, MultipartReplyBody, MultipartRequestBody, OxmField, PacketOut, PacketQueue,
    PortNo, QUEUE_ALL, QueueConfig, QueueProperty, QueueStats, Version,
};

/// A thousand bytes per millisecond.
const RATE_BPS: u64 = 8_000_000;

/// Number of frames of a thousand bytes that leave immediately after a pause: those of 5 ms, and the one that overdraws.
const AT_ONCE: usize = 6;

const MS: Duration = Duration::from_millis(1);

/// The queues of the tests' port 2, in which queue 2 precedes queue 1.
fn queues() -> PortQueues {
    let with_priority = |priority| Queue {
        priority,
        ..Queue::default()
    };
    PortQueues {
        rate_bps: Some(RATE_BPS),
        queues: BTreeMap::from([(1, with_priority(1)), (2, with_priority(0))]),
    }
}

fn set(bench: &mut Bench, queues: &PortQueues) {
    let now = bench.now;
    let change = |_, settings: &mut PortQueues| {
        *settings = queues.clone();
        Ok(())
    };
    let changed = bench.switch.change_queues("2", change, now);
    assert_eq!(changed, Ok(PortNo(2)));
}

/// Creates a switch whose port 2 has queues, and a controller whose entries send packets for host 1 through queue 1, and so
/// on.
fn bench(version: Version) -> (Bench, ConnectionId) {
    let (mut bench, controller) = Bench::with_controller(version);
    set(&mut bench, &queues());
    for queue_id in 1..=2 {
        add(
            &mut bench,
            controller,
            queue_id as u8,
            &by_queue(version, queue_id),
        );
    }
    add(&mut bench, controller, 3, &[Action::output(PortNo(2))]);
    (bench, controller)
}

/// Returns the actions that send a packet through a queue of port 2.
fn by_queue(version: Version, queue_id: u32) -> Vec<Action<'static>> {
    let port = PortNo(2);
    match version {
        Version::Of10 => vec![Action::Enqueue { port, queue_id }],
        Version::Of13 => vec![Action::SetQueue(queue_id), Action::output(port)],
    }
}

fn entry<'a>(dst: u8, instructions: &'a [Instruction<'a>]) -> Message<'a> {
    Message::FlowMod(FlowMod {
        priority: 10,
        match_: Match::any().with_exact(OxmField::EthDst, mac(dst).to_u64()),
        instructions: List::from(instructions),
        ..FlowMod::default()
    })
}

fn add(bench: &mut Bench, controller: ConnectionId, dst: u8, actions: &[Action]) {
    let instructions = [Instruction::ApplyActions(List::from(actions))];
    bench.tell_quietly(controller, &entry(dst, &instructions));
}

/// A frame of a thousand bytes for a host, with a number that identifies it.
fn numbered(dst: u8, number: u8) -> Vec<u8> {
    let mut bytes = frame(9, dst);
    bytes.resize(1000, 0);
    bytes[20] = number;
    bytes
}

/// Makes port 1 receive frames with these numbers for a host.
fn receive(bench: &mut Bench, dst: u8, numbers: std::ops::Range<u8>) {
    let frames = numbers.map(|number| numbered(dst, number));
    bench.link(1).to_switch.extend(frames);
    while bench.switch.poll_ports(bench.now) {}
}

/// Lets time pass; returns the hosts and numbers of the frames that left by port 2.
fn left_after(bench: &mut Bench, time: Duration) -> Vec<(u8, u8)> {
    bench.now += time;
    bench.switch.poll_ports(bench.now);
    let frames = bench.sent_by(2);
    frames.iter().map(|frame| (frame[5], frame[20])).collect()
}

fn of_host(dst: u8, numbers: std::ops::Range<u8>) -> Vec<(u8, u8)> {
    numbers.map(|number| (dst, number)).collect()
}

#[test]
fn packets_use_the_queues_of_their_actions() {
    for version in Version::ALL {
        let (mut bench, _) = bench(version);
        receive(&mut bench, 1, 0..20);
        receive(&mut bench, 2, 0..3);
        assert_eq!(
            left_after(&mut bench, Duration::ZERO),
            of_host(1, 0..AT_ONCE as u8)
        );
        assert!(bench.switch.has_unsent(), "frames wait");
        let left = left_after(&mut bench, 5 * MS);
        let expected = [of_host(2, 0..3), of_host(1, 6..8)].concat();
        assert_eq!(left, expected, "{version:?}: priority 0 first");
        for _ in 0..3 {
            left_after(&mut bench, 4 * MS);
        }
        assert!(!bench.switch.has_unsent(), "{version:?}");
    }
}

/// Packets are not lost, not reordered, and not faster than the port.
#[test]
fn packets_without_a_queue_use_an_internal_queue() {
    let (mut bench, controller) = bench(Version::Of13);
    add(&mut bench, controller, 4, &by_queue(Version::Of13, 77));
    receive(&mut bench, 3, 0..8);
    receive(&mut bench, 4, 0..2);
    assert_eq!(left_after(&mut bench, Duration::ZERO), of_host(3, 0..6));
    let expected = [of_host(3, 6..8), of_host(4, 0..2)].concat();
    assert_eq!(left_after(&mut bench, 5 * MS), expected);
}

#[test]
fn other_ports_are_not_affected() {
    let (mut bench, controller) = bench(Version::Of13);
    let actions = [Action::SetQueue(1), Action::output(PortNo(3))];
    add(&mut bench, controller, 1, &actions);
    receive(&mut bench, 1, 0..100);
    assert_eq!(bench.sent_by(3).len(), 100);
    assert!(!bench.switch.has_unsent());
}

#[test]
fn a_queue_that_is_set_holds_for_later_tables_and_groups() {
    let (mut bench, controller) = bench(Version::Of13);
    let group = "group_id=1,type=all,bucket=actions=output:2";
    let group = urtica_wire::GroupMod::parse(urtica_wire::GroupModCommand::Add, group).unwrap();
    bench.tell_quietly(controller, &Message::GroupMod(group));
    for text in [
        "priority=20,dl_dst=02:00:00:00:00:05,actions=set_queue:2,goto_table:1",
        "table=1,actions=group:1",
    ] {
        let flow_mod = FlowMod::parse(FlowModCommand::Add, text).unwrap();
        bench.tell_quietly(controller, &Message::FlowMod(flow_mod));
    }
    receive(&mut bench, 1, 0..10);
    left_after(&mut bench, Duration::ZERO);
    receive(&mut bench, 5, 0..2);
    assert_eq!(left_after(&mut bench, 2 * MS), of_host(5, 0..2));
}

#[test]
fn packet_outs_may_name_queues() {
    for version in Version::ALL {
        let (mut bench, controller) = bench(version);
        receive(&mut bench, 1, 0..10);
        left_after(&mut bench, Duration::ZERO);
        let (actions, data) = (by_queue(version, 2), numbered(8, 1));
        let out = Message::PacketOut(PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo(1),
            actions: List::from(&actions[..]),
            data: &data,
        });
        bench.tell_quietly(controller, &out);
        assert_eq!(left_after(&mut bench, MS), of_host(8, 1..2));
    }
}

#[test]
fn an_entry_of_1_0_needs_an_existing_queue() {
    let (mut bench, controller) = bench(Version::Of10);
    for (port, queue_id, code) in [
        (PortNo(2), 3, ErrorCode::BadActionBadQueue),
        (PortNo(1), 1, ErrorCode::BadActionBadQueue),
        (PortNo(2), QUEUE_ALL, ErrorCode::BadActionBadQueue),
        (PortNo::IN_PORT, 3, ErrorCode::BadActionBadQueue),
        (PortNo(9), 1, ErrorCode::BadActionBadOutPort),
        (PortNo::FLOOD, 1, ErrorCode::BadActionBadOutPort),
    ] {
        let enqueue = [Action::Enqueue { port, queue_id }];
        let instructions = [Instruction::ApplyActions(List::from(&enqueue))];
        let refused = bench.refused(controller, &entry(7, &instructions));
        assert_eq!(refused, code, "{port} {queue_id}");
    }
    let back = [Action::Enqueue {
        port: PortNo::IN_PORT,
        queue_id: 1,
    }];
    add(&mut bench, controller, 7, &back);
    bench.receive(2, &numbered(7, 0));
    assert_eq!(bench.sent_by(2).len(), 1);
}

#[test]
fn entries_are_found_by_the_port_that_they_enqueue_to() {
    let (mut bench, controller) = bench(Version::Of10);
    let asked = FlowStatsRequest {
        out_port: PortNo(2),
        ..FlowStatsRequest::default()
    };
    let answer = bench.ask(controller, &multipart(MultipartRequestBody::Flow(asked)));
    let MultipartReplyBody::Flow(rows) = body(&answer) else {
        panic!("expected flow entries");
    };
    assert_eq!(rows.iter().count(), 3);
}

#[test]
fn controllers_can_read_queues() {
    for version in Version::ALL {
        let (mut bench, controller) = bench(version);
        let mut queues = queues();
        let queue = queues.queues.get_mut(&1).unwrap();
        (queue.min_rate_bps, queue.max_rate_bps) = (Some(RATE_BPS / 10), Some(RATE_BPS / 2));
        set(&mut bench, &queues);
        let is_13 = version == Version::Of13;
        let property = |min, max| match is_13 {
            true => vec![QueueProperty::MinRate(min), QueueProperty::MaxRate(max)],
            false => vec![QueueProperty::MinRate(min)],
        };
        let queue = |queue_id, properties| PacketQueue {
            queue_id,
            port: if is_13 { PortNo(2) } else { PortNo::ANY },
            properties: List::from(properties),
        };
        let described = |port| QueueConfig {
            port,
            queues: List::from(vec![
                queue(1, property(100, 500)),
                queue(2, property(0xffff, 0xffff)),
            ]),
        };
        let answer = bench.ask(controller, &Message::QueueGetConfigRequest(PortNo(2)));
        let expected = Message::QueueGetConfigReply(described(PortNo(2)));
        assert_eq!(answer.message(), expected);
        let all = Message::QueueGetConfigRequest(PortNo::ANY);
        if is_13 {
            let expected = Message::QueueGetConfigReply(described(PortNo::ANY));
            assert_eq!(bench.ask(controller, &all).message(), expected);
        }
    }
}

#[test]
fn controllers_can_read_queue_counters() {
    for version in Version::ALL {
        let (mut bench, controller) = bench(version);
        let mut queues = queues();
        queues.queues.get_mut(&1).unwrap().max_packets = 10;
        set(&mut bench, &queues);
        receive(&mut bench, 2, 0..2);
        receive(&mut bench, 1, 0..30);
        left_after(&mut bench, MS);
        let age = if version == Version::Of13 {
            MS
        } else {
            Duration::ZERO
        };
        let row = |queue_id, tx_packets: u64, tx_errors| QueueStats {
            port_no: PortNo(2),
            queue_id,
            tx_bytes: tx_packets * 1000,
            tx_packets,
            tx_errors,
            duration_sec: 0,
            duration_nsec: age.subsec_nanos(),
        };
        let ask = |bench: &mut Bench, port, queue_id| {
            let asked = multipart(MultipartRequestBody::Queue { port, queue_id });
            let answer = bench.ask(controller, &asked);
            let MultipartReplyBody::Queue(rows) = body(&answer) else {
                panic!("expected queues");
            };
            rows.iter().collect::<Vec<_>>()
        };
        let rows = ask(&mut bench, PortNo(2), QUEUE_ALL);
        let [first, second] = rows[..] else {
            panic!("expected two queues, not {rows:?}");
        };
        assert_eq!(second, row(2, 2, 0));
        // Frames arrive in bursts of 32; all frames beyond the queue's capacity are lost.
        assert_eq!(first, row(1, first.tx_packets, first.tx_errors));
        assert!(first.tx_errors > 0 && first.tx_packets > 0, "{first:?}");
        assert_eq!(ask(&mut bench, PortNo::ALL, 2), [second]);
        assert_eq!(ask(&mut bench, PortNo(1), QUEUE_ALL), []);
        let unknown = MultipartRequestBody::Queue {
            port: PortNo(2),
            queue_id: 3,
        };
        let code = bench.refused(controller, &multipart(unknown));
        assert_eq!(code, ErrorCode::QueueOpFailedBadQueue);
        let lost = bench.switch.port_stats(bench.now)[1].tx_dropped;
        assert_eq!(lost, first.tx_errors, "the port counts them, too");
    }
}

#[test]
fn waiting_frames_leave_in_order_when_queues_are_deleted() {
    let (mut bench, _) = bench(Version::Of13);
    receive(&mut bench, 1, 0..20);
    assert_eq!(left_after(&mut bench, Duration::ZERO).len(), AT_ONCE);
    set(&mut bench, &PortQueues::default());
    assert_eq!(bench.switch.queues(PortNo(2)), None);
    receive(&mut bench, 1, 20..30);
    assert_eq!(left_after(&mut bench, Duration::ZERO), of_host(1, 6..30));
    assert!(!bench.switch.has_unsent());
}

#[test]
fn packets_of_a_deleted_queue_are_still_sent() {
    let (mut bench, _) = bench(Version::Of10);
    receive(&mut bench, 1, 0..10);
    left_after(&mut bench, Duration::ZERO);
    let mut fewer = queues();
    fewer.queues.remove(&1);
    set(&mut bench, &fewer);
    receive(&mut bench, 1, 10..12);
    let mut left = Vec::new();
    for _ in 0..8 {
        left.extend(left_after(&mut bench, MS));
    }
    assert_eq!(
        left,
        of_host(1, 6..12),
        "the entry stays, and its packets do"
    );
}

#[test]
fn a_port_that_is_added_again_has_its_queues() {
    let (mut bench, controller) = bench(Version::Of10);
    receive(&mut bench, 1, 0..10);
    left_after(&mut bench, Duration::ZERO);
    drop(bench.switch.remove_port(PortNo(2), bench.now));
    bench.take(controller);
    assert_eq!(bench.switch.queues(PortNo(2)), None);
    let unknown = Message::QueueGetConfigRequest(PortNo(2));
    assert_eq!(
        bench.refused(controller, &unknown),
        ErrorCode::QueueOpFailedBadPort
    );
    receive(&mut bench, 1, 10..12);
    bench.add_port(2);
    bench.take(controller);
    assert_eq!(bench.switch.queues(PortNo(2)), Some(queues()));
    add(&mut bench, controller, 6, &by_queue(Version::Of10, 2));
    receive(&mut bench, 1, 0..10);
    assert_eq!(left_after(&mut bench, Duration::ZERO), of_host(1, 0..6));
}

#[test]
fn a_port_that_loses_its_link_drops_waiting_frames() {
    let (mut bench, _) = bench(Version::Of13);
    receive(&mut bench, 1, 0..10);
    left_after(&mut bench, Duration::ZERO);
    bench.link(2).is_cut = true;
    bench.pass(MS);
    assert_eq!(left_after(&mut bench, MS), []);
    assert!(!bench.switch.has_unsent());
    bench.link(2).is_cut = false;
    bench.pass(MS);
    receive(&mut bench, 1, 20..22);
    assert_eq!(left_after(&mut bench, MS), of_host(1, 20..22));
    assert_eq!(bench.switch.port_stats(bench.now)[1].tx_dropped, 4);
}

#[test]
fn frames_for_a_full_link_wait() {
    let (mut bench, _) = bench(Version::Of13);
    bench.link(2).is_full = true;
    receive(&mut bench, 1, 0..4);
    receive(&mut bench, 2, 0..1);
    assert_eq!(left_after(&mut bench, MS), []);
    bench.link(2).is_full = false;
    let expected = [of_host(2, 0..1), of_host(1, 0..4)].concat();
    assert_eq!(left_after(&mut bench, MS), expected);
}

#[test]
fn invalid_queues_are_refused_without_effect() {
    let (mut bench, _) = bench(Version::Of13);
    let now = bench.now;
    let refused = bench.switch.change_queues("nix", |_, _| Ok(()), now);
    assert_eq!(refused, Err(QueueError::NoPort("nix".into())));
    let too_much = |_, queues: &mut PortQueues| {
        queues.queues.entry(1).or_default().min_rate_bps = Some(RATE_BPS + 1);
        Ok(())
    };
    let refused = bench.switch.change_queues("2", too_much, now);
    assert!(
        matches!(refused, Err(QueueError::MinimaAboveRate { .. })),
        "{refused:?}"
    );
    // The link of the tests' ports has 10 Gbit/s.
    let too_much = |_, queues: &mut PortQueues| {
        queues.queues.entry(1).or_default().min_rate_bps = Some(10_000_000_001);
        Ok(())
    };
    let refused = bench.switch.change_queues("3", too_much, now);
    assert!(
        matches!(refused, Err(QueueError::MinimaAboveRate { .. })),
        "{refused:?}"
    );
    assert_eq!(bench.switch.queues(PortNo(2)), Some(queues()));
    assert_eq!(bench.switch.queues(PortNo(3)), None);
}
