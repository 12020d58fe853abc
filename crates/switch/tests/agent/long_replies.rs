//! Tests of replies that are too long to be in memory at once, or need longer to write than a packet should wait.

use crate::support::{Bench, Sent, body, config, encode, multipart};
use std::collections::BTreeMap;
use std::time::Duration;
use urtica_pipeline::PipelineConfig;
use urtica_switch::{ConnectionId, SwitchConfig};
use urtica_wire::{
    Bucket, FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ALL, GROUP_ANY, GroupMod,
    GroupModCommand, GroupType, List, METER_ALL, Match, Message, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, MultipartFlags, MultipartReplyBody, MultipartRequestBody, OxmField, PortNo,
    TABLE_ALL, Version,
};

/// Maximum size of unread output while a reply is incomplete.
const WAITING_BYTES: usize = 128 << 10;

/// Number of entries, which need several messages in both versions.
const ENTRIES: u64 = 3000;

fn all_entries() -> FlowStatsRequest<'static> {
    FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        ..FlowStatsRequest::default()
    }
}

fn entry(command: FlowModCommand, table_id: u8, host: u64) -> FlowMod<'static> {
    FlowMod {
        table_id,
        command,
        cookie: host,
        match_: Match::any().with_exact(OxmField::EthDst, 0x0200_0000_0000 | host),
        ..FlowMod::default()
    }
}

/// Creates a switch whose entries have the cookies from 0 on, in one table or, for 1.3, in two.
fn with_entries(version: Version) -> (Bench, ConnectionId) {
    let mut bench = Bench::new(SwitchConfig {
        pipeline: PipelineConfig {
            n_tables: 4,
            max_entries: 100_000,
            max_groups: 10_000,
            max_meters: 10_000,
        },
        ..config()
    });
    let controller = bench.connect(version);
    for host in 0..ENTRIES {
        let table_id = match version {
            Version::Of10 => 0,
            Version::Of13 => (host % 2) as u8,
        };
        let add = entry(FlowModCommand::Add, table_id, host);
        bench.tell_quietly(controller, &Message::FlowMod(add));
    }
    (bench, controller)
}

/// Reads until no more follows, and asserts that the unread output stays small.
fn read_all(bench: &mut Bench, controller: ConnectionId) -> Vec<Sent> {
    let mut sent = bench.take(controller);
    while bench.switch.poll_output(bench.now) {
        assert!(bench.switch.output(controller).unwrap().len() <= WAITING_BYTES);
        sent.extend(bench.take(controller));
    }
    sent
}

/// Asserts that all messages except the last announce more.
fn expect_parts(sent: &[Sent]) {
    let last = sent.len() - 1;
    for (number, part) in sent.iter().enumerate() {
        let Message::MultipartReply(reply) = part.message() else {
            panic!("expected a multipart reply, not {:?}", part.message());
        };
        assert_eq!(part.header.xid, sent[0].header.xid);
        assert_eq!(reply.flags.contains(MultipartFlags::MORE), number < last);
    }
}

/// Counts how often each cookie was sent.
fn cookies(sent: &[Sent]) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for part in sent {
        if let Message::MultipartReply(reply) = part.message() {
            let MultipartReplyBody::Flow(rows) = reply.body else {
                panic!("expected entries");
            };
            for row in &rows {
                *counts.entry(row.cookie).or_default() += 1;
            }
        }
    }
    counts
}

#[test]
fn entries_are_sent_as_the_controller_reads() {
    for version in Version::ALL {
        let (mut bench, controller) = with_entries(version);
        bench.tell(
            controller,
            &multipart(MultipartRequestBody::Flow(all_entries())),
        );
        let waiting = bench.switch.output(controller).unwrap().len();
        assert!((1..=WAITING_BYTES).contains(&waiting), "{waiting} bytes");
        let sent = read_all(&mut bench, controller);
        assert!(sent.len() > 2, "{} messages", sent.len());
        expect_parts(&sent);
        let expected = (0..ENTRIES).map(|host| (host, 1)).collect();
        assert_eq!(cookies(&sent), expected);
    }
}

#[test]
fn a_reply_pauses_for_a_controller_that_does_not_read() {
    let (mut bench, controller) = with_entries(Version::Of13);
    bench.tell(
        controller,
        &multipart(MultipartRequestBody::Flow(all_entries())),
    );
    while bench.switch.poll_output(bench.now) {}
    assert!(bench.switch.output(controller).unwrap().len() <= WAITING_BYTES);
    assert!(!bench.switch.poll_output(bench.now));
    expect_parts(&read_all(&mut bench, controller));
}

#[test]
fn a_reply_continues_at_time_outs() {
    let (mut bench, controller) = with_entries(Version::Of13);
    bench.tell(
        controller,
        &multipart(MultipartRequestBody::Flow(all_entries())),
    );
    let mut sent = bench.take(controller);
    for _ in 0..ENTRIES {
        assert!(bench.pass(Duration::from_millis(1)).is_empty());
        sent.extend(bench.take(controller));
    }
    expect_parts(&sent);
    assert_eq!(cookies(&sent).len(), ENTRIES as usize);
}

/// Entries are sent as they were when the request arrived, including deleted and replaced ones, but not added ones.
#[test]
fn a_reply_shows_the_tables_as_they_were_at_the_request() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let other = bench.connect(Version::Of13);
    bench.tell(
        controller,
        &multipart(MultipartRequestBody::Flow(all_entries())),
    );
    for host in 0..ENTRIES {
        let table_id = (host % 2) as u8;
        let changes = match host % 4 {
            0 | 1 => vec![
                entry(FlowModCommand::DeleteStrict, table_id, host),
                entry(FlowModCommand::Add, table_id, host + 2 * ENTRIES),
            ],
            2 => vec![entry(FlowModCommand::Modify, table_id, host)],
            _ => vec![FlowMod {
                cookie: 3 * ENTRIES,
                ..entry(FlowModCommand::Add, table_id, host)
            }],
        };
        for change in changes {
            bench.tell(other, &Message::FlowMod(change));
        }
    }
    let sent = read_all(&mut bench, controller);
    expect_parts(&sent);
    let expected = (0..ENTRIES).map(|host| (host, 1)).collect();
    assert_eq!(cookies(&sent), expected);
}

/// Number of entries, more than any reply contains in one turn.
const MANY: u64 = 20_000;

fn with_many_entries(version: Version) -> (Bench, ConnectionId) {
    let (mut bench, controller) = with_entries(version);
    for host in ENTRIES..MANY {
        let add = entry(FlowModCommand::Add, 0, host);
        bench.tell_quietly(controller, &Message::FlowMod(add));
    }
    (bench, controller)
}

fn delete_all() -> Message<'static> {
    Message::FlowMod(FlowMod {
        command: FlowModCommand::Delete,
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        ..FlowMod::default()
    })
}

/// A request, a deletion and a barrier are sent in one segment; the reply to the barrier is the last.
#[test]
fn a_deletion_right_behind_a_request_does_not_change_its_reply() {
    for version in Version::ALL {
        let (mut bench, controller) = with_many_entries(version);
        let request = multipart(MultipartRequestBody::Flow(all_entries()));
        let messages = [request, delete_all(), Message::BarrierRequest];
        let numbered = (1..).zip(&messages);
        let bytes: Vec<_> = numbered
            .flat_map(|(xid, message)| encode(version, xid, message))
            .collect();
        bench.input(controller, &bytes).unwrap();
        let mut sent = read_all(&mut bench, controller);
        assert_eq!(sent.pop().unwrap().message(), Message::BarrierReply);
        expect_parts(&sent);
        assert_eq!(cookies(&sent), (0..MANY).map(|host| (host, 1)).collect());
        assert_eq!(bench.switch.entry_count(), 0);
    }
}

#[test]
fn another_controllers_deletion_does_not_change_a_reply() {
    let (mut bench, controller) = with_many_entries(Version::Of13);
    let other = bench.connect(Version::Of13);
    let request = multipart(MultipartRequestBody::Flow(all_entries()));
    bench.tell(controller, &request);
    bench.tell(other, &delete_all());
    let sent = read_all(&mut bench, controller);
    expect_parts(&sent);
    assert_eq!(cookies(&sent), (0..MANY).map(|host| (host, 1)).collect());
    assert_eq!(bench.switch.entry_count(), 0);
}

/// A request that arrives in the middle of a deletion is answered at its end.
#[test]
fn a_request_waits_for_the_end_of_a_change() {
    let (mut bench, controller) = with_many_entries(Version::Of13);
    let other = bench.connect(Version::Of13);
    bench.tell(other, &delete_all());
    assert!(bench.switch.entry_count() > 0, "it takes several turns");
    let request = multipart(MultipartRequestBody::Flow(all_entries()));
    bench.tell(controller, &request);
    let sent = read_all(&mut bench, controller);
    expect_parts(&sent);
    assert!(cookies(&sent).is_empty());
}

/// A controller that sends changes without end does not prevent another from reading.
#[test]
fn changes_wait_for_a_request_that_waits_for_a_change() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let other = bench.connect(Version::Of13);
    let request = multipart(MultipartRequestBody::Aggregate(all_entries()));
    let mut changes = Vec::new();
    for number in 0..100 {
        let modify = FlowMod {
            match_: Match::any(),
            ..entry(FlowModCommand::Modify, 0, number)
        };
        changes.extend(encode(
            Version::Of13,
            number as u32,
            &Message::FlowMod(modify),
        ));
    }
    bench.input(other, &changes).unwrap();
    bench.tell(controller, &request);
    let mut turns = 0;
    while bench.take(controller).is_empty() {
        assert!(bench.switch.poll_output(bench.now));
        turns += 1;
    }
    let mut rest = 0;
    while bench.switch.poll_output(bench.now) {
        rest += 1;
    }
    assert!(rest > 10 * turns, "{turns} turns of {rest}");
}

/// Groups and meters are also sent as they were at the request.
#[test]
fn deleted_groups_and_meters_are_in_the_reply() {
    const COUNT: u32 = 3000;
    for is_group in [true, false] {
        let (mut bench, controller) = with_groups_and_meters(COUNT);
        let (requests, delete) = match is_group {
            true => (
                [
                    MultipartRequestBody::Group(GROUP_ALL),
                    MultipartRequestBody::GroupDesc,
                ],
                Message::GroupMod(GroupMod {
                    command: GroupModCommand::Delete,
                    group_id: GROUP_ALL,
                    ..GroupMod::parse(GroupModCommand::Delete, "group_id=1").unwrap()
                }),
            ),
            false => (
                [
                    MultipartRequestBody::Meter(METER_ALL),
                    MultipartRequestBody::MeterConfig(METER_ALL),
                ],
                Message::MeterMod(MeterMod {
                    command: MeterModCommand::Delete,
                    flags: MeterFlags::empty(),
                    meter_id: METER_ALL,
                    bands: List::default(),
                }),
            ),
        };
        let others = [bench.connect(Version::Of13), bench.connect(Version::Of13)];
        for (asked, &from) in requests.into_iter().zip(&others) {
            bench.tell(from, &multipart(asked));
        }
        bench.tell(controller, &delete);
        for from in others {
            let sent = read_all(&mut bench, from);
            expect_parts(&sent);
            assert_eq!(row_count(&sent), COUNT as usize);
        }
    }
}

#[test]
fn a_barrier_waits_for_the_reply_and_other_messages_do_not() {
    for version in Version::ALL {
        let (mut bench, controller) = with_entries(version);
        bench.tell(
            controller,
            &multipart(MultipartRequestBody::Flow(all_entries())),
        );
        bench.tell(controller, &Message::EchoRequest(b"there?"));
        bench.tell(
            controller,
            &Message::FlowMod(entry(FlowModCommand::Add, 0, ENTRIES)),
        );
        assert_eq!(bench.switch.entry_count(), ENTRIES as usize + 1);
        assert!(bench.switch.wants_input(controller));
        bench.tell(controller, &Message::BarrierRequest);
        bench.tell(
            controller,
            &Message::FlowMod(entry(FlowModCommand::Add, 0, ENTRIES + 1)),
        );
        assert!(!bench.switch.wants_input(controller));
        assert_eq!(bench.switch.entry_count(), ENTRIES as usize + 1);
        let mut sent = read_all(&mut bench, controller);
        assert_eq!(bench.switch.entry_count(), ENTRIES as usize + 2);
        assert!(bench.switch.wants_input(controller));
        assert!(matches!(
            sent.pop().unwrap().message(),
            Message::BarrierReply
        ));
        sent.retain(|sent| !matches!(sent.message(), Message::EchoReply(b"there?")));
        expect_parts(&sent);
        assert_eq!(cookies(&sent).len(), ENTRIES as usize);
    }
}

#[test]
fn a_controller_that_asks_for_everything_in_a_loop() {
    const REQUESTS: u32 = 50;
    let (mut bench, controller) = with_entries(Version::Of13);
    let request = multipart(MultipartRequestBody::Flow(all_entries()));
    let asked: Vec<_> = (0..REQUESTS)
        .flat_map(|xid| encode(Version::Of13, xid, &request))
        .collect();
    bench.input(controller, &asked).unwrap();
    while bench.switch.poll_output(bench.now) {}
    assert!(bench.switch.output(controller).unwrap().len() <= WAITING_BYTES);
    assert!(!bench.switch.wants_input(controller));
    let sent = read_all(&mut bench, controller);
    let mut replies: BTreeMap<u32, Vec<Sent>> = BTreeMap::new();
    for part in sent {
        replies.entry(part.header.xid).or_default().push(part);
    }
    assert_eq!(replies.len(), REQUESTS as usize);
    for reply in replies.values() {
        expect_parts(reply);
        assert_eq!(cookies(reply).len(), ENTRIES as usize);
    }
}

/// A controller that reads makes progress, however many others do not read.
#[test]
fn controllers_take_turns() {
    let (mut bench, first) = with_entries(Version::Of13);
    let second = bench.connect(Version::Of13);
    let unread = bench.connect(Version::Of13);
    for controller in [unread, first, second] {
        bench.tell(
            controller,
            &multipart(MultipartRequestBody::Flow(all_entries())),
        );
    }
    let mut sent = [Vec::new(), Vec::new()];
    while bench.switch.poll_output(bench.now) {
        for (sent, controller) in sent.iter_mut().zip([first, second]) {
            sent.extend(bench.take(controller));
        }
        assert!(sent[0].len().abs_diff(sent[1].len()) <= 2);
    }
    sent.iter().for_each(|sent| expect_parts(sent));
}

#[test]
fn a_reply_selects_few_entries_of_many() {
    let (mut bench, controller) = with_entries(Version::Of13);
    for (wanted, count) in [
        (
            FlowStatsRequest {
                cookie: 7,
                cookie_mask: u64::MAX,
                ..all_entries()
            },
            1,
        ),
        (
            FlowStatsRequest {
                cookie: ENTRIES,
                cookie_mask: u64::MAX,
                ..all_entries()
            },
            0,
        ),
        (
            FlowStatsRequest {
                match_: entry(FlowModCommand::Add, 0, 9).match_,
                ..all_entries()
            },
            1,
        ),
    ] {
        bench.tell(controller, &multipart(MultipartRequestBody::Flow(wanted)));
        let sent = read_all(&mut bench, controller);
        expect_parts(&sent);
        assert_eq!(cookies(&sent).len(), count);
    }
}

#[test]
fn entries_are_summed_in_steps() {
    let (mut bench, controller) = with_entries(Version::Of13);
    bench.tell(
        controller,
        &multipart(MultipartRequestBody::Aggregate(all_entries())),
    );
    assert!(
        bench.take(controller).is_empty(),
        "one look at all of them would take too long"
    );
    let sent = read_all(&mut bench, controller);
    expect_parts(&sent);
    let MultipartReplyBody::Aggregate(sum) = body(&sent[0]) else {
        panic!("expected a sum");
    };
    assert_eq!((sent.len(), u64::from(sum.flow_count)), (1, ENTRIES));
}

fn row_count(sent: &[Sent]) -> usize {
    let rows = sent.iter().map(|part| match body(part) {
        MultipartReplyBody::Group(rows) => rows.iter().count(),
        MultipartReplyBody::GroupDesc(rows) => rows.iter().count(),
        MultipartReplyBody::Meter(rows) => rows.iter().count(),
        MultipartReplyBody::MeterConfig(rows) => rows.iter().count(),
        other => panic!("expected groups or meters, not {other:?}"),
    });
    rows.sum()
}

/// A switch with `count` groups and meters, and a controller.
fn with_groups_and_meters(count: u32) -> (Bench, ConnectionId) {
    let (mut bench, controller) = with_entries(Version::Of13);
    for id in 1..=count {
        let buckets = [Bucket {
            weight: 0,
            watch_port: PortNo::ANY,
            watch_group: GROUP_ANY,
            actions: List::default(),
        }];
        let group = GroupMod {
            command: GroupModCommand::Add,
            group_type: GroupType::All,
            group_id: id,
            buckets: List::from(&buckets),
        };
        bench.tell_quietly(controller, &Message::GroupMod(group));
        let bands = [MeterBand::Drop {
            rate: 1,
            burst_size: 0,
        }];
        let meter = MeterMod {
            command: MeterModCommand::Add,
            flags: MeterFlags::KBPS,
            meter_id: id,
            bands: List::from(&bands),
        };
        bench.tell_quietly(controller, &Message::MeterMod(meter));
    }
    (bench, controller)
}

#[test]
fn groups_and_meters_are_sent_as_the_controller_reads() {
    const COUNT: u32 = 4000;
    let (mut bench, controller) = with_groups_and_meters(COUNT);
    for asked in [
        MultipartRequestBody::Group(GROUP_ALL),
        MultipartRequestBody::GroupDesc,
        MultipartRequestBody::Meter(METER_ALL),
        MultipartRequestBody::MeterConfig(METER_ALL),
    ] {
        bench.tell(controller, &multipart(asked));
        let sent = read_all(&mut bench, controller);
        expect_parts(&sent);
        assert!(sent.len() > 1);
        assert_eq!(row_count(&sent), COUNT as usize);
    }
}

/// A slow reader is not considered dead, although its output grows again whenever it has read.
#[test]
fn a_controller_that_only_reads_is_alive() {
    let (mut bench, controller) = with_entries(Version::Of13);
    bench.tell(
        controller,
        &multipart(MultipartRequestBody::Flow(all_entries())),
    );
    let mut is_over = false;
    while !is_over {
        assert!(
            bench.pass(Duration::from_secs(10)).is_empty(),
            "it is taken for dead"
        );
        is_over = bench.switch.output(controller).unwrap().is_empty();
        bench.switch.output(controller).unwrap().clear();
    }
}

/// The statistics of an entry need 16 bytes more than the flow mod that added it.
#[test]
fn an_entry_too_long_for_a_reply_is_left_out() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let actions = vec![urtica_wire::Action::PopVlan; 8182];
    let instructions = [urtica_wire::Instruction::apply(actions)];
    let long = FlowMod {
        match_: Match::any().with_exact(OxmField::VlanVid, 0x1007_u16),
        instructions: List::from(&instructions),
        ..entry(FlowModCommand::Add, 0, ENTRIES)
    };
    bench.tell_quietly(controller, &Message::FlowMod(long));
    bench.tell(
        controller,
        &multipart(MultipartRequestBody::Flow(all_entries())),
    );
    let sent = read_all(&mut bench, controller);
    expect_parts(&sent);
    assert_eq!(cookies(&sent).len(), ENTRIES as usize);
}
