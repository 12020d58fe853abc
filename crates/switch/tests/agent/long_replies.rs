//! Replies that are longer than what a switch should have in memory at once, or take longer than a packet should wait.

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

/// The most that may wait to be read of replies that have more to come.
const WAITING_BYTES: usize = 128 << 10;

/// Enough entries for several messages in both versions.
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

/// A switch whose entries have the cookies from 0 on, in one table or, for 1.3, in two.
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

/// Reads until there is nothing more to come; checks that never more than a little waits.
fn read_all(bench: &mut Bench, controller: ConnectionId) -> Vec<Sent> {
    let mut sent = bench.take(controller);
    while bench.switch.poll_output(bench.now) {
        assert!(bench.switch.output(controller).unwrap().len() <= WAITING_BYTES);
        sent.extend(bench.take(controller));
    }
    sent
}

/// Checks that all messages but the last say that more come.
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

/// How often each cookie was told.
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
fn entries_are_told_as_the_controller_reads() {
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
fn a_controller_that_does_not_read_is_told_no_more() {
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
fn embedders_that_only_tell_the_time_get_all() {
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

/// What is there all the time is told once, what was added after the request not at all; what goes before its turn came is
/// not told, nor what takes its place.
#[test]
fn entries_that_come_and_go_meanwhile() {
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
                entry(FlowModCommand::Add, table_id, host),
            ],
            2 => vec![entry(FlowModCommand::Modify, table_id, host)],
            _ => vec![entry(FlowModCommand::Add, table_id, host)],
        };
        for change in changes {
            bench.tell(other, &Message::FlowMod(change));
        }
        bench.tell(
            other,
            &Message::FlowMod(entry(FlowModCommand::Add, 2, ENTRIES + host)),
        );
    }
    let sent = read_all(&mut bench, controller);
    expect_parts(&sent);
    let counts = cookies(&sent);
    for host in 0..ENTRIES {
        let count = counts.get(&host).copied().unwrap_or(0);
        match host % 4 {
            0 | 1 => assert!(count <= 1, "entry {host} was told {count} times"),
            _ => assert_eq!(count, 1, "entry {host}"),
        }
    }
    assert!(
        counts.keys().all(|&host| host < ENTRIES),
        "entries of after the request"
    );
    assert!(
        !counts.contains_key(&(ENTRIES - 4)),
        "it had gone before its turn"
    );
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

/// Whoever reads gets on, however many others do not.
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
fn few_entries_of_many() {
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
fn entries_are_summed_up_a_few_at_a_time() {
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

#[test]
fn groups_and_meters_as_the_controller_reads() {
    const COUNT: u32 = 4000;
    let (mut bench, controller) = with_entries(Version::Of13);
    for id in 1..=COUNT {
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

/// A slow reader is no dead one, although what waits for it grows again each time it has read.
#[test]
fn a_controller_that_only_reads_is_there() {
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

/// The statistics of an entry take 16 bytes more than the flow mod that added it.
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
