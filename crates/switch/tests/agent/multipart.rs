//! Tests of multipart requests in both versions, and of each of their errors.

use crate::support::{Bench, body, encode, multipart};
use urtica_switch::ConnectionId;
use urtica_wire::{
    Action, Bucket, ErrorCode, ExperimenterMultipart, FlowMod, FlowStatsRequest, GROUP_ALL,
    GROUP_ANY, GroupMod, GroupModCommand, GroupType, Instruction, List, METER_ALL, Match, Message,
    MeterBand, MeterFlags, MeterMod, MeterModCommand, MultipartFlags, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody, PortNo, QUEUE_ALL, TABLE_ALL, TableFeatureKind,
    TableFeatures, TableForm, Version,
};

#[test]
fn the_description() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let answer = bench.ask(controller, &multipart(MultipartRequestBody::Desc));
        let MultipartReplyBody::Desc(desc) = body(&answer) else {
            panic!("expected a description");
        };
        assert_eq!(desc.mfr_desc.to_string(), "Urtica");
        assert_eq!(
            desc.sw_desc.to_string(),
            concat!("urtica ", env!("CARGO_PKG_VERSION"))
        );
    }
}

#[test]
fn tables() {
    for (version, name, max_entries, wildcards) in [
        (Version::Of10, "table 3", 1000, 0x003f_ffff),
        (Version::Of13, "", 0, 0),
    ] {
        let (mut bench, controller) = Bench::with_controller(version);
        let answer = bench.ask(controller, &multipart(MultipartRequestBody::Table));
        let MultipartReplyBody::Table(rows) = body(&answer) else {
            panic!("expected tables");
        };
        let rows: Vec<_> = rows.iter().collect();
        assert_eq!(rows.len(), 4);
        assert_eq!((rows[3].table_id, rows[3].active_count), (3, 0));
        assert_eq!(rows[3].name.to_string(), name);
        assert_eq!(rows[3].max_entries, max_entries);
        assert_eq!(rows[3].wildcards, wildcards);
    }
}

#[test]
fn queues() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let asked = |port, queue_id| multipart(MultipartRequestBody::Queue { port, queue_id });
        for port in [PortNo(1), PortNo::ALL] {
            let answer = bench.ask(controller, &asked(port, QUEUE_ALL));
            assert_eq!(body(&answer), MultipartReplyBody::Queue(List::default()));
        }
        assert_eq!(
            bench.refused(controller, &asked(PortNo(9), QUEUE_ALL)),
            ErrorCode::QueueOpFailedBadPort
        );
        assert_eq!(
            bench.refused(controller, &asked(PortNo(1), 0)),
            ErrorCode::QueueOpFailedBadQueue
        );
    }
}

#[test]
fn reports_group_and_meter_features() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let answer = bench.ask(controller, &multipart(MultipartRequestBody::GroupFeatures));
    let MultipartReplyBody::GroupFeatures(groups) = body(&answer) else {
        panic!("expected group features");
    };
    assert_eq!((groups.types, groups.max_groups), (0b1111, [10; 4]));
    let answer = bench.ask(controller, &multipart(MultipartRequestBody::MeterFeatures));
    let MultipartReplyBody::MeterFeatures(meters) = body(&answer) else {
        panic!("expected meter features");
    };
    assert_eq!((meters.max_meter, meters.band_types), (10, 0b110));
}

#[test]
fn forms_of_tables() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let asked = multipart(MultipartRequestBody::Experimenter(TableForm::REQUEST));
        let forms = |bench: &mut Bench| -> Vec<TableForm<'static>> {
            let answer = bench.ask(controller, &asked);
            let MultipartReplyBody::Experimenter(reply) = body(&answer) else {
                panic!("expected the forms of tables");
            };
            let rows = TableForm::rows(version, &reply).expect("rows");
            let rows = rows.expect("such a reply");
            rows.iter().map(TableForm::into_owned).collect()
        };
        assert_eq!(forms(&mut bench), []);
        bench.tell(controller, &Message::FlowMod(FlowMod::default()));
        let [form] = &forms(&mut bench)[..] else {
            panic!("expected one table");
        };
        assert_eq!((form.table_id, &*form.form), (0, "direct code"));
    }
}

#[test]
fn experimenters_are_unknown() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let asked = multipart(MultipartRequestBody::Experimenter(ExperimenterMultipart {
            experimenter: 1,
            data: &[0; 4],
        }));
        assert_eq!(
            bench.refused(controller, &asked),
            ErrorCode::BadRequestBadExperimenter
        );
    }
}

#[test]
fn requests_of_fixed_size_cannot_be_split() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let asked = Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::MORE,
        body: MultipartRequestBody::Desc,
    });
    assert_eq!(
        bench.refused(controller, &asked),
        ErrorCode::BadRequestBadLen
    );
}

/// Returns the switch's table features, as messages which are also valid requests.
fn table_features(bench: &mut Bench, controller: ConnectionId) -> Vec<Vec<u8>> {
    let asked = MultipartRequestBody::TableFeatures(List::default());
    bench.tell(controller, &multipart(asked));
    let answers = bench.take(controller);
    answers
        .iter()
        .map(|answer| match answer.message() {
            Message::MultipartReply(reply) => {
                let MultipartReplyBody::TableFeatures(rows) = reply.body else {
                    panic!("expected table features");
                };
                let body = MultipartRequestBody::TableFeatures(rows);
                let request = MultipartRequest {
                    flags: reply.flags,
                    body,
                };
                encode(Version::Of13, 1, &Message::MultipartRequest(request))
            }
            other => panic!("expected a multipart reply, not {other:?}"),
        })
        .collect()
}

/// The tables in one request.
fn rows(frame: &[u8]) -> Vec<TableFeatures<'_>> {
    match Message::decode(frame).unwrap().1 {
        Message::MultipartRequest(MultipartRequest {
            body: MultipartRequestBody::TableFeatures(rows),
            ..
        }) => rows.iter().collect(),
        other => panic!("expected a request for table features, not {other:?}"),
    }
}

#[test]
fn reports_table_features() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let told = table_features(&mut bench, controller);
    let tables = rows(&told[0]);
    assert_eq!(tables.len(), 4);
    let next = |table: &TableFeatures| {
        let next = |kind| kind == TableFeatureKind::NextTables;
        let property = table.properties.iter().find(|property| next(property.kind));
        property.unwrap().ids.to_vec()
    };
    assert_eq!(next(&tables[1]), [2, 3]);
    assert!(next(&tables[3]).is_empty());
    assert_eq!(tables[1].max_entries, 1000);
}

#[test]
fn requesting_the_present_table_features_is_granted() {
    let mut bench = Bench::new(urtica_switch::SwitchConfig::default());
    let controller = bench.connect(Version::Of13);
    let messages = table_features(&mut bench, controller);
    assert!(messages.len() > 1, "more than one message can hold");
    for message in &messages {
        assert!(bench.take(controller).is_empty());
        bench.input(controller, message).unwrap();
    }
    let answers = bench.take(controller);
    assert_eq!(answers.len(), messages.len());
    let MultipartReplyBody::TableFeatures(first) = body(&answers[0]) else {
        panic!("expected table features");
    };
    assert!(first.iter().eq(rows(&messages[0])));
}

#[test]
fn tables_cannot_be_changed() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let told = table_features(&mut bench, controller);
    let changed = |change: fn(&mut Vec<TableFeatures>)| {
        let mut tables = rows(&told[0]);
        change(&mut tables);
        multipart(MultipartRequestBody::TableFeatures(List::from(tables)))
    };
    for (asked, code) in [
        (
            changed(|tables| tables[0].table_id = 4),
            ErrorCode::TableFeaturesFailedBadTable,
        ),
        (
            changed(|tables| tables[1] = tables[0].clone()),
            ErrorCode::TableFeaturesFailedBadTable,
        ),
        (
            changed(|tables| tables[2].metadata_match = 1),
            ErrorCode::TableFeaturesFailedBadMetadata,
        ),
        (
            changed(|tables| tables[0].max_entries = 1),
            ErrorCode::TableFeaturesFailedEperm,
        ),
        (
            changed(|tables| tables.truncate(3)),
            ErrorCode::TableFeaturesFailedEperm,
        ),
    ] {
        let frame = bench.tell(controller, &asked);
        assert_eq!(bench.refusal(controller, &frame), code);
    }
}

#[test]
fn endless_partial_requests_are_refused() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let mut message = table_features(&mut bench, controller).remove(0);
    message[11] = 1;
    let refused = (0..4000).any(|_| {
        bench.input(controller, &message).unwrap();
        !bench.switch.output(controller).unwrap().is_empty()
    });
    assert!(refused);
    assert_eq!(
        bench.refusal(controller, &message),
        ErrorCode::BadRequestMultipartBufferOverflow
    );
}

fn entry(table_id: u8, host: u64, out: u32) -> FlowMod<'static> {
    FlowMod {
        table_id,
        cookie: host,
        match_: Match::any().eth_dst(urtica_wire::MacAddr::from_u64(host)),
        instructions: List::from(vec![Instruction::apply(vec![Action::output(PortNo(out))])]),
        ..FlowMod::default()
    }
}

#[test]
fn entries_as_they_were_added() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let added = FlowMod {
        idle_timeout: 7,
        hard_timeout: 8,
        priority: 9,
        ..entry(1, 5, 2)
    };
    bench.tell_quietly(controller, &Message::FlowMod(added.clone()));
    bench.now += std::time::Duration::from_millis(1500);
    let wanted = FlowStatsRequest {
        table_id: 1,
        ..FlowStatsRequest::default()
    };
    let answer = bench.ask(controller, &multipart(MultipartRequestBody::Flow(wanted)));
    let MultipartReplyBody::Flow(rows) = body(&answer) else {
        panic!("expected entries");
    };
    let row = rows.iter().next().unwrap();
    assert_eq!((row.table_id, row.priority, row.cookie), (1, 9, 5));
    assert_eq!((row.idle_timeout, row.hard_timeout), (7, 8));
    assert_eq!((row.duration_sec, row.duration_nsec), (1, 500_000_000));
    assert_eq!(row.match_, added.match_);
    assert_eq!(row.instructions, added.instructions);
}

#[test]
fn entries_summed_up() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        for host in 1..=3 {
            bench.tell_quietly(controller, &Message::FlowMod(entry(0, host, 2)));
        }
        for _ in 0..2 {
            bench.receive(1, &crate::support::frame(9, 0xff));
        }
        let mut all = crate::support::frame(9, 0);
        all[..6].copy_from_slice(&[0, 0, 0, 0, 0, 3]);
        bench.receive(1, &all);
        bench.take(controller);
        let wanted = FlowStatsRequest::default();
        let asked = multipart(MultipartRequestBody::Aggregate(wanted));
        let answer = bench.ask(controller, &asked);
        let MultipartReplyBody::Aggregate(sum) = body(&answer) else {
            panic!("expected a sum");
        };
        assert_eq!(
            (sum.flow_count, sum.packet_count, sum.byte_count),
            (3, 1, 60)
        );
    }
}

#[test]
fn entries_that_1_0_cannot_express_are_omitted() {
    let (mut bench, of13) = Bench::with_controller(Version::Of13);
    let of10 = bench.connect(Version::Of10);
    let beyond = FlowMod {
        match_: Match::any().eth_type(0x86dd).ip_proto(6),
        ..entry(0, 1, 2)
    };
    let goto = FlowMod {
        instructions: List::from(vec![Instruction::GotoTable(1)]),
        ..entry(0, 2, 2)
    };
    for added in [beyond, goto, entry(0, 3, 2)] {
        bench.tell_quietly(of13, &Message::FlowMod(added));
    }
    let wanted = FlowStatsRequest::default();
    let answer = bench.ask(of10, &multipart(MultipartRequestBody::Flow(wanted)));
    let MultipartReplyBody::Flow(rows) = body(&answer) else {
        panic!("expected entries");
    };
    let cookies: Vec<_> = rows.iter().map(|row| row.cookie).collect();
    assert!(cookies.contains(&3) && !cookies.contains(&2), "{cookies:?}");
}

#[test]
fn entries_of_a_table_that_does_not_exist() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let wanted = FlowStatsRequest {
        table_id: 4,
        ..FlowStatsRequest::default()
    };
    let asked = multipart(MultipartRequestBody::Flow(wanted));
    assert_eq!(
        bench.refused(controller, &asked),
        ErrorCode::BadRequestBadTableId
    );
    let wanted = FlowStatsRequest {
        table_id: TABLE_ALL,
        ..FlowStatsRequest::default()
    };
    bench.ask(controller, &multipart(MultipartRequestBody::Flow(wanted)));
}

fn bucket(port: u32) -> Bucket<'static> {
    Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: List::from(vec![Action::output(PortNo(port))]),
    }
}

#[test]
fn groups() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let group_mod = GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::All,
        group_id: 5,
        buckets: List::from(vec![bucket(2), bucket(3)]),
    };
    bench.tell_quietly(controller, &Message::GroupMod(group_mod.clone()));
    let to_group = FlowMod {
        instructions: List::from(vec![Instruction::apply(vec![Action::Group(5)])]),
        ..entry(0, 0x0200_0000_0002, 0)
    };
    bench.tell_quietly(controller, &Message::FlowMod(to_group));
    bench.receive(1, &crate::support::frame(1, 2));
    assert_eq!(bench.senders(), [2, 3]);

    let answer = bench.ask(controller, &multipart(MultipartRequestBody::GroupDesc));
    let MultipartReplyBody::GroupDesc(rows) = body(&answer) else {
        panic!("expected groups");
    };
    let row = rows.iter().next().unwrap();
    assert_eq!((row.group_id, row.group_type), (5, GroupType::All));
    assert_eq!(row.buckets, group_mod.buckets);

    for (wanted, count) in [(5, 1), (GROUP_ALL, 1), (6, 0)] {
        let asked = multipart(MultipartRequestBody::Group(wanted));
        let answer = bench.ask(controller, &asked);
        let MultipartReplyBody::Group(rows) = body(&answer) else {
            panic!("expected groups");
        };
        assert_eq!(rows.len(), count);
        for row in &rows {
            assert_eq!((row.ref_count, row.packet_count), (1, 1));
            assert_eq!((row.byte_count, row.buckets.len()), (60, 2));
        }
    }
}

#[test]
fn meters() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let band = MeterBand::Drop {
        rate: 1,
        burst_size: 1,
    };
    let meter_mod = MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::PKTPS | MeterFlags::BURST | MeterFlags::STATS,
        meter_id: 3,
        bands: List::from(vec![band]),
    };
    bench.tell_quietly(controller, &Message::MeterMod(meter_mod.clone()));
    let metered = FlowMod {
        instructions: List::from(vec![
            Instruction::Meter(3),
            Instruction::apply(vec![Action::output(PortNo(2))]),
        ]),
        ..entry(0, 0x0200_0000_0002, 0)
    };
    bench.tell_quietly(controller, &Message::FlowMod(metered));
    for _ in 0..5 {
        bench.receive(1, &crate::support::frame(1, 2));
    }
    for wanted in [3, METER_ALL] {
        let asked = multipart(MultipartRequestBody::MeterConfig(wanted));
        let answer = bench.ask(controller, &asked);
        let MultipartReplyBody::MeterConfig(rows) = body(&answer) else {
            panic!("expected meters");
        };
        let row = rows.iter().next().unwrap();
        assert_eq!((row.meter_id, row.flags), (3, meter_mod.flags));
        assert_eq!(row.bands, meter_mod.bands);

        let answer = bench.ask(controller, &multipart(MultipartRequestBody::Meter(wanted)));
        let MultipartReplyBody::Meter(rows) = body(&answer) else {
            panic!("expected meters");
        };
        let row = rows.iter().next().unwrap();
        assert_eq!((row.meter_id, row.flow_count), (3, 1));
        assert_eq!((row.packet_in_count, row.byte_in_count), (5, 300));
        let dropped = row.bands.iter().next().unwrap().packet_count;
        let passed = bench.sent_by(2).len() as u64;
        if wanted == 3 {
            assert_eq!(dropped + passed, 5);
        }
    }
    for asked in [
        MultipartRequestBody::Meter(4),
        MultipartRequestBody::MeterConfig(4),
    ] {
        assert_eq!(
            bench.refused(controller, &multipart(asked)),
            ErrorCode::MeterModFailedUnknownMeter
        );
    }
}
